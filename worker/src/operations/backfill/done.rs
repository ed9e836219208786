//! Which fragments are filled, as far as a task goes: only as long as nobody changes what they consist of.

use std::collections::BTreeMap;

use lance_table::format::{DataFile, Fragment};

/// Fragments that are filled, as they were when they were.
#[derive(Debug, Default)]
pub struct Done(BTreeMap<u64, Fragment>);

impl Done {
    /// This one is filled, as it is here.
    pub fn add(&mut self, fragment: Fragment) {
        self.0.insert(fragment.id, fragment);
    }

    /// Whether it is, and was not changed since: rows of it may have been deleted.
    pub fn has(&self, fragment: &Fragment) -> bool {
        let done = self.0.get(&fragment.id);
        done.is_some_and(|done| has_same_rows(done, fragment))
    }
}

/// Whether a fragment has the rows that it had, where they were, some deleted perhaps.
pub fn has_same_rows(before: &Fragment, now: &Fragment) -> bool {
    before.id == now.id
        && before.physical_rows == now.physical_rows
        && before.overlays == now.overlays
        && before.files.iter().map(file).eq(now.files.iter().map(file))
}

/// What makes a file: not all of its metadata, as its size is entered whenever somebody gets to know it.
fn file(file: &DataFile) -> (&str, &[i32], Option<u32>) {
    (&file.path, &file.fields, file.base_id)
}

#[cfg(test)]
mod tests {
    use lance_core::datatypes::Schema;

    use super::*;

    #[test]
    fn a_fragment_is_done_until_it_is_changed() {
        let filled = Fragment::with_file_legacy(3, "a.lance", &Schema::default(), Some(5));
        let mut done = Done::default();
        assert!(!done.has(&filled));
        done.add(filled.clone());
        assert!(done.has(&filled));
        let other = Fragment {
            id: 4,
            ..filled.clone()
        };
        assert!(!done.has(&other));
        let mut rewritten = filled.clone();
        rewritten.files[0].path = "b.lance".to_owned();
        assert!(!done.has(&rewritten));
        done.add(rewritten.clone());
        assert!(done.has(&rewritten) && !done.has(&filled));
    }
}
