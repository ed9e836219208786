//! What a catalog is, said simply, and whether there is an order of what was done to it that
//! explains every answer (after Wing and Gong, with the states that were met remembered).

use std::collections::HashSet;

/// A table's name: the number of its namespace, and its own there.
pub type Name = (u8, u8);

pub const NAMESPACES: usize = 2;
pub const TABLES: usize = 2;
/// More tables than a schedule makes.
pub const MOST_TABLES: usize = 24;

/// Every name that a table can have.
pub fn names() -> impl Iterator<Item = Name> {
    (0..NAMESPACES as u8).flat_map(|ns| (0..TABLES as u8).map(move |table| (ns, table)))
}

/// The catalog at one moment. Tables are numbered from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub open: [bool; NAMESPACES],
    pub at: [[u8; TABLES]; NAMESPACES],
    /// The policy of a table that is there, 0 for none.
    pub policy: [u8; MOST_TABLES],
}

impl State {
    pub fn get(&self, (ns, table): Name) -> u8 {
        self.at[ns as usize][table as usize]
    }

    pub fn put(&mut self, (ns, table): Name, id: u8) {
        self.at[ns as usize][table as usize] = id;
    }

    fn is_empty(&self, ns: u8) -> bool {
        self.at[ns as usize] == [0; TABLES]
    }

    fn take(&mut self, name: Name) {
        self.policy[self.get(name) as usize] = 0;
        self.put(name, 0);
    }
}

/// What an answer says about some moment during the call, and what does not change the catalog.
#[derive(Clone, Copy, Debug)]
pub enum Query {
    /// The name stands for this table with this policy, or for none.
    Holds(Name, Option<(u8, u8)>),
    /// The name does not stand for this table.
    HoldsNot(Name, u8),
    /// The name stands for a table.
    Occupied(Name),
    /// The name stands for a table, or the table's location is another's.
    Taken(Name, u8),
    /// No table lies where this one did.
    Vacated(u8),
    /// The table has no name.
    Absent(u8),
    Open(u8, bool),
    NotEmpty(u8),
}

/// What a call does, at one moment.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Query(Query),
    Create(Name, u8),
    /// Takes the table out, whose policy was this, as far as is known.
    Drop(Name, u8, Option<u8>),
    Rename(Name, Name, u8),
    Policy(Name, u8, u8),
    Open(u8),
    Close(u8),
    /// Takes tables out one by one, then closes.
    Cascade(u8),
}

/// One thing that a call did or may have done.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    pub act: Act,
    /// It was not before this moment.
    pub from: u32,
    /// And not after this one.
    pub to: u32,
    /// It was done; otherwise maybe.
    pub must: bool,
    /// It may have been taken back.
    pub undo: bool,
}

/// Where tables lie, by their numbers.
pub type Locations = [u8; MOST_TABLES];

struct Search<'a> {
    units: &'a [Unit],
    locations: &'a Locations,
    musts: u128,
    end: State,
    met: HashSet<(u128, u128, State)>,
}

/// Whether an order of the units leads from the one state to the other.
pub fn explains(start: State, units: &[Unit], locations: &Locations, end: State) -> bool {
    assert!(units.len() <= 128, "{} units", units.len());
    let musts = units.iter().enumerate().filter(|(_, unit)| unit.must);
    let musts = musts.fold(0, |bits, (at, _)| bits | 1 << at);
    let mut search = Search {
        units,
        locations,
        musts,
        end,
        met: HashSet::new(),
    };
    search.from(0, 0, start)
}

impl Search<'_> {
    fn from(&mut self, mut done: u128, undone: u128, state: State) -> bool {
        while let Some(at) = self.free_query(done, &state) {
            done |= 1 << at;
        }
        if done & self.musts == self.musts && state == self.end {
            return true;
        }
        if !self.met.insert((done, undone, state)) {
            return false;
        }
        let (deadline, latest) = self.window(done);
        for (at, unit) in self.units.iter().enumerate() {
            let bit = 1 << at;
            if unit.from > deadline || unit.to < latest {
                continue;
            }
            if done & bit == 0 {
                if let Some(next) = self.after(unit, &state)
                    && self.from(done | bit, undone, next)
                {
                    return true;
                }
                if let Act::Cascade(ns) = unit.act {
                    for name in names().filter(|(of, _)| *of == ns) {
                        if state.get(name) == 0 {
                            continue;
                        }
                        let mut next = state;
                        next.take(name);
                        if self.from(done, undone, next) {
                            return true;
                        }
                    }
                }
            } else if unit.undo
                && undone & bit == 0
                && let Some(next) = before(unit, &state)
                && self.from(done, undone | bit, next)
            {
                return true;
            }
        }
        false
    }

    /// A question whose answer is right now, and that it does no harm to ask now.
    fn free_query(&self, done: u128, state: &State) -> Option<usize> {
        let (deadline, latest) = self.window(done);
        let undecided = |(at, unit): (usize, &Unit)| {
            (!unit.must && done & (1 << at) == 0)
                || unit.undo
                || matches!(unit.act, Act::Cascade(_))
        };
        let first_maybe = self
            .units
            .iter()
            .enumerate()
            .filter(|(at, unit)| undecided((*at, unit)))
            .map(|(_, unit)| unit.to)
            .filter(|to| *to >= latest)
            .min()
            .unwrap_or(u32::MAX);
        self.units.iter().enumerate().position(|(at, unit)| {
            done & (1 << at) == 0
                && unit.from <= deadline.min(first_maybe)
                && unit.to >= latest
                && matches!(unit.act, Act::Query(query) if self.holds(query, state))
        })
    }

    /// The end of the first call that is to come, and the beginning of the last that was.
    fn window(&self, done: u128) -> (u32, u32) {
        let (mut deadline, mut latest) = (u32::MAX, 0);
        for (at, unit) in self.units.iter().enumerate() {
            if done & (1 << at) != 0 {
                latest = latest.max(unit.from);
            } else if unit.must {
                deadline = deadline.min(unit.to);
            }
        }
        (deadline, latest)
    }

    fn is_vacant(&self, id: u8, state: &State) -> bool {
        let place = self.locations[id as usize];
        names()
            .map(|name| state.get(name))
            .all(|held| held == 0 || self.locations[held as usize] != place)
    }

    fn holds(&self, query: Query, state: &State) -> bool {
        match query {
            Query::Holds(name, held) => {
                let (id, policy) = held.unwrap_or_default();
                state.get(name) == id && (id == 0 || state.policy[id as usize] == policy)
            }
            Query::HoldsNot(name, id) => state.get(name) != id,
            Query::Occupied(name) => state.get(name) != 0,
            Query::Taken(name, id) => state.get(name) != 0 || !self.is_vacant(id, state),
            Query::Vacated(id) => self.is_vacant(id, state),
            Query::Absent(id) => names().all(|name| state.get(name) != id),
            Query::Open(ns, open) => state.open[ns as usize] == open,
            Query::NotEmpty(ns) => !state.is_empty(ns),
        }
    }

    fn after(&self, unit: &Unit, state: &State) -> Option<State> {
        let mut next = *state;
        match unit.act {
            Act::Query(query) => return self.holds(query, state).then_some(next),
            Act::Create(name, id) => {
                let free = state.get(name) == 0 && self.is_vacant(id, state);
                if !state.open[name.0 as usize] || !free {
                    return None;
                }
                next.put(name, id);
            }
            Act::Drop(name, id, policy) => {
                let known = policy.is_none_or(|policy| state.policy[id as usize] == policy);
                if state.get(name) != id || !known {
                    return None;
                }
                next.take(name);
            }
            Act::Rename(from, to, id) => {
                let open = state.open[to.0 as usize];
                if state.get(from) != id || state.get(to) != 0 || !open {
                    return None;
                }
                next.put(from, 0);
                next.put(to, id);
            }
            Act::Policy(name, id, policy) => {
                if state.get(name) != id {
                    return None;
                }
                next.policy[id as usize] = policy;
            }
            Act::Open(ns) => {
                if state.open[ns as usize] {
                    return None;
                }
                next.open[ns as usize] = true;
            }
            Act::Close(ns) | Act::Cascade(ns) => {
                if !state.open[ns as usize] || !state.is_empty(ns) {
                    return None;
                }
                next.open[ns as usize] = false;
            }
        }
        Some(next)
    }
}

/// The state without what a unit did, if that can be taken back.
fn before(unit: &Unit, state: &State) -> Option<State> {
    let mut next = *state;
    match unit.act {
        Act::Create(name, id) if state.get(name) == id => next.take(name),
        Act::Rename(from, to, id) => {
            let open = state.open[from.0 as usize];
            if state.get(to) != id || state.get(from) != 0 || !open {
                return None;
            }
            next.put(to, 0);
            next.put(from, id);
        }
        _ => return None,
    }
    Some(next)
}
