//! Error names, their numbers and HTTP statuses, and the two shapes in which they travel.

use serde::{Deserialize, Serialize};

macro_rules! error_names {
    ($($(#[$doc:meta])* $name:ident = ($text:literal, $code:literal, $status:literal),)*) => {
        /// The name of an error: what `error` holds in every error body.
        ///
        /// The numbers 0 to 23 are the Lance namespace specification's, 10000 and up the
        /// OSS extensions; `code` is always derived from the name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ErrorName {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl ErrorName {
            /// Every name there is.
            pub const ALL: &'static [ErrorName] = &[$(ErrorName::$name),*];

            /// The name as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorName::$name => $text),* }
            }

            /// The name that stands like this on the wire.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|name| name.as_str() == text)
            }

            /// The number that goes with the name.
            pub fn code(self) -> i64 {
                match self { $(ErrorName::$name => $code),* }
            }

            /// The HTTP status with which a request that fails this way is answered.
            pub fn status(self) -> u16 {
                match self { $(ErrorName::$name => $status),* }
            }
        }
    };
}

error_names! {
    /// The operation exists in the specification and is not served here.
    Unsupported = ("Unsupported", 0, 406),
    /// The namespace does not exist.
    NamespaceNotFound = ("NamespaceNotFound", 1, 404),
    /// The namespace exists already.
    NamespaceAlreadyExists = ("NamespaceAlreadyExists", 2, 409),
    /// The namespace still holds tables.
    NamespaceNotEmpty = ("NamespaceNotEmpty", 3, 409),
    /// The table does not exist.
    TableNotFound = ("TableNotFound", 4, 404),
    /// The table exists already.
    TableAlreadyExists = ("TableAlreadyExists", 5, 409),
    /// The index does not exist.
    TableIndexNotFound = ("TableIndexNotFound", 6, 404),
    /// An index of this name exists already.
    TableIndexAlreadyExists = ("TableIndexAlreadyExists", 7, 409),
    /// The table has no tag of this name.
    TableTagNotFound = ("TableTagNotFound", 8, 404),
    /// The table has no such version, or no longer.
    TableVersionNotFound = ("TableVersionNotFound", 11, 404),
    /// The column does not exist.
    TableColumnNotFound = ("TableColumnNotFound", 12, 404),
    /// A value of the request is not acceptable.
    InvalidInput = ("InvalidInput", 13, 400),
    /// Somebody else changed the same thing at the same time.
    ConcurrentModification = ("ConcurrentModification", 14, 409),
    /// The caller, or the service on the caller's behalf, may not do this.
    PermissionDenied = ("PermissionDenied", 15, 403),
    /// Something that is needed for the answer can't be reached just now.
    ServiceUnavailable = ("ServiceUnavailable", 17, 503),
    /// A fault of the service. OSS spells the specification's `Internal` this way.
    InternalError = ("InternalError", 18, 500),
    /// The table is in a state that does not allow the operation.
    InvalidTableState = ("InvalidTableState", 19, 409),
    /// The data's schema is none that the table can have.
    TableSchemaValidationError = ("TableSchemaValidationError", 20, 400),
    /// The table has no branch of this name.
    TableBranchNotFound = ("TableBranchNotFound", 22, 404),
    /// No such task: unknown, deleted, or of another table.
    TaskNotFound = ("TaskNotFound", 10000, 404),
    /// The task is in a state that does not allow the operation.
    TaskStateConflict = ("TaskStateConflict", 10001, 409),
    /// The table holds as many tasks of this type as it may.
    TaskQuotaExceeded = ("TaskQuotaExceeded", 10002, 429),
    /// The task was stopped on request, before it had an effect.
    Canceled = ("Canceled", 10003, 409),
    /// The host names no table bucket.
    LanceThirdLevelDomainRequired = ("LanceThirdLevelDomainRequired", 13, 400),
    /// The table bucket does not exist.
    NoSuchTableBucket = ("NoSuchTableBucket", 1, 404),
    /// The table bucket or the table has no policy.
    NoSuchPolicy = ("NoSuchPolicy", 13, 404),
    /// There is no credential of this access key.
    NoSuchCredential = ("NoSuchCredential", 13, 404),
    /// The policy or the credential can't be read; the detail says where the mistake is.
    MalformedPolicy = ("MalformedPolicy", 13, 400),
    /// Nothing is served under the path.
    NoSuchOperation = ("NoSuchOperation", 0, 404),
    /// The path exists, with other methods.
    MethodNotAllowed = ("MethodNotAllowed", 0, 405),
    /// The request is larger than the service takes.
    RequestTooLarge = ("RequestTooLarge", 13, 413),
    /// `Content-MD5` or `x-amz-content-sha256` does not match the body.
    InvalidDigest = ("InvalidDigest", 13, 400),
    /// The request carries no signature, or none of a known scheme.
    AccessDenied = ("AccessDenied", 15, 403),
    /// The signature is not the one that the request should carry.
    SignatureDoesNotMatch = ("SignatureDoesNotMatch", 16, 403),
    /// The access key is unknown.
    InvalidAccessKeyId = ("InvalidAccessKeyId", 16, 403),
    /// The request's time is too far from the server's.
    RequestTimeTooSkewed = ("RequestTimeTooSkewed", 16, 403),
    /// The session token is not valid.
    InvalidSecurityToken = ("InvalidSecurityToken", 16, 403),
}

impl std::fmt::Display for ErrorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that can't be served: a name, and a sentence for the person who reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {detail}")]
pub struct ApiError {
    /// What kind of error it is; number and status follow from it.
    pub name: ErrorName,
    /// What is wrong and what to do, in free text. Never a secret or a path of the server.
    pub detail: String,
}

impl ApiError {
    /// An error of this name with this detail.
    pub fn new(name: ErrorName, detail: impl Into<String>) -> Self {
        Self {
            name,
            detail: detail.into(),
        }
    }

    /// A value of the request that is not acceptable (400, 13).
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorName::InvalidInput, detail)
    }

    /// The body of the error answer, for the request with this id.
    pub fn body(&self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: self.name,
            code: self.name.code(),
            detail: self.detail.clone(),
            instance: request_id.to_owned(),
        }
    }
}

/// The Lance error format: the JSON body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// The error's name.
    pub error: ErrorName,
    /// The number that goes with the name.
    pub code: i64,
    /// Free text.
    pub detail: String,
    /// The request id, the same as in the header `x-oss-request-id`.
    pub instance: String,
}

/// Why a task failed: the `error` of a task whose status is `failed`. The error format without
/// `instance`, since no request is at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{error}: {detail}")]
pub struct TaskError {
    /// The error's name.
    pub error: ErrorName,
    /// The number that goes with the name.
    pub code: i64,
    /// What is wrong and what to do.
    pub detail: String,
}

impl TaskError {
    /// An error of this name with this detail.
    pub fn new(error: ErrorName, detail: impl Into<String>) -> Self {
        Self {
            error,
            code: error.code(),
            detail: detail.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_statuses() {
        let cases = [
            (ErrorName::InvalidInput, "InvalidInput", 13, 400),
            (ErrorName::TaskNotFound, "TaskNotFound", 10000, 404),
            (
                ErrorName::TaskStateConflict,
                "TaskStateConflict",
                10001,
                409,
            ),
            (
                ErrorName::TaskQuotaExceeded,
                "TaskQuotaExceeded",
                10002,
                429,
            ),
            (ErrorName::InternalError, "InternalError", 18, 500),
            (ErrorName::NamespaceNotEmpty, "NamespaceNotEmpty", 3, 409),
            (ErrorName::TableNotFound, "TableNotFound", 4, 404),
            (ErrorName::TableTagNotFound, "TableTagNotFound", 8, 404),
            (
                ErrorName::TableVersionNotFound,
                "TableVersionNotFound",
                11,
                404,
            ),
            (
                ErrorName::TableSchemaValidationError,
                "TableSchemaValidationError",
                20,
                400,
            ),
            (
                ErrorName::TableBranchNotFound,
                "TableBranchNotFound",
                22,
                404,
            ),
        ];
        for (name, text, code, status) in cases {
            assert_eq!(
                (name.as_str(), name.code(), name.status()),
                (text, code, status)
            );
        }
        for name in ErrorName::ALL {
            let wire = serde_json::to_string(name).unwrap();
            assert_eq!(wire, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<ErrorName>(&wire).unwrap(), *name);
        }
    }

    #[test]
    fn the_envelope_has_the_four_documented_keys_in_order() {
        let body = ApiError::new(ErrorName::TaskNotFound, "No such task.").body("R1");
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            r#"{"error":"TaskNotFound","code":10000,"detail":"No such task.","instance":"R1"}"#
        );
    }
}
