//! One schedule: what it starts with, what its scripts ask for, and what must hold at the end. All
//! of it follows from the seed.

use lance_maintenance_dispatch::Heartbeat;
use lance_maintenance_dispatch::tables::Purge;
use lance_maintenance_store::catalog::{Catalog, Purges, TableRecord, find_table};
use lance_maintenance_store::execution::Execution;

use crate::calls::{Call, Caller, Told, identifier, name_of, namespace, number, policy, uuid};
use crate::model::{self, Locations, MOST_TABLES, NAMESPACES, Name, State, Unit, names};
use crate::rng::Rng;
use crate::simulation::Fault;
use crate::world::{Client, Odds, Plant, SECOND, World};

/// How many requests the scripts of a schedule make together, at most.
const MOST_CALLS: usize = 10;

/// How long an owner may take, by the clock, from its last look at the clock to its write. The
/// catalog gives an owner up after 30 s and lets none begin to write after 10 s; nothing on a store
/// without compare-and-swap protects against one that stops for the 20 s in between just there.
const MOST_BEFORE_WRITE: i64 = 19 * SECOND;

struct Plan {
    start: Vec<Call>,
    scripts: Vec<Vec<Call>>,
    locations: Locations,
    odds: Odds,
}

fn plan(rng: &mut Rng) -> Plan {
    let mut tables = 0;
    let mut locations = [0; MOST_TABLES];
    let mut new_table = |rng: &mut Rng| {
        tables += 1;
        let place = if rng.per_mille(250) { 0 } else { tables };
        locations[tables as usize] = place;
        tables
    };
    // Some schedules are about few names, or few kinds of requests, which meet more often then.
    let used: Vec<Name> = (0..2 + rng.below(3))
        .map(|_| (rng.below(2) as u8, rng.below(2) as u8))
        .collect();
    let name = |rng: &mut Rng| rng.of(&used);

    let mut start = Vec::new();
    for ns in 0..NAMESPACES as u8 {
        if rng.per_mille(850) {
            start.push(Call::MakeNamespace(ns, ns));
        }
    }
    for at in names() {
        if rng.per_mille(400) {
            start.push(Call::Create(at, new_table(rng)));
        }
    }
    let known = start.len() as u8;

    let mut left = MOST_CALLS;
    let count = 2 + rng.below(4);
    let mut scripts = Vec::new();
    let kinds: Vec<usize> = (0..2 + rng.below(5)).map(|_| rng.below(100)).collect();
    for script in 0..count {
        let calls = (1 + rng.below(4)).min(left);
        left -= calls;
        let calls = (0..calls).map(|call| {
            let id = (script * 4 + call) as u8 + 2;
            let remembered = rng.per_mille(300) && known > 0;
            let blind = remembered.then(|| 1 + rng.below(4) as u8);
            match rng.of(&kinds) {
                0..20 => Call::Create(name(rng), new_table(rng)),
                20..35 => Call::Drop(name(rng), blind, rng.per_mille(700)),
                35..60 => Call::Rename(name(rng), blind, name(rng)),
                60..66 => Call::MakeNamespace(rng.below(2) as u8, id),
                66..80 => Call::DropNamespace(rng.below(2) as u8, rng.per_mille(500), id),
                80..88 => Call::Policy(name(rng), blind, id),
                88..91 => Call::List(rng.below(2) as u8),
                91..94 => Call::Get(name(rng)),
                94..97 => Call::Find(1 + rng.below(4) as u8),
                _ => Call::Purge,
            }
        });
        scripts.push(calls.collect());
    }
    let odds = Odds {
        stay: rng.of(&[100, 500, 800, 950]),
        leap: rng.of(&[0, 0, 5, 40, 120]),
        crash: rng.of(&[0, 0, 5, 20]),
        fail: rng.of(&[0, 0, 10, 30]),
        leaps: &[12 * SECOND, 31 * SECOND, 70 * SECOND],
        until: i64::MAX,
        write: MOST_BEFORE_WRITE,
    };
    Plan {
        start,
        scripts,
        locations,
        odds,
    }
}

/// Runs the schedule of a seed.
pub fn run(seed: u64, plant: Plant, traced: bool) -> Result<(), Box<Fault>> {
    let mut rng = Rng::new(seed);
    let plan = plan(&mut rng);
    let world = World::new(rng, plan.odds, plant, traced);
    let locations = &plan.locations;

    let mut first = Caller::new(world.alone(), locations);
    for call in &plan.start {
        first.make(*call);
    }
    // What was made long ago is held by no claim's age.
    world.advance(1000 * SECOND);
    let scripts = plan.scripts.iter().map(|calls| {
        move |client: Client<'_>| {
            let mut caller = Caller::new(client, locations);
            for call in calls {
                caller.make(*call);
            }
            caller.told
        }
    });
    let mut told = vec![first.told];
    told.extend(world.run(scripts.collect()));
    world.advance(1000 * SECOND);

    let mut wrong = Vec::new();
    let end = look(world.alone(), &mut wrong);
    let units: Vec<Unit> = told.iter().flat_map(|told| told.units.clone()).collect();
    if !model::explains(State::default(), &units, locations, end) {
        wrong.push(format!("no order explains the answers and {end:?}"));
    }
    let mut removed = purges(&world, &end, locations, &mut wrong);
    removed.extend(told.iter().flat_map(|told| &told.purged));
    for id in told.iter().flat_map(|told| &told.dropped) {
        if !removed.contains(id) {
            wrong.push(format!("the data of {id} is never removed"));
        }
    }
    goes_on(&world, &mut wrong);
    wrong.extend(told.iter().flat_map(|told| told.wrong.clone()));
    if wrong.is_empty() {
        return Ok(());
    }
    let lines = |(script, told): (usize, &Told)| {
        let title = format!("script {}", script as isize - 1);
        [vec![title], told.lines.clone()].concat()
    };
    Err(Box::new(Fault {
        seed,
        wrong,
        lines: told.iter().enumerate().flat_map(lines).collect(),
        trace: world.trace(),
    }))
}

/// The catalog as it is found in four ways, which have to agree.
fn look(client: Client<'_>, wrong: &mut Vec<String>) -> State {
    let catalog = Catalog::new(&client, "b");
    let mut state = State::default();
    let mut named: Vec<(u8, Name)> = Vec::new();
    for name in names() {
        if let Ok(table) = catalog.table(&identifier(name)) {
            let id = number(&table);
            state.put(name, id);
            state.policy[id as usize] = policy(&table);
            named.push((id, name));
        }
    }
    named.sort_unstable();
    if named.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        wrong.push(format!("a table has two names: {named:?}"));
    }

    let shown = |table: &TableRecord| (number(table), name_of(table));
    let mut listed: Vec<(u8, Name)> = Vec::new();
    for ns in 0..NAMESPACES as u8 {
        state.open[ns as usize] = catalog.namespace(&namespace(ns)).is_ok();
        if let Ok(page) = catalog.tables(&namespace(ns), None, 10) {
            listed.extend(page.entries.iter().map(|(_, table)| shown(table)));
        }
    }
    listed.sort_unstable();
    let (all, _) = catalog.all_tables(None, 100).unwrap();
    let mut all: Vec<(u8, Name)> = all.iter().map(shown).collect();
    all.sort_unstable();
    let ids = 1..MOST_TABLES as u8;
    let found = ids.filter_map(|id| find_table(&client, &uuid(id)).unwrap());
    let found: Vec<(u8, Name)> = found.map(|table| shown(&table)).collect();
    for (way, seen) in [
        ("lists", listed),
        ("all_tables", all),
        ("find_table", found),
    ] {
        if seen != named {
            wrong.push(format!("{way} shows {seen:?}, table {named:?}"));
        }
    }
    state
}

/// Only what was dropped is purged, and nothing where a table lies. The tables whose data is to be
/// removed.
fn purges(world: &World, end: &State, locations: &Locations, wrong: &mut Vec<String>) -> Vec<u8> {
    let client = world.alone();
    let heartbeat = Heartbeat {
        worker_id: "w".to_owned(),
        incarnation: String::new(),
        starting: true,
        in_hand: Vec::new(),
        room: 10,
    };
    let execution = Execution::new(&client);
    let mut waiting: Vec<Purge> = Purges::new(&client).waiting(client.now()).unwrap();
    for _ in 0..2 {
        let beat = execution.heartbeat(&heartbeat, || client.now());
        waiting.extend(beat.unwrap().purges);
    }
    let present: Vec<u8> = names()
        .map(|name| end.get(name))
        .filter(|id| *id > 0)
        .collect();
    let mut ids = Vec::new();
    for purge in waiting {
        let id: u8 = purge.table_id[1..].parse().unwrap();
        ids.push(id);
        let lies = |at: &u8| locations[*at as usize] == locations[id as usize];
        if present.iter().any(lies) {
            wrong.push(format!("{purge:?} waits, and {end:?}"));
        }
    }
    ids
}

/// Whatever was cut short, everything can be changed again after a while.
fn goes_on(world: &World, wrong: &mut Vec<String>) {
    let client = world.alone();
    let catalog = Catalog::new(&client, "b");
    let all = |_: &TableRecord| Ok(());
    for ns in 0..NAMESPACES as u8 {
        let mut outcome = Ok(());
        for attempt in 0..6 {
            let dropped = catalog.drop_namespace(
                &namespace(ns),
                &format!("E{attempt}"),
                || client.now(),
                Some(&all),
            );
            outcome = dropped.map(drop);
            let open = catalog.namespace(&namespace(ns)).is_ok();
            if !open {
                outcome = Ok(());
                break;
            }
            world.advance(60 * SECOND);
        }
        if let Err(error) = outcome {
            wrong.push(format!("namespace {ns} can't be dropped: {error}"));
        }
    }
    let left =
        (1..MOST_TABLES as u8).filter(|id| find_table(&client, &uuid(*id)).unwrap().is_some());
    let left: Vec<u8> = left.collect();
    if !left.is_empty() {
        wrong.push(format!("found after all was dropped: {left:?}"));
    }
}
