//! The decisions of a workspace that can have a label, each with the texts that its label is about.

use std::sync::Arc;

use indexmap::IndexMap;

use super::CommandCx;
use super::error::CommandError;
use super::planned_cells::for_each_planned_cell;
use crate::diag::suggest_cell;
use crate::model::{CellName, CellPattern, Digest, Label, LabelQuery};
use crate::workspace::Workspace;
use crate::workspace::label_edit::{LabelEditError, LabelOrigin};

/// The maximum number of names in a message.
const MAX_LISTED_NAMES: usize = 5;

/// A decision that a label can be about.
#[derive(Debug, Clone)]
pub(super) struct LabelTarget {
    /// The name of the decision.
    pub(super) name: CellName,
    /// The digest of the transcript as it is now.
    transcript_digest: Digest,
    /// The digest of the question as it is now.
    question: Option<Digest>,
}

impl LabelTarget {
    /// Returns the query for its label.
    pub(super) fn query(&self) -> LabelQuery<'_> {
        LabelQuery {
            transcript: &self.name.transcript,
            transcript_digest: Some(&self.transcript_digest),
            rubric: &self.name.rubric,
            eval: &self.name.eval,
            question: self.question.as_ref(),
            later_name: None,
            is_shot: false,
        }
    }

    /// Returns a label with the digests of the question and the transcript as they are now, as far as it has none.
    pub(super) fn add_digests(&self, label: &Label) -> Label {
        let transcript = label.transcript_digest.as_ref();
        Label {
            rubric: Some(self.name.rubric.clone()),
            transcript_digest: transcript.or(Some(&self.transcript_digest)).cloned(),
            question_digest: label
                .question_digest
                .as_ref()
                .or(self.question.as_ref())
                .cloned(),
            ..label.clone()
        }
    }

    /// Returns the origin of a new label, without what the person saw.
    pub(super) fn origin(&self) -> LabelOrigin {
        LabelOrigin {
            transcript_digest: Some(self.transcript_digest.clone()),
            question_digest: self.question.clone(),
            ..LabelOrigin::default()
        }
    }
}

/// Returns the decisions of a workspace by name, in plan order, also those about single messages.
pub(super) fn list_label_targets(
    workspace: &Arc<Workspace>,
    cx: &CommandCx,
) -> Result<IndexMap<String, LabelTarget>, CommandError> {
    let mut targets: IndexMap<String, LabelTarget> = IndexMap::new();
    for_each_planned_cell(workspace, None, cx, |cell| {
        let eval = cell.header.evals.get(cell.key.eval as usize);
        if let Some(whole) = eval.and_then(|eval| eval.part_of.as_ref()) {
            let name = CellName {
                eval: whole.id.clone(),
                ..cell.decision.clone()
            };
            targets.entry(name.to_string()).or_insert(LabelTarget {
                transcript_digest: cell.transcript.digest.clone(),
                question: Some(whole.question.clone()),
                name,
            });
        }
        let target = LabelTarget {
            transcript_digest: cell.transcript.digest.clone(),
            question: eval.and_then(|eval| eval.question.clone()),
            name: cell.decision,
        };
        targets.insert(target.name.to_string(), target);
    })?;
    Ok(targets)
}

/// Returns the targets that a cell's name, a unique prefix or a glob selects. The error names a similar one.
pub(super) fn select_label_targets<'t>(
    targets: &'t IndexMap<String, LabelTarget>,
    pattern: &str,
) -> Result<Vec<&'t LabelTarget>, CommandError> {
    let texts: Vec<String> = targets.keys().cloned().collect();
    let mut found = CellPattern::new(pattern).select(&texts);
    if found.is_empty()
        && let Ok(cell) = pattern.parse::<CellName>()
    {
        // The name of a cell also has its judge and repeat, and a label is about the decision.
        found = CellPattern::new(&cell.decision_name().to_string()).select(&texts);
    }
    if found.is_empty() {
        return Err(CommandError::usage(format!(
            "no cell of this workspace matches `{pattern}`{}",
            suggest_cell(pattern, &texts)
        )));
    }
    Ok(found
        .iter()
        .filter_map(|name| targets.get(name.as_str()))
        .collect())
}

/// Returns the only decision that a cell's name, a unique prefix or a glob selects, if it can have a label.
pub(super) fn find_label_target(
    workspace: &Arc<Workspace>,
    pattern: &str,
    cx: &CommandCx,
) -> Result<LabelTarget, CommandError> {
    let targets = list_label_targets(workspace, cx)?;
    let found = select_label_targets(&targets, pattern)?;
    let [one] = found[..] else {
        let listed = found.iter().take(MAX_LISTED_NAMES);
        let listed: Vec<String> = listed.map(|target| target.name.to_string()).collect();
        let more = if found.len() > MAX_LISTED_NAMES {
            " …"
        } else {
            ""
        };
        return Err(CommandError::usage(format!(
            "`{pattern}` matches {} decisions; name one of them: {}{more}",
            found.len(),
            listed.join(", ")
        )));
    };
    if one.name.message.is_some() {
        return Err(CommandError::usage(format!(
            "the eval `{}` judges message by message, and a label is about a whole transcript; \
             dicta cannot label {}",
            one.name.eval, one.name
        )));
    }
    Ok(one.clone())
}

/// Returns a path relative to the workspace.
pub(super) fn show_path(workspace: &Workspace, file: &std::path::Path) -> String {
    let shown = file.strip_prefix(&workspace.root).unwrap_or(file);
    shown.display().to_string()
}

/// Converts an error of a label file to an error of the command.
pub(super) fn to_command_error(error: LabelEditError) -> CommandError {
    match error {
        LabelEditError::Io { path, source } => {
            CommandError::write_failed(&path.display().to_string(), &source)
        }
        other => CommandError::from_error(&other),
    }
}
