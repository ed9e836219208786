use lance_maintenance_api::ErrorName;
use lance_maintenance_api::identifier::{Delimiter, NamespaceName, TableIdentifier};
use lance_maintenance_store::catalog::{Catalog, NamespaceRecord, Origin, TableRecord};
use lance_maintenance_store::memory::MemoryStore;

use crate::support::name;

fn namespace(catalog: &Catalog<'_, MemoryStore>, name: &str) -> bool {
    let record = NamespaceRecord {
        name: name.to_owned(),
        properties: Default::default(),
    };
    catalog.create_namespace(&record, || 0).unwrap()
}

fn table(name: &str, id: &str) -> TableRecord {
    TableRecord {
        id: id.to_owned(),
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        location: format!("file:///w/{id}.lance"),
        origin: Origin::Declared,
        format: "LANCE".to_owned(),
        properties: Default::default(),
        slot: 0,
    }
}

fn id(text: &str) -> TableIdentifier {
    TableIdentifier::parse(text, &Delimiter::default()).unwrap()
}

#[test]
fn namespaces_are_created_once_and_listed_newest_first() {
    let store = MemoryStore::default();
    let catalog = Catalog::new(&store, "b");
    for name in ["n1", "n2", "n3"] {
        assert!(namespace(&catalog, name));
        assert!(!namespace(&catalog, name));
    }
    let page = catalog.namespaces(None, 2).unwrap();
    let names: Vec<String> = page.entries.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["n3", "n2"]);
    let rest = catalog.namespaces(page.next, 2).unwrap();
    assert_eq!(rest.entries.len(), 1);
    assert!(rest.next.is_none());
    // Another bucket is another world.
    assert!(
        Catalog::new(&store, "c")
            .namespaces(None, 10)
            .unwrap()
            .entries
            .is_empty()
    );
}

#[test]
fn a_name_stands_for_one_table_at_a_time() {
    let store = MemoryStore::default();
    let catalog = Catalog::new(&store, "b");
    let ns = NamespaceName::parse("ns").unwrap();
    let created = catalog.create_table(&ns, &table("t", "1"), || 0);
    assert_eq!(name(created), ErrorName::NamespaceNotFound);
    namespace(&catalog, "ns");
    assert_eq!(name(catalog.table(&id("ns$t"))), ErrorName::TableNotFound);
    catalog.create_table(&ns, &table("t", "1"), || 0).unwrap();
    let again = catalog.create_table(&ns, &table("t", "2"), || 0);
    assert_eq!(name(again), ErrorName::TableAlreadyExists);
    assert_eq!(catalog.table(&id("ns$t")).unwrap().id, "1");

    // Whoever means another table of this name drops nothing.
    let other = catalog.drop_table(&id("ns$t"), "2", || 0);
    assert_eq!(name(other), ErrorName::TableNotFound);
    catalog.drop_table(&id("ns$t"), "1", || 0).unwrap();
    assert_eq!(
        name(catalog.drop_table(&id("ns$t"), "1", || 0)),
        ErrorName::TableNotFound
    );
    catalog.create_table(&ns, &table("t", "2"), || 0).unwrap();
    assert_eq!(catalog.table(&id("ns$t")).unwrap().id, "2");
    let listed = catalog.tables(&ns, None, 10).unwrap().entries;
    assert_eq!(
        listed.into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
        ["t"]
    );
}
