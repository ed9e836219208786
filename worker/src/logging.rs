//! Logs, on standard error.

use std::panic::{self, PanicHookInfo};

use lance_maintenance_dispatch::Dispatch;
use tracing::Span;
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Sends log lines to standard error, as `RUST_LOG` chooses them (default: info), and panics into
/// the log. A second call changes nothing.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error says that somebody else has set up logging before.
    let _ = match format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
    };
    panic::set_hook(Box::new(log_panic));
}

/// The span that every log line about a task belongs to.
pub fn task_span(dispatch: &Dispatch) -> Span {
    tracing::info_span!(
        "task",
        task_id = %dispatch.task_id,
        task_type = %dispatch.params.task_type(),
        table_id = %dispatch.table.id,
        request_id = %dispatch.request_id,
    )
}

/// A panic on the thread that runs a task belongs to the task's span, and so carries its ids.
fn log_panic(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("(no text)");
    match info.location() {
        Some(place) => tracing::error!(%place, "panic: {message}"),
        None => tracing::error!("panic: {message}"),
    }
}
