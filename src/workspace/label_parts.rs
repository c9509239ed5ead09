//! The file of parts next to a file of labels: `labels.jsonl` has `labels.split.jsonl`, one transcript per line.
//!
//! Responsible for the stored parts. A transcript gets its part once and never moves, whatever happens to the rule or to
//! its group. Does not hide labels; `labels::sealing` does.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paths;
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Digest, LabelSplit, SplitPart, SplitRule, Transcript, pluralize};
use crate::storage::{AtomicFile, FileLock, MAX_GROWING_FILE, read_optional_text};
use crate::transcript::{FieldMappings, TranscriptError};

/// The code of problems of the file. They are errors, because labels could lose their seal.
const SPLIT_CODE: &str = "label-split";
/// The maximum number of transcripts in a message.
const MAX_NAMED: usize = 3;

/// The transcripts whose parts a workspace needs.
pub(super) struct SplitSources<'s> {
    pub(super) root: &'s Path,
    /// The file that receives new labels.
    pub(super) labels: &'s Path,
    pub(super) transcripts: &'s [PathBuf],
    pub(super) maps: &'s FieldMappings,
    /// False if dicta may write nothing.
    pub(super) stores: bool,
}

/// Returns the file of parts of a file of labels.
pub(super) fn split_file_path(labels: &Path) -> PathBuf {
    labels.with_extension("split.jsonl")
}

/// A line of the file: the part of a transcript, or the files whose transcripts all have a part.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SplitLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript: Option<String>,
    /// The group; absent if the transcript is a group of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<SplitPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<Digest>,
}

/// The part and the group of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AssignedPart {
    group: Option<String>,
    part: SplitPart,
}

/// The content of the file.
#[derive(Debug, Default)]
struct StoredParts {
    by_transcript: IndexMap<String, AssignedPart>,
    files: Option<Digest>,
}

/// Returns the part of every transcript, and stores new ones. Problems that could break the seal are errors.
pub(super) fn load_parts(
    rule: SplitRule,
    sources: &SplitSources<'_>,
) -> (LabelSplit, Vec<Diagnostic>) {
    let path = split_file_path(sources.labels);
    let shown_path = paths::display_path(sources.root, &path);
    let mut problems = Vec::new();
    let mut stored = match read_parts(&path, &shown_path) {
        Ok(stored) => stored,
        Err(problem) => {
            problems.push(*problem);
            return (LabelSplit::new(rule, HashMap::new()), problems);
        }
    };
    // Transcripts are read again only if a file changed, because there may be millions.
    let files = digest_files(sources);
    if stored.files.as_ref() != Some(&files) {
        let groups = read_groups(sources);
        stored.assign(rule, &groups);
        stored.files = Some(files);
        if sources.stores
            && let Err(error) = stored.store(&path, &shown_path)
        {
            let message =
                format!("dicta cannot store the parts of transcripts, so they may move: {error}");
            problems.push(Diagnostic::warning(SPLIT_CODE, &*shown_path, message));
        }
    }
    problems.extend(stored.find_torn_groups(&shown_path));
    let parts = stored.by_transcript.into_iter();
    let parts = parts.map(|(transcript, assigned)| (transcript, assigned.part));
    (LabelSplit::new(rule, parts.collect()), problems)
}

/// Returns a digest of the names and sizes of the transcript files. It is the same in every copy of a repository.
fn digest_files(sources: &SplitSources<'_>) -> Digest {
    let names = sources.transcripts.iter().map(|path| {
        let size = path.metadata().map_or(0, |meta| meta.len());
        let name = paths::display_path(sources.root, path);
        format!("{} {size}", name.display())
    });
    let names: Vec<String> = names.collect();
    Digest::hash_parts(names.iter().map(String::as_bytes))
}

/// Returns the group of each transcript, by id; `None` for a transcript without one.
fn read_groups(sources: &SplitSources<'_>) -> IndexMap<String, Option<String>> {
    let mut groups = IndexMap::new();
    for path in sources.transcripts {
        // The code that judges transcripts reports unreadable files.
        let _unreadable = read_groups_of_file(path, sources.maps, &mut groups);
    }
    groups
}

fn read_groups_of_file(
    path: &Path,
    maps: &FieldMappings,
    groups: &mut IndexMap<String, Option<String>>,
) -> Result<(), TranscriptError> {
    let mut file = maps.open(path)?;
    while let Some(block) = file.next_block()? {
        for (record, bytes) in block.records() {
            let Ok(transcript) = record.parse(bytes, &file.default_id(record.span.number)) else {
                continue;
            };
            let group = read_transcript_group(&transcript);
            let id = transcript.id.to_string();
            // A run adds a suffix to an id that is taken.
            let taken = groups.contains_key(&id);
            let suffixes = (2..).map(|number| format!("{id}~{number}"));
            let mut ids = std::iter::once(id.clone())
                .filter(|_| !taken)
                .chain(suffixes);
            let free = ids.find(|id| !groups.contains_key(id));
            groups.insert(free.unwrap_or(id), group);
        }
    }
    Ok(())
}

/// Returns `metadata.group` of a transcript; `None` for a transcript without one.
pub(crate) fn read_transcript_group(transcript: &Transcript<'_>) -> Option<String> {
    read_group(&transcript.metadata.as_ref()?.parse_value())
}

/// Returns `metadata.group`.
fn read_group(metadata: &Value) -> Option<String> {
    match metadata.get("group")? {
        Value::Null => None,
        Value::String(group) if group.is_empty() => None,
        Value::String(group) => Some(group.clone()),
        other => Some(other.to_string()),
    }
}

/// Reads the file. A missing file has no parts.
fn read_parts(path: &Path, shown_path: &Path) -> Result<StoredParts, Box<Diagnostic>> {
    let text = match read_optional_text(path, MAX_GROWING_FILE) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            let message = format!("dicta cannot read the parts of transcripts: {error}");
            return Err(Diagnostic::error(SPLIT_CODE, shown_path, message).into());
        }
    };
    let mut stored = StoredParts::default();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let found: SplitLine = serde_json::from_str(line).unwrap_or_default();
        match (found.transcript, found.part, found.files) {
            (Some(transcript), Some(part), _) => {
                let entry = stored.by_transcript.entry(transcript);
                // The first part counts, and the last group: a transcript never moves.
                let assigned = entry.or_insert(AssignedPart { group: None, part });
                assigned.group = found.group;
            }
            (None, None, Some(files)) => stored.files = Some(files),
            _ => {
                let message = "not the part of a transcript, which is {\"transcript\": \"…\", \"part\": \"train|dev|test\"}; remove the line or restore it from version control";
                let problem = Diagnostic::error(SPLIT_CODE, shown_path, message);
                let span = SourceSpan {
                    bytes: 0..0,
                    line: number,
                    column: 1,
                };
                return Err(Box::new(Diagnostic {
                    span: Some(span),
                    ..problem
                }));
            }
        }
    }
    Ok(stored)
}

impl StoredParts {
    /// Adds the transcripts that have no part yet. A group with a part keeps it.
    fn assign(&mut self, rule: SplitRule, groups: &IndexMap<String, Option<String>>) {
        let mut parts: HashMap<String, SplitPart> = HashMap::new();
        let name = |transcript: &str, group: &Option<String>| {
            group.clone().unwrap_or_else(|| transcript.to_owned())
        };
        for (transcript, assigned) in &mut self.by_transcript {
            parts
                .entry(name(transcript, &assigned.group))
                .or_insert(assigned.part);
            if let Some(group) = groups.get(transcript) {
                assigned.group.clone_from(group);
                parts
                    .entry(name(transcript, group))
                    .or_insert(assigned.part);
            }
        }
        for (transcript, group) in groups {
            if self.by_transcript.contains_key(transcript) {
                continue;
            }
            let name = name(transcript, group);
            let part = *parts
                .entry(name)
                .or_insert_with_key(|name| rule.assign(name));
            let assigned = AssignedPart {
                group: group.clone(),
                part,
            };
            self.by_transcript.insert(transcript.clone(), assigned);
        }
    }

    /// Writes the file. Parts that another process stored meanwhile count.
    fn store(&mut self, path: &Path, shown_path: &Path) -> io::Result<()> {
        let _lock = FileLock::acquire(path)?;
        let written = read_parts(path, shown_path)
            .map_err(|problem| io::Error::other(problem.message.clone()))?;
        for (transcript, assigned) in written.by_transcript {
            let part = assigned.part;
            self.by_transcript
                .entry(transcript)
                .or_insert(assigned)
                .part = part;
        }
        let mut text = String::new();
        let mut add = |line: &SplitLine| {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
            Ok::<_, serde_json::Error>(())
        };
        for (transcript, assigned) in &self.by_transcript {
            add(&SplitLine {
                transcript: Some(transcript.clone()),
                group: assigned.group.clone(),
                part: Some(assigned.part),
                files: None,
            })?;
        }
        add(&SplitLine {
            files: self.files.clone(),
            ..SplitLine::default()
        })?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    /// Returns a warning if transcripts of one group are in several parts, because the group was set later.
    fn find_torn_groups(&self, shown_path: &Path) -> Option<Diagnostic> {
        let mut parts: HashMap<&str, SplitPart> = HashMap::new();
        let mut torn: Vec<&str> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for assigned in self.by_transcript.values() {
            let Some(group) = assigned.group.as_deref() else {
                continue;
            };
            let part = *parts.entry(group).or_insert(assigned.part);
            if part != assigned.part && seen.insert(group) {
                torn.push(group);
            }
        }
        if torn.is_empty() {
            return None;
        }
        let named: Vec<String> = torn
            .iter()
            .take(MAX_NAMED)
            .map(|group| format!("`{group}`"))
            .collect();
        let message = format!(
            "{} in several parts, because a transcript keeps the part that it had before its group was set: {}{}",
            match torn.len() {
                1 => "1 group is".to_owned(),
                n => format!("{} are", pluralize(n as u64, "group")),
            },
            named.join(", "),
            if torn.len() > MAX_NAMED { " …" } else { "" }
        );
        Some(Diagnostic::warning(SPLIT_CODE, shown_path, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: SplitRule = SplitRule {
        train: 0.0,
        test: 0.5,
        seed: 1,
    };

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(transcripts: &[(&str, &str)]) -> Self {
            let folder = Self(tempfile::tempdir().expect("a folder"));
            folder.write(transcripts);
            folder
        }

        /// Writes transcripts, each with its id and its group.
        fn write(&self, transcripts: &[(&str, &str)]) {
            let lines = transcripts.iter().map(|(id, group)| {
                let group = if group.is_empty() { "null".to_owned() } else { format!("{group:?}") };
                format!("{{\"id\":{id:?},\"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}],\"metadata\":{{\"group\":{group}}}}}\n")
            });
            let text: String = lines.collect();
            std::fs::write(self.0.path().join("t.jsonl"), text).expect("written");
        }

        fn load(&self, rule: SplitRule) -> (LabelSplit, Vec<Diagnostic>) {
            let labels = self.0.path().join("labels.jsonl");
            load_parts(
                rule,
                &SplitSources {
                    root: self.0.path(),
                    labels: &labels,
                    transcripts: &[self.0.path().join("t.jsonl")],
                    maps: &FieldMappings::default(),
                    stores: true,
                },
            )
        }
    }

    #[test]
    fn transcript_keeps_its_part_when_rule_and_group_change() {
        let ids: Vec<String> = (0..40).map(|at| format!("t{at}")).collect();
        let groups: Vec<String> = (0..40).map(|at| format!("g{}", at / 2)).collect();
        let pairs = ids.iter().zip(&groups);
        let pairs: Vec<(&str, &str)> = pairs.map(|(id, group)| (&**id, &**group)).collect();
        let folder = Folder::new(&pairs);
        let (split, problems) = folder.load(RULE);
        assert_eq!(problems, []);
        let parts: Vec<SplitPart> = ids.iter().map(|id| split.part(id)).collect();
        for pair in parts.chunks(2) {
            assert_eq!(pair[0], pair[1], "one group has one part");
        }
        assert!(parts.contains(&SplitPart::Test) && parts.contains(&SplitPart::Dev));
        // Another seed, another share and another group move nothing.
        let all: Vec<(&str, &str)> = ids.iter().map(|id| (&**id, "one group for all")).collect();
        folder.write(&all);
        let other = SplitRule {
            train: 0.3,
            test: 0.1,
            seed: 9,
        };
        let (split, problems) = folder.load(other);
        let now: Vec<SplitPart> = ids.iter().map(|id| split.part(id)).collect();
        assert_eq!(now, parts);
        let warning = problems.iter().map(ToString::to_string).collect::<String>();
        assert!(warning.contains("1 group is in several parts"), "{warning}");
    }

    #[test]
    fn new_transcript_joins_the_part_of_its_group() {
        for group in ["a", "b", "c", "d", "e"] {
            let folder = Folder::new(&[("t0", group)]);
            let part = folder.load(RULE).0.part("t0");
            folder.write(&[("t0", group), ("t1", group), ("t0", group)]);
            let opposite = SplitRule {
                train: 0.0,
                test: if part == SplitPart::Test { 1e-9 } else { 1.0 },
                seed: 1,
            };
            let split = folder.load(opposite).0;
            assert_eq!((split.part("t1"), split.part("t0~2")), (part, part));
        }
    }

    #[test]
    fn broken_file_of_parts_is_an_error_with_its_line() {
        let folder = Folder::new(&[("t0", "")]);
        let path = folder.0.path().join("labels.split.jsonl");
        std::fs::write(&path, "{\"transcript\":\"t0\",\"part\":\"test\"}\n{}\n").expect("written");
        let (_, problems) = folder.load(RULE);
        assert_eq!(problems.len(), 1);
        let problem = problems[0].to_string();
        assert!(problem.starts_with("labels.split.jsonl:2:1: "), "{problem}");
    }
}
