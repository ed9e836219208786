//! Names, paths, queries, task ids and markers: what parses is written back as it was.

use arbitrary::Arbitrary;
use form_urlencoded::Serializer;
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::identifier::{
    Delimiter, NamespaceIdentifier, NamespaceName, TableIdentifier, TableName,
};
use lance_maintenance_api::listing::{ListTasksQuery, Marker};
use lance_maintenance_api::namespace::page::PageQuery;
use lance_maintenance_api::operation::{Operation, find};
use lance_maintenance_api::query::Query;
use lance_maintenance_api::task::{TaskId, TaskType};
use lance_maintenance_api::time::format_micros;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Two lists; checksums of texts that differ in so few bytes differ.
fn lists() -> [Marker<'static>; 2] {
    ["table-a", "table-b"].map(|table| Marker::new(table, "lance_compact"))
}

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    /// The method of an operation, by its number; of none if it is too large.
    operation: u8,
    task_type: u8,
    slots: (u64, u64),
    random: [u8; 10],
    /// Lines: an identifier, a delimiter, a target, and a text that may be anything else.
    text: &'a str,
}

/// Says whether there was an operation, and fails if something is read in two ways.
pub fn check(input: &Input<'_>) -> bool {
    let mut lines = input.text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (id, delimiter, target, other) = (line(), line(), line(), line());
    identifiers(id, delimiter);
    names(other);
    let (path, raw) = target.split_once('?').unwrap_or((target, ""));
    query(raw);
    task_id(input, other);
    markers(input.slots, other);
    let _ = format_micros(input.slots.0.cast_signed());
    operation(Operation::ALL.get(usize::from(input.operation)), path)
}

fn identifiers(segment: &str, delimiter: &str) {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let Ok(delimiter) = Delimiter::parse(Some(delimiter)) else {
        return;
    };
    assert_eq!(
        Delimiter::parse(Some(delimiter.as_str())),
        Ok(delimiter.clone())
    );
    if let Ok(id) = TableIdentifier::parse(segment, &delimiter) {
        for delimiter in [&delimiter, &Delimiter::default()] {
            let text = format!("{}{}{}", id.namespace, delimiter.as_str(), id.table);
            let again = TableIdentifier::parse(&encode(&text), delimiter);
            assert_eq!(again.as_ref(), Ok(&id));
        }
    }
    if let Ok(id) = NamespaceIdentifier::parse(segment, &delimiter) {
        let text = match &id {
            NamespaceIdentifier::Root => delimiter.as_str(),
            NamespaceIdentifier::Named(name) => name.as_str(),
        };
        assert_eq!(
            NamespaceIdentifier::parse(&encode(text), &delimiter).as_ref(),
            Ok(&id)
        );
        let _ = id.named();
    }
}

fn names(text: &str) {
    if let Ok(name) = NamespaceName::parse(text) {
        assert_eq!(name.as_str(), text);
        assert!(TableName::parse(text).is_ok());
    }
    if let Ok(name) = TableName::parse(text) {
        assert_eq!(name.as_str(), text);
    }
    assert!(TaskType::parse(text).is_none_or(|it| it.as_str() == text));
    assert!(ErrorName::parse(text).is_none_or(|it| it.as_str() == text));
}

fn operation(wanted: Option<&Operation>, path: &str) -> bool {
    let method = wanted.map_or("PATCH", |operation| operation.method());
    let Ok(found) = find(method, path) else {
        return false;
    };
    assert_eq!(found.operation.method(), method);
    let mut segments = found.segments.iter();
    let words = found
        .operation
        .path()
        .split('/')
        .map(|word| match word.starts_with('{') {
            true => segments.next().copied().unwrap_or_default(),
            false => word,
        });
    assert_eq!(words.collect::<Vec<_>>().join("/"), path);
    assert!(segments.next().is_none());
    assert!(
        found
            .segments
            .iter()
            .all(|segment| !segment.is_empty() && !segment.contains('/'))
    );
    true
}

fn query(raw: &str) {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(raw.as_bytes())
        .into_owned()
        .collect();
    let Ok(query) = Query::parse(raw) else {
        let mut names: Vec<&String> = pairs.iter().map(|(name, _)| name).collect();
        names.sort();
        assert!(names.windows(2).any(|two| two[0] == two[1]));
        return;
    };
    for (name, value) in &pairs {
        assert_eq!(query.get(name), Some(value.as_str()));
    }
    let written = Serializer::new(String::new()).extend_pairs(&pairs).finish();
    assert_eq!(Query::parse(&written).as_ref(), Ok(&query));
    let _ = Delimiter::parse(query.get("delimiter"));
    if let Ok(list) = ListTasksQuery::parse(&query, "table-a") {
        assert!((1..=1000).contains(&list.max_results));
        if let Some(below) = list.below {
            let marker = Marker::new("table-a", list.task_type.as_str()).encode(below);
            assert_eq!(query.get("marker"), Some(marker.as_str()));
        }
    }
    for marker in lists() {
        if let Ok(page) = PageQuery::parse(&query, marker) {
            assert!((1..=1000).contains(&page.limit));
        }
        let _ = PageQuery::parse_nested(&query, marker);
    }
}

fn task_id(input: &Input<'_>, text: &str) {
    let task_type = TaskType::ALL[usize::from(input.task_type) % TaskType::ALL.len()];
    let slot = input.slots.0 % (1 << 44);
    let id = TaskId::new(task_type, input.slots.0, input.random);
    assert_eq!((id.task_type(), id.slot()), (task_type, slot));
    assert_eq!(TaskId::parse(id.as_str()).as_ref(), Some(&id));
    if let Some(id) = TaskId::parse(text) {
        assert_eq!(id.as_str(), text);
        let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let random = std::array::from_fn(|at| digits(12 + 2 * at));
        assert_eq!(TaskId::new(id.task_type(), id.slot(), random), id);
    }
}

fn markers(slots: (u64, u64), text: &str) {
    let [own, other] = lists();
    let (one, two) = (own.encode(slots.0), own.encode_pair(slots));
    assert_eq!(own.decode(&one), Some(slots.0));
    assert_eq!(own.decode_pair(&two), Some(slots));
    assert_eq!((own.decode(&two), own.decode_pair(&one)), (None, None));
    assert_eq!((other.decode(&one), other.decode_pair(&two)), (None, None));
    assert!(own.decode(text).is_none_or(|slot| own.encode(slot) == text));
    assert!(
        own.decode_pair(text)
            .is_none_or(|pair| own.encode_pair(pair) == text)
    );
}
