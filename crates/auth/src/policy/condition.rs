//! Under which conditions a statement applies.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv6Addr};

use chrono::DateTime;
use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;

use super::Request;
use super::error::{Place, PolicyError, shown};
use super::fields::{self, Fields};

const SOURCE_IP: &str = "acs:SourceIp";
const CURRENT_TIME: &str = "acs:CurrentTime";
const SECURE_TRANSPORT: &str = "acs:SecureTransport";

const OPERATORS: &[&str] = &[
    "IpAddress",
    "NotIpAddress",
    "DateLessThan",
    "DateLessThanEquals",
    "DateGreaterThan",
    "DateGreaterThanEquals",
    "Bool",
];

/// One condition: a fact about the request and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// The request came from one of these networks, or from none of them.
    Source { inside: bool, networks: Vec<IpNet> },
    /// The time now is in one of these orders to one of these times.
    Time {
        orders: &'static [Ordering],
        times: Vec<Instant>,
    },
    /// The request came over TLS or it did not.
    Secure(Vec<bool>),
}

/// Seconds since the Unix epoch and nanoseconds.
type Instant = (i64, u32);

impl Condition {
    /// Reads a `Condition`: operators, in them keys, in them values.
    pub(super) fn read_all(value: &Value, place: &Place<'_>) -> Result<Vec<Self>, PolicyError> {
        let fields = Fields::read(value, place, OPERATORS)?;
        OPERATORS
            .iter()
            .filter_map(|operator| {
                let (value, at) = fields.optional(operator)?;
                Some(Self::read(operator, value, &at))
            })
            .collect()
    }

    fn read(operator: &str, value: &Value, place: &Place<'_>) -> Result<Self, PolicyError> {
        use Ordering::{Equal, Greater, Less};
        let time = |orders| {
            let times = values(value, place, CURRENT_TIME, instant)?;
            Ok(Self::Time { orders, times })
        };
        let source = |inside| {
            let networks = values(value, place, SOURCE_IP, network)?;
            Ok(Self::Source { inside, networks })
        };
        match operator {
            "IpAddress" => source(true),
            "NotIpAddress" => source(false),
            "DateLessThan" => time(&[Less]),
            "DateLessThanEquals" => time(&[Less, Equal]),
            "DateGreaterThan" => time(&[Greater]),
            "DateGreaterThanEquals" => time(&[Greater, Equal]),
            _ => Ok(Self::Secure(values(
                value,
                place,
                SECURE_TRANSPORT,
                boolean,
            )?)),
        }
    }

    /// Whether the condition holds; `None` if the fact it is about is not known.
    pub(super) fn holds(&self, request: &Request<'_>) -> Option<bool> {
        match self {
            Self::Source { inside, networks } => {
                let address = request.source_address?.to_canonical();
                let found = networks.iter().any(|network| network.contains(&address));
                Some(found == *inside)
            }
            Self::Time { orders, times } => {
                let now = (request.now_unix_seconds, 0);
                Some(times.iter().any(|time| orders.contains(&now.cmp(time))))
            }
            Self::Secure(values) => Some(values.contains(&request.secure_transport)),
        }
    }
}

/// The values of the one key that fits an operator.
fn values<T>(
    value: &Value,
    place: &Place<'_>,
    key: &str,
    read: fn(&Value, &Place<'_>) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    let fields = Fields::read(value, place, &[key])?;
    let (value, at) = fields.required(key)?;
    fields::one_or_many(value, &at, read)
}

fn network(value: &Value, place: &Place<'_>) -> Result<IpNet, PolicyError> {
    let text = fields::text(value, place)?;
    let network = match text.parse::<IpNet>() {
        Ok(network) => Some(network),
        Err(_) => text.parse::<IpAddr>().ok().map(IpNet::from),
    };
    network.map(canonical).ok_or_else(|| {
        place.error(format!(
            "'{}' is no IP address and no CIDR block like 10.0.0.0/8 or 2001:db8::/32",
            shown(text)
        ))
    })
}

/// A block of IPv4-mapped addresses as the IPv4 block it stands for: sources are looked at so too.
fn canonical(network: IpNet) -> IpNet {
    const MAPPED_BITS: u8 = 96;
    let IpNet::V6(block) = network else {
        return network;
    };
    let mapped: Option<Ipv4Net> = block
        .prefix_len()
        .checked_sub(MAPPED_BITS)
        .zip(Ipv6Addr::to_ipv4_mapped(&block.addr()))
        .and_then(|(bits, address)| Ipv4Net::new(address, bits).ok());
    mapped.map_or(network, IpNet::V4)
}

fn instant(value: &Value, place: &Place<'_>) -> Result<Instant, PolicyError> {
    let text = fields::text(value, place)?;
    DateTime::parse_from_rfc3339(text)
        .map(|time| (time.timestamp(), time.timestamp_subsec_nanos()))
        .map_err(|_| {
            place.error(format!(
                "'{}' is no RFC 3339 time like 2027-01-01T00:00:00Z",
                shown(text)
            ))
        })
}

fn boolean(value: &Value, place: &Place<'_>) -> Result<bool, PolicyError> {
    match value {
        Value::Bool(it) => Ok(*it),
        Value::String(it) if it == "true" => Ok(true),
        Value::String(it) if it == "false" => Ok(false),
        _ => Err(place.error("must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<Vec<Condition>, PolicyError> {
        Condition::read_all(value, &Place::Key(&Place::Root, "Condition"))
    }

    fn holds(value: &Value, source: Option<&str>, now: i64, secure: bool) -> Option<bool> {
        let conditions = read(value).unwrap();
        assert_eq!(conditions.len(), 1);
        conditions[0].holds(&Request {
            account_id: "1234",
            user: "alice",
            action: "oss:GetTable",
            resource: "acs:osstables:local:1234:bucket/b",
            source_address: source.map(|text| text.parse().unwrap()),
            now_unix_seconds: now,
            secure_transport: secure,
        })
    }

    #[test]
    fn addresses() {
        let cases = [
            (json!("10.0.0.0/8"), "10.255.255.255", true),
            (json!("10.0.0.0/8"), "11.0.0.0", false),
            (json!("10.1.2.3/8"), "10.9.9.9", true),
            (json!("10.0.0.1"), "10.0.0.1", true),
            (json!("10.0.0.1"), "10.0.0.2", false),
            (json!(["192.168.0.0/16", "10.0.0.1/32"]), "10.0.0.1", true),
            (json!("0.0.0.0/0"), "203.0.113.9", true),
            (json!("0.0.0.0/0"), "2001:db8::1", false),
            (json!("::/0"), "2001:db8::1", true),
            (json!("::/0"), "10.0.0.1", false),
            (json!("2001:db8::/32"), "2001:db8:ffff::1", true),
            (json!("2001:db8::/32"), "2001:db9::1", false),
            (json!("::1"), "::1", true),
            (json!("10.0.0.0/8"), "::ffff:10.0.0.1", true),
            (json!("10.0.0.0/8"), "::ffff:11.0.0.1", false),
            (json!("::/0"), "::ffff:10.0.0.1", false),
            (json!("::ffff:10.0.0.0/104"), "10.0.0.1", true),
            (json!("::ffff:10.0.0.0/104"), "11.0.0.1", false),
            (json!("::ffff:10.0.0.1"), "::ffff:10.0.0.1", true),
            (json!("::ffff:0:0/96"), "198.51.100.1", true),
            // Not mapped but "compatible", which is another address.
            (json!("10.0.0.0/8"), "::10.0.0.1", false),
        ];
        for (blocks, source, expected) in cases {
            let plain = json!({"IpAddress": {"acs:SourceIp": blocks}});
            let not = json!({"NotIpAddress": {"acs:SourceIp": blocks}});
            let what = format!("{blocks} {source}");
            assert_eq!(
                holds(&plain, Some(source), 0, true),
                Some(expected),
                "{what}"
            );
            assert_eq!(
                holds(&not, Some(source), 0, true),
                Some(!expected),
                "{what}"
            );
            assert_eq!(holds(&plain, None, 0, true), None, "{what}");
            assert_eq!(holds(&not, None, 0, true), None, "{what}");
        }
    }

    #[test]
    fn times() {
        const AT: i64 = 1_798_761_600; // 2027-01-01T00:00:00Z
        let all = [
            "DateLessThan",
            "DateLessThanEquals",
            "DateGreaterThan",
            "DateGreaterThanEquals",
        ];
        let cases = [
            (
                json!("2027-01-01T00:00:00Z"),
                AT - 1,
                [true, true, false, false],
            ),
            (
                json!("2027-01-01T00:00:00Z"),
                AT,
                [false, true, false, true],
            ),
            (
                json!("2027-01-01T00:00:00Z"),
                AT + 1,
                [false, false, true, true],
            ),
            (
                json!("2027-01-01T08:00:00+08:00"),
                AT,
                [false, true, false, true],
            ),
            (
                json!("2027-01-01T00:00:00.5Z"),
                AT,
                [true, true, false, false],
            ),
            (
                json!("2027-01-01T00:00:00.5Z"),
                AT + 1,
                [false, false, true, true],
            ),
            (
                json!(["2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
                AT,
                [true; 4],
            ),
            (
                json!("2027-01-01T00:00:00Z"),
                i64::MIN,
                [true, true, false, false],
            ),
            (
                json!("2027-01-01T00:00:00Z"),
                i64::MAX,
                [false, false, true, true],
            ),
        ];
        for (times, now, expected) in cases {
            let got = all.map(|operator| {
                let value = json!({operator: {"acs:CurrentTime": times}});
                holds(&value, None, now, true).unwrap()
            });
            assert_eq!(got, expected, "{times} {now}");
        }
    }

    #[test]
    fn transports() {
        let cases = [
            (json!("true"), [true, false]),
            (json!(true), [true, false]),
            (json!(["false"]), [false, true]),
            (json!(false), [false, true]),
            (json!(["true", "false"]), [true, true]),
        ];
        for (values, expected) in cases {
            let value = json!({"Bool": {"acs:SecureTransport": values}});
            let got = [true, false].map(|secure| holds(&value, None, 0, secure).unwrap());
            assert_eq!(got, expected, "{values}");
        }
    }

    #[test]
    fn no_condition_is_none() {
        assert_eq!(read(&json!({})), Ok(vec![]));
    }

    #[test]
    fn refuses() {
        let ip = |values: Value| json!({"IpAddress": {"acs:SourceIp": values}});
        let date = |values: Value| json!({"DateLessThan": {"acs:CurrentTime": values}});
        let secure = |values: Value| json!({"Bool": {"acs:SecureTransport": values}});
        let cases = [
            (json!([]), "Condition"),
            (json!({"StringEquals": {}}), "Condition.StringEquals"),
            (json!({"ipAddress": {}}), "Condition.ipAddress"),
            (json!({"IpAddress": {}}), "Condition.IpAddress.acs:SourceIp"),
            (json!({"IpAddress": []}), "Condition.IpAddress"),
            (
                json!({"IpAddress": {"acs:CurrentTime": "1"}}),
                "Condition.IpAddress.acs:CurrentTime",
            ),
            (
                json!({"DateLessThan": {"acs:SourceIp": "::1"}}),
                "Condition.DateLessThan.acs:SourceIp",
            ),
            (
                json!({"Bool": {"acs:secureTransport": "true"}}),
                "Condition.Bool.acs:secureTransport",
            ),
            (ip(json!([])), "Condition.IpAddress.acs:SourceIp"),
            (ip(json!(10)), "Condition.IpAddress.acs:SourceIp"),
            (ip(json!("10.0.0.0/33")), "Condition.IpAddress.acs:SourceIp"),
            (
                ip(json!(["::1", "10.0.0"])),
                "Condition.IpAddress.acs:SourceIp[1]",
            ),
            (
                ip(json!(["::1", "::/129"])),
                "Condition.IpAddress.acs:SourceIp[1]",
            ),
            (ip(json!("*")), "Condition.IpAddress.acs:SourceIp"),
            (ip(json!(" 10.0.0.1")), "Condition.IpAddress.acs:SourceIp"),
            (
                date(json!("2027-01-01")),
                "Condition.DateLessThan.acs:CurrentTime",
            ),
            (
                date(json!("2027-13-01T00:00:00Z")),
                "Condition.DateLessThan.acs:CurrentTime",
            ),
            (
                date(json!("2027-01-01T00:00:00")),
                "Condition.DateLessThan.acs:CurrentTime",
            ),
            (
                date(json!(1_798_761_600)),
                "Condition.DateLessThan.acs:CurrentTime",
            ),
            (secure(json!("True")), "Condition.Bool.acs:SecureTransport"),
            (
                secure(json!(["true", 1])),
                "Condition.Bool.acs:SecureTransport[1]",
            ),
        ];
        for (value, place) in cases {
            let error = read(&value).unwrap_err();
            assert_eq!(error.place, place, "{value} {error}");
        }
    }
}
