//! Server-sent events: the streams of `eventsource-parser`'s tests, at every split of their bytes.

use dicta::untrusted::split_frames;
use serde_json::Value;

use crate::{Campaign, Measured, corpora};

/// The stream that dicta reads otherwise on purpose: a line that is not a field ends the event before it, because
/// Gemini writes its errors so.
const UNKNOWN_LINES: &str = "stream with unknown fields in the stream";

/// A7: each stream has the events that `eventsource-parser` reads, wherever its bytes are split.
pub(crate) fn judge_events(campaign: &Campaign) -> Measured {
    let files = corpora::unpack(campaign, "sse.zip");
    let cases: Vec<Value> = serde_json::from_slice(&files["sse.json"]).expect("a list");
    let (mut splits, mut wrong) = (0_usize, Vec::new());
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        let stream = case["stream"].as_str().expect("a stream").as_bytes();
        let expected: Vec<String> = case["events"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|event| {
                let [name, data] = [0, 1].map(|at| event[at].as_str().expect("a text"));
                format!("Event {{ name: {name:?}, data: {data:?}, complete: true }}")
            })
            .collect();
        let Ok(whole) = split_frames(&[stream]) else {
            wrong.push(format!("{name} is refused"));
            continue;
        };
        // Lines outside of the standard, and an event that the end cuts, are frames of their own.
        let events = whole.iter();
        let events = events
            .filter(|frame| frame.starts_with("Event") && frame.ends_with("complete: true }"));
        if !events.eq(expected.iter()) && name != UNKNOWN_LINES {
            wrong.push(format!("{name}: {whole:?}, not {expected:?}"));
        }
        // The time of a stream grows with the square of its length.
        let step = campaign.count(1 + stream.len() / 200, 1);
        for at in (0..=stream.len()).step_by(step) {
            splits += 1;
            let (one, two) = stream.split_at(at);
            if !split_frames(&[one, &[], two]).is_ok_and(|frames| frames == whole) {
                wrong.push(format!("{name}, split at {at}"));
            }
        }
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        if !split_frames(&single).is_ok_and(|frames| frames == whole) {
            wrong.push(format!("{name}, byte by byte"));
        }
    }
    let figure = format!(
        "{} streams, {splits} splits: {} read differently; in one more, an unknown line ends its event on purpose",
        cases.len() - 1,
        wrong.len()
    );
    if wrong.is_empty() {
        Measured::Reached(figure)
    } else {
        wrong.truncate(5);
        Measured::Missed(format!("{figure}; {}", wrong.join("; ")))
    }
}
