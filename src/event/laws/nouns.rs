//! Strategies for the values in events, and for headers.

use std::path::PathBuf;

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::event::{
    CellKey, DroppedSetting, EvalSpec, FORMAT, JudgeSpec, LogFormat, ParentCause, ParentRun,
    RubricSpec, RunHeader, RunPurpose, SnapshotFile, StoredText,
};
use crate::model::{
    ArgumentChange, Blob, CalibratedScore, CallIx, Cause, CauseSet, CellIx, CellResult, Citation,
    Cost, Digest, JudgeConfig, Millis, Outcome, Panel, PanelRule, ProviderKind, RawJson, RunId,
    TokenUsage, TranscriptRef, TurnIx, ValueProbability, Verdict, VerdictPart, WallTime,
};

/// Returns text as models and pages contain it: line breaks, quotes, control characters.
pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z \n\"\\\\]{0,12}", 1 => any::<String>()]
}

pub(super) fn digest() -> impl Strategy<Value = Digest> {
    any::<u8>().prop_map(|n| Digest::hash_bytes(&[n]))
}

pub(super) fn blob() -> impl Strategy<Value = Blob> {
    (digest(), any::<u64>()).prop_map(|(hash, bytes)| Blob { hash, bytes })
}

pub(super) fn piece() -> impl Strategy<Value = StoredText> {
    prop_oneof![
        text().prop_map(StoredText::Text),
        blob().prop_map(StoredText::Blob)
    ]
}

pub(super) fn run_id() -> impl Strategy<Value = RunId> {
    "[a-z]{4}".prop_map(|letters| RunId(format!("20260101T000000Z-{letters}")))
}

/// Returns a finite number, because JSON has no others.
pub(super) fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |n| n.is_finite())
}

/// Returns raw JSON with numbers that no float represents.
pub(super) fn raw() -> impl Strategy<Value = RawJson> {
    prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"n":123456789012345678901234567890,"x":1.50}"#.to_owned()),
        text().prop_map(|t| serde_json::json!({ "t": t }).to_string()),
    ]
    .prop_map(|json| RawJson::parse(&json).expect("valid JSON"))
}

pub(super) fn usage() -> impl Strategy<Value = TokenUsage> {
    let tokens = || option::of(any::<u64>());
    (tokens(), tokens(), tokens(), tokens(), any::<u32>()).prop_map(
        |(input, output, cached, thinking, calls)| TokenUsage {
            input,
            output,
            cached,
            thinking,
            calls,
        },
    )
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    (0..Outcome::ALL.len()).prop_map(|n| Outcome::ALL[n])
}

pub(super) fn changes() -> impl Strategy<Value = Vec<ArgumentChange>> {
    vec(
        (text(), text()).prop_map(|(path, what)| ArgumentChange { path, what }),
        0..2,
    )
}

pub(super) fn verdict() -> impl Strategy<Value = Verdict> {
    let citation = (text(), text(), any::<bool>()).prop_map(|(source, quote, found)| Citation {
        source,
        quote,
        found,
    });
    let part = (text(), text(), any::<bool>(), option::of(any::<u32>())).prop_map(
        |(text, reasoning, met, count)| VerdictPart {
            text,
            reasoning,
            met,
            count,
            probability: count.map(|n| f64::from(n % 101) / 100.0),
        },
    );
    (
        option::of(any::<bool>()),
        option::of(number()),
        text(),
        (vec(citation, 0..2), vec(part, 0..2)),
        (changes(), vec(text(), 0..2)),
        option::of(text()),
    )
        .prop_map(
            |(passed, score, reasoning, (citations, parts), (repaired, hidden), contradiction)| {
                Verdict {
                    passed,
                    score,
                    raw_score: score,
                    applicable: passed,
                    reasoning,
                    citations,
                    parts,
                    calibrated: score.map(|probability| CalibratedScore {
                        by: "openai-decisions".to_owned(),
                        probability: Some(probability),
                        values: vec![ValueProbability {
                            value: "met".to_owned(),
                            probability,
                        }],
                        confidence: passed.map(|_| probability),
                    }),
                    repaired,
                    hidden,
                    contradiction,
                }
            },
        )
}

pub(super) fn result() -> impl Strategy<Value = CellResult> {
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
                    bill: score.map(|usd| Cost { usd, unknown: ms }),
                    duration_ms: Millis(ms),
                    cached,
                    first_cost_usd: score,
                    first_duration_ms: None,
                    first_usage: usage,
                    tool_causes: if by_human {
                        vec![Cause::Refused.as_str().to_owned()].into()
                    } else {
                        CauseSet::EMPTY
                    },
                    by_human,
                }
            },
        )
}

pub(super) fn key() -> impl Strategy<Value = CellKey> {
    let small = || option::of(0..3_u32);
    (0..3_u32, small(), small(), small()).prop_map(|(eval, message, judge, repeat)| CellKey {
        eval,
        message,
        judge,
        repeat,
    })
}

pub(super) fn transcript() -> impl Strategy<Value = TranscriptRef> {
    (text(), digest(), any::<(u64, u64)>()).prop_map(|(id, digest, (offset, len))| TranscriptRef {
        part: 0,
        id,
        path: PathBuf::from("t.jsonl"),
        offset,
        len,
        digest,
    })
}

/// Returns mostly one of the first few cells, so that events concern the same cells; sometimes a cell without a plan.
pub(super) fn cell() -> impl Strategy<Value = CellIx> {
    prop_oneof![20 => (0..6_u32).prop_map(CellIx), 1 => any::<u32>().prop_map(CellIx)]
}

pub(super) fn turn() -> impl Strategy<Value = TurnIx> {
    prop_oneof![40 => (0..4_u16).prop_map(TurnIx), 1 => Just(TurnIx(u16::MAX))]
}

pub(super) fn call() -> impl Strategy<Value = CallIx> {
    prop_oneof![40 => (0..4_u16).prop_map(CallIx), 1 => Just(CallIx(u16::MAX))]
}

pub(super) fn dropped() -> impl Strategy<Value = Vec<DroppedSetting>> {
    vec(
        (text(), text()).prop_map(|(what, why)| DroppedSetting { what, why }),
        0..2,
    )
}

/// Returns a header with two rubrics, three evals and three judges.
pub(crate) fn header() -> impl Strategy<Value = RunHeader> {
    let parent =
        (run_id(), option::of(cell()), option::of(turn())).prop_map(|(run, cell, turn)| {
            ParentRun {
                run,
                cell,
                turn,
                cause: ParentCause::Fork,
            }
        });
    let judge = (text(), digest(), dropped(), vec((text(), digest()), 0..2)).prop_map(
        |(name, digest, dropped, tools)| JudgeSpec {
            dropped,
            tools,
            ..JudgeSpec::new(JudgeConfig::new(name, ProviderKind::Openai), digest)
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
                decision_settings: IndexMap::from([("min_score".to_owned(), weight.into())]),
                weight,
                required,
                weighted,
                repeat,
                panel: judged.then(|| Panel {
                    rule: if required {
                        PanelRule::Unanimity
                    } else {
                        PanelRule::Cascade { margin: weight }
                    },
                    judges: vec![1, 0],
                }),
                judged,
                ..EvalSpec::new(rubric, id, "contains", digest)
            },
        );
    let snapshot = blob().prop_map(|blob| SnapshotFile {
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
                format: LogFormat {
                    major: FORMAT.major,
                    minor,
                },
                frozen: parent.as_ref().map(|p| p.run.clone()),
                demo,
                label,
                parent,
                snapshots,
                judges,
                rubrics,
                evals,
                plan: IndexMap::from([("seed".to_owned(), 7.into())]),
                purpose: if demo {
                    RunPurpose::SecondOpinion
                } else {
                    RunPurpose::Judging
                },
                ..RunHeader::new(
                    run,
                    WallTime("2026-11-21T02:20:27.000+00:00".to_owned()),
                    PathBuf::from("/w"),
                )
            },
        )
}
