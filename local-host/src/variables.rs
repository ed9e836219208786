//! The values of the application's variables, and the interface guests read theirs through.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wasmtime::component::{Accessor, HasData};

use crate::bindings::spin::variables::variables::{Error, Host, HostWithStore};
use crate::manifest::{Variable, is_variable_name};
use crate::template::Template;

/// Prefix of the environment variables that give application variables, the same as Spin's.
const ENVIRONMENT_PREFIX: &str = "SPIN_VARIABLE_";

/// Why the variables have no complete set of values.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum VariablesError {
    /// Required variables that nothing gives a value.
    #[error("no value for required variable {}: set it in the variables file or as {}", .0.join(", "), environment_names(.0))]
    Missing(Vec<String>),
    /// The variables file gives one that the manifest does not declare.
    #[error("the variables file gives {0:?}, which is not in the manifest's [variables]")]
    Unknown(String),
}

fn environment_name(name: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", name.to_ascii_uppercase())
}

fn environment_names(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| environment_name(name)).collect();
    names.join(", ")
}

/// The application's variables, each with its value.
#[derive(Clone)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// Takes each value from the environment, else from the variables file, else from the
    /// manifest.
    pub fn resolve(
        declared: &BTreeMap<String, Variable>,
        environment: impl Fn(&str) -> Option<String>,
        mut file: BTreeMap<String, String>,
    ) -> Result<Self, VariablesError> {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for (name, variable) in declared {
            let given = file.remove(name);
            let value = environment(&environment_name(name))
                .or(given)
                .or_else(|| variable.default.clone());
            match value {
                Some(value) => {
                    values.insert(name.clone(), value);
                }
                None => missing.push(name.clone()),
            }
        }
        if let Some(unknown) = file.into_keys().next() {
            return Err(VariablesError::Unknown(unknown));
        }
        if !missing.is_empty() {
            return Err(VariablesError::Missing(missing));
        }
        Ok(Self(values))
    }

    /// Fills a template in; `None` if it needs a variable that is not declared.
    pub fn render(&self, template: &Template) -> Option<String> {
        template.render(|name| self.0.get(name).map(String::as_str))
    }
}

/// What one component sees: its own names, with values.
#[derive(Clone)]
pub struct ComponentVariables {
    component: Arc<str>,
    values: Arc<HashMap<String, String>>,
}

impl ComponentVariables {
    /// A component's variables with their templates already filled in.
    pub fn new(component: Arc<str>, values: HashMap<String, String>) -> Self {
        Self {
            component,
            values: Arc::new(values),
        }
    }

    fn get(&self, name: &str) -> Result<String, Error> {
        if !is_variable_name(name) {
            return Err(Error::InvalidName(format!(
                "{name:?} is not a variable name"
            )));
        }
        self.values.get(name).cloned().ok_or_else(|| {
            Error::Undefined(format!(
                "component {} has no variable {name:?}",
                self.component
            ))
        })
    }
}

impl HasData for ComponentVariables {
    type Data<'a> = &'a mut ComponentVariables;
}

impl Host for ComponentVariables {}

impl<T: Send> HostWithStore<T> for ComponentVariables {
    async fn get(
        accessor: &Accessor<T, Self>,
        name: String,
    ) -> wasmtime::Result<Result<String, Error>> {
        Ok(accessor.with(|mut access| access.get().get(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> BTreeMap<String, Variable> {
        [("region", Some("local")), ("secret", None), ("token", None)]
            .map(|(name, default)| {
                let default = default.map(str::to_owned);
                (name.to_owned(), Variable { default })
            })
            .into()
    }

    fn file(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn environment_before_file_before_default() {
        let environment = |name: &str| (name == "SPIN_VARIABLE_SECRET").then(|| "env".to_owned());
        let file = file(&[("secret", "file"), ("token", "")]);
        let values = Values::resolve(&declared(), environment, file).unwrap();
        for (template, expected) in [
            (
                "{{ region }}/{{ secret }}/{{ token }}.",
                Some("local/env/."),
            ),
            ("{{ other }}", None),
        ] {
            let template = Template::parse(template).unwrap();
            assert_eq!(values.render(&template).as_deref(), expected);
        }
    }

    #[test]
    fn names_what_is_missing_or_unknown() {
        let error = Values::resolve(&declared(), |_| None, BTreeMap::new())
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(text.contains("secret, token"), "{text}");
        assert!(text.contains("SPIN_VARIABLE_TOKEN"), "{text}");

        let error = Values::resolve(&declared(), |_| None, file(&[("tokem", "x")]))
            .err()
            .unwrap();
        assert_eq!(error, VariablesError::Unknown("tokem".to_owned()));
    }

    #[test]
    fn a_component_sees_its_own_names_only() {
        let values = HashMap::from([("region".to_owned(), "local".to_owned())]);
        let variables = ComponentVariables::new("router".into(), values);
        assert_eq!(variables.get("region").unwrap(), "local");
        assert!(matches!(variables.get("token"), Err(Error::Undefined(_))));
        assert!(matches!(
            variables.get("Token!"),
            Err(Error::InvalidName(_))
        ));
    }
}
