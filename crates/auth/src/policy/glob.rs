//! Wildcards: `*` stands for any run of characters, `?` for one.

/// Whether a pattern matches all of a text. RAM has no way to write a literal `*` or `?`.
///
/// A `*` takes as little as possible, and only the last one that was met is ever tried again: what
/// comes before it has matched as early as it can. So there is no recursion, and the steps are at
/// most the product of the lengths.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    run(pattern, text, |a, b| a == b)
}

/// The same, whatever the case of ASCII letters.
pub(super) fn matches_in_any_case(pattern: &str, text: &str) -> bool {
    run(pattern, text, |a, b| a.eq_ignore_ascii_case(&b))
}

fn run(pattern: &str, text: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut last_star = None;
    loop {
        match (pattern.next(), text.clone().next()) {
            (Some('*'), _) => last_star = Some((pattern.clone(), text.clone())),
            (Some(wanted), Some(given)) if wanted == '?' || same(wanted, given) => {
                text.next();
            }
            (None, None) => return true,
            // The text has ended too early, and a longer run for the star would end it earlier.
            (Some(_), None) => return false,
            (_, Some(_)) => {
                let Some((after, run)) = &mut last_star else {
                    return false;
                };
                run.next();
                (pattern, text) = (after.clone(), run.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_texts_match() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "acs:a/b", true),
            ("**", "a", true),
            ("?", "", false),
            ("?", "a", true),
            ("?", "\u{4e2d}", true),
            ("?", "ab", false),
            ("*?", "", false),
            ("?*", "a", true),
            ("a", "A", false),
            ("ab", "a", false),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("*ab", "aab", true),
            ("a*b", "ab", true),
            ("a*b", "a/:b", true),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "acb", false),
            ("*a*a*", "a", false),
            ("*aab", "aaaab", true),
            ("bucket/b/table/*", "bucket/b", false),
            ("bucket/b/table/*", "bucket/b/table/", true),
            ("bucket/b*", "bucket/b/table/x", true),
            ("\u{e9}*", "\u{e9}\u{e8}", true),
            ("*\u{a9}", "\u{e9}", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(matches_in_any_case("OSS:get*", "oss:GetTable"));
        assert!(!matches_in_any_case("\u{c9}", "\u{e9}"));
    }

    /// What would take a backtracking matcher longer than anybody lives.
    #[test]
    fn many_stars_end_soon() {
        let pattern = "*a".repeat(500) + "*b";
        assert!(!matches(&pattern, &"a".repeat(4096)));
        assert!(matches(&pattern, &("a".repeat(4096) + "b")));
    }

    /// The definition, with no thought for time.
    fn reference(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|run| reference(rest, &text[run..])),
            Some((wanted, rest)) => text.split_first().is_some_and(|(given, others)| {
                (*wanted == '?' || wanted == given) && reference(rest, others)
            }),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn equals_the_definition(pattern in "[ab\u{e9}*?]{0,10}", text in "[ab\u{e9}]{0,12}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = reference(&characters(&pattern), &characters(&text));
            prop_assert_eq!(matches(&pattern, &text), expected);
            let upper = pattern.to_ascii_uppercase();
            prop_assert_eq!(matches_in_any_case(&upper, &text), expected);
        }

        #[test]
        fn a_text_with_holes_matches_itself(text in "[^*?]{0,40}", from in 0..40usize, to in 0..40usize) {
            let characters: Vec<char> = text.chars().collect();
            let (from, to) = (from.min(to).min(characters.len()), to.max(from).min(characters.len()));
            let around = |middle: &str| {
                let side = |part: &[char]| part.iter().collect::<String>();
                side(&characters[..from]) + middle + &side(&characters[to..])
            };
            prop_assert!(matches(&text, &text));
            prop_assert!(matches(&around("*"), &text));
            prop_assert!(matches(&around(&"?".repeat(to - from)), &text));
            prop_assert!(!matches(&around(&"?".repeat(to - from + 1)), &text));
        }
    }
}
