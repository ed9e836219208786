use std::path::{Path, PathBuf};

use super::Manifest;

const GOOD: &str = r#"
spin_manifest_version = 2

[application]
name = "lance"
version = "1.0.0"
description = "a test"
authors = ["someone"]

[variables]
region = { default = "local" }
worker_url = { default = "http://127.0.0.1:3100" }
token = { required = true, secret = true }

[[trigger.http]]
route = "/..."
component = "router"

[[trigger.http]]
route = { private = true }
component = "compact"

[component.router]
source = "target/router.wasm"
description = "in front"
allowed_outbound_hosts = ["http://*.spin.internal", "{{ worker_url }}"]
environment = { RUST_BACKTRACE = "0" }
[component.router.variables]
region = "{{ region }}"
[component.router.build]
command = "cargo build"
workdir = "."
watch = ["src"]

[component.compact]
source = "target/compact.wasm"
key_value_stores = ["default"]

[component.unused]
source = "target/unused.wasm"
"#;

#[test]
fn reads_what_it_knows() {
    let manifest = Manifest::parse(GOOD, Path::new("/app")).unwrap();
    assert_eq!(manifest.application, "lance");
    assert_eq!(
        manifest
            .routes
            .iter()
            .map(|(_, name)| name.as_str())
            .collect::<Vec<_>>(),
        ["router"]
    );
    assert_eq!(
        manifest.components.keys().collect::<Vec<_>>(),
        ["compact", "router"]
    );
    let router = &manifest.components["router"];
    assert_eq!(router.source, PathBuf::from("/app/target/router.wasm"));
    assert_eq!(router.environment["RUST_BACKTRACE"], "0");
    assert_eq!(manifest.components["compact"].key_value_stores, ["default"]);
    assert_eq!(manifest.variables["token"].default, None);
}

/// Text that replaces a piece of the good manifest, and what the error has to say.
#[test]
fn refuses_with_the_line() {
    let cases = [
        // what is replaced            by what                                    line  says
        (
            "spin_manifest_version = 2",
            "spin_manifest_version = 1",
            2,
            "only 2 is supported",
        ),
        (
            "spin_manifest_version = 2",
            "spin_manifest_version = 2\nother = 1",
            3,
            "unknown field `other`",
        ),
        (
            "name = \"lance\"",
            "name = \"lance\"\ntrigger = {}",
            6,
            "unknown field `trigger`",
        ),
        ("name = \"lance\"", "", 4, "missing field `name`"),
        ("description = \"a test\"", "description = = 1", 7, "="),
        (
            "region = { default = \"local\" }",
            "region = {}",
            11,
            "needs a default or required = true",
        ),
        (
            "region = { default = \"local\" }",
            "region = { default = \"a\", required = true }",
            11,
            "required and has a default",
        ),
        (
            "region = { default = \"local\" }",
            "Region = { default = \"a\" }",
            11,
            "not a variable name",
        ),
        (
            "region = { default = \"local\" }",
            "region = { default = \"a\", type = \"x\" }",
            11,
            "unknown field `type`",
        ),
        (
            "region = { default = \"local\" }",
            "region = { default = 7 }",
            11,
            "invalid type: integer",
        ),
        ("route = \"/...\"", "route = \"/:id\"", 16, "parameter"),
        ("route = \"/...\"", "route = \"a/b\"", 16, "start with /"),
        (
            "route = \"/...\"",
            "route = \"/a/.../b\"",
            16,
            "only at the end",
        ),
        (
            "route = \"/...\"",
            "route = 5",
            16,
            "a path or { private = true }",
        ),
        (
            "route = \"/...\"",
            "route = \"/...\"\nexecutor = { type = \"wagi\" }",
            17,
            "unknown field `executor`",
        ),
        (
            "route = { private = true }",
            "route = { private = false }",
            20,
            "private = true",
        ),
        (
            "route = { private = true }",
            "route = { hidden = true }",
            20,
            "unknown field `hidden`",
        ),
        (
            "route = { private = true }",
            "route = \"/...\"",
            20,
            "already leads to component \"router\"",
        ),
        (
            "component = \"compact\"",
            "component = \"kompakt\"",
            21,
            "no [component.kompakt]",
        ),
        (
            "component = \"compact\"",
            "component = { source = \"a.wasm\" }",
            21,
            "invalid type: map",
        ),
        (
            "[[trigger.http]]\nroute = \"/...\"",
            "[[trigger.redis]]\nroute = \"/...\"",
            15,
            "unknown field `redis`",
        ),
        (
            "source = \"target/compact.wasm\"",
            "source = { url = \"http://x\", digest = \"y\" }",
            36,
            "invalid type: map",
        ),
        (
            "source = \"target/compact.wasm\"",
            "source = \"c.wasm\"\nfiles = [\"a\"]",
            37,
            "unknown field `files`",
        ),
        (
            "source = \"target/compact.wasm\"",
            "source = \"c.wasm\"\nsqlite_databases = [\"default\"]",
            37,
            "unknown field `sqlite_databases`",
        ),
        (
            "\"{{ worker_url }}\"",
            "\"{{ worker }}\"",
            26,
            "no variable \"worker\"",
        ),
        (
            "\"{{ worker_url }}\"",
            "\"{{ worker_url\"",
            26,
            "{{ without }}",
        ),
        ("\"{{ worker_url }}\"", "\"example.com\"", 26, "no scheme"),
        ("\"{{ worker_url }}\"", "\"http://self\"", 26, "self"),
        (
            "region = \"{{ region }}\"",
            "region = \"{{ regio }}\"",
            29,
            "no variable \"regio\"",
        ),
        (
            "region = \"{{ region }}\"",
            "REGION = \"{{ region }}\"",
            29,
            "not a variable name",
        ),
        (
            "workdir = \".\"",
            "shell = \".\"",
            32,
            "unknown field `shell`",
        ),
        (
            "[component.unused]",
            "[component.\"un.used\"]",
            39,
            "hyphens only",
        ),
    ];
    for (from, to, line, says) in cases {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = Manifest::parse(&text, Path::new(""))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("line {line}: ")),
            "{to}: {error}"
        );
        assert!(error.contains(says), "{to}: {error}");
    }
}

/// The application's own manifest is within what this host knows.
#[test]
fn reads_the_application() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spin.toml");
    let manifest = Manifest::load(&path).unwrap();
    assert!(manifest.components.contains_key("router"));
}
