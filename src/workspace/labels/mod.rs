//! `labels:` of dicta.yaml: people's labels, from files of several formats.
//!
//! Responsible for the choice of files, for their formats (recognized by content), and for the check that labels
//! match an eval. A file that is not a label file, and a label that matches nothing, are errors with a place. Does
//! not write: the workbench writes to [`super::Workspace::labels_file`].

mod earlier_ids;
mod entries;
mod jsonl;
mod label_columns;
mod label_file;
mod mapped;
mod mismatch;
mod pairs;
mod promptfoo;
mod ratings;
mod scout;
mod scout_uuids;
mod sealing;
mod split_entry;
mod table;
mod table_rows;
mod unselected;
mod validate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::entries::LabelsEntry;
use self::label_file::{LabelFileReader, LocatedLabel};
use self::ratings::RatingTool;
use super::{Env, files, globs, paths};
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, YamlDoc};
use crate::diag::{Diagnostic, LoadedFile, SourceSpan};
use crate::model::{Label, PairPreference, SplitRule};

pub(super) use earlier_ids::upgrade_earlier_ids;
pub(super) use entries::{
    label_file_schema, list_joined_files, list_label_files, list_mapped_files,
};
pub(super) use mapped::read_mapped_labels as read_mapped;
pub(crate) use mismatch::matches_an_eval;
pub(super) use scout_uuids::resolve_scout_uuids;
pub use sealing::SealedLabels;
pub(super) use sealing::seal_labels;
pub(crate) use unselected::LabelledTranscripts;
pub(crate) use validate::find_stray_labels;
pub(super) use validate::{check_labels_against_rubrics, check_labels_place, check_map_labels};

/// The maximum size of a label file, in bytes.
const MAX_LABELS_BYTES: u64 = 64 << 20;
/// The code of label problems. They are errors for a run, but do not refuse a rubric.
pub(super) const LABEL_CODE: &str = "label";
/// The code of labels that match no eval: a warning, because the cause is often a renamed rubric or eval.
pub(crate) const UNMATCHED_LABEL_CODE: &str = "unmatched-label";
/// The code of a label file that does not exist yet: a warning, because its name may be a mistake.
pub(crate) const NEW_LABELS_FILE: &str = "new-labels-file";
/// The default label file, next to dicta.yaml.
pub(super) const DEFAULT_LABELS_FILE: &str = "labels.jsonl";

/// The place of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelPlace {
    /// The file, as a person would name it.
    pub file: Arc<Path>,
    /// The place in the file.
    pub span: SourceSpan,
}

/// The labels of a workspace, with their places and problems.
#[derive(Debug, Default)]
pub(super) struct LoadedLabels {
    pub(super) labels: Vec<Arc<Label>>,
    /// The places of the labels, in the order of `labels`.
    pub(super) places: Vec<LabelPlace>,
    /// The positions of Inspect Scout's labels, whose transcript ids may be Inspect's.
    pub(super) scout: Vec<usize>,
    /// The number of leading labels that come from transcript files.
    pub(super) mapped_count: usize,
    /// The choices between the transcripts of a pair.
    pub(super) pair_preferences: Vec<PairPreference>,
    /// The problems of label files and labels, not of dicta.yaml.
    pub(super) problems: Vec<Diagnostic>,
    /// The files in dicta's own format with their text.
    pub(super) files: Vec<LoadedFile>,
    /// The files in other formats.
    pub(super) unkept_files: Vec<PathBuf>,
    /// The file that receives new labels.
    pub(super) file: Option<PathBuf>,
    /// The split of `labels:`.
    pub(super) split: Option<SplitRule>,
}

/// The format of a label file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelFormat {
    /// `labels.jsonl`, also with choices between the transcripts of a pair.
    Jsonl,
    /// CSV or TSV, in dicta's columns or Inspect Scout's.
    Table,
    /// promptfoo's results.
    Promptfoo,
    /// Inspect Scout's validation cases as YAML, JSON or JSON lines.
    Scout,
    /// Ratings of another tool, or a table with a `map`.
    Ratings(RatingTool),
}

/// Reads the files that `labels:` names, and `labels.jsonl` next to dicta.yaml if no other file of that format is
/// named.
pub(super) fn read_labels(
    fields: &mut MappingDecoder<'_>,
    doc: &YamlDoc,
    root: &Path,
    env: &Env,
    problems: &DiagnosticCollector,
) -> LoadedLabels {
    let mut found = LoadedLabels::default();
    for (at, entry) in entries::read_entries(fields) {
        if let Some(split) = entry.split
            && found
                .split
                .replace(split)
                .is_some_and(|other| other != split)
        {
            let message = "labels has two different splits; all labels have the same one, so one entry is enough";
            problems.error(doc.span(&format!("{at}/split")), "value", message);
        }
        if let Some(path) = find_future_file(root, &entry.path, env) {
            let shown_path = paths::display_path(root, &path);
            let message = format!(
                "`{}` does not exist yet; the first label creates it",
                shown_path.display()
            );
            problems.warning(doc.span(&at), NEW_LABELS_FILE, message);
            found.file.get_or_insert(path);
            continue;
        }
        match globs::expand_from_home(root, &entry.path, env) {
            Ok(files) => {
                for file in files.files {
                    // The error is placed at the entry in dicta.yaml, because the file could not be read.
                    if let Err(why) = found.file(root, &file, &entry) {
                        let shown_path = paths::display_path(root, &file);
                        let message = format!("`{}` {why}", shown_path.display());
                        problems.error(doc.span(&at), "io", message);
                    }
                }
            }
            Err(why) => problems.error(doc.span(&at), "io", why),
        }
    }
    // The default file is read only if no listed file receives new labels.
    if found.file.is_none() {
        let path = root.join(DEFAULT_LABELS_FILE);
        if path.is_file()
            && let Err(why) = found.file(root, &path, &LabelsEntry::default())
        {
            let problem = Diagnostic::error("io", DEFAULT_LABELS_FILE, format!("the file {why}"));
            found.problems.push(problem);
        }
        // The file may not exist yet; the first label creates it.
        found.file = Some(path);
    }
    found
}

/// Returns the path of a file that dicta creates with the first label: it does not exist and is not a glob.
fn find_future_file(root: &Path, written: &str, env: &Env) -> Option<PathBuf> {
    let path = paths::absolute(&paths::resolve(root, written, env));
    let is_jsonl = path.extension().is_some_and(|ending| ending == "jsonl");
    // A missing folder is more often a typing error than a plan.
    let has_folder = path.parent().is_some_and(Path::is_dir);
    let is_missing = path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    (is_jsonl && has_folder && is_missing && !globs::is_glob(written)).then_some(path)
}

impl LoadedLabels {
    /// Puts the labels of transcript files first, because the last label of a decision counts and people write theirs
    /// later.
    pub(super) fn prepend_mapped(&mut self, mut mapped: LoadedLabels) {
        self.mapped_count = mapped.labels.len();
        mapped.labels.append(&mut self.labels);
        mapped.places.append(&mut self.places);
        mapped.pair_preferences.append(&mut self.pair_preferences);
        self.pair_preferences = mapped.pair_preferences;
        mapped.problems.append(&mut self.problems);
        (self.labels, self.places) = (mapped.labels, mapped.places);
        self.problems = mapped.problems;
    }

    /// Reads one file. The error is a sentence without its path.
    fn file(&mut self, root: &Path, path: &Path, entry: &LabelsEntry) -> Result<(), String> {
        let text = files::read_text(path, MAX_LABELS_BYTES).map_err(|error| error.to_string())?;
        self.add_text(text, path, paths::display_path(root, path), entry);
        Ok(())
    }

    /// Reads the text of one file.
    fn add_text(&mut self, text: Arc<str>, path: &Path, shown_path: PathBuf, entry: &LabelsEntry) {
        let mut format = detect_label_format(path, &text);
        // The columns that the user names come before the detection.
        if entry.map.as_ref().is_some_and(|map| map.passed.is_some()) {
            format = LabelFormat::Ratings(RatingTool::Mapped);
        }
        let mut reader = LabelFileReader::new(&text, &shown_path, entry);
        match format {
            LabelFormat::Jsonl => self.pair_preferences.extend(jsonl::read(&mut reader)),
            LabelFormat::Table => table::read(&mut reader),
            LabelFormat::Promptfoo => promptfoo::read(&mut reader),
            LabelFormat::Scout => scout::read(&mut reader),
            LabelFormat::Ratings(tool) => ratings::read(&mut reader, tool),
        }
        let is_scout = reader.is_scout;
        let (labels, problems) = reader.finish();
        self.problems.extend(problems);
        let file: Arc<Path> = Arc::from(&*shown_path);
        for LocatedLabel { label, span } in labels {
            if is_scout {
                self.scout.push(self.labels.len());
            }
            self.labels.push(label);
            self.places.push(LabelPlace {
                file: Arc::clone(&file),
                span,
            });
        }
        if format == LabelFormat::Jsonl {
            // New labels are appended only to a file that is clearly in dicta's format.
            let jsonl = path.extension().is_some_and(|ending| ending == "jsonl");
            if jsonl && self.file.is_none() {
                self.file = Some(path.to_owned());
            }
            self.files.push(LoadedFile {
                path: shown_path,
                text,
            });
        } else {
            self.unkept_files.push(path.to_owned());
        }
    }
}

/// Reads the text of a label file, which need not exist. Returns the number of labels and the problems.
pub(crate) fn read_label_text(text: &str, path: &Path) -> (usize, Vec<Diagnostic>) {
    let mut found = LoadedLabels::default();
    found.add_text(text.into(), path, path.to_owned(), &LabelsEntry::default());
    (found.labels.len(), found.problems)
}

/// Recognizes the format by content. The file's ending only distinguishes YAML from a table.
fn detect_label_format(path: &Path, text: &str) -> LabelFormat {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let ending = path.extension().and_then(|ending| ending.to_str());
    let first = text.lines().next().unwrap_or_default();
    // JSON or JSON lines: the keys of the first line distinguish the formats.
    if text.starts_with('{') {
        let line: Option<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(first).ok();
        let has_key = |key: &str| line.as_ref().is_some_and(|line| line.contains_key(key));
        if has_key("transcript") || (has_key("pair") && has_key("better")) {
            return LabelFormat::Jsonl;
        }
        // The text is a document over several lines, or one on its first line.
        let is_document = line.is_none() && text.len() > first.len();
        if has_key("gradingResult") || has_key("promptIdx") || has_key("results") {
            return LabelFormat::Promptfoo;
        }
        if is_document && promptfoo::is_results_document(text) {
            return LabelFormat::Promptfoo;
        }
        if let Some(tool) = ratings::detect_json_tool(text) {
            return LabelFormat::Ratings(tool);
        }
        // The order matters: promptfoo's results also have an `id`, and a broken label may have one.
        if has_key("id") && !has_key("eval") {
            return LabelFormat::Scout;
        }
        return LabelFormat::Jsonl;
    }
    // Inspect Scout's list of cases, or a list of ratings.
    if text.starts_with('[') {
        return ratings::detect_json_tool(text).map_or(LabelFormat::Scout, LabelFormat::Ratings);
    }
    match ending {
        Some("yaml" | "yml") => LabelFormat::Scout,
        // Without a brace, these lines are broken; the reader of JSON lines reports each of them.
        Some("jsonl" | "ndjson") => LabelFormat::Jsonl,
        _ if text.is_empty() => LabelFormat::Jsonl,
        _ => {
            let names = first
                .split([',', ';', '\t'])
                .map(|name| name.trim().trim_matches('"'));
            ratings::detect_tool(&names).map_or(LabelFormat::Table, LabelFormat::Ratings)
        }
    }
}

#[cfg(test)]
mod tests;
