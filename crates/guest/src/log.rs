//! Log lines, on standard error: one JSON object each, with the id of the request that it is about.

use std::cell::RefCell;
use std::fmt::Display;

use serde_json::{Map, Value, json};

thread_local! {
    static REQUEST_ID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From here on this instance is at the request with this id.
pub fn begin(request_id: &str) {
    REQUEST_ID.with_borrow_mut(|current| request_id.clone_into(current));
}

/// Says that something is not as it should be. Not for secrets.
pub fn warn(message: impl Display) {
    line("WARN", &message.to_string(), Map::new());
}

/// Says what happened, with these fields, of which those that are null are left out.
pub fn info(message: &str, fields: Value) {
    match fields {
        Value::Object(fields) => line("INFO", message, fields),
        _ => line("INFO", message, Map::new()),
    }
}

fn line(level: &str, message: &str, fields: Map<String, Value>) {
    let request_id = REQUEST_ID.with_borrow(Clone::clone);
    eprintln!("{}", text(level, &request_id, message, fields));
}

fn text(level: &str, request_id: &str, message: &str, fields: Map<String, Value>) -> String {
    let mut line = json!({"level": level, "message": message});
    if let Value::Object(line) = &mut line {
        if !request_id.is_empty() {
            line.insert("request_id".to_owned(), request_id.into());
        }
        line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_object_whatever_is_said() {
        let Value::Object(fields) = json!({"status": 503, "task_id": null}) else {
            unreachable!()
        };
        let said = text("WARN", "R", "two\nlines \"quoted\"", fields);
        assert!(!said.contains('\n'));
        assert_eq!(
            serde_json::from_str::<Value>(&said).unwrap(),
            json!({"level": "WARN", "request_id": "R", "message": "two\nlines \"quoted\"", "status": 503})
        );
        let said = text("INFO", "", "m", Map::new());
        assert_eq!(said, r#"{"level":"INFO","message":"m"}"#);
    }
}
