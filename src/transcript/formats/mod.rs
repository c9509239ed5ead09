//! Every format we know, with the signs it is recognised by: one table, in the order in which the signs are looked for.
//!
//! A format is one file here with a function of type [`Open`]. A format without one is named to the user, never read as
//! something else.

pub(super) mod anthropic;
mod arena;
mod atif;
mod blocks;
mod claude_code;
mod codex;
mod codex_exec;
pub(super) mod csv;
#[cfg(test)]
mod docs_tests;
mod evalbench;
mod exchange;
mod gemini;
mod inspect;
mod items;
mod livekit;
pub(super) mod mapped;
mod message;
mod openai;
mod otlp;
mod promptfoo;
pub(super) mod promptfoo_id;
#[cfg(test)]
mod story;
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
        name: "an Inspect log (.eval)",
        open: Some(inspect::open_eval),
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
pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "Anthropic messages (content blocks)",
        is: anthropic::is,
        open: Some(|_, look| Ok(anthropic::reader(look))),
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
    // Before the formats that are recognised by `type` or `metadata` alone.
    Format {
        name: "a result of PromptKit Arena",
        is: |look| {
            look.first(|s| {
                (s.has("RunID") && s.has("Messages"))
                    || (s.has("turns") && s.has("scenario_id"))
                    || (s.has("metadata") && s.has("events"))
            })
        },
        open: Some(arena::open),
    },
    Format {
        name: "a PromptKit recording",
        is: |look| {
            look.first(|s| {
                (s.has("metadata") && s.kind_begins(&["metadata"]))
                    || (s.has("event") && (s.has("seq") || s.kind_begins(&["event"])))
            })
        },
        open: Some(arena::open_lines),
    },
    Format {
        name: "a livekit chat history",
        is: |look| look.first(|s| s.has("chat_history") || s.has("items")),
        open: Some(livekit::open),
    },
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
        is: claude_code::is,
        open: Some(|_, look| Ok(claude_code::reader(look))),
    },
    Format {
        name: "promptfoo results",
        is: promptfoo::is,
        open: Some(promptfoo::open),
    },
    Format {
        name: "OpenTelemetry spans (OTLP JSON)",
        // Metrics and other signals may come first; what Grafana Tempo exports begins with `batches`.
        is: |look| {
            look.any(|s| s.has("resourceSpans") || s.has("resourceLogs"))
                || look.first(|s| s.has("batches"))
        },
        open: Some(otlp::open),
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
        name: "a bare list of messages",
        is: openai::is_list,
        open: Some(|_, look| Ok(openai::open_list(look))),
    },
    Format {
        name: "an Inspect log",
        is: |look| {
            look.first(|s| s.has("eval") && (s.has("status") || s.has("plan") || s.has("samples")))
        },
        open: Some(inspect::open_json),
    },
    Format {
        name: "a Harbor trajectory (ATIF)",
        is: |look| look.first(|s| s.has("schema_version") && (s.has("steps") || s.has("agent"))),
        open: Some(atif::open),
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
        is: evalbench::is_set,
        open: Some(evalbench::open_set),
    },
    Format {
        name: "an evalbench result table (CSV)",
        is: evalbench::is_table,
        open: Some(evalbench::open_table),
    },
    Format {
        name: "a CSV table",
        is: |look| columns(look).is_some() || csv::is_table(look.head),
        // Nobody knows what its columns mean.
        open: Some(csv::unmapped),
    },
];

fn columns<'h>(look: &Look<'h>) -> Option<Vec<&'h str>> {
    sniff::columns(look.records.first()?.bytes)
}
