//! The application dies between any two operations of a change of the catalog. Names stand for what
//! they stood for before or after, and can be changed again later.

use lance_maintenance_dispatch::Heartbeat;
use lance_maintenance_dispatch::tables::Purge;
use lance_maintenance_store::catalog::{Catalog, TableRecord, find_table};
use lance_maintenance_store::execution::Execution;

use crate::failing::Failing;
use crate::support::{catalog, identifier, namespace, namespace_record, record};

const SECOND: i64 = 1_000_000;
/// More operations than any call makes.
const MOST: u64 = 100;

/// Whatever is cut short, a table's name stands for the table or for nothing, and can be changed
/// again later.
#[test]
fn a_table_whose_creation_or_dropping_was_cut_short() {
    let id = identifier("ns$t");
    let later = || 3600 * SECOND;
    for dropping in [false, true] {
        for operations in 0..MOST {
            let store = Failing::default();
            let catalog = catalog(&store);
            if dropping {
                catalog
                    .create_table(&id, &record("ns$t", "1"), || 0)
                    .unwrap();
            }
            let cut = |store: &Failing| {
                let catalog = Catalog::new(store, "b");
                match dropping {
                    true => catalog.drop_table(&id, "1", true, || 0).map(drop),
                    false => catalog.create_table(&id, &record("ns$t", "1"), || 0),
                }
            };
            let (_, whole) = store.cut(operations, cut);

            let listed = catalog.tables(&namespace("ns"), None, 10).unwrap();
            assert_eq!(
                listed.entries.len(),
                usize::from(catalog.table(&id).is_ok()),
                "{operations}"
            );
            // The first time it may be told to wait for whoever was cut short.
            for minute in 0..3 {
                let now = || minute * 60 * SECOND;
                let _ = catalog.drop_table(&id, "1", true, now);
                let _ = catalog.create_table(&id, &record("ns$t", "2"), now);
            }
            let _ = catalog.drop_table(&id, "1", true, later);
            let held = catalog.table(&id).unwrap();
            assert_eq!(held.id, "2", "{dropping} {operations}");
            let listed = catalog.tables(&namespace("ns"), None, 10).unwrap().entries;
            assert_eq!(listed.len(), 1, "{dropping} {operations}");
            // What was dropped is purged after all, and nothing else.
            beat(&store, later());
            for purge in beat(&store, later()) {
                assert_eq!(purge.table_id, "1", "{dropping} {operations}");
            }
            if whole {
                break;
            }
        }
    }
}

/// A rename that was cut short leaves the table at one of the two names, never at both or none.
#[test]
fn a_rename_that_was_cut_short() {
    let (from, to) = (identifier("ns$a"), identifier("other$b"));
    for operations in 0..MOST {
        let store = Failing::default();
        let catalog = catalog(&store);
        let created = catalog.create_namespace(&namespace_record("other", "N2"), || 0);
        assert!(created.unwrap());
        catalog
            .create_table(&from, &record("ns$a", "1"), || 0)
            .unwrap();
        let (_, whole) = store.cut(operations, |store| {
            Catalog::new(store, "b").rename_table(&from, "1", &to, || 0)
        });
        let at_one_name = |catalog: &Catalog<'_, Failing>| {
            let names = [&from, &to].map(|id| catalog.table(id).is_ok_and(|held| held.id == "1"));
            let listed = [("ns", names[0]), ("other", names[1])].map(|(name, held)| {
                let page = catalog.tables(&namespace(name), None, 10).unwrap();
                (page.entries.len(), usize::from(held))
            });
            assert!(
                listed.iter().all(|(listed, held)| listed == held),
                "{operations} {listed:?}"
            );
            let found = find_table(&store, "1").unwrap().map(|table| table.name);
            assert!(found.is_some(), "{operations}");
            names
        };
        let names = at_one_name(&catalog);
        assert!(names[0] != names[1], "{operations} {names:?}");
        assert!(!whole || names[1], "{operations}");

        // Later it can be moved on, or back, and dropped from there.
        let later = || 3600 * SECOND;
        let (here, there) = if names[0] { (&from, &to) } else { (&to, &from) };
        // What was cut short between fence and head is waited for once.
        for minute in [60, 62, 64] {
            let now = || minute * 60 * SECOND;
            let _ = catalog.rename_table(here, "1", there, now);
        }
        let names = at_one_name(&catalog);
        assert_eq!(names[0], *there == from, "{operations}");
        catalog.drop_table(there, "1", true, later).unwrap();
        assert!(catalog.table(&from).is_err() && catalog.table(&to).is_err());
        assert_eq!(find_table(&store, "1").unwrap(), None);
        if whole {
            return;
        }
    }
    panic!("a rename takes more than {MOST} operations");
}

/// A namespace whose dropping was cut short is there or not; if it is, it can be used again later.
#[test]
fn a_namespace_whose_dropping_was_cut_short() {
    let ns = namespace("ns");
    for operations in 0..MOST {
        let store = Failing::default();
        let catalog = catalog(&store);
        let id = identifier("ns$t");
        catalog
            .create_table(&id, &record("ns$t", "1"), || 0)
            .unwrap();
        let (_, whole) = store.cut(operations, |store| {
            let all = |_: &TableRecord| Ok(());
            Catalog::new(store, "b").drop_namespace(&ns, "R1", || 0, Some(&all))
        });
        let mut created = Ok(());
        for minute in 0..4 {
            let now = || minute * 60 * SECOND;
            let _ = catalog.create_namespace(&namespace_record("ns", "N2"), now);
            created = catalog.create_table(&identifier("ns$new"), &record("ns$new", "2"), now);
            if created.is_ok() {
                break;
            }
        }
        assert_eq!(created, Ok(()), "{operations}");
        let held = catalog.tables(&ns, None, 10).unwrap().entries;
        let first = catalog.table(&id).is_ok();
        assert_eq!(held.len(), 1 + usize::from(first), "{operations}");
        if whole {
            assert!(!first);
            return;
        }
    }
    panic!("a drop takes more than {MOST} operations");
}

fn beat(store: &Failing, now: i64) -> Vec<Purge> {
    let heartbeat = Heartbeat {
        worker_id: "w".to_owned(),
        incarnation: String::new(),
        starting: true,
        in_hand: Vec::new(),
        room: 10,
    };
    Execution::new(store)
        .heartbeat(&heartbeat, || now)
        .unwrap()
        .purges
}
