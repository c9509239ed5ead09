//! `dicta prompt CELL`: the exact request for a cell, and the parts of its cache key.
//!
//! Responsible for rendering. Does not send anything.

use std::collections::HashSet;
use std::sync::Arc;

use super::{CachePolicy, RunError, RunOptions, RunUsageError, TranscriptSourceError};
use crate::clock::Clock;
use crate::diag::suggest_cell;
use crate::event::CellKey;
use crate::handlers::EvalTypeRegistry;
use crate::judge::estimate_shot_tokens;
use crate::model::{CellName, CellPattern, Digest, ProviderKind, pluralize};
use crate::provider::RequestBody;
use crate::run::execute::make_id_unique;
use crate::run::execute::worker::{WorkedCell, WorkedRecord, WorkedTranscript, process_chunk};
use crate::run::prepare::{PreparedRun, prepare_run};
use crate::workspace::{Env, Workspace};

/// The request for a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedPrompt {
    /// The cell.
    pub name: CellName,
    /// The body of the first turn's request.
    pub body: RequestBody,
    /// The cache key.
    pub cache_key: Digest,
    /// The named parts of the cache key.
    pub key_parts: Vec<(String, Digest)>,
    /// The examples in the prompt, in order.
    pub shots: Vec<RenderedShot>,
}

/// An example in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedShot {
    /// The id of the transcript.
    pub transcript: String,
    /// The person's verdict.
    pub passed: bool,
    /// The reason; empty without one.
    pub reason: String,
    /// The estimated number of tokens of its block.
    pub tokens: u64,
}

/// Returns the requests of the judged cells that `pattern` selects, in plan order. Needs no key and sends nothing.
///
/// Of an eval with repeats, it returns only the cells that are certain; further ones differ only in their number.
pub async fn render_prompts(
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: &RunOptions,
    pattern: &str,
) -> Result<Vec<RenderedPrompt>, RunError> {
    let options = RunOptions {
        // A cached cell has a request, too, so look up no verdict.
        cache: CachePolicy::Off,
        ..options.clone()
    };
    let workspace = Arc::clone(workspace);
    let mut prepared = prepare_run(workspace, registry, env, clock, options, false).await?;
    // Read once for the names and once for the selected transcripts, so that no pass holds all transcripts.
    let mut names = Vec::new();
    // Step: the first pass collects the names.
    let (mut judged, mut checks) = (Vec::new(), 0_u64);
    for_each_transcript(&mut prepared, |prepared, item| {
        for WorkedCell { key, .. } in &item.cells {
            match (key.judge, find_cell_name(prepared, item, key)) {
                (Some(_), Some(name)) => names.push(name.to_string()),
                _ => checks += 1,
            }
        }
    })?;
    // Select over all names, because an exact name wins over a prefix.
    let wanted = CellPattern::new(pattern).select(&names);
    let wanted: HashSet<&str> = wanted.into_iter().map(String::as_str).collect();
    if wanted.is_empty() {
        let hint = if names.is_empty() {
            format!(
                "; no judge decides any of the {}",
                pluralize(checks, "cell")
            )
        } else {
            suggest_cell(pattern, &names)
        };
        let pattern = pattern.to_owned();
        return Err(RunUsageError::UnknownCell { pattern, hint }.into());
    }
    // Step: the second pass renders the selected cells.
    let mut problem = None;
    prepared.rewind();
    for_each_transcript(&mut prepared, |prepared, item| {
        for WorkedCell { key, .. } in &item.cells {
            let Some(name) = find_cell_name(prepared, item, key) else {
                continue;
            };
            if key.judge.is_some() && wanted.contains(name.to_string().as_str()) {
                match render_prompt(prepared, item, key, name) {
                    Ok(found) => judged.extend(found),
                    Err(why) => problem = Some(why),
                }
            }
        }
    })?;
    match problem {
        Some(why) => Err(RunUsageError::PromptNotRendered(why).into()),
        None if judged.is_empty() => {
            let pattern = pattern.to_owned();
            Err(RunUsageError::NoRequest { pattern }.into())
        }
        None => Ok(judged),
    }
}

/// Passes every transcript with cells to `take`, with a unique id.
fn for_each_transcript(
    prepared: &mut PreparedRun,
    mut take: impl FnMut(&PreparedRun, &WorkedTranscript),
) -> Result<(), RunError> {
    let mut ids = crate::run::inputs::ids::TranscriptIds::default();
    while let Some(chunk) = prepared
        .feed
        .next_chunk()
        .map_err(TranscriptSourceError::from)?
    {
        for worked in process_chunk(&prepared.judge_pool, &chunk) {
            if let WorkedRecord::Transcript(mut item) = worked {
                // Names contain the unique id, so both passes must see all transcripts in the same order.
                make_id_unique(&mut ids, &mut item);
                take(prepared, &item);
            }
        }
    }
    Ok(())
}

fn find_cell_name(
    prepared: &PreparedRun,
    item: &WorkedTranscript,
    key: &CellKey,
) -> Option<CellName> {
    let eval = prepared.header.evals.get(key.eval as usize)?;
    let rubric = prepared.header.rubrics.get(eval.rubric as usize)?;
    let judge = key
        .judge
        .and_then(|judge| prepared.judge_pool.plan.judges.get(judge as usize));
    Some(CellName {
        transcript: item.id.clone(),
        rubric: rubric.id.clone(),
        eval: eval.id.clone(),
        message: key.message,
        judge: judge.cloned(),
        repeat: key.repeat,
    })
}

fn render_prompt(
    prepared: &PreparedRun,
    item: &WorkedTranscript,
    key: &CellKey,
    name: CellName,
) -> Result<Option<RenderedPrompt>, String> {
    let engine = key
        .judge
        .and_then(|judge| prepared.judge_pool.slot(judge))
        .and_then(|slot| slot.engine.as_ref());
    // A source judge gets its own explanation, because users expect a prompt of every judge.
    let (Some(transcript), Some(engine)) = (&item.transcript, engine) else {
        if let Some(judge) = key.judge
            && let Some(spec) = prepared.header.judges.get(judge as usize)
            && spec.config.provider == ProviderKind::Source
        {
            return Err(format!(
                "the judge `{}` is sent no request: it gives the verdict that another tool recorded with the transcript",
                spec.config.name
            ));
        }
        return Ok(None);
    };
    let request = prepared
        .judge_pool
        .build_request(transcript, key)
        .map_err(|settled| settled.explanation)?;
    let body = engine
        .first_request_body(&request)
        .map_err(|error| error.to_string())?;
    let cache_key = engine
        .cache_key(&request)
        .map_err(|error| error.to_string())?;
    let hide_calls = request.params.hide_calls;
    let shots = request.params.shots.iter().map(|shot| RenderedShot {
        transcript: shot.transcript.id.to_string(),
        passed: shot.passed,
        reason: shot.reason.clone(),
        tokens: estimate_shot_tokens(shot, hide_calls),
    });
    Ok(Some(RenderedPrompt {
        shots: shots.collect(),
        name,
        body,
        cache_key: cache_key.key,
        key_parts: cache_key.parts,
    }))
}
