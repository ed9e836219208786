use lance_maintenance_api::ErrorName;
use lance_maintenance_store::access::Access;
use lance_maintenance_store::memory::MemoryStore;
use serde_json::json;

use crate::support::name;

#[test]
fn credentials_are_changed_by_who_has_seen_them() {
    let store = MemoryStore::default();
    let access = Access::new(&store);
    let put = |id: &str, value, before: Option<&_>| access.put_credential(id, value, before, || 0);
    assert_eq!(access.credential("k1").unwrap(), None);
    put("k1", json!({"v": 1}), None).unwrap();
    put("k2", json!({"v": 1}), None).unwrap();
    let first = access.credential("k1").unwrap().unwrap();
    let unseen = put("k1", json!({"v": 2}), None);
    assert_eq!(name(unseen), ErrorName::ConcurrentModification);
    put("k1", json!({"v": 2}), Some(&first)).unwrap();
    let stale = put("k1", json!({"v": 3}), Some(&first));
    assert_eq!(name(stale), ErrorName::ConcurrentModification);
    let stale = access.delete_credential(&first, || 0);
    assert_eq!(name(stale), ErrorName::ConcurrentModification);

    let listed = |limit| {
        let page = access.credentials(None, limit).unwrap();
        let keys: Vec<String> = page
            .entries
            .into_iter()
            .map(|(_, record)| record.access_key_id)
            .collect();
        (keys, page.next)
    };
    assert_eq!(listed(10), (vec!["k2".to_owned(), "k1".to_owned()], None));
    assert_eq!(listed(1), (vec!["k2".to_owned()], Some(2)));
    let now = access.credential("k1").unwrap().unwrap();
    assert_eq!(now.credential, json!({"v": 2}));
    access.delete_credential(&now, || 0).unwrap();
    assert_eq!(access.credential("k1").unwrap(), None);
    put("k1", json!({"v": 4}), None).unwrap();
    assert_eq!(listed(10), (vec!["k1".to_owned(), "k2".to_owned()], None));
}

#[test]
fn each_bucket_has_its_policy() {
    let store = MemoryStore::default();
    let access = Access::new(&store);
    assert_eq!(access.bucket_policy("a").unwrap(), None);
    access
        .put_bucket_policy("a", &json!({"Version": "1"}))
        .unwrap();
    assert_eq!(
        access.bucket_policy("a").unwrap(),
        Some(json!({"Version": "1"}))
    );
    assert_eq!(access.bucket_policy("b").unwrap(), None);
    access.delete_bucket_policy("a").unwrap();
    assert_eq!(access.bucket_policy("a").unwrap(), None);
}
