//! promptfoo's results: the JSON and JSONL of `promptfoo eval -o` and `promptfoo export`, and the older `output/*.json`
//! of its home directory.
//!
//! Responsible for the conversation and metadata of a result. Does not read verdicts (`grading.rs`), or promptfoo's
//! YAML, CSV, HTML and XML.
//!
//! | file | location of the results |
//! |---|---|
//! | `-o out.json`, third format | `results.results` |
//! | second format (2024) | `results.results`, else the cells of `results.table.body` |
//! | a summary of `evaluate()`, results of 2023, a shared eval | `results`, a list |
//! | `-o out.jsonl` | one per line; two objects on one line are two results |
//!
//! One result is one transcript: the prompt (a text is a user message; a JSON list of chat messages is several), then
//! the output of the response. The list of results is found by its bytes and read one element at a time, so memory does
//! not grow with the file. Latency, tokens and cost belong to the output. If the prompt itself contains replies, they
//! also belong to the transcript. Vars, provider, prompt label and the result's own metadata are the transcript's
//! metadata.

mod grading;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{MessageRole, SourceText, Transcript, TranscriptMessage, TranscriptPart};
use crate::transcript::TranscriptError;
use crate::transcript::content::ObjectOnly;
use crate::transcript::detect::FilePreview;
use crate::transcript::fields::{RawFields, compact_json};
use crate::transcript::json_path::{find_array_offset, find_text, find_value_offset};
use crate::transcript::metadata::{MetadataBuilder, SourceUsage};
use crate::transcript::native;
use crate::transcript::native::parse_or_none;
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::source::SourceFile;
use crate::transcript::walk::RecordWalker;
use grading::PromptfooOutcome;

/// The paths of the results. An eval that was shared until 2024 has all keys below `data`.
const RESULTS_PATHS: [&[&str]; 2] = [&["results", "results"], &["data", "results", "results"]];
/// The paths of the rows of the table.
const TABLE_PATHS: [&[&str]; 2] = [
    &["results", "table", "body"],
    &["data", "results", "table", "body"],
];
/// The results of a bare summary, as `evaluate()` returns it, and of a shared eval.
const SUMMARY_PATH: &[&str] = &["results"];

/// Returns true if a file contains promptfoo's results.
pub(super) fn is_results(preview: &FilePreview<'_>) -> bool {
    is_result_line(preview)
        || is_summary(preview)
        || preview.first_matches(|s| s.has("evalId") && (s.has("results") || s.has("config")))
        // A file may have no `evalId`. Then the path to the results decides.
        || preview.records.first().is_some_and(|seen| {
            // The body of a table may come after the preview.
            let tables: [&[&str]; 2] = [&["results", "table"], &["data", "results", "table"]];
            let has = |path: &[&str], first: u8| find_value_offset(seen.bytes, path, first).is_some();
            (seen.sniff.has("results") || seen.sniff.has("data"))
                && (RESULTS_PATHS.iter().any(|path| has(path, b'['))
                    || tables.iter().any(|path| has(path, b'{')))
        })
}

/// Returns true if a file is a summary without `evalId`: the results are directly in it.
fn is_summary(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let first = record["results"].as_array().and_then(|all| all.first());
    first.is_some_and(|row| {
        let has_prompt = !row["prompt"].is_null() || !row["promptIdx"].is_null();
        let outcome = ["response", "gradingResult", "success", "error"];
        has_prompt && outcome.iter().any(|key| !row[*key].is_null())
    })
}

fn is_result_line(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        (s.has("promptIdx") && s.has("testIdx")) || (s.has("gradingResult") && s.has("latencyMs"))
    })
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    // The preview is enough: promptfoo writes `evalId` at the beginning of the file.
    let eval = find_text(&preview.bytes[preview.start..], &["evalId"]);
    let eval = eval.unwrap_or_else(|| source.stem().to_owned());
    if is_result_line(preview) {
        return Ok(Box::new(PerRecordReader::new(
            preview.record_walker(),
            PromptfooResultParser { eval },
        )));
    }
    let start = preview.start as u64;
    for path in RESULTS_PATHS {
        if let Some(at) = find_array_offset(source, start, path)? {
            let walk = RecordWalker::over_one_list(at, path.len());
            return Ok(Box::new(PerRecordReader::new(
                walk,
                PromptfooResultParser { eval },
            )));
        }
    }
    if is_summary(preview)
        && let Some(at) = find_array_offset(source, start, SUMMARY_PATH)?
    {
        let walk = RecordWalker::over_one_list(at, SUMMARY_PATH.len());
        return Ok(Box::new(PerRecordReader::new(
            walk,
            PromptfooResultParser { eval },
        )));
    }
    // Some files of the second format have only the table.
    for path in TABLE_PATHS {
        if let Some(at) = find_array_offset(source, start, path)? {
            let walk = RecordWalker::over_one_list(at, path.len());
            return Ok(Box::new(PerRecordReader::new(
                walk,
                PromptfooTableParser { eval },
            )));
        }
    }
    Err(source.unknown_error(
        "these are promptfoo results without `results.results` or `results.table.body`; write them again with `promptfoo export eval -o out.json`",
    ))
}

/// Adds the transcript of a result of promptfoo's database. Its keys are those of a result in a file.
#[cfg(feature = "sqlite")]
pub(super) fn parse_result(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let eval = cx.source.stem().to_owned();
    PromptfooResultParser { eval }.parse_record(record, cx, out)
}

/// Adds the transcripts of an eval of an older database. The record has its results below `summary`, next to `evalId`.
#[cfg(feature = "sqlite")]
pub(super) fn parse_eval(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let outer = RawFields::parse(record)?;
    let eval = outer.text("evalId").unwrap_or_default().0.into_owned();
    let parser = PromptfooResultParser { eval };
    let summary = outer.object("summary").unwrap_or_default();
    let results = summary.list("results").unwrap_or_default();
    out.count_elements(results.len());
    for result in results {
        if let Err(why) = parser.parse_record(result.get(), cx, out) {
            out.push_fault(why);
        }
    }
    Ok(())
}

/// The parser of elements of `results.results` and lines of JSONL.
#[derive(Debug)]
struct PromptfooResultParser {
    eval: String,
}

/// The parser of elements of `results.table.body`.
#[derive(Debug)]
struct PromptfooTableParser {
    eval: String,
}

#[derive(Deserialize, Default)]
struct PromptfooResultRow<'a> {
    #[serde(borrow, default)]
    id: Option<SourceText<'a>>,
    #[serde(default, rename = "testIdx")]
    test_idx: Option<u64>,
    #[serde(default, rename = "promptIdx")]
    prompt_idx: Option<u64>,
    #[serde(borrow, default)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider: Option<&'a RawValue>,
    #[serde(borrow, default)]
    vars: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default, rename = "failureReason")]
    failure: Option<u64>,
    #[serde(borrow, default, alias = "pass")]
    success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "latencyMs")]
    latency: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tokenUsage")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "gradingResult")]
    grading: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "testCase")]
    test: Option<&'a RawValue>,
    /// The cell of a table: the output, after the reason of a failure.
    #[serde(borrow, default)]
    text: Option<SourceText<'a>>,
}

#[derive(Deserialize, Default)]
struct PromptfooPrompt<'a> {
    #[serde(borrow, default)]
    raw: Option<SourceText<'a>>,
    #[serde(borrow, default, alias = "display")]
    label: Option<SourceText<'a>>,
}

#[derive(Deserialize, Default)]
struct PromptfooResponse<'a> {
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tokenUsage")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(default)]
    cached: Option<bool>,
    #[serde(borrow, default, rename = "finishReason")]
    stopped: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isRefusal")]
    refused: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct PromptfooUsage {
    #[serde(default)]
    prompt: Option<u64>,
    #[serde(default)]
    completion: Option<u64>,
    #[serde(default)]
    total: Option<u64>,
    #[serde(default, rename = "completionDetails")]
    details: Option<PromptfooUsageDetails>,
}

#[derive(Deserialize, Default)]
struct PromptfooUsageDetails {
    #[serde(default)]
    reasoning: Option<u64>,
    #[serde(default, rename = "cacheReadInputTokens")]
    cache_read: Option<u64>,
}

#[derive(Deserialize)]
struct PromptfooTableRow<'a> {
    #[serde(borrow)]
    outputs: Vec<ObjectOnly<PromptfooResultRow<'a>>>,
    #[serde(borrow, default)]
    test: Option<&'a RawValue>,
    #[serde(default, rename = "testIdx")]
    test_idx: Option<u64>,
}

impl RecordParser for PromptfooResultParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let rows = serde_json::Deserializer::from_str(record).into_iter::<&RawValue>();
        let mut first = true;
        for raw in rows {
            let raw = raw.map_err(|why| why.to_string())?;
            // The reader has already counted the line once.
            if !std::mem::take(&mut first) {
                out.count_records(1);
            }
            let row: ObjectOnly<PromptfooResultRow<'_>> =
                serde_json::from_str(raw.get()).map_err(|why| why.to_string())?;
            let ObjectOnly(row) = row;
            // A line may contain another object than a result.
            if row.prompt.is_none() && row.response.is_none() && row.grading.is_none() {
                out.count_unknown(
                    "an object that is not a result (it has no prompt, response or grading)",
                );
                continue;
            }
            match row.into_transcript(&self.eval) {
                Ok(transcript) => out.push_transcript(&transcript),
                Err(why) => out.push_fault(why),
            }
        }
        Ok(())
    }
}

impl RecordParser for PromptfooTableParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let body: ObjectOnly<PromptfooTableRow<'_>> =
            serde_json::from_str(record).map_err(|why| why.to_string())?;
        let ObjectOnly(body) = body;
        for (at, ObjectOnly(cell)) in body.outputs.into_iter().enumerate() {
            let cell = PromptfooResultRow {
                // A cell may have its own numbers. Otherwise those of its row and column count.
                test_idx: cell.test_idx.or(body.test_idx),
                prompt_idx: cell.prompt_idx.or(Some(at as u64)),
                test: cell.test.or(body.test),
                ..cell
            };
            match cell.into_transcript(&self.eval) {
                Ok(transcript) => out.push_transcript(&transcript),
                Err(why) => out.push_fault(why),
            }
        }
        Ok(())
    }
}

/// Returns a value; as text if it is nested too deeply for a tree.
fn json_or_text(raw: Option<&RawValue>) -> Value {
    raw.map_or(Value::Null, |raw| {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into())
    })
}

/// Returns an error as text.
fn error_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw.filter(|raw| !matches!(raw.get(), "null" | "\"\""))?;
    Some(serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned()))
}

fn parse_object<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    parse_or_none::<ObjectOnly<T>>(raw).map(|ObjectOnly(object)| object)
}

impl<'a> PromptfooResultRow<'a> {
    fn into_transcript(self, eval: &str) -> Result<Transcript<'a>, String> {
        let id = promptfoo_id(self.id.as_deref(), eval, self.test_idx, self.prompt_idx);
        let response: PromptfooResponse<'a> = parse_object(self.response).unwrap_or_default();
        // The prompt is a text, or an object `{raw, label}`.
        let prompt = match parse_or_none::<SourceText<'a>>(self.prompt) {
            Some(raw) => PromptfooPrompt {
                raw: Some(raw),
                label: None,
            },
            None => parse_object(self.prompt).unwrap_or_default(),
        };
        let mut messages = parse_prompt_messages(prompt.raw.as_ref());
        if messages.is_empty() {
            // The text contains half a surrogate pair, or the value is not a text: keep it as written.
            let as_written = || match RawFields::from_raw(self.prompt?) {
                Some(prompt) => prompt.text_or_json("raw"),
                None => self.prompt.map(native::text_or_json),
            };
            messages = parse_prompt_messages(as_written().as_ref());
        }
        let has_replies = messages.iter().any(|m| m.role == MessageRole::Assistant);
        let mut meta = MetadataBuilder::default();
        meta.set("source", "promptfoo");
        let provider_error = self.provider_failure(&response);
        if let Some(why) = &provider_error {
            meta.set("error", why.as_str());
        }
        let metrics = self.reply_metrics(&response);
        // The prompt contains replies, so the metrics are those of the whole conversation.
        if has_replies {
            for (key, value) in &metrics {
                meta.set(key, value.clone());
            }
        }
        let output = match (&self.text, response.output) {
            // A cell of a table: its text is the output, unless the provider failed.
            (Some(text), None) if provider_error.is_none() => {
                let text = self.strip_reason(text);
                (!text.is_empty()).then(|| PromptfooOutput::text(text.to_owned().into()))
            }
            (_, Some(output)) => parse_output(output),
            _ => None,
        };
        if let Some(PromptfooOutput { parts, form }) = output {
            let mut reply_meta = MetadataBuilder::default();
            reply_meta.set("output_type", form);
            for (key, value) in metrics {
                reply_meta.set(key, value);
            }
            if let Some(cached) = response.cached {
                reply_meta.set("cached", cached);
            }
            reply_meta.set("stop_reason", json_or_text(response.stopped));
            if json_or_text(response.refused) == Value::Bool(true) {
                reply_meta.set("refusal", true);
            }
            messages.push(TranscriptMessage {
                role: MessageRole::Assistant,
                parts,
                metadata: reply_meta.finish(),
            });
        } else if !has_replies {
            // The metrics of a call without an output.
            for (key, value) in metrics {
                meta.set(key, value);
            }
        }
        self.write_metadata(&prompt, &mut meta);
        // A result without a grading has its own pass and score.
        let outcome = PromptfooOutcome {
            pass: self.success,
            score: self.score,
            provider_error,
        };
        Ok(Transcript {
            id: SourceText::from(id.unwrap_or_default()),
            messages,
            metadata: meta.finish(),
            tags: Vec::new(),
            verdicts: grading::parse_verdicts(self.grading, &outcome)?,
        })
    }

    /// Returns the reason why the provider failed. A failed assertion is not a failure of the run.
    fn provider_failure(&self, response: &PromptfooResponse<'_>) -> Option<String> {
        let is_graded = self.grading.is_some_and(|raw| raw.get() != "null");
        let row_error = match self.failure {
            // In promptfoo, 2 means an error and 1 a failed assertion.
            Some(2) => error_text(self.error),
            // Without a reason and a grading, the error is that of the provider.
            None if !is_graded => error_text(self.error),
            _ => None,
        };
        error_text(response.error).or(row_error)
    }

    /// Returns latency, tokens and cost of the output, by their standard keys.
    fn reply_metrics(&self, response: &PromptfooResponse<'_>) -> Vec<(&'static str, Value)> {
        let mut metrics = Vec::new();
        if let Some(latency) = self.latency.filter(|raw| raw.get() != "null") {
            metrics.push(("latency_ms", json_or_text(Some(latency))));
        }
        // A result's sum begins at 0, so 0 means absent unless the response has counts.
        let row_usage: Option<PromptfooUsage> =
            parse_object(self.usage).filter(|usage: &PromptfooUsage| usage.total != Some(0));
        let usage = parse_object(response.usage).or(row_usage);
        if let Some(usage) = usage {
            metrics.push(("usage", usage.to_usage().to_json()));
        }
        // A cost in the response is exact, even 0. In the row, 0 means that it is unknown.
        let reported = parse_or_none::<f64>(response.cost).map(|_| json_or_text(response.cost));
        let row_cost = parse_or_none::<f64>(self.cost).filter(|cost| *cost > 0.0);
        if let Some(cost) = reported.or(row_cost.map(|_| json_or_text(self.cost))) {
            metrics.push(("cost_usd", cost));
        }
        metrics
    }

    /// Removes the reason of a failure, which a table writes before the output.
    fn strip_reason<'t>(&self, text: &'t str) -> &'t str {
        #[derive(Deserialize)]
        struct PromptfooReason<'r> {
            #[serde(borrow)]
            reason: SourceText<'r>,
        }
        let reason = parse_object::<PromptfooReason<'_>>(self.grading);
        reason
            .and_then(|grading| text.strip_prefix(&*grading.reason))
            // promptfoo's table view writes this separator after the reason.
            .and_then(|rest| rest.strip_prefix("\n---\n"))
            .unwrap_or(text)
    }

    fn write_metadata(&self, prompt: &PromptfooPrompt<'_>, meta: &mut MetadataBuilder) {
        #[derive(Deserialize, Default)]
        struct PromptfooProvider<'p> {
            #[serde(borrow, default)]
            id: Option<SourceText<'p>>,
            #[serde(borrow, default)]
            label: Option<SourceText<'p>>,
        }
        #[derive(Deserialize, Default)]
        struct PromptfooTestCase<'p> {
            #[serde(borrow, default)]
            description: Option<&'p RawValue>,
            #[serde(borrow, default)]
            vars: Option<&'p RawValue>,
        }
        let test: PromptfooTestCase<'_> = parse_object(self.test).unwrap_or_default();
        meta.set("vars", json_or_text(self.vars.or(test.vars)));
        // A provider is a text, or an object with a label.
        if let Some(id) = parse_or_none::<SourceText<'_>>(self.provider) {
            meta.set("provider", &*id);
        } else {
            let provider: PromptfooProvider<'_> = parse_object(self.provider).unwrap_or_default();
            if let Some(label) = provider.label.filter(|label| !label.is_empty()) {
                meta.set("provider_label", &*label);
            }
            if let Some(id) = provider.id {
                meta.set("provider", &*id);
            }
        }
        if let Some(label) = &prompt.label {
            meta.set("prompt_label", &**label);
        }
        meta.set("description", json_or_text(test.description));
        meta.set("test_idx", self.test_idx);
        meta.set("prompt_idx", self.prompt_idx);
        if let Value::Object(mut source_metadata) = json_or_text(self.metadata) {
            // These keys are promptfoo's internal state.
            source_metadata.retain(|key, _| !key.starts_with("_promptfoo"));
            meta.merge_source(Value::Object(source_metadata));
        }
    }
}

impl PromptfooUsage {
    fn to_usage(&self) -> SourceUsage {
        let details = self.details.as_ref();
        // promptfoo writes 0 for counts that the provider did not return.
        let non_zero = |count: Option<u64>| count.filter(|count| *count > 0);
        SourceUsage {
            input: self.prompt,
            output: self.completion,
            total: self.total,
            cached: non_zero(details.and_then(|details| details.cache_read)),
            thinking: non_zero(details.and_then(|details| details.reasoning)),
        }
    }
}

/// Returns the prompt as messages: those of a JSON chat list, or one user message.
fn parse_prompt_messages(raw: Option<&SourceText<'_>>) -> Vec<TranscriptMessage<'static>> {
    let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
        return Vec::new();
    };
    let chat = raw.trim();
    if chat.starts_with('[')
        && let Some(messages) = parse_chat_messages(&format!("{{\"messages\":{chat}}}"))
    {
        return messages;
    }
    if chat.starts_with('{')
        // Some providers use `{messages: […]}` as the prompt.
        && chat.contains("\"messages\"")
        && let Some(messages) = parse_chat_messages(chat)
    {
        return messages;
    }
    vec![TranscriptMessage {
        role: MessageRole::User,
        parts: vec![TranscriptPart::Text(SourceText::from((**raw).to_owned()))],
        metadata: None,
    }]
}

fn parse_chat_messages(record: &str) -> Option<Vec<TranscriptMessage<'static>>> {
    let parsed = native::parse_native(record.as_bytes(), 1, "").ok()?;
    let messages = parsed.into_owned().messages;
    (!messages.is_empty()).then_some(messages)
}

/// An output of a provider.
struct PromptfooOutput {
    parts: Vec<TranscriptPart<'static>>,
    /// `json`, `calls` or `message` of an output that is not a text. The code of an assertion gets its value in this form.
    form: Option<&'static str>,
}

impl PromptfooOutput {
    fn text(text: SourceText<'static>) -> Self {
        Self {
            parts: vec![TranscriptPart::Text(text)],
            form: None,
        }
    }
}

/// Parses the output: text, a message or list of calls in OpenAI's shape, or another value as its JSON on one line, which
/// promptfoo's assertions compare.
fn parse_output(output: &RawValue) -> Option<PromptfooOutput> {
    let written = output.get();
    match written.as_bytes().first()? {
        // null: the provider returned no output.
        b'n' => None,
        // A string with half a surrogate pair, which JavaScript can create, is not valid text. It stays as written.
        b'"' => {
            let text = native::text_or_json(output).into_owned();
            Some(PromptfooOutput::text(text))
        }
        _ => {
            // A list is one of tool calls; an object may be a message with calls.
            let message = if written.starts_with('[') {
                format!("{{\"messages\":[{{\"role\":\"assistant\",\"tool_calls\":{written}}}]}}")
            } else {
                format!("{{\"messages\":[{written}]}}")
            };
            // Only calls are converted. Any other JSON is the output itself, so it stays text.
            let calls = (written.contains("\"function\"")).then(|| parse_chat_messages(&message));
            let calls = calls.flatten().and_then(|mut messages| messages.pop());
            let calls = calls.filter(|message| {
                message
                    .parts
                    .iter()
                    .any(|p| matches!(p, TranscriptPart::ToolCall(_)))
            });
            Some(match calls {
                Some(message) => PromptfooOutput {
                    parts: message.parts,
                    form: Some(if written.starts_with('[') {
                        "calls"
                    } else {
                        "message"
                    }),
                },
                None => PromptfooOutput {
                    form: Some("json"),
                    ..PromptfooOutput::text(compact_json(written).into_owned().into())
                },
            })
        }
    }
}

/// Returns the id of a result: its `id`, else `<eval>:<testIdx>:<promptIdx>`. `eval` is the file's `evalId`, or the
/// stem of the file name. Transcripts and human ratings of one file must use the same id. Returns `None` if the result
/// has neither (before promptfoo's third format); then the transcript's id contains its record number.
pub fn promptfoo_id(
    id: Option<&str>,
    eval: &str,
    test: Option<u64>,
    prompt: Option<u64>,
) -> Option<String> {
    match (id.filter(|id| !id.is_empty()), test, prompt) {
        (Some(id), _, _) => Some(id.to_owned()),
        (None, Some(test), Some(prompt)) => Some(format!("{eval}:{test}:{prompt}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
