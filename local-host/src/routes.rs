//! Which component a path leads to.

/// The path of one `route` in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePattern {
    /// Without a slash at its end: `/` is the empty string.
    prefix: String,
    /// Whether everything below the prefix matches too (`/...`).
    wildcard: bool,
}

impl RoutePattern {
    /// Parses `/exact` and `/prefix/...`. The error continues a sentence that starts with the
    /// route.
    pub fn parse(route: &str) -> Result<Self, &'static str> {
        if !route.starts_with('/') {
            return Err("does not start with /");
        }
        let (prefix, wildcard) = match route.strip_suffix("/...") {
            Some(prefix) => (prefix, true),
            None => (without_trailing_slash(route), false),
        };
        for segment in prefix.split('/') {
            match segment {
                "..." | "*" => return Err("has a wildcard that is not `/...` and only at the end"),
                _ if segment.starts_with(':') => {
                    return Err("has a parameter, which is not supported");
                }
                _ => {}
            }
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            wildcard,
        })
    }

    /// The route as the manifest writes it.
    pub fn route(&self) -> String {
        match (self.wildcard, self.prefix.as_str()) {
            (true, prefix) => format!("{prefix}/..."),
            (false, "") => "/".to_owned(),
            (false, prefix) => prefix.to_owned(),
        }
    }

    /// The part of `path` that the wildcard stands for, or `None` if the path does not match. A
    /// slash at the end of the path makes no difference to whether it matches, as in Spin.
    fn matches<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.prefix.as_str())?;
        match rest {
            "" => Some(""),
            "/" if self.wildcard => Some("/"),
            "/" => Some(""),
            _ if self.wildcard && rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }
}

fn without_trailing_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// All public routes of an application.
#[derive(Debug)]
pub struct Router {
    /// Most specific first.
    routes: Vec<(RoutePattern, String)>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub struct RouteMatch<'r, 'p> {
    /// The component's name.
    pub component: &'r str,
    /// The pattern that matched.
    pub pattern: &'r RoutePattern,
    /// What the wildcard stands for; empty for an exact route.
    pub path_info: &'p str,
}

impl Router {
    /// Orders routes as Spin does: an exact route before a wildcard, a longer prefix before a
    /// shorter one.
    pub fn new(mut routes: Vec<(RoutePattern, String)>) -> Self {
        routes.sort_by_key(|(pattern, _)| {
            let depth = pattern.prefix.matches('/').count();
            (pattern.wildcard, std::cmp::Reverse(depth))
        });
        Self { routes }
    }

    /// Finds the component for a raw path (no query, nothing decoded).
    pub fn route<'p>(&self, path: &'p str) -> Option<RouteMatch<'_, 'p>> {
        self.routes.iter().find_map(|(pattern, component)| {
            Some(RouteMatch {
                component,
                pattern,
                path_info: pattern.matches(path)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{RoutePattern, Router};

    #[test]
    fn finds_the_most_specific() {
        let router = Router::new(
            [
                ("/...", "all"),
                ("/one/...", "one"),
                ("/one/two/...", "two"),
                ("/one", "exact"),
                ("/healthz", "health"),
            ]
            .map(|(route, name)| (RoutePattern::parse(route).unwrap(), name.to_owned()))
            .to_vec(),
        );
        for (path, component, path_info) in [
            ("/", "all", "/"),
            ("/healthz", "health", ""),
            ("/healthz/", "health", ""),
            ("/healthz2", "all", "/healthz2"),
            ("/one", "exact", ""),
            ("/one/", "exact", ""),
            ("/one/x", "one", "/x"),
            ("/one/two", "two", ""),
            ("/one/two/", "two", "/"),
            ("/one/two/x%2Fy/", "two", "/x%2Fy/"),
            ("/onetwo", "all", "/onetwo"),
            ("/..%2fone", "all", "/..%2fone"),
        ] {
            let found = router.route(path).unwrap();
            assert_eq!(
                (found.component, found.path_info),
                (component, path_info),
                "{path}"
            );
        }
    }

    #[test]
    fn an_exact_root_leaves_the_rest_unmatched() {
        let router = Router::new(vec![(RoutePattern::parse("/").unwrap(), "root".to_owned())]);
        assert_eq!(router.route("/").unwrap().component, "root");
        assert_eq!(router.route("/x"), None);
        assert_eq!(router.route("*"), None);
    }

    #[test]
    fn writes_routes_as_the_manifest_does() {
        for route in ["/", "/a", "/a/...", "/..."] {
            assert_eq!(RoutePattern::parse(route).unwrap().route(), route);
        }
    }
}
