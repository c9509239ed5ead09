//! Labels that match an eval and a transcript, and no cell: `applies_to` excludes their transcript.

use std::collections::HashMap;
use std::sync::Arc;

use super::mismatch::with_location;
use super::validate::cap_problems;
use super::{LABEL_CODE, LabelPlace};
use crate::diag::Diagnostic;
use crate::model::{Label, Transcript};
use crate::rubric::CompiledSelector;
use crate::workspace::Workspace;

/// Finds these labels while a command reads the transcripts.
pub(crate) struct LabelledTranscripts<'w> {
    workspace: &'w Workspace,
    labels: Vec<(&'w Label, &'w LabelPlace)>,
    /// The positions of the labels of each transcript.
    by_transcript: HashMap<&'w str, Vec<usize>>,
    /// The selectors of each eval that has a label, compiled once.
    selectors: HashMap<(&'w str, &'w str), [CompiledSelector; 2]>,
    unselected: Vec<usize>,
}

impl<'w> LabelledTranscripts<'w> {
    /// Starts with the labels of a workspace.
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        let labels: Vec<_> = workspace.list_labels().collect();
        let mut by_transcript: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, (label, _)) in labels.iter().enumerate() {
            by_transcript.entry(&label.transcript).or_default().push(at);
        }
        let mut selectors = HashMap::new();
        for rubric in &workspace.rubrics {
            for eval in &rubric.evals {
                let both = [rubric.applies_to.compile(), eval.applies_to.compile()];
                selectors.insert((rubric.id.as_str(), eval.id.as_str()), both);
            }
        }
        Self {
            workspace,
            labels,
            by_transcript,
            selectors,
            unselected: Vec::new(),
        }
    }

    /// Checks the labels of a transcript. `id` is its id in a run.
    pub(crate) fn observe(&mut self, id: &str, transcript: &Transcript<'_>) {
        let of_transcript = self.by_transcript.get(id).into_iter().flatten();
        for at in of_transcript {
            let Some((label, _)) = self.labels.get(*at) else {
                continue;
            };
            let rubrics = self.workspace.rubrics.iter();
            let rubrics =
                rubrics.filter(|rubric| label.rubric.as_ref().is_none_or(|id| *id == rubric.id));
            let selectors = rubrics
                .filter_map(|rubric| {
                    self.selectors
                        .get(&(rubric.id.as_str(), label.eval.as_str()))
                })
                .collect::<Vec<_>>();
            let selects = |both: &&[CompiledSelector; 2]| {
                both.iter().all(|selector| selector.matches(transcript))
            };
            // A label that matches no eval has its own warning.
            if !selectors.is_empty() && !selectors.iter().any(selects) {
                self.unselected.push(*at);
            }
        }
    }

    /// Returns a warning per label, at its place.
    pub(crate) fn into_warnings(self) -> Vec<Diagnostic> {
        let found = self.unselected.iter().filter_map(|at| self.labels.get(*at));
        let warnings = found.map(|(label, place)| {
            let message = format!(
                "a label of `{}` on `{}`, which `applies_to` excludes, so no decision has this label",
                label.eval, label.transcript
            );
            let mut files = self.workspace.files.iter();
            let text = files.find(|file| *file.path == *place.file);
            with_location(
                Diagnostic::warning(LABEL_CODE, &*place.file, message),
                &place.span,
                text.map(|file| Arc::clone(&file.text)),
            )
        });
        let mut warnings: Vec<Diagnostic> = warnings.collect();
        cap_problems(
            &mut warnings,
            "more labels of transcripts that `applies_to` excludes",
        );
        warnings
    }
}
