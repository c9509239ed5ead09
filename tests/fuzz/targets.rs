//! The fuzz targets: what each does with arbitrary bytes, and what must hold afterwards.
//!
//! `fuzz_targets/target.rs` runs one of them under libFuzzer. `tests/campaign/fuzz.rs` replays the seeds of all of them
//! with every `cargo test`. A target uses dicta's public interface and [`dicta::untrusted`].

use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dicta::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use dicta::handlers::EvalTypeRegistry;
use dicta::judge::{VerdictFormat, parse_verdict_text};
use dicta::model::{ProviderKind, VerdictMode};
use dicta::net::SystemResolver;
use dicta::tools::parse_arguments;
use dicta::transcript::{FieldMapping, TranscriptError, TranscriptFile};
use dicta::workspace::Env;
use dicta::{record, rubric, untrusted, workspace};
use serde_json::Value;

/// The seeds that a target begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seeds {
    /// The files of `tests/fixtures`.
    Transcripts,
    /// Parquet files.
    Parquet,
    /// SQLite databases.
    Databases,
    /// Label files of dicta and of other tools.
    Labels,
    /// JSON, broken and valid.
    Json,
    /// Rubrics, workspaces and tools files.
    Yaml,
    /// HTML pages.
    Pages,
    /// Streams and bodies of the four dialects.
    Replies,
    /// Event logs.
    Logs,
}

/// The damaged copies that the fuzz program reads of each input of libFuzzer.
pub(crate) const COPIES: u64 = 39;

/// The target whose reader is a library that panics at damaged files; dicta catches these panics.
pub(crate) const PARQUET: &str = "parquet";

/// The work of a target on one input.
type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

/// A fuzz target.
pub(crate) struct Target {
    pub(crate) name: String,
    /// The module of dicta with the reader.
    pub(crate) module: &'static str,
    pub(crate) seeds: Seeds,
    pub(crate) run: Run,
}

/// All targets. `folder` is an empty folder for the files that readers of files need.
pub(crate) fn all(folder: &Path) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: String, module: &'static str, seeds: Seeds, run: Run| {
        targets.push(Target {
            name,
            module,
            seeds,
            run,
        });
    };
    for format in untrusted::transcript_formats() {
        // The library reads only files.
        if format == "an SQLite database" {
            continue;
        }
        add(
            format!("transcript-{}", file_name_of(format)),
            "transcript",
            Seeds::Transcripts,
            Box::new(move |data| read_transcripts(untrusted::read_transcripts_as(data, format))),
        );
    }
    add(
        "transcript-any".to_owned(),
        "transcript",
        Seeds::Transcripts,
        Box::new(|data| read_transcripts(untrusted::read_transcripts(data, None))),
    );
    add(
        "transcript-guess".to_owned(),
        "transcript",
        Seeds::Transcripts,
        Box::new(|data| {
            let _guess = untrusted::guess_mapping(data);
        }),
    );
    let mapping = Arc::new(mapping());
    add(
        "transcript-mapped".to_owned(),
        "transcript",
        Seeds::Transcripts,
        Box::new(move |data| {
            read_transcripts(untrusted::read_transcripts(data, Some(&mapping)));
        }),
    );
    for (name, seeds) in [(PARQUET, Seeds::Parquet), ("sqlite", Seeds::Databases)] {
        let path = folder.join(name);
        add(
            name.to_owned(),
            "transcript",
            seeds,
            Box::new(move |data| {
                std::fs::write(&path, data).expect("the folder takes files");
                read_transcripts(TranscriptFile::open(&path));
            }),
        );
    }
    add(
        "labels".to_owned(),
        "workspace",
        Seeds::Labels,
        Box::new(labels),
    );
    add(
        "arguments".to_owned(),
        "tools",
        Seeds::Json,
        Box::new(arguments),
    );
    add(
        "verdict".to_owned(),
        "judge",
        Seeds::Json,
        Box::new(verdict),
    );
    add("sse".to_owned(), "provider", Seeds::Replies, Box::new(sse));
    for (name, kind) in REPLIES {
        add(
            format!("reply-{name}"),
            "provider",
            Seeds::Replies,
            Box::new(move |data| reply(kind, data)),
        );
    }
    add(
        "yaml".to_owned(),
        "diag",
        Seeds::Yaml,
        Box::new(yaml_documents),
    );
    let registry = EvalTypeRegistry::builtin();
    add(
        "rubric".to_owned(),
        // The reader checks the parameters of eval types.
        "handlers",
        Seeds::Yaml,
        Box::new(move |data| {
            if let Ok(text) = std::str::from_utf8(data) {
                let (loaded, problems) = rubric::load(text.into(), Path::new("r.yaml"), &registry);
                assert!(loaded.is_some() || !problems.is_empty(), "no reason");
            }
        }),
    );
    add(
        "tools".to_owned(),
        "workspace",
        Seeds::Yaml,
        Box::new(tools_file),
    );
    let root = folder.join("workspace");
    let registry = EvalTypeRegistry::builtin();
    add(
        "workspace".to_owned(),
        "workspace",
        Seeds::Yaml,
        Box::new(move |data| open_workspace(&root, &registry, data)),
    );
    add("page".to_owned(), "tools", Seeds::Pages, Box::new(page));
    add("log".to_owned(), "record", Seeds::Logs, Box::new(log));
    targets
}

const REPLIES: [(&str, ProviderKind); 6] = [
    ("openai-chat", ProviderKind::Openai),
    ("openai-responses", ProviderKind::OpenaiResponses),
    ("anthropic", ProviderKind::Anthropic),
    ("gemini", ProviderKind::Gemini),
    ("openai-decisions", ProviderKind::OpenaiDecisions),
    ("gemini-decisions", ProviderKind::GeminiDecisions),
];

/// A part of a file name: `a Codex rollout` becomes `codex-rollout`.
fn file_name_of(format: &str) -> String {
    let words = format
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !["a", "an", "the", "of"].contains(word));
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Reads every record: a converted one is a line, and the reader finds each again at its location.
fn read_transcripts(opened: Result<TranscriptFile, TranscriptError>) {
    let Ok(mut file) = opened else { return };
    let _index = file.read_index();
    while let Ok(Some(block)) = file.next_block() {
        for (record, bytes) in block.records() {
            // Native records are the bytes of their file.
            let is_native = file.tally().is_none();
            assert!(is_native || !bytes.contains(&b'\n'), "not one line");
            let parsed = record.parse(bytes, &file.default_id(record.span.number));
            let _raw = file.read_raw(record.span);
            if record.fault.is_some() {
                assert!(parsed.is_err(), "a fault is not a transcript");
                continue;
            }
            let again = file.read_native(record.span);
            assert_eq!(again.expect("the file did not change"), bytes);
        }
    }
}

fn mapping() -> FieldMapping {
    let text = "id: id\nmessages: messages || conversation || [input, output]\nmetadata: meta\ntags: tags\n";
    let doc = yaml::read_document(&text.into(), Path::new("map.yaml")).expect("a fixed text");
    let problems = DiagnosticCollector::from_doc(&doc);
    FieldMapping::parse(MappingDecoder::new(&doc, "", &problems)).expect("a fixed text")
}

/// The first byte chooses the ending of the file's name.
fn labels(data: &[u8]) {
    let Some((ending, text)) = data.split_first() else {
        return;
    };
    let name =
        ["labels.jsonl", "labels.csv", "labels.yaml", "labels.json"][usize::from(ending % 4)];
    if let Ok(text) = std::str::from_utf8(text) {
        let (_, problems) = untrusted::read_labels(text, name);
        assert!(problems.iter().all(|problem| !problem.message.is_empty()));
    }
}

/// Whatever text a model writes as arguments: what comes out is a strict JSON object and a fixed point, and valid JSON
/// changes only in keys that occur twice.
fn arguments(data: &[u8]) {
    let raw = String::from_utf8_lossy(data);
    let Ok(read) = parse_arguments("t", &raw) else {
        return;
    };
    let canonical = read.canonical.get();
    assert!(canonical.starts_with('{'), "no object: {canonical}");
    let again = parse_arguments("t", canonical).expect("canonical arguments are read again");
    assert_eq!(again.canonical.get(), canonical);
    assert!(again.changes.is_empty() && !again.rewritten);
    assert!(!again.was_truncated && !again.has_duplicate_keys);
    if let Ok(valid @ Value::Object(_)) = serde_json::from_str::<Value>(&raw) {
        let same: Value = serde_json::from_str(canonical).expect("strict JSON");
        assert_eq!(valid, same);
        assert!(read.changes.is_empty() || read.has_duplicate_keys);
        assert!(!read.was_truncated);
    }
}

/// A verdict from a text has a score between 0 and 1. The same text inside the judged messages is not a verdict.
fn verdict(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let format = VerdictFormat {
        allow_na: true,
        scale: None,
        needs_score: false,
        parts: None,
        pair_order: None,
    };
    for mode in [VerdictMode::Text, VerdictMode::Schema] {
        let Ok(read) = parse_verdict_text(text, &format, mode, |_| false) else {
            continue;
        };
        if let Some(score) = read.score {
            assert!((0.0..=1.0).contains(&score), "score {score}");
        }
        if mode == VerdictMode::Text {
            let quoted = parse_verdict_text(text, &format, mode, |_| true);
            assert!(quoted.is_err(), "a quoted object is a verdict: {text}");
        }
    }
}

/// The frames don't depend on how the bytes arrive.
fn sse(data: &[u8]) {
    let Some((at, stream)) = split_point(data) else {
        return;
    };
    let whole = untrusted::split_frames(&[stream]);
    let (one, two) = stream.split_at(at);
    assert_same(&whole, &untrusted::split_frames(&[one, &[], two]));
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_same(&whole, &untrusted::split_frames(&single));
}

/// A reply doesn't depend on how its bytes arrive.
fn reply(kind: ProviderKind, data: &[u8]) {
    let Some((at, body)) = split_point(data) else {
        return;
    };
    let (one, two) = body.split_at(at);
    for streamed in [true, false] {
        let whole = untrusted::read_reply(kind, streamed, &[body]);
        assert_same(&whole, &untrusted::read_reply(kind, streamed, &[one, two]));
    }
}

/// The first two bytes choose the place at which the rest is split.
fn split_point(data: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = data.split_at_checked(2)?;
    let at = usize::from(u16::from_be_bytes([head[0], head[1]]));
    Some((at % (rest.len() + 1), rest))
}

fn assert_same<T: std::fmt::Debug, E: std::fmt::Debug>(one: &Result<T, E>, two: &Result<T, E>) {
    match (one, two) {
        (Ok(one), Ok(two)) => assert_eq!(format!("{one:?}"), format!("{two:?}")),
        (Err(_), Err(_)) => {}
        _ => panic!("{one:?} and {two:?}"),
    }
}

/// A document that dicta reads has a location for each of its values; one that it refuses has a reason.
fn yaml_documents(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let source: Arc<str> = text.into();
    match yaml::read_document(&source, Path::new("f.yaml")) {
        Ok(doc) => {
            let span = doc.span("");
            let lines = text.split(['\n', '\r']).count();
            assert!(span.line as usize <= lines + 1, "line {}", span.line);
            let _text = yaml::to_string(&doc.value);
        }
        Err(problems) => assert!(!problems.is_empty(), "no reason"),
    }
    let _all = yaml::read_all_documents(&source, Path::new("f.yaml"));
}

fn tools_file(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let resolver: Arc<dyn dicta::net::Resolver> = Arc::new(SystemResolver);
        let path = Path::new("tools.yaml");
        let _tools = workspace::parse_tools_file(path, &text.into(), &Env::default(), &resolver);
    }
}

/// Loads a workspace whose dicta.yaml is `data`. Paths outside the folder would make it read the machine's files.
fn open_workspace(root: &Path, registry: &EvalTypeRegistry, data: &[u8]) {
    if data.contains(&b'/') || data.windows(2).any(|pair| pair == b"..") || data.contains(&b'\\') {
        return;
    }
    std::fs::create_dir_all(root).expect("the folder takes folders");
    std::fs::write(root.join("dicta.yaml"), data).expect("the folder takes files");
    let loaded = workspace::load(root, &Env::default(), registry);
    assert!(loaded.is_ok() || loaded.is_err_and(|problems| !problems.is_empty()));
}

/// The first byte chooses the content type.
fn page(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    let types = [
        Some("text/html"),
        Some("text/html; charset=windows-1252"),
        Some("application/json"),
        Some("text/plain"),
        Some("application/xml"),
        None,
    ];
    // Most runs render HTML, which is the largest of these readers.
    let content_type = types.get(usize::from(*kind)).copied().unwrap_or(types[0]);
    let max = 64 << 10;
    if let Some(text) = untrusted::render_page(body, content_type, max)
        && content_type == types[0]
    {
        assert!(text.len() <= max + 64, "{} bytes", text.len());
    }
}

fn log(data: &[u8]) {
    let input = std::io::Cursor::new(data.to_vec());
    let _log = record::parse_log(input, Path::new("events.jsonl"));
}

/// Bytes that mean something to a reader.
const ODD_BYTES: &[u8] = b"\"{}[]:,\\0-9eE\n\r\t \x00\x80\xff<>&'#|*";
/// Values in place of other JSON values.
const VALUES: [&str; 12] = [
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "\"\"",
    "\"x\"",
    "\"\\ud800\"",
    "[]",
    "{}",
    "[{}]",
    "[[\"x\"]]",
];

/// Returns a damaged copy of an input, always the same for the same number.
pub(crate) fn damage(input: &[u8], number: u64) -> Vec<u8> {
    let mut copy = input.to_vec();
    let mut random = Random::new(input, number);
    for _ in 0..=random.below(3) {
        if !copy.is_empty() {
            random.damage(&mut copy);
        }
    }
    copy
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn new(input: &[u8], number: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(input);
        hasher.write_u64(number);
        // The generator would stay at 0.
        Self(hasher.finish() | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 8) % bound.max(1) as u64).unwrap_or(0)
    }

    /// Makes one change.
    fn damage(&mut self, copy: &mut Vec<u8>) {
        match self.below(8) {
            0 => copy.truncate(self.below(copy.len())),
            1 => {
                let piece = copy[self.range(copy.len())].to_vec();
                let at = self.below(copy.len());
                copy.splice(at..at, piece);
            }
            2 => {
                copy.drain(self.range(copy.len()));
            }
            3 | 4 => self.replace_text(copy),
            5 | 6 => self.replace_value(copy),
            _ => {
                for _ in 0..=self.below(4) {
                    let at = self.below(copy.len());
                    copy[at] = ODD_BYTES[self.below(ODD_BYTES.len())];
                }
            }
        }
    }

    fn range(&mut self, len: usize) -> Range<usize> {
        let (one, two) = (self.below(len), self.below(len));
        one.min(two)..one.max(two)
    }

    /// Replaces one quoted text with another one of the input: other keys and other types get the same place.
    fn replace_text(&mut self, copy: &mut Vec<u8>) {
        let is_quote = |(at, byte): (usize, &u8)| (*byte == b'"').then_some(at);
        let quotes: Vec<usize> = copy.iter().enumerate().filter_map(is_quote).collect();
        if quotes.len() < 2 {
            return;
        }
        let mut text = || {
            let first = self.below(quotes.len() / 2) * 2;
            quotes[first]..quotes[first + 1] + 1
        };
        let (from, to) = (text(), text());
        let from = copy[from].to_vec();
        copy.splice(to, from);
    }

    /// Replaces the value after a colon.
    fn replace_value(&mut self, copy: &mut Vec<u8>) {
        let is_colon = |(at, byte): (usize, &u8)| (*byte == b':').then_some(at + 1);
        let colons: Vec<usize> = copy.iter().enumerate().filter_map(is_colon).collect();
        let Some(&start) = colons.get(self.below(colons.len())) else {
            return;
        };
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'\n');
        let len = copy[start..].iter().position(is_end);
        let end = len.map_or(copy.len(), |len| start + len);
        copy.splice(start..end, VALUES[self.below(VALUES.len())].bytes());
    }
}
