//! What a backfill is about: a computed column, and which of its rows are meant.

use lance::Dataset;
use lance_maintenance_api::{ErrorName, TaskError};

use super::binding::{Compiled, Computed, inputs_described};
use super::record::Record;
use super::rows::Rows;
use crate::operations::redact::Redactor;

/// A computed column, and which of its rows are meant.
pub struct Column {
    /// The column.
    pub computed: Computed,
    condition: Option<Compiled>,
    path: String,
    filter: Option<String>,
    /// What is computed: nothing that was computed is of use for anything else.
    pub description: String,
}

impl Column {
    /// Finds the column with this path, and compiles what belongs to it.
    pub fn find(
        dataset: &Dataset,
        path: &str,
        filter: Option<&str>,
        redactor: &Redactor,
    ) -> Result<Self, TaskError> {
        let schema = dataset.schema();
        let computed = Computed::find(schema, path, redactor)?;
        let condition = filter
            .map(|filter| Compiled::condition(filter, schema, redactor))
            .transpose()?;
        let inputs = condition.as_ref().map(|of| inputs_described(of, schema));
        Ok(Self {
            description: format!("{} {filter:?} {inputs:?}", computed.description),
            computed,
            condition,
            path: path.to_owned(),
            filter: filter.map(str::to_owned),
        })
    }

    /// The same column in another version. Fails if it was dropped, or what it is computed from is
    /// something else by now.
    pub fn again(&self, dataset: &Dataset, redactor: &Redactor) -> Result<Self, TaskError> {
        let found = Self::find(dataset, &self.path, self.filter.as_deref(), redactor)?;
        match found.description == self.description {
            true => Ok(found),
            false => Err(TaskError::new(
                ErrorName::ConcurrentModification,
                format!(
                    "The column '{}' was declared anew while it was filled, or a column that it is \
                     computed from is another one: fill it again.",
                    self.path
                ),
            )),
        }
    }

    /// What is known of its rows, where the table tracks their versions.
    pub fn record(&self, dataset: &Dataset) -> Option<Record> {
        let tracks_versions = dataset.manifest().uses_stable_row_ids();
        let (field, column) = (self.computed.field.id, &self.computed.description);
        tracks_versions.then(|| Record::read(dataset, field, column))
    }

    /// How its rows are chosen and computed in this version.
    pub fn rows(
        &self,
        dataset: &Dataset,
        record: Option<Record>,
        redactor: &Redactor,
    ) -> Result<Rows, TaskError> {
        let condition = self.condition.as_ref();
        Rows::new(dataset, &self.computed, condition, record, redactor.clone())
    }

    /// Whether a condition chooses the rows.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }
}
