//! One schedule, and what must hold at its end.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::identifier::NamespaceName;
use lance_maintenance_api::listing::ListTasksQuery;
use lance_maintenance_api::task::{TaskStatus, TaskType};
use lance_maintenance_dispatch::{Heartbeat, MAX_ATTEMPTS};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::catalog::{Catalog, NamespaceRecord, Origin, TableRecord};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::Tasks;

use crate::client::{Caller, identifier};
use crate::model::{Model, table_id};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::scene::Scene;
use crate::simulation::Fault;
use crate::worker::Worker;
use crate::world::{Client, Plant, SECOND, World};

const CLIENTS: usize = 2;

/// Runs the schedule of a seed.
pub fn run(seed: u64, plant: Plant, traced: bool) -> Result<(), Box<Fault>> {
    let mut rng = Rng::new(seed);
    // Where the clock stands after the tables were made.
    let plan = Plan::new(&mut rng, 2000 * SECOND);
    let world = World::new(rng, plan.odds, plant, traced);
    world.watch(end_changes);
    make_tables(&world);
    world.advance(2000 * SECOND - world.alone().now());

    let scene = Scene::new(&world, &plan, plant, CLIENTS);
    type Script<'s> = Box<dyn FnOnce(Client<'_>) + Send + 's>;
    let scene_of = &scene;
    let mut scripts: Vec<Script<'_>> = Vec::new();
    for worker in 0..plan.workers {
        scripts.push(Box::new(move |client| {
            Worker::new(scene_of, &client, worker).beat();
        }));
        for _ in 0..plan.runners {
            scripts.push(Box::new(move |client| {
                Worker::new(scene_of, &client, worker).run();
            }));
        }
    }
    scripts.push(Box::new(move |client| scene_of.make_left_behind(&client)));
    for me in 0..CLIENTS as u8 {
        scripts.push(Box::new(move |client| {
            Caller {
                scene: scene_of,
                client: &client,
                me,
            }
            .call();
        }));
    }
    world.run(scripts);

    let client = world.alone();
    let mut model = scene.model();
    look(&client, &mut model);
    settle(&world);
    for table in 0..2 {
        for task_type in TaskType::ALL {
            quota(&client, &mut model, table, task_type);
        }
    }
    let mut wrong = std::mem::take(&mut model.wrong);
    wrong.extend(world.wrong());
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Box::new(Fault {
        seed,
        wrong,
        lines: vec![format!("{plan:?}")],
        trace: world.trace(),
    }))
}

fn make_tables(world: &World) {
    let client = world.alone();
    let catalog = Catalog::new(&client, "b");
    let namespace = NamespaceRecord {
        id: "N".to_owned(),
        name: NamespaceName::parse("ns").unwrap().to_string(),
        ..NamespaceRecord::default()
    };
    assert!(
        catalog
            .create_namespace(&namespace, || client.now())
            .unwrap()
    );
    for table in 0..2 {
        let id = table_id(table);
        let location = format!("file:///w/{id}");
        let name = identifier(table);
        let record = TableRecord::new(&name, id, location, Origin::Declared, Default::default());
        catalog
            .create_table(&name, &record, || client.now())
            .unwrap();
    }
}

/// Who makes an attempt and how a task ended is written once.
fn end_changes(key: &str, before: Option<&[u8]>, value: &[u8]) -> Option<String> {
    let once = key.starts_with("task/") && (key.ends_with("/end") || key.contains("/run/"));
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    // Two may find at a time that nobody makes an attempt.
    let nobody = |value: &[u8]| text(value).contains(r#""worker_id":"""#);
    let before = before.filter(|before| once && *before != value)?;
    if nobody(before) && nobody(value) {
        return None;
    }
    Some(format!("{key} was {}, is {}", text(before), text(value)))
}

/// Looks at what is there in the end.
fn look(client: &Client<'_>, model: &mut Model) {
    let now = client.now();
    for known in model.tasks.clone() {
        let id = &known.id;
        let found = Tasks::new(client, &table_id(known.table)).get(id);
        let Ok(task) = found else {
            if known.answered && known.deletions == 0 {
                model.wrong.push(format!("{id} is gone"));
            }
            continue;
        };
        if known.deleted {
            model.wrong.push(format!("{id} is there again"));
        }
        let runs = task.runs.clone();
        let mut made = runs
            .iter()
            .flatten()
            .filter(|run| !run.worker_id.is_empty());
        if known.stopped && made.next().is_some() {
            model
                .wrong
                .push(format!("{id} was canceled, then tried: {runs:?}"));
        }
        let info = task.info();
        if !info.status.is_terminal() {
            continue;
        }
        if info.status == TaskStatus::Completed && known.effect.is_none() {
            model.wrong.push(format!("{id} completed without effect"));
        }
        match info.error.as_ref().map(|error| error.code) {
            Some(code)
                if code == ErrorName::TableNotFound.code() && !model.dropping[known.table] =>
            {
                model.wrong.push(format!("{id} failed: {info:?}"));
            }
            Some(code) if code == ErrorName::InternalError.code() => {
                let made = runs.iter().flatten().count().max(MAX_ATTEMPTS as usize);
                for (attempt, run) in (1..).zip(runs.iter().take(made)) {
                    let by = run.as_ref().map(|run| run.worker_id.as_str());
                    if !by.is_some_and(|by| model.was_lost(id, attempt, by, now)) {
                        let text = format!("{id} was given up; attempt {attempt} of {by:?}");
                        model.wrong.push(text);
                    }
                }
            }
            _ => {}
        }
        model.ended(info, known.table);
    }
}

/// Lets places that were lost be found and freed.
fn settle(world: &World) {
    let client = world.alone();
    for starting in [true, false, true, false] {
        world.advance(100 * SECOND);
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting,
            in_hand: Vec::new(),
            room: 0,
        };
        let answer = Execution::new(&client).heartbeat(&heartbeat, || client.now());
        assert!(answer.is_ok());
    }
}

/// No place of the quota is lost, and none is won.
fn quota(client: &Client<'_>, model: &mut Model, table: usize, task_type: TaskType) {
    let id = table_id(table);
    let query = ListTasksQuery {
        task_type,
        max_results: 1000,
        below: None,
    };
    let listed = Tasks::new(client, &id).list(&query, false).unwrap();
    let log = format!("tasks/{id}/{task_type}");
    let used = client.increment(&log, 0).unwrap();
    let freed = client.increment(&format!("{log}/freed"), 0).unwrap();
    // A record whose deletion was cut short has no place any more.
    let has_place = |slot: u64| {
        let fence = format!("task/{id}/{task_type}/{slot}/freeing");
        client.increment(&fence, 0).unwrap() == 0
    };
    let kept = listed.tasks.iter().map(|task| task.task_id.slot());
    let kept = kept.filter(|slot| has_place(*slot)).count() as i64;
    if used - freed != kept {
        let text = format!("{log}: {used} used, {freed} freed, {kept} kept");
        model.wrong.push(text);
    }
}
