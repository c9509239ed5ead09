//! All known formats with their signatures, in the order in which dicta checks them.
//!
//! Responsible for the tables of formats. Each format is a file of this folder with a function of type
//! [`ReaderFactory`]. A format without a reader has an entry too, so that the error can name it. Does not read
//! transcripts.

mod anthropic;
mod api_log;
mod arena;
mod atif;
mod claude_code;
mod codex;
mod codex_exec;
mod content_blocks;
pub(super) mod csv;
#[cfg(test)]
mod docs_tests;
mod evalbench;
mod exchange;
mod gemini;
mod inspect;
mod lenient_message;
mod livekit;
pub(super) mod mapped;
mod native_reader;
mod openai;
mod otlp;
pub(super) mod promptfoo;
#[cfg(test)]
mod read_back;
mod response_items;
#[cfg(test)]
mod testing;

use super::TranscriptError;
use super::detect::FilePreview;
use super::reader::TranscriptReader;
use super::sniff;
use super::source::SourceFile;
use native_reader::NativeReader;

/// A function that creates the reader of a detected file.
pub(super) type ReaderFactory =
    fn(&SourceFile, &FilePreview<'_>) -> Result<Box<dyn TranscriptReader>, TranscriptError>;

/// A text format.
pub(super) struct TranscriptFormat {
    /// The name with its article, for a sentence.
    pub(super) name: &'static str,
    /// Returns true if a file has this format.
    pub(super) matches: fn(&FilePreview<'_>) -> bool,
    /// The function that creates the reader; `None` if dicta only recognises the format.
    pub(super) create_reader: Option<ReaderFactory>,
}

/// A binary format, detected by its first bytes.
pub(super) struct BinaryFormat {
    /// The first bytes of every file in the format.
    pub(super) magic: &'static [u8],
    /// See [`TranscriptFormat::name`].
    pub(super) name: &'static str,
    /// See [`TranscriptFormat::create_reader`].
    pub(super) create_reader: Option<ReaderFactory>,
}

/// The binary formats.
pub(super) const BINARY_FORMATS: [BinaryFormat; 6] = [
    // A ZIP archive. `inspect` reports an archive that is not an Inspect log.
    BinaryFormat {
        magic: b"PK\x03\x04",
        name: "an Inspect log (.eval)",
        create_reader: Some(inspect::open_eval),
    },
    // dicta recognises the formats below only to name them in the error.
    BinaryFormat {
        magic: b"\x1f\x8b",
        name: "a gzip file",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"\x28\xb5\x2f\xfd",
        name: "a Zstandard file",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"SQLite format 3\0",
        name: "an SQLite database",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"PAR1",
        name: "a Parquet file",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"ObjAvro",
        name: "an Avro file",
        create_reader: None,
    },
];

/// The native format.
pub(super) const NATIVE_FORMAT: TranscriptFormat = TranscriptFormat {
    name: "native",
    // Any of the first records, because a native file may begin with a broken line.
    matches: |preview| preview.any_matches(|s| s.has("messages")),
    create_reader: Some(|_, preview| Ok(Box::new(NativeReader(preview.record_walker())))),
};

/// The text formats in the order of detection. A record with `messages` in OpenAI's shapes is native, whatever other
/// keys it has. So formats with other `messages` come before the native one.
pub(super) const TEXT_FORMATS: &[TranscriptFormat] = &[
    TranscriptFormat {
        name: "Anthropic messages (content blocks)",
        matches: anthropic::is_anthropic_log,
        create_reader: Some(|_, preview| Ok(anthropic::open(preview))),
    },
    // Before Gemini's, whose batches are such pairs; before native files, since logs may hold both.
    TranscriptFormat {
        name: "request and response pairs",
        matches: |preview| {
            preview.first_matches(|s| {
                // The response of a long conversation begins after the preview.
                (s.has("request") && (s.has("response") || s.is_cut()) && !s.has("messages"))
                    || (s.has("key") && (s.has("request") || s.has("response")))
            })
        },
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    NATIVE_FORMAT,
    // Before the formats that are recognised by `type` or `metadata` alone.
    TranscriptFormat {
        name: "a result of PromptKit Arena",
        matches: |preview| {
            preview.first_matches(|s| {
                (s.has("RunID") && s.has("Messages"))
                    || (s.has("turns") && s.has("scenario_id"))
                    || (s.has("metadata") && s.has("events"))
            })
        },
        create_reader: Some(arena::open),
    },
    TranscriptFormat {
        name: "a PromptKit recording",
        matches: |preview| {
            preview.first_matches(|s| {
                (s.has("metadata") && s.type_starts_with(&["metadata"]))
                    || (s.has("event") && (s.has("seq") || s.type_starts_with(&["event"])))
            })
        },
        create_reader: Some(arena::open_lines),
    },
    TranscriptFormat {
        name: "a livekit chat history",
        matches: |preview| preview.first_matches(|s| s.has("chat_history") || s.has("items")),
        create_reader: Some(livekit::open),
    },
    TranscriptFormat {
        name: "a Codex rollout",
        matches: |preview| {
            preview.first_matches(|s| {
                // Files of the first Codex versions begin with a header without an envelope.
                let has_bare_header = s.has("id") && s.has("timestamp") && !s.has("type");
                (s.has("payload") && s.has("timestamp") && s.has("type"))
                    || (has_bare_header && s.has("instructions") && !s.has("input"))
            }) || preview.any_matches(|s| s.has("record_type"))
        },
        create_reader: Some(|_, preview| Ok(codex::open(preview))),
    },
    TranscriptFormat {
        name: "the output of `codex exec --json`",
        // The types of the stream have these prefixes, such as `turn.started`.
        matches: |preview| {
            preview.first_matches(|s| s.type_starts_with(&["thread.", "turn.", "item."]))
        },
        create_reader: Some(|_, preview| Ok(codex_exec::open(preview))),
    },
    TranscriptFormat {
        name: "a Claude Code session",
        matches: claude_code::is_session,
        create_reader: Some(|_, preview| Ok(claude_code::open(preview))),
    },
    TranscriptFormat {
        name: "promptfoo results",
        matches: promptfoo::is_results,
        create_reader: Some(promptfoo::open),
    },
    TranscriptFormat {
        name: "OpenTelemetry spans (OTLP JSON)",
        // Metrics and other signals may come first; what Grafana Tempo exports begins with `batches`.
        matches: |preview| {
            preview.any_matches(|s| s.has("resourceSpans") || s.has("resourceLogs"))
                // Not `any_matches`: `batches` is a common word.
                || preview.first_matches(|s| s.has("batches"))
        },
        create_reader: Some(otlp::open),
    },
    TranscriptFormat {
        name: "an OpenAI batch",
        matches: |preview| {
            preview.first_matches(|s| {
                s.has("custom_id") && (s.has("response") || s.has("error") || s.has("body"))
            })
        },
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    TranscriptFormat {
        name: "OpenAI chat completions",
        matches: |preview| preview.first_matches(|s| s.has("choices")),
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    TranscriptFormat {
        name: "Gemini contents",
        matches: |preview| {
            // A request, a reply, or a bare content.
            preview.first_matches(|s| {
                s.has("contents") || s.has("candidates") || (s.has("role") && s.has("parts"))
            })
        },
        create_reader: Some(|_, preview| Ok(api_log::open_contents(preview))),
    },
    // Before Anthropic's messages, which have their type and role in common with items.
    TranscriptFormat {
        name: "OpenAI Responses items",
        matches: api_log::is_responses_items,
        create_reader: Some(|_, preview| Ok(api_log::open_list(preview))),
    },
    TranscriptFormat {
        name: "OpenAI Responses",
        matches: api_log::is_responses,
        create_reader: Some(|_, preview| Ok(api_log::open(preview))),
    },
    TranscriptFormat {
        name: "a bare list of messages",
        matches: api_log::is_message_list,
        create_reader: Some(|_, preview| Ok(api_log::open_list(preview))),
    },
    TranscriptFormat {
        name: "an Inspect log",
        matches: |preview| {
            // `eval` alone is a common word, so a second key of Inspect is necessary.
            preview.first_matches(|s| {
                s.has("eval") && (s.has("status") || s.has("plan") || s.has("samples"))
            })
        },
        create_reader: Some(inspect::open_json),
    },
    TranscriptFormat {
        name: "a Harbor trajectory (ATIF)",
        matches: |preview| {
            preview.first_matches(|s| s.has("schema_version") && (s.has("steps") || s.has("agent")))
        },
        create_reader: Some(atif::open),
    },
    // dicta has no readers for the next four formats; the entry makes the error name the format.
    TranscriptFormat {
        name: "a LangSmith run",
        matches: |preview| {
            preview
                .first_matches(|s| s.has("run_type") && (s.has("inputs") || s.has("dotted_order")))
        },
        create_reader: None,
    },
    TranscriptFormat {
        name: "a Langfuse export",
        matches: |preview| {
            preview
                .first_matches(|s| s.has("observations") || s.has("trace_id") || s.has("traceId"))
        },
        create_reader: None,
    },
    TranscriptFormat {
        name: "a DeepEval test run",
        matches: |preview| preview.first_matches(|s| s.has("testCases") || s.has("testRunData")),
        create_reader: None,
    },
    TranscriptFormat {
        name: "a dicta run's event log",
        matches: |preview| preview.first_matches(|s| s.has("seq") && s.has("kind")),
        create_reader: None,
    },
    TranscriptFormat {
        name: "an evalbench evalset",
        matches: evalbench::is_evalset,
        create_reader: Some(evalbench::open_evalset),
    },
    TranscriptFormat {
        // Tables come last: their header is plain text, which has no keys.
        name: "an evalbench result table (CSV)",
        matches: evalbench::is_table,
        create_reader: Some(evalbench::open_table),
    },
    TranscriptFormat {
        name: "a CSV table",
        // The header decides, or, with another delimiter than a comma, the number of cells per line.
        matches: |preview| csv_columns(preview).is_some() || csv::is_table(preview.bytes),
        // Only a field mapping can state the meaning of the columns.
        create_reader: Some(csv::refuse_unmapped),
    },
];

/// Returns each format that has a reader, with the function that creates it.
pub(super) fn readers() -> impl Iterator<Item = (&'static str, ReaderFactory)> {
    let binary = BINARY_FORMATS
        .iter()
        .map(|format| (format.name, format.create_reader));
    let text = TEXT_FORMATS
        .iter()
        .map(|format| (format.name, format.create_reader));
    let all = binary.chain(text);
    all.filter_map(|(name, create_reader)| Some((name, create_reader?)))
}

/// Returns the columns of the first line, if it is a CSV header.
fn csv_columns<'h>(preview: &FilePreview<'h>) -> Option<Vec<&'h str>> {
    sniff::parse_csv_header(preview.records.first()?.bytes)
}
