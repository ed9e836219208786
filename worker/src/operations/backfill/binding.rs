//! SQL that belongs to a column: where it is kept, and how it is compiled.
//!
//! A computed column keeps its expression in its field's metadata, under [`EXPRESSION_KEY`]. It is
//! DataFusion's SQL over the columns of the table, with the functions that DataFusion and Lance bring
//! along: names are written as they are in the schema, in backticks or double quotes where SQL asks for
//! it, text in single quotes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use arrow_select::concat::concat;
use chrono::Utc;
use lance::Error;
use lance::deps::datafusion::common::DFSchema;
use lance::deps::datafusion::error::DataFusionError;
use lance::deps::datafusion::logical_expr::{Expr, Volatility};
use lance::deps::datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use lance::deps::datafusion::physical_expr::PhysicalExpr;
use lance::deps::datafusion::prelude::{SessionConfig, SessionContext};
use lance_core::datatypes::{Field, Schema};
use lance_datafusion::planner::Planner;
use lance_datafusion::udf::register_functions;
use lance_maintenance_api::{ErrorName, TaskError};

use super::mistake::{Kind, does_not_compile};
use super::{functions, size};
use crate::operations::redact::Redactor;
use crate::operations::table::find_column;

/// The key in a field's metadata under which a computed column keeps its SQL expression.
pub const EXPRESSION_KEY: &str = "lance-maintenance.computed-expression";

/// The key there of what tells a declaration from others: a column that is dropped and declared again may
/// get the same field id.
pub const DECLARATION_KEY: &str = "lance-maintenance.computed-declaration";

/// Rows that functions get at a time. What they make in between may be far larger than what is read and
/// what comes out, and is not counted.
const KERNEL_ROWS: usize = 8192;

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

/// The same, ready for batches of one schema.
#[derive(Clone, Debug)]
pub struct Bound(Arc<dyn PhysicalExpr>);

impl Compiled {
    /// An expression, whose value a column gets.
    pub fn expression(text: &str, schema: &Schema, redactor: &Redactor) -> Result<Self, TaskError> {
        Self::compile(Kind::Expression, text, schema, redactor)
    }

    /// A condition, which chooses rows.
    pub fn condition(text: &str, schema: &Schema, redactor: &Redactor) -> Result<Self, TaskError> {
        let compiled = Self::compile(Kind::Condition, text, schema, redactor)?;
        // Rows are counted first, and may be computed by another attempt.
        compiled.check_changing(Volatility::Volatile)?;
        match compiled.data_type {
            DataType::Boolean => Ok(compiled),
            other => Err(refused(format!(
                "The condition is neither true nor false: its value is of type {other}."
            ))),
        }
    }

    /// Fails if it is not a function of its inputs alone, as a computed column has to be: whether its
    /// rows are up to date could not be told.
    pub fn check_computed(&self) -> Result<(), TaskError> {
        self.check_changing(Volatility::Stable)
    }

    fn check_changing(&self, from: Volatility) -> Result<(), TaskError> {
        match functions::changing(&self.expr, from) {
            None => Ok(()),
            Some(name) => Err(refused(format!(
                "{} has '{name}', whose value is another one each time.",
                self.kind
            ))),
        }
    }

    fn compile(
        kind: Kind,
        text: &str,
        schema: &Schema,
        redactor: &Redactor,
    ) -> Result<Self, TaskError> {
        let operators = size::operators(text);
        if operators > size::MOST_OPERATORS {
            return Err(refused(format!(
                "{kind} is too large: it has {operators} operators, and may have {}. Compute parts of it in \
                 columns of their own.",
                size::MOST_OPERATORS
            )));
        }
        size::on_large_stack(|| Self::compile_here(kind, text, schema, redactor))?
    }

    fn compile_here(
        kind: Kind,
        text: &str,
        schema: &Schema,
        redactor: &Redactor,
    ) -> Result<Self, TaskError> {
        let failed = |error: DataFusionError| does_not_compile(kind, text, &error, redactor);
        let arrow = ArrowSchema::from(schema);
        let columns = DFSchema::try_from(arrow.clone()).map_err(failed)?;
        let context = context();
        let expr = context.parse_sql_expr(text, &columns).map_err(failed)?;
        if let Some(why) = functions::beyond_a_row(&expr) {
            return Err(refused(format!("{kind} {why}.")));
        }
        let inputs = Planner::column_names_in_expr(&expr)
            .iter()
            .map(|name| input(name, schema))
            .collect::<Result<Vec<i32>, TaskError>>()?;
        let physical = physical(&context, &expr, &columns).map_err(failed)?;
        let data_type = physical.data_type(&arrow).map_err(failed)?;
        Ok(Self {
            kind,
            text: text.to_owned(),
            expr,
            inputs,
            data_type: stored(kind, data_type)?,
        })
    }

    /// Makes it ready for batches of this schema, which has all of its inputs.
    pub fn bind(&self, read: &Schema, redactor: &Redactor) -> Result<Bound, TaskError> {
        size::on_large_stack(|| {
            DFSchema::try_from(ArrowSchema::from(read))
                .and_then(|columns| physical(&context(), &self.expr, &columns))
                .map(Bound)
                .map_err(|error| does_not_compile(self.kind, &self.text, &error, redactor))
        })?
    }
}

impl Bound {
    /// The value for each row, as this type.
    pub fn values(&self, batch: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, Error> {
        let all = || {
            let mut parts = Vec::new();
            for start in (0..batch.num_rows().max(1)).step_by(KERNEL_ROWS) {
                let rows = KERNEL_ROWS.min(batch.num_rows() - start);
                parts.push(self.slice_values(&batch.slice(start, rows), data_type)?);
            }
            match parts.as_slice() {
                [part] => Ok(Arc::clone(part)),
                parts => Ok(concat(
                    &parts.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
                )?),
            }
        };
        // Some kernels panic where their values don't fit.
        match catch_unwind(AssertUnwindSafe(all)) {
            Ok(values) => values,
            Err(panic) => Err(Error::invalid_input(said(&*panic))),
        }
    }

    fn slice_values(&self, rows: &RecordBatch, data_type: &DataType) -> Result<ArrayRef, Error> {
        let values = self.0.evaluate(rows)?.into_array(rows.num_rows())?;
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        Ok(cast_with_options(&values, data_type, &options)?)
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a function failed").to_owned()
}

/// Makes an expression ready. Some functions are only known to the simplifier, which writes them in
/// others.
fn physical(
    context: &SessionContext,
    expr: &Expr,
    columns: &DFSchema,
) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
    let known = SimplifyContext::builder()
        .with_schema(Arc::new(columns.clone()))
        .with_query_execution_start_time(Some(Utc::now()))
        .build();
    let simplifier = ExprSimplifier::new(known);
    let expr = simplifier.coerce(expr.clone(), columns)?;
    context.create_physical_expr(simplifier.simplify(expr)?, columns)
}

/// What SQL is compiled with.
fn context() -> SessionContext {
    let config = SessionConfig::new()
        .set_bool("datafusion.sql_parser.enable_ident_normalization", false)
        .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false);
    let context = SessionContext::new_with_config(config);
    register_functions(&context);
    context
}

/// A computed column of a table.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its field, of the schema's top level.
    pub field: Field,
    /// What it is filled with.
    pub expression: Compiled,
    /// What its values are: another one for another declaration, expression, type or other inputs.
    pub description: String,
}

impl Computed {
    /// Finds the column with this path, and compiles its expression.
    pub fn find(schema: &Schema, path: &str, redactor: &Redactor) -> Result<Self, TaskError> {
        let column = find_column(schema, path)?;
        let field = column.field;
        let is_top = schema.fields.iter().any(|top| top.id == field.id);
        let Some(text) = field.metadata.get(EXPRESSION_KEY).filter(|_| is_top) else {
            return Err(refused(format!(
                "The column '{path}' is not a computed one: only columns that were added with 'computed' \
                 are filled."
            )));
        };
        let text = text.clone();
        let expression = Compiled::expression(&text, schema, redactor)?;
        expression.check_computed()?;
        if expression.inputs.contains(&field.id) {
            return Err(refused(format!(
                "The expression of the column '{path}' names the column itself."
            )));
        }
        if !field.nullable {
            return Err(refused(format!(
                "The column '{path}' may not be null, and so has no rows to be filled: computed columns \
                 have to be nullable."
            )));
        }
        let description = format!(
            "{} {} {} {text}",
            declared(&field),
            field.data_type(),
            inputs_described(&expression, schema)
        );
        Ok(Self {
            field,
            expression,
            description,
        })
    }
}

/// The field with its declaration, if it has one.
fn declared(field: &Field) -> String {
    match field.metadata.get(DECLARATION_KEY) {
        Some(declaration) => format!("{}#{declaration}", field.id),
        None => field.id.to_string(),
    }
}

/// Which fields the names in an expression stand for.
pub fn inputs_described(compiled: &Compiled, schema: &Schema) -> String {
    let fields = compiled.inputs.iter().map(|id| schema.field_by_id(*id));
    let described = |field| format!("{} {}", declared(field), field.data_type());
    let described: Vec<String> = fields.flatten().map(described).collect();
    format!("[{}]", described.join(", "))
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
    let stored = match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Null => {
            return Err(refused(format!(
                "{kind} has no type, as it is always null: cast it to one."
            )));
        }
        other => other,
    };
    match Field::try_from(&ArrowField::new("value", stored.clone(), true)) {
        Ok(_) => Ok(stored),
        Err(_) => Err(refused(format!(
            "{kind} has values of type {stored}, which Lance does not store: cast them to one that it does."
        ))),
    }
}

fn refused(text: String) -> TaskError {
    TaskError::new(ErrorName::InvalidInput, text)
}
