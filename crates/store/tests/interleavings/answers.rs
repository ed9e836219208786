//! What each answer says of the moments of its call.

use lance_maintenance_api::ErrorName::{
    self, ConcurrentModification as Busy, NamespaceNotEmpty, NamespaceNotFound,
    ServiceUnavailable as Unavailable, TableAlreadyExists, TableNotFound,
};

use crate::model::{Act, Name, Query, Unit, names};

/// The end of what may come into effect at any later time.
const OPEN_END: u32 = u32::MAX;

const fn unit(act: Act, must: bool) -> Unit {
    Unit {
        act,
        from: 0,
        to: 0,
        must,
        undo: false,
    }
}

pub fn query(query: Query) -> Unit {
    unit(Act::Query(query), true)
}

/// What was answered with an error and can have been done all the same: for good, or until it was
/// taken back. `later`: and this even after the answer.
fn undone(act: Act, later: bool) -> Unit {
    Unit {
        undo: true,
        to: if later { OPEN_END } else { 0 },
        ..unit(act, false)
    }
}

/// What an answer says, or that it is none that this request can have.
pub type Said = Option<Vec<Unit>>;

pub fn create(name: Name, id: u8, outcome: Result<(), ErrorName>) -> Said {
    let act = Act::Create(name, id);
    Some(match outcome {
        Ok(()) => vec![unit(act, true)],
        Err(TableAlreadyExists) => vec![query(Query::Taken(name, id))],
        Err(NamespaceNotFound) => vec![query(Query::Open(name.0, false)), undone(act, false)],
        Err(Busy | Unavailable) => vec![undone(act, true)],
        Err(_) => return None,
    })
}

pub fn drop_table(name: Name, id: u8, outcome: Result<u8, ErrorName>) -> Said {
    Some(match outcome {
        Ok(policy) => vec![unit(Act::Drop(name, id, Some(policy)), true)],
        Err(TableNotFound) => vec![query(Query::HoldsNot(name, id))],
        Err(Busy | Unavailable) => vec![unit(Act::Drop(name, id, None), false)],
        Err(_) => return None,
    })
}

pub fn rename(name: Name, id: u8, to: Name, outcome: Result<(), ErrorName>) -> Said {
    let act = Act::Rename(name, to, id);
    Some(match outcome {
        Ok(()) => vec![unit(act, true)],
        Err(TableNotFound) => vec![query(Query::HoldsNot(name, id))],
        Err(TableAlreadyExists) if name == to => Vec::new(),
        Err(TableAlreadyExists) => vec![query(Query::Occupied(to))],
        Err(NamespaceNotFound) => vec![query(Query::Open(to.0, false)), undone(act, false)],
        Err(Busy | Unavailable) => vec![undone(act, true)],
        Err(_) => return None,
    })
}

pub fn set_policy(name: Name, id: u8, value: u8, outcome: Result<(), ErrorName>) -> Said {
    let act = Act::Policy(name, id, value);
    Some(match outcome {
        Ok(()) => vec![unit(act, true)],
        Err(TableNotFound) => vec![query(Query::HoldsNot(name, id))],
        Err(Busy | Unavailable) => vec![unit(act, false)],
        Err(_) => return None,
    })
}

pub fn get(name: Name, outcome: Result<(u8, u8), ErrorName>) -> Said {
    Some(match outcome {
        Ok(held) => vec![query(Query::Holds(name, Some(held)))],
        Err(TableNotFound) => vec![query(Query::Holds(name, None))],
        Err(Unavailable) => Vec::new(),
        Err(_) => return None,
    })
}

pub fn find(id: u8, outcome: Result<Option<(Name, u8)>, ErrorName>) -> Said {
    Some(match outcome {
        Ok(Some((name, policy))) => vec![query(Query::Holds(name, Some((id, policy))))],
        Ok(None) => vec![query(Query::Absent(id))],
        Err(Unavailable) => Vec::new(),
        Err(_) => return None,
    })
}

/// A list is no picture of one moment, but what it says of each name is.
pub fn list(ns: u8, outcome: &Result<Vec<(Name, u8, u8)>, ErrorName>) -> Said {
    Some(match outcome {
        Ok(listed) => {
            let shown = |name: Name| {
                let held = listed.iter().find(|(held, ..)| *held == name);
                query(Query::Holds(
                    name,
                    held.map(|(_, id, policy)| (*id, *policy)),
                ))
            };
            let of = names().filter(|(of, _)| *of == ns).map(shown);
            of.chain([query(Query::Open(ns, true))]).collect()
        }
        Err(NamespaceNotFound) => vec![query(Query::Open(ns, false))],
        Err(Unavailable) => Vec::new(),
        Err(_) => return None,
    })
}

pub fn make_namespace(ns: u8, outcome: Result<bool, ErrorName>) -> Said {
    Some(match outcome {
        Ok(true) => vec![unit(Act::Open(ns), true)],
        Ok(false) => vec![query(Query::Open(ns, true))],
        Err(Busy | Unavailable) => vec![unit(Act::Open(ns), false)],
        Err(_) => return None,
    })
}

pub fn drop_namespace(ns: u8, cascade: bool, outcome: Result<(), ErrorName>) -> Said {
    let act = if cascade {
        Act::Cascade(ns)
    } else {
        Act::Close(ns)
    };
    Some(match outcome {
        Ok(()) => vec![unit(act, true)],
        Err(NamespaceNotFound) => vec![query(Query::Open(ns, false))],
        Err(NamespaceNotEmpty) if !cascade => vec![query(Query::NotEmpty(ns))],
        Err(Busy | Unavailable) => vec![unit(act, false)],
        Err(_) => return None,
    })
}
