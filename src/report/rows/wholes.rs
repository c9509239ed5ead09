//! The evals that several parts replace, one for each criterion: labels are about the whole.
//!
//! Responsible for the joined verdicts of one transcript. Does not count outcomes; the parts have those.

use indexmap::IndexMap;

use super::EvalVerdicts;
use crate::event::{CellKey, EvalSpec, RunHeader};
use crate::model::{EvalWhole, Labels, PartVerdicts, TranscriptRef};

/// The verdicts that the parts of each whole have on one transcript.
#[derive(Default)]
pub(super) struct JoinedParts<'h> {
    wholes: IndexMap<(u32, &'h str), JoinedVerdict<'h>>,
}

struct JoinedVerdict<'h> {
    whole: &'h EvalWhole,
    /// The cell of the first part.
    key: CellKey,
    verdicts: PartVerdicts,
    is_shot: bool,
}

impl<'h> JoinedParts<'h> {
    /// Adds the verdict of an eval, if it is a part. `passed` is `None` without a verdict.
    pub(super) fn add(
        &mut self,
        eval: &'h EvalSpec,
        key: CellKey,
        passed: Option<bool>,
        source: &TranscriptRef,
    ) {
        let Some(whole) = &eval.part_of else { return };
        if key.message.is_some() {
            return;
        }
        let new = JoinedVerdict {
            whole,
            key,
            verdicts: PartVerdicts::default(),
            is_shot: false,
        };
        let joined = self.wholes.entry((eval.rubric, &whole.id)).or_insert(new);
        joined.verdicts.add(passed);
        joined.is_shot |= eval.is_shot(&source.id);
    }

    /// Counts the label of each whole.
    pub(super) fn finish(
        self,
        header: &RunHeader,
        source: &TranscriptRef,
        labels: &Labels,
        counts: &mut Vec<EvalVerdicts>,
    ) {
        if labels.is_empty() {
            return;
        }
        for ((rubric, id), joined) in self.wholes {
            let Some(query) = header.label_query(source, &joined.key) else {
                continue;
            };
            let query = joined.whole.label_query(query, joined.is_shot);
            let evals = header.evals.iter();
            let parts = evals.filter(|eval| {
                eval.rubric == rubric && eval.part_of.as_ref().is_some_and(|whole| whole.id == id)
            });
            let verdict = joined.verdicts.join(parts.count());
            let found = labels.look_up(&query);
            let known = counts
                .iter()
                .position(|one| one.rubric == query.rubric && one.eval == id);
            let at = known.unwrap_or_else(|| {
                counts.push(EvalVerdicts {
                    rubric: query.rubric.to_owned(),
                    eval: id.to_owned(),
                    ..EvalVerdicts::default()
                });
                counts.len() - 1
            });
            counts[at].count_lookup(verdict, found);
        }
    }
}
