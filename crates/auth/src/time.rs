//! The time of a signed request, `yyyymmddThhmmssZ`.

use chrono::{DateTime, Datelike, NaiveDateTime};

const FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// Seconds since 1970 of a time, or `None` if it is not one in exactly this form.
pub(crate) fn parse(text: &str) -> Option<i64> {
    // The parser would take signs and blanks where digits are due.
    let shape = text.len() == 16
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    if !shape {
        return None;
    }
    NaiveDateTime::parse_from_str(text, FORMAT)
        .ok()
        .map(|time| time.and_utc().timestamp())
}

/// A time in this form, or `None` if its year does not have four digits.
pub(crate) fn format(unix_seconds: i64) -> Option<String> {
    let time = DateTime::from_timestamp(unix_seconds, 0)?;
    (0..=9999)
        .contains(&time.year())
        .then(|| time.format(FORMAT).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_form_only() {
        let cases = [
            ("20260728T010203Z", Some(1_785_200_523)),
            ("19700101T000000Z", Some(0)),
            ("00010101T000000Z", Some(-62_135_596_800)),
            ("20240229T235959Z", Some(1_709_251_199)),
            ("20230229T000000Z", None),
            ("20261301T000000Z", None),
            ("20260728T240000Z", None),
            ("20260728T010203", None),
            ("20260728t010203z", None),
            ("+2026728T010203Z", None),
            ("2026 728T010203Z", None),
            ("20260728T010203Z0", None),
            ("2026072\u{661}T10203Z", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
            if let Some(seconds) = expected {
                assert_eq!(format(seconds).as_deref(), Some(text));
            }
        }
        for unwritable in [i64::MIN, i64::MAX, 253_402_300_800, -62_167_219_201] {
            assert_eq!(format(unwritable), None, "{unwritable}");
        }
    }
}
