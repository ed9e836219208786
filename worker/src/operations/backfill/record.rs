//! Which rows of a table that tracks the versions of its rows have the value of their inputs.
//!
//! Lance notes of every row the version that changed it last, and of all rows of a fragment that one
//! whenever a column of the fragment is replaced. So a row is as it was computed if that version is one
//! of a fill, or older than one at which all rows were. Tables that came to track versions later may have
//! fragments of whose rows none is known.
//!
//! It is kept in the table's config, one entry per column. Without an entry, or with one for another
//! declaration, expression or inputs, no row is taken for filled. An entry is made after the commits that
//! it tells of: where it is lost, rows are computed once more, and fragments whose values stay the same
//! not written.

use std::collections::{BTreeSet, HashMap};

use lance::Dataset;
use lance::dataset::transaction::{Operation as Change, UpdateMap, UpdateMapEntry};
use lance_core::datatypes::Field;
use serde::{Deserialize, Serialize};

use super::binding::EXPRESSION_KEY;

/// Versions that an entry names at the most.
const MOST: usize = 256;

/// What is known of a column's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What the rows were filled with: the column's description.
    pub column: String,
    /// All rows that were last changed in this version or before are filled.
    pub up_to: u64,
    /// So are those that were last changed in these.
    pub filled: BTreeSet<u64>,
    /// So are those of them that are not null.
    pub partly: BTreeSet<u64>,
}

impl Record {
    /// The key in the table's config of the column with this field id.
    pub fn key(field_id: i32) -> String {
        format!("lance-maintenance.filled.{field_id}")
    }

    /// What the table says of the column with this field id and description.
    pub fn read(dataset: &Dataset, field_id: i32, column: &str) -> Self {
        dataset
            .config()
            .get(&Self::key(field_id))
            .and_then(|text| serde_json::from_str::<Self>(text).ok())
            .filter(|record| record.column == column)
            .unwrap_or_else(|| Self {
                column: column.to_owned(),
                ..Self::default()
            })
    }

    /// Whether no row is known to be filled.
    pub fn is_blank(&self) -> bool {
        self.up_to == 0 && self.filled.is_empty() && self.partly.is_empty()
    }

    /// Whether a row that was last changed in this version has yet to be computed.
    pub fn is_to_do(&self, version: u64, is_null: bool) -> bool {
        let is_done = version <= self.up_to
            || self.filled.contains(&version)
            || (!is_null && self.partly.contains(&version));
        !is_done
    }

    /// A commit filled fragments: all of their rows, or some.
    pub fn add(&mut self, version: u64, all: bool) {
        let versions = match all {
            true => &mut self.filled,
            false => &mut self.partly,
        };
        versions.insert(version);
        // Rows of what is left out are computed once more.
        while versions.len() > MOST {
            versions.pop_first();
        }
    }

    /// All rows of this version are filled.
    pub fn complete(&mut self, version: u64) {
        self.up_to = version;
        self.filled.clear();
        self.partly.clear();
    }

    /// What has the table say so of the column with this field.
    ///
    /// The field's expression is written as it is. It makes no difference, but keeps the change from being
    /// made on top of a version that was restored meanwhile, of which it would not be true.
    pub fn change(&self, field: &Field) -> Change {
        let update = |key: String, value| UpdateMap {
            update_entries: vec![UpdateMapEntry { key, value }],
            replace: false,
        };
        let expression = field.metadata.get(EXPRESSION_KEY).cloned();
        Change::UpdateConfig {
            config_updates: Some(update(Self::key(field.id), self.text())),
            table_metadata_updates: None,
            schema_metadata_updates: None,
            field_metadata_updates: HashMap::from([(
                field.id,
                update(EXPRESSION_KEY.to_owned(), expression),
            )]),
        }
    }

    fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_do() {
        let mut record = Record::default();
        assert!(record.is_to_do(1, false));
        record.complete(4);
        record.add(6, true);
        record.add(8, false);
        let cases = [
            (4, true, false),
            (5, false, true),
            (6, true, false),
            (7, false, true),
            (8, false, false),
            (8, true, true),
        ];
        for (version, is_null, expected) in cases {
            assert_eq!(record.is_to_do(version, is_null), expected, "{version}");
        }
        let again: Record = serde_json::from_str(&record.text().unwrap()).unwrap();
        assert_eq!(again, record);
        record.complete(9);
        assert!(record.filled.is_empty() && record.partly.is_empty());
    }
}
