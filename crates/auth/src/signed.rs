//! Requests whose signature was read, and what it takes to believe them.

use crate::claim::Claim;
use crate::credential::{Credential, CredentialStatus};
use crate::dialect::{Algorithm, SERVICE};
use crate::error::AuthError;
use crate::mac;
use crate::request::RequestParts;
use crate::{oss4, sigv4};

/// What a signature has to name: the table bucket that a request went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Realm<'a> {
    /// The region of the bucket, `cn-hangzhou`.
    pub region: &'a str,
    /// The account that owns the bucket. AWS4 does not name it, and signs `host` instead.
    pub account_id: &'a str,
    /// The bucket's name. AWS4 does not name it, and signs `host` instead.
    pub bucket: &'a str,
}

/// A request whose signature was read and is not believed yet.
pub struct SignedRequest<'a> {
    request: RequestParts<'a>,
    claim: Claim,
}

/// Reads the signature of a request, in either scheme, in a header or in the query. Fails if there
/// is none, several, or one that can't be read.
pub fn read<'a>(request: &'a RequestParts<'a>) -> Result<SignedRequest<'a>, AuthError> {
    let claim = Claim::read(request)?;
    match claim.dialect().algorithm {
        Algorithm::Aws4 => sigv4::check_coverage(request, &claim)?,
        Algorithm::Oss4 => oss4::check_wire(request)?,
    }
    Ok(SignedRequest {
        request: *request,
        claim,
    })
}

impl SignedRequest<'_> {
    /// The access key that the request says it is signed with.
    pub fn access_key_id(&self) -> &str {
        &self.claim.access_key_id
    }

    /// Checks that the holder of this credential signed the request, for this realm and about now
    /// (seconds since 1970), that nothing signed has changed since, and that the credential is good
    /// with the session token of the request. `None` is for an access key that nobody has.
    ///
    /// The order of the checks is that of the API facts: key, scope, body, time, signed headers,
    /// signature. How a credential stands (inactive, expired, another token) is told last, to who
    /// has the secret: to others the signature does not match.
    pub fn verify(
        &self,
        credential: Option<&Credential>,
        realm: &Realm<'_>,
        now_unix_seconds: i64,
    ) -> Result<(), AuthError> {
        let Self { request, claim } = self;
        let credential = credential
            .filter(|credential| credential.access_key_id == claim.access_key_id)
            .ok_or(AuthError::UnknownAccessKey)?;
        if claim.scope.region != realm.region {
            return Err(AuthError::OtherRegion(realm.region.to_owned()));
        }
        if claim.scope.service != SERVICE {
            return Err(AuthError::OtherService);
        }
        let payload = match claim.dialect().algorithm {
            Algorithm::Aws4 => sigv4::payload(request)?,
            Algorithm::Oss4 => oss4::payload(request)?,
        };
        claim.validity.check(now_unix_seconds)?;
        let signable = match claim.dialect().algorithm {
            Algorithm::Aws4 => sigv4::canonical_requests(request, claim, &payload)?,
            Algorithm::Oss4 => vec![oss4::canonical_request(
                request,
                &claim.headers,
                &payload,
                realm,
            )?],
        };
        let key = claim.scope.key(&credential.secret_access_key);
        let verifies = signable.iter().any(|canonical_request| {
            let text = claim.scope.string_to_sign(&claim.date, canonical_request);
            key.verifies(&text, &claim.signature)
        });
        if !verifies {
            return Err(AuthError::Signature);
        }
        self.check_standing(credential, now_unix_seconds)
    }

    /// Whether a credential may be used, now that its holder has shown the secret.
    fn check_standing(&self, credential: &Credential, now: i64) -> Result<(), AuthError> {
        if credential.status != CredentialStatus::Active {
            return Err(AuthError::InactiveAccessKey);
        }
        if credential.expires_at.is_some_and(|end| end <= now) {
            return Err(AuthError::ExpiredAccessKey);
        }
        match (&credential.session_token, &self.claim.token) {
            (None, None) => Ok(()),
            (Some(own), Some(sent)) if mac::same(own.expose(), sent.expose()) => Ok(()),
            (Some(_), None) => Err(AuthError::MissingToken(self.token_name())),
            (_, Some(_)) => Err(AuthError::OtherToken),
        }
    }

    /// Where the session token has to be.
    fn token_name(&self) -> &'static str {
        let dialect = self.claim.dialect();
        match self.claim.is_in_query() {
            true => dialect.query.token,
            false => dialect.token_header,
        }
    }
}
