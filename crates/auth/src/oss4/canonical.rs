//! The canonical request: the bytes that a signature is about.

use percent_encoding::percent_decode_str;

use super::{DIALECT, UNSIGNED_PAYLOAD, is_always_signed};
use crate::digest::check_sha256;
use crate::encoding;
use crate::error::AuthError;
use crate::query::pairs_without;
use crate::request::RequestParts;
use crate::signed::Realm;

/// Method, path, query, headers, additional headers and payload.
pub(crate) fn canonical_request(
    request: &RequestParts<'_>,
    additional: &[String],
    payload: &str,
    realm: &Realm<'_>,
) -> Result<Vec<u8>, AuthError> {
    let mut additional: Vec<&str> = additional.iter().map(String::as_str).collect();
    additional.sort_unstable();
    let uri = uri(request.path, realm)?;
    let query = query(request.query.unwrap_or_default());
    let head = format!("{}\n{uri}\n{query}\n", request.method);
    let tail = format!("\n{}\n{payload}", additional.join(";"));
    let headers = headers(request, &additional)?;
    Ok([head.as_bytes(), &headers, tail.as_bytes()].concat())
}

/// The last line: the digest as the client wrote it, once it is known to be the body's, or that
/// there is none.
pub(crate) fn payload(request: &RequestParts<'_>) -> Result<String, AuthError> {
    let claimed = request.single_text(DIALECT.digest_header)?;
    let claimed = claimed.unwrap_or(UNSIGNED_PAYLOAD);
    if claimed != UNSIGNED_PAYLOAD {
        check_sha256(DIALECT.digest_header, claimed, request.body)?;
    }
    Ok(claimed.to_owned())
}

/// The ARN of the bucket and the decoded path, encoded.
fn uri(path: &str, realm: &Realm<'_>) -> Result<String, AuthError> {
    let Realm {
        region,
        account_id,
        bucket,
    } = realm;
    let key = path.strip_prefix('/').unwrap_or(path);
    let key = percent_decode_str(key)
        .decode_utf8()
        .map_err(|_| AuthError::AmbiguousPath)?;
    Ok(encoding::path(&format!(
        "/acs:osstables:{region}:{account_id}:bucket/{bucket}/{key}"
    )))
}

/// The pairs as they are, sorted by name and value; one without a value is the name alone.
fn query(raw: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = pairs_without(raw, DIALECT.query.signature)
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| match value {
            "" => name.to_owned(),
            _ => format!("{name}={value}"),
        })
        .collect();
    pairs.join("&")
}

/// The signed headers, sorted; each is there once, and the additional ones are there.
fn headers(request: &RequestParts<'_>, additional: &[&str]) -> Result<Vec<u8>, AuthError> {
    let mut names: Vec<String> = request
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .filter(|name| is_always_signed(name))
        .chain(additional.iter().map(|name| (*name).to_owned()))
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut bytes = Vec::new();
    for name in names {
        let Some(value) = request.single(&name)? else {
            return Err(AuthError::MissingHeader(name));
        };
        let value = value.trim_ascii();
        // A name or a value that could pass for more than itself. HTTP has no such ones.
        if name.contains([':', '\n']) || value.contains(&b'\n') {
            return Err(AuthError::UnreadableHeader(name));
        }
        for part in [name.as_bytes(), b":", value, b"\n"] {
            bytes.extend_from_slice(part);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Scheme;

    #[test]
    fn paths() {
        let realm = Realm {
            region: "cn-hangzhou",
            account_id: "1234567890",
            bucket: "my-bucket",
        };
        let cases = [
            ("", Some("")),
            ("/", Some("")),
            ("/table/prod%24documents", Some("table/prod%24documents")),
            ("/table/prod$documents", Some("table/prod%24documents")),
            ("//a/", Some("/a/")),
            ("/~-._%20+%7e", Some("~-._%20%2B~")),
            ("/%C3%A9\u{e9}", Some("%C3%A9%C3%A9")),
            ("/%ff", None),
        ];
        for (path, expected) in cases {
            let arn = "/acs%3Aosstables%3Acn-hangzhou%3A1234567890%3Abucket/my-bucket/";
            let expected = expected.map(|key| format!("{arn}{key}"));
            assert_eq!(uri(path, &realm).ok(), expected, "{path}");
        }
    }

    #[test]
    fn queries() {
        let cases = [
            ("", ""),
            ("mode=", "mode"),
            ("b=2&a=%2f&a=$", "a=$&a=%2f&b=2"),
            ("a-b=1&a=2&a%2Fb=3", "a=2&a%2Fb=3&a-b=1"),
            ("b&x-oss-signature=s&a=1=2", "a=1=2&b"),
            ("a&&b", "&a&b"),
        ];
        for (raw, expected) in cases {
            assert_eq!(query(raw), expected, "{raw}");
        }
    }
    #[test]
    fn signed_headers() {
        let request = RequestParts {
            method: "GET",
            path: "/",
            query: None,
            headers: &[
                ("X-Oss-B", b" b  b "),
                ("host", b"Host:80"),
                ("x-oss-a", b""),
                ("content-type", b"text/plain"),
                ("accept", b"*/*"),
            ],
            body: b"",
            scheme: Scheme::Http,
        };
        let cases: [(&[&str], &str); 3] = [
            (&[], "content-type:text/plain\nx-oss-a:\nx-oss-b:b  b\n"),
            (
                &["host"],
                "content-type:text/plain\nhost:Host:80\nx-oss-a:\nx-oss-b:b  b\n",
            ),
            // Listed or not, a line is there once.
            (
                &["content-type"],
                "content-type:text/plain\nx-oss-a:\nx-oss-b:b  b\n",
            ),
        ];
        for (additional, expected) in cases {
            let got = headers(&request, additional).unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), expected, "{additional:?}");
        }
    }
}
