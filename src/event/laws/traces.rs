//! Strategies for consistent runs, in which the streamed deltas concatenate to the replies.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::nouns::transcript;
use crate::event::{CellKey, DeltaPart, EventKind, RunEvent, StoredText, TurnFact};
use crate::model::{
    CallIx, CellIx, CellResult, Millis, ModelReply, Outcome, ReplyCall, StopReason, TokenUsage,
    TurnIx,
};

/// The output of one attempt in chunks: text, thoughts, and the arguments of its calls.
#[derive(Debug, Clone)]
struct AttemptChunks {
    text: Vec<String>,
    thought: Vec<String>,
    args: Vec<Vec<String>>,
}

fn attempt_chunks() -> impl Strategy<Value = AttemptChunks> {
    let chunks = || vec("[a-z\u{e4}\"\n]{1,5}", 0..4);
    (chunks(), chunks(), vec(chunks(), 0..3)).prop_map(|(text, thought, args)| AttemptChunks {
        text,
        thought,
        args,
    })
}

/// The turns of a trace: failed attempts, then the one that succeeds.
type Trace = Vec<(Vec<AttemptChunks>, AttemptChunks)>;

/// Returns a consistent run of judged cells, with their traces interleaved as in concurrent runs.
pub(crate) fn run() -> impl Strategy<Value = Vec<EventKind>> {
    let trace = || vec((vec(attempt_chunks(), 0..3), attempt_chunks()), 0..3);
    (transcript(), vec(trace(), 1..4), vec(any::<u8>(), 200)).prop_map(
        |(transcript, traces, picks)| {
            let key = |repeat| CellKey {
                eval: 0,
                message: None,
                judge: Some(0),
                repeat: Some(repeat),
            };
            let count = u32::try_from(traces.len()).unwrap_or(0);
            let mut all = vec![EventKind::CellsPlanned {
                transcript,
                first: CellIx(0),
                keys: (1..=count).map(key).collect(),
            }];
            let mut open: Vec<_> = (0..count)
                .zip(&traces)
                .map(|(cell, trace)| cell_facts(CellIx(cell), trace).into_iter())
                .collect();
            let mut picks = picks.into_iter().cycle();
            while !open.is_empty() {
                let pick = usize::from(picks.next().unwrap_or(0)) % open.len();
                match open[pick].next() {
                    Some(kind) => all.push(kind),
                    None => drop(open.remove(pick)),
                }
            }
            all.push(EventKind::RunFinished(Box::default()));
            all
        },
    )
}

fn cell_facts(cell: CellIx, trace: &Trace) -> Vec<EventKind> {
    let mut all = vec![EventKind::CellStarted { cell, key: None }];
    for (turn, (failed, attempt_chunks)) in (0..).map(TurnIx).zip(trace) {
        let mut say = |fact| all.push(EventKind::Turn { cell, turn, fact });
        say(TurnFact::Started {
            request: vec![StoredText::Text("{}".to_owned())],
            dropped: Vec::new(),
        });
        let attempts = failed.iter().chain([attempt_chunks]);
        for (attempt, chunks_of_attempt) in (1_u8..).zip(attempts) {
            say(TurnFact::AttemptStarted { attempt });
            for (part, text) in deltas(chunks_of_attempt) {
                say(TurnFact::Delta {
                    attempt,
                    part,
                    text,
                });
            }
            if usize::from(attempt) <= failed.len() {
                say(TurnFact::AttemptFailed {
                    attempt,
                    status: Some(500),
                    why: "overloaded".to_owned(),
                    retry_in: Some(Millis(100)),
                    billed: None,
                    wait_why: None,
                    exchange: None,
                });
            } else {
                say(TurnFact::Finished {
                    attempt,
                    native: Vec::new(),
                    resendable: true,
                    reply: reply_of(chunks_of_attempt),
                    usage: TokenUsage::default(),
                    exchange: None,
                });
            }
        }
    }
    all.push(EventKind::CellFinished {
        cell,
        result: Arc::new(CellResult::new(Outcome::Pass, "")),
    });
    all
}

/// Returns the deltas of all parts, in turns.
fn deltas(chunks_of_attempt: &AttemptChunks) -> Vec<(DeltaPart, String)> {
    let args = (0..)
        .map(|n| DeltaPart::Args(CallIx(n)))
        .zip(&chunks_of_attempt.args);
    let parts: Vec<_> = [
        (DeltaPart::Thought, &chunks_of_attempt.thought),
        (DeltaPart::Text, &chunks_of_attempt.text),
    ]
    .into_iter()
    .chain(args)
    .collect();
    (0..4)
        .flat_map(|round| {
            parts
                .iter()
                .filter_map(move |(part, chunks)| Some((*part, chunks.get(round)?.clone())))
        })
        .collect()
}

fn reply_of(chunks_of_attempt: &AttemptChunks) -> ModelReply {
    ModelReply {
        text: chunks_of_attempt.text.concat(),
        thought: chunks_of_attempt.thought.concat(),
        calls: chunks_of_attempt
            .args
            .iter()
            .map(|chunks| ReplyCall {
                id: String::new(),
                name: "fetch_url".to_owned(),
                raw: chunks.concat(),
            })
            .collect(),
        stop: StopReason::Stop,
    }
}

/// Numbers facts as the recorder would.
pub(crate) fn numbered(kinds: impl IntoIterator<Item = EventKind>) -> Vec<RunEvent> {
    (0..)
        .zip(kinds)
        .map(|(seq, kind)| RunEvent {
            seq,
            at: Millis(seq * 7),
            kind,
        })
        .collect()
}
