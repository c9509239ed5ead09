//! All known formats, and what dicta must know about some of them by name.
//!
//! Responsible for what an entry of the tables consists of; the tables are `text_formats.rs` and `binary_formats.rs`. Each
//! format is a file of this folder with a function of type [`ReaderFactory`]. A format without a reader has an entry too,
//! so that the error can name it. Does not read transcripts.

mod adk;
mod adot;
mod agent_bench;
mod ai_sdk;
mod ai_sdk_result;
mod aider;
mod alpaca;
mod anthropic;
mod api_log;
pub(super) mod api_pages;
mod arena;
mod atif;
mod autogen;
mod azure_eval;
mod bedrock;
mod bedrock_agent;
mod bfcl;
mod binary_formats;
mod braintrust;
mod browser_use;
#[cfg(test)]
pub(super) mod catalog;
mod chatgpt;
mod claude_code;
mod claude_export;
mod cline;
mod codex;
mod codex_exec;
mod cohere;
mod cohere_stream;
mod completion_log;
mod content_blocks;
mod continue_dev;
mod copilot;
mod copilot_cli;
mod copilot_log;
mod copilot_replay;
pub(super) mod csv;
mod cursor;
mod data_frame;
#[cfg(feature = "sqlite")]
mod databases;
mod deepeval;
mod deepeval_inputs;
mod deepseek;
#[cfg(test)]
pub(super) mod description;
mod details_blocks;
#[cfg(test)]
mod docs_tests;
mod droid;
mod evalbench;
mod event_stream;
mod exchange;
mod exit_code;
mod flat_spans;
mod foreign_message;
mod gemini;
mod gemini_cli;
mod gemini_stream;
mod gemini_takeout;
mod goose;
mod grok;
mod helicone;
mod helm;
mod http_recording;
mod inspect;
mod io_value;
mod item_list;
mod kimi;
mod kiro;
mod kiro_ide;
mod langchain;
mod langfuse;
mod langsmith;
mod lenient_message;
mod librechat;
mod line_path;
mod livekit;
mod lm_eval;
mod lm_studio;
pub(super) mod mapped;
mod message_record;
mod message_tree;
mod mlflow;
mod mt_bench;
mod native_reader;
mod open_webui;
mod openai;
mod openai_agents;
mod openai_evals;
mod opencode;
mod opencode_storage;
mod opencode_stream;
mod openhands;
mod opik;
mod otlp;
mod pi;
mod preference;
pub(super) mod promptfoo;
mod promptfoo_csv;
mod qwen_code;
mod ragas;
#[cfg(test)]
mod rating_tests;
#[cfg(test)]
mod read_back;
mod record_readers;
mod recorded_body;
mod response_items;
#[cfg(test)]
mod sample_tests;
mod sharegpt;
mod signatures;
mod sillytavern;
mod smolagents;
mod smolagents_roles;
mod spend_log;
mod streamed_reply;
mod swe_agent;
mod tau_bench;
#[cfg(test)]
mod testing;
mod text_completion;
mod text_formats;
mod toolbench;
mod trace_spans;
mod transcript_builder;
mod trulens;
mod ui_message_stream;
mod unpacked_reply;
mod weave;
mod zed;

use super::TranscriptError;
use super::detect::FilePreview;
use super::reader::TranscriptReader;
use super::source::SourceFile;
pub(super) use binary_formats::BINARY_FORMATS;
use native_reader::NativeReader;
pub(super) use signatures::{TRACES_WITHOUT_MESSAGES, begins_with_messages};
pub(super) use text_formats::TEXT_FORMATS;

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

/// The native format.
pub(super) const NATIVE_FORMAT: TranscriptFormat = TranscriptFormat {
    name: "native",
    matches: signatures::is_native,
    create_reader: Some(|_, preview| Ok(Box::new(NativeReader(preview.record_walker())))),
};

/// The formats whose signature consists of common words. Their readers confirm them: see `trial.rs`. All of them read
/// records one by one, so that the first block is enough.
const GENERIC_FORMATS: [&str; 12] = [
    "a recording of HTTP calls (HAR, nock, VCR)",
    "Anthropic messages (content blocks)",
    "request and response pairs",
    NATIVE_FORMAT.name,
    "a livekit chat history",
    "an OpenAI batch",
    "OpenAI chat completions",
    "Gemini contents",
    "OpenAI Responses items",
    "OpenAI Responses",
    "a bare list of messages",
    "an evalbench evalset",
];

/// The formats whose readers read other files of the same tool. The files of Claude Code are not among them: see
/// [`super::file_version`].
const FORMATS_OF_SEVERAL_FILES: &[&str] = &[
    "an OpenCode session",
    "a HELM scenario state",
    "answers of MT-Bench",
    "an evalbench evalset",
    "an evalbench result table (CSV)",
    // SQLite reads its log of changes, too.
    "an SQLite database",
];

/// Returns true if files of other tools may have the signature of the format.
pub(super) fn is_generic(name: &str) -> bool {
    GENERIC_FORMATS.contains(&name)
}

/// Returns true if the reader of a format reads other files of the same tool, next to its file.
pub(super) fn reads_other_files(name: &str) -> bool {
    FORMATS_OF_SEVERAL_FILES.contains(&name)
}

/// Returns the name of a format for the middle of a sentence.
pub(super) fn name_with_article(name: &'static str) -> &'static str {
    if name == NATIVE_FORMAT.name {
        "the native format"
    } else {
        name
    }
}

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
