//! More clients than there is room for: every request is answered, in a way that is documented, what
//! was accepted is done, and neither memory nor open files grow with the number of requests.

mod players;
mod tally;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_ipc::writer::StreamWriter;
use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::harness::Server;

use self::players::{Board, Dice, Player, drain};
use self::tally::{Ask, Tally};
use self::watch::{Look, Looks, PROCESSES, Process, Watch, largest};
use crate::support::declared_by;

const TABLES: usize = 10;
/// Tasks of one type that a table keeps; so few that all of them end soon.
const QUOTA: &str = "3";
/// How long the accepted tasks may take to end.
const DRAIN: Duration = Duration::from_secs(240);
/// Clients that send large bodies.
const LARGE: u64 = 16;
/// After this time what has nothing to do is gone: instances of components (10 s) and connections (30 s).
const QUIET: Duration = Duration::from_secs(45);

/// For how long the clients ask: 8 seconds, or OVERLOAD_SECONDS.
fn storm_time() -> Duration {
    Duration::from_secs(setting("OVERLOAD_SECONDS", 8))
}

/// How many clients there are: 64, or OVERLOAD_CLIENTS.
fn clients() -> u64 {
    setting("OVERLOAD_CLIENTS", 64)
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

/// An Arrow stream of some rows, so many times.
fn stream(rows: i64, times: usize) -> Vec<u8> {
    let batch = busy_table::rows(0..rows).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for _ in 0..times {
        writer.write(&batch).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Lets so many clients do the same, and tells what they were answered and what it took.
async fn storm<Playing: Future<Output = Tally> + Send + 'static>(
    server: &Server,
    board: &Arc<Board>,
    clients: u64,
    play: impl Fn(Player, Instant) -> Playing,
) -> (Tally, Looks) {
    let watch = Watch::start(server);
    let started = Instant::now();
    let players: Vec<_> = (1..=clients)
        .map(|seed| {
            let player = Player {
                board: Arc::clone(board),
                client: server.client().unwrap(),
                dice: Dice(seed * 7_919),
                tally: Tally::default(),
            };
            tokio::spawn(play(player, started + storm_time()))
        })
        .collect();
    let mut tally = Tally::default();
    for player in players {
        tally.append(player.await.unwrap());
    }
    let took = started.elapsed();
    let looks = watch.stop();
    let per_second = tally.len() as f64 / took.as_secs_f64();
    println!("{tally}\n{per_second:.0} requests a second for {took:.1?}\n{looks}");
    (tally, looks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clients_than_there_is_room_for() {
    let server = Server::start(&[("task_quota", QUOTA)]).unwrap();
    let client = server.client().unwrap();
    let mut tables = Vec::new();
    for number in 0..TABLES {
        let table = declared_by(&client, "overload", &format!("t{number}")).await;
        for rows in [0..150, 150..300] {
            busy_table::append(&table.location, rows).await.unwrap();
        }
        tables.push(table);
    }
    let board = Board::of(tables, [stream(20, 1), stream(2_000, 1)]);
    let before = Look::at(&server);
    let (tally, looks) = storm(&server, &board, clients(), Player::play).await;
    let ending = Instant::now();
    let listed = drain(&board.tables, DRAIN).await.unwrap();
    let accepted: BTreeSet<String> = {
        let accepted = board.accepted.lock().unwrap();
        accepted.iter().map(|(.., id)| id.clone()).collect()
    };
    println!(
        "{} tasks were accepted; the last ended {:.1?} after the storm",
        accepted.len(),
        ending.elapsed()
    );

    assert_eq!(tally.faults(), Default::default());
    // It was a storm, and room was made and taken.
    for (ask, status) in [
        (Ask::Submit, 200),
        (Ask::Submit, 429),
        (Ask::Get, 200),
        (Ask::List, 200),
        (Ask::Catalog, 200),
        (Ask::Create, 200),
        (Ask::Create, 503),
    ] {
        assert!(tally.count(ask, status) > 0, "{ask:?} {status}");
    }
    // Nothing that was accepted is lost, and nothing is there that was not.
    let deleted = board.deleted.lock().unwrap().clone();
    assert_eq!(&listed | &deleted, accepted);
    assert_eq!(&listed & &deleted, BTreeSet::new());
    check_course(&looks);
    check_end(&server, &before, &looks).await;
}

/// Memory does not grow with the number of requests.
fn check_course(looks: &Looks) {
    for (name, of) in PROCESSES {
        // In the first third instances are made, and what they keep for the next request.
        let [warm, end] = [3, 6].map(|part| looks.typical(part, 6, |look| of(look).memory));
        assert!(end < warm + (96 << 20), "{name}: {warm}, then {end}");
        let most = looks.most(|look| of(look).memory);
        assert!(most < 1 << 30, "{name}: {most}");
    }
    let most = looks.most(largest);
    assert!(most < 512 << 20, "operations: {most}");
}

/// Waits until what was taken is given back, and fails if that takes too long.
async fn check_end(server: &Server, before: &Look, looks: &Looks) {
    let started = Instant::now();
    let mut after = Look::at(server);
    while let Some(kept) = kept(before, looks, &after) {
        assert!(
            started.elapsed() < QUIET,
            "{kept}\nbefore: {before}\nafter:  {after}"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
        after = Look::at(server);
    }
    println!("before: {before}\nafter {:.0?}: {after}", started.elapsed());
}

/// What is still held that should not be.
fn kept(before: &Look, looks: &Looks, after: &Look) -> Option<String> {
    let memory = |look: &Look| look.application.memory;
    let taken = looks.most(memory) - memory(before);
    let kept = memory(after).saturating_sub(memory(before));
    // Each instance that there was leaves a little of its memory in the pool for the next one.
    if kept > taken / 2 + (96 << 20) {
        return Some(format!("{kept} bytes of {taken}"));
    }
    if !after.operations.is_empty() {
        return Some("operations".to_owned());
    }
    let more_files = |of: Process| of(after).files > of(before).files + 32;
    let (name, _) = PROCESSES.into_iter().find(|(_, of)| more_files(*of))?;
    Some(format!("files of the {name}"))
}

/// Bodies that are so large that an instance of a component has no room for many of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_bodies_at_once() {
    let server = Server::start(&[]).unwrap();
    let client = server.client().unwrap();
    client.ensure_namespace("overload").await.unwrap();
    let body = stream(2_000, 45);
    assert!((25 << 20..32 << 20).contains(&body.len()), "{}", body.len());
    let board = Board::of(Vec::new(), [Vec::new(), body]);
    let before = Look::at(&server);
    let (tally, looks) = storm(&server, &board, LARGE, Player::create_large).await;

    assert_eq!(tally.faults(), Default::default());
    assert!(tally.count(Ask::Drop, 200) > 0);
    check_end(&server, &before, &looks).await;
    // Each of the few that are inside at once has an instance in two components, and is on its way
    // between them.
    let most = looks.most(|look| look.application.memory) - before.application.memory;
    assert!(most < 3 << 30, "{} MiB", most >> 20);
}
