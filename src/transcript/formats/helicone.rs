//! Requests that Helicone logged: replies of its API (`/v1/request/query`) and files of `@helicone/export`.
//!
//! Responsible for the columns. A score is a verdict of the judge `helicone`, and the rating of a user is a label of the
//! eval `feedback`. Does not read the bodies: that is `completion_log.rs`. Does not fetch bodies that Helicone stored
//! elsewhere (`signed_body_url`).

use serde_json::Value;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::completion_log::parse_decorated;
use super::record_readers::open_elements;
use super::spend_log::{LogRecord, stored};
use super::transcript_builder::{TranscriptBuilder, keep_rating, verdict_of};

/// The end of the name of a score that is true or false.
const BOOLEAN_END: &str = "-hcone-bool";

/// The columns that become metadata as they are.
const COLUMNS: [&str; 11] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "provider",
    "request_path",
    "request_user_id",
    "response_status",
    "time_to_first_token",
    "prompt_id",
    "prompt_version",
    "country_code",
];

/// The keys of a request that are no settings.
const REQUEST_KEYS: [&str; 14] = [
    "messages",
    "input",
    "contents",
    "prompt",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "model",
    "tools",
    "metadata",
    "id",
    "response",
    "timestamp",
];

/// Returns true if the first record is a request, or a reply of the API with a list of them.
pub(super) fn is_requests(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    is_row(record) || is_row(&record["data"][0])
}

fn is_row(record: &Value) -> bool {
    record["request_id"].is_string()
        && record["request_created_at"].is_string()
        && ["response_status", "response_id", "response_created_at"]
            .iter()
            .any(|key| !record[*key].is_null())
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let paths: &[&[&str]] = if preview.first_outline()["data"].is_array() {
        &[&["data"]]
    } else {
        &[]
    };
    open_elements(source, preview, paths, parse_row)
}

/// Reads a row as a log with `messages` and `response`.
fn parse_row(record: &str, _cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let row = RawFields::parse(record)?;
    let body = stored(&row, "request_body");
    let request = body.as_deref().and_then(RawFields::from_raw);
    let request = request.unwrap_or_default();
    let response = stored(&row, "response_body");
    let messages = request.get_first(&["messages", "input", "contents", "prompt"]);
    if messages.is_none() && response.is_none() {
        return Err(
            "it has neither its prompt nor its reply; export them with `--include-body`".to_owned(),
        );
    }
    let reply = response.as_deref().and_then(RawFields::from_raw);
    let error = reply.as_ref().and_then(|reply| reply.get("error"));
    let what = error.and_then(RawFields::from_raw);
    let what = what.as_ref().and_then(|error| error.get("message"));
    let mut log = LogRecord::default();
    log.push("id", row.get("request_id"));
    let system = [
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
    ];
    log.push("system", request.get_first(&system));
    log.push("messages", messages);
    log.push("response", response.as_deref().filter(|_| error.is_none()));
    log.push("error", what.or(error));
    let model = row.get_first(&["response_model", "request_model", "model"]);
    log.push("model", model);
    log.push("response_cost", row.get_first(&["costUSD", "cost"]));
    log.push("timestamp", row.get("request_created_at"));
    log.push("latency_ms", row.get("delay_ms"));
    let properties = row.get_first(&["request_properties", "properties"]);
    log.push("metadata", properties);
    for column in COLUMNS {
        log.push(column, row.get(column));
    }
    for (key, value) in request.iter() {
        if !REQUEST_KEYS.contains(&key) && !COLUMNS.contains(&key) {
            log.push(key, Some(value));
        }
    }
    let mut decorate = |built: &mut TranscriptBuilder| {
        built.meta.set("source", "helicone");
        add_scores(&row, built);
    };
    parse_decorated(&log.finish(), &mut decorate, out)
}

fn add_scores(row: &RawFields<'_>, built: &mut TranscriptBuilder) {
    for (name, raw) in row.object("scores").unwrap_or_default().iter() {
        // Some replies have `{value, valueType}`.
        let inner = RawFields::from_raw(raw);
        let value = inner.as_ref().map_or(Some(raw), |inner| inner.get("value"));
        let eval = name.strip_suffix(BOOLEAN_END);
        let mut verdict = verdict_of("helicone", eval.unwrap_or(name), value, None);
        if eval.is_some() {
            let is_true = verdict.score.map(|score| score > 0.0);
            verdict.passed = verdict.passed.or(is_true);
        }
        // A number may have any scale.
        verdict.score = None;
        built.push_verdict(verdict);
    }
    if let Some(rating) = row.get("feedback_rating") {
        let rating = verdict_of("helicone", "feedback", Some(rating), None);
        let id = built.id.clone();
        keep_rating(rating, &id, None, &mut built.labels, &mut built.verdicts);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn row(request: &Value, response: &Value) -> Value {
        json!({
            "request_id": "q-1", "request_created_at": "2025-03-01T10:00:00Z", "request_body": request,
            "response_id": "s-1", "response_created_at": "2025-03-01T10:00:01Z", "response_status": 200,
            "response_body": response, "request_path": "/v1/chat/completions", "provider": "OPENAI",
            "request_properties": {"Helicone-Session-Id": "s"}, "delay_ms": 900, "costUSD": 0.25,
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
            "signed_body_url": "https://example.com/secret", "scores": {"polite-hcone-bool": 1, "length": 80},
        })
    }

    fn request() -> Value {
        json!({"model": "gpt-4o", "temperature": 0.5, "messages": [{"role": "user", "content": "Hi"}]})
    }

    #[test]
    fn bodies_scores_and_columns_are_read() {
        let reply = json!({"object": "chat.completion", "model": "gpt-4o-2024-08-06", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}]});
        let one = row(&request(), &reply);
        let text = row(&json!(request().to_string()), &json!(reply.to_string()));
        let page = json!({"data": [one], "error": null});
        for file in [one, text, page] {
            let (all, tally) = read(format!("{file}\n").as_bytes());
            assert_eq!(all.len(), 1, "{file}");
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), ["user Hi", "assistant Hello"], "{file}");
            assert_eq!(one["id"], "q-1");
            let meta = &one["metadata"];
            assert_eq!(meta["source"], "helicone");
            assert_eq!(meta["model"], "gpt-4o-2024-08-06");
            assert_eq!(meta["cost_usd"], 0.25);
            assert_eq!(meta["latency_ms"], 900);
            assert_eq!(meta["temperature"], 0.5);
            assert_eq!(meta["Helicone-Session-Id"], "s");
            assert_eq!(meta.get("signed_body_url"), None);
            let verdicts = &one["verdicts"];
            assert_eq!(verdicts[0]["eval"], "polite");
            assert_eq!(verdicts[0]["passed"], true);
            assert_eq!(verdicts[1]["value"], 80);
            assert_eq!(verdicts[1].get("score"), None);
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }

    #[test]
    fn row_without_bodies_and_failed_call_say_so() {
        let failed = json!({"error": {"message": "Rate limit", "type": "requests"}});
        let empty = row(&json!({}), &Value::Null);
        let file = format!("{}\n{empty}\n", row(&request(), &failed));
        let (all, _) = read(file.as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Hi"]);
        assert_eq!(one["metadata"]["error"], "Rate limit");
        let why = all[1].as_ref().expect_err("a bad record");
        assert!(why.contains("--include-body"), "{why}");
    }
}
