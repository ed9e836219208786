//! `spin.toml`, read as far as this host can run it.
//!
//! The structs below are the whole list of what is known. Everything else in a manifest is an
//! error that names its line: a setting that was silently ignored here would behave differently
//! under Spin.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use toml::Spanned;

use crate::allowed_hosts::AllowedHost;
use crate::routes::RoutePattern;
use crate::template::Template;

/// What is wrong with a manifest, and where.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file holds something this host does not know or that contradicts itself.
    #[error("line {line}: {message}")]
    Invalid {
        /// 1-based line of the offending text.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// A manifest that passed every check: names resolve, routes differ, templates parse.
#[derive(Debug)]
pub struct Manifest {
    /// `[application] name`.
    pub application: String,
    /// `[variables]`, by name.
    pub variables: BTreeMap<String, Variable>,
    /// Public routes with the component that serves each.
    pub routes: Vec<(RoutePattern, String)>,
    /// Components that some trigger names, by name. Only these run, as in Spin; the others are
    /// checked and left alone.
    pub components: BTreeMap<String, Component>,
}

/// One application variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The value when nothing else gives one; `None` means that a value is required.
    pub default: Option<String>,
}

/// One component that some trigger names.
#[derive(Debug)]
pub struct Component {
    /// The `.wasm` file, resolved against the manifest's folder.
    pub source: PathBuf,
    /// Where it may send requests; templates are not resolved yet.
    pub allowed_outbound_hosts: Vec<Template>,
    /// Stores it may open.
    pub key_value_stores: Vec<String>,
    /// Its own variables, as templates over the application's.
    pub variables: BTreeMap<String, Template>,
    /// Its environment variables.
    pub environment: BTreeMap<String, String>,
}

impl Manifest {
    /// Reads and checks the manifest at `path`.
    pub fn load(path: &Path) -> Result<Self, ManifestError> {
        let text = std::fs::read_to_string(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder)
    }

    /// Checks a manifest's text; `folder` is what its relative paths start from.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ManifestError> {
        let at = |span: Range<usize>, message: String| ManifestError::Invalid {
            line: line_of(text, span.start),
            message,
        };
        let raw: RawManifest = toml::from_str(text)
            .map_err(|error| at(error.span().unwrap_or(0..0), error.message().to_owned()))?;

        let version = &raw.spin_manifest_version;
        if *version.get_ref() != 2 {
            let message = format!(
                "spin_manifest_version is {}, only 2 is supported",
                version.get_ref()
            );
            return Err(at(version.span(), message));
        }

        let mut variables = BTreeMap::new();
        for (name, variable) in raw.variables {
            let variable = check_variable(&name, variable).map_err(|(s, m)| at(s, m))?;
            variables.insert(name.into_inner(), variable);
        }

        let mut checked = BTreeMap::new();
        for (name, component) in raw.component {
            let component =
                check_component(&name, component, &variables, folder).map_err(|(s, m)| at(s, m))?;
            checked.insert(name.into_inner(), component);
        }

        let mut routes: Vec<(RoutePattern, String)> = Vec::new();
        let mut components = BTreeMap::new();
        for trigger in raw.trigger.http {
            let name = trigger.component.get_ref().clone();
            if let Some(component) = checked.remove(&name) {
                components.insert(name.clone(), component);
            }
            if !components.contains_key(&name) {
                let message = format!("there is no [component.{name}]");
                return Err(at(trigger.component.span(), message));
            }
            let span = trigger.route.span();
            if let RawRoute::Public(route) = trigger.route.into_inner() {
                let pattern = RoutePattern::parse(&route)
                    .map_err(|message| at(span.clone(), format!("route {route:?} {message}")))?;
                if let Some((_, other)) = routes.iter().find(|(known, _)| *known == pattern) {
                    let message = format!("route {route:?} already leads to component {other:?}");
                    return Err(at(span, message));
                }
                routes.push((pattern, name));
            }
        }

        Ok(Self {
            application: raw.application.name,
            variables,
            routes,
            components,
        })
    }
}

type Finding = (Range<usize>, String);

fn check_variable(name: &Spanned<String>, raw: Spanned<RawVariable>) -> Result<Variable, Finding> {
    check_variable_name(name)?;
    let span = name.span();
    let RawVariable {
        default, required, ..
    } = raw.into_inner();
    match (&default, required) {
        (Some(_), true) => {
            let message = format!(
                "variable {name:?} is required and has a default",
                name = name.get_ref()
            );
            Err((span, message))
        }
        (None, false) => {
            let message = format!(
                "variable {name:?} needs a default or required = true",
                name = name.get_ref()
            );
            Err((span, message))
        }
        _ => Ok(Variable { default }),
    }
}

/// Spin's rule for names of variables: lower-case letters, digits and single underscores, a letter
/// first and no underscore last.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
        && !name.ends_with('_')
}

fn check_variable_name(name: &Spanned<String>) -> Result<(), Finding> {
    if is_variable_name(name.get_ref()) {
        return Ok(());
    }
    let message = format!(
        "{:?} is not a variable name: lower-case letters, digits and single underscores",
        name.get_ref()
    );
    Err((name.span(), message))
}

fn check_component(
    name: &Spanned<String>,
    raw: RawComponent,
    variables: &BTreeMap<String, Variable>,
    folder: &Path,
) -> Result<Component, Finding> {
    // The name is the first label of `<component>.spin.internal`.
    let label = name.get_ref();
    if label.is_empty()
        || !label
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        let message =
            format!("component name {label:?}: lower-case letters, digits and hyphens only");
        return Err((name.span(), message));
    }

    let template = |text: Spanned<String>| -> Result<(Range<usize>, Template), Finding> {
        let span = text.span();
        let template =
            Template::parse(text.get_ref()).map_err(|message| (span.clone(), message))?;
        if let Some(unknown) = template.names().find(|name| !variables.contains_key(*name)) {
            let message = format!("there is no variable {unknown:?} in [variables]");
            return Err((span, message));
        }
        Ok((span, template))
    };

    let mut allowed_outbound_hosts = Vec::new();
    for host in raw.allowed_outbound_hosts {
        let (span, host) = template(host)?;
        // A host with variables in it is checked when their values are known.
        if let Some(literal) = host.literal() {
            AllowedHost::parse(&literal).map_err(|error| (span, error.to_string()))?;
        }
        allowed_outbound_hosts.push(host);
    }

    let mut own_variables = BTreeMap::new();
    for (name, value) in raw.variables {
        check_variable_name(&name)?;
        own_variables.insert(name.into_inner(), template(value)?.1);
    }

    Ok(Component {
        source: folder.join(raw.source),
        allowed_outbound_hosts,
        key_value_stores: raw.key_value_stores,
        variables: own_variables,
        environment: raw.environment,
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    before.matches('\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    spin_manifest_version: Spanned<u32>,
    application: RawApplication,
    #[serde(default)]
    variables: BTreeMap<Spanned<String>, Spanned<RawVariable>>,
    #[serde(default)]
    trigger: RawTriggers,
    #[serde(default)]
    component: BTreeMap<Spanned<String>, RawComponent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApplication {
    name: String,
    #[serde(default, rename = "version")]
    _version: de::IgnoredAny,
    #[serde(default, rename = "description")]
    _description: de::IgnoredAny,
    #[serde(default, rename = "authors")]
    _authors: de::IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariable {
    default: Option<String>,
    #[serde(default)]
    required: bool,
    /// No value is ever logged, so secret ones need nothing special.
    #[serde(default, rename = "secret")]
    _secret: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawTriggers {
    #[serde(default)]
    http: Vec<RawHttpTrigger>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHttpTrigger {
    route: Spanned<RawRoute>,
    component: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawComponent {
    source: PathBuf,
    #[serde(default, rename = "description")]
    _description: de::IgnoredAny,
    #[serde(default)]
    allowed_outbound_hosts: Vec<Spanned<String>>,
    #[serde(default)]
    key_value_stores: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default, rename = "build")]
    _build: Option<RawBuild>,
}

/// Accepted and left alone: building is not this host's business.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBuild {
    #[serde(default, rename = "command")]
    _command: de::IgnoredAny,
    #[serde(default, rename = "workdir")]
    _workdir: de::IgnoredAny,
    #[serde(default, rename = "watch")]
    _watch: de::IgnoredAny,
}

/// `route = "/path"` or `route = { private = true }`. By hand, because serde's untagged enums
/// forget where in the file they were.
enum RawRoute {
    Public(String),
    Private,
}

impl<'de> Deserialize<'de> for RawRoute {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RouteVisitor;

        impl<'de> Visitor<'de> for RouteVisitor {
            type Value = RawRoute;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path or { private = true }")
            }

            fn visit_str<E: de::Error>(self, route: &str) -> Result<RawRoute, E> {
                Ok(RawRoute::Public(route.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawRoute, A::Error> {
                let mut private = false;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "private" {
                        return Err(de::Error::unknown_field(&key, &["private"]));
                    }
                    private = map.next_value()?;
                }
                if private {
                    Ok(RawRoute::Private)
                } else {
                    Err(de::Error::custom("a route is a path or { private = true }"))
                }
            }
        }

        deserializer.deserialize_any(RouteVisitor)
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
