//! Recordings of HTTP calls: HAR files of browsers and Polly.JS, `nock` recordings of Node.js, VCR cassettes as JSON, the
//! recordings of llama-stack's tests, and the invocation logs of Bedrock.
//!
//! Responsible for the calls of models among the calls. Each becomes a pair of its bodies, which the reader of its wire
//! format reads: Anthropic's, Bedrock's, or one of `api_log.rs`. Other calls are counted. Does not decode bodies: that is
//! `recorded_body.rs`. Does not read one call per file: those are pairs in `api_log.rs`.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::json_string;
use super::super::outline::outline;
use super::super::reader::{RecordCx, RecordParser as _, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::api_log::ApiLogParser;
use super::record_readers::{open_elements, open_records};
use super::recorded_body::{
    decode_base64, decode_hex, json_of_bytes, json_of_characters, json_of_text,
};
use super::streamed_reply::looks_streamed;
use super::{anthropic, bedrock, text_completion};
use crate::model::make_visible;

/// The paths to the list of calls: of HAR, of VCR for Python, and of VCR for Ruby.
const CALL_LISTS: [&[&str]; 3] = [
    &["log", "entries"],
    &["interactions"],
    &["http_interactions"],
];

/// The kind of a call that is not one of a model.
const OTHER_CALL: &str = "a request that is not a call of a model";

/// The number of characters of an unreadable reply that its error shows.
const MAX_SHOWN_CHARS: usize = 60;

/// Returns true if a file is a recording of HTTP calls.
pub(super) fn is_recording(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let log = &record["log"];
    let is_har =
        log["entries"].is_array() && (log["creator"].is_object() || log["version"].is_string());
    let is_call = |call: &Value| call["request"].is_object() && call["response"].is_object();
    let is_vcr = ["interactions", "http_interactions"]
        .iter()
        .any(|key| is_call(&record[*key][0]));
    is_har || is_vcr || is_nock(record) || is_llama_stack(record)
}

/// Returns true for a recording of llama-stack, whose replies have their types.
fn is_llama_stack(record: &Value) -> bool {
    let body = &record["response"]["body"];
    let has_type = |value: &Value| value["__type__"].is_string();
    record["request"]["url"].is_string() && (has_type(body) || has_type(&body[0]))
}

fn is_nock(record: &Value) -> bool {
    let scope = record["scope"].as_str();
    scope.is_some_and(|scope| scope.starts_with("http"))
        && record["method"].is_string()
        && record["status"].is_u64()
        && record.get("response").is_some()
}

/// Returns true if a file is an invocation log of Bedrock.
pub(super) fn is_invocation_log(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    record["schemaType"] == "ModelInvocationLog" && record["modelId"].is_string()
}

/// Returns a reader of the invocation logs of Bedrock.
pub(super) fn open_invocations(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_invocation)
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let record = preview.first_outline();
    let paths: &[&[&str]] = if is_nock(record) || is_llama_stack(record) {
        &[]
    } else {
        &CALL_LISTS
    };
    open_elements(source, preview, paths, parse_call)
}

/// A recorded call. Bodies are JSON.
struct RecordedCall<'a> {
    id: Option<&'a RawValue>,
    url: String,
    status: Option<u64>,
    request: String,
    /// The error is a sentence fragment.
    response: Result<String, String>,
    timestamp: Option<&'a RawValue>,
    latency: Option<&'a RawValue>,
}

fn parse_call(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let call = if fields.has("scope") {
        RecordedCall::from_nock(&fields)
    } else {
        RecordedCall::from_entry(&fields)?
    };
    push_call(&call, cx, out)
}

fn parse_invocation(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let call = RecordedCall::from_invocation(&RawFields::parse(record)?)?;
    push_call(&call, cx, out)
}

fn push_call(
    call: &RecordedCall<'_>,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    if !call.is_call_of_model() {
        out.count_unknown(OTHER_CALL);
        return Ok(());
    }
    let response = call.response.as_deref().map_err(Clone::clone)?;
    if let Some(status) = call.status.filter(|status| *status >= 400) {
        let text: String = response.chars().take(400).collect();
        return Err(format!(
            "the API answered with an error: {text} (status {status})"
        ));
    }
    // An empty body is not an answer.
    let response = if response == "\"\"" { "null" } else { response };
    if response == "null" {
        out.count_missing("a reply that the recording does not contain");
    }
    // The text would count as the answer of the model.
    if let Some(beginning) = beginning_of_text(response) {
        return Err(format!(
            "its reply is neither JSON nor a stream of events: it begins with `{beginning}`"
        ));
    }
    push_pair(call, response, cx, out)
}

/// Returns the first characters of a reply that no API of a model sends: JSON that was cut off, or the page of a proxy.
fn beginning_of_text(response: &str) -> Option<String> {
    if !response.starts_with('"') {
        return None;
    }
    let text: String = serde_json::from_str(response).ok()?;
    let beginning = || text.chars().take(MAX_SHOWN_CHARS).collect::<String>();
    (!looks_streamed(&text)).then(|| make_visible(&beginning(), false).into_owned())
}

/// Adds the transcripts of a call of a model.
fn push_pair(
    call: &RecordedCall<'_>,
    response: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let mut pair = format!("{{\"request\":{},\"response\":{response}", call.request);
    // The readers of pairs copy these keys to the metadata.
    let model = call.model().map(|model| Value::from(model).to_string());
    for (key, value) in [
        ("id", call.id.map(RawValue::get)),
        ("model", model.as_deref()),
        ("timestamp", call.timestamp.map(RawValue::get)),
        ("latency_ms", call.latency.map(RawValue::get)),
    ] {
        if let Some(value) = value {
            let _ = write!(pair, ",\"{key}\":{value}");
        }
    }
    pair.push('}');
    if anthropic::is_pair(pair.as_bytes()) {
        out.push_transcript(&anthropic::parse_transcript(&pair)?);
        return Ok(());
    }
    if bedrock::is_pair(&outline(pair.as_bytes())) {
        return bedrock::parse_record(&pair, cx, out);
    }
    let request = serde_json::from_str(&call.request).unwrap_or_default();
    let reply = serde_json::from_str(response).unwrap_or_default();
    let source = if call.model().is_some() {
        "bedrock"
    } else {
        "http"
    };
    if let Some(mut built) = text_completion::build_transcript(source, &request, &reply) {
        let id = call.id.and_then(json_string);
        built.id = id.map(|id| id.0.into_owned()).unwrap_or_default();
        built.meta.set("model", model_of(call, &request));
        built.meta.set_raw("timestamp", call.timestamp);
        built.meta.set_raw("latency_ms", call.latency);
        built.finish(out);
        return Ok(());
    }
    // A text under `input` does not show a model, so the reply must.
    if request["input"].is_string() && is_other_reply(&reply) {
        out.count_unknown(OTHER_CALL);
        return Ok(());
    }
    ApiLogParser.parse_record(&pair, cx, out)
}

/// Returns true if a reply is an object without the keys of the Responses API, and is not an error of it.
fn is_other_reply(reply: &Value) -> bool {
    let keys = ["output", "error", "status"];
    reply.is_object()
        && reply["object"] != "response"
        && !keys.iter().any(|key| !reply[*key].is_null())
}

/// Returns the model of a call: that of its address, or of its request.
fn model_of(call: &RecordedCall<'_>, request: &Value) -> Value {
    call.model()
        .map_or_else(|| request["model"].clone(), Value::from)
}

impl<'a> RecordedCall<'a> {
    fn from_nock(fields: &RawFields<'a>) -> Self {
        let text = |key: &str| fields.text(key).unwrap_or_default().0.into_owned();
        let response = match fields.get("response") {
            None => Ok("null".to_owned()),
            Some(raw) => decode_nock(raw, fields.flag("responseIsBinary") == Some(true)),
        };
        Self {
            id: None,
            url: text("scope") + &text("path"),
            status: fields.integer("status"),
            request: plain_body(fields.get("body")),
            response,
            timestamp: None,
            latency: None,
        }
    }

    /// Returns the call of an entry of HAR or VCR.
    fn from_entry(fields: &RawFields<'a>) -> Result<Self, String> {
        let side = |key: &str| {
            let side = fields.object(key);
            side.ok_or_else(|| format!("it has no object `{key}`"))
        };
        let (request, response) = (side("request")?, side("response")?);
        let url = request.text("url").or_else(|| request.text("uri"));
        let status = response.integer("status");
        let status = status.or_else(|| response.object("status")?.integer("code"));
        let body = match request.object("postData") {
            Some(data) => data.get("text"),
            None => request.get("body"),
        };
        let response = match response.get("content") {
            Some(content) => decode_content(content),
            None => decode_body(response.get("body")),
        };
        let times = ["startedDateTime", "recorded_at"];
        Ok(Self {
            id: None,
            url: url.unwrap_or_default().0.into_owned(),
            status,
            request: plain_body(body),
            response,
            timestamp: fields.get_first(&times),
            latency: fields.get("time"),
        })
    }

    /// Returns the call of a line of an invocation log.
    fn from_invocation(fields: &RawFields<'a>) -> Result<Self, String> {
        let text = |key: &str| fields.text(key).unwrap_or_default().0.into_owned();
        if let Some(error) = fields.text("errorCode") {
            return Err(format!("the call failed: {error}"));
        }
        let (input, output) = (fields.object("input"), fields.object("output"));
        let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
        // Bodies of more than 100 KB are files of their own.
        let elsewhere = [&input, &output].into_iter().find_map(|side| {
            let path = side.get_first(&["inputBodyS3Path", "outputBodyS3Path"])?;
            Some(path.get())
        });
        if let Some(path) = elsewhere {
            return Err(format!("a body is in another file: {path}"));
        }
        // The model may be the ARN of a profile, whose last part is its name.
        let model = text("modelId");
        let model = model.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            id: fields.get("requestId"),
            url: format!("/model/{model}/{}", text("operation")),
            status: None,
            request: plain_body(input.get("inputBodyJson")),
            response: Ok(plain_body(output.get("outputBodyJson"))),
            timestamp: fields.get("timestamp"),
            latency: None,
        })
    }

    /// Returns true if the address and the request are those of a call that generates text.
    fn is_call_of_model(&self) -> bool {
        let path = self.url.split('?').next().unwrap_or_default();
        let other_calls = [
            "embed",
            "/images",
            "/audio",
            "/moderations",
            "rerank",
            "tokenize",
            "ount_tokens",
            "ountTokens",
            "/files",
            "/batches",
        ];
        if other_calls.iter().any(|part| path.contains(part)) {
            return false;
        }
        let request = outline(self.request.as_bytes());
        let begins_with_role = |key: &str| {
            let first = &request[key][0];
            first["role"].is_string() || first["parts"].is_array()
        };
        let has_model = request["model"].is_string() || self.model().is_some();
        let texts = ["prompt", "input", "inputText", "message"];
        begins_with_role("messages")
            || begins_with_role("contents")
            || request["chat_history"].is_array()
            || (path.ends_with("/chat") && request["message"].is_string())
            || (has_model
                && (request["input"].is_array()
                    || texts.iter().any(|key| request[*key].is_string())))
    }

    /// Returns the model in the address of a call of Bedrock.
    fn model(&self) -> Option<String> {
        let (_, rest) = self.url.split_once("/model/")?;
        let model = rest.split('/').next()?;
        Some(model.replace("%3A", ":").replace("%2F", "/"))
    }
}

/// Returns a body that is text, or JSON as written.
fn plain_body(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw else {
        return "null".to_owned();
    };
    if let Some(text) = json_string(raw) {
        return json_of_text(&text);
    }
    // VCR wraps the text of a body.
    let wrapped = RawFields::from_raw(raw);
    match wrapped.and_then(|body| body.text("string")) {
        Some(text) => json_of_text(&text),
        None => raw.get().to_owned(),
    }
}

/// Returns the reply of a `nock` recording, which has digits in place of bytes.
fn decode_nock(raw: &RawValue, is_binary: bool) -> Result<String, String> {
    let pieces: Option<Vec<String>> = serde_json::from_str(raw.get()).ok();
    let digits = match json_string(raw) {
        Some(text) if is_binary => Some(text.0.into_owned()),
        // The pieces of a compressed reply.
        None => pieces.filter(|all| !all.is_empty()).map(|all| all.concat()),
        Some(_) => None,
    };
    match digits.as_deref().and_then(decode_hex) {
        Some(bytes) => json_of_bytes(&bytes),
        None if is_binary => Err("its reply is not in hexadecimal digits".to_owned()),
        None => Ok(plain_body(Some(raw))),
    }
}

/// Returns the reply of a recording of llama-stack without the types of its values: an object, or the parts of a stream.
fn strip_types(body: &RawValue) -> Option<String> {
    let data = |raw: &RawValue| {
        let typed = RawFields::from_raw(raw)?;
        typed.text("__type__")?;
        Some(typed.get("__data__")?.get().to_owned())
    };
    if let Some(whole) = data(body) {
        return Some(whole);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(body.get()).ok()?;
    let parts: Vec<String> = parts.into_iter().map(data).collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| format!("[{}]", parts.join(",")))
}

/// Returns the reply of an entry of VCR, or of a recording of llama-stack.
fn decode_body(body: Option<&RawValue>) -> Result<String, String> {
    if let Some(reply) = body.and_then(strip_types) {
        return Ok(reply);
    }
    let fields = body.and_then(RawFields::from_raw).unwrap_or_default();
    if let Some(text) = fields.text("base64_string") {
        return decode_text(&text);
    }
    match fields.text("string").or_else(|| json_string(body?)) {
        Some(text) => json_of_characters(&text),
        None => Ok(plain_body(body)),
    }
}

/// Returns the reply of an entry of HAR. It has no text if the browser did not keep it.
fn decode_content(content: &RawValue) -> Result<String, String> {
    let fields = RawFields::from_raw(content).unwrap_or_default();
    match fields.text("text") {
        None => Ok("null".to_owned()),
        Some(text) if fields.text("encoding").as_deref() == Some("base64") => decode_text(&text),
        Some(text) => Ok(json_of_text(&text)),
    }
}

/// Decodes Base64, or the list of its pieces that Polly.JS writes for a compressed reply.
fn decode_text(text: &str) -> Result<String, String> {
    let pieces: Vec<String> = serde_json::from_str(text).unwrap_or_else(|_| vec![text.to_owned()]);
    let bytes: Option<Vec<Vec<u8>>> = pieces.iter().map(|piece| decode_base64(piece)).collect();
    let bytes = bytes.ok_or_else(|| "its reply is not Base64".to_owned())?;
    json_of_bytes(&bytes.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    fn lines_of(file: &Value) -> Vec<Vec<String>> {
        lines_of_each(&read(file.to_string().as_bytes()).0)
    }

    fn chat_request() -> Value {
        json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    }

    fn chat_reply() -> Value {
        json!({"id": "c", "choices": [{"message": {"role": "assistant", "content": "Ho"}}]})
    }

    fn har_entry(url: &str, request: &Value, content: &Value) -> Value {
        json!({
            "startedDateTime": "2025-01-01T00:00:00Z", "time": 12.5,
            "request": {"method": "POST", "url": url, "postData": {"mimeType": "application/json", "text": request.to_string()}},
            "response": {"status": 200, "content": content},
        })
    }

    #[test]
    fn recording_without_a_call_of_a_model_is_named_so() {
        let url = "https://bedrock-agent-runtime.us-east-1.amazonaws.com/retrieveAndGenerate";
        let entry = har_entry(url, &json!({"input": {}}), &json!({"text": "{}"}));
        let har = json!({"log": {"version": "1.2", "creator": {}, "entries": [entry]}});
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("recording.har");
        std::fs::write(&path, har.to_string()).expect("written");
        let error = crate::transcript::TranscriptFile::open(&path).expect_err("no call");
        let why = "not understood: 1 a request that is not a call of a model";
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn calls_of_models_in_a_har_are_read_and_others_are_counted() {
        let url = "https://api.openai.com/v1/chat/completions";
        let entries = [
            har_entry(
                "https://example.com/log",
                &json!({"a": 1}),
                &json!({"text": "{}"}),
            ),
            har_entry(
                "https://api.openai.com/v1/embeddings",
                &json!({"model": "m", "input": "Hi"}),
                &json!({"text": "{}"}),
            ),
            har_entry(
                url,
                &chat_request(),
                &json!({"mimeType": "application/json", "text": chat_reply().to_string()}),
            ),
            // `eyJh…` is the JSON of a reply in Base64.
            har_entry(
                "https://bedrock-runtime.us-east-1.amazonaws.com/model/meta.llama2%3A0/invoke",
                &json!({"prompt": "Hi"}),
                &json!({"encoding": "base64", "text": "eyJnZW5lcmF0aW9uIjoiSG8ifQ=="}),
            ),
        ];
        let har =
            json!({"log": {"version": "1.2", "creator": {"name": "Polly.JS"}, "entries": entries}});
        let (all, tally) = read(har.to_string().as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [["user Hi", "assistant Ho"], ["user Hi", "assistant Ho"]]
        );
        assert_eq!(tally.unknown["a request that is not a call of a model"], 2);
        let first = &all[0].as_ref().expect("a transcript")["metadata"];
        assert_eq!(
            (&first["timestamp"], &first["latency_ms"]),
            (&json!("2025-01-01T00:00:00Z"), &json!(12.5))
        );
        let second = &all[1].as_ref().expect("a transcript")["metadata"];
        assert_eq!(second["model"], "meta.llama2:0");
    }

    #[test]
    fn reply_that_a_har_does_not_contain_is_reported() {
        let url = "https://api.openai.com/v1/chat/completions";
        let lost = har_entry(url, &chat_request(), &json!({"mimeType": "x", "size": 9}));
        let whole = har_entry(
            url,
            &chat_request(),
            &json!({"text": chat_reply().to_string()}),
        );
        let har = json!({"log": {"version": "1.2", "entries": [lost, whole]}});
        let (all, tally) = read(har.to_string().as_bytes());
        assert_eq!(all.len(), 2);
        let missing = "a reply that the recording does not contain";
        assert_eq!(tally.missing[missing], 1);
    }

    #[test]
    fn cassettes_of_vcr_are_read() {
        let request = json!({"method": "POST", "uri": "https://api.anthropic.com/v1/messages", "body": chat_request().to_string()});
        let reply = json!({"id": "a", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": "Ho"}]});
        let python = json!({"interactions": [{
            "request": request,
            "response": {"status": {"code": 200, "message": "OK"}, "body": {"string": reply.to_string()}},
        }], "version": 1});
        assert_eq!(lines_of(&python), [["user Hi", "assistant Ho"]]);
        let ruby = json!({"http_interactions": [{
            "request": {"method": "post", "uri": "https://api.openai.com/v1/chat/completions", "body": {"encoding": "UTF-8", "string": chat_request().to_string()}},
            "response": {"status": {"code": 200}, "body": {"encoding": "UTF-8", "string": chat_reply().to_string()}},
        }], "recorded_with": "VCR 6.0"});
        assert_eq!(lines_of(&ruby), [["user Hi", "assistant Ho"]]);
    }

    #[test]
    fn recordings_of_llama_stack_are_read() {
        let recorded = |path: &str, request: Value, body: Value| {
            let is_streaming = body.is_array();
            json!({
                "request": {"method": "POST", "url": format!("http://localhost:11434{path}"), "headers": {},
                    "body": request, "endpoint": path, "model": "m"},
                "response": {"body": body, "is_streaming": is_streaming},
            })
        };
        let typed = |kind: &str, data: Value| json!({"__type__": kind, "__data__": data});
        let chat = typed(
            "openai.types.chat.chat_completion.ChatCompletion",
            chat_reply(),
        );
        let chunk = |text: &str| {
            let delta = json!({"role": "assistant", "content": text});
            let data = json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]});
            typed(
                "openai.types.chat.chat_completion_chunk.ChatCompletionChunk",
                data,
            )
        };
        let part = |text: &str, done: bool| {
            let data = json!({"model": "m", "done": done, "response": text});
            typed("ollama._types.GenerateResponse", data)
        };
        let prompt = json!({"model": "m", "prompt": "Hi", "raw": true});
        for file in [
            recorded("/v1/chat/completions", chat_request(), chat),
            recorded(
                "/v1/chat/completions",
                chat_request(),
                json!([chunk("H"), chunk("o")]),
            ),
            recorded("/api/generate", prompt.clone(), part("Ho", true)),
            recorded(
                "/api/generate",
                prompt,
                json!([part("H", false), part("o", true)]),
            ),
        ] {
            assert_eq!(lines_of(&file), [["user Hi", "assistant Ho"]], "{file}");
            let indented = serde_json::to_string_pretty(&file).expect("JSON");
            let (all, tally) = read(indented.as_bytes());
            assert_eq!(lines_of_each(&all), [["user Hi", "assistant Ho"]]);
            assert!(tally.unknown.is_empty(), "{:?}", tally.unknown);
        }
    }

    #[test]
    fn error_of_the_api_is_a_fault() {
        let nock = |status: u64, response: Value| {
            json!({"scope": "https://api.openai.com:443", "method": "POST", "path": "/v1/chat/completions",
                "body": chat_request(), "status": status, "response": response})
        };
        let file = json!([
            nock(429, json!({"error": {"message": "slow down"}})),
            nock(200, chat_reply()),
        ]);
        let (all, _) = read(file.to_string().as_bytes());
        let why = all[0].as_ref().expect_err("no transcript");
        assert!(why.contains("slow down") && why.contains("429"), "{why}");
        assert_eq!(lines_of_each(&all[1..]), [["user Hi", "assistant Ho"]]);
    }

    #[test]
    fn reply_that_no_model_sent_is_not_an_answer() {
        let url = "https://api.openai.com/v1/chat/completions";
        let reply_of = |text: &str| har_entry(url, &chat_request(), &json!({"text": text}));
        let chunk = json!({"id": "c", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Ho"}}]});
        let stream = format!("data: {chunk}\n\ndata: [DONE]\n");
        let other = har_entry(
            "https://example.com/search",
            &json!({"model": "m", "input": "cat"}),
            &json!({"text": "{\"results\":[{\"text\":\"a\"}]}"}),
        );
        let entries = [
            reply_of("<html>busy</html>"),
            reply_of("{\"id\":\"c\",\"choices\":[{\"mess"),
            reply_of(""),
            other,
            reply_of(&stream),
        ];
        let har = json!({"log": {"version": "1.2", "entries": entries}});
        let (all, tally) = read(har.to_string().as_bytes());
        for (at, beginning) in [(0, "`<html>busy"), (1, "`{\"id\":\"c\"")] {
            let why = all[at].as_ref().expect_err("no transcript");
            assert!(why.contains(beginning), "{why}");
        }
        let empty = vec!["user Hi".to_owned()];
        let whole = vec!["user Hi".to_owned(), "assistant Ho".to_owned()];
        assert_eq!(lines_of_each(&all[2..]), [empty, whole]);
        assert_eq!(tally.unknown["a request that is not a call of a model"], 1);
        let missing = "a reply that the recording does not contain";
        assert_eq!(tally.missing[missing], 1);
    }

    #[test]
    fn recording_without_a_call_of_a_model_is_refused() {
        let entry = har_entry(
            "https://example.com",
            &json!({"a": 1}),
            &json!({"text": "{}"}),
        );
        let har = json!({"log": {"version": "1.2", "entries": [entry]}});
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("page.har");
        std::fs::write(&path, har.to_string()).expect("written");
        let refused = crate::transcript::TranscriptFile::open(&path).expect_err("no transcripts");
        assert!(
            refused.to_string().contains("a recording of HTTP calls"),
            "{refused}"
        );
    }
}
