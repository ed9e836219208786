//! `allowed_outbound_hosts`: where a component may send requests.

use std::ops::Range;

use http::Uri;

/// One entry, `scheme://host[:port]` with `*` allowed for each, as in Spin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// `None` allows any.
    scheme: Option<String>,
    host: Host,
    /// `None` allows any.
    ports: Option<Range<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Any,
    /// With the dot in front.
    Below(String),
    Exactly(String),
}

/// Why an entry can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("allowed outbound host {entry:?} {reason}")]
pub struct AllowedHostError {
    /// The entry with its variables filled in.
    pub entry: String,
    /// Continues the sentence.
    pub reason: &'static str,
}

impl AllowedHost {
    /// Parses one entry. Without a port the scheme's own port is meant.
    pub fn parse(entry: &str) -> Result<Self, AllowedHostError> {
        Self::parts(entry.trim()).map_err(|reason| AllowedHostError {
            entry: entry.to_owned(),
            reason,
        })
    }

    fn parts(entry: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = entry
            .split_once("://")
            .ok_or("has no scheme: it must be scheme://host[:port]")?;
        let scheme = match scheme {
            "*" => None,
            "http" | "https" => Some(scheme.to_owned()),
            _ => return Err("has a scheme other than http and https, which is not supported"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('/') {
            return Err("has a path or a network mask, which is not supported");
        }
        // The colons of an IPv6 address are inside its brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let ports = match port {
            Some("*") => None,
            Some(port) => Some(parse_ports(port).ok_or("has a port that is not a number")?),
            None => {
                let scheme = scheme
                    .as_deref()
                    .ok_or("needs a port, as its scheme is *")?;
                Some(single(u32::from(default_port(scheme))))
            }
        };
        Ok(Self {
            scheme,
            host: parse_host(host)?,
            ports,
        })
    }

    /// Whether a request to this absolute URI is allowed.
    pub fn allows(&self, uri: &Uri) -> bool {
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return false;
        };
        let port = uri.port_u16().unwrap_or_else(|| default_port(scheme));
        let host = host.to_ascii_lowercase();
        self.scheme
            .as_deref()
            .is_none_or(|allowed| allowed == scheme)
            && match &self.host {
                Host::Any => true,
                Host::Below(suffix) => host.ends_with(suffix.as_str()),
                Host::Exactly(allowed) => *allowed == host,
            }
            && self
                .ports
                .as_ref()
                .is_none_or(|ports| ports.contains(&u32::from(port)))
    }
}

fn parse_host(host: &str) -> Result<Host, &'static str> {
    let host = host.to_ascii_lowercase();
    match host.as_str() {
        "" => Err("has no host"),
        "*" => Ok(Host::Any),
        "self" | "self.alt" => {
            Err("means the application's own address (self), which is not supported")
        }
        _ => match host.strip_prefix("*.") {
            Some(domain) if !domain.contains('*') => Ok(Host::Below(format!(".{domain}"))),
            None if !host.contains(['*', '{']) => Ok(Host::Exactly(host)),
            _ => Err("may have a * only as its first label"),
        },
    }
}

fn parse_ports(port: &str) -> Option<Range<u32>> {
    let number = |text: &str| text.parse::<u16>().ok().map(u32::from);
    match port.split_once("..") {
        Some((first, end)) => Some(number(first)?..number(end)?),
        None => number(port).map(single),
    }
}

fn single(port: u32) -> Range<u32> {
    port..port + 1
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "http" { 80 } else { 443 }
}

#[cfg(test)]
mod tests {
    use super::AllowedHost;

    #[test]
    fn allows() {
        for (entry, uri, expected) in [
            (
                "http://*.spin.internal",
                "http://compact.spin.internal/x",
                true,
            ),
            ("http://*.spin.internal", "http://spin.internal/x", false),
            (
                "http://*.spin.internal",
                "http://compact.spin.internal.evil.com/x",
                false,
            ),
            (
                "http://*.spin.internal",
                "http://compact.spin.internal:81/x",
                false,
            ),
            (
                "http://compact.spin.internal",
                "http://compact.spin.internal/",
                true,
            ),
            (
                "http://compact.spin.internal",
                "http://cleanup.spin.internal/",
                false,
            ),
            ("http://127.0.0.1:*", "http://127.0.0.1:3100/v1", true),
            ("http://127.0.0.1:*", "http://127.0.0.2:3100/v1", false),
            (
                "http://127.0.0.1:*",
                "http://127.0.0.1@127.0.0.2:3100/v1",
                false,
            ),
            ("http://127.0.0.1:3100", "http://127.0.0.1:3100/v1", true),
            ("http://127.0.0.1:3100/", "http://127.0.0.1:3100/v1", true),
            ("http://127.0.0.1:3100", "http://127.0.0.1:3101/v1", false),
            (
                "http://127.0.0.1:3100..3102",
                "http://127.0.0.1:3101/v1",
                true,
            ),
            (
                "http://127.0.0.1:3100..3102",
                "http://127.0.0.1:3102/v1",
                false,
            ),
            ("http://[::1]:3100", "http://[::1]:3100/v1", true),
            ("https://Example.com", "https://example.COM/", true),
            ("https://example.com", "http://example.com:443/", false),
            ("https://example.com", "https://example.com:443/", true),
            ("http://localhost:65535", "http://localhost:65535/", true),
            ("*://*:*", "https://example.com:8443/", true),
            ("*://*:*", "/relative", false),
        ] {
            let allowed = AllowedHost::parse(entry).unwrap();
            assert_eq!(
                allowed.allows(&uri.parse().unwrap()),
                expected,
                "{entry} {uri}"
            );
        }
    }

    #[test]
    fn refuses() {
        for (entry, says) in [
            ("", "no scheme"),
            ("*", "no scheme"),
            ("example.com", "no scheme"),
            ("redis://example.com", "other than http and https"),
            ("http://example.com/path", "path"),
            ("http://10.0.0.0/8", "network mask"),
            ("http://example.com:x", "not a number"),
            ("http://example.com:70000", "not a number"),
            ("*://example.com", "needs a port"),
            ("http://", "no host"),
            ("http://self", "self"),
            ("http://a.*.com", "first label"),
            ("http://*.*.com", "first label"),
        ] {
            let error = AllowedHost::parse(entry).unwrap_err().to_string();
            assert!(error.contains(says), "{entry}: {error}");
        }
    }
}
