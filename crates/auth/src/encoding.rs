//! Percent-encoding as signatures use it: everything except `A-Za-z0-9-._~`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const EXCEPT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const EXCEPT_UNRESERVED_AND_SLASH: &AsciiSet = &EXCEPT_UNRESERVED.remove(b'/');

/// Encodes a name or a value.
pub(crate) fn component(text: &str) -> String {
    utf8_percent_encode(text, EXCEPT_UNRESERVED).to_string()
}

/// Encodes each segment of a path.
pub(crate) fn path(text: &str) -> String {
    utf8_percent_encode(text, EXCEPT_UNRESERVED_AND_SLASH).to_string()
}
