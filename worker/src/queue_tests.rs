use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::testing::dispatch;

#[test]
fn spellings_of_one_location() {
    let cases = [
        ("file:///w/t.lance", "file:///w/t.lance"),
        ("file:///w/t.lance/", "file:///w/t.lance"),
        ("/w/t.lance", "file:///w/t.lance"),
        ("file:///w//x/../t.lance", "file:///w/t.lance"),
        ("file://localhost/w/t.lance", "file:///w/t.lance"),
        ("file:///w/a%20b.lance", "file:///w/a b.lance"),
        ("S3://bucket/t.lance//", "s3://bucket/t.lance"),
        ("s3://bucket/ns%24t", "s3://bucket/ns$t"),
        ("not a location/", "not a location"),
    ];
    for (location, name) in cases {
        assert_eq!(lane_name(location), name, "{location}");
    }
    assert_ne!(lane_name("s3://a/t"), lane_name("s3://b/t"));
    assert_ne!(lane_name("s3://a/t"), lane_name("oss://a/t"));
}

#[test]
fn one_folder_under_two_ids_is_one_lane() {
    let mut queue = Queue::new(9);
    let first = dispatch(1, "file:///w/t.lance");
    let mut second = dispatch(2, "file:///w/t.lance/");
    second.table.id = "another".to_owned();
    queue.push(first.clone(), Instant::now()).unwrap();
    queue.push(second.clone(), Instant::now()).unwrap();
    assert_eq!(queue.take(), Some(first.clone()));
    assert_eq!(queue.take(), None);
    queue.done(&first.task_id);
    assert_eq!(queue.take(), Some(second));
}

#[test]
fn a_task_that_is_put_back_comes_before_the_others_of_its_table() {
    let mut queue = Queue::new(9);
    let (a, b, c) = (dispatch(1, "/a"), dispatch(2, "/a"), dispatch(3, "/b"));
    for task in [&a, &b, &c] {
        queue.push(task.clone(), Instant::now()).unwrap();
    }
    assert_eq!(queue.take(), Some(a.clone()));
    queue.put_back(a.clone());
    // What waits is put back by nobody.
    queue.put_back(b.clone());
    assert_eq!(queue.room(), 6);
    assert_eq!(queue.take(), Some(c));
    assert_eq!(queue.take(), Some(a.clone()));
    assert_eq!(queue.take(), None);
    queue.done(&a.task_id);
    assert_eq!(queue.take(), Some(b));
}

#[test]
fn tasks_that_wait_go_round() {
    let mut queue = Queue::new(9);
    let begun = |number| Dispatch {
        attempt: 2,
        ..dispatch(number, "/a")
    };
    let tasks = [dispatch(1, "/a"), dispatch(2, "/a"), begun(3), begun(4)];
    for task in tasks {
        queue.push(task, Instant::now()).unwrap();
    }
    let mut taken = Vec::new();
    for _ in 0..7 {
        let task = queue.take().unwrap();
        taken.push(task.task_id.slot());
        queue.put_back(task);
    }
    assert_eq!(taken, [3, 4, 1, 3, 4, 1, 3]);
    for number in [3, 4] {
        queue.forget(&dispatch(number, "/a").task_id);
    }
    // The first of those that were not attempted waits before the others.
    for _ in 0..2 {
        let task = queue.take().unwrap();
        assert_eq!(task.task_id.slot(), 1);
        queue.put_back(task);
    }
}

#[test]
fn a_task_that_was_attempted_before_comes_first_and_always_fits() {
    let mut queue = Queue::new(2);
    let (a, b) = (dispatch(1, "/a"), dispatch(2, "/a"));
    let begun = |number| Dispatch {
        attempt: 2,
        ..dispatch(number, "/a")
    };
    for task in [a.clone(), b.clone(), begun(3), begun(4)] {
        queue.push(task, Instant::now()).unwrap();
    }
    assert_eq!(queue.room(), 0);
    assert_eq!(
        queue.push(dispatch(5, "/a"), Instant::now()),
        Err(Refused::Full)
    );
    for expected in [begun(3), begun(4), a, b] {
        assert_eq!(queue.take(), Some(expected.clone()));
        queue.done(&expected.task_id);
    }
    assert!(queue.lanes.is_empty() && queue.ready.is_empty());
}

#[test]
fn a_later_attempt_comes_in_the_place_of_one_that_waits() {
    let mut queue = Queue::new(9);
    let attempt = |attempt| Dispatch {
        attempt,
        ..dispatch(1, "/a")
    };
    queue.push(attempt(1), Instant::now()).unwrap();
    queue.push(attempt(2), Instant::now()).unwrap();
    for late in [1, 2] {
        let late = queue.push(attempt(late), Instant::now());
        assert_eq!(late, Err(Refused::Duplicate));
    }
    assert_eq!(queue.room(), 8);
    assert_eq!(queue.take(), Some(attempt(2)));
    // One that runs is let be.
    let next = queue.push(attempt(3), Instant::now());
    assert_eq!(next, Err(Refused::Duplicate));
    queue.done(&attempt(2).task_id);
    assert!(queue.lanes.is_empty() && queue.ready.is_empty());
}

#[test]
fn a_task_is_taken_once_and_no_more_than_fit() {
    let mut queue = Queue::new(2);
    let (a, b, c) = (dispatch(1, "/a"), dispatch(2, "/a"), dispatch(3, "/b"));
    queue.push(a.clone(), Instant::now()).unwrap();
    assert_eq!(
        queue.push(a.clone(), Instant::now()),
        Err(Refused::Duplicate)
    );
    queue.push(b.clone(), Instant::now()).unwrap();
    assert_eq!(queue.room(), 0);
    assert_eq!(queue.push(c.clone(), Instant::now()), Err(Refused::Full));
    // A duplicate is one even when there is no room.
    let duplicate = queue.push(b.clone(), Instant::now());
    assert_eq!(duplicate, Err(Refused::Duplicate));
    assert_eq!(queue.take(), Some(a.clone()));
    assert_eq!(
        queue.push(a.clone(), Instant::now()),
        Err(Refused::Duplicate)
    );
    assert_eq!(queue.in_hand().len(), 2);
    queue.push(c, Instant::now()).unwrap();
    queue.done(&a.task_id);
    assert_eq!(queue.in_hand().len(), 2);
    // What is not running can't be done.
    queue.done(&again_id());
    assert_eq!(queue.in_hand().len(), 2);

    fn again_id() -> TaskId {
        dispatch(2, "/a").task_id
    }
}

#[test]
fn a_held_table_is_busy_and_keeps_its_tasks() {
    let mut queue = Queue::new(9);
    let (a, b) = (dispatch(1, "file:///w/a"), dispatch(2, "file:///w/b"));
    queue.push(a.clone(), Instant::now()).unwrap();
    let held = queue.hold("file:///w/a/").unwrap();
    assert_eq!(queue.hold("file:///w/a"), None);
    queue.push(b.clone(), Instant::now()).unwrap();
    assert_eq!(queue.take(), Some(b.clone()));
    assert_eq!(queue.take(), None);
    // A table on which a task runs can't be held.
    assert_eq!(queue.hold("file:///w/b"), None);
    queue.done(&b.task_id);
    let other = queue.hold("file:///w/b").unwrap();
    queue.release(other);
    queue.release(held);
    assert_eq!(queue.take(), Some(a.clone()));
    queue.done(&a.task_id);
    assert!(queue.lanes.is_empty() && queue.ready.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Take,
    Done(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u8..5).prop_map(Step::Push),
        Just(Step::Take),
        (0_usize..5).prop_map(Step::Done),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn order_exclusion_and_fairness(steps in steps()) {
        let mut queue = Queue::new(20);
        let mut waiting: HashMap<String, VecDeque<Dispatch>> = HashMap::new();
        let mut running: Vec<Dispatch> = Vec::new();
        // For each lane that could run: which others went first since then.
        let mut overtaken: HashMap<String, Vec<String>> = HashMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(table) => {
                    let task = dispatch(number as u64, &format!("/{table}"));
                    let room = queue.room();
                    prop_assert_eq!(queue.push(task.clone(), Instant::now()).is_ok(), room > 0);
                    if room > 0 {
                        waiting.entry(task.table.location.clone()).or_default().push_back(task);
                    }
                }
                Step::Take => match queue.take() {
                    Some(task) => {
                        let lane = task.table.location.clone();
                        prop_assert!(running.iter().all(|other| other.table.location != lane));
                        let first = waiting.get_mut(&lane).and_then(VecDeque::pop_front);
                        prop_assert_eq!(first.as_ref(), Some(&task));
                        overtaken.remove(&lane);
                        for others in overtaken.values_mut() {
                            prop_assert!(!others.contains(&lane), "{} went twice", lane);
                            others.push(lane.clone());
                        }
                        running.push(task);
                    }
                    None => {
                        let all_busy = waiting.iter().all(|(lane, tasks)| {
                            tasks.is_empty()
                                || running.iter().any(|task| task.table.location == *lane)
                        });
                        prop_assert!(all_busy);
                    }
                },
                Step::Done(index) => {
                    if !running.is_empty() {
                        let task = running.remove(index % running.len());
                        queue.done(&task.task_id);
                    }
                }
            }
            for (lane, tasks) in &waiting {
                let busy = running.iter().any(|task| task.table.location == *lane);
                if !tasks.is_empty() && !busy {
                    overtaken.entry(lane.clone()).or_default();
                }
            }
            let count = waiting.values().map(VecDeque::len).sum::<usize>();
            prop_assert_eq!(queue.room(), 20 - count);
            prop_assert_eq!(queue.in_hand().len(), count + running.len());
        }
    }
}
