use std::fs;

use super::*;

fn load(text: &str, cli: Cli, secret: Option<&str>) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worker.toml");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("secret.txt"), "from-the-file\n").unwrap();
    fs::write(
        folder.path().join("storage.toml"),
        "[[storage]]\nprefix = \"s3://b\"\noptions = { a = \"1\" }\n",
    )
    .unwrap();
    let cli = Cli {
        config: Some(path),
        ..cli
    };
    Config::load(&cli, |name| {
        secret
            .filter(|_| name == SECRET_VARIABLE)
            .map(str::to_owned)
    })
}

#[test]
fn the_example_shows_the_defaults() {
    let config = load(include_str!("../worker.toml"), Cli::default(), Some("s")).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:3100");
    assert_eq!(config.application_url.as_str(), "http://127.0.0.1:3000/");
    assert_eq!(config.worker_id, None);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.shutdown_grace, Duration::from_secs(20));

    // What is commented out there parses, too.
    let uncommented: String = include_str!("../worker.toml")
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
        .collect();
    let config = load(&uncommented, Cli::default(), None).unwrap();
    assert_eq!(config.secret.expose_secret(), "from-the-file");
    assert_eq!(config.storage.for_location("s3://b/t")["a"], "1");
    assert!(config.worker_id.is_some());
}

#[test]
fn without_a_file() {
    let variable = |name: &str| (name == SECRET_VARIABLE).then(|| "s".to_owned());
    let config = Config::load(&Cli::default(), variable).unwrap();
    assert_eq!(config.listen.port(), 3100);
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let cli = Cli {
        listen: Some("127.0.0.1:1".parse().unwrap()),
        application_url: Some("https://app.example".to_owned()),
        worker_id: Some("given".to_owned()),
        ..Cli::default()
    };
    let text = "listen = \"127.0.0.1:2\"\napplication_url = \"http://h\"\nworker_id = \"w\"\nsecret = \"file\"";
    let config = load(text, cli, Some("variable")).unwrap();
    assert_eq!(config.listen.port(), 1);
    assert_eq!(config.application_url.as_str(), "https://app.example/");
    assert_eq!(config.worker_id.as_deref(), Some("given"));
    assert_eq!(config.secret.expose_secret(), "variable");

    let config = load(text, Cli::default(), None).unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.worker_id.as_deref(), Some("w"));
    assert_eq!(config.secret.expose_secret(), "file");
}

#[test]
fn no_form_of_the_configuration_shows_the_secret() {
    let config = load("secret = \"hunter2\"", Cli::default(), None).unwrap();
    assert!(!format!("{config:?} {config:#?}").contains("hunter2"));
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        (
            "lissten = \"a\"",
            "line 1, lissten: unknown field `lissten`",
        ),
        (
            "\n[limits]\nmax_task = 1",
            "line 3, max_task: unknown field `max_task`",
        ),
        (
            "listen = \"localhost\"",
            "line 1, listen: invalid socket address",
        ),
        ("listen = 3100", "line 1, listen: invalid type: integer"),
        ("secret = 4711", "line 1, secret: this has to be a string"),
        ("secret = \"hunter2", "line 1, secret: invalid basic string"),
        (
            "shutdown_grace = 20",
            "line 1, shutdown_grace: invalid type: integer",
        ),
        (
            "shutdown_grace = \"soon\"",
            "line 1, shutdown_grace: 'soon' is not a duration",
        ),
        (
            "[limits]\n\ntask_timeout = \"6 parsecs\"",
            "line 3, task_timeout: '6 parsecs' is not a duration",
        ),
        (
            "[limits]\nmax_concurrent_tasks = 0",
            "line 2, max_concurrent_tasks: invalid value: integer `0`",
        ),
        (
            "[limits]\nmax_queued_tasks = -1",
            "line 2, max_queued_tasks: invalid value: integer `-1`",
        ),
        ("limits = 1\nlimits = 2", "line 2, limits: duplicate key"),
        (
            "application_url = \"ftp://h\"",
            "it has to begin with http:// or https://",
        ),
        (
            "application_url = \"h:80\"",
            "it has to begin with http:// or https://",
        ),
        ("application_url = \"\"", "relative URL without a base"),
        (
            "application_url = \"http://h/x\"",
            "it has to end after the host and the port",
        ),
        (
            "application_url = \"http://u:hunter2@h\"",
            "it can't hold credentials",
        ),
        ("worker_id = \"\"", "worker_id '' is not usable"),
        ("worker_id = \"a b\"", "worker_id 'a b' is not usable"),
        (
            "secret = \"a\"\nsecret_file = \"secret.txt\"",
            "either secret or secret_file",
        ),
        ("secret = \"\"", "there is no secret"),
        ("", "there is no secret"),
        ("secret_file = \"nowhere\"", "nowhere can't be read"),
        (
            "storage_options_file = \"nowhere\"",
            "nowhere can't be read",
        ),
        (
            "storage_options_file = \"secret.txt\"",
            "secret.txt, line 1",
        ),
    ];
    for (text, expected) in cases {
        let has_secret = text.contains("secret") || text.is_empty();
        let secret = (!has_secret).then_some("s");
        let error = load(text, Cli::default(), secret).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?} gives {error:?}");
        assert!(
            !error.contains("hunter2") && !error.contains("4711"),
            "{error}"
        );
    }
}
