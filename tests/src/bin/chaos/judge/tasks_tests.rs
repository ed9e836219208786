use super::*;
use crate::load::Accepted;
use crate::observer::Commit;
use serde_json::json;

const COMPACT: usize = 0;

struct End {
    known: Known,
    listed: Listed,
    seen: Vec<Seen>,
}

/// A compaction that committed, and one that had nothing to do.
fn good() -> End {
    let mut end = End {
        known: Known::default(),
        listed: Listed::new(),
        seen: vec![Seen::default(), Seen::default()],
    };
    for (id, version, removed) in [("a", 5, 2), ("b", 7, 0)] {
        let accepted = Accepted {
            table: 0,
            task_type: COMPACT,
            body: json!({}),
            record: Record::Kept,
        };
        end.known.accepted.insert(id.to_owned(), accepted);
        end.list(task(id, version, removed));
    }
    for (version, operation) in [(4, RESERVE), (5, "Rewrite")] {
        end.commit(0, version, operation, "a");
    }
    end
}

fn task(id: &str, version: u64, removed: u64) -> Value {
    json!({
        "task_id": id,
        "status": "completed",
        "created_at": "2026-09-18T04:00:00.000000+00:00",
        "completed_at": "2026-09-18T04:00:01.500000+00:00",
        "result": {"version": version, "fragments_removed": removed},
        "error": null,
    })
}

impl End {
    fn tasks(&mut self) -> &mut Vec<Value> {
        self.listed.entry((0, COMPACT)).or_default()
    }

    fn list(&mut self, task: Value) {
        self.tasks().push(task);
    }

    fn commit(&mut self, table: usize, version: u64, operation: &str, id: &str) {
        let commit = Commit {
            operation: operation.to_owned(),
            task_id: Some(id.to_owned()),
            indices: Vec::new(),
        };
        self.seen[table].commits.insert(version, commit);
    }

    /// A backfill that committed twice, and ended so.
    fn backfill(&mut self, status: &str, version: u64) {
        let task_type = TYPES.iter().position(|(_, name)| *name == BACKFILL);
        let mut task = task("f", version, 0);
        task["status"] = status.into();
        task["error"] = json!({"error": CANCELED, "detail": "Canceled."});
        self.listed.insert((0, task_type.unwrap()), vec![task]);
        self.known.unknown.insert((0, task_type.unwrap()), 1);
        self.known.canceled.insert("f".to_owned());
        for version in [8, 9] {
            self.commit(0, version, "DataReplacement", "f");
        }
    }

    fn record(&mut self, id: &str, record: Record) {
        self.known.accepted.get_mut(id).unwrap().record = record;
    }

    fn fail(&mut self, number: usize, error: &str, detail: &str) {
        let task = &mut self.tasks()[number];
        task["status"] = "failed".into();
        task["error"] = json!({"error": error, "detail": detail});
    }
}

#[test]
fn finds_what_is_wrong_and_nothing_else() {
    let worn_out = "The worker was lost in 3 attempts, or stopped in 10.";
    type Change<'a> = &'a dyn Fn(&mut End);
    let cases: [(&str, Change, &[&str]); 23] = [
        ("nothing", &|_| {}, &[]),
        (
            "a task is gone",
            &|end| drop(end.tasks().pop()),
            &["is gone"],
        ),
        (
            "a task was deleted",
            &|end| {
                end.tasks().pop();
                end.record("b", Record::Deleted);
            },
            &[],
        ),
        (
            "a deleted task is there",
            &|end| end.record("b", Record::Deleted),
            &["was deleted and is listed"],
        ),
        (
            "a task may be deleted",
            &|end| end.record("b", Record::Unknown),
            &[],
        ),
        (
            "a task from nowhere",
            &|end| end.list(task("c", 7, 0)),
            &["nobody was told of"],
        ),
        (
            "a task whose submit had no answer",
            &|end| {
                end.list(task("c", 7, 0));
                end.known.unknown.insert((0, COMPACT), 1);
            },
            &[],
        ),
        (
            "a task that is there twice",
            &|end| end.list(task("b", 7, 0)),
            &["listed twice"],
        ),
        (
            "a second commit",
            &|end| end.commit(0, 6, "Rewrite", "a"),
            &["more than once"],
        ),
        (
            "a backfill in several commits",
            &|end| end.backfill("completed", 9),
            &[],
        ),
        (
            "a backfill that says too little",
            &|end| end.backfill("completed", 8),
            &["says it made version"],
        ),
        (
            "a canceled backfill with commits",
            &|end| end.backfill("failed", 9),
            &[],
        ),
        (
            "a commit on another table",
            &|end| end.commit(1, 7, "Rewrite", "b"),
            &["the task b of table 0 made"],
        ),
        (
            "a commit of nobody",
            &|end| end.commit(0, 9, "Rewrite", "z"),
            &["a commit of a task z"],
        ),
        (
            "a completed task without its commit",
            &|end| drop(end.seen[0].commits.remove(&5)),
            &["committed nothing"],
        ),
        (
            "another version than it says",
            &|end| end.tasks()[0]["result"]["version"] = 9.into(),
            &["says it made version 9"],
        ),
        (
            "a task that waits",
            &|end| end.tasks()[1]["status"] = "submitted".into(),
            &["has not ended"],
        ),
        (
            "a failure that may be",
            &|end| end.fail(1, "ConcurrentModification", "Others."),
            &[],
        ),
        (
            "a failure that may not be, with a commit",
            &|end| end.fail(0, "InternalError", "What?"),
            &["failed and committed", "failed with InternalError"],
        ),
        (
            "a task that wore out its workers, after its commit",
            &|end| end.fail(0, "InternalError", worn_out),
            &[],
        ),
        (
            "a task that was canceled",
            &|end| {
                end.fail(1, "Canceled", "On request.");
                end.known.canceled.insert("b".to_owned());
            },
            &[],
        ),
        (
            "a task that was canceled unasked",
            &|end| end.fail(1, "Canceled", "On request."),
            &["failed with Canceled"],
        ),
        (
            "a task that was canceled, with a commit",
            &|end| {
                end.fail(0, "Canceled", "On request.");
                end.known.canceled.insert("a".to_owned());
            },
            &["failed and committed"],
        ),
    ];
    for (what, change, expected) in cases {
        let mut end = good();
        change(&mut end);
        let mut wrong = Findings::default();
        judge(&end.known, &end.listed, &end.seen, &mut wrong);
        let found: Vec<&String> = wrong.iter().map(|(_, what)| what).collect();
        let as_expected = found.len() == expected.len()
            && found
                .iter()
                .zip(expected)
                .all(|(found, word)| found.contains(word));
        assert!(as_expected, "{what}: {wrong:?}");
    }
}

#[test]
fn counts() {
    let end = good();
    let outcomes = judge(&end.known, &end.listed, &end.seen, &mut Findings::default());
    let completed = ("lance_compact", "completed".to_owned());
    assert_eq!(outcomes.ends, BTreeMap::from([(completed, 2)]));
    assert_eq!(outcomes.commits, 1);
    let longest = outcomes.longest.unwrap().0;
    assert_eq!(longest, Duration::from_millis(1500));
}
