//! Waits until a worker works: a fault that hits an idle one finds little.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(5);

/// Waits until the worker that writes this log begins another task, though not for longer than
/// `patience`.
pub async fn begins(log: &Path, patience: Duration) {
    let started = Instant::now();
    // Without the log there is nothing to wait for.
    let Ok(mut file) = File::open(log) else {
        return;
    };
    if file.seek(SeekFrom::End(0)).is_err() {
        return;
    }
    let mut text = String::new();
    while started.elapsed() < patience {
        // Half a character at the end is read again as part of nothing: these lines are ASCII.
        if file.read_to_string(&mut text).is_ok() && text.contains("\"message\":\"started\"") {
            return;
        }
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn sees_what_is_written_later() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let line = "{\"message\":\"started\"}\n";
        log.write_all(line.as_bytes()).unwrap();
        let path = log.path().to_owned();
        let patience = Duration::from_millis(100);
        let started = Instant::now();
        begins(&path, patience).await;
        assert!(started.elapsed() >= patience);

        let waiting = tokio::spawn(async move { begins(&path, Duration::from_secs(60)).await });
        sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        // A line may come in two parts.
        for part in ["{\"message\":\"sta", "rted\"}\n"] {
            log.write_all(part.as_bytes()).unwrap();
            sleep(Duration::from_millis(20)).await;
        }
        waiting.await.unwrap();
    }
}
