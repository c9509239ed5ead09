//! Which format a file is in, from its first bytes alone; names and endings count for nothing.
//!
//! A file is native if one of its first records holds `messages`, whatever else is in it. A format that is recognised
//! but not read yet is named; anything else is described.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::native;
use super::scan::ValueScan;
use crate::model::Text;

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One a line.
    Lines,
    /// One after another over any lines, as elements of an array or bare.
    Values {
        /// Whether an array is open.
        array: bool,
    },
    /// All have been read.
    Done,
}

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detected {
    pub(super) form: Form,
    /// Where records begin: after a byte order mark, white space, an opening bracket.
    pub(super) start: usize,
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unsupported(&'static str),
    Unknown(String),
}

/// How many records are looked at before a file is called foreign.
const LOOK_AT: usize = 64;

const MAGIC: [(&[u8], &str); 6] = [
    (
        b"PK\x03\x04",
        "a zip archive (Inspect's .eval logs are such)",
    ),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ObjAvro", "an Avro file"),
];

/// Recognises a file from `head`, its first bytes; `whole` if these are all.
pub(super) fn detect(head: &[u8], whole: bool) -> Result<Detected, Refusal> {
    if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(Refusal::Unsupported(format));
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Refusal::Unknown(
            "it is UTF-16 text; save it as UTF-8".to_owned(),
        ));
    }
    let bom = if head.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let blank = head[bom..].len() - head[bom..].trim_ascii_start().len();
    let start = bom + blank;
    let body = &head[start..];
    match body.first() {
        None => Err(Refusal::Unknown("it holds only white space".to_owned())),
        Some(b'[') => {
            let found = Detected {
                form: Form::Values { array: true },
                start: start + 1,
            };
            recognise(values(body[1..].trim_ascii_start()), found)
        }
        Some(b'{') if spans_lines(body, whole) => {
            let found = Detected {
                form: Form::Values { array: false },
                start,
            };
            recognise(values(body), found)
        }
        Some(_) => {
            let lines = body
                .split(|b| *b == b'\n')
                .filter(|line| !line.trim_ascii().is_empty());
            recognise(
                lines,
                Detected {
                    form: Form::Lines,
                    start,
                },
            )
        }
    }
}

/// Whether the object at the beginning goes over several lines, rather than being one of the lines of JSONL.
fn spans_lines(body: &[u8], whole: bool) -> bool {
    let mut scan = ValueScan::default();
    let end = scan.feed(body);
    let first_line = memchr::memchr(b'\n', body).unwrap_or(body.len());
    match end {
        Some(end) => end > first_line && !scan.torn_string,
        // Not closed: a large object, or a first line that is broken. Then the second one is whole.
        None if whole || scan.torn_string => false,
        None => {
            let rest = body[first_line..].trim_ascii_start();
            let line = rest
                .split(|b| *b == b'\n')
                .next()
                .unwrap_or_default()
                .trim_ascii_end();
            !(line.starts_with(b"{") && ValueScan::default().feed(line) == Some(line.len()))
                && first_line < body.len()
        }
    }
}

/// The values at the beginning of `body`, the last one perhaps torn.
fn values(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let begin = rest
            .iter()
            .position(|b| !(b.is_ascii_whitespace() || *b == b','))?;
        rest = &rest[begin..];
        if rest[0] == b']' {
            return None;
        }
        let len = ValueScan::default().feed(rest).unwrap_or(rest.len());
        let (value, after) = rest.split_at(len);
        rest = after;
        Some(value)
    })
}

fn recognise<'a>(
    records: impl Iterator<Item = &'a [u8]>,
    found: Detected,
) -> Result<Detected, Refusal> {
    let mut first = None;
    for record in records.take(LOOK_AT) {
        let sniff = Sniff::of(record);
        if sniff.has("messages") {
            return match native::foreign_shape(record) {
                Some(format) => Err(Refusal::Unsupported(format)),
                None => Ok(found),
            };
        }
        first.get_or_insert((record, sniff));
    }
    let Some((record, sniff)) = first else {
        return Ok(found); // An empty array: no transcripts, and nothing wrong.
    };
    if let Some((format, _)) = SIGNS.iter().find(|(_, is)| is(&sniff)) {
        return Err(Refusal::Unsupported(format));
    }
    Err(csv(record).map_or_else(
        || Refusal::Unknown(sniff.describe(record)),
        Refusal::Unsupported,
    ))
}

fn csv(line: &[u8]) -> Option<&'static str> {
    let header = std::str::from_utf8(line).ok()?.trim();
    let columns: Vec<&str> = header.split(',').map(|c| c.trim_matches('"')).collect();
    if columns.len() < 2 || header.starts_with(['{', '[']) {
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
struct Sniff {
    keys: Vec<String>,
    /// `type`, where it is a string.
    kind: String,
}

impl Sniff {
    fn of(record: &[u8]) -> Self {
        let mut sniff = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(record);
        // An error is no loss: what was read before it is kept, and the parser will report it.
        let _torn = (&mut sniff).deserialize(&mut reader);
        sniff
    }

    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|k| k == key)
    }

    fn kind_begins(&self, with: &[&str]) -> bool {
        with.iter().any(|w| self.kind.starts_with(w))
    }

    fn describe(&self, record: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(start: usize) -> Result<Detected, Refusal> {
        Ok(Detected {
            form: Form::Lines,
            start,
        })
    }

    fn values_from(array: bool, start: usize) -> Result<Detected, Refusal> {
        Ok(Detected {
            form: Form::Values { array },
            start,
        })
    }

    #[test]
    fn a_file_with_messages_is_native_in_every_layout() {
        let cases: [(&str, Result<Detected, Refusal>); 12] = [
            ("{\"messages\":[]}\n", lines(0)),
            ("\u{feff}{\"messages\":[]}", lines(3)),
            ("\r\n\r\n {\"id\":1,\"messages\":[]}\r\n", lines(5)),
            ("{\n \"messages\": []\n}\n", values_from(false, 0)),
            (
                "{\"messages\": [\n{\"role\":\"user\",\"content\":\"x\"}\n]}",
                values_from(false, 0),
            ),
            (" [\n{\"messages\":[]}]", values_from(true, 2)),
            ("[]", values_from(true, 1)),
            ("{\"messages\": [{\"role\":\"us", lines(0)),
            (
                "{\"messages\": [\n{\"messages\":[]}\n{\"messages\":[]}\n",
                lines(0),
            ),
            ("{\"id\": \"torn\n{\"messages\":[]}\n", lines(0)),
            ("not json\n{\"messages\":[]}\n", lines(0)),
            (
                "{\"contents\":[],\"sessionId\":1,\"messages\":[]}",
                lines(0),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(detect(text.as_bytes(), true), expected, "{text:?}");
        }
    }

    #[test]
    fn a_large_object_is_told_from_a_broken_first_line() {
        let large = "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"";
        assert_eq!(detect(large.as_bytes(), false), values_from(false, 0));
        let broken = "{\"messages\": [\n{\"messages\":[]}\n{\"messages\":[]}\n";
        assert_eq!(detect(broken.as_bytes(), false), lines(0));
    }

    #[test]
    fn foreign_formats_are_named() {
        let cases = [
            (
                "PK\u{3}\u{4}rest",
                "a zip archive (Inspect's .eval logs are such)",
            ),
            (
                r#"{"type":"user","message":{"role":"user"},"uuid":"u","sessionId":"s"}"#,
                "a Claude Code session",
            ),
            (
                r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
                "a Claude Code session",
            ),
            (
                r#"{"timestamp":"t","type":"session_meta","payload":{}}"#,
                "a Codex rollout",
            ),
            (
                "{\n \"evalId\": \"e\",\n \"results\": {\"version\": 3",
                "promptfoo results",
            ),
            (r#"{"promptIdx":0,"testIdx":1}"#, "promptfoo results"),
            (r#"{"resourceSpans":[]}"#, "OpenTelemetry spans (OTLP JSON)"),
            (
                r#"{"contents":[{"role":"user","parts":[]}]}"#,
                "Gemini contents",
            ),
            (
                r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]}"#,
                "Anthropic messages (content blocks)",
            ),
            (
                "[{\"role\":\"user\",\"content\":\"x\"}]",
                "a bare list of messages (each record is to be an object with `messages`)",
            ),
            (
                "job_id,eval_id,score\n1,2,3\n",
                "an evalbench result table (CSV)",
            ),
            ("a,b\n1,2\n", "a CSV table"),
            (
                r#"{"version":2,"status":"success","eval":{}}"#,
                "an Inspect log",
            ),
            (
                r#"{"schema_version":"ATIF-v1.4","steps":[]}"#,
                "a Harbor trajectory (ATIF)",
            ),
        ];
        for (text, format) in cases {
            assert_eq!(
                detect(text.as_bytes(), true),
                Err(Refusal::Unsupported(format)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_nothing_known_is_described() {
        let cases = [
            ("  \n", "it holds only white space"),
            (
                "# Notes",
                "it is neither JSON lines nor a JSON array of objects; it begins with \"# Notes\"",
            ),
            (
                r#"{"name":"x","version":1}"#,
                r#"its first record has no `messages` (it has "name", "version")"#,
            ),
            (
                "{broken",
                r#"its first record is not JSON with `messages`: "{broken""#,
            ),
        ];
        for (text, why) in cases {
            assert_eq!(
                detect(text.as_bytes(), true),
                Err(Refusal::Unknown(why.to_owned())),
                "{text}"
            );
        }
        assert!(matches!(
            detect(b"\xff\xfe{\0", true),
            Err(Refusal::Unknown(_))
        ));
    }
}
