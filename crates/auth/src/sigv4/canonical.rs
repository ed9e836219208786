//! The canonical request: the bytes that a signature is about.

use std::borrow::Cow;

use super::DIALECT;
use crate::claim::Claim;
use crate::encoding;
use crate::error::AuthError;
use crate::query::pairs_without;
use crate::request::RequestParts;

/// The canonical requests that a client may have signed. In the header form there are several, see
/// [`accepted_uris`]; a presigned URL is made by libraries, which all do as they should.
pub(crate) fn canonical_requests(
    request: &RequestParts<'_>,
    claim: &Claim,
    payload: &str,
) -> Result<Vec<Vec<u8>>, AuthError> {
    let tail = tail(request, &claim.headers, payload)?;
    let raw = request.query.unwrap_or_default();
    let (uris, queries) = match claim.is_in_query() {
        false => (accepted_uris(request.path), accepted_queries(raw)),
        true => (
            vec![uri(request.path).into()],
            vec![query(&without_signature(raw)).into()],
        ),
    };
    let requests = uris.iter().flat_map(|uri| {
        let tail = &tail;
        queries
            .iter()
            .map(move |query| assemble(request.method, uri, query, tail))
    });
    Ok(requests.collect())
}

/// The one that a client should sign.
pub(super) fn canonical_request(
    request: &RequestParts<'_>,
    signed_headers: &[String],
    payload: &str,
) -> Result<Vec<u8>, AuthError> {
    let tail = tail(request, signed_headers, payload)?;
    let query = query(request.query.unwrap_or_default());
    Ok(assemble(request.method, &uri(request.path), &query, &tail))
}

fn assemble(method: &str, uri: &str, query: &str, tail: &[u8]) -> Vec<u8> {
    let head = format!("{method}\n{uri}\n{query}\n");
    [head.as_bytes(), tail].concat()
}

/// The part of a canonical request that follows the query: the signed headers in this order, each
/// of which the request has exactly once, their names, the digest of the body.
fn tail(
    request: &RequestParts<'_>,
    signed_headers: &[String],
    payload: &str,
) -> Result<Vec<u8>, AuthError> {
    let mut bytes = Vec::new();
    for name in signed_headers {
        let value = request
            .single(name)?
            .ok_or_else(|| AuthError::MissingHeader(name.clone()))?;
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b':');
        match name.as_str() {
            "host" => bytes.extend(request.canonical_host(value)),
            _ => bytes.extend(collapse(value)),
        }
        bytes.push(b'\n');
    }
    for part in ["\n", &signed_headers.join(";"), "\n", payload] {
        bytes.extend_from_slice(part.as_bytes());
    }
    Ok(bytes)
}

/// A value without surrounding whitespace, and with single blanks inside.
fn collapse(value: &[u8]) -> Vec<u8> {
    value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(&b' ')
}

/// The canonical path: each segment of the path on the wire, which is encoded already, encoded
/// once more.
fn uri(path: &str) -> String {
    match path {
        "" => "/".to_owned(),
        _ => encoding::path(path),
    }
}

/// The canonical query: the decoded pairs, encoded anew and sorted. The decoding is the one by
/// which the API reads its parameters.
fn query(raw: &str) -> String {
    let mut pairs: Vec<(String, String)> = form_urlencoded::parse(raw.as_bytes())
        .map(|(name, value)| (encoding::component(&name), encoding::component(&value)))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// A query as the client signed it, before it added the signature.
fn without_signature(raw: &str) -> String {
    let pairs: Vec<&str> = pairs_without(raw, DIALECT.query.signature).collect();
    pairs.join("&")
}

/// The paths that a client may have signed: the canonical one, and the one on the wire.
///
/// curl 7.88 and 8.5 sign the path as they send it, as is right for S3 only (8.23 no longer does).
/// Taking that too is safe as long as no signature can be moved to a request that means something
/// else: a canonical path, sent as a path, has to decode to the path that it was made from. It
/// does, except where it has an encoded percent sign; there only the canonical path counts.
fn accepted_uris(path: &str) -> Vec<Cow<'_, str>> {
    let as_sent = is_visible(path) && !path.contains("%25");
    with_as_sent(uri(path), path, as_sent)
}

/// The queries that a client may have signed: the canonical one, and the one on the wire, which
/// curl 7.88 signs unsorted. A canonical query, sent as a query, means what it was made from, so
/// no signature moves to another request by this.
fn accepted_queries(raw: &str) -> Vec<Cow<'_, str>> {
    with_as_sent(query(raw), raw, is_visible(raw))
}

fn with_as_sent(canonical: String, raw: &str, as_sent: bool) -> Vec<Cow<'_, str>> {
    let raw = (as_sent && raw != canonical).then_some(Cow::Borrowed(raw));
    [Some(Cow::Owned(canonical)), raw]
        .into_iter()
        .flatten()
        .collect()
}

/// Nothing in it can be taken for the line breaks of a canonical request.
fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_paths() {
        let cases = [
            ("", "/"),
            ("/", "/"),
            (
                "/lance/oss/v1/table/prod%24documents/compact",
                "/lance/oss/v1/table/prod%2524documents/compact",
            ),
            ("/prod$documents", "/prod%24documents"),
            ("/a%2Fb//..%2f/~-._", "/a%252Fb//..%252f/~-._"),
            ("/\u{e9} +*", "/%C3%A9%20%2B%2A"),
        ];
        for (path, expected) in cases {
            assert_eq!(uri(path), expected, "{path}");
        }
    }

    #[test]
    fn canonical_queries() {
        let cases = [
            ("", ""),
            ("mode", "mode="),
            ("delimiter=%24", "delimiter=%24"),
            ("delimiter=$", "delimiter=%24"),
            (
                "task_type=lance_compact&max_results=100&delimiter=%24",
                "delimiter=%24&max_results=100&task_type=lance_compact",
            ),
            ("a=2&a=1&a", "a=&a=1&a=2"),
            ("a-b=1&a=2&a%2Fb=3", "a=2&a%2Fb=3&a-b=1"),
            ("x=a+b%20c%2Bd", "x=a%20b%20c%2Bd"),
            ("x=/~*&&=v", "=v&x=%2F~%2A"),
            ("x=%2f%zz=", "x=%2F%25zz%3D"),
        ];
        for (raw, expected) in cases {
            assert_eq!(query(raw), expected, "{raw}");
        }
    }

    #[test]
    fn header_values() {
        let cases: [(&[u8], &[u8]); 4] = [
            (b" a  b\t c ", b"a b c"),
            (b"", b""),
            (b"a\r\nb", b"a b"),
            (b"\xff", b"\xff"),
        ];
        for (value, expected) in cases {
            assert_eq!(collapse(value), expected, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn the_path_as_sent_counts_only_where_it_can_not_mean_two_things() {
        let cases: [(&str, &[&str]); 5] = [
            ("/prod__documents", &["/prod__documents"]),
            (
                "/prod%24documents",
                &["/prod%2524documents", "/prod%24documents"],
            ),
            ("/prod$documents", &["/prod%24documents", "/prod$documents"]),
            ("/prod%2524documents", &["/prod%252524documents"]),
            ("/a\nb", &["/a%0Ab"]),
        ];
        for (path, expected) in cases {
            assert_eq!(accepted_uris(path), expected, "{path}");
        }
    }
}
