use proptest::prelude::*;

use super::super::*;
use crate::event::DeltaPart;
use crate::model::{ReplyCall, StopReason, TokenUsage};
use crate::provider::client::NewDeltas;
use crate::provider::testing::{assert_deltas_make, cut_everywhere, read};
use crate::provider::{CompletedReply, ProviderError};

fn reader() -> Box<dyn ReplyReader> {
    limited(None)
}

fn limited(limit: Option<u64>) -> Box<dyn ReplyReader> {
    Box::new(stream::ResponsesReplyReader::new(TurnIx(2), limit))
}

fn event(data: &str) -> String {
    // The name in front says nothing true.
    format!("event: response.nonsense\ndata: {data}\n\n")
}

fn stream(events: &[&str]) -> String {
    events.iter().map(|data| event(data)).collect()
}

fn finished(stream: &str) -> CompletedReply {
    let (finished, new) = read(reader(), &[stream.as_bytes()]).expect("a reply");
    assert_deltas_make(&finished.reply, &new);
    finished
}

fn failed(stream: &str) -> ProviderError {
    read(reader(), &[stream.as_bytes()]).expect_err("no reply")
}

fn call(id: &str, raw: &str) -> ReplyCall {
    ReplyCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        raw: raw.to_owned(),
    }
}

const REASONING: &str = r#"{ "id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm é"}],"encrypted_content":"gAAA/+==" }"#;
const TEXT: &str = r#"{"id":"m_9","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me 😀 look."}]}"#;
const FIRST: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"u\":\"\\u00e9\"}","call_id":"c1","name":"f"}"#;
const SECOND: &str = r#"{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"c2","name":"f"}"#;
const END: &str = r#"{"type":"response.completed","response":{"status":"completed","error":null,"incomplete_details":null,"output":[],"usage":{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}}}"#;

fn done(index: usize, item: &str) -> String {
    format!(
        r#"{{"type":"response.output_item.done","sequence_number":9,"output_index":{index},"item":{item}}}"#
    )
}

/// As OpenAI sends it, the message's id another in every event.
fn openai() -> String {
    stream(&[
        r#"{"type":"response.created","response":{"status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"delta":"hm "}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"delta":"é"}"#,
        &done(0, REASONING),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m_1","type":"message","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"m_2","output_index":1,"delta":"Let me 😀"}"#,
        r#"{"type":"response.output_text.delta","item_id":"m_3","output_index":1,"delta":" look."}"#,
        r#"{"type":"response.output_text.done","item_id":"m_4","output_index":1,"text":"Let me 😀 look."}"#,
        &done(1, TEXT),
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"u\":\"\\u00"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"e9\"}"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"u\":\"\\u00e9\"}"}"#,
        &done(2, FIRST),
        r#"{"type":"steer.unheard_of","output_index":0,"delta":"x"}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"c2","name":"f","arguments":""}}"#,
        &done(3, SECOND),
        END,
    ])
}

/// As llama.cpp sends it: no index, no end of arguments, all items begin before any ends.
fn llama() -> String {
    let done = |item: &str| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#);
    stream(&[
        r#"{"type":"response.output_item.added","item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"hm é"}"#,
        r#"{"type":"response.output_item.added","item":{"id":"m_9","type":"message","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"m_9","delta":"Let me 😀 look."}"#,
        r#"{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{\"u\":\"\\u00e9\"}"}"#,
        r#"{"type":"response.output_item.added","item":{"id":"fc_2","type":"function_call","call_id":"c2","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","delta":"{}"}"#,
        &done(REASONING),
        &done(TEXT),
        &done(FIRST),
        &done(SECOND),
        END,
    ])
}

#[test]
fn stream_becomes_a_reply_and_the_items_to_send_back() {
    for stream in [openai(), llama()] {
        let finished = finished(&stream);
        let reply = &finished.reply;
        assert_eq!(reply.text, "Let me 😀 look.");
        assert_eq!(reply.thought, "hm é");
        assert_eq!(
            reply.calls,
            [call("c1", r#"{"u":"\u00e9"}"#), call("c2", "{}")]
        );
        assert_eq!(reply.stop, StopReason::ToolCalls);
        let native: Vec<&str> = finished.native.iter().map(|item| item.get()).collect();
        assert_eq!(native, [REASONING, TEXT, FIRST, SECOND]);
        let usage = TokenUsage {
            input: Some(9),
            output: Some(4),
            cached: Some(3),
            thinking: Some(2),
            calls: 1,
        };
        assert_eq!(finished.usage, usage);
    }
}

#[test]
fn reply_without_stream_equals_the_streamed_reply() {
    let body = format!(
        r#"{{"object":"response","status":"completed","error":null,"output":[{REASONING}, {TEXT},{FIRST},{SECOND}],"usage":{{"input_tokens":9,"output_tokens":4}}}}"#
    );
    let mut whole_reply = reader();
    let mut new = NewDeltas::new();
    whole_reply
        .read_document(&body, &mut new)
        .expect("a response");
    let whole_reply = whole_reply.finish().expect("complete");
    assert_deltas_make(&whole_reply.reply, &new);
    let streamed = finished(&openai());
    assert_eq!(whole_reply.reply, streamed.reply);
    let texts = |finished: &CompletedReply| -> Vec<String> {
        let items = finished.native.iter();
        items.map(|item| item.get().to_owned()).collect()
    };
    assert_eq!(texts(&whole_reply), texts(&streamed));
    // A server may ignore that a stream was asked for.
    assert_eq!(finished(&body).reply, streamed.reply);
    for cut in 1..body.len() {
        assert!(read(reader(), &[&body.as_bytes()[..cut]]).is_err(), "{cut}");
        let Some(part) = body.get(..cut) else {
            continue;
        };
        assert!(
            reader().read_document(part, &mut NewDeltas::new()).is_err(),
            "{cut}"
        );
    }
}

#[test]
fn truncated_stream_is_never_a_reply() {
    for stream in [openai(), llama()] {
        // Only the last event's own line end and blank line may be missing.
        assert!((1..=2).contains(&cut_everywhere(reader, &stream)));
    }
    let without_end = stream(&[&done(0, TEXT), r"[DONE]"]);
    assert!(matches!(failed(&without_end), ProviderError::Cut { .. }));
    assert_eq!(
        finished(&stream(&["[DONE]", &done(0, TEXT), END, "[DONE]"]))
            .reply
            .stop,
        StopReason::Stop
    );
}

proptest! {
    #[test]
    fn reply_is_the_same_for_every_split_of_the_bytes(cuts in prop::collection::vec(0usize..4000, 0..12)) {
        for stream in [openai(), llama()] {
            let mut cuts: Vec<usize> = cuts.iter().map(|at| at % stream.len()).collect();
            cuts.sort_unstable();
            let mut from = 0;
            let mut chunks = Vec::new();
            for to in cuts.into_iter().chain([stream.len()]) {
                chunks.push(&stream.as_bytes()[from..to]);
                from = to;
            }
            let (split, new) = read(reader(), &chunks).expect("a reply");
            assert_deltas_make(&split.reply, &new);
            let whole_reply = finished(&stream);
            prop_assert_eq!(split.reply, whole_reply.reply);
            prop_assert_eq!(split.usage, whole_reply.usage);
        }
    }
}

#[test]
fn commentary_is_shown_and_not_judged() {
    let note = r#"{"id":"m_1","type":"message","phase":"commentary","content":[{"type":"output_text","text":"{\"passed\":true}"}]}"#;
    let answer = r#"{"id":"m_2","type":"message","phase":"final_answer","content":[{"type":"output_text","text":"{\"passed\":false}"}]}"#;
    let stream = stream(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m_1","type":"message","phase":"commentary"}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"{\"passed\":true}"}"#,
        &done(0, note),
        &done(1, answer),
        END,
    ]);
    let finished = finished(&stream);
    assert_eq!(finished.reply.text, r#"{"passed":false}"#);
    assert_eq!(finished.reply.thought, r#"{"passed":true}"#);
    assert_eq!(finished.native.len(), 2, "it goes back all the same");
}

#[test]
fn end_of_a_response_maps_to_its_stop_reason() {
    let ended = |end: &str| finished(&stream(&[&done(0, TEXT), end])).reply.stop;
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{reason}}}}}"#
        )
    };
    assert_eq!(ended(END), StopReason::Stop);
    assert_eq!(
        ended(&incomplete(r#"{"reason":"max_output_tokens"}"#)),
        StopReason::Length
    );
    assert_eq!(ended(&incomplete("null")), StopReason::Length);
    assert_eq!(
        ended(&incomplete(r#"{"reason":"content_filter"}"#)),
        StopReason::Refused("content_filter".to_owned())
    );
    let aimock = r#"{"type":"response.completed","response":{"status":"incomplete"}}"#;
    assert_eq!(ended(aimock), StopReason::Length);
    let item = TEXT.replace("completed", "incomplete");
    let half = finished(&stream(&[&done(0, &item), END]));
    assert_eq!(half.reply.stop, StopReason::Length);
    let steered = incomplete(r#"{"reason":"steered"}"#);
    assert!(matches!(
        failed(&stream(&[&done(0, TEXT), &steered])),
        ProviderError::Cut { .. }
    ));
    // llama.cpp calls it complete; nine tokens were allowed and nine came.
    let (limit, over) = (Some(4), Some(5));
    for (limit, stop) in [(limit, StopReason::Length), (over, StopReason::Stop)] {
        let stream = stream(&[&done(0, TEXT), END]);
        let (finished, _) = read(limited(limit), &[stream.as_bytes()]).expect("a reply");
        assert_eq!(finished.reply.stop, stop);
    }
}

#[test]
fn refusal_is_not_part_of_the_text() {
    let item = r#"{"type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}"#;
    for stream in [
        stream(&[
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"I can"}"#,
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"not."}"#,
            &done(0, item),
            END,
        ]),
        stream(&[&done(0, item), END]),
    ] {
        let reply = finished(&stream).reply;
        assert_eq!(reply.stop, StopReason::Refused("I cannot.".to_owned()));
        assert_eq!(reply.text, "");
    }
}

#[test]
fn error_event_of_a_stream_is_an_error() {
    let flat = r#"{"type":"error","code":"server_error","message":"boom","param":null,"sequence_number":2}"#;
    let nested = r#"{"type":"error","sequence_number":2,"error":{"type":"invalid_request_error","code":null,"message":"boom","param":"x"}}"#;
    let bare = r#"{"error":{"code":500,"message":"boom","type":"server_error"}}"#;
    let over = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}"#;
    let mute = r#"{"type":"response.completed","response":{"status":"failed"}}"#;
    for (data, says, again) in [
        (flat, "server_error: boom", true),
        (nested, "invalid_request_error (param x): boom", false),
        (bare, "server_error: boom", true),
        (over, "server_error: boom", true),
        (mute, "the response failed, without a reason", true),
    ] {
        for before in [vec![], vec![done(0, TEXT)]] {
            let mut events: Vec<&str> = before.iter().map(String::as_str).collect();
            events.extend([data, over]);
            match failed(&stream(&events)) {
                ProviderError::InStream { message, retryable } => {
                    assert_eq!((message.as_str(), retryable), (says, again), "{data}");
                }
                other => panic!("{data}: {other:?}"),
            }
        }
    }
    let mut whole_reply = reader();
    let refused = whole_reply.read_document(r#"{"error":"boom"}"#, &mut NewDeltas::new());
    assert!(matches!(refused, Err(ProviderError::InStream { .. })));
}

#[test]
fn contradictory_events_are_rejected() {
    let delta = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Let them"}"#;
    for bad in [
        stream(&[delta, &done(0, TEXT), END]),
        stream(&[&done(0, TEXT), &done(0, TEXT), END]),
        stream(&["{\"type\":\"response.output_item.done\"}", END]),
        stream(&[r#"{"type":"response.output_item.done","item":4}"#, END]),
        stream(&["4"]),
        stream(&["half {"]),
    ] {
        assert!(matches!(failed(&bad), ProviderError::Malformed(_)), "{bad}");
    }
    // Begun, and never ended.
    let begun = stream(&[delta, END]);
    assert!(matches!(failed(&begun), ProviderError::Cut { .. }));
}

#[test]
fn items_may_occur_only_in_the_last_event() {
    let last = format!(
        r#"{{"type":"response.completed","response":{{"status":"completed","output":[{TEXT},{FIRST}]}}}}"#
    );
    for stream in [
        stream(&[&last]),
        stream(&[
            r#"{"type":"response.output_item.added","item":{"id":"m_9","type":"message"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"m_9","delta":"Let me"}"#,
            r#"{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c1"}}"#,
            &last,
        ]),
    ] {
        let reply = finished(&stream).reply;
        assert_eq!(reply.text, "Let me 😀 look.");
        assert_eq!(reply.calls, [call("c1", r#"{"u":"\u00e9"}"#)]);
    }
}

#[test]
fn ids_may_be_absent_or_repeated() {
    let bare = r#"{"type":"function_call","name":"f","arguments":{"a":1}}"#;
    let stream = stream(&[
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}"#,
        &format!(r#"{{"type":"response.output_item.done","item":{bare}}}"#),
        &format!(r#"{{"type":"response.output_item.done","item":{bare}}}"#),
        END,
    ]);
    let first = finished(&stream);
    assert_eq!(
        first.reply.calls,
        [
            call("call_2_0", r#"{"a":1}"#),
            call("call_2_1", r#"{"a":1}"#)
        ]
    );
    assert_eq!(
        first.native[1].get(),
        r#"{"type":"function_call","name":"f","arguments":{"a":1},"call_id":"call_2_1"}"#
    );
    let whole_reply = format!(r#"{{"status":"completed","output":[{FIRST},{FIRST}]}}"#);
    let (repeated, new) = read(reader(), &[whole_reply.as_bytes()]).expect("a reply");
    assert_eq!(repeated.reply.calls.len(), 2);
    assert!(
        new.iter()
            .any(|delta| matches!(delta.part, DeltaPart::Args(ix) if ix.0 == 1))
    );
}

#[test]
fn each_reasoning_items_summary_is_shown_once() {
    let reasoning = |id: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","type":"reasoning","summary":[{{"type":"summary_text","text":"{text}"}}]}}"#
        )
    };
    let commentary = r#"{"id":"m_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look it up."}]}"#;
    let (first, second) = (reasoning("rs_1", "one"), reasoning("rs_2", "two"));
    let whole_items = stream(&[
        &done(0, &first),
        &done(1, commentary),
        &done(2, &second),
        &done(3, TEXT),
        END,
    ]);
    let thought = finished(&whole_items).reply.thought;
    assert!(
        thought.starts_with("one") && thought.ends_with("\n\ntwo"),
        "{thought}"
    );
    assert!(thought.contains("I look it up."), "{thought}");
    let (mut whole_reply, mut new) = (reader(), NewDeltas::new());
    let body = format!(
        r#"{{"object":"response","status":"completed","output":[{first},{commentary},{second},{TEXT}]}}"#
    );
    whole_reply
        .read_document(&body, &mut new)
        .expect("a response");
    let read = whole_reply.finish().expect("a reply");
    assert_eq!(read.reply.thought, thought);
    // The first summary comes in pieces, the second one whole.
    let mixed = stream(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"delta":"one"}"#,
        &done(0, &first),
        &done(1, &second),
        &done(2, TEXT),
        END,
    ]);
    assert_eq!(finished(&mixed).reply.thought, "one\n\ntwo");
}

#[test]
fn events_of_another_protocol_have_their_own_error() {
    let foreign = failed("data: {\"method\": \"POST\"}\n\n");
    assert!(
        matches!(foreign, ProviderError::WrongProtocol(_)),
        "{foreign}"
    );
}
