//! From a mode to an eval: drafts with their hits over all transcripts, the edit of a rubric, and the labels.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::ReviewBook;
use super::catalog::ReviewCatalog;
use super::modes::FailureMode;
use super::place::ReviewPlace;
use super::terms::split_words;
use crate::diag::yaml;
use crate::handlers::{CompileCx, CompiledEval, EvalTypeRegistry, ExecutionMode, Subject};
use crate::model::{JudgeConfig, Label, LabelSample, Outcome, SeenVerdicts, pluralize};
use crate::rubric::{self, Eval};
use crate::run::visit_transcripts;
use crate::workspace::Workspace;

/// The largest number of candidates for examples in a rubric.
const MAX_CANDIDATES: usize = 4;
/// The largest number of phrases in a template.
const MAX_PHRASES: usize = 4;

/// The way in which an eval decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalDraftKind {
    /// A judge, with the definition as criteria.
    Judge,
    /// Code.
    Check,
}

/// A draft of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalDraft {
    /// The kind.
    pub kind: EvalDraftKind,
    /// The id of the eval: the id of the mode.
    pub id: String,
    /// The eval type.
    pub eval_type: &'static str,
    /// The eval as a value of the rubric.
    pub value: Value,
    /// A sentence: when the eval fails.
    pub title: String,
}

/// A candidate for an example that must fail.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExampleCandidate {
    /// A message of the agent.
    Text(String),
    /// A conversation as JSON in dicta's own form.
    Conversation(String),
}

impl ExampleCandidate {
    /// Returns the key of an example, and its value as JSON, which is YAML, too.
    fn to_entry(&self) -> (&'static str, String) {
        match self {
            Self::Text(text) => ("text", Value::from(text.as_str()).to_string()),
            Self::Conversation(json) => ("transcript", json.clone()),
        }
    }
}

/// The result of a draft over all transcripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DraftHits {
    /// The number of transcripts.
    pub transcripts: u64,
    /// The number of transcripts that fail.
    pub fails: u64,
    /// The number of transcripts with neither pass nor fail.
    pub undecided: u64,
    /// The transcripts in which the mode occurs: all, and those that fail.
    pub of_yes: (u64, u64),
    /// The transcripts in which it does not occur: all, and those that fail.
    pub of_no: (u64, u64),
}

impl DraftHits {
    /// Returns how well the fails fit the answers, from -1 to 1: the share of fails with the mode, less that without it.
    pub fn fit(self) -> f64 {
        let share = |(all, fails): (u64, u64)| match all {
            0 => 0.0,
            all => fails as f64 / all as f64,
        };
        share(self.of_yes) - share(self.of_no)
    }

    /// Describes the hits: `fails 14 of 1000; of 12 with the mode 9, of 40 without it 2`.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "fails {} of {}",
            self.fails,
            pluralize(self.transcripts, "transcript")
        );
        let (yes, no) = (self.of_yes, self.of_no);
        if yes.0 + no.0 > 0 {
            let _infallible = write!(
                text,
                "; of {} with the mode {}, of {} without it {}",
                yes.0, yes.1, no.0, no.1
            );
        }
        if self.undecided > 0 {
            let _infallible = write!(text, "; {} undecided", self.undecided);
        }
        text
    }
}

/// Returns the order in which to show drafts: those that fit the answers best come first. The hits of a judge are unknown.
/// It comes before the checks if the workspace has a language model, else before those that do not fit at all.
pub fn rank_drafts(
    drafts: &[EvalDraft],
    hits: &[Option<DraftHits>],
    workspace: Option<&Workspace>,
) -> Vec<usize> {
    let has_model = find_default_judge(workspace).is_some_and(|judge| judge.provider.is_model());
    let rank = |at: usize| match drafts[at].kind {
        EvalDraftKind::Judge if has_model => (f64::INFINITY, true),
        EvalDraftKind::Judge => (0.0, true),
        EvalDraftKind::Check => {
            let fit = hits.get(at).copied().flatten().map_or(0.0, DraftHits::fit);
            (fit, false)
        }
    };
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (rank(*a), rank(*b));
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
    });
    order
}

fn find_default_judge(workspace: Option<&Workspace>) -> Option<&JudgeConfig> {
    let workspace = workspace?;
    workspace.judges.get(workspace.judge.as_ref()?)
}

/// Returns what is known about a draft of a judge before the first run: whether the judge of the workspace can read the
/// definition of a mode.
pub fn describe_judge_draft(workspace: Option<&Workspace>) -> String {
    match find_default_judge(workspace) {
        Some(judge) if judge.provider.is_model() => {
            format!(
                "the judge `{}` shows its hits after the first run",
                judge.name
            )
        }
        Some(judge) => format!(
            "the judge `{}` can't read a definition: add a language model to dicta.yaml first",
            judge.name
        ),
        None => "no judge can read a definition yet: add a language model to dicta.yaml first"
            .to_owned(),
    }
}

/// Returns the drafts for a mode: a judge first, then filled templates of code checks.
pub fn draft_evals(book: &ReviewBook, mode: &FailureMode) -> Vec<EvalDraft> {
    let definition = if mode.definition.trim().is_empty() {
        mode.name.trim()
    } else {
        mode.definition.trim()
    };
    let criteria = format!(
        "The conversation fails if this failure occurs in it: {definition}\nOtherwise it passes."
    );
    let description = mode.name.clone();
    let draft = |kind, eval_type: &'static str, params: Value, title: String| {
        let mut value = json!({"id": mode.id, "type": eval_type});
        if let Some(fields) = value.as_object_mut() {
            fields.insert("description".to_owned(), json!(description));
            fields.insert("params".to_owned(), params);
        }
        EvalDraft {
            kind,
            id: mode.id.clone(),
            eval_type,
            value,
            title,
        }
    };
    let mut drafts = vec![draft(
        EvalDraftKind::Judge,
        "llm_judge_session",
        json!({ "criteria": criteria }),
        "a judge decides by the definition of the mode".to_owned(),
    )];
    let notes = book.notes_of_mode(&mode.id);
    let texts: Vec<&str> = std::iter::once(mode.definition.as_str())
        .chain(notes.iter().filter_map(|note| note.text()))
        .collect();
    let mut phrases = quoted_phrases(&texts);
    let is_quoted = !phrases.is_empty();
    if phrases.is_empty() {
        phrases = common_words(&texts);
    }
    let list = phrases.join("`, `");
    if !phrases.is_empty() {
        let origin = if is_quoted {
            "quoted in the notes"
        } else {
            "frequent in the notes"
        };
        drafts.push(draft(
            EvalDraftKind::Check,
            "content_excludes",
            json!({ "patterns": phrases }),
            format!("an answer contains `{list}` ({origin})"),
        ));
        drafts.push(draft(
            EvalDraftKind::Check,
            "contains_any",
            json!({ "patterns": phrases }),
            format!("no answer contains `{list}` ({origin})"),
        ));
    }
    drafts.push(draft(
        EvalDraftKind::Check,
        "no_tool_errors",
        json!({}),
        "a tool call ends in an error".to_owned(),
    ));
    drafts.push(draft(
        EvalDraftKind::Check,
        "tool_no_repeat",
        json!({}),
        "the agent repeats a tool call".to_owned(),
    ));
    drafts.push(draft(
        EvalDraftKind::Check,
        "max_length",
        json!({ "max": 2000 }),
        "an answer is longer than 2000 characters".to_owned(),
    ));
    drafts
}

/// Returns the first phrases in quotes, each once.
fn quoted_phrases(texts: &[&str]) -> Vec<String> {
    const PAIRS: [(char, char); 4] = [('"', '"'), ('`', '`'), ('“', '”'), ('«', '»')];
    let mut phrases: Vec<String> = Vec::new();
    for text in texts {
        for (open, close) in PAIRS {
            let mut rest = *text;
            while let Some((_, after)) = rest.split_once(open) {
                let Some((phrase, next)) = after.split_once(close) else {
                    break;
                };
                let phrase = phrase.trim();
                if phrases.len() < MAX_PHRASES
                    && phrase.chars().nth(1).is_some()
                    && !phrases.iter().any(|known| known == phrase)
                {
                    phrases.push(phrase.to_owned());
                }
                rest = next;
            }
        }
    }
    phrases
}

/// Returns the long words that several texts share.
fn common_words(texts: &[&str]) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for text in texts {
        let words: BTreeSet<String> = split_words(text)
            .into_iter()
            .filter(|word| word.chars().count() >= 5)
            .collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let shared = counts.into_iter().filter(|(_, count)| *count > 1);
    let mut counts: Vec<(String, usize)> = shared.collect();
    counts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    counts.truncate(2);
    counts.into_iter().map(|(word, _)| word).collect()
}

/// Loads a draft as an eval of a rubric.
pub(super) fn load_draft(draft: &EvalDraft, registry: &EvalTypeRegistry) -> Result<Eval, String> {
    let text = json!({"id": "draft", "evals": [draft.value]}).to_string();
    let (rubric, problems) = rubric::load(Arc::from(text), Path::new("draft.yaml"), registry);
    let first = problems.first().map(ToString::to_string);
    rubric
        .and_then(|rubric| rubric.evals.into_iter().next())
        .ok_or_else(|| first.unwrap_or_else(|| "the draft does not load".to_owned()))
}

/// Runs a code check over all transcripts and counts where it fails. Returns `None` for a judge.
pub fn count_hits(
    place: &ReviewPlace,
    book: &ReviewBook,
    draft: &EvalDraft,
    registry: &EvalTypeRegistry,
) -> Result<Option<DraftHits>, String> {
    if draft.kind == EvalDraftKind::Judge {
        return Ok(None);
    }
    let eval = load_draft(draft, registry)?;
    let compiled = registry
        .compile_eval(&eval, &CompileCx::default())
        .map_err(|error| error.to_string())?;
    let CompiledEval::Check(check) = compiled else {
        return Ok(None);
    };
    // A program has side effects, so dicta does not start it for a draft.
    if check.execution_mode() != ExecutionMode::Inline {
        return Ok(None);
    }
    let mut hits = DraftHits::default();
    visit_transcripts(&place.transcripts, &place.maps, &mut |reference, read| {
        let outcome = check.check(&Subject::new(read)).outcome;
        let fails = u64::from(outcome == Outcome::Fail);
        hits.transcripts += 1;
        hits.fails += fails;
        hits.undecided += u64::from(outcome.passed().is_none());
        let answered = match book.answer(&reference.id, &draft.id).occurs() {
            Some(true) => &mut hits.of_yes,
            Some(false) => &mut hits.of_no,
            None => return,
        };
        answered.0 += 1;
        answered.1 += fails;
    })
    .map_err(|error| error.to_string())?;
    Ok(Some(hits))
}

/// Returns the text of a rubric with one more eval at its end. Comments and layout stay. Without a text, returns a new
/// rubric. `candidates` become comments that the author can turn into examples.
pub fn add_eval_to_rubric(
    source: Option<&str>,
    path: &Path,
    draft: &EvalDraft,
    candidates: &[ExampleCandidate],
) -> Result<String, String> {
    let mut text = match source {
        Some(source) if !source.trim().is_empty() => source.to_owned(),
        _ => "# Evals that grew out of notes: `dicta review`.\nevals:\n".to_owned(),
    };
    let before = read_value(&text, path)?;
    let evals = before.get("evals").and_then(Value::as_array);
    let has_id = |one: &Value| one.get("id").and_then(Value::as_str) == Some(&draft.id);
    if evals.is_some_and(|evals| evals.iter().any(has_id)) {
        return Err(format!(
            "{} already has an eval `{}`: edit it, or delete it first",
            path.display(),
            draft.id
        ));
    }
    let indent = find_indent(&text).ok_or_else(|| {
        format!(
            "{}: dicta can't add to this layout: write `evals:` last, with one `-` line per eval",
            path.display()
        )
    })?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let entry = yaml::to_string(&[&draft.value]).map_err(|error| error.to_string())?;
    for line in entry.lines() {
        let _infallible = writeln!(text, "{indent}{line}");
    }
    if !candidates.is_empty() {
        // Without its `#`, each line has the indent of the eval.
        let _infallible = writeln!(
            text,
            "# Candidates from notes: remove the `#` of each line that you want to keep.\n#{indent}  examples:"
        );
        for candidate in candidates.iter().take(MAX_CANDIDATES) {
            let (key, value) = candidate.to_entry();
            let _infallible = writeln!(
                text,
                "#{indent}    - {key}: {value}\n#{indent}      expect: fail"
            );
        }
    }
    // The file is the author's work, so an edit that changed anything else is never written.
    let after = read_value(&text, path)?;
    let mut wanted = before;
    let list = wanted
        .as_object_mut()
        .map(|rubric| rubric.entry("evals").or_insert(json!([])));
    if let Some(list) = list {
        if !list.is_array() {
            *list = json!([]);
        }
        if let Some(list) = list.as_array_mut() {
            list.push(draft.value.clone());
        }
    }
    if after == wanted {
        Ok(text)
    } else {
        Err(format!(
            "{}: dicta can't add to this layout: write `evals:` last, with one `-` line per eval",
            path.display()
        ))
    }
}

/// Returns the `id` of a rubric's text; `None` if it has none, so that the file's name is the id.
pub(super) fn read_rubric_id(text: &str, path: &Path) -> Result<Option<String>, String> {
    let rubric = read_value(text, path)?;
    Ok(rubric.get("id").and_then(Value::as_str).map(str::to_owned))
}

fn read_value(text: &str, path: &Path) -> Result<Value, String> {
    let source: Arc<str> = Arc::from(text);
    let doc = yaml::read_document(&source, path).map_err(|problems| {
        let first = problems.first().map(ToString::to_string);
        first.unwrap_or_else(|| format!("{} does not load", path.display()))
    })?;
    Ok(doc.value)
}

/// Returns the indent of the `-` lines of `evals:`, if that is the last key of the file.
fn find_indent(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("evals:"));
    let head = lines.next()?;
    let rest = head.strip_prefix("evals:")?.trim();
    if !(rest.is_empty() || rest.starts_with('#')) {
        return None;
    }
    let mut indent = None;
    for line in lines {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let depth = line.len() - text.len();
        // Another key of the rubric follows, so the end of the file is not the end of the list.
        if depth == 0 && !text.starts_with('-') {
            return None;
        }
        indent.get_or_insert_with(|| " ".repeat(depth));
    }
    Some(indent.unwrap_or_else(|| "  ".to_owned()))
}

/// Returns the yes and no answers about a mode as labels of an eval, with their origin.
pub fn mode_labels(
    book: &ReviewBook,
    catalog: &ReviewCatalog,
    mode: &str,
    rubric: &str,
    eval: &str,
) -> Vec<Label> {
    let mut labels = Vec::new();
    for entry in &catalog.entries {
        let id = entry.reference.id.as_str();
        for (reader, occurs) in book.answers_by_reader(id, mode) {
            let mut notes = book.notes_of(id).filter(|note| note.reader() == reader);
            let Some(note) = notes.next_back() else {
                continue;
            };
            let sample = note.sample.as_ref();
            labels.push(Label {
                rubric: Some(rubric.to_owned()),
                by: note.by.clone(),
                at: note.at.clone(),
                note: note.text().filter(|_| occurs).map(str::to_owned),
                // The review shows no verdict.
                blind: Some(true),
                seen: Some(SeenVerdicts::None),
                transcript_digest: Some(entry.reference.digest.clone()),
                sample: sample.and_then(|sample| {
                    Some(LabelSample {
                        plan: sample.plan.clone(),
                        stratum: None,
                        p: sample.p?,
                    })
                }),
                ..Label::new(id, eval, Some(!occurs))
            });
        }
    }
    labels
}
