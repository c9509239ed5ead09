//! Halves of surrogate pairs in JSON. Servers write one if they cut a text between the two, as in `"\ud83d"`.
//!
//! Vendors' SDKs accept such a half, and `serde_json` doesn't. So dicta joins a half with the other one at the beginning
//! of the next event's text, and replaces a half that stays alone by `U+FFFD`. This works on the JSON text, before any
//! dialect reads it, and changes no other byte.

use std::borrow::Cow;

use super::sse::SseFrame;

/// The most frames that are held back until the other half arrives.
const MAX_HELD: usize = 16;
/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;
const REPLACEMENT: &str = "\\ufffd";

/// Half of a surrogate pair without the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoneHalf<'j> {
    /// The position of its backslash.
    at: usize,
    /// The escape: `\ud83d`.
    escape: &'j str,
    /// The key of the string.
    key: &'j str,
    /// `true` for the first half of a pair.
    is_first: bool,
    /// `true` for a first half at the end of its string, and a second half at its beginning.
    is_joinable: bool,
}

/// Returns a JSON text with U+FFFD in place of each lone half.
pub fn replace_lone_halves(json: &str) -> Cow<'_, str> {
    let halves = find_lone_halves(json);
    if halves.is_empty() {
        return json.into();
    }
    replace_each(json, &halves, |_| REPLACEMENT.to_owned()).into()
}

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

fn replace_each(
    json: &str,
    halves: &[LoneHalf<'_>],
    replacement: impl Fn(usize) -> String,
) -> String {
    let mut out = String::with_capacity(json.len() + ESCAPE * halves.len());
    let mut copied = 0;
    for (nth, half) in halves.iter().enumerate() {
        out.push_str(&json[copied..half.at]);
        out.push_str(&replacement(nth));
        copied = half.at + ESCAPE;
    }
    out.push_str(&json[copied..]);
    out
}

/// Finds the lone halves in the strings of a JSON text, which may be broken.
fn find_lone_halves(json: &str) -> Vec<LoneHalf<'_>> {
    let mut found = Vec::new();
    // Nearly all texts end here.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return found;
    }
    let bytes = json.as_bytes();
    let mut key = "";
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let start = at + quote + 1;
        at = start;
        let first_of_string = found.len();
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let code = read_escape(bytes, at);
                    let is_first = code.is_some_and(|code| (0xD800..0xDC00).contains(&code));
                    let is_second = code.is_some_and(|code| (0xDC00..0xE000).contains(&code));
                    let next = read_escape(bytes, at + ESCAPE);
                    if is_first && next.is_some_and(|code| (0xDC00..0xE000).contains(&code)) {
                        at += 2 * ESCAPE;
                    } else if is_first || is_second {
                        found.push(LoneHalf {
                            at,
                            escape: &json[at..at + ESCAPE],
                            key,
                            is_first,
                            is_joinable: if is_first {
                                bytes.get(at + ESCAPE) == Some(&b'"')
                            } else {
                                at == start
                            },
                        });
                        at += ESCAPE;
                    } else {
                        at += 2;
                    }
                }
                Some(_) => at += 1,
                None => return found,
            }
        }
        let end = at;
        at += 1;
        let after = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
        if after == Some(&b':') {
            key = &json[start..end];
            // The halves of a key join with nothing.
            for half in &mut found[first_of_string..] {
                half.is_joinable = false;
            }
        }
    }
    found
}

/// Reads `\uXXXX` at a position.
fn read_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` accepts a sign, which an escape can't contain.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
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
    fn lone_half_in_a_document_is_replaced() {
        for (json, expected) in [
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (
                r#"{"a":"\uDE80y\uD83D","b":"\ud83d\ude80"}"#,
                r#"{"a":"\ufffdy\ufffd","b":"\ud83d\ude80"}"#,
            ),
            (r#"["\ud83d\ud83d\ude80"]"#, r#"["\ufffd\ud83d\ude80"]"#),
            (
                r#"["\\ud83d \u00e9 \\\ud83d"]"#,
                r#"["\\ud83d \u00e9 \\\ufffd"]"#,
            ),
            (r#"{"\ud83d":1}"#, r#"{"\ufffd":1}"#),
            (r#"{"a":"\ud83"#, r#"{"a":"\ud83"#),
            (r#"{"a":"\ud+3d"}"#, r#"{"a":"\ud+3d"}"#),
            ("é\\ud83d", "é\\ud83d"),
        ] {
            assert_eq!(replace_lone_halves(json), expected);
        }
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

        #[test]
        fn any_text_stays_readable_json(strings in prop::collection::vec("(\\\\ud83d|\\\\ude80|\\\\n|x|\\\\\\\\){0,6}", 0..4)) {
            let json = format!("[{}]", strings.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(","));
            let replaced = replace_lone_halves(&json);
            prop_assert!(serde_json::from_str::<Value>(&replaced).is_ok(), "{json} {replaced}");
        }
    }
}
