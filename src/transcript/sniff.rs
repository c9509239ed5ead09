//! The foreign formats we can name, and what a record tells about itself: the keys of its top level.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::Text;

/// A table's name, if the line is the header of one.
pub(super) fn csv(line: &[u8]) -> Option<&'static str> {
    let header = std::str::from_utf8(line).ok()?.trim();
    let columns: Vec<&str> = header.split(',').map(|c| c.trim_matches('"')).collect();
    // Names alone: a sentence with a comma is no header.
    let is_name = |c: &&str| {
        !c.is_empty()
            && c.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    if columns.len() < 2 || !columns.iter().all(is_name) {
        return None;
    }
    let evalbench = [
        "job_id",
        "eval_id",
        "scenario_id",
        "generated_sql",
        "run_time",
    ];
    Some(if columns.iter().any(|c| evalbench.contains(c)) {
        "an evalbench result table (CSV)"
    } else {
        "a CSV table"
    })
}

type Sign = (&'static str, fn(&Sniff) -> bool);

/// Formats by the keys of their first record.
const SIGNS: [Sign; 17] = [
    ("a Codex rollout", |s| {
        s.has("payload") && s.has("timestamp") && s.has("type")
    }),
    ("the output of `codex exec --json`", |s| {
        s.kind_begins(&["thread.", "turn.", "item."])
    }),
    ("a Claude Code session", |s| {
        (s.has("sessionId") && (s.has("uuid") || s.has("message") || s.has("type")))
            || (s.has("leafUuid") && s.has("summary"))
            || s.kind_begins(&[
                "file-history-snapshot",
                "queue-operation",
                "permission-mode",
            ])
    }),
    ("promptfoo results", |s| {
        (s.has("evalId") && (s.has("results") || s.has("config")))
            || (s.has("promptIdx") && s.has("testIdx"))
    }),
    ("OpenTelemetry spans (OTLP JSON)", |s| {
        s.has("resourceSpans") || s.has("resourceLogs")
    }),
    ("Gemini contents", |s| {
        s.has("contents") || s.has("candidates")
    }),
    ("an Anthropic message", |s| {
        s.has("role") && s.has("content") && s.kind_begins(&["message"])
    }),
    (
        "a bare list of messages (each record is to be an object with `messages`)",
        |s| s.has("role"),
    ),
    ("an Inspect log", |s| {
        s.has("eval") && (s.has("status") || s.has("plan") || s.has("samples"))
    }),
    ("a Harbor trajectory (ATIF)", |s| {
        s.has("schema_version") && (s.has("steps") || s.has("agent"))
    }),
    ("a LangSmith run", |s| {
        s.has("run_type") && (s.has("inputs") || s.has("dotted_order"))
    }),
    ("a Langfuse export", |s| {
        s.has("observations") || s.has("trace_id") || s.has("traceId")
    }),
    ("a DeepEval test run", |s| {
        s.has("testCases") || s.has("testRunData")
    }),
    ("OpenAI batch output", |s| {
        s.has("custom_id") && s.has("response")
    }),
    ("request and response pairs", |s| {
        s.has("request") && s.has("response")
    }),
    ("OpenAI Responses items", |s| {
        (s.has("object") && s.has("output"))
            || s.kind_begins(&["function_call", "message", "reasoning"])
    }),
    ("a dicta run's event log", |s| s.has("seq") && s.has("kind")),
];

/// The keys of a record's top level, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Sniff {
    keys: Vec<String>,
    /// `type`, where it is a string.
    kind: String,
}

impl Sniff {
    pub(super) fn of(record: &[u8]) -> Self {
        let mut sniff = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(record);
        // An error is no loss: what was read before it is kept, and the parser will report it.
        let _torn = (&mut sniff).deserialize(&mut reader);
        sniff
    }

    /// Whether the key stands at the top.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|k| k == key)
    }

    /// The format this record is in, if it is one of those we know by name.
    pub(super) fn format(&self) -> Option<&'static str> {
        SIGNS.iter().find(|(_, is)| is(self)).map(|(name, _)| *name)
    }

    fn kind_begins(&self, with: &[&str]) -> bool {
        with.iter().any(|w| self.kind.starts_with(w))
    }

    /// What was found instead of messages, as a sentence.
    pub(super) fn describe(&self, record: &[u8]) -> String {
        if !self.keys.is_empty() {
            let keys: Vec<String> = self
                .keys
                .iter()
                .take(6)
                .map(|k| format!("{:?}", clip(k)))
                .collect();
            return format!(
                "its first record has no `messages` (it has {})",
                keys.join(", ")
            );
        }
        let line = record.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let begin = clip(line.trim());
        if begin.starts_with('{') {
            return format!("its first record is not JSON with `messages`: {begin:?}");
        }
        format!("it is neither JSON lines nor a JSON array of objects; it begins with {begin:?}")
    }
}

/// The first forty characters.
fn clip(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(at, _)| &text[..at])
}

impl<'de> DeserializeSeed<'de> for &mut Sniff {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Sniff {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let is_kind = &*key == "type";
            if self.keys.len() < 256 {
                self.keys.push(key.0.into_owned());
            }
            if is_kind {
                let raw: &'de RawValue = map.next_value()?;
                self.kind = serde_json::from_str(raw.get()).unwrap_or_default();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
