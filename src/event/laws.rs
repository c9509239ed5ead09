//! Strategies for events, and the laws of the fold. The laws that need a recorder stand with it.

use std::path::PathBuf;

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{
    Answered, CellKey, DeltaPart, Dropped, EvalSpec, FORMAT, Format, Handled, JudgeSpec, Kind,
    Parent, ParentCause, Piece, RubricSpec, RunEvent, RunHeader, RunState, Settled, Snapshot,
    Source, StopKind, ToolFact, Totals, TurnFact,
};
use crate::model::{
    Blob, CallIx, CellIx, CellResult, Change, Citation, Digest, Hop, JudgeConfig, Millis, Outcome,
    ProviderKind, RawJson, Reply, ReplyCall, RunId, StopReason, TranscriptRef, TurnIx, Usage,
    Verdict, WallTime,
};

/// Text as models and pages have it: line breaks, quotes, controls, anything.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z \n\"\\\\]{0,12}", 1 => any::<String>()]
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<u8>().prop_map(|n| Digest::of(&[n]))
}

fn blob() -> impl Strategy<Value = Blob> {
    (digest(), any::<u64>()).prop_map(|(hash, bytes)| Blob { hash, bytes })
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![text().prop_map(Piece::Text), blob().prop_map(Piece::Blob)]
}

fn run_id() -> impl Strategy<Value = RunId> {
    "[a-z]{4}".prop_map(|letters| RunId(format!("20260101T000000Z-{letters}")))
}

/// Finite, since JSON has no other numbers.
fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |n| n.is_finite())
}

/// Raw JSON with numbers that no float holds.
fn raw() -> impl Strategy<Value = RawJson> {
    prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"n":123456789012345678901234567890,"x":1.50}"#.to_owned()),
        text().prop_map(|t| serde_json::json!({ "t": t }).to_string()),
    ]
    .prop_map(|json| RawJson::parse(&json).expect("valid JSON"))
}

fn usage() -> impl Strategy<Value = Usage> {
    let tokens = || option::of(any::<u64>());
    (tokens(), tokens(), tokens(), tokens(), any::<u32>()).prop_map(
        |(input, output, cached, thinking, calls)| Usage {
            input,
            output,
            cached,
            thinking,
            calls,
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (0..Outcome::ALL.len()).prop_map(|n| Outcome::ALL[n])
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    vec(
        (text(), text()).prop_map(|(path, what)| Change { path, what }),
        0..2,
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let citation = (text(), text(), any::<bool>()).prop_map(|(source, quote, found)| Citation {
        source,
        quote,
        found,
    });
    (
        option::of(any::<bool>()),
        option::of(number()),
        text(),
        vec(citation, 0..2),
        changes(),
        option::of(text()),
    )
        .prop_map(
            |(passed, score, reasoning, citations, repaired, contradiction)| Verdict {
                passed,
                score,
                raw_score: score,
                applicable: passed,
                reasoning,
                citations,
                repaired,
                contradiction,
            },
        )
}

fn result() -> impl Strategy<Value = CellResult> {
    (
        outcome(),
        option::of(number()),
        text(),
        option::of(text()),
        option::of(verdict()),
        option::of(usage()),
        option::of(run_id()),
        any::<(u64, bool)>(),
    )
        .prop_map(
            |(outcome, score, explanation, error, verdict, usage, cached, (ms, by_human))| {
                CellResult {
                    outcome,
                    score,
                    explanation,
                    error,
                    verdict: verdict.map(Box::new),
                    usage,
                    cost_usd: score,
                    duration_ms: Millis(ms),
                    cached,
                    by_human,
                }
            },
        )
}

fn key() -> impl Strategy<Value = CellKey> {
    let small = || option::of(0..3_u32);
    (0..3_u32, small(), small(), small()).prop_map(|(eval, message, judge, repeat)| CellKey {
        eval,
        message,
        judge,
        repeat,
    })
}

fn transcript() -> impl Strategy<Value = TranscriptRef> {
    (text(), digest(), any::<(u64, u64)>()).prop_map(|(id, digest, (offset, len))| TranscriptRef {
        id,
        path: PathBuf::from("t.jsonl"),
        offset,
        len,
        digest,
    })
}

/// Mostly the first few cells, so that events meet; sometimes one that no plan reaches.
fn cell() -> impl Strategy<Value = CellIx> {
    prop_oneof![20 => (0..6_u32).prop_map(CellIx), 1 => any::<u32>().prop_map(CellIx)]
}

fn turn() -> impl Strategy<Value = TurnIx> {
    prop_oneof![40 => (0..4_u16).prop_map(TurnIx), 1 => Just(TurnIx(u16::MAX))]
}

fn call() -> impl Strategy<Value = CallIx> {
    prop_oneof![40 => (0..4_u16).prop_map(CallIx), 1 => Just(CallIx(u16::MAX))]
}

fn dropped() -> impl Strategy<Value = Vec<Dropped>> {
    vec(
        (text(), text()).prop_map(|(what, why)| Dropped { what, why }),
        0..2,
    )
}

/// A header with two rubrics and three evals and judges.
pub(crate) fn header() -> impl Strategy<Value = RunHeader> {
    let parent =
        (run_id(), option::of(cell()), option::of(turn())).prop_map(|(run, cell, turn)| Parent {
            run,
            cell,
            turn,
            cause: ParentCause::Fork,
        });
    let judge = (text(), digest(), dropped(), vec((text(), digest()), 0..2)).prop_map(
        |(name, digest, dropped, tools)| JudgeSpec {
            config: JudgeConfig::new(name, ProviderKind::Openai),
            digest,
            dropped,
            tools,
        },
    );
    let rubric = (text(), option::of(number())).prop_map(|(id, threshold)| RubricSpec {
        id,
        path: PathBuf::from("r.yaml"),
        threshold,
    });
    let eval = (
        0..2_u32,
        text(),
        digest(),
        number(),
        any::<(bool, bool, bool, u32)>(),
    )
        .prop_map(
            |(rubric, id, digest, weight, (required, weighted, judged, repeat))| EvalSpec {
                rubric,
                id,
                kind: "contains".to_owned(),
                digest,
                decides: IndexMap::from([("min_score".to_owned(), weight.into())]),
                weight,
                required,
                weighted,
                repeat,
                judged,
            },
        );
    let snapshot = blob().prop_map(|blob| Snapshot {
        path: PathBuf::from("dicta.yaml"),
        blob,
    });
    (
        (run_id(), text(), any::<bool>(), option::of(parent)),
        vec(snapshot, 0..2),
        vec(judge, 3),
        vec(rubric, 2),
        vec(eval, 3),
        any::<u16>(),
    )
        .prop_map(
            |((run, label, demo, parent), snapshots, judges, rubrics, evals, minor)| RunHeader {
                format: Format {
                    major: FORMAT.major,
                    minor,
                },
                dicta: "0.1.0".to_owned(),
                frozen: parent.as_ref().map(|p| p.run.clone()),
                run,
                started: WallTime("2026-11-21T02:20:27.000+00:00".to_owned()),
                workspace: PathBuf::from("/w"),
                demo,
                label,
                parent,
                snapshots,
                judges,
                rubrics,
                evals,
                plan: IndexMap::from([("seed".to_owned(), 7.into())]),
            },
        )
}

fn part() -> impl Strategy<Value = DeltaPart> {
    prop_oneof![
        Just(DeltaPart::Text),
        Just(DeltaPart::Thought),
        call().prop_map(DeltaPart::Args)
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let call = (text(), text(), text()).prop_map(|(id, name, raw)| ReplyCall { id, name, raw });
    let stop = prop_oneof![
        Just(StopReason::Stop),
        Just(StopReason::ToolCalls),
        Just(StopReason::Length),
        text().prop_map(StopReason::Refused),
        text().prop_map(StopReason::Other),
    ];
    (text(), text(), vec(call, 0..3), stop).prop_map(|(text, thought, calls, stop)| Reply {
        text,
        thought,
        calls,
        stop,
    })
}

fn turn_fact() -> impl Strategy<Value = TurnFact> {
    let attempt = || 0..4_u8;
    prop_oneof![
        (vec(piece(), 0..3), dropped())
            .prop_map(|(request, dropped)| TurnFact::Started { request, dropped }),
        attempt().prop_map(|attempt| TurnFact::AttemptStarted { attempt }),
        (attempt(), part(), text()).prop_map(|(attempt, part, text)| TurnFact::Delta {
            attempt,
            part,
            text
        }),
        (
            attempt(),
            option::of(any::<u16>()),
            text(),
            option::of(any::<u64>()),
            option::of(usage())
        )
            .prop_map(
                |(attempt, status, why, retry_in, billed)| TurnFact::AttemptFailed {
                    attempt,
                    status,
                    why,
                    retry_in: retry_in.map(Millis),
                    billed,
                }
            ),
        (
            attempt(),
            vec(piece(), 0..3),
            any::<bool>(),
            reply(),
            usage()
        )
            .prop_map(
                |(attempt, native, resendable, reply, usage)| TurnFact::Finished {
                    attempt,
                    native,
                    resendable,
                    reply,
                    usage,
                }
            ),
        verdict().prop_map(|verdict| TurnFact::VerdictReached(Box::new(verdict))),
        (text(), piece()).prop_map(|(why, raw)| TurnFact::VerdictUnparsed { why, raw }),
    ]
}

fn tool_fact() -> impl Strategy<Value = ToolFact> {
    let hop = (
        text(),
        option::of(any::<[u8; 4]>()),
        option::of(any::<u16>()),
        option::of(text()),
    )
        .prop_map(|(url, address, status, refused)| Hop {
            url,
            address: address.map(Into::into),
            status,
            refused,
        });
    let answer = (
        piece(),
        any::<(bool, u64, bool)>(),
        option::of(blob()),
        option::of(text()),
    )
        .prop_map(
            |(text, (is_error, bytes, truncated), raw, content_type)| Answered {
                text,
                is_error,
                bytes,
                truncated,
                raw,
                content_type,
            },
        );
    let source = prop_oneof![
        Just(Source::Live),
        run_id().prop_map(|run| Source::Frozen { run }),
        (turn(), call()).prop_map(|(turn, call)| Source::SameTrace { turn, call }),
        Just(Source::ByHand),
    ];
    prop_oneof![
        (text(), text(), text()).prop_map(|(id, name, raw)| ToolFact::Received { id, name, raw }),
        (raw(), changes())
            .prop_map(|(canonical, changes)| ToolFact::Repaired { canonical, changes }),
        raw().prop_map(|values| ToolFact::Validated { values }),
        (text(), text()).prop_map(|(rule, text)| ToolFact::Rejected { rule, text }),
        Just(ToolFact::Started),
        hop.prop_map(ToolFact::Hop),
        (answer, source, any::<u64>()).prop_map(|(answer, source, ms)| ToolFact::Finished {
            answer,
            source,
            elapsed: Millis(ms),
        }),
    ]
}

fn totals() -> impl Strategy<Value = Totals> {
    (
        any::<(u64, u64)>(),
        vec((outcome(), any::<u64>()), 0..3),
        usage(),
        option::of(number()),
        any::<bool>(),
    )
        .prop_map(
            |((cells, pending), outcomes, usage, cost_usd, cancelled)| Totals {
                cells,
                pending,
                outcomes: outcomes.into_iter().collect(),
                usage,
                cost_usd,
                duration_ms: Millis(cells),
                cancelled,
            },
        )
}

fn stop_kind() -> impl Strategy<Value = StopKind> {
    prop_oneof![
        Just(StopKind::BeforeTurn),
        Just(StopKind::Call),
        Just(StopKind::Rejected),
        Just(StopKind::Answered),
        Just(StopKind::Verdict),
        Just(StopKind::Ended),
    ]
}

/// Any fact but a header, in any state of mind.
pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    let settled = (cell(), result()).prop_map(|(cell, result)| Settled(cell, result));
    let how = (text(), text(), option::of(piece())).prop_map(|(by, what, edit)| Handled {
        by,
        what,
        edit,
    });
    let unknown = raw().prop_map(|raw| format!(r#"{{"moon_rose":{}}}"#, raw.get()));
    prop_oneof![
        1 => blob().prop_map(Kind::BlobStored),
        3 => (transcript(), cell(), vec(key(), 0..4))
            .prop_map(|(transcript, first, keys)| Kind::CellsPlanned { transcript, first, keys }),
        2 => vec(settled, 0..3).prop_map(Kind::CellsSettled),
        2 => (cell(), option::of(digest())).prop_map(|(cell, key)| Kind::CellStarted { cell, key }),
        2 => (cell(), result()).prop_map(|(cell, result)| Kind::CellFinished { cell, result: Box::new(result) }),
        6 => (cell(), turn(), turn_fact()).prop_map(|(cell, turn, fact)| Kind::Turn { cell, turn, fact }),
        6 => (cell(), turn(), call(), tool_fact())
            .prop_map(|(cell, turn, call, fact)| Kind::Tool { cell, turn, call, fact }),
        1 => (cell(), stop_kind()).prop_map(|(cell, at)| Kind::Paused { cell, at }),
        1 => (cell(), how).prop_map(|(cell, how)| Kind::Resumed { cell, how }),
        1 => (text(), any::<bool>()).prop_map(|(limit, hard)| Kind::BudgetReached { limit, hard }),
        1 => (option::of(cell()), text()).prop_map(|(cell, text)| Kind::Note { cell, text }),
        1 => totals().prop_map(|totals| Kind::RunFinished(Box::new(totals))),
        1 => unknown.prop_map(|json| Kind::Unknown(RawJson::parse(&json).expect("valid JSON"))),
    ]
}

/// Any events, numbers and times out of all order.
fn garbage() -> impl Strategy<Value = Vec<RunEvent>> {
    let any_kind = prop_oneof![
        1 => header().prop_map(|header| Kind::RunStarted(Box::new(header))),
        15 => kind(),
    ];
    let event = (any::<(u64, u64)>(), any_kind).prop_map(|((seq, at), kind)| RunEvent {
        seq,
        at: Millis(at),
        kind,
    });
    vec(event, 0..40)
}

/// What one attempt streams: text, thoughts, and the arguments of its calls, in chunks.
#[derive(Debug, Clone)]
struct Spoken {
    text: Vec<String>,
    thought: Vec<String>,
    args: Vec<Vec<String>>,
}

fn spoken() -> impl Strategy<Value = Spoken> {
    let chunks = || vec("[a-z\u{e4}\"\n]{1,5}", 0..4);
    (chunks(), chunks(), vec(chunks(), 0..3)).prop_map(|(text, thought, args)| Spoken {
        text,
        thought,
        args,
    })
}

/// The turns of a trace: the attempts that fail, and the one that does not.
type Trace = Vec<(Vec<Spoken>, Spoken)>;

/// A consistent run of judged cells, their traces interleaved as concurrency would.
pub(crate) fn run() -> impl Strategy<Value = Vec<Kind>> {
    let trace = || vec((vec(spoken(), 0..3), spoken()), 0..3);
    (transcript(), vec(trace(), 1..4), vec(any::<u8>(), 200)).prop_map(
        |(transcript, traces, picks)| {
            let key = |repeat| CellKey {
                eval: 0,
                message: None,
                judge: Some(0),
                repeat: Some(repeat),
            };
            let count = u32::try_from(traces.len()).unwrap_or(0);
            let mut all = vec![Kind::CellsPlanned {
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
            all.push(Kind::RunFinished(Box::default()));
            all
        },
    )
}

fn cell_facts(cell: CellIx, trace: &Trace) -> Vec<Kind> {
    let mut all = vec![Kind::CellStarted { cell, key: None }];
    for (turn, (failed, spoken)) in (0..).map(TurnIx).zip(trace) {
        let mut say = |fact| all.push(Kind::Turn { cell, turn, fact });
        say(TurnFact::Started {
            request: vec![Piece::Text("{}".to_owned())],
            dropped: Vec::new(),
        });
        let attempts = failed.iter().chain([spoken]);
        for (attempt, said) in (1_u8..).zip(attempts) {
            say(TurnFact::AttemptStarted { attempt });
            for (part, text) in deltas(said) {
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
                });
            } else {
                say(TurnFact::Finished {
                    attempt,
                    native: Vec::new(),
                    resendable: true,
                    reply: reply_of(said),
                    usage: Usage::default(),
                });
            }
        }
    }
    all.push(Kind::CellFinished {
        cell,
        result: Box::new(CellResult::new(Outcome::Pass, "")),
    });
    all
}

/// The parts take turns, chunk by chunk.
fn deltas(said: &Spoken) -> Vec<(DeltaPart, String)> {
    let args = (0..).map(|n| DeltaPart::Args(CallIx(n))).zip(&said.args);
    let parts: Vec<_> = [
        (DeltaPart::Thought, &said.thought),
        (DeltaPart::Text, &said.text),
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

fn reply_of(said: &Spoken) -> Reply {
    Reply {
        text: said.text.concat(),
        thought: said.thought.concat(),
        calls: said
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

/// Facts as the recorder would number them.
pub(crate) fn numbered(kinds: impl IntoIterator<Item = Kind>) -> Vec<RunEvent> {
    (0..)
        .zip(kinds)
        .map(|(seq, kind)| RunEvent {
            seq,
            at: Millis(seq * 7),
            kind,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_fact_reads_as_it_was_written(kind in kind()) {
        let json = kind.to_json().expect("facts serialise");
        prop_assert!(!json.contains('\n'), "one record, one line");
        prop_assert_eq!(Kind::from_json(&json).expect("and read"), kind);
    }

    #[test]
    fn a_header_reads_as_it_was_written(header in header()) {
        let kind = Kind::RunStarted(Box::new(header));
        let json = kind.to_json().expect("serialises");
        prop_assert_eq!(Kind::from_json(&json).expect("and reads"), kind);
    }

    #[test]
    fn folding_any_events_in_any_order_never_panics(events in garbage()) {
        let mut state = RunState::default();
        for event in &events {
            state.apply(event);
        }
        for cell in 0..8 {
            let _no_panic = state.name(CellIx(cell));
        }
    }

    #[test]
    fn unknown_kinds_survive_and_are_counted(kinds in proptest::collection::vec(kind(), 0..30)) {
        let unknown = kinds.iter().filter(|k| matches!(k, Kind::Unknown(_))).count() as u64;
        let events = numbered(kinds);
        prop_assert_eq!(RunState::fold(&events).unknown, unknown);
        let lines: Vec<String> = events.iter().map(|e| serde_json::to_string(e).expect("serialises")).collect();
        for (line, event) in lines.iter().zip(&events) {
            let read: RunEvent = serde_json::from_str(line).expect("reads");
            prop_assert_eq!(&read, event);
            prop_assert_eq!(&serde_json::to_string(&read).expect("serialises"), line);
        }
    }

    #[test]
    fn the_deltas_of_a_finished_attempt_concatenate_to_its_reply(kinds in run(), header in header()) {
        let start = Kind::RunStarted(Box::new(header));
        let events = numbered(std::iter::once(start).chain(kinds));
        let state = RunState::fold(&events);
        prop_assert_eq!(state.stray, 0);
        let finished = events.iter().filter(|e| matches!(&e.kind, Kind::Turn { fact: TurnFact::Finished { .. }, .. })).count();
        let mut seen = 0;
        for turn in state.cells.iter().flat_map(|cell| &cell.trace) {
            let Some((attempt, reply)) = &turn.finished else { continue };
            seen += 1;
            let said = &turn.attempts[attempt];
            prop_assert_eq!(&said.text, &reply.text);
            prop_assert_eq!(&said.thought, &reply.thought);
            for (call, made) in (0..).map(CallIx).zip(&reply.calls) {
                prop_assert_eq!(said.args.get(&call).map_or("", String::as_str), &made.raw);
            }
            for (_, failed) in turn.attempts.iter().filter(|(n, _)| *n != attempt) {
                prop_assert!(failed.failed.is_some(), "deltas of other attempts are void");
            }
        }
        prop_assert_eq!(seen, finished, "every finished turn was looked at");
    }

    #[test]
    fn every_prefix_folds_and_the_rest_continues_it(kinds in run()) {
        let events = numbered(kinds);
        let whole = RunState::fold(&events);
        for cut in 0..=events.len() {
            let mut state = RunState::fold(&events[..cut]);
            events[cut..].iter().for_each(|event| state.apply(event));
            prop_assert_eq!(&state, &whole);
        }
    }
}
