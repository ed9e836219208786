use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::{Fields, choose};

/// The kinds of index on values and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum ScalarIndexType {
    /// Sorted pages: equality and ranges.
    Btree,
    /// A bitmap per value, for columns with few different values.
    Bitmap,
    /// A bitmap per element of a list.
    #[serde(rename = "LABEL_LIST")]
    LabelList,
    /// Full-text search.
    Inverted,
    /// Substrings of a text.
    Ngram,
    /// Smallest and largest value per zone.
    Zonemap,
    /// A Bloom filter per zone.
    Bloomfilter,
}

impl ScalarIndexType {
    const CHOICES: [(&str, Self); 8] = [
        ("BTREE", Self::Btree),
        ("BITMAP", Self::Bitmap),
        ("LABEL_LIST", Self::LabelList),
        ("INVERTED", Self::Inverted),
        ("FTS", Self::Inverted),
        ("NGRAM", Self::Ngram),
        ("ZONEMAP", Self::Zonemap),
        ("BLOOMFILTER", Self::Bloomfilter),
    ];

    /// The type's name, as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        Self::CHOICES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(word, _)| word)
    }
}

/// Parameters of `lance_scalar_index` (API facts, section 7.1). The options of one index type are
/// present for that type and absent for the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalarIndexParams {
    /// The column to index.
    pub column: String,
    /// The kind of index.
    pub index_type: ScalarIndexType,
    /// The index's name; empty for `{column}_idx`.
    pub name: String,
    /// Whether an index of this name is replaced; if not, its being there is a failure.
    pub replace: bool,
    /// INVERTED: whether positions are kept, for phrase queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_position: Option<bool>,
    /// INVERTED: how texts are cut into tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_tokenizer: Option<String>,
    /// INVERTED: the language of stemming and stop words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// INVERTED: tokens of more characters are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_token_length: Option<i64>,
    /// INVERTED: whether case is folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_case: Option<bool>,
    /// INVERTED: whether words are reduced to their stem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stem: Option<bool>,
    /// INVERTED: whether stop words are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_stop_words: Option<bool>,
    /// INVERTED: whether accents are folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ascii_folding: Option<bool>,
    /// ZONEMAP: rows per zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_per_zone: Option<i64>,
    /// BTREE: rows per page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_size: Option<i64>,
}

impl ScalarIndexParams {
    /// Parses a request body. Options of other index types are checked and left out.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let index_type = choose(
            "index_type",
            fields.string("index_type")?.unwrap_or("BTREE"),
            &ScalarIndexType::CHOICES,
            str::eq_ignore_ascii_case,
        )?;
        let is = |kind| index_type == kind;
        let text = is(ScalarIndexType::Inverted);
        let flag = |name, default| -> Result<Option<bool>, ApiError> {
            let value = fields.boolean(name)?.unwrap_or(default);
            Ok(text.then_some(value))
        };
        let tokenizer = fields.string("base_tokenizer")?.unwrap_or("simple");
        check_tokenizer(tokenizer)?;
        // Parts of words have no stem and are no stop words.
        let words = tokenizer != "ngram";
        let language = fields.string("language")?.unwrap_or("English");
        let max_token_length = fields.integer_from("max_token_length", 0)?.unwrap_or(40);
        let rows_per_zone = fields.integer_from("rows_per_zone", 1)?.unwrap_or(8192);
        let zone_size = fields.integer_from("zone_size", 1)?.unwrap_or(4096);
        Ok(Self {
            column: fields.required_string("column")?.to_owned(),
            index_type,
            name: fields
                .string_of(&["name", "index_name"])?
                .unwrap_or_default()
                .to_owned(),
            replace: fields.boolean("replace")?.unwrap_or(true),
            with_position: flag("with_position", false)?,
            base_tokenizer: text.then(|| tokenizer.to_owned()),
            language: text.then(|| language.to_owned()),
            max_token_length: text.then_some(max_token_length),
            lower_case: flag("lower_case", true)?,
            stem: flag("stem", words)?,
            remove_stop_words: flag("remove_stop_words", words)?,
            ascii_folding: flag("ascii_folding", true)?,
            rows_per_zone: is(ScalarIndexType::Zonemap).then_some(rows_per_zone),
            zone_size: is(ScalarIndexType::Btree).then_some(zone_size),
        })
    }
}

fn check_tokenizer(text: &str) -> Result<(), ApiError> {
    const TOKENIZERS: [&str; 6] = ["simple", "whitespace", "raw", "ngram", "icu", "icu/split"];
    if TOKENIZERS.contains(&text) || text.starts_with("lindera/") || text.starts_with("jieba/") {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "'base_tokenizer' must be one of {}, lindera/<model> or jieba/<model>.",
        TOKENIZERS.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored() {
        let cases = [
            (
                r#"{"column":"id"}"#,
                r#"{"column":"id","index_type":"BTREE","name":"","replace":true,"zone_size":4096}"#,
            ),
            (
                r#"{"column":"c","index_type":"label_list","index_name":"x","replace":false}"#,
                r#"{"column":"c","index_type":"LABEL_LIST","name":"x","replace":false}"#,
            ),
            (
                r#"{"column":"t","index_type":"fts"}"#,
                r#"{"column":"t","index_type":"INVERTED","name":"","replace":true,"with_position":false,"base_tokenizer":"simple","language":"English","max_token_length":40,"lower_case":true,"stem":true,"remove_stop_words":true,"ascii_folding":true}"#,
            ),
            (
                r#"{"column":"z","index_type":"ZONEMAP","stem":true}"#,
                r#"{"column":"z","index_type":"ZONEMAP","name":"","replace":true,"rows_per_zone":8192}"#,
            ),
        ];
        for (body, stored) in cases {
            let params = ScalarIndexParams::parse(body.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), stored, "{body}");
        }
        let ngram = ScalarIndexParams::parse(
            br#"{"column":"t","index_type":"INVERTED","base_tokenizer":"ngram"}"#,
        )
        .unwrap();
        assert_eq!(
            (ngram.stem, ngram.remove_stop_words),
            (Some(false), Some(false))
        );
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"column":""}"#,
            r#"{"column":7}"#,
            r#"{"column":"c","index_type":""}"#,
            r#"{"column":"c","index_type":"IVF_PQ"}"#,
            r#"{"column":"c","index_type":"ZONEMAP","rows_per_zone":0}"#,
            r#"{"column":"c","zone_size":-1}"#,
            r#"{"column":"c","index_type":"FTS","base_tokenizer":"words"}"#,
            r#"{"column":"c","index_type":"FTS","max_token_length":-1}"#,
            r#"{"column":"c","replace":"no"}"#,
            r#"{"column":"c","index_type":"BITMAP","stem":1}"#,
        ] {
            let error = ScalarIndexParams::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.name, crate::ErrorName::InvalidInput, "{body}");
        }
    }
}
