//! Every format we know, with the signs it is recognised by: one table, in the order in which the signs are looked for.
//!
//! A format is one file here with a function of type [`Open`]. A format without one is named to the user, never read as
//! something else.

mod codex;
mod codex_exec;
mod exchange;
mod gemini;
mod items;
mod openai;
#[cfg(test)]
mod testing;

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
pub(super) const FORMATS: [Format; 24] = [
    Format {
        name: "Anthropic messages (content blocks)",
        is: |look| {
            let with = look.records.iter().find(|seen| seen.sniff.has("messages"));
            with.is_some_and(|seen| super::native::foreign_shape(seen.bytes))
        },
        open: None,
    },
    // Before Gemini's, whose batches are such pairs; before native files, since logs may hold both.
    Format {
        name: "request and response pairs",
        is: |look| {
            look.first(|s| {
                (s.has("request") && s.has("response") && !s.has("messages"))
                    || (s.has("key") && (s.has("request") || s.has("response")))
            })
        },
        open: Some(|_, look| Ok(openai::open(look))),
    },
    NATIVE,
    Format {
        name: "a Codex rollout",
        is: |look| {
            look.first(|s| {
                // Very old files begin with a bare head.
                let head = s.has("id") && s.has("timestamp") && !s.has("type");
                (s.has("payload") && s.has("timestamp") && s.has("type"))
                    || (head && s.has("instructions") && !s.has("input"))
            }) || look.any(|s| s.has("record_type"))
        },
        open: Some(|_, look| Ok(codex::open(look))),
    },
    Format {
        name: "the output of `codex exec --json`",
        is: |look| look.first(|s| s.kind_begins(&["thread.", "turn.", "item."])),
        open: Some(|_, look| Ok(codex_exec::open(look))),
    },
    Format {
        name: "a Claude Code session",
        is: |look| {
            look.first(|s| {
                (s.has("sessionId") && (s.has("uuid") || s.has("message") || s.has("type")))
                    || (s.has("leafUuid") && s.has("summary"))
                    || s.kind_begins(&[
                        "file-history-snapshot",
                        "queue-operation",
                        "permission-mode",
                    ])
            })
        },
        open: None,
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
        name: "an OpenAI batch",
        is: |look| {
            look.first(|s| {
                s.has("custom_id") && (s.has("response") || s.has("error") || s.has("body"))
            })
        },
        open: Some(|_, look| Ok(openai::open(look))),
    },
    Format {
        name: "OpenAI chat completions",
        is: |look| look.first(|s| s.has("choices")),
        open: Some(|_, look| Ok(openai::open(look))),
    },
    Format {
        name: "Gemini contents",
        is: |look| {
            look.first(|s| {
                s.has("contents") || s.has("candidates") || (s.has("role") && s.has("parts"))
            })
        },
        open: Some(|_, look| Ok(gemini::open(look))),
    },
    // Before Anthropic's messages, which have their type and role in common with items.
    Format {
        name: "OpenAI Responses items",
        is: openai::is_items,
        open: Some(|_, look| Ok(openai::open_list(look))),
    },
    Format {
        name: "OpenAI Responses",
        is: openai::is_responses,
        open: Some(|_, look| Ok(openai::open(look))),
    },
    Format {
        name: "an Anthropic message",
        is: |look| look.first(|s| s.has("role") && s.has("content") && s.kind_begins(&["message"])),
        open: None,
    },
    Format {
        name: "a bare list of messages",
        is: openai::is_list,
        open: Some(|_, look| Ok(openai::open_list(look))),
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
