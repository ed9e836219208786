//! What an expression may not have, though DataFusion compiles it.

use lance::deps::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use lance::deps::datafusion::logical_expr::{Expr, Volatility};

/// What of it is about more than the row that it is computed for.
pub fn beyond_a_row(expr: &Expr) -> Option<String> {
    find(expr, |node| match node {
        Expr::AggregateFunction(call) => Some(of_many(call.func.name())),
        Expr::WindowFunction(call) => Some(of_many(call.fun.name())),
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => {
            Some("has a query within it: it is computed of one row at a time".to_owned())
        }
        Expr::Unnest(_) => Some("yields several values for a row".to_owned()),
        #[expect(deprecated, reason = "still parsed")]
        Expr::Wildcard { .. } => Some("has a '*' that stands for all columns".to_owned()),
        Expr::Placeholder(place) => Some(format!("has a parameter, '{}'", place.id)),
        _ => None,
    })
}

/// The first function of at least this volatility.
pub fn changing(expr: &Expr, from: Volatility) -> Option<String> {
    find(expr, |node| match node {
        Expr::ScalarFunction(call) if call.func.signature().volatility >= from => {
            Some(call.func.name().to_owned())
        }
        _ => None,
    })
}

fn of_many(name: &str) -> String {
    format!("has '{name}', a function of many rows: it is computed of one row at a time")
}

fn find<T>(expr: &Expr, look: impl Fn(&Expr) -> Option<T>) -> Option<T> {
    let mut found = None;
    let walked = expr.apply(|node| {
        found = look(node);
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    walked.ok().and(found)
}
