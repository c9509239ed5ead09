//! Every format we know, with the signs it is recognised by: one table, in the order in which the signs are looked for.
//!
//! A format is one file here with a function of type [`Open`]. A format without one is named to the user, never read as
//! something else.

pub(super) mod anthropic;
mod blocks;
mod claude_code;

use super::TranscriptError;
use super::detect::Look;
use super::reader::{Native, Reader};
use super::sniff;
use super::source::Source;

/// Makes the reader of a file that was recognised.
pub(super) type Open = fn(&Source, &Look<'_>) -> Result<Box<dyn Reader>, TranscriptError>;

/// A format of text.
pub(super) struct Format {
    /// As a sentence can hold it, with its article.
    pub(super) name: &'static str,
    /// Whether a file is in it.
    pub(super) is: fn(&Look<'_>) -> bool,
    /// `None`: recognised, not read yet.
    pub(super) open: Option<Open>,
}

/// A format by its first bytes.
pub(super) struct Magic {
    pub(super) bytes: &'static [u8],
    /// See [`Format::name`].
    pub(super) name: &'static str,
    /// See [`Format::open`].
    pub(super) open: Option<Open>,
}

/// Formats that are no text.
pub(super) const MAGIC: [Magic; 6] = [
    Magic {
        bytes: b"PK\x03\x04",
        name: "a zip archive (Inspect's .eval logs are such)",
        open: None,
    },
    Magic {
        bytes: b"\x1f\x8b",
        name: "a gzip file",
        open: None,
    },
    Magic {
        bytes: b"\x28\xb5\x2f\xfd",
        name: "a Zstandard file",
        open: None,
    },
    Magic {
        bytes: b"SQLite format 3\0",
        name: "an SQLite database",
        open: None,
    },
    Magic {
        bytes: b"PAR1",
        name: "a Parquet file",
        open: None,
    },
    Magic {
        bytes: b"ObjAvro",
        name: "an Avro file",
        open: None,
    },
];

/// The native form.
pub(super) const NATIVE: Format = Format {
    name: "native",
    is: |look| look.any(|s| s.has("messages")),
    open: Some(|_, look| Ok(Box::new(Native(look.walk())))),
};

/// Formats of text. What holds `messages` in OpenAI's shapes is native whatever else it holds; so formats whose records
/// hold `messages` of another kind stand before it.
pub(super) const FORMATS: [Format; 21] = [
    Format {
        name: "Anthropic messages (content blocks)",
        is: anthropic::is,
        open: Some(|_, look| Ok(anthropic::reader(look))),
    },
    NATIVE,
    Format {
        name: "a Codex rollout",
        is: |look| look.first(|s| s.has("payload") && s.has("timestamp") && s.has("type")),
        open: None,
    },
    Format {
        name: "the output of `codex exec --json`",
        is: |look| look.first(|s| s.kind_begins(&["thread.", "turn.", "item."])),
        open: None,
    },
    Format {
        name: "a Claude Code session",
        is: claude_code::is,
        open: Some(|_, look| Ok(claude_code::reader(look))),
    },
    Format {
        name: "promptfoo results",
        is: |look| {
            look.first(|s| {
                (s.has("evalId") && (s.has("results") || s.has("config")))
                    || (s.has("promptIdx") && s.has("testIdx"))
            })
        },
        open: None,
    },
    Format {
        name: "OpenTelemetry spans (OTLP JSON)",
        is: |look| look.first(|s| s.has("resourceSpans") || s.has("resourceLogs")),
        open: None,
    },
    Format {
        name: "Gemini contents",
        is: |look| look.first(|s| s.has("contents") || s.has("candidates")),
        open: None,
    },
    Format {
        name: "a bare list of messages (each record is to be an object with `messages`)",
        is: |look| look.first(|s| s.has("role")),
        open: None,
    },
    Format {
        name: "an Inspect log",
        is: |look| {
            look.first(|s| s.has("eval") && (s.has("status") || s.has("plan") || s.has("samples")))
        },
        open: None,
    },
    Format {
        name: "a Harbor trajectory (ATIF)",
        is: |look| look.first(|s| s.has("schema_version") && (s.has("steps") || s.has("agent"))),
        open: None,
    },
    Format {
        name: "a LangSmith run",
        is: |look| look.first(|s| s.has("run_type") && (s.has("inputs") || s.has("dotted_order"))),
        open: None,
    },
    Format {
        name: "a Langfuse export",
        is: |look| look.first(|s| s.has("observations") || s.has("trace_id") || s.has("traceId")),
        open: None,
    },
    Format {
        name: "a DeepEval test run",
        is: |look| look.first(|s| s.has("testCases") || s.has("testRunData")),
        open: None,
    },
    Format {
        name: "OpenAI batch output",
        is: |look| look.first(|s| s.has("custom_id") && s.has("response")),
        open: None,
    },
    Format {
        name: "request and response pairs",
        is: |look| look.first(|s| s.has("request") && s.has("response")),
        open: None,
    },
    Format {
        name: "OpenAI Responses items",
        is: |look| {
            look.first(|s| {
                (s.has("object") && s.has("output"))
                    || s.kind_begins(&["function_call", "message", "reasoning"])
            })
        },
        open: None,
    },
    Format {
        name: "a dicta run's event log",
        is: |look| look.first(|s| s.has("seq") && s.has("kind")),
        open: None,
    },
    Format {
        name: "an evalbench evalset",
        is: |look| look.first(|s| s.has("scenarios")),
        open: None,
    },
    Format {
        name: "an evalbench result table (CSV)",
        is: |look| {
            let evalbench = [
                "job_id",
                "eval_id",
                "scenario_id",
                "generated_sql",
                "run_time",
            ];
            columns(look).is_some_and(|columns| columns.iter().any(|c| evalbench.contains(c)))
        },
        open: None,
    },
    Format {
        name: "a CSV table",
        is: |look| columns(look).is_some(),
        open: None,
    },
];

fn columns<'h>(look: &Look<'h>) -> Option<Vec<&'h str>> {
    sniff::columns(look.records.first()?.bytes)
}
