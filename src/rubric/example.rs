//! `examples`: tests of the eval itself, each with a text or a transcript.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::RubricCx;
use super::referenced_files::normalize_path;
use crate::diag::yaml::{
    ConfigKey, MappingDecoder, any_text_schema, choice_names, describe_value, properties_schema,
};
use crate::diag::{SourceSpan, find_nearest};
use crate::model::{Outcome, Transcript};
use crate::transcript;

/// The keys of an example.
const EXAMPLE_KEYS: &[ConfigKey] = &[
    ConfigKey::new("text", "The assistant's output to judge.", any_text_schema),
    ConfigKey::new(
        "transcript",
        "A transcript, or FILE#ID of one in a file.",
        |doc| {
            json!({
                "description": doc,
                "anyOf": [{"type": "object", "required": ["messages"]}, {"type": "string", "minLength": 1}],
            })
        },
    ),
    ConfigKey::new(
        "expect",
        "The verdict that the eval must give.",
        |doc| json!({"enum": choice_names(EXPECTATIONS), "description": doc}),
    ),
    ConfigKey::new("why", "The reason, for people.", any_text_schema),
];

/// The verdicts that an example may expect, with their names in files.
const EXPECTATIONS: &[(&str, Outcome)] = &[
    ("pass", Outcome::Pass),
    ("fail", Outcome::Fail),
    ("na", Outcome::NotApplicable),
];

/// Returns the JSON Schema of `examples`.
pub(super) fn examples_schema(doc: &str) -> Value {
    json!({
        "type": "array",
        "description": doc,
        "items": {
            "type": "object",
            "properties": properties_schema(EXAMPLE_KEYS),
            "required": ["expect"],
            "oneOf": [{"required": ["text"]}, {"required": ["transcript"]}],
            "additionalProperties": false,
        },
    })
}

/// A test of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The text or transcript to judge.
    pub input: ExampleInput,
    /// `pass`, `fail` or `na`.
    pub expect: Outcome,
    /// The author's reason for the expected verdict, a text for people.
    pub why: String,
    /// The place in the file where the example begins.
    pub span: SourceSpan,
}

/// The input of an example.
#[derive(Debug, Clone, PartialEq)]
pub enum ExampleInput {
    /// The output of an assistant, alone.
    Text(String),
    /// A whole transcript.
    Transcript(Arc<Transcript<'static>>),
}

impl RubricCx<'_> {
    pub(super) fn read_examples(&self, fields: &mut MappingDecoder<'_>) -> Vec<Example> {
        let mut examples = Vec::new();
        for (at, _) in fields.list("examples").unwrap_or_default() {
            let mut decoder =
                MappingDecoder::new(self.doc, &at, self.problems).accepting(EXAMPLE_KEYS);
            // The decoder has reported the wrong type.
            if !decoder.is_mapping() {
                continue;
            }
            // Exactly one input.
            match (decoder.has("text"), decoder.has("transcript")) {
                (false, false) => {
                    decoder.error_at_mapping("missing", "an example needs `text` or `transcript`");
                }
                (true, true) => decoder.error(
                    "transcript",
                    "value",
                    "an example has a `text` or a `transcript`, not both",
                ),
                _ => {}
            }
            if !decoder.has("expect") {
                decoder.error_at_mapping("missing", "an example needs `expect`");
            }
            let text = decoder.text_or_empty("text").map(ExampleInput::Text);
            let recorded = self.read_transcript_input(&mut decoder);
            let expect = decoder.choice("expect", EXPECTATIONS);
            let why = decoder.text_or_empty("why").unwrap_or_default();
            decoder.finish();
            if let (Some(input), Some(expect)) = (text.or(recorded), expect) {
                let span = self.doc.key_span(&at);
                // An example from a `$ref` is in another file; its problems then show at the eval of this
                // file.
                let own_file = self.layers.is_own(&span);
                examples.push(Example {
                    input,
                    expect,
                    why,
                    span: if own_file {
                        span
                    } else {
                        self.doc.key_span(fields.mapping_pointer())
                    },
                });
            }
        }
        examples
    }

    fn read_transcript_input(&self, decoder: &mut MappingDecoder<'_>) -> Option<ExampleInput> {
        let value = decoder.value("transcript")?;
        let read = match value {
            // A mapping in the rubric is a record of the native format.
            Value::Object(_) => parse_record(value.to_string().as_bytes()),
            Value::String(written) => {
                let span = self.doc.span(&decoder.pointer("transcript"));
                self.load_named_transcript(written, self.layers.file(&span))
            }
            other => Err(format!(
                "transcript must be {{ messages: … }} or FILE#ID (got {})",
                describe_value(other)
            )),
        };
        match read {
            Ok(transcript) => Some(ExampleInput::Transcript(Arc::new(transcript))),
            Err(why) => {
                decoder.error("transcript", "transcript", why);
                None
            }
        }
    }

    /// Loads a transcript that is named as `file.jsonl#id`, or as `file.jsonl` if the file has only one.
    fn load_named_transcript(
        &self,
        written: &str,
        naming_file: &Path,
    ) -> Result<Transcript<'static>, String> {
        let (file, id) = match written.rsplit_once('#') {
            Some((file, id)) => (file, Some(id)),
            None => (written, None),
        };
        // Relative to the file that contains the example, which can be another file than the rubric.
        let path = normalize_path(&naming_file.parent().unwrap_or(Path::new("")).join(file));
        let text = self.files.read(&path);
        let text = text.map_err(|why| format!("`{file}` {why}"))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut ids: Vec<String> = Vec::new();
        let mut only = None;
        // Blank lines are not records, so they do not count.
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        for (number, line) in (1_u64..).zip(lines) {
            // A broken line is skipped: another line can have the id.
            let Ok(found) =
                transcript::parse_native(line.as_bytes(), number, &format!("{stem}:{number}"))
            else {
                continue;
            };
            // Found: the other lines are not read.
            if Some(&*found.id) == id {
                return Ok(found.into_owned());
            }
            ids.push(found.id.to_string());
            // Without an id only a file with a single transcript is unambiguous.
            if id.is_none() {
                only = Some(found.into_owned());
            }
        }
        match (id, only) {
            (None, Some(only)) if ids.len() == 1 => Ok(only),
            (None, _) => Err(format!(
                "`{file}` holds {} transcripts: name one, as {file}#ID",
                ids.len()
            )),
            (Some(id), _) => Err(match find_nearest(id, ids.iter().map(String::as_str)) {
                Some(near) => format!("`{file}` has no transcript `{id}`; did you mean `{near}`?"),
                None => format!("`{file}` has no transcript `{id}`"),
            }),
        }
    }
}

fn parse_record(record: &[u8]) -> Result<Transcript<'static>, String> {
    transcript::parse_native(record, 1, "example")
        .map(Transcript::into_owned)
        .map_err(|bad| format!("transcript cannot be read: {}", bad.why))
}
