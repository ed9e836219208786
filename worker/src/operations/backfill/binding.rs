//! SQL that belongs to a column: where it is kept, and how it is compiled.
//!
//! A computed column keeps its expression in its field's metadata, under [`EXPRESSION_KEY`]. Lance's
//! own planner compiles it, so it means what it would mean to any other client of Lance.

use std::sync::Arc;

use arrow_schema::{DataType, Schema as ArrowSchema};
use lance::Error;
use lance::deps::datafusion::logical_expr::Expr;
use lance::deps::datafusion::physical_expr::PhysicalExpr;
use lance_core::datatypes::{Field, Schema};
use lance_datafusion::planner::Planner;
use lance_maintenance_api::{ErrorName, TaskError};

use super::mistake::{Kind, does_not_compile, located};
use crate::operations::redact::Redactor;
use crate::operations::table::find_column;

/// The key in a field's metadata under which a computed column keeps its SQL expression.
pub const EXPRESSION_KEY: &str = "lance-maintenance.computed-expression";

/// Something in SQL that was compiled against a schema.
#[derive(Clone, Debug)]
pub struct Compiled {
    kind: Kind,
    text: String,
    expr: Expr,
    /// The ids of the fields that it names.
    pub inputs: Vec<i32>,
    /// What it yields, as a column can store it.
    pub data_type: DataType,
}

impl Compiled {
    /// An expression, whose value a column gets.
    pub fn expression(text: &str, schema: &Schema, redactor: &Redactor) -> Result<Self, TaskError> {
        Self::compile(Kind::Expression, text, schema, redactor)
    }

    /// A condition, which chooses rows.
    pub fn condition(text: &str, schema: &Schema, redactor: &Redactor) -> Result<Self, TaskError> {
        Self::compile(Kind::Condition, text, schema, redactor)
    }

    fn compile(
        kind: Kind,
        text: &str,
        schema: &Schema,
        redactor: &Redactor,
    ) -> Result<Self, TaskError> {
        let failed = |error: Error| does_not_compile(kind, text, &error, redactor);
        let arrow = Arc::new(ArrowSchema::from(schema));
        let planner = Planner::new(Arc::clone(&arrow));
        let parse = |text: &str| match kind {
            Kind::Expression => planner.parse_expr(text),
            Kind::Condition => planner.parse_filter(text),
        };
        let parsed = parse(text).map_err(failed)?;
        // Of a list of expressions the parser takes the first, and what follows a comment it leaves out.
        if parse(&format!("({text})")).is_err() {
            return Err(TaskError::new(
                ErrorName::InvalidInput,
                format!(
                    "{kind} does not compile: it must be a single one, without a comment at its end."
                ),
            ));
        }
        let inputs = Planner::column_names_in_expr(&parsed)
            .iter()
            .map(|name| input(name, schema).map_err(|error| located(error, name, text)))
            .collect::<Result<Vec<i32>, TaskError>>()?;
        let expr = planner.optimize_expr(parsed).map_err(failed)?;
        let physical = planner.create_physical_expr(&expr).map_err(failed)?;
        let data_type = physical
            .data_type(&arrow)
            .map_err(|error| failed(error.into()))?;
        Ok(Self {
            kind,
            text: text.to_owned(),
            expr,
            inputs,
            data_type: stored(kind, data_type)?,
        })
    }

    /// Makes it ready for batches of this schema, which has all of its inputs.
    pub fn bind(
        &self,
        read: &Schema,
        redactor: &Redactor,
    ) -> Result<Arc<dyn PhysicalExpr>, TaskError> {
        Planner::new(Arc::new(ArrowSchema::from(read)))
            .create_physical_expr(&self.expr)
            .map_err(|error| does_not_compile(self.kind, &self.text, &error, redactor))
    }
}

/// A computed column of a table.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its field, of the schema's top level.
    pub field: Field,
    /// What it is filled with.
    pub text: String,
    /// The same, compiled.
    pub expression: Compiled,
}

impl Computed {
    /// Finds the column with this path, and compiles its expression.
    pub fn find(schema: &Schema, path: &str, redactor: &Redactor) -> Result<Self, TaskError> {
        let column = find_column(schema, path)?;
        let invalid = |text: String| TaskError::new(ErrorName::InvalidInput, text);
        let field = column.field;
        let is_top = schema.fields.iter().any(|top| top.id == field.id);
        let Some(text) = field.metadata.get(EXPRESSION_KEY).filter(|_| is_top) else {
            return Err(invalid(format!(
                "The column '{path}' is not a computed one: only columns that were added with 'computed' \
                 are filled."
            )));
        };
        let text = text.clone();
        let expression = Compiled::expression(&text, schema, redactor)?;
        if expression.inputs.contains(&field.id) {
            return Err(invalid(format!(
                "The expression of the column '{path}' names the column itself."
            )));
        }
        Ok(Self {
            field,
            text,
            expression,
        })
    }
}

/// The field of a column that an expression names.
fn input(name: &str, schema: &Schema) -> Result<i32, TaskError> {
    // Of a top-level column the planner gives the plain name, dots and all.
    match schema.fields.iter().find(|field| field.name == name) {
        Some(field) => Ok(field.id),
        None => find_column(schema, name).map(|column| column.field.id),
    }
}

/// The type of a column for values of this type.
fn stored(kind: Kind, data_type: DataType) -> Result<DataType, TaskError> {
    match data_type {
        DataType::Utf8View => Ok(DataType::Utf8),
        DataType::BinaryView => Ok(DataType::Binary),
        DataType::Null => Err(TaskError::new(
            ErrorName::InvalidInput,
            format!("{kind} has no type, as it is always null: cast it to one."),
        )),
        other => Ok(other),
    }
}
