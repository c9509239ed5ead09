//! The `replay` judge: what a recorded run's judge did for the cell of the same name, told again.
//!
//! Nothing is sent and nothing decided anew: the recorded facts are emitted as they stand, large texts copied into this
//! run, and the recorded result is returned, marked with the run it is from. A cell that run does not hold is
//! `judge_error`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::recall::taken_from;
use crate::clock::Fut;
use crate::event::{BlobSource, CallCx, Kind, Piece, RunHeader, ToolFact, TurnFact};
use crate::handlers::{JudgeProvider, JudgeRequest};
use crate::model::{CellIx, CellName, CellResult, Outcome, RunId};
use crate::record::{RecordError, Run};

/// Recorded traces by the name of their decision and their repeat; the judge's name is not looked at, since it was
/// another judge that made them.
pub(super) struct Replay {
    run: RunId,
    traces: HashMap<CellName, Trace>,
    blobs: Arc<dyn BlobSource>,
}

#[derive(Default)]
struct Trace {
    facts: Vec<Kind>,
    result: Option<CellResult>,
}

impl Replay {
    /// Reads the judged cells of a run.
    pub(super) fn of(run: &Run) -> Result<Self, RecordError> {
        let header: RunHeader = run.header()?;
        let mut names: HashMap<CellIx, CellName> = HashMap::new();
        let mut traces: HashMap<CellName, Trace> = HashMap::new();
        let wanted = &["cells_planned", "turn", "tool", "cell_finished"];
        for event in run.events_of(wanted)? {
            let kind = event?.kind;
            match &kind {
                Kind::CellsPlanned {
                    transcript,
                    first,
                    keys,
                } => {
                    for (ix, key) in (first.0..).map(CellIx).zip(keys) {
                        if key.judge.is_some()
                            && let Some(name) = header.cell_name(transcript, key)
                        {
                            names.insert(
                                ix,
                                CellName {
                                    judge: None,
                                    ..name.to_owned()
                                },
                            );
                        }
                    }
                }
                Kind::CellFinished { cell, result } => {
                    if let Some(name) = names.get(cell) {
                        traces.entry(name.clone()).or_default().result = Some((**result).clone());
                    }
                }
                _ => {
                    if let Some(name) = kind.cell().and_then(|cell| names.get(&cell)) {
                        traces.entry(name.clone()).or_default().facts.push(kind);
                    }
                }
            }
        }
        Ok(Self {
            run: run.id.clone(),
            traces,
            blobs: run.blobs(),
        })
    }

    async fn play(&self, name: &CellName, cx: &CallCx) -> CellResult {
        let Some(Trace {
            facts,
            result: Some(result),
        }) = self.traces.get(name)
        else {
            return CellResult::failed(
                Outcome::JudgeError,
                format!("run {} holds no trace of {name}", self.run.letters()),
            );
        };
        for fact in facts {
            if cx.cancel.is_cancelled() {
                return CellResult::cancelled();
            }
            for blob in blobs_of(fact) {
                // One that is missing there is missing here: readers say so.
                if let Ok(bytes) = self.blobs.get(&blob.hash) {
                    cx.out.blob(&bytes).await;
                }
            }
            cx.out.send(renumbered(fact.clone(), cx.cell)).await;
        }
        taken_from(&self.run, result.clone())
    }
}

/// The replay judge of one run, told what the cells of this run are called.
pub(super) struct ReplayJudge {
    pub(super) replay: Arc<Replay>,
    pub(super) names: Arc<Names>,
}

/// What the live cells of this run are called; a request holds the number alone.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<CellIx, CellName>>);

impl Names {
    /// A cell began.
    pub(super) fn put(&self, cell: CellIx, name: CellName) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(cell, name);
    }

    /// A cell ended.
    pub(super) fn forget(&self, cell: CellIx) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&cell);
    }

    fn get(&self, cell: CellIx) -> Option<CellName> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&cell).cloned()
    }
}

impl JudgeProvider for ReplayJudge {
    fn judge<'a>(&'a self, ask: &'a JudgeRequest, cx: &'a CallCx) -> Fut<'a, CellResult> {
        Box::pin(async move {
            match self.names.get(ask.cell) {
                Some(name) => self.replay.play(&name, cx).await,
                None => CellResult::failed(Outcome::JudgeError, "this cell has no name"),
            }
        })
    }
}

fn renumbered(mut kind: Kind, to: CellIx) -> Kind {
    if let Kind::Turn { cell, .. } | Kind::Tool { cell, .. } = &mut kind {
        *cell = to;
    }
    kind
}

/// The blobs a fact names.
fn blobs_of(fact: &Kind) -> Vec<&crate::model::Blob> {
    fn of(piece: &Piece) -> Option<&crate::model::Blob> {
        match piece {
            Piece::Blob(blob) => Some(blob),
            Piece::Text(_) => None,
        }
    }
    match fact {
        Kind::Turn { fact, .. } => match fact {
            TurnFact::Started { request, .. } => request.iter().filter_map(of).collect(),
            TurnFact::Finished { native, .. } => native.iter().filter_map(of).collect(),
            TurnFact::VerdictUnparsed { raw, .. } => of(raw).into_iter().collect(),
            _ => Vec::new(),
        },
        Kind::Tool {
            fact: ToolFact::Finished { answer, .. },
            ..
        } => of(&answer.text).into_iter().chain(&answer.raw).collect(),
        _ => Vec::new(),
    }
}
