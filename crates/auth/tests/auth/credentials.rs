//! How a credential stands, and to whom that is told.

use crate::request::{Form, KEY, NOW, REALM, Request, Signer, credential};
use lance_maintenance_auth::{AuthError, Credential, CredentialStatus, Secret};

const TASKS: &str = "/lance/oss/v1/table/prod%24documents/tasks?delimiter=%24";
const TOKEN: &str = "CAIS/+= token";

fn signed(form: Form, token: Option<&str>) -> Request {
    let signer = Signer {
        token,
        ..Signer::default()
    };
    Request::new("GET", TASKS).sign_with(form, &signer)
}

fn with_token(token: &str) -> Credential {
    Credential {
        session_token: Some(Secret::new(token)),
        ..credential()
    }
}

fn inactive() -> Credential {
    Credential {
        status: CredentialStatus::Inactive,
        ..credential()
    }
}

fn until(expires_at: i64) -> Credential {
    Credential {
        expires_at: Some(expires_at),
        ..credential()
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn standing() {
    for form in Form::ALL {
        let missing = AuthError::MissingToken(form.token());
        let someone_else = Credential { access_key_id: "other-ak".to_owned(), ..credential() };
        let cases = [
            (None, Some(credential()), Ok(())),
            (None, Some(until(NOW + 1)), Ok(())),
            (Some(TOKEN), Some(with_token(TOKEN)), Ok(())),
            (None, None, Err(AuthError::UnknownAccessKey)),
            (None, Some(someone_else), Err(AuthError::UnknownAccessKey)),
            (None, Some(inactive()), Err(AuthError::InactiveAccessKey)),
            (None, Some(until(NOW)), Err(AuthError::ExpiredAccessKey)),
            (None, Some(until(i64::MIN)), Err(AuthError::ExpiredAccessKey)),
            (None, Some(with_token(TOKEN)), Err(missing.clone())),
            (None, Some(with_token("")), Err(missing)),
            (Some(TOKEN), Some(with_token("CAIS")), Err(AuthError::OtherToken)),
            (Some(TOKEN), Some(with_token("")), Err(AuthError::OtherToken)),
            (Some(TOKEN), Some(credential()), Err(AuthError::OtherToken)),
        ];
        for (token, credential, expected) in cases {
            let request = signed(form, token);
            let got = request.verify_for(credential.as_ref(), &REALM, NOW);
            assert_eq!(got, expected, "{form:?} {token:?} {credential:?}");
            assert_eq!(request.access_key_id().as_deref(), Ok(KEY));
        }
    }
}

/// Who does not have the secret learns no more than that.
#[test]
fn only_the_holder_of_the_secret_is_told() {
    for form in Form::ALL {
        let guessed = Signer {
            secret: "guessed",
            ..Signer::default()
        };
        let request = Request::new("GET", TASKS).sign_with(form, &guessed);
        let cases = [
            credential(),
            inactive(),
            until(NOW - 1),
            with_token(TOKEN),
            Credential {
                status: CredentialStatus::Inactive,
                expires_at: Some(0),
                ..with_token(TOKEN)
            },
        ];
        for credential in cases {
            let got = request.verify_for(Some(&credential), &REALM, NOW);
            assert_eq!(got, Err(AuthError::Signature), "{form:?} {credential:?}");
        }
    }
}

/// A token is signed where it belongs, and is not looked at anywhere else.
#[test]
fn tokens_in_other_places() {
    for form in Form::ALL {
        let signed = signed(form, Some(TOKEN));
        let own = with_token(TOKEN);
        for header in ["x-amz-security-token", "x-oss-security-token"] {
            let request = signed.clone().with(header, TOKEN);
            let got = request.verify_for(Some(&own), &REALM, NOW);
            let expected = match form {
                Form::Aws4Header | Form::Oss4Header if header == form.token() => {
                    AuthError::RepeatedHeader(header.to_owned())
                }
                _ => AuthError::Malformed(format!(
                    "it has no place for a session token in the header {header}"
                )),
            };
            assert_eq!(got, Err(expected), "{form:?} {header}");
        }
    }
    for form in Form::IN_HEADER {
        for parameter in ["X-Amz-Security-Token", "x-oss-security-token"] {
            let mut request = signed(form, None);
            request.query = Some(format!("{parameter}=t"));
            assert_eq!(request.verify(), Err(AuthError::SignedTwice), "{form:?}");
        }
    }
}

#[test]
fn a_token_can_not_be_changed_added_or_removed() {
    let own = with_token(TOKEN);
    for form in Form::IN_HEADER {
        let other = signed(form, Some("other")).set(form.token(), Some(TOKEN));
        let got = other.verify_for(Some(&own), &REALM, NOW);
        assert_eq!(got, Err(AuthError::Signature), "{form:?}");

        let added = signed(form, None).with(form.token(), TOKEN);
        let expected = match form {
            Form::Aws4Header => AuthError::UnsignedHeader(form.token().to_owned()),
            _ => AuthError::Signature,
        };
        let got = added.verify_for(Some(&own), &REALM, NOW);
        assert_eq!(got, Err(expected), "{form:?}");

        let removed = signed(form, Some(TOKEN)).set(form.token(), None);
        let expected = match form {
            Form::Aws4Header => AuthError::MissingHeader(form.token().to_owned()),
            _ => AuthError::Signature,
        };
        assert_eq!(removed.verify(), Err(expected), "{form:?}");
    }
    for form in Form::IN_QUERY {
        let pair = format!("&{}=token", form.token());
        let with = signed(form, Some("token"));
        let own = with_token("token");
        let cases = [
            with.clone().requery(&pair, &format!("{pair}s")),
            with.requery(&pair, ""),
            signed(form, None).requery("delimiter=%24", &format!("delimiter=%24{pair}")),
        ];
        for request in cases {
            let got = request.verify_for(Some(&own), &REALM, NOW);
            assert_eq!(got, Err(AuthError::Signature), "{form:?}");
        }
    }
}

#[test]
fn names_and_texts() {
    let cases = [
        (
            AuthError::UnknownAccessKey,
            "InvalidAccessKeyId",
            "The access key is unknown.",
        ),
        (
            AuthError::InactiveAccessKey,
            "InvalidAccessKeyId",
            "The access key is not active.",
        ),
        (
            AuthError::ExpiredAccessKey,
            "InvalidSecurityToken",
            "The access key has expired: get a new one.",
        ),
        (
            AuthError::MissingToken("x-oss-security-token"),
            "InvalidSecurityToken",
            "The session token is missing: the access key needs the one that it came with, in \
             x-oss-security-token.",
        ),
        (
            AuthError::OtherToken,
            "InvalidSecurityToken",
            "The session token is not that of the access key.",
        ),
    ];
    for (error, name, text) in cases {
        assert_eq!(error.name(), name);
        assert_eq!(error.to_string(), text);
    }
}
