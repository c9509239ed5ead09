//! The evals that several parts replace, one for each criterion: labels are about the whole.
//!
//! Responsible for the joined verdicts of one transcript. Does not count outcomes; the parts have those.

use std::collections::HashMap;

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
        if labels.is_empty() || self.wholes.is_empty() {
            return;
        }
        let mut parts: HashMap<(u32, &str), usize> = HashMap::new();
        for eval in &header.evals {
            if let Some(whole) = &eval.part_of {
                *parts.entry((eval.rubric, &whole.id)).or_default() += 1;
            }
        }
        let known = counts.iter().enumerate();
        let known = known.map(|(at, one)| ((one.rubric.clone(), one.eval.clone()), at));
        let mut known: HashMap<(String, String), usize> = known.collect();
        for ((rubric, id), joined) in self.wholes {
            let Some(query) = header.label_query(source, &joined.key) else {
                continue;
            };
            let query = joined.whole.label_query(query, joined.is_shot);
            let parts = parts.get(&(rubric, id)).copied().unwrap_or_default();
            let verdict = joined.verdicts.join(parts);
            let found = labels.look_up(&query);
            let name = (query.rubric.to_owned(), id.to_owned());
            let at = *known.entry(name).or_insert_with_key(|(rubric, eval)| {
                counts.push(EvalVerdicts {
                    rubric: rubric.clone(),
                    eval: eval.clone(),
                    ..EvalVerdicts::default()
                });
                counts.len() - 1
            });
            counts[at].count_lookup(verdict, found);
        }
    }
}
