//! What a signature is good for: everything that is the same for requests of one signature, as the
//! documentation of the two schemes has it.

use std::collections::BTreeSet;

use lance_maintenance_auth::Scheme;

use crate::message::{Form, Message, UNSIGNED};

/// Two requests of one meaning may have one signature; others must not.
#[derive(Debug, PartialEq, Eq)]
pub struct Meaning {
    method: String,
    path: Vec<Vec<u8>>,
    query: Vec<(String, String)>,
    headers: Vec<(String, Vec<u8>)>,
    authorization: Vec<String>,
    body: Option<Vec<u8>>,
}

impl Meaning {
    /// What a request means that has a signature of this form, which names these headers.
    pub fn of(message: &Message, form: Form, listed: &BTreeSet<String>) -> Self {
        let mut headers: Vec<_> = message
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| is_signed(name, form, listed))
            .map(|(name, given)| {
                let meant = value(&name, given, form, message.scheme);
                (name, meant)
            })
            .collect();
        headers.sort();
        Self {
            method: message.method.clone(),
            path: path(&message.path, form),
            query: query(message.query.as_deref().unwrap_or_default(), form),
            headers,
            authorization: message
                .values("authorization")
                .flat_map(authorization)
                .collect(),
            body: is_body_signed(message, form).then(|| message.body.clone()),
        }
    }
}

/// The headers that a signed request lists.
pub fn listed(message: &Message) -> BTreeSet<String> {
    let in_query = form_urlencoded::parse(message.query.as_deref().unwrap_or_default().as_bytes())
        .filter(|(name, _)| name == "X-Amz-SignedHeaders" || name == "x-oss-additional-headers")
        .map(|(_, value)| value.into_owned());
    let in_header = message
        .values("authorization")
        .flat_map(authorization)
        .filter_map(|part| {
            let (name, list) = part.split_once('=')?;
            name.ends_with("Headers").then(|| list.to_owned())
        });
    let lists: Vec<String> = in_query.chain(in_header).collect();
    lists
        .iter()
        .flat_map(|list| list.split(';'))
        .map(str::to_owned)
        .collect()
}

fn is_signed(name: &str, form: Form, listed: &BTreeSet<String>) -> bool {
    let always = form.is_oss4() && matches!(name, "content-type" | "content-md5");
    always || name.starts_with(form.prefix()) || listed.contains(name)
}

/// Its segments. A presigned AWS4 URL is the only one whose path has one spelling: libraries make
/// those. In the header curl's two spellings are taken, and OSS4 signs what the path decodes to.
fn path(path: &str, form: Form) -> Vec<Vec<u8>> {
    let path = if path.is_empty() { "/" } else { path };
    path.split('/')
        .map(|segment| match form {
            Form::Aws4Query => segment.as_bytes().to_vec(),
            _ => percent_encoding::percent_decode_str(segment).collect(),
        })
        .collect()
}

/// Its pairs, in no order: decoded under AWS4, as they are under OSS4. Hexadecimal digits of a
/// signature have two cases.
fn query(query: &str, form: Form) -> Vec<(String, String)> {
    let pair = |(name, value): (String, String)| match name.as_str() {
        "X-Amz-Signature" | "x-oss-signature" => (name, value.to_ascii_lowercase()),
        _ => (name, value),
    };
    let decoded = |text: &str| {
        form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect::<Vec<_>>()
    };
    let mut pairs: Vec<_> = if form.is_oss4() && !query.is_empty() {
        query
            .split('&')
            .flat_map(|raw| match decoded(raw) {
                signature if signature.iter().any(|(name, _)| name == "x-oss-signature") => {
                    signature
                }
                _ => {
                    let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
                    vec![(name.to_owned(), value.to_owned())]
                }
            })
            .map(pair)
            .collect()
    } else {
        decoded(query).into_iter().map(pair).collect()
    };
    pairs.sort();
    pairs
}

fn value(name: &str, value: &[u8], form: Form, scheme: Scheme) -> Vec<u8> {
    if form.is_oss4() {
        return value.trim_ascii().to_vec();
    }
    if name == "host" {
        let port: &[u8] = match scheme {
            Scheme::Http => b":80",
            Scheme::Https => b":443",
        };
        let host = value.trim_ascii();
        return host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    }
    let words: Vec<&[u8]> = value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(&b' ')
}

/// The scheme and the parts, in no order.
fn authorization(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value.trim_ascii()).into_owned();
    let (scheme, parts) = text.split_once(' ').unwrap_or((&text, ""));
    let mut parts: Vec<String> = parts
        .split(',')
        .map(str::trim_ascii)
        .map(|part| match part.split_once('=') {
            Some(("Signature", digits)) => format!("Signature={}", digits.to_ascii_lowercase()),
            Some(("AdditionalHeaders", list)) => {
                let mut names: Vec<&str> = list.split(';').collect();
                names.sort_unstable();
                format!("AdditionalHeaders={}", names.join(";"))
            }
            _ => part.to_owned(),
        })
        .collect();
    parts.push(scheme.to_owned());
    parts.sort();
    parts
}

/// OSS4 leaves the body out unless a header holds its digest.
fn is_body_signed(message: &Message, form: Form) -> bool {
    let digest = message.values(form.digest_header()).next();
    !form.is_oss4() || digest.is_some_and(|digest| digest.trim_ascii() != UNSIGNED.as_bytes())
}
