//! `{{ name }}` templates, as Spin's manifests have them.

/// A string with application variables in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

impl Template {
    /// Splits a text at its `{{ name }}`; blanks inside the braces don't matter. An opening brace
    /// pair without a closing one is an error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, expression)) = rest.split_once("{{") {
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (name, after) = expression
                .split_once("}}")
                .ok_or_else(|| format!("{text:?} has {{{{ without }}}}"))?;
            parts.push(Part::Variable(name.trim().to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The variables it needs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The text itself, if it needs no variable.
    pub fn literal(&self) -> Option<String> {
        self.render(|_| None)
    }

    /// Its text with every variable replaced, or `None` if `value` does not know one of them.
    pub fn render<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Some(text.as_str()),
                Part::Variable(name) => value(name),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn renders() {
        let value = |name: &str| match name {
            "a" => Some("1"),
            "empty" => Some(""),
            _ => None,
        };
        for (text, expected) in [
            ("", Some("")),
            ("plain", Some("plain")),
            ("{{ a }}", Some("1")),
            ("{{a}}-{{ a}}", Some("1-1")),
            ("x{{ empty }}y", Some("xy")),
            ("{ a }", Some("{ a }")),
            ("}}", Some("}}")),
            ("{{ unknown }}", None),
        ] {
            let rendered = Template::parse(text).unwrap().render(value);
            assert_eq!(rendered.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn refuses_open_braces() {
        assert!(
            Template::parse("a {{ b")
                .unwrap_err()
                .contains("{{ without }}")
        );
    }
}
