//! Bodies of the Lance REST namespace (`/lance/v1`), as far as they are served. Names are the
//! namespace specification's; unknown fields are ignored.
//!
//! | module | what it holds |
//! |---|---|
//! | [`namespaces`] | namespaces: create, describe, drop, list |
//! | [`tables`] | tables: declare, register, create, describe, drop, rename, list |
//! | [`versions`] | versions of tables: create, describe, list |
//! | [`columns`] | columns: add, backfill |
//! | [`page`] | pages of listings |

pub mod columns;
pub mod namespaces;
pub mod page;
pub mod tables;
pub mod versions;

use std::collections::BTreeMap;

use crate::error::ApiError;
use crate::fields::Fields;

/// Free-form properties of a namespace or a table.
pub type Properties = BTreeMap<String, String>;

/// Checks the `id` of a body, if there is one, against the names in the path: the specification
/// lets it stand in both and wants them to agree.
pub fn check_body_id(body: &[u8], names: &[&str]) -> Result<(), ApiError> {
    match Fields::parse(body)?.strings("id")? {
        Some(id) if id != names => Err(ApiError::invalid(
            "'id' in the body names something else than the path.",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_body_id;

    #[test]
    fn the_id_stands_in_both_or_in_the_path_alone() {
        let cases = [
            ("", true),
            ("{}", true),
            (r#"{"id":null}"#, true),
            (r#"{"id":["ns","t"]}"#, true),
            (r#"{"id":["ns","u"]}"#, false),
            (r#"{"id":["t"]}"#, false),
            (r#"{"id":"ns$t"}"#, false),
        ];
        for (body, expected) in cases {
            let checked = check_body_id(body.as_bytes(), &["ns", "t"]);
            assert_eq!(checked.is_ok(), expected, "{body}");
        }
    }
}
