//! Where requests begin and end on a connection, found beside hyper.
//!
//! Two things can't be seen behind hyper. A fragment is cut off a request's target. And a request with
//! both `Content-Length` and `Transfer-Encoding` may end at two places, and a proxy in front may take
//! the other one: what is a body to it is a request here; hyper goes by `Transfer-Encoding` and drops
//! the length. So this reads along. A chunked body ends its connection, and is therefore not looked
//! into.

use crate::door::Refusal;
use crate::door::limits::{HEAD_SIZE, HEADERS};

/// Bytes that are kept for the next head.
const KEPT: usize = 4096;

const NO_HEAD: Refusal = Refusal::bad("the request's head is malformed");
const NO_LENGTH: Refusal = Refusal::bad("the Content-Length headers are not one number");
const TWO_ENDS: Refusal = Refusal::bad("there are both Content-Length and Transfer-Encoding");
const FRAGMENT: Refusal = Refusal::bad("the request's target has a fragment");

/// What was seen of a connection so far.
#[derive(Default)]
pub struct Framing {
    now: Now,
    /// Of the head that is coming in.
    head: Vec<u8>,
    heads: usize,
    refused: Option<(usize, Refusal)>,
    http2: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Now {
    #[default]
    Head,
    /// So many bytes of a body are to come.
    Body(u64),
    /// No further request is expected.
    Lost,
}

impl Framing {
    /// Takes the next bytes of the connection.
    pub fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match self.now {
                Now::Lost => return,
                Now::Body(left) => self.see_body(left, bytes),
                Now::Head => self.see_head(bytes),
            };
        }
    }

    /// Why the connection's nth request is refused, counted from 0, if it is. What follows it is
    /// refused as well.
    pub fn check(&self, request: usize) -> Result<(), Refusal> {
        match self.refused {
            Some((first, refusal)) if request >= first => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Whether the last request was complete and nothing came after it.
    pub fn is_between_requests(&self) -> bool {
        self.now == Now::Head && self.head.is_empty()
    }

    /// Whether a request has begun whose head is not complete.
    pub fn is_in_head(&self) -> bool {
        self.now == Now::Head && !self.head.is_empty()
    }

    /// Whether the client speaks HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.http2
    }

    fn see_body<'a>(&mut self, left: u64, bytes: &'a [u8]) -> &'a [u8] {
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.now = match left - taken as u64 {
            0 => Now::Head,
            left => Now::Body(left),
        };
        bytes.get(taken..).unwrap_or_default()
    }

    fn see_head<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        if self.head.is_empty() {
            // Empty lines before a request are allowed.
            bytes = bytes.trim_prefix_newlines();
        }
        let before = self.head.len();
        let room = (HEAD_SIZE + 1).saturating_sub(before).min(bytes.len());
        self.head
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        match end_of_head(&self.head, before) {
            Some(end) => {
                self.head.truncate(end);
                self.now = match next(&self.head) {
                    Ok(Now::Body(0)) => Now::Head,
                    Ok(now) => now,
                    Err(refusal) => self.lose(refusal),
                };
                self.heads += 1;
                self.head.clear();
                self.head.shrink_to(KEPT);
                bytes.get(end - before..).unwrap_or_default()
            }
            None => {
                if self.head.len() > HEAD_SIZE {
                    self.now = self.lose(NO_HEAD);
                    self.head = Vec::new();
                }
                &[]
            }
        }
    }

    fn lose(&mut self, refusal: Refusal) -> Now {
        self.refused.get_or_insert((self.heads, refusal));
        self.http2 = self.heads == 0 && self.head.starts_with(b"PRI * HTTP/2.0\r\n");
        Now::Lost
    }
}

trait TrimNewlines {
    fn trim_prefix_newlines(&self) -> &Self;
}

impl TrimNewlines for [u8] {
    fn trim_prefix_newlines(&self) -> &Self {
        let start = self
            .iter()
            .position(|byte| !matches!(byte, b'\r' | b'\n'))
            .unwrap_or(self.len());
        self.get(start..).unwrap_or_default()
    }
}

/// Where a head ends, if it ends after `seen`: behind its empty line, whose line break may lack `\r`.
fn end_of_head(head: &[u8], seen: usize) -> Option<usize> {
    let start = seen.saturating_sub(2);
    let tail = head.get(start..)?;
    (0..tail.len()).find_map(|at| match tail.get(at..)? {
        [b'\n', b'\n', ..] => Some(start + at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(start + at + 3),
        _ => None,
    })
}

/// What follows a head.
fn next(head: &[u8]) -> Result<Now, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(status) if status.is_complete() => {}
        _ => return Err(NO_HEAD),
    }
    if request.path.is_some_and(|target| target.contains('#')) {
        return Err(FRAGMENT);
    }
    let mut length = None;
    let mut is_encoded = false;
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            is_encoded = true;
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let value: u64 = std::str::from_utf8(header.value)
                .ok()
                .and_then(|value| value.parse().ok())
                .ok_or(NO_LENGTH)?;
            if length.is_some_and(|length| length != value) {
                return Err(NO_LENGTH);
            }
            length = Some(value);
        }
    }
    match (is_encoded, length) {
        (true, Some(_)) => Err(TWO_ENDS),
        (true, None) => Ok(Now::Lost),
        (false, length) => Ok(Now::Body(length.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::Framing;

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    const CHUNKED: &str =
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    const BOTH: &str =
        "POST / HTTP/1.1\r\nContent-Length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc";
    const BOTH_SWAPPED: &str =
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-length: 3\r\n\r\nabc";
    const TWO_LENGTHS: &str =
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    const SAME_LENGTHS: &str =
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc";

    #[test]
    fn finds_the_first_request_to_refuse() {
        let mut bare = String::from(POST).replace("\r\n", "\n");
        bare.push_str("\r\n\n");
        let cases: &[(&[&str], Option<usize>, bool)] = &[
            (&[], None, true),
            (&[GET], None, true),
            (&[GET, POST, GET], None, true),
            (&[&bare, GET], None, true),
            (&[SAME_LENGTHS, GET], None, true),
            (&["\r\n\n\r\n", GET], None, true),
            (&[GET, "GET /"], None, false),
            (
                &["POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"],
                None,
                false,
            ),
            (&[GET, CHUNKED], None, false),
            (&[CHUNKED, BOTH], None, false),
            (&[BOTH], Some(0), false),
            (&[BOTH_SWAPPED], Some(0), false),
            (&[GET, POST, BOTH, GET], Some(2), false),
            (&[POST, TWO_LENGTHS], Some(1), false),
            (
                &["POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"],
                Some(0),
                false,
            ),
            (
                &[GET, "GET /?a#b HTTP/1.1\r\nHost: a\r\n\r\n"],
                Some(1),
                false,
            ),
            (&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], Some(0), false),
            (&["\x16\x03\x01\n\n"], Some(0), false),
        ];
        for (requests, refused, between) in cases {
            let bytes = requests.concat();
            for size in [1, 2, 3, 7, 1000] {
                let mut framing = Framing::default();
                for piece in bytes.as_bytes().chunks(size) {
                    framing.see(piece);
                }
                let found = (0..10).find(|request| framing.check(*request).is_err());
                assert_eq!(found, *refused, "{requests:?} by {size}");
                assert_eq!(framing.is_between_requests(), *between, "{requests:?}");
                assert_eq!(framing.is_http2(), bytes.starts_with("PRI"));
            }
        }
    }

    #[test]
    fn keeps_no_endless_head() {
        let mut framing = Framing::default();
        for _ in 0..1 << 16 {
            framing.see(b"GET / HTTP/1.1\r\n");
        }
        assert!(framing.head.is_empty());
        assert!(framing.check(0).is_err());
    }
}
