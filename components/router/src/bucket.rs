//! The table bucket of a request, which only its host names (API facts, section 2.1).

use lance_maintenance_api::{ApiError, ErrorName};

/// How hosts name buckets, from the application's variables.
pub struct Rules {
    /// A bucket's host is `{bucket}.{domain}` or `{bucket}-{account_id}.{domain}`.
    pub domain: String,
    /// The account that owns the buckets.
    pub account_id: String,
    /// The bucket of hosts outside the domain; empty for none.
    pub default: String,
    /// The buckets there are.
    pub buckets: Vec<String>,
}

impl Rules {
    /// The bucket that a `Host` header names.
    pub fn find(&self, host: &str) -> Result<String, ApiError> {
        let host = without_port(host)
            .trim_end_matches('.')
            .to_ascii_lowercase();
        let Some(rest) = host.strip_suffix(&self.domain.to_ascii_lowercase()) else {
            return self.default_bucket();
        };
        match rest.strip_suffix('.') {
            Some(label) => self.existing(self.without_account(label)),
            None if rest.is_empty() => Err(self.no_bucket()),
            None => self.default_bucket(),
        }
    }

    fn default_bucket(&self) -> Result<String, ApiError> {
        if self.default.is_empty() {
            Err(self.no_bucket())
        } else {
            self.existing(&self.default)
        }
    }

    /// Bucket names may end in `-` and digits themselves, so only the known account is taken off.
    fn without_account<'a>(&self, label: &'a str) -> &'a str {
        label
            .strip_suffix(self.account_id.as_str())
            .and_then(|label| label.strip_suffix('-'))
            .unwrap_or(label)
    }

    fn existing(&self, bucket: &str) -> Result<String, ApiError> {
        if self.buckets.iter().any(|known| known == bucket) {
            return Ok(bucket.to_owned());
        }
        Err(ApiError::new(
            ErrorName::NoSuchTableBucket,
            "There is no table bucket of this name here.",
        ))
    }

    fn no_bucket(&self) -> ApiError {
        ApiError::new(
            ErrorName::LanceThirdLevelDomainRequired,
            format!(
                "The host must name a table bucket: {{bucket}}.{}.",
                self.domain
            ),
        )
    }
}

/// The host without its port; the colons of an IPv6 address are none.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hosts_name() {
        let with_default = |default: &str| Rules {
            domain: "r.Tables.test".to_owned(),
            account_id: "123".to_owned(),
            default: default.to_owned(),
            buckets: vec!["lance".to_owned(), "logs-2024".to_owned()],
        };
        use ErrorName::{LanceThirdLevelDomainRequired, NoSuchTableBucket};
        let cases = [
            ("lance.r.tables.test", "", Ok("lance")),
            ("lance-123.r.tables.test", "", Ok("lance")),
            ("LANCE-123.R.TABLES.TEST:8080", "", Ok("lance")),
            ("lance.r.tables.test.", "", Ok("lance")),
            ("logs-2024.r.tables.test", "", Ok("logs-2024")),
            ("logs-2024-123.r.tables.test", "", Ok("logs-2024")),
            ("lance-999.r.tables.test", "", Err(NoSuchTableBucket)),
            ("other.r.tables.test", "lance", Err(NoSuchTableBucket)),
            ("a.lance.r.tables.test", "lance", Err(NoSuchTableBucket)),
            (".r.tables.test", "lance", Err(NoSuchTableBucket)),
            ("r.tables.test", "lance", Err(LanceThirdLevelDomainRequired)),
            ("127.0.0.1:3000", "", Err(LanceThirdLevelDomainRequired)),
            ("", "", Err(LanceThirdLevelDomainRequired)),
            ("127.0.0.1:3000", "lance", Ok("lance")),
            ("[::1]:3000", "lance", Ok("lance")),
            ("[::1]", "lance", Ok("lance")),
            ("xr.tables.test", "lance", Ok("lance")),
            ("localhost", "gone", Err(NoSuchTableBucket)),
        ];
        for (host, default, expected) in cases {
            let found = with_default(default).find(host).map_err(|error| error.name);
            assert_eq!(
                found.as_deref().map_err(|name| *name),
                expected,
                "{host} {default}"
            );
        }
    }
}
