//! The API's timestamp format: ISO 8601 with six fraction digits and `+00:00`
//! (API facts, section 8).

use chrono::DateTime;

/// Formats microseconds since the Unix epoch, for example `2026-09-18T04:00:00.000000+00:00`.
/// An instant that no calendar holds gives the empty string, as an absent time does.
pub fn format_micros(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map(|time| time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::format_micros;

    #[test]
    fn six_digits_and_a_numeric_offset() {
        let cases = [
            (1_789_704_000_000_000, "2026-09-18T04:00:00.000000+00:00"),
            (1_789_704_000_000_001, "2026-09-18T04:00:00.000001+00:00"),
            (0, "1970-01-01T00:00:00.000000+00:00"),
            (i64::MAX, ""),
        ];
        for (micros, text) in cases {
            assert_eq!(format_micros(micros), text, "{micros}");
        }
    }
}
