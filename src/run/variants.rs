//! Variants of a judged eval: the labels that measure them, and the runs that do.
//!
//! Responsible for the choice of labels and for the options of the runs. Does not run anything and computes no figure.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::inputs::ids::TranscriptIds;
use super::judges::pool::PlannedCellState;
use super::past::usage_history::UsageHistory;
use super::prepare::prepare_preview;
use super::preview::{RunPreview, preview_prepared};
use super::record_key::find_record_key;
use super::{CachePolicy, DecisionFilter, RunError, RunOptions, outline_names};
use crate::clock::Clock;
use crate::event::{EventKind, RunEvent, RunHeader, RunPurpose, RunState, SettledCell};
use crate::handlers::EvalTypeRegistry;
use crate::model::{
    CellIx, CellName, LabelQuery, Millis, SplitPart, TranscriptRef, quote_shell_word,
};
use crate::record::RunStore;
use crate::workspace::variant_file::{Variant, VariantError, VariantFile};
use crate::workspace::{Env, Workspace};

/// The beginning of the label of a run that measures a variant.
const VARIANT_LABEL: &str = "variant ";

/// A label of one part of the split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartLabel {
    /// The id of the transcript.
    pub transcript: String,
    /// The label.
    pub passed: bool,
    /// The notes of people who gave this label.
    pub notes: Vec<String>,
}

/// A variant that is ready to run.
#[derive(Clone)]
pub struct PreparedVariant {
    /// The name.
    pub name: String,
    /// The workspace with the change.
    pub workspace: Arc<Workspace>,
    /// The options of the run.
    pub options: RunOptions,
}

/// Returns the labels of an eval whose transcripts are in a part of the split, in plan order. Labels that do not count,
/// for example because the question changed since, are left out.
///
/// Labels of `test` are sealed, so that part has none here.
pub fn list_part_labels(
    file: &VariantFile,
    part: SplitPart,
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<PartLabel>, VariantError> {
    let unusable = |why: String| VariantError::Unusable(why);
    let Some(sealed) = &workspace.sealed else {
        return Err(unusable(format!(
            "variants are measured on the dev part of the labels, and dicta.yaml has no split: write `{}` in it",
            workspace.suggest_split()
        )));
    };
    let index = workspace.index_labels();
    let mut labels: IndexMap<String, PartLabel> = IndexMap::new();
    let mut header: Option<Box<RunHeader>> = None;
    let mut is_any_waiting = false;
    let mut take_batch = |batch: super::OutlineBatch| {
        for fact in batch.facts {
            let (transcript, keys) = match fact {
                EventKind::RunStarted(started) => {
                    header = Some(started);
                    continue;
                }
                EventKind::CellsPlanned {
                    transcript, keys, ..
                } => (transcript, keys),
                _ => continue,
            };
            let Some(header) = &header else { continue };
            for key in &keys {
                let Some(name) = header.cell_name(&transcript, key) else {
                    continue;
                };
                let name = name.to_owned().decision_name();
                let is_own = name.rubric == file.rubric.id && file.has_part(&name.eval);
                if !is_own
                    || name.message.is_some()
                    || sealed.seal().part(&name.transcript) != part
                    || labels.contains_key(&name.transcript)
                {
                    continue;
                }
                let eval = header.evals.get(key.eval as usize);
                // The parts of an eval have questions of their own, and labels are about the whole.
                let question = eval.and_then(|eval| match &eval.part_of {
                    Some(whole) => Some(&whole.question),
                    None => eval.question.as_ref(),
                });
                let query = LabelQuery {
                    transcript: &name.transcript,
                    transcript_digest: Some(&transcript.digest),
                    rubric: &name.rubric,
                    eval: &file.eval,
                    question,
                    later_name: None,
                    is_shot: false,
                };
                is_any_waiting |= index.look_up(&query).is_to_confirm();
                let Some(passed) = index.find(&query).and_then(|label| label.passed) else {
                    continue;
                };
                let own = index
                    .list(&query)
                    .filter(|label| label.passed == Some(passed));
                let notes = own
                    .filter_map(|label| label.note.clone())
                    .filter(|note| !note.trim().is_empty())
                    .collect();
                labels.insert(
                    name.transcript.clone(),
                    PartLabel {
                        transcript: name.transcript,
                        passed,
                        notes,
                    },
                );
            }
        }
        true
    };
    outline_names(
        Arc::clone(workspace),
        registry,
        env,
        clock,
        None,
        &mut take_batch,
    )
    .map_err(|error: RunError| unusable(error.to_string()))?;
    if labels.is_empty() {
        let next = if is_any_waiting {
            "its labels wait for a confirmation, which `dicta labels drift` lists".to_owned()
        } else {
            let eval = quote_shell_word(&file.eval);
            format!("`dicta label --queue random --eval {eval}` draws what to label")
        };
        return Err(unusable(format!(
            "no transcript of {} has a label of {} that counts; {next}",
            part.as_str(),
            file.eval_name(),
        )));
    }
    Ok(labels.into_values().collect())
}

/// The facts of a variant before it runs.
#[derive(Debug, Clone)]
pub struct KnownVariant {
    /// The state at the beginning of its run: the recorded verdicts, and the other cells without results.
    pub state: RunState,
    /// The preview of its run.
    pub preview: RunPreview,
}

/// Reads what is known of the variants of one workspace. Their recordings are read once for all variants.
#[derive(Default)]
pub struct VariantReader {
    past: Option<UsageHistory>,
}

impl VariantReader {
    /// Reads a variant. Calls no judge and records nothing. Each transcript is read once.
    pub async fn read(
        &mut self,
        variant: &PreparedVariant,
        registry: &EvalTypeRegistry,
        env: &Env,
        clock: &Arc<dyn Clock>,
    ) -> Result<KnownVariant, RunError> {
        let workspace = Arc::clone(&variant.workspace);
        let options = variant.options.clone();
        let prepared = prepare_preview(workspace, registry, env, clock, options).await?;
        let (mut state, mut seq, mut next) = (RunState::default(), 0, 0_u32);
        let mut apply = |kind: EventKind| {
            state.apply(&RunEvent {
                seq,
                at: Millis(0),
                kind,
            });
            seq += 1;
        };
        apply(EventKind::RunStarted(Box::new(prepared.header.clone())));
        let mut ids = TranscriptIds::default();
        let preview = preview_prepared(prepared, &mut self.past, |chunk, item| {
            let id = if item.has_unique_id {
                item.id.clone()
            } else {
                ids.make_unique(item.id.clone()).0
            };
            if item.cells.is_empty() {
                return;
            }
            let first = CellIx(next);
            let settled = item.cells.iter().zip(next..).filter_map(|(cell, at)| {
                let PlannedCellState::Settled(result) = &cell.state else {
                    return None;
                };
                Some(SettledCell::new(CellIx(at), result.clone()))
            });
            let settled: Vec<SettledCell> = settled.collect();
            next = next.saturating_add(u32::try_from(item.cells.len()).unwrap_or(u32::MAX));
            apply(EventKind::CellsPlanned {
                transcript: TranscriptRef {
                    id,
                    path: chunk.path.to_path_buf(),
                    offset: item.offset,
                    len: item.len,
                    part: item.part,
                    digest: item.digest.clone(),
                },
                first,
                keys: item.cells.iter().map(|cell| cell.key).collect(),
            });
            apply(EventKind::CellsSettled(settled));
        })?;
        Ok(KnownVariant { state, preview })
    }
}

/// Prepares the run of a variant on labelled transcripts.
pub fn prepare_variant(
    file: &VariantFile,
    variant: &Variant,
    labels: &[PartLabel],
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
) -> Result<PreparedVariant, VariantError> {
    let (_, changed) = file.apply(variant, workspace, registry)?;
    let own = changed
        .rubrics
        .iter()
        .find(|rubric| rubric.path == file.rubric.path);
    let evals = own.into_iter().flat_map(|rubric| &rubric.evals);
    let ids: Vec<&str> = evals
        .map(|eval| eval.id.as_str())
        .filter(|id| file.has_part(id))
        .collect();
    let names = labels.iter().flat_map(|label| {
        ids.iter().map(|id| {
            let name = CellName {
                transcript: label.transcript.clone(),
                rubric: file.rubric.id.clone(),
                eval: (*id).to_owned(),
                message: None,
                judge: None,
                repeat: None,
            };
            name.to_string()
        })
    });
    let options = RunOptions {
        filter: Some(DecisionFilter::from_names(names)),
        cache: CachePolicy::Use,
        purpose: RunPurpose::Variants,
        label: format!("{VARIANT_LABEL}{} of {}", variant.name, file.eval_name()),
        ..RunOptions::default()
    };
    Ok(PreparedVariant {
        name: variant.name.clone(),
        workspace: Arc::new(changed),
        options,
    })
}

/// Returns a text that is equal for two runs of the same variant: its questions, judges and repeats.
pub fn variant_key(header: &RunHeader, file: &VariantFile) -> String {
    let own = header.evals.iter().filter(|eval| {
        let rubric = header.rubrics.get(eval.rubric as usize);
        rubric.is_some_and(|rubric| rubric.id == file.rubric.id) && file.has_part(&eval.id)
    });
    let evals = own.map(|eval| {
        let panel = eval.panel.iter().flat_map(|panel| &panel.judges);
        let judges = eval.judge.iter().chain(panel).filter_map(|judge| {
            let config = &header.judges.get(*judge as usize)?.config;
            Some(format!("{} {}", config.name, config.model))
        });
        let judges: Vec<String> = judges.collect();
        format!("{} {} {}", eval.digest, judges.join(","), eval.repeat)
    });
    evals.collect::<Vec<_>>().join("\n")
}

/// Returns the number of other variants of an eval that recorded runs measured. `known` has the keys of the present ones.
///
/// The best of many is luckier than the best of few, also if the many were measured on other days.
pub fn count_earlier_variants(
    workspace: &Workspace,
    env: &Env,
    file: &VariantFile,
    known: &BTreeSet<String>,
) -> u32 {
    let store = RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
        key: find_record_key(env),
    };
    let end = format!(" of {}", file.eval_name());
    let keys: BTreeSet<String> = store
        .runs()
        .iter()
        .filter_map(|run| run.read_header().ok())
        .filter(|header| {
            header.purpose == RunPurpose::Variants
                && header.workspace == workspace.root
                && header.label.starts_with(VARIANT_LABEL)
                && header.label.ends_with(&end)
        })
        .map(|header| variant_key(&header, file))
        .filter(|key| !known.contains(key))
        .collect();
    u32::try_from(keys.len()).unwrap_or(u32::MAX)
}
