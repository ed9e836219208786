//! The parameters of the `Authorization` header.

use crate::error::AuthError;

/// `Credential={key}/{date}/{region}/{service}/{terminator}, SignedHeaders=a;b, Signature={hex}`,
/// in any order, with or without a blank after the commas.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authorization<'a> {
    pub access_key_id: &'a str,
    pub date: &'a str,
    pub region: &'a str,
    pub service: &'a str,
    pub terminator: &'a str,
    /// Lower-case names in the order in which they were signed, each once.
    pub signed_headers: Vec<&'a str>,
    pub signature: [u8; 32],
}

impl<'a> Authorization<'a> {
    /// Parses what follows the scheme's name.
    pub fn parse(parameters: &'a str) -> Result<Self, AuthError> {
        let [mut credential, mut signed_headers, mut signature] = [None; 3];
        for parameter in parameters.split(',') {
            let (name, value) = parameter
                .trim_ascii()
                .split_once('=')
                .ok_or(AuthError::Malformed("it is not a list of name=value"))?;
            let place = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return Err(AuthError::Malformed("it has an unknown part")),
            };
            if place.replace(value).is_some() {
                return Err(AuthError::Malformed("a part is there twice"));
            }
        }
        let (Some(credential), Some(signed_headers), Some(signature)) =
            (credential, signed_headers, signature)
        else {
            return Err(AuthError::Malformed(
                "it needs Credential, SignedHeaders and Signature",
            ));
        };
        // From the right: the scope has no slashes of its own, an access key might.
        let [terminator, service, region, date, access_key_id] = parts_from_right(credential)
            .ok_or(AuthError::Malformed(
                "the credential is not key/date/region/service/aws4_request",
            ))?;
        Ok(Self {
            access_key_id,
            date,
            region,
            service,
            terminator,
            signed_headers: header_names(signed_headers)?,
            signature: parse_signature(signature)?,
        })
    }
}

fn parts_from_right(credential: &str) -> Option<[&str; 5]> {
    let parts: Vec<&str> = credential.rsplitn(5, '/').collect();
    <[&str; 5]>::try_from(parts)
        .ok()
        .filter(|parts| parts.iter().all(|part| !part.is_empty()))
}

fn header_names(list: &str) -> Result<Vec<&str>, AuthError> {
    let names: Vec<&str> = list.split(';').collect();
    let acceptable = names.iter().enumerate().all(|(at, name)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
            && !names[..at].contains(name)
    });
    acceptable.then_some(names).ok_or(AuthError::Malformed(
        "the signed headers are not distinct lower-case names",
    ))
}

fn parse_signature(text: &str) -> Result<[u8; 32], AuthError> {
    let mut signature = [0; 32];
    hex::decode_to_slice(text, &mut signature)
        .map(|()| signature)
        .map_err(|_| AuthError::Malformed("the signature is not 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts() {
        let hex = "0a".repeat(32);
        let cases = [
            format!("Credential=ak/d/r/s/t, SignedHeaders=host;x-amz-date, Signature={hex}"),
            format!("Credential=ak/d/r/s/t,SignedHeaders=host;x-amz-date,Signature={hex}"),
            format!("  Signature={hex} ,\tSignedHeaders=host;x-amz-date,  Credential=ak/d/r/s/t "),
        ];
        for text in &cases {
            let expected = Authorization {
                access_key_id: "ak",
                date: "d",
                region: "r",
                service: "s",
                terminator: "t",
                signed_headers: vec!["host", "x-amz-date"],
                signature: [10; 32],
            };
            assert_eq!(Authorization::parse(text), Ok(expected), "{text}");
        }
        let slashes = format!("Credential=a/k/d/r/s/t, SignedHeaders=host, Signature={hex}");
        assert_eq!(
            Authorization::parse(&slashes).map(|it| it.access_key_id),
            Ok("a/k")
        );
    }

    #[test]
    fn refuses() {
        let hex = "0a".repeat(32);
        let cases = [
            String::new(),
            ",".to_owned(),
            "Credential".to_owned(),
            "Credential=ak/d/r/s/t, SignedHeaders=host".to_owned(),
            format!("Credential=ak/d/r/s/t, Signature={hex}"),
            format!("SignedHeaders=host, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host, Signature={hex}, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host, Signature={hex}, More=1"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host, Signature={hex},"),
            format!("Credential=ak/d/r/s/t SignedHeaders=host Signature={hex}"),
            format!("Credential=d/r/s/t, SignedHeaders=host, Signature={hex}"),
            format!("Credential=/d/r/s/t, SignedHeaders=host, Signature={hex}"),
            format!("Credential=ak/d//s/t, SignedHeaders=host, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host;, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=Host, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host;host, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=ho st, Signature={hex}"),
            format!("Credential=ak/d/r/s/t, SignedHeaders=host, Signature={hex}0a"),
            "Credential=ak/d/r/s/t, SignedHeaders=host, Signature=0a".to_owned(),
            format!(
                "Credential=ak/d/r/s/t, SignedHeaders=host, Signature={}",
                "zz".repeat(32)
            ),
            format!(
                "Credential=ak/d/r/s/t, SignedHeaders=host, Signature={}",
                "\u{e9}".repeat(32)
            ),
        ];
        for text in &cases {
            let got = Authorization::parse(text);
            assert!(
                matches!(got, Err(AuthError::Malformed(_))),
                "{text}: {got:?}"
            );
        }
    }
}
