//! Halves of surrogate pairs in JSON. Servers write one if they cut a text between the two, as in `"\ud83d"`.
//!
//! Vendors' SDKs accept such a half, and `serde_json` doesn't. So dicta joins a half with the other one at the beginning
//! of the next event's text, and replaces a half that stays alone by `U+FFFD`. This works on the JSON text, before any
//! dialect reads it, and changes no other byte.

use std::borrow::Cow;

use super::sse::SseFrame;
use crate::model::surrogates::{
    LoneHalf, REPLACEMENT, find_lone_halves, replace_each, replace_lone_halves,
};

/// The most frames that are held back until the other half arrives.
const MAX_HELD: usize = 16;

/// Joins the halves of pairs that are split between two events of a stream.
#[derive(Debug, Default)]
pub(super) struct SurrogateJoiner {
    /// An event whose text ends in a first half, and the events without text after it.
    held: Vec<SseFrame>,
}

impl SurrogateJoiner {
    /// Joins the halves in frames. Holds back an event that ends in a first half until the next event.
    pub(super) fn join(&mut self, frames: &mut Vec<SseFrame>) {
        for mut frame in std::mem::take(frames) {
            if !self.held.is_empty() {
                // Anthropic's pings can be between any two events.
                if is_ping(&frame) && self.held.len() < MAX_HELD {
                    self.held.push(frame);
                    continue;
                }
                if let Some(first) = self.held.first_mut() {
                    join_texts(text_mut(first), text_mut(&mut frame));
                }
                frames.append(&mut self.held);
            }
            let waits = matches!(frame, SseFrame::Event { complete: true, .. })
                && find_lone_halves(text_mut(&mut frame))
                    .iter()
                    .any(|half| half.is_first && half.is_joinable);
            if waits {
                self.held.push(frame);
            } else {
                replace_in_frame(&mut frame);
                frames.push(frame);
            }
        }
    }

    /// Releases the held events at the end of the stream.
    pub(super) fn finish(&mut self, frames: &mut Vec<SseFrame>) {
        let mut held = std::mem::take(&mut self.held);
        held.iter_mut().for_each(replace_in_frame);
        held.append(frames);
        *frames = held;
    }
}

fn is_ping(frame: &SseFrame) -> bool {
    matches!(frame, SseFrame::Event { name, data, .. } if name == "ping" || data.trim().is_empty())
}

fn text_mut(frame: &mut SseFrame) -> &mut String {
    match frame {
        SseFrame::Event { data: text, .. } | SseFrame::Stray { text, .. } => text,
    }
}

fn replace_in_frame(frame: &mut SseFrame) {
    let text = text_mut(frame);
    if let Cow::Owned(replaced) = replace_lone_halves(text) {
        *text = replaced;
    }
}

/// Moves each first half at the end of a string of `earlier` before its second half in `later`.
///
/// The strings' keys must be equal, because an event can contain several strings. Other halves of `earlier` are
/// replaced, and those of `later` stay.
fn join_texts(earlier: &mut String, later: &mut String) {
    let mut firsts: Vec<(LoneHalf<'_>, bool)> = find_lone_halves(earlier)
        .into_iter()
        .map(|half| (half, false))
        .collect();
    let mut seconds = Vec::new();
    let joinable = find_lone_halves(later)
        .into_iter()
        .filter(|half| !half.is_first && half.is_joinable);
    for second in joinable {
        let other = firsts.iter_mut().find(|(first, is_joined)| {
            first.is_first && first.is_joinable && !is_joined && first.key == second.key
        });
        if let Some((first, is_joined)) = other {
            *is_joined = true;
            seconds.push((second, format!("{}{}", first.escape, second.escape)));
        }
    }
    let joined_later = replace_each(
        later,
        &seconds.iter().map(|(half, _)| *half).collect::<Vec<_>>(),
        |nth| seconds[nth].1.clone(),
    );
    let joined_earlier = replace_each(
        earlier,
        &firsts.iter().map(|(half, _)| *half).collect::<Vec<_>>(),
        |nth| {
            if firsts[nth].1 {
                String::new()
            } else {
                REPLACEMENT.to_owned()
            }
        },
    );
    (*earlier, *later) = (joined_earlier, joined_later);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn event(data: &str) -> SseFrame {
        SseFrame::Event {
            name: String::new(),
            data: data.to_owned(),
            complete: true,
        }
    }

    fn join_all(events: &[&str]) -> Vec<String> {
        let mut joiner = SurrogateJoiner::default();
        let mut out = Vec::new();
        for data in events {
            let mut frames = vec![event(data)];
            joiner.join(&mut frames);
            out.append(&mut frames);
        }
        let mut rest = Vec::new();
        joiner.finish(&mut rest);
        out.append(&mut rest);
        out.iter_mut()
            .map(|frame| text_mut(frame).clone())
            .collect()
    }

    #[test]
    fn halves_in_consecutive_events_are_joined() {
        let (first, second) = (r#"{"i":0,"text":"a\ud83d"}"#, r#"{"i":0,"text":"\ude80b"}"#);
        let joined = [r#"{"i":0,"text":"a"}"#, r#"{"i":0,"text":"\ud83d\ude80b"}"#];
        assert_eq!(join_all(&[first, second]), joined);
        assert_eq!(
            join_all(&[first, "", second]),
            [joined[0], "", joined[1]],
            "an empty event keeps the connection alive"
        );
        let lone = r#"{"i":0,"text":"a\ufffd"}"#;
        assert_eq!(join_all(&[first]), [lone]);
        assert_eq!(join_all(&[first, "[DONE]"]), [lone, "[DONE]"]);
        assert_eq!(
            join_all(&[first, r#"{"thought":"\ude80"}"#]),
            [lone, r#"{"thought":"\ufffd"}"#],
            "a text and a thought are not one text"
        );
        // Perplexity repeats the whole text so far in each chunk.
        let cumulative = [
            r#"{"message":{"content":"a\ud83d"},"delta":{"content":"a\ud83d"}}"#,
            r#"{"message":{"content":"a\ud83d\ude80"},"delta":{"content":"\ude80\ud83d"}}"#,
            r#"{"delta":{"content":"\ude80"}}"#,
        ];
        let texts: Vec<String> = join_all(&cumulative)
            .iter()
            .map(|data| {
                let value: Value = serde_json::from_str(data).expect("valid JSON");
                value["delta"]["content"]
                    .as_str()
                    .expect("a text")
                    .to_owned()
            })
            .collect();
        assert_eq!(texts.concat().replace('\u{fffd}', ""), "a🚀🚀");
    }

    proptest! {
        /// Any text survives being cut between any two UTF-16 units.
        #[test]
        fn text_cut_between_its_units_is_unchanged(text in "[a\"\\\\é🚀😀]{0,12}", size in 1_usize..4) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let events: Vec<String> = units
                .chunks(size)
                .map(|units| {
                    let escaped: String = units.iter().fold(String::new(), |text, unit| text + &format!("\\u{unit:04x}"));
                    format!("{{\"text\":\"{escaped}\"}}")
                })
                .collect();
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let joined = join_all(&events);
            prop_assert_eq!(joined.len(), events.len());
            let mut all = String::new();
            for data in joined {
                let value: Value = serde_json::from_str(&data).expect("valid JSON");
                all.push_str(value["text"].as_str().expect("a text"));
            }
            prop_assert_eq!(all, text);
        }
    }
}
