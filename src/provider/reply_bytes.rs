//! A reply that is read from bytes, without a server, for `crate::untrusted`.

use super::client::{Dialect, FrameDecoder, NewDeltas, StreamProgress, truncated_error};
use super::{CompletedReply, ProviderError};
use crate::model::TurnIx;
use crate::model::surrogates::replace_lone_halves;

/// Splits a stream into frames, each as text.
pub(crate) fn split_frames(chunks: &[&[u8]]) -> Result<Vec<String>, ProviderError> {
    let (mut decoder, mut frames) = (FrameDecoder::default(), Vec::new());
    let mut texts = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut frames)?;
        texts.extend(frames.drain(..).map(|frame| format!("{frame:?}")));
    }
    decoder.finish(&mut frames)?;
    texts.extend(frames.iter().map(|frame| format!("{frame:?}")));
    Ok(texts)
}

/// Reads the chunks of a body as `ProviderClient` reads them.
pub(super) fn read_chunks(
    dialect: &dyn Dialect,
    streamed: bool,
    chunks: &[&[u8]],
) -> Result<CompletedReply, ProviderError> {
    let mut reader = dialect.new_reply_reader(TurnIx(0));
    let mut new = NewDeltas::new();
    if !streamed {
        let bytes = chunks.concat();
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| ProviderError::WrongProtocol("it is not UTF-8".to_owned()))?;
        reader.read_document(&replace_lone_halves(text), &mut new)?;
        return reader.finish();
    }
    let (mut decoder, mut frames) = (FrameDecoder::default(), Vec::new());
    for chunk in chunks {
        let pushed = decoder.push(chunk, &mut frames);
        for frame in frames.drain(..) {
            if reader.read_frame(frame, &mut new)? == StreamProgress::Done {
                return reader.finish();
            }
        }
        pushed?;
    }
    decoder.finish(&mut frames)?;
    for frame in frames {
        if reader.read_frame(frame, &mut new)? == StreamProgress::Done {
            return reader.finish();
        }
    }
    // A reply that Gemini wants to continue is incomplete here, because no server sends the rest.
    if reader.take_continuation_member().is_some() {
        return Err(truncated_error("the server ended its reply in the middle"));
    }
    reader.finish()
}
