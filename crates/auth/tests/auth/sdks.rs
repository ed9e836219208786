//! Requests signed by the signers of others, run with a fixed time: OSS4 in both forms by
//! `TablesSignerV4` of the vendor's Python SDK 1.4.1, presigned AWS4 by `SigV4QueryAuth` of
//! botocore 1.44. Keys and time are those of the API facts, presigned for an hour.

use crate::request::{Form, KEY, NOW, REALM, Request, Signer, credential};
use lance_maintenance_auth::Secret;
use serde::Deserialize;

const OSS4: &str = include_str!("captured/oss4-python-1.4.1.json");
const AWS4: &str = include_str!("captured/aws4-presign-botocore-1.44.json");

/// A request as it goes out.
#[derive(Deserialize)]
struct Captured {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
    token: Option<String>,
    /// What the signer was told to sign too.
    additional: Vec<String>,
}

impl Captured {
    fn read(&self) -> Request {
        let mut request = Request::new(&self.method, &self.target).body(&self.body);
        request.headers.clear();
        self.headers
            .iter()
            .fold(request, |request, (name, value)| request.with(name, value))
    }

    /// The request before it was signed.
    fn unsigned(&self) -> Request {
        let mut request = self.read();
        let added = [
            "authorization",
            "date",
            "x-oss-date",
            "x-oss-content-sha256",
            "x-oss-security-token",
        ];
        request
            .headers
            .retain(|(name, _)| !added.contains(&name.to_ascii_lowercase().as_str()));
        let own = request.query.as_ref().map(|query| {
            let own = query
                .split('&')
                .filter(|pair| !pair.starts_with("x-oss-") && !pair.starts_with("X-Amz-"));
            own.collect::<Vec<_>>().join("&")
        });
        request.query = own;
        request
    }
}

fn cases() -> Vec<(Form, Captured)> {
    let read = |text: &str| serde_json::from_str::<Vec<Captured>>(text).unwrap();
    let oss4 = read(OSS4)
        .into_iter()
        .map(|case| match case.target.contains("x-oss-signature=") {
            true => (Form::Oss4Query, case),
            false => (Form::Oss4Header, case),
        });
    let aws4 = read(AWS4).into_iter().map(|case| (Form::Aws4Query, case));
    oss4.chain(aws4).collect()
}

#[test]
fn their_signatures_verify() {
    for (form, case) in cases() {
        let mut credential = credential();
        credential.session_token = case.token.as_deref().map(Secret::new);
        let request = case.read();
        let got = request.verify_for(Some(&credential), &REALM, NOW);
        assert_eq!(got, Ok(()), "{form:?} {}", case.target);
        assert_eq!(request.access_key_id().as_deref(), Ok(KEY));
    }
}

#[test]
fn our_signatures_are_theirs() {
    for (form, case) in cases() {
        let additional: Vec<&str> = case.additional.iter().map(String::as_str).collect();
        let signer = Signer {
            token: case.token.as_deref(),
            additional: &additional,
            ..Signer::default()
        };
        let ours = case.unsigned().sign_with(form, &signer);
        let theirs = case.read();
        match form {
            Form::Aws4Header | Form::Oss4Header => {
                let name = "authorization";
                assert_eq!(ours.header(name), theirs.header(name), "{}", case.target);
            }
            // The parameters are not in the same order, which is not signed.
            Form::Aws4Query | Form::Oss4Query => {
                let sorted = |request: Request| {
                    let query = request.query.unwrap();
                    let mut pairs: Vec<_> = query.split('&').map(str::to_owned).collect();
                    pairs.sort_unstable();
                    pairs
                };
                assert_eq!(sorted(ours), sorted(theirs), "{}", case.target);
            }
        }
    }
}

/// The table is not of one kind only.
#[test]
fn every_kind_is_among_them() {
    let cases = cases();
    for form in [Form::Aws4Query, Form::Oss4Header, Form::Oss4Query] {
        for token in [false, true] {
            let count = cases
                .iter()
                .filter(|case| case.0 == form && case.1.token.is_some() == token)
                .count();
            assert!(count >= 5, "{form:?} {token}");
        }
    }
    assert!(cases.iter().any(|(_, case)| case.additional.len() > 1));
}
