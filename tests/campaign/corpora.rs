//! Collections of hostile input from other projects, through every reader that takes such bytes.
//!
//! The data is in `corpora/`; its README names the origin, version and licence of each file. A case fails if a reader
//! panics. The whole campaign also counts cases that take more than a second.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dicta::transcript::TranscriptFile;
use serde_json::Value;
use tempfile::TempDir;

use crate::fuzz::{self, Target};
use crate::{Campaign, Scale};

/// A case takes at most this long in the whole campaign.
const LIMIT: Duration = Duration::from_secs(1);
/// A case that takes this long ends the campaign: nothing else can stop a thread that hangs.
const HANGING: Duration = Duration::from_mins(2);
/// The memory that a ZIP file of a few KB may take, in KiB: dicta reads members of up to 128 MiB.
const MAX_BOMB_KIB: u64 = 400 << 10;

/// The members of a file in `corpora/`, by name.
pub(crate) fn unpack(campaign: &Campaign, file: &str) -> BTreeMap<String, Vec<u8>> {
    let path = campaign
        .repository
        .join("tests/campaign/corpora")
        .join(file);
    let file = std::fs::File::open(&path).expect("the corpus is in the repository");
    let mut archive = zip::ZipArchive::new(file).expect("the corpus is a ZIP file");
    let mut members = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).expect("a member");
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).expect("a whole member");
        let name = member.name().expect("names are UTF-8").into_owned();
        members.insert(name, bytes);
    }
    members
}

/// The inputs of the tokenizer tests of html5lib.
pub(crate) fn html_cases(campaign: &Campaign) -> Vec<Vec<u8>> {
    let files = unpack(campaign, "html.zip").into_values();
    let cases = files.flat_map(|bytes| {
        let cases: Vec<Value> = serde_json::from_slice(&bytes).expect("a list");
        cases
    });
    cases
        .map(|case| match &case {
            // Input with half a surrogate pair, which a JSON string can't contain.
            Value::Object(bytes) => decode_hex(bytes["hex"].as_str().expect("a text")),
            other => other.as_str().expect("a text").as_bytes().to_vec(),
        })
        .collect()
}

fn decode_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("two hexadecimal digits")
        })
        .collect()
}

/// The Big List of Naughty Strings.
pub(crate) fn naughty_strings(campaign: &Campaign) -> Vec<String> {
    let files = unpack(campaign, "naughty.zip");
    serde_json::from_slice(&files["blns.json"]).expect("a list of texts")
}

/// The results of a corpus.
#[derive(Default)]
pub(crate) struct Tally {
    /// The inputs of the corpus.
    pub(crate) inputs: usize,
    /// The inputs times their readers.
    pub(crate) runs: usize,
    pub(crate) panics: Vec<String>,
    pub(crate) slow: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    /// The problems of this scale: a slow case counts only in the whole campaign.
    pub(crate) fn problems(&self, scale: Scale) -> Vec<String> {
        let mut problems: Vec<String> = self.panics.clone();
        problems.extend(self.wrong.iter().cloned());
        if scale == Scale::Full {
            problems.extend(self.slow.iter().cloned());
        }
        problems
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.runs += other.runs;
        self.panics.extend(other.panics);
        self.slow.extend(other.slow);
        self.wrong.extend(other.wrong);
    }
}

/// The case that runs now, for the thread that ends a campaign that hangs.
type Running = Arc<Mutex<Option<(String, Instant)>>>;

/// Runs cases under a watch.
pub(crate) struct Watch {
    running: Running,
    pub(crate) tally: Tally,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let running = Running::default();
        let watched = Arc::downgrade(&running);
        std::thread::spawn(move || {
            while let Some(running) = watched.upgrade() {
                let now = running.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((name, begin)) = &*now
                    && begin.elapsed() > HANGING
                {
                    println!("{name} hangs");
                    // Nothing can stop the thread that runs the case.
                    std::process::abort();
                }
                drop(now);
                drop(running);
                std::thread::park_timeout(Duration::from_secs(1));
            }
        });
        Self {
            running,
            tally: Tally::default(),
        }
    }

    /// Runs one case.
    pub(crate) fn run(&mut self, name: &str, case: impl FnOnce()) {
        let begin = Instant::now();
        *self.lock() = Some((name.to_owned(), begin));
        let ended = catch_unwind(AssertUnwindSafe(case));
        *self.lock() = None;
        self.tally.runs += 1;
        if ended.is_err() {
            self.tally.panics.push(format!("{name} panics"));
        }
        let took = begin.elapsed();
        if took > LIMIT {
            self.tally.slow.push(format!("{name} takes {took:.1?}"));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(String, Instant)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every corpus through the readers that take such bytes.
pub(crate) fn run_all(campaign: &Campaign) -> Vec<(&'static str, Tally)> {
    let folder = TempDir::new().expect("a temporary folder");
    let targets = fuzz::targets(folder.path());
    let named = |names: &[&str]| -> Vec<&Target> {
        let find = |name: &&str| {
            let prefix = format!("{name}-");
            let all = targets.iter();
            let found: Vec<&Target> = all
                .filter(|target| target.name == *name || target.name.starts_with(&prefix))
                .collect();
            assert!(!found.is_empty(), "there is a fuzz target `{name}`");
            found
        };
        names.iter().flat_map(find).collect()
    };
    // The short form reads each case with fewer readers, because `cargo test` has no optimization.
    let transcripts: &[&str] = match campaign.scale {
        Scale::Short => &["transcript-any"],
        Scale::Full => &["transcript"],
    };
    let json_readers = [
        transcripts,
        &["arguments", "verdict", "log", "reply", "page", "labels"],
    ]
    .concat();
    let yaml_readers = ["yaml", "rubric", "tools", "workspace", "labels"];
    let json = unpack(campaign, "json.zip");
    let yaml = unpack(campaign, "yaml.zip");
    vec![
        ("JSONTestSuite", run_json(&json, &named(&json_readers))),
        (
            "YAML test suite",
            run_cases("yaml", &yaml, &named(&yaml_readers)),
        ),
        ("naughty strings", run_naughty(campaign, folder.path())),
        (
            "UTF-8 sequences",
            run_utf8(
                campaign,
                folder.path(),
                &named(&[&json_readers[..], &yaml_readers[..4]].concat()),
            ),
        ),
        ("html5lib", run_pages(campaign)),
        ("ZIP bombs", run_bombs(campaign, folder.path())),
    ]
}

fn run_cases(corpus: &str, cases: &BTreeMap<String, Vec<u8>>, targets: &[&Target]) -> Tally {
    let mut watch = Watch::new();
    for (name, bytes) in cases {
        watch.tally.inputs += 1;
        for target in targets {
            let name = format!("{corpus} {name}, {}", target.name);
            // Some targets take a prefix: the place of a split, or a content type.
            let prefixed = [&fuzz::prefix(target)[..], bytes].concat();
            watch.run(&name, || (target.run)(&prefixed));
        }
    }
    watch.tally
}

/// The cases as they are, as arguments of a tool, and inside a transcript.
fn run_json(cases: &BTreeMap<String, Vec<u8>>, targets: &[&Target]) -> Tally {
    let mut tally = run_cases("json", cases, targets);
    let mut watch = Watch::new();
    let folder = TempDir::new().expect("a temporary folder");
    for (name, bytes) in cases {
        let path = folder.path().join("t.jsonl");
        let line = [
            br#"{"id":"t","messages":[{"role":"assistant","content":"ok"}],"metadata":{"v":"#,
            &bytes[..],
            b"}}\n",
        ]
        .concat();
        std::fs::write(&path, line).expect("the folder takes files");
        let mut problem = None;
        watch.run(&format!("json {name} in a transcript"), || {
            problem = check_metadata(&path, name, bytes);
        });
        watch.tally.wrong.extend(problem);
        if let Ok(text) = std::str::from_utf8(bytes) {
            let mut problem = None;
            watch.run(&format!("json {name} in arguments"), || {
                problem = check_argument(name, text);
            });
            watch.tally.wrong.extend(problem);
        }
    }
    tally.add(Tally {
        inputs: 0,
        ..watch.tally
    });
    tally
}

/// A value that the suite accepts is in the transcript as written. A file with one that it rejects has a bad record.
fn check_metadata(path: &Path, name: &str, bytes: &[u8]) -> Option<String> {
    let mut file = match TranscriptFile::open(path) {
        Ok(file) => file,
        Err(why) => return (name.starts_with("y_")).then(|| format!("{name} is refused: {why}")),
    };
    let (mut kept, mut faults, mut records) = (0, 0, 0);
    while let Ok(Some(block)) = file.next_block() {
        for (record, line) in block.records() {
            records += 1;
            match record.parse(line, "t") {
                Err(_) => faults += 1,
                Ok(transcript) => {
                    let metadata = transcript.metadata.as_ref();
                    let text = metadata.map(|json| json.get().to_owned());
                    let value = std::str::from_utf8(bytes).unwrap_or_default().trim();
                    kept += usize::from(text.is_some_and(|text| text.contains(value)));
                }
            }
        }
    }
    // A value over several lines ends the line of a native file; then it is reported as broken lines.
    let one_line = !bytes.contains(&b'\n') && !bytes.contains(&b'\r');
    if name.starts_with("y_") && one_line && kept != 1 {
        return Some(format!("{name} is not kept: {faults} faults"));
    }
    if name.starts_with("n_") && faults == 0 && kept != records {
        return Some(format!("{name} changes without a report"));
    }
    None
}

/// A value that the suite accepts is an argument, and is as written unless dicta reports a change.
fn check_argument(name: &str, text: &str) -> Option<String> {
    let raw = format!("{{\"v\":{text}}}");
    let read = dicta::tools::parse_arguments("t", &raw);
    match (name.get(..2), read) {
        (Some("y_"), Err(why)) => Some(format!("{name} is refused: {}", why.text)),
        (Some("y_"), Ok(read)) => {
            let written: Value = serde_json::from_str(&raw).ok()?;
            let kept: Value = serde_json::from_str(read.canonical.get()).ok()?;
            let is_same = written == kept && (read.changes.is_empty() || read.has_duplicate_keys);
            (!is_same).then(|| format!("{name} changes: {}", read.canonical.get()))
        }
        // Broken JSON is refused, or repaired with a report.
        (Some("n_"), Ok(read)) => {
            let is_reported =
                !read.changes.is_empty() || read.was_truncated || read.has_surrounding_text;
            (!is_reported).then(|| format!("{name} is accepted as written"))
        }
        _ => None,
    }
}

/// Each string as the content of a message, a tool's argument, a criterion, a page and a reply.
fn run_naughty(campaign: &Campaign, folder: &Path) -> Tally {
    let mut watch = Watch::new();
    let path = folder.join("naughty.jsonl");
    let registry = dicta::handlers::EvalTypeRegistry::builtin();
    for (number, text) in naughty_strings(campaign).iter().enumerate() {
        watch.tally.inputs += 1;
        let name = format!("naughty string {number}");
        let quoted = serde_json::to_string(text).expect("a text");
        let line = format!(
            "{{\"id\":\"t\",\"messages\":[{{\"role\":\"assistant\",\"content\":{quoted}}}]}}\n"
        );
        std::fs::write(&path, line).expect("the folder takes files");
        let mut wrong = Vec::new();
        watch.run(&name, || {
            let mut file = TranscriptFile::open(&path).expect("a transcript");
            let block = file.next_block().expect("readable").expect("a record");
            let (record, bytes) = block.records().next().expect("a record");
            let transcript = record.parse(bytes, "t").expect("a transcript");
            let part = transcript.messages[0].parts.first();
            let kept = match part {
                Some(dicta::model::TranscriptPart::Text(kept)) => kept.to_string(),
                _ => String::new(),
            };
            if kept != *text {
                wrong.push(format!("{name} changes in a transcript: {kept:?}"));
            }
            let arguments = dicta::tools::parse_arguments("t", &format!("{{\"v\":{quoted}}}"));
            let arguments = arguments.expect("valid JSON");
            let kept: Value = serde_json::from_str(arguments.canonical.get()).expect("JSON");
            if kept["v"] != *text {
                wrong.push(format!("{name} changes in arguments: {kept}"));
            }
            let rubric = format!(
                "id: r\nevals:\n  - {{ id: e, type: contains, params: {{ patterns: [{quoted}, x] }} }}\n"
            );
            let (loaded, problems) =
                dicta::rubric::load(rubric.as_str().into(), Path::new("r.yaml"), &registry);
            let kept = loaded.as_ref().map(|rubric| format!("{:?}", rubric.evals[0].params));
            let is_kept = kept.is_some_and(|kept| kept.contains(&format!("{text:?}")));
            if !is_kept && problems.is_empty() {
                wrong.push(format!("{name} changes in a rubric without a report"));
            }
            let _page = dicta::untrusted::render_page(text.as_bytes(), Some("text/html"), 1 << 16);
            let bare: Arc<str> = text.as_str().into();
            let _yaml = dicta::diag::yaml::read_document(&bare, Path::new("f.yaml"));
            let _bare = dicta::tools::parse_arguments("t", text);
        });
        watch.tally.wrong.extend(wrong);
    }
    watch.tally
}

/// Sequences at the limits of UTF-8, after the cases of Markus Kuhn's stress test for decoders. They are shortest and
/// longest sequences, single bytes of a sequence, cut, overlong and impossible ones, surrogates, and noncharacters.
fn utf8_sequences() -> Vec<Vec<u8>> {
    // The first byte of a sequence, and its number of continuation bytes.
    const STARTS: [(u8, u8, usize); 5] = [
        (0xc0, 0xdf, 1),
        (0xe0, 0xef, 2),
        (0xf0, 0xf7, 3),
        (0xf8, 0xfb, 4),
        (0xfc, 0xfd, 5),
    ];
    let mut all: Vec<Vec<u8>> = Vec::new();
    let valid = [
        "\u{7f}",
        "\u{80}",
        "\u{7ff}",
        "\u{800}",
        "\u{d7ff}",
        "\u{e000}",
        "\u{fdd0}",
        "\u{fdef}",
        "\u{fffd}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{10000}",
        "\u{1fffe}",
        "\u{10fffe}",
        "\u{10ffff}",
        "κόσμε",
    ];
    all.extend(valid.map(|text| text.as_bytes().to_vec()));
    // Continuation bytes without a start: one to seven of them, and each possible one.
    let both = [0x80_u8, 0xbf].into_iter().cycle();
    all.extend((1..=7).map(|count| both.clone().take(count).collect::<Vec<u8>>()));
    all.push((0x80..=0xbf).collect());
    all.extend((0x80_u8..=0xbf).map(|byte| vec![byte]));
    let mut cut_ones: Vec<u8> = Vec::new();
    for (first, last, count) in STARTS {
        for start in first..=last {
            all.push(vec![start, b' ']);
        }
        for (start, next) in [(first, 0x80), (last, 0xbf)] {
            let whole = [vec![start], vec![next; count]].concat();
            let cut = whole[..count].to_vec();
            cut_ones.extend_from_slice(&cut);
            all.extend([whole, cut]);
        }
        // Overlong forms of the slash and of NUL, and the largest overlong form.
        for end in [0xaf, 0x80] {
            all.push([vec![first], vec![0x80; count - 1], vec![end]].concat());
        }
        let largest = [0xbf, 0x9f, 0x8f, 0x87, 0x83];
        let second = largest[count - 1];
        all.push(if count == 1 {
            vec![0xc1, 0xbf]
        } else {
            [vec![first, second], vec![0xbf; count - 1]].concat()
        });
    }
    all.push(cut_ones);
    all.extend([vec![0xfe], vec![0xff], vec![0xfe, 0xfe, 0xff, 0xff]]);
    // Code points after the last one.
    all.extend([vec![0xf4, 0x90, 0x80, 0x80], vec![0xf7, 0xbf, 0xbf, 0xbf]]);
    let surrogates: [[u8; 3]; 7] = [
        [0xed, 0xa0, 0x80],
        [0xed, 0xad, 0xbf],
        [0xed, 0xae, 0x80],
        [0xed, 0xaf, 0xbf],
        [0xed, 0xb0, 0x80],
        [0xed, 0xbe, 0x80],
        [0xed, 0xbf, 0xbf],
    ];
    all.extend(surrogates.map(|half| half.to_vec()));
    for high in &surrogates[..4] {
        all.extend(surrogates[4..].iter().map(|low| [*high, *low].concat()));
    }
    all
}

/// Each sequence alone, in a message, in a table, in YAML and in a page.
fn run_utf8(campaign: &Campaign, folder: &Path, targets: &[&Target]) -> Tally {
    let mut watch = Watch::new();
    let path = folder.join("utf8.jsonl");
    let forms: [(&[u8], &[u8]); 5] = [
        (b"", b""),
        (
            br#"{"id":"t","messages":[{"role":"assistant","content":"a"#,
            b"b\"}]}\n",
        ),
        (b"id,input,output\nt,x,a", b"b\n"),
        (b"id: r\nname: a", b"b\n"),
        (b"<p>a", b"b</p>"),
    ];
    let sequences = utf8_sequences();
    let step = campaign.count(7, 1);
    for (number, sequence) in sequences.iter().enumerate().step_by(step) {
        watch.tally.inputs += 1;
        for (form, (before, after)) in forms.into_iter().enumerate() {
            let bytes = [before, &sequence[..], after].concat();
            for target in targets {
                let name = format!("UTF-8 sequence {number} in form {form}, {}", target.name);
                let prefixed = [&fuzz::prefix(target)[..], &bytes[..]].concat();
                watch.run(&name, || (target.run)(&prefixed));
            }
            if form == 1 {
                let mut problem = None;
                watch.run(&format!("UTF-8 sequence {number} in a message"), || {
                    problem = check_sequence(&path, number, sequence, &bytes);
                });
                watch.tally.wrong.extend(problem);
            }
        }
    }
    watch.tally
}

/// A message with valid UTF-8 has it as written. Another one has replacement characters, or its record is bad.
fn check_sequence(path: &Path, number: usize, sequence: &[u8], record: &[u8]) -> Option<String> {
    std::fs::write(path, record).expect("the folder takes files");
    let valid = std::str::from_utf8(sequence).ok();
    let mut read = None;
    if let Ok(mut file) = TranscriptFile::open(path) {
        while let Ok(Some(block)) = file.next_block() {
            for (record, line) in block.records() {
                let parsed = record.parse(line, "t").ok();
                let part = parsed.and_then(|transcript| {
                    let message = transcript.messages.into_iter().next()?;
                    message.parts.into_iter().next()
                });
                if let Some(dicta::model::TranscriptPart::Text(text)) = part {
                    read = Some(text.to_string());
                }
            }
        }
    }
    let is_right = match (valid, &read) {
        (Some(valid), Some(read)) => *read == format!("a{valid}b"),
        (Some(_), None) => false,
        (None, Some(read)) => read.contains('\u{fffd}'),
        (None, None) => true,
    };
    (!is_right).then(|| format!("UTF-8 sequence {number} is read as {read:?}"))
}

fn run_pages(campaign: &Campaign) -> Tally {
    let mut watch = Watch::new();
    for (number, html) in html_cases(campaign).iter().enumerate() {
        watch.tally.inputs += 1;
        watch.run(&format!("html5lib {number}"), || {
            let _page = dicta::untrusted::render_page(html, Some("text/html"), 1 << 16);
        });
    }
    watch.tally
}

/// Each archive is read to its end in little memory, and its good sample is read if it can be.
fn run_bombs(campaign: &Campaign, folder: &Path) -> Tally {
    let mut watch = Watch::new();
    for (name, bytes) in unpack(campaign, "bombs.zip") {
        watch.tally.inputs += 1;
        let path: PathBuf = folder.join(&name);
        std::fs::write(&path, bytes).expect("the folder takes files");
        // The peak of earlier measurements could hide the memory of this file.
        let _unsupported = std::fs::write("/proc/self/clear_refs", "5");
        let before = peak_kib();
        let mut good = false;
        let mut refused = false;
        watch.run(&name, || match TranscriptFile::open(&path) {
            Err(_) => refused = true,
            Ok(mut file) => {
                while let Ok(Some(block)) = file.next_block() {
                    for (record, line) in block.records() {
                        let parsed = record.parse(line, "t");
                        good |= parsed.is_ok_and(|transcript| transcript.id.contains("one"));
                    }
                }
            }
        });
        if !good && !refused {
            watch
                .tally
                .wrong
                .push(format!("{name}: its good sample is lost"));
        }
        if let (Some(before), Some(after)) = (before, peak_kib())
            && after.saturating_sub(before) > MAX_BOMB_KIB
        {
            let grown = (after - before) >> 10;
            watch.tally.wrong.push(format!("{name} takes {grown} MiB"));
        }
    }
    watch.tally
}

/// The peak of the memory of this process, in KiB; `None` on other systems than Linux.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
