//! Strategies for arbitrary facts, also inconsistent ones.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::nouns::{
    blob, call, cell, changes, digest, dropped, header, key, number, outcome, piece, raw, result,
    run_id, text, transcript, turn, usage, verdict,
};
use crate::event::{
    DeltaPart, EventKind, GatePoint, GateRelease, HttpExchange, PendingPart, PendingRequest,
    PendingResponse, ReadingTotals, RecordedToolResponse, RunEvent, RunTotals, SettledCell,
    ThrottleReason, ToolFact, ToolResponseSource, TurnFact,
};
use crate::model::{Cost, Hop, Millis, ModelReply, RawJson, ReplyCall, StopReason};

fn part() -> impl Strategy<Value = DeltaPart> {
    prop_oneof![
        Just(DeltaPart::Text),
        Just(DeltaPart::Thought),
        call().prop_map(DeltaPart::Args)
    ]
}

fn reply() -> impl Strategy<Value = ModelReply> {
    let call = (text(), text(), text()).prop_map(|(id, name, raw)| ReplyCall { id, name, raw });
    let stop = prop_oneof![
        Just(StopReason::Stop),
        Just(StopReason::ToolCalls),
        Just(StopReason::Length),
        text().prop_map(StopReason::Refused),
        text().prop_map(StopReason::Other),
        Just(StopReason::Unknown),
    ];
    (text(), text(), vec(call, 0..3), stop).prop_map(|(text, thought, calls, stop)| ModelReply {
        text,
        thought,
        calls,
        stop,
    })
}

fn exchange() -> impl Strategy<Value = Option<HttpExchange>> {
    let any = (option::of(text()), any::<u64>(), any::<bool>());
    option::of(
        any.prop_map(|(request_id, bytes, cost_unknown)| HttpExchange {
            request_id,
            bytes,
            cost_unknown,
        }),
    )
}

fn held() -> impl Strategy<Value = TurnFact> {
    let by = prop_oneof![
        Just(ThrottleReason::Rate),
        Just(ThrottleReason::Tokens),
        Just(ThrottleReason::Server),
        Just(ThrottleReason::Concurrency),
    ];
    let about = option::of(any::<u64>().prop_map(Millis));
    (by, about).prop_map(|(by, about)| TurnFact::Held { by, about })
}

fn turn_fact() -> impl Strategy<Value = TurnFact> {
    let attempt = || 0..4_u8;
    prop_oneof![
        (vec(piece(), 0..3), dropped())
            .prop_map(|(request, dropped)| TurnFact::Started { request, dropped }),
        held(),
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
            option::of(usage()),
            option::of(text()),
            exchange(),
        )
            .prop_map(
                |(attempt, status, why, retry_in, billed, wait_why, exchange)| {
                    TurnFact::AttemptFailed {
                        attempt,
                        status,
                        why,
                        retry_in: retry_in.map(Millis),
                        billed,
                        wait_why,
                        exchange,
                    }
                }
            ),
        (
            attempt(),
            vec(piece(), 0..3),
            any::<bool>(),
            reply(),
            usage(),
            exchange(),
        )
            .prop_map(|(attempt, native, resendable, reply, usage, exchange)| {
                TurnFact::Finished {
                    attempt,
                    native,
                    resendable,
                    reply,
                    usage,
                    exchange,
                }
            }),
        verdict().prop_map(|verdict| TurnFact::VerdictReached(Box::new(verdict))),
        (text(), piece()).prop_map(|(why, raw)| TurnFact::VerdictUnparsed { why, raw }),
    ]
}

fn tool_response() -> impl Strategy<Value = RecordedToolResponse> {
    (
        piece(),
        any::<(bool, u64, bool, u64)>(),
        option::of(blob()),
        option::of(text()),
        option::of(digest()),
    )
        .prop_map(
            |(text, (is_error, bytes, truncated, hidden), raw, content_type, data_version)| {
                RecordedToolResponse {
                    text,
                    is_error,
                    bytes,
                    truncated,
                    raw,
                    content_type,
                    hidden,
                    data_version,
                }
            },
        )
}

fn pending() -> impl Strategy<Value = PendingPart> {
    let response = (turn(), call(), tool_response()).prop_map(|(turn, call, response)| {
        PendingPart::Response(PendingResponse {
            turn,
            call,
            response,
        })
    });
    let request = (turn(), vec(piece(), 0..3))
        .prop_map(|(turn, request)| PendingPart::Request(PendingRequest { turn, request }));
    prop_oneof![response, request]
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
    let source = prop_oneof![
        Just(ToolResponseSource::Live),
        run_id().prop_map(|run| ToolResponseSource::Frozen { run }),
        (turn(), call()).prop_map(|(turn, call)| ToolResponseSource::SameTrace { turn, call }),
        Just(ToolResponseSource::ByHand),
        Just(ToolResponseSource::Transcript),
    ];
    prop_oneof![
        (text(), text(), text()).prop_map(|(id, name, raw)| ToolFact::Received { id, name, raw }),
        (raw(), changes())
            .prop_map(|(canonical, changes)| ToolFact::Repaired { canonical, changes }),
        (raw(), changes()).prop_map(|(values, coerced)| ToolFact::Validated { values, coerced }),
        (text(), text()).prop_map(|(rule, text)| ToolFact::Rejected { rule, text }),
        Just(ToolFact::Started),
        hop.prop_map(ToolFact::Hop),
        (tool_response(), source, any::<u64>(), option::of(text())).prop_map(
            |(answer, source, ms, retried)| ToolFact::Finished {
                answer,
                source,
                elapsed: Millis(ms),
                retried,
            }
        ),
    ]
}

fn totals() -> impl Strategy<Value = RunTotals> {
    (
        any::<(u64, u64)>(),
        vec((outcome(), any::<u64>()), 0..3),
        usage(),
        option::of(number()),
        any::<bool>(),
    )
        .prop_map(
            |((cells, pending), outcomes, usage, cost_usd, cancelled)| RunTotals {
                cells,
                pending,
                outcomes: outcomes.into_iter().collect(),
                usage,
                cost_usd,
                bill: cost_usd.map(|usd| Cost {
                    usd,
                    unknown: pending,
                }),
                assumed_usd: cost_usd,
                duration_ms: Millis(cells),
                cancelled,
                reading: ReadingTotals {
                    records: cells,
                    not_understood: pending,
                    bad_records: pending,
                    broken_files: cells,
                },
            },
        )
}

fn stop_kind() -> impl Strategy<Value = GatePoint> {
    prop_oneof![
        Just(GatePoint::BeforeTurn),
        Just(GatePoint::Call),
        Just(GatePoint::Rejected),
        Just(GatePoint::Answered),
        Just(GatePoint::Verdict),
        Just(GatePoint::Ended),
    ]
}

/// Returns any fact but a header.
pub(crate) fn kind() -> impl Strategy<Value = EventKind> {
    let settled = (cell(), result()).prop_map(|(cell, result)| SettledCell::new(cell, result));
    let how = (text(), text(), option::of(piece())).prop_map(|(by, what, edit)| GateRelease {
        by,
        what,
        edit,
    });
    let unknown = raw().prop_map(|raw| format!(r#"{{"moon_rose":{}}}"#, raw.get()));
    prop_oneof![
        1 => blob().prop_map(EventKind::BlobStored),
        3 => (transcript(), cell(), vec(key(), 0..4))
            .prop_map(|(transcript, first, keys)| EventKind::CellsPlanned { transcript, first, keys }),
        1 => piece().prop_map(|plan| EventKind::RevisionPlanned { plan }),
        2 => vec(settled, 0..3).prop_map(EventKind::CellsSettled),
        2 => (cell(), option::of(digest())).prop_map(|(cell, key)| EventKind::CellStarted { cell, key }),
        2 => (cell(), result()).prop_map(|(cell, result)| EventKind::CellFinished { cell, result: Arc::new(result) }),
        6 => (cell(), turn(), turn_fact()).prop_map(|(cell, turn, fact)| EventKind::Turn { cell, turn, fact }),
        6 => (cell(), turn(), call(), tool_fact())
            .prop_map(|(cell, turn, call, fact)| EventKind::Tool { cell, turn, call, fact }),
        1 => (cell(), stop_kind(), option::of(pending())).prop_map(|(cell, at, pending)| EventKind::Paused {
            cell,
            at,
            pending: pending.map(Box::new),
        }),
        1 => (cell(), how).prop_map(|(cell, how)| EventKind::Resumed { cell, how }),
        1 => (text(), any::<bool>(), option::of(cell()), option::of(number()))
            .prop_map(|(limit, hard, cell, max)| EventKind::BudgetReached { limit, hard, cell, max, spent: max }),
        1 => (option::of(cell()), text()).prop_map(|(cell, text)| EventKind::Note { cell, text }),
        1 => totals().prop_map(|totals| EventKind::RunFinished(Box::new(totals))),
        1 => unknown.prop_map(|json| EventKind::Unknown(RawJson::parse(&json).expect("valid JSON"))),
    ]
}

/// Returns any events, with arbitrary numbers and times.
pub(super) fn garbage() -> impl Strategy<Value = Vec<RunEvent>> {
    let any_kind = prop_oneof![
        1 => header().prop_map(|header| EventKind::RunStarted(Box::new(header))),
        15 => kind(),
    ];
    let event = (any::<(u64, u64)>(), any_kind).prop_map(|((seq, at), kind)| RunEvent {
        seq,
        at: Millis(at),
        kind,
    });
    vec(event, 0..40)
}
