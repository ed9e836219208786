//! A client of the service. It signs its requests, and can be made to sign wrongly: a [`Call`] is
//! signed and sent in two steps, between which a test may change it.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use lance_maintenance_auth::{AccessKey, RequestParts, Scheme, Secret, sigv4};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};

/// How long a task may take.
const TASK_TIME: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// Asks for a running task's progress.
const PROGRESS_HEADER: &str = "x-lance-task-progress";

/// The delimiter as it stands in a path.
const DELIMITER: &str = "%24";

/// Who calls.
#[derive(Clone, Debug, Deserialize)]
pub struct Credentials {
    /// What a signature names.
    pub access_key_id: String,
    /// What a signature is made with.
    pub secret_access_key: String,
    /// The region in signatures.
    pub region: String,
}

impl Credentials {
    /// Reads the file that `cargo xtask up` writes.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}

/// A request, signed or not.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Path and query, as they are to stand on the wire.
    pub target: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Call {
    /// A request without a body.
    pub fn new(method: Method, target: impl Into<String>) -> Self {
        Self {
            method,
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A GET request.
    pub fn get(target: impl Into<String>) -> Self {
        Self::new(Method::GET, target)
    }

    /// A DELETE request.
    pub fn delete(target: impl Into<String>) -> Self {
        Self::new(Method::DELETE, target)
    }

    /// A POST request with JSON, or what is meant to look like it.
    pub fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::new(Method::POST, target).header("content-type", "application/json")
        }
    }

    /// With one more header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of a success.
    pub fn success(&self) -> anyhow::Result<Value> {
        match self.status {
            204 => Ok(Value::Null),
            200 => self.json(),
            status => bail!("{status}: {}", String::from_utf8_lossy(&self.body)),
        }
    }
}

/// A client, for one Tokio runtime.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: String,
    credentials: Credentials,
}

impl Client {
    /// A client of the service under a URL, `http://127.0.0.1:3000` say.
    pub fn new(endpoint: &str, credentials: Credentials) -> anyhow::Result<Self> {
        Ok(Self {
            // No certificates: it speaks plain HTTP.
            http: reqwest::Client::builder().tls_certs_only([]).build()?,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            credentials,
        })
    }

    /// What it signs with.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The same service, called by somebody else.
    pub fn as_caller(&self, credentials: Credentials) -> Self {
        Self {
            credentials,
            ..self.clone()
        }
    }

    /// Signs a call as of now and sends it.
    pub async fn call(&self, call: Call) -> anyhow::Result<Answer> {
        self.send(self.sign(call)?).await
    }

    /// Signs a call as of now.
    pub fn sign(&self, call: Call) -> anyhow::Result<Call> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        self.sign_at(call, i64::try_from(now)?)
    }

    /// Signs a call as of a time, in seconds since 1970.
    pub fn sign_at(&self, mut call: Call, seconds: i64) -> anyhow::Result<Call> {
        let url = self.url(&call)?;
        if !call.headers.iter().any(|(name, _)| name == "host") {
            let port = url.port().map(|port| format!(":{port}"));
            let host = url.host_str().context("the endpoint has no host")?;
            call = call.header("host", format!("{host}{}", port.unwrap_or_default()));
        }
        let headers: Vec<(&str, &[u8])> = call
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let parts = RequestParts {
            method: call.method.as_str(),
            path: url.path(),
            query: url.query(),
            headers: &headers,
            body: &call.body,
            scheme: Scheme::Http,
        };
        let secret = Secret::new(self.credentials.secret_access_key.as_str());
        let key = AccessKey {
            id: &self.credentials.access_key_id,
            secret: &secret,
            session_token: None,
        };
        let signed = sigv4::sign(&parts, &key, &self.credentials.region, seconds)?;
        for (name, value) in signed.iter() {
            call = call.header(name, value);
        }
        Ok(call)
    }

    /// Sends a call as it is.
    pub async fn send(&self, call: Call) -> anyhow::Result<Answer> {
        let mut request = self.http.request(call.method.clone(), self.url(&call)?);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let answer = request.body(call.body).send().await?;
        Ok(Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: answer.bytes().await?.to_vec(),
        })
    }

    fn url(&self, call: &Call) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!("{}{}", self.endpoint, call.target))?)
    }

    /// POSTs JSON, and expects a success.
    pub async fn post(&self, target: &str, body: Value) -> anyhow::Result<Value> {
        let call = Call::post(target, body.to_string());
        self.call(call).await?.success().context(target.to_owned())
    }

    /// GETs, and expects a success.
    pub async fn get(&self, target: &str) -> anyhow::Result<Value> {
        let answer = self.call(Call::get(target)).await?;
        answer.success().context(target.to_owned())
    }

    /// Creates a namespace unless it is there.
    pub async fn ensure_namespace(&self, name: &str) -> anyhow::Result<()> {
        let target = format!("/lance/v1/namespace/{name}/create");
        self.post(&target, json!({"mode": "exist_ok"})).await?;
        Ok(())
    }

    /// Declares a table, and learns where it is to be written.
    pub async fn declare(&self, namespace: &str, name: &str) -> anyhow::Result<Table> {
        self.create(namespace, name, "declare", json!({})).await
    }

    /// Registers the table that lies at a location.
    pub async fn register(
        &self,
        namespace: &str,
        name: &str,
        location: &str,
    ) -> anyhow::Result<Table> {
        self.create(namespace, name, "register", json!({"location": location}))
            .await
    }

    async fn create(
        &self,
        namespace: &str,
        name: &str,
        how: &str,
        body: Value,
    ) -> anyhow::Result<Table> {
        let id = format!("{namespace}{DELIMITER}{name}");
        let answer = self
            .post(&format!("/lance/v1/table/{id}/{how}"), body)
            .await?;
        Ok(Table {
            client: self.clone(),
            id,
            location: text(&answer, "location")?,
        })
    }
}

/// A table of the catalog.
#[derive(Clone, Debug)]
pub struct Table {
    client: Client,
    id: String,
    /// The URI of its folder.
    pub location: String,
}

impl Table {
    /// The client that it was made with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The same table for another client, of another Tokio runtime or process of the service.
    pub fn with_client(&self, client: Client) -> Self {
        Self {
            client,
            ..self.clone()
        }
    }

    /// The path of something of it behind the second door.
    pub fn second_door(&self, rest: &str) -> String {
        format!("/maintenance/v1/table/{}/{rest}", self.id)
    }

    /// The path of one of its maintenance operations.
    pub fn path(&self, rest: &str) -> String {
        format!("/lance/oss/v1/table/{}/{rest}", self.id)
    }

    /// The path of one of its operations in the namespace.
    pub fn namespace(&self, rest: &str) -> String {
        format!("/lance/v1/table/{}/{rest}", self.id)
    }

    /// Its id in the catalog, a UUID.
    pub async fn uuid(&self) -> anyhow::Result<String> {
        let answer = self
            .client
            .post(&self.namespace("describe"), json!({}))
            .await?;
        text(&answer["properties"], "table_id")
    }

    /// Takes it out of the catalog.
    pub async fn drop_from_catalog(&self) -> anyhow::Result<()> {
        let target = format!("/lance/v1/table/{}/drop", self.id);
        self.client.post(&target, json!({})).await?;
        Ok(())
    }

    /// Submits a task, and returns its id.
    pub async fn submit(&self, operation: &str, body: Value) -> anyhow::Result<String> {
        let answer = self.client.post(&self.path(operation), body).await?;
        text(&answer, "task_id")
    }

    /// A task's info.
    pub async fn task(&self, task_id: &str) -> anyhow::Result<Value> {
        let call =
            Call::get(self.path(&format!("tasks/{task_id}"))).header(PROGRESS_HEADER, "true");
        let answer = self.client.call(call).await?.success()?;
        Ok(answer["task_info"].clone())
    }

    /// Every task of a type, newest first, in pages of at most `max_results`.
    pub async fn tasks(&self, task_type: &str, max_results: usize) -> anyhow::Result<Vec<Value>> {
        let first = self.path(&format!(
            "tasks?task_type={task_type}&max_results={max_results}"
        ));
        let mut tasks = Vec::new();
        let mut target = first.clone();
        loop {
            let page = self.client.get(&target).await?;
            tasks.extend(page["tasks"].as_array().cloned().unwrap_or_default());
            match text(&page, "next_marker")?.as_str() {
                "" => return Ok(tasks),
                marker => target = format!("{first}&marker={marker}"),
            }
        }
    }

    /// Deletes a task's record.
    pub async fn delete_task(&self, task_id: &str) -> anyhow::Result<()> {
        let target = self.path(&format!("tasks/{task_id}"));
        self.client.call(Call::delete(target)).await?.success()?;
        Ok(())
    }

    /// Waits until a task has ended, and returns its info. `seen` is shown the info each time.
    pub async fn wait(&self, task_id: &str, mut seen: impl FnMut(&Value)) -> anyhow::Result<Value> {
        let started = Instant::now();
        loop {
            let info = self.task(task_id).await?;
            seen(&info);
            if matches!(info["status"].as_str(), Some("completed" | "failed")) {
                return Ok(info);
            }
            if started.elapsed() > TASK_TIME {
                bail!("task {task_id} takes more than {TASK_TIME:?}: {info}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Submits a task and waits for its end.
    pub async fn run(&self, operation: &str, body: Value) -> anyhow::Result<Value> {
        let task_id = self.submit(operation, body).await?;
        self.wait(&task_id, |_| {}).await
    }

    /// Runs a task that is to complete, and returns its result.
    pub async fn complete(&self, operation: &str, body: Value) -> anyhow::Result<Value> {
        let info = self.run(operation, body).await?;
        if info["status"] != "completed" {
            bail!("{operation} {}: {}", info["status"], info["error"]);
        }
        Ok(info["result"].clone())
    }
}

fn text(object: &Value, field: &str) -> anyhow::Result<String> {
    let value = object[field].as_str();
    Ok(value
        .with_context(|| format!("no text '{field}' in {object}"))?
        .to_owned())
}
