//! Test helpers that read scripted bytes as a client does, without a socket.

use super::client::{Dialect, NewDeltas, OmittedSettings, ReplyReader, StreamProgress};
use super::sse::SseParser;
use super::{CompletedReply, ProviderError, ToolChoice, TurnRequest};
use crate::event::DeltaPart;
use crate::model::{HistoryBlock, HistoryItem, TokenUsage, ToolDeclaration};

/// Reads a stream of chunks; returns the reply and its deltas.
pub(super) fn read(
    mut reader: Box<dyn ReplyReader>,
    chunks: &[&[u8]],
) -> Result<(CompletedReply, NewDeltas), ProviderError> {
    let (mut framing, mut frames, mut new) = (SseParser::default(), Vec::new(), NewDeltas::new());
    let mut ended = false;
    for chunk in chunks {
        framing.push(chunk, &mut frames).expect("within the caps");
        for frame in frames.drain(..) {
            if !ended && reader.read_frame(frame, &mut new)? == StreamProgress::Done {
                ended = true;
            }
        }
    }
    if !ended {
        framing.finish(&mut frames).expect("within the caps");
        for frame in frames.drain(..) {
            if reader.read_frame(frame, &mut new)? == StreamProgress::Done {
                break;
            }
        }
    }
    Ok((reader.finish()?, new))
}

/// Asserts that the deltas of a reply concatenate to it.
pub(super) fn assert_deltas_make(reply: &crate::model::ModelReply, new: &NewDeltas) {
    let concat_part = |part: DeltaPart| -> String {
        let texts = new.iter().filter(|delta| delta.part == part);
        texts.map(|delta| delta.text.as_str()).collect()
    };
    assert_eq!(concat_part(DeltaPart::Text), reply.text);
    assert_eq!(concat_part(DeltaPart::Thought), reply.thought);
    for (at, call) in reply.calls.iter().enumerate() {
        let ix = crate::model::CallIx(u16::try_from(at).expect("few"));
        assert_eq!(concat_part(DeltaPart::Args(ix)), call.raw);
    }
}

/// Asserts that every prefix of a valid stream is a failure or the same reply, and returns the number of whole
/// replies.
///
/// Usage may be missing in a prefix.
pub(super) fn cut_everywhere(make: impl Fn() -> Box<dyn ReplyReader>, stream: &str) -> usize {
    let (whole_reply, _) = read(make(), &[stream.as_bytes()]).expect("the stream is good");
    let mut good = 0;
    for cut in 0..stream.len() {
        match read(make(), &[&stream.as_bytes()[..cut]]) {
            Ok((finished, _)) => {
                assert_eq!(finished.reply, whole_reply.reply, "cut at {cut}");
                let none = TokenUsage {
                    calls: 1,
                    ..TokenUsage::default()
                };
                assert!([whole_reply.usage, none].contains(&finished.usage));
                good += 1;
            }
            Err(ProviderError::Cut { .. }) => {}
            Err(other) => panic!("cut at {cut}: {other}"),
        }
    }
    good
}

pub(super) fn decl(name: &str) -> ToolDeclaration {
    ToolDeclaration {
        name: name.to_owned(),
        description: format!("does {name}"),
        schema: serde_json::json!({"type": "object", "properties": {"url": {"type": "string"}}}),
    }
}

pub(super) fn opening() -> Vec<HistoryItem> {
    vec![HistoryItem::User(vec![
        HistoryBlock::System("You judge.".to_owned()),
        HistoryBlock::Text("Judge \"this\".".to_owned()),
    ])]
}

/// Returns the body as one text.
pub(super) fn body(
    dialect: &dyn Dialect,
    history: &[HistoryItem],
    tools: &[ToolDeclaration],
    choice: ToolChoice,
) -> String {
    let turn = TurnRequest {
        history,
        tools,
        tool_choice: choice,
    };
    let pieces = dialect.build_body_pieces(&turn, &OmittedSettings::default());
    pieces.expect("a body").concat()
}
