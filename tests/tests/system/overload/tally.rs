//! What the clients were answered.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lance_maintenance_tests::client::Answer;

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    Submit,
    Get,
    List,
    Delete,
    Catalog,
    Create,
    Drop,
}

impl Ask {
    /// Statuses, with the errors they stand for, that a request may get whatever else goes on.
    fn documented(self) -> &'static [(u16, &'static str)] {
        match self {
            Self::Submit => &[(200, ""), (429, "TaskQuotaExceeded")],
            Self::Get => &[(200, ""), (404, "TaskNotFound")],
            Self::List | Self::Catalog | Self::Drop => &[(200, "")],
            Self::Delete => &[
                (200, ""),
                (204, ""),
                (404, "TaskNotFound"),
                (409, "TaskStateConflict"),
            ],
            Self::Create => &[
                (200, ""),
                (409, "TableAlreadyExists"),
                (409, "ConcurrentModification"),
            ],
        }
    }
}

/// How a request was answered; without a status it was not.
pub struct Record {
    ask: Ask,
    status: Option<u16>,
    error: String,
    retry_after: Option<u64>,
    took: Duration,
}

/// All of it.
#[derive(Default)]
pub struct Tally(Vec<Record>);

impl Tally {
    pub fn add(&mut self, ask: Ask, answer: &anyhow::Result<Answer>, took: Duration) {
        let (status, error, retry_after) = match answer {
            Ok(answer) => (
                Some(answer.status),
                name(answer),
                answer
                    .header("retry-after")
                    .and_then(|value| value.parse().ok()),
            ),
            Err(error) => (None, format!("{error:#}"), None),
        };
        self.0.push(Record {
            ask,
            status,
            error,
            retry_after,
            took,
        });
    }

    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many were answered like this.
    pub fn count(&self, ask: Ask, status: u16) -> usize {
        let alike = |record: &&Record| record.ask == ask && record.status == Some(status);
        self.0.iter().filter(alike).count()
    }

    /// Answers that there should not be, and how many of each.
    pub fn faults(&self) -> BTreeMap<String, usize> {
        let mut faults = BTreeMap::new();
        for record in &self.0 {
            if let Some(fault) = record.fault() {
                *faults.entry(fault).or_default() += 1;
            }
        }
        faults
    }
}

impl Record {
    fn fault(&self) -> Option<String> {
        let Self { ask, error, .. } = self;
        let Some(status) = self.status else {
            return Some(format!("{ask:?}: no answer: {error}"));
        };
        // Whoever has no room may say so: the host in plain text, the application and the worker in JSON.
        if status != 503 && !ask.documented().contains(&(status, error)) {
            return Some(format!("{ask:?}: {status} {error}"));
        }
        // A pause cures a 503; and a 429, as somebody may make room for a task.
        let has_pause = self.retry_after.is_some_and(|seconds| seconds > 0);
        ([429, 503].contains(&status) && !has_pause)
            .then(|| format!("{ask:?}: {status} {error} without Retry-After"))
    }
}

/// The name of the error of an answer that is none of success.
fn name(answer: &Answer) -> String {
    if answer.status < 300 {
        return String::new();
    }
    let told = answer.json().ok().and_then(|body| {
        let name = body["error"].as_str()?;
        Some(name.to_owned())
    });
    told.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).into_owned())
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<_, Vec<Duration>> = BTreeMap::new();
        for record in &self.0 {
            let group = (record.ask, record.status, record.error.as_str());
            groups.entry(group).or_default().push(record.took);
        }
        for ((ask, status, error), mut times) in groups {
            let status = status.map_or("none".to_owned(), |status| status.to_string());
            let what = format!("{ask:?} {status} {error}");
            writeln!(f, "{what:40} {}", spread(&mut times))?;
        }
        let mut all: Vec<_> = self.0.iter().map(|record| record.took).collect();
        write!(f, "{:40} {}", "all", spread(&mut all))
    }
}

fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let of = |percent: usize| match times.len() {
        0 => 0,
        count => times[(count - 1) * percent / 100].as_millis(),
    };
    let (count, p50, p99, max) = (times.len(), of(50), of(99), of(100));
    format!("{count:6}  p50 {p50:5} ms  p99 {p99:5} ms  max {max:5} ms")
}
