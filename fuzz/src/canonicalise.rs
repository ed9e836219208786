//! Requests: whatever they are, they are not believed unless we signed them, and what we signed is
//! good for one meaning.

use arbitrary::Arbitrary;

use crate::Wire;
use crate::change::Change;
use crate::meaning::{Meaning, listed};
use crate::message::{Message, NOW, Signing};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    how: Signing,
    https: bool,
    /// What somebody does to the signed request: each of these, and all of them.
    changes: [Change; 4],
    now: i64,
    /// A request as it is on the wire.
    message: Wire<'a>,
}

/// Says whether there was a request that can be signed, and fails if one is believed that should not be, or the other way round.
pub fn check(input: &Input<'_>) -> bool {
    let Some(message) = Message::read(input.message.0, input.https) else {
        return false;
    };
    for now in [NOW, input.now] {
        let got = message.verify(input.how.token, now);
        assert!(got.is_err(), "believed, and nobody signed it: {message:?}");
    }
    let Ok(signed) = message.unsigned().sign(&input.how) else {
        return false;
    };
    assert_eq!(signed.verify(input.how.token, NOW), Ok(()), "{signed:?}");
    let _ = signed.verify(input.how.token, input.now);
    assert!(signed.verify(!input.how.token, NOW).is_err(), "{signed:?}");
    let listed = listed(&signed);
    let meaning = |message: &Message| Meaning::of(message, input.how.form, &listed);
    let good_for = |changed: &Message| {
        if changed.verify(input.how.token, NOW).is_ok() {
            assert_eq!(meaning(changed), meaning(&signed), "one signature for both");
        }
    };
    let mut changes = input.changes.iter();
    let each = changes
        .clone()
        .filter_map(|change| change.apply(signed.clone()));
    each.for_each(|changed| good_for(&changed));
    let all = changes.try_fold(signed.clone(), |message, change| change.apply(message));
    all.iter().for_each(good_for);
    true
}
