//! Rows of LiteLLM's spend logs (`LiteLLM_SpendLogs`), as its API returns them and as exports of the table have them.
//!
//! Responsible for the columns. LiteLLM writes `{}` for a value that it does not store. Without
//! `store_prompts_in_spend_logs`, that is the prompt and the reply. With it, the prompt of a chat is the body of the
//! request in `proxy_server_request`, and `messages` stays `{}` (`spend_tracking_utils.py` of LiteLLM). In an export, a
//! column may be JSON in a text. Does not read the prompt and the reply: that is `completion_log.rs`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::completion_log;
use super::record_readers::open_elements;

/// Returns true for spend logs, and for other logs of model calls.
pub(super) fn is_log_of_calls(preview: &FilePreview<'_>) -> bool {
    is_spend_log(preview) || completion_log::is_log(preview)
}

/// Returns true if the first record is a row, or a reply of the API with a list of rows.
fn is_spend_log(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    is_row(record) || is_row(&record["data"][0])
}

fn is_row(record: &Value) -> bool {
    record["request_id"].is_string()
        && record["call_type"].is_string()
        && record["spend"].is_number()
}

/// Returns the reader of a log of model calls.
pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if !is_spend_log(preview) {
        return Ok(completion_log::open(preview));
    }
    let paths: &[&[&str]] = if preview.first_outline()["data"].is_array() {
        &[&["data"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_row)
}

/// Reads a row as a log with `messages` and `response`.
fn parse_row(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let row = RawFields::parse(record)?;
    let request = stored(&row, "proxy_server_request");
    let request = request.as_deref().and_then(RawFields::from_raw);
    let request = request.unwrap_or_default();
    // Older versions store the headers next to the body.
    let request = request.object("body").unwrap_or(request);
    let messages = stored(&row, "messages");
    let messages = messages.as_deref();
    let messages = messages.or_else(|| request.get_first(&["messages", "input", "prompt"]));
    let response = stored(&row, "response");
    if messages.is_none() && response.is_none() {
        return Err(
            "LiteLLM stored neither its prompt nor its reply (`store_prompts_in_spend_logs` is off)"
                .to_owned(),
        );
    }
    let metadata = stored(&row, "metadata");
    let tags = stored(&row, "request_tags");
    let failure = metadata.as_deref().and_then(RawFields::from_raw);
    let failure = failure.and_then(|metadata| metadata.object("error_information"));
    let failure = failure
        .as_ref()
        .and_then(|error| error.get("error_message"));
    let mut log = LogRecord::default();
    log.push("system", request.get_first(&["system", "instructions"]));
    log.push("messages", messages);
    log.push("response", response.as_deref());
    log.push("metadata", metadata.as_deref());
    log.push("request_tags", tags.as_deref());
    if row.text("status").as_deref() == Some("failure") {
        log.push("error", failure);
    }
    log.push("response_cost", row.get("spend"));
    log.push("latency_ms", row.get("request_duration_ms"));
    let read = [
        "proxy_server_request",
        "messages",
        "response",
        "metadata",
        "request_tags",
        "spend",
        "request_duration_ms",
    ];
    for (key, value) in row.iter().filter(|(key, _)| !read.contains(key)) {
        log.push(key, Some(value));
    }
    // The settings of the request. The row has its model.
    let read = [
        "messages",
        "input",
        "prompt",
        "system",
        "instructions",
        "model",
        "tools",
        "metadata",
    ];
    let columns: HashSet<&str> = row.iter().map(|(key, _)| key).collect();
    for (key, value) in request.iter().filter(|(key, _)| !read.contains(key)) {
        if !columns.contains(key) {
            log.push(key, Some(value));
        }
    }
    completion_log::parse_log(&log.finish(), cx, out)
}

/// Returns the value of a column, which may be JSON in a text; `None` if the program did not store it.
pub(super) fn stored<'a>(row: &RawFields<'a>, key: &str) -> Option<Cow<'a, RawValue>> {
    let written = row.get(key)?;
    let text = json_string(written).filter(|text| text.trim_start().starts_with(['{', '[']));
    let unpacked = text.and_then(|text| serde_json::from_str::<Box<RawValue>>(&text).ok());
    let value = unpacked.map_or(Cow::Borrowed(written), Cow::Owned);
    let is_empty = matches!(value.get(), "{}" | "[]" | "\"\"" | "null");
    (!is_empty).then_some(value)
}

/// A record for `completion_log.rs` under construction.
#[derive(Debug, Default)]
pub(super) struct LogRecord {
    /// The fields so far, as JSON with a comma after each.
    json: String,
}

impl LogRecord {
    /// Adds a field if it has a value.
    pub(super) fn push(&mut self, key: &str, value: Option<&RawValue>) {
        if let Some(value) = value {
            self.json.push_str(&Value::from(key).to_string());
            self.json.push(':');
            self.json.push_str(value.get());
            self.json.push(',');
        }
    }

    /// Returns the record as JSON.
    pub(super) fn finish(self) -> String {
        format!("{{{}}}", self.json.trim_end_matches(','))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    /// Returns a row with these columns, as LiteLLM's API returns it.
    fn row(messages: &Value, response: &Value, request: &Value) -> Value {
        json!({
            "request_id": "chatcmpl-1", "call_type": "acompletion", "spend": 0.25, "total_tokens": 30,
            "prompt_tokens": 10, "completion_tokens": 20, "startTime": "2025-01-24T09:20:46.847000Z",
            "model": "gpt-4o", "session_id": "s1", "status": "success", "request_tags": ["shop"],
            "metadata": {"user_api_key_alias": "ann"}, "messages": messages, "response": response,
            "proxy_server_request": request,
        })
    }

    fn reply() -> Value {
        json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello"}}]})
    }

    #[test]
    fn prompt_is_read_from_the_request() {
        let request = json!({"model": "gpt-4o", "temperature": 0.5, "messages": [{"role": "user", "content": "Hi"}]});
        let api = row(&json!({}), &reply(), &request);
        let text = |value: Value| json!(value.to_string());
        let mut export = row(&text(json!({})), &text(reply()), &text(request));
        export["metadata"] = text(api["metadata"].clone());
        export["request_tags"] = text(json!(["shop"]));
        let page = json!({"data": [api], "total": 1, "page": 1});
        for file in [api.clone(), json!([api]), export, page] {
            let (all, tally) = read(file.to_string().as_bytes());
            assert_eq!(all.len(), 1, "{file}");
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), ["user Hi", "assistant Hello"], "{file}");
            assert_eq!(one["id"], "chatcmpl-1");
            assert_eq!(one["tags"], json!(["shop"]));
            let meta = &one["metadata"];
            assert_eq!(meta["cost_usd"], 0.25);
            assert_eq!(meta["usage"]["output"], 20);
            assert_eq!(meta["user_api_key_alias"], "ann");
            assert_eq!(meta["temperature"], 0.5);
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }

    #[test]
    fn row_without_prompt_and_reply_is_no_transcript() {
        for empty in [json!({}), json!("{}")] {
            let first = row(
                &json!([{"role": "user", "content": "Hi"}]),
                &reply(),
                &empty,
            );
            let second = row(&empty, &empty, &empty);
            let (all, _) = read(format!("{first}\n{second}\n").as_bytes());
            let lines = message_lines(all[0].as_ref().expect("a transcript"));
            assert_eq!(lines, ["user Hi", "assistant Hello"]);
            let why = all[1].as_ref().expect_err("a bad record");
            assert!(why.contains("store_prompts_in_spend_logs"), "{why}");
        }
    }

    #[test]
    fn each_page_of_a_file_is_read() {
        let request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        let [first, second, third] = ["a", "b", "c"].map(|id| {
            let mut one = row(&json!({}), &reply(), &request);
            one["request_id"] = json!(id);
            one
        });
        let pages = [
            json!({"data": [first, second], "page": 1}),
            json!({"data": [third], "page": 2}),
        ];
        let lines = pages.each_ref().map(ToString::to_string).join("\n");
        for file in [lines, json!(pages).to_string()] {
            let (all, _) = read(file.as_bytes());
            let ids: Vec<&str> = all
                .iter()
                .map(|one| one.as_ref().expect("a transcript"))
                .map(|one| one["id"].as_str().expect("an id"))
                .collect();
            assert_eq!(ids, ["a", "b", "c"]);
        }
    }

    #[test]
    fn failed_call_has_its_error() {
        let request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        let mut failed = row(&json!({}), &json!({}), &request);
        failed["status"] = json!("failure");
        failed["metadata"] = json!({"error_information": {"error_message": "slow down"}});
        let (all, _) = read(failed.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi"]);
        assert_eq!(one["metadata"]["error"], "slow down");
    }
}
