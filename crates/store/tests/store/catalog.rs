use lance_maintenance_api::ErrorName;
use lance_maintenance_dispatch::Heartbeat;
use lance_maintenance_dispatch::tables::{Purge, Purged};
use lance_maintenance_store::catalog::{Catalog, Origin, Purges, TableRecord, find_table};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use serde_json::json;

use crate::support::{catalog, identifier, name, namespace, namespace_record, record};

fn names(catalog: &Catalog<'_, MemoryStore>, of: &str) -> Vec<String> {
    let page = catalog.tables(&namespace(of), None, 100).unwrap();
    page.entries
        .into_iter()
        .map(|(_, table)| table.name)
        .collect()
}

fn create(catalog: &Catalog<'_, MemoryStore>, name: &str, id: &str) {
    catalog
        .create_table(&identifier(name), &record(name, id), || 0)
        .unwrap();
}

#[test]
fn namespaces_are_created_once_and_listed_newest_first() {
    let store = MemoryStore::default();
    let catalog = Catalog::new(&store, "b");
    for name in ["n1", "n2", "n3"] {
        let record = namespace_record(name, name);
        assert!(catalog.create_namespace(&record, || 0).unwrap());
        assert!(!catalog.create_namespace(&record, || 0).unwrap());
    }
    let page = catalog.namespaces(None, 2).unwrap();
    let names: Vec<String> = page.entries.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["n3", "n2"]);
    let rest = catalog.namespaces(page.next, 2).unwrap();
    assert_eq!(rest.entries.len(), 1);
    assert!(rest.next.is_none());
    // Another bucket is another world.
    let other = Catalog::new(&store, "c").namespaces(None, 10).unwrap();
    assert!(other.entries.is_empty());
}

#[test]
fn a_namespace_with_tables_is_dropped_on_request_only() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    let ns = namespace("ns");
    create(&catalog, "ns$t", "1");
    create(&catalog, "ns$u", "2");
    let restricted = catalog.drop_namespace(&ns, "R", || 0, None);
    assert_eq!(name(restricted), ErrorName::NamespaceNotEmpty);
    // It is open again.
    create(&catalog, "ns$v", "3");

    let not_all = |table: &TableRecord| match table.name.as_str() {
        "t" => Err(lance_maintenance_api::ApiError::new(
            ErrorName::PermissionDenied,
            "no",
        )),
        _ => Ok(()),
    };
    let refused = catalog.drop_namespace(&ns, "R", || 0, Some(&not_all));
    assert_eq!(name(refused), ErrorName::PermissionDenied);
    assert_eq!(names(&catalog, "ns"), ["v", "u", "t"]);

    let all = |_: &TableRecord| Ok(());
    catalog.drop_namespace(&ns, "R", || 0, Some(&all)).unwrap();
    assert_eq!(name(catalog.namespace(&ns)), ErrorName::NamespaceNotFound);
    let again = catalog.drop_namespace(&ns, "R", || 0, None);
    assert_eq!(name(again), ErrorName::NamespaceNotFound);
    assert_eq!(Purges::new(&store).waiting(0).unwrap().len(), 3);

    let anew = catalog.create_namespace(&namespace_record("ns", "N2"), || 0);
    assert!(anew.unwrap());
    assert!(names(&catalog, "ns").is_empty());
    assert_eq!(catalog.namespaces(None, 10).unwrap().entries.len(), 1);
    catalog.drop_namespace(&ns, "R", || 0, None).unwrap();
}

#[test]
fn a_name_stands_for_one_table_at_a_time() {
    let store = MemoryStore::default();
    let catalog = Catalog::new(&store, "b");
    let id = identifier("ns$t");
    let created = catalog.create_table(&id, &record("ns$t", "1"), || 0);
    assert_eq!(name(created), ErrorName::NamespaceNotFound);
    let catalog = self::catalog(&store);
    assert_eq!(name(catalog.table(&id)), ErrorName::TableNotFound);
    create(&catalog, "ns$t", "1");
    let again = catalog.create_table(&id, &record("ns$t", "2"), || 0);
    assert_eq!(name(again), ErrorName::TableAlreadyExists);
    assert_eq!(catalog.table(&id).unwrap().id, "1");

    // Whoever means another table of this name drops nothing.
    let drop = |table_id| catalog.drop_table(&id, table_id, true, || 0);
    assert_eq!(name(drop("2")), ErrorName::TableNotFound);
    drop("1").unwrap();
    assert_eq!(name(drop("1")), ErrorName::TableNotFound);
    create(&catalog, "ns$t", "2");
    assert_eq!(catalog.table(&id).unwrap().id, "2");
    assert_eq!(names(&catalog, "ns"), ["t"]);
}

#[test]
fn a_location_is_one_table_s() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    let at = |name: &str, id: &str| TableRecord {
        location: "file:///data/t.lance".to_owned(),
        ..record(name, id)
    };
    let create = |name: &str, id: &str, now: i64| {
        catalog.create_table(&identifier(name), &at(name, id), || now)
    };
    create("ns$a", "1", 0).unwrap();
    assert_eq!(name(create("ns$b", "2", 0)), ErrorName::TableAlreadyExists);
    assert!(catalog.table(&identifier("ns$b")).is_err());
    // Deregistered, it is free at once; dropped, as soon as the data is gone.
    catalog
        .drop_table(&identifier("ns$a"), "1", false, || 0)
        .unwrap();
    create("ns$b", "2", 0).unwrap();
    catalog
        .drop_table(&identifier("ns$b"), "2", true, || 0)
        .unwrap();
    let minute = 60_000_000;
    let early = create("ns$c", "3", minute);
    assert_eq!(name(early), ErrorName::ConcurrentModification);
    let purges = Purges::new(&store);
    let expected = Purge {
        table_id: "2".to_owned(),
        location: "file:///data/t.lance".to_owned(),
    };
    assert_eq!(purges.waiting(0).unwrap(), [expected]);
    let purged = Purged {
        worker_id: "w".to_owned(),
        table_id: "2".to_owned(),
    };
    purges.done(&purged, 0).unwrap();
    assert!(purges.waiting(0).unwrap().is_empty());
    create("ns$c", "3", minute).unwrap();
    // A name that is taken costs the location nothing.
    catalog
        .drop_table(&identifier("ns$c"), "3", false, || 0)
        .unwrap();
    self::create(&catalog, "ns$d", "4");
    assert_eq!(name(create("ns$d", "5", 0)), ErrorName::TableAlreadyExists);
    create("ns$e", "6", 0).unwrap();
}

#[test]
fn a_table_is_not_registered_in_the_folder_of_another() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    let create = |name: &str, location: &str, origin| {
        let table = TableRecord {
            location: location.to_owned(),
            origin,
            ..record(name, name)
        };
        catalog
            .create_table(&identifier(name), &table, || 0)
            .map_err(|error| error.name)
    };
    use Origin::{Declared, Registered};
    let taken = Err(ErrorName::TableAlreadyExists);
    let cases = [
        ("ns$a", "file:///w/a.lance", Declared, Ok(())),
        ("ns$b", "file:///w/a.lance/data", Registered, taken),
        ("ns$b", "file:///w/a.lance/x/y", Registered, taken),
        ("ns$b", "file:///w/a.lance2", Registered, Ok(())),
        ("ns$c", "file:///w/a", Registered, Ok(())),
        // Around others: they stay as they are, and more can be declared.
        ("ns$d", "file:///w", Registered, Ok(())),
        ("ns$e", "file:///w/e.lance", Declared, Ok(())),
        ("ns$f", "file:///w/f.lance", Registered, taken),
    ];
    for (name, location, origin, expected) in cases {
        assert_eq!(
            create(name, location, origin),
            expected,
            "{name} {location}"
        );
    }
    catalog
        .drop_table(&identifier("ns$d"), "ns$d", false, || 0)
        .unwrap();
    assert_eq!(create("ns$f", "file:///w/f.lance", Registered), Ok(()));
}

#[test]
fn a_drop_that_left_no_note_is_found_when_a_worker_starts() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    create(&catalog, "ns$t", "1");
    catalog
        .drop_table(&identifier("ns$t"), "1", true, || 0)
        .unwrap();
    let key = "purges/1".to_owned();
    lance_maintenance_store::KeyValue::delete_many(&store, &[key]).unwrap();
    assert!(Purges::new(&store).waiting(0).unwrap().is_empty());
    let heartbeat = |starting| Heartbeat {
        worker_id: "w".to_owned(),
        incarnation: String::new(),
        starting,
        in_hand: Vec::new(),
        room: 1,
    };
    for (starting, expected) in [(false, 0), (true, 1), (true, 1), (false, 1)] {
        let answer = Execution::new(&store).heartbeat(&heartbeat(starting), || 0);
        assert_eq!(answer.unwrap().purges.len(), expected, "{starting}");
    }
}

#[test]
fn a_table_is_renamed_with_all_it_has() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    let created = catalog.create_namespace(&namespace_record("other", "N2"), || 0);
    assert!(created.unwrap());
    create(&catalog, "ns$a", "1");
    create(&catalog, "ns$taken", "2");
    let policy = json!({"Version": "1"});
    catalog
        .set_table_policy(&identifier("ns$a"), "1", Some(policy.clone()), || 0)
        .unwrap();

    let rename = |from, id, to| catalog.rename_table(&identifier(from), id, &identifier(to), || 0);
    let cases = [
        ("ns$a", "1", "ns$a", ErrorName::TableAlreadyExists),
        ("ns$a", "1", "ns$taken", ErrorName::TableAlreadyExists),
        ("ns$a", "1", "none$a", ErrorName::NamespaceNotFound),
        ("ns$a", "2", "ns$b", ErrorName::TableNotFound),
        ("ns$b", "1", "ns$c", ErrorName::TableNotFound),
    ];
    for (from, id, to, expected) in cases {
        assert_eq!(name(rename(from, id, to)), expected, "{from} {id} {to}");
    }
    // There and on and back: each time it is at one name.
    for (from, to) in [
        ("ns$a", "other$b"),
        ("other$b", "other$c"),
        ("other$c", "ns$a"),
        ("ns$a", "ns$z"),
    ] {
        rename(from, "1", to).unwrap();
        assert_eq!(
            name(catalog.table(&identifier(from))),
            ErrorName::TableNotFound
        );
        let held = catalog.table(&identifier(to)).unwrap();
        assert_eq!(
            (held.id.as_str(), &held.policy),
            ("1", &Some(policy.clone()))
        );
        assert_eq!(held.identifier().unwrap(), identifier(to));
        assert_eq!(held.location, "file:///w/1.lance");
        assert_eq!(find_table(&store, "1").unwrap(), Some(held));
    }
    assert_eq!(names(&catalog, "ns"), ["z", "taken"]);
    assert!(names(&catalog, "other").is_empty());
    // The old name is free, and the other namespace empty.
    create(&catalog, "ns$a", "3");
    catalog
        .drop_namespace(&namespace("other"), "R", || 0, None)
        .unwrap();
    assert_eq!(names(&catalog, "ns"), ["a", "z", "taken"]);
}

#[test]
fn every_table_of_a_bucket_is_listed_once() {
    let store = MemoryStore::default();
    let catalog = Catalog::new(&store, "b");
    let mut expected = Vec::new();
    for (at, tables) in [3, 0, 0, 1, 2].into_iter().enumerate() {
        let ns = format!("n{at}");
        let record = namespace_record(&ns, &ns);
        assert!(catalog.create_namespace(&record, || 0).unwrap());
        for table in 0..tables {
            let name = format!("{ns}$t{table}");
            create(&catalog, &name, &name);
            expected.push(name);
        }
    }
    create(&catalog, "n1$gone", "gone");
    catalog
        .drop_table(&identifier("n1$gone"), "gone", true, || 0)
        .unwrap();
    expected.reverse();
    for limit in 1..=8 {
        let (mut seen, mut from) = (Vec::new(), None);
        for _ in 0..100 {
            let (tables, next) = catalog.all_tables(from, limit).unwrap();
            assert!(tables.len() <= limit);
            seen.extend(tables.into_iter().map(|table| table.id));
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(from, None);
        assert_eq!(seen, expected, "{limit}");
    }
}
