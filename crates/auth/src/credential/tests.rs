//! What is read as a credential, and what is shown of it.

use super::*;
use serde_json::json;

const SECRET: &str = "hunter2-hunter2";
const TOKEN: &str = "hunter3-hunter3";

fn parse(value: &Value) -> Result<Credential, PolicyError> {
    Credential::parse(value.to_string().as_bytes())
}

/// The smallest credential with some fields set, or taken out with null.
fn with(fields: Value) -> Value {
    let mut credential = json!({"access_key_id": "ak", "secret_access_key": SECRET});
    for (key, value) in fields.as_object().unwrap() {
        credential[key] = value.clone();
    }
    let map = credential.as_object_mut().unwrap();
    map.retain(|_, value| !value.is_null());
    credential
}

fn full() -> Value {
    with(json!({
        "session_token": TOKEN,
        "user": "alice",
        "status": "inactive",
        "expires_at": "2027-01-01T08:00:00.75+08:00",
        "policy": {
            "Version": "1",
            "Statement": {"Effect": "Allow", "Action": "oss:*", "Resource": "*"},
        },
    }))
}

#[test]
fn reads_all_fields() {
    let got = parse(&full()).unwrap();
    assert_eq!(got.access_key_id, "ak");
    assert_eq!(got.secret_access_key.expose(), SECRET);
    assert_eq!(got.session_token.as_ref().unwrap().expose(), TOKEN);
    assert_eq!(got.user, "alice");
    assert_eq!(got.status, CredentialStatus::Inactive);
    assert_eq!(got.expires_at, Some(1_798_761_600));
    assert_eq!(got.policy.unwrap().as_json(), &full()["policy"]);
}

#[test]
fn two_fields_are_enough() {
    let got = parse(&with(json!({}))).unwrap();
    assert_eq!(got.user, "ak");
    assert_eq!(got.status, CredentialStatus::Active);
    assert!(got.session_token.is_none() && got.expires_at.is_none() && got.policy.is_none());
}

#[test]
fn shows_no_secret() {
    let credential = parse(&full()).unwrap();
    let info = serde_json::to_value(credential.info()).unwrap();
    let expected = json!({
        "access_key_id": "ak",
        "user": "alice",
        "status": "inactive",
        "expires_at": "2027-01-01T00:00:00Z",
        "temporary": true,
        "policy": full()["policy"],
    });
    assert_eq!(info, expected);
    let info = serde_json::to_value(parse(&with(json!({}))).unwrap().info()).unwrap();
    let expected = json!({
        "access_key_id": "ak",
        "user": "ak",
        "status": "active",
        "expires_at": null,
        "temporary": false,
        "policy": null,
    });
    assert_eq!(info, expected);
    for text in [format!("{credential:?}"), format!("{credential:#?}")] {
        assert!(text.contains("alice") && !text.contains("hunter"), "{text}");
    }
}

#[test]
fn what_is_stored_is_read_back() {
    let cases = [
        with(json!({})),
        full(),
        with(json!({"access_key_id": "key+1=:*"})),
        with(json!({"secret_access_key": "a \"quoted\" \\ one"})),
        with(json!({"expires_at": "9999-12-31T23:59:59Z"})),
        with(json!({"expires_at": "0000-01-01T00:00:00Z"})),
        with(json!({"user": "a.b_c-d@e"})),
    ];
    for value in cases {
        let first = parse(&value).unwrap();
        let again = Credential::parse(&first.stored()).unwrap();
        assert_eq!(again.stored(), first.stored(), "{value}");
        assert_eq!(again.info(), first.info(), "{value}");
        assert_eq!(again.expires_at, first.expires_at, "{value}");
        let secrets = |it: &Credential| {
            let token = it.session_token.as_ref().map(|it| it.expose().to_owned());
            (it.secret_access_key.expose().to_owned(), token)
        };
        assert_eq!(secrets(&again), secrets(&first), "{value}");
    }
}

#[test]
fn times_beyond_the_calendar_are_its_ends() {
    let mut credential = parse(&with(json!({}))).unwrap();
    for (at, expected) in [
        (i64::MAX, LAST),
        (253_402_300_800, LAST),
        (253_402_300_799, LAST),
        (0, "1970-01-01T00:00:00Z"),
        (-62_167_219_201, FIRST),
        (i64::MIN, FIRST),
    ] {
        credential.expires_at = Some(at);
        assert_eq!(credential.info().expires_at.as_deref(), Some(expected));
        assert!(Credential::parse(&credential.stored()).is_ok());
    }
}

#[test]
fn limits() {
    let cases = [
        (with(json!({"access_key_id": "a"})), true),
        (with(json!({"access_key_id": "!".repeat(128)})), true),
        (with(json!({"secret_access_key": "12345678"})), true),
        (with(json!({"secret_access_key": " ".repeat(256)})), true),
        (with(json!({"session_token": "t".repeat(1024)})), true),
        (with(json!({"user": "u".repeat(64)})), true),
        (with(json!({"access_key_id": "!".repeat(129)})), false),
        (with(json!({"secret_access_key": "1234567"})), false),
        (with(json!({"secret_access_key": " ".repeat(257)})), false),
        (with(json!({"session_token": "t".repeat(1025)})), false),
        (with(json!({"user": "u".repeat(65)})), false),
    ];
    for (value, good) in cases {
        assert_eq!(parse(&value).is_ok(), good, "{value}");
    }
}

#[test]
fn refuses() {
    let cases = [
        (json!([]), ""),
        (json!({}), "access_key_id"),
        (with(json!({"access_key_id": null})), "access_key_id"),
        (
            with(json!({"secret_access_key": null})),
            "secret_access_key",
        ),
        (with(json!({"access_key_id": ""})), "access_key_id"),
        (with(json!({"access_key_id": "a b"})), "access_key_id"),
        (with(json!({"access_key_id": "a,b"})), "access_key_id"),
        (with(json!({"access_key_id": "a/b"})), "access_key_id"),
        (with(json!({"access_key_id": "\u{e9}"})), "access_key_id"),
        (with(json!({"access_key_id": 1})), "access_key_id"),
        (
            with(json!({"access_key_id": ["hunter2,"]})),
            "access_key_id",
        ),
        (
            with(json!({"secret_access_key": "hunter2"})),
            "secret_access_key",
        ),
        (
            with(json!({"secret_access_key": "hunter2\u{e9}"})),
            "secret_access_key",
        ),
        (
            with(json!({"secret_access_key": "hunter2\t-"})),
            "secret_access_key",
        ),
        (
            with(json!({"secret_access_key": ["hunter2-"]})),
            "secret_access_key",
        ),
        (with(json!({"session_token": ""})), "session_token"),
        (with(json!({"session_token": "hunter 3"})), "session_token"),
        (
            with(json!({"session_token": {"hunter": 3}})),
            "session_token",
        ),
        (with(json!({"user": ""})), "user"),
        (with(json!({"user": "hunter2/"})), "user"),
        (with(json!({"user": "al*"})), "user"),
        (with(json!({"user": false})), "user"),
        (with(json!({"status": "Active"})), "status"),
        (with(json!({"status": true})), "status"),
        (with(json!({"expires_at": "2027-01-01"})), "expires_at"),
        (with(json!({"expires_at": 1_798_761_600})), "expires_at"),
        (
            with(json!({"expires_at": "9999-12-31T23:59:59-01:00"})),
            "expires_at",
        ),
        (with(json!({"token": TOKEN})), "token"),
        (with(json!({"policy": []})), "policy"),
        (
            with(json!({"policy": {"Version": "1"}})),
            "policy.Statement",
        ),
        (
            with(json!({"policy": {"Version": "1", "Statement": [{"Effect": "allow"}]}})),
            "policy.Statement[0].Effect",
        ),
        (
            with(json!({"policy": {"Version": "1", "Statement": {
                "Effect": "Allow", "Action": "*", "Resource": "*", "Principal": "*",
            }}})),
            "policy.Statement.Principal",
        ),
    ];
    for (value, place) in cases {
        let error = parse(&value).unwrap_err();
        assert_eq!(error.place, place, "{value}");
        assert!(!error.to_string().contains("hunter"), "{error}");
        let list = json!([with(json!({"access_key_id": "other"})), value]).to_string();
        let error = Credential::parse_list(list.as_bytes()).unwrap_err();
        let dot = if place.is_empty() { "" } else { "." };
        assert_eq!(error.place, format!("[1]{dot}{place}"), "{value}");
    }
}

#[test]
fn refuses_json_that_is_wrong() {
    let cases = [
        ("{\"secret_access_key\": \"hunter2", "line 1 column 30"),
        ("{\"secret_access_key\": hunter2}", "line 1 column 23"),
        ("{\"secret_access_key\": null}", "secret_access_key"),
        ("{\"user\": \"hunter2\", \"user\": \"hunter2\"}", "user"),
    ];
    for (json, place) in cases {
        let error = Credential::parse(json.as_bytes()).unwrap_err();
        assert_eq!(error.place, place, "{json}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
}

#[test]
fn lists() {
    let (a, b) = (
        with(json!({"access_key_id": "a"})),
        with(json!({"access_key_id": "b"})),
    );
    let upper = with(json!({"access_key_id": "A"}));
    let same_user = with(json!({"access_key_id": "c", "user": "a"}));
    let cases = [
        (json!([]), Ok(0)),
        (json!([a]), Ok(1)),
        (json!([a, b, upper, same_user]), Ok(4)),
        (
            json!([a, b, a]),
            Err("[2].access_key_id: is that of [0] too; every key needs its own"),
        ),
        (a.clone(), Err("must be a list of credentials")),
        (json!([a, []]), Err("[1]: must be an object")),
    ];
    for (value, expected) in cases {
        let got = Credential::parse_list(value.to_string().as_bytes());
        let got = got
            .map(|list| list.len())
            .map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{value}");
    }
}
