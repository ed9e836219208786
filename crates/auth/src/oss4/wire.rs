//! What this scheme can't sign without doubt.

use percent_encoding::percent_decode_str;

use crate::error::AuthError;
use crate::request::RequestParts;

/// Refuses a path or a query of which a signature could be as good for another one. It only depends
/// on what is on the wire, so it is checked before anything is verified.
pub(crate) fn check_wire(request: &RequestParts<'_>) -> Result<(), AuthError> {
    if !is_decodable(request.path) {
        return Err(AuthError::AmbiguousPath);
    }
    let query = request.query.unwrap_or_default();
    if !query.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AuthError::UnencodedQuery);
    }
    Ok(())
}

/// Whether a path means what it decodes to, segment by segment: it begins with a slash, has no
/// escaped slash, percent sign or NUL, nothing that only looks like an escape, and is UTF-8.
fn is_decodable(path: &str) -> bool {
    let begins = path.is_empty() || path.starts_with('/');
    let escapes = path.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| {
            digits.iter().all(u8::is_ascii_hexdigit)
                && !matches!(digits, b"25" | b"00" | [b'2', b'f' | b'F'])
        })
    });
    begins && escapes && percent_decode_str(path).decode_utf8().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let cases = [
            ("", true),
            ("/", true),
            ("/lance/oss/v1/table/prod%24documents/compact", true),
            ("/a//b/%2E%2e/%C3%A9\u{e9}%20+", true),
            ("a", false),
            ("*", false),
            ("/a%2Fb", false),
            ("/a%2fb", false),
            ("/a%2524b", false),
            ("/a%00", false),
            ("/a%", false),
            ("/a%2", false),
            ("/a%zz", false),
            ("/a%\u{e9}", false),
            ("/a%ff", false),
            ("/a%C3", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_decodable(path), expected, "{path}");
        }
    }
}
