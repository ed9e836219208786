//! From an error of the library, or of the store under it, to one that a user can act on.

use std::error::Error as StdError;
use std::io::ErrorKind;

use lance::Error;
use lance_maintenance_api::{ErrorName, TaskError};

use super::redact::Redactor;

/// Whether another writer got in between, so that the same work on the newest version may succeed.
pub fn is_retryable_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::RetryableCommitConflict { .. }
            | Error::CommitConflict { .. }
            | Error::TooMuchWriteContention { .. }
    )
}

/// What kind of failure an error is: enough to choose a name and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Conflict,
    Incompatible,
    CommitUnknown,
    InvalidInput,
    TableNotFound,
    IndexNotFound,
    ColumnNotFound,
    MissingFile(String),
    CorruptFile(String),
    TableState,
    Permission,
    Unavailable,
    Panic,
    Other,
}

/// The error of a task that failed with `error`.
pub fn to_task_error(error: &Error, redactor: &Redactor) -> TaskError {
    let text = redactor.clean(&error.to_string());
    let (name, detail) = match kind(error) {
        Kind::Conflict => (
            ErrorName::ConcurrentModification,
            format!("Other writers kept changing the table; submit the task again. {text}"),
        ),
        Kind::Incompatible => (
            ErrorName::ConcurrentModification,
            format!(
                "The table was replaced or restored while the task ran; submit the task again. {text}"
            ),
        ),
        Kind::CommitUnknown => (
            ErrorName::ServiceUnavailable,
            format!(
                "The store did not say whether the change was committed: look at the table before submitting again. {text}"
            ),
        ),
        Kind::InvalidInput => (ErrorName::InvalidInput, text),
        Kind::TableNotFound => (ErrorName::TableNotFound, text),
        Kind::IndexNotFound => (ErrorName::TableIndexNotFound, text),
        Kind::ColumnNotFound => (ErrorName::TableColumnNotFound, text),
        Kind::MissingFile(path) => return missing_file(&redactor.path(&path)),
        Kind::CorruptFile(path) => return corrupt_file(&redactor.path(&path), &text),
        Kind::TableState => (ErrorName::InvalidTableState, text),
        Kind::Permission => (
            ErrorName::PermissionDenied,
            format!(
                "The worker may not do this on the table's store; check its credentials and their permissions. {text}"
            ),
        ),
        Kind::Unavailable => (
            ErrorName::ServiceUnavailable,
            format!(
                "The table's store did not answer as it should; submit the task again later. {text}"
            ),
        ),
        Kind::Panic => (
            ErrorName::InternalError,
            "The operation broke off unexpectedly; the worker's log has more.".to_owned(),
        ),
        Kind::Other => (ErrorName::InternalError, text),
    };
    TaskError::new(name, detail)
}

/// A file that the table refers to is not there.
pub fn missing_file(path: &str) -> TaskError {
    TaskError::new(
        ErrorName::InvalidTableState,
        format!("The file '{path}', to which the table refers, is missing."),
    )
}

/// A file that the table refers to can't be read.
pub fn corrupt_file(path: &str, reason: &str) -> TaskError {
    TaskError::new(
        ErrorName::InvalidTableState,
        format!("The file '{path}', to which the table refers, can't be read: {reason}"),
    )
}

/// Whether the error may come from a data file that can't be read, so that looking for the file is
/// worth the time.
pub fn may_be_unreadable_data(error: &Error) -> bool {
    match kind(error) {
        Kind::InvalidInput | Kind::MissingFile(_) | Kind::CorruptFile(_) => true,
        Kind::TableState | Kind::Panic | Kind::Other => true,
        Kind::Conflict | Kind::Incompatible | Kind::CommitUnknown => false,
        Kind::TableNotFound | Kind::IndexNotFound | Kind::ColumnNotFound => false,
        Kind::Permission | Kind::Unavailable => false,
    }
}

/// The kind of the error, or of the first error that it carries and that says more.
fn kind(error: &Error) -> Kind {
    if error.is_commit_status_unknown() {
        return Kind::CommitUnknown;
    }
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    let mut found = Kind::Other;
    while let Some(error) = cause {
        let here = kind_of_one(error);
        // A general error of the library often carries the particular one of the store.
        if found == Kind::Other || matches!(here, Kind::Permission | Kind::Unavailable) {
            found = here;
        }
        cause = error.source();
    }
    match found {
        Kind::Other | Kind::InvalidInput => kind_of_text(&error.to_string()).unwrap_or(found),
        found => found,
    }
}

fn kind_of_one(error: &(dyn StdError + 'static)) -> Kind {
    if let Some(error) = error.downcast_ref::<Error>() {
        return kind_of_lance(error);
    }
    if let Some(error) = error.downcast_ref::<object_store::Error>() {
        return match error {
            object_store::Error::NotFound { path, .. } => Kind::MissingFile(path.clone()),
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => Kind::Permission,
            _ => Kind::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return match error.kind() {
            ErrorKind::PermissionDenied => Kind::Permission,
            ErrorKind::TimedOut
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded => Kind::Unavailable,
            _ => Kind::Other,
        };
    }
    Kind::Other
}

fn kind_of_lance(error: &Error) -> Kind {
    match error {
        Error::RetryableCommitConflict { .. }
        | Error::CommitConflict { .. }
        | Error::TooMuchWriteContention { .. }
        | Error::RefConflict { .. } => Kind::Conflict,
        Error::IncompatibleTransaction { .. } => Kind::Incompatible,
        Error::InvalidInput { .. }
        | Error::NotSupported { .. }
        | Error::Index { .. }
        | Error::InvalidTableLocation { .. }
        | Error::Unprocessable { .. } => Kind::InvalidInput,
        Error::DatasetNotFound { .. } => Kind::TableNotFound,
        Error::IndexNotFound { .. } => Kind::IndexNotFound,
        Error::FieldNotFound { .. } => Kind::ColumnNotFound,
        Error::NotFound { uri, .. } => Kind::MissingFile(uri.clone()),
        Error::CorruptFile { path, .. } => Kind::CorruptFile(path.to_string()),
        Error::VersionConflict { .. }
        | Error::Cleanup { .. }
        | Error::InvalidRef { .. }
        | Error::RefNotFound { .. }
        | Error::VersionNotFound { .. }
        | Error::Schema { .. }
        | Error::SchemaMismatch { .. } => Kind::TableState,
        Error::Timeout { .. } | Error::DiskCapExceeded { .. } => Kind::Unavailable,
        _ => Kind::Other,
    }
}

/// Stores report much of what happens to them as text only.
fn kind_of_text(text: &str) -> Option<Kind> {
    const KINDS: [(Kind, &[&str]); 3] = [
        (Kind::Panic, &["panicked at", "panicked with", " panicked"]),
        (
            Kind::Permission,
            &[
                "AccessDenied",
                "access denied",
                "Forbidden",
                "Permission denied",
                "InvalidAccessKeyId",
                "SignatureDoesNotMatch",
                "ExpiredToken",
                "InvalidSecurityToken",
                "Unauthorized",
                "credential",
            ],
        ),
        (
            Kind::Unavailable,
            &[
                "SlowDown",
                "Throttl",
                "throttl",
                "Too Many Requests",
                "Service Unavailable",
                "ServiceUnavailable",
                "timed out",
                "Timeout",
                "error sending request",
                "connection refused",
                "Connection refused",
                "connection closed",
                "dns error",
                "No space left",
            ],
        ),
    ];
    KINDS
        .into_iter()
        .find(|(_, words)| words.iter().any(|word| text.contains(word)))
        .map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn store_error(error: object_store::Error) -> Error {
        Error::io_source(Box::new(error))
    }

    fn generic(text: &str) -> Error {
        store_error(object_store::Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        })
    }

    #[test]
    fn names() {
        let lost = || Box::new(std::io::Error::other("gone"));
        let cases = [
            (
                Error::retryable_commit_conflict_source(3, "a delete".into()),
                ErrorName::ConcurrentModification,
            ),
            (
                Error::incompatible_transaction_source("an overwrite".into()),
                ErrorName::ConcurrentModification,
            ),
            (Error::invalid_input("no"), ErrorName::InvalidInput),
            (Error::index("no".to_string()), ErrorName::InvalidInput),
            (
                Error::dataset_not_found("x".to_owned(), lost()),
                ErrorName::TableNotFound,
            ),
            (
                store_error(object_store::Error::NotFound {
                    path: "data/1.lance".to_owned(),
                    source: lost(),
                }),
                ErrorName::InvalidTableState,
            ),
            (
                store_error(object_store::Error::PermissionDenied {
                    path: "data/1.lance".to_owned(),
                    source: lost(),
                }),
                ErrorName::PermissionDenied,
            ),
            (
                Error::io_source(Box::new(std::io::Error::from(ErrorKind::PermissionDenied))),
                ErrorName::PermissionDenied,
            ),
            (
                generic("Server returned 503: SlowDown"),
                ErrorName::ServiceUnavailable,
            ),
            (
                generic("error sending request for url"),
                ErrorName::ServiceUnavailable,
            ),
            (
                generic("<Code>AccessDenied</Code>"),
                ErrorName::PermissionDenied,
            ),
            (Error::internal("what".to_owned()), ErrorName::InternalError),
        ];
        for (error, name) in cases {
            let task_error = to_task_error(&error, &Redactor::default());
            assert_eq!(task_error.error, name, "{error}");
            assert!(!task_error.detail.contains(".rs"), "{}", task_error.detail);
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = store_error(object_store::Error::NotFound {
            path: "w/t/data/1.lance".to_owned(),
            source: "no such key".into(),
        });
        let detail = to_task_error(&error, &Redactor::default()).detail;
        assert!(detail.contains("'w/t/data/1.lance'"), "{detail}");
    }

    #[test]
    fn the_text_of_a_panic_is_not_shown() {
        let error = Error::execution("task 7 panicked with message \"index out of bounds\"");
        let task_error = to_task_error(&error, &Redactor::default());
        assert_eq!(task_error.error, ErrorName::InternalError);
        assert!(!task_error.detail.contains("bounds"));
    }

    #[test]
    fn what_lies_underneath_counts() {
        let inner = Arc::new(object_store::Error::Unauthenticated {
            path: "x".to_owned(),
            source: "who are you".into(),
        });
        let error = Error::io_source(Box::new(std::io::Error::other(inner)));
        let task_error = to_task_error(&error, &Redactor::default());
        // An Arc hides its content from downcasts; the text still says it.
        assert_eq!(task_error.error, ErrorName::PermissionDenied);
    }
}
