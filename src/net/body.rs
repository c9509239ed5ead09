//! Bodies of guarded requests, counted on the wire and again after decoding.
//!
//! Responsible for the caps that keep a page from filling the memory. Does not read from a connection.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

/// Bytes that may be expanded before the ratio applies: small pages compress very well.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// The decoded body of a reply, up to the caps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedBody {
    /// The decoded bytes.
    pub bytes: Vec<u8>,
    /// `true` if the body was longer than the caps admit.
    pub truncated: bool,
}

/// The reason why a body cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyError {
    /// The body expands more than the ratio admits.
    DecompressionBomb,
    /// The bytes do not match the content-encoding.
    InvalidEncoding,
}

/// Collects a body chunk by chunk and counts its bytes.
pub(super) struct BodyCollector {
    decoder: BodyDecoder,
    wire_bytes: u64,
    max_wire_bytes: u64,
}

enum BodyDecoder {
    Plain(DecodedSink),
    Gzip(Box<MultiGzDecoder<DecodedSink>>),
}

struct DecodedSink {
    bytes: Vec<u8>,
    max: usize,
    /// The largest number of decoded bytes that the wire bytes so far may become.
    allowance: u64,
    full: bool,
    bomb: bool,
}

/// The answer to a pushed chunk: read on, or stop because a cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMore {
    Yes,
    No,
}

impl BodyCollector {
    /// Creates a collector for the value of the content-encoding header. Returns `None` unless it is gzip (one layer)
    /// or absent.
    pub(super) fn new(encoding: Option<&str>, max_wire: u64, max_decoded: usize) -> Option<Self> {
        let sink = DecodedSink {
            bytes: Vec::new(),
            max: max_decoded,
            // No limit until the first gzip chunk arrives; plain bodies have no ratio to check.
            allowance: u64::MAX,
            full: false,
            bomb: false,
        };
        // Only what dicta asks for: another encoding could hide an expansion that dicta does not count.
        let decode = match encoding.map(|e| e.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => BodyDecoder::Plain(sink),
            Some("gzip" | "x-gzip") => BodyDecoder::Gzip(Box::new(MultiGzDecoder::new(sink))),
            Some(_) => return None,
        };
        Some(Self {
            decoder: decode,
            wire_bytes: 0,
            max_wire_bytes: max_wire,
        })
    }

    /// Takes a chunk as it came from the wire. `ratio` is the number of bytes that one byte may become, beyond the
    /// first MiB.
    pub(super) fn push(&mut self, chunk: &[u8], ratio: u64) -> Result<ReadMore, BodyError> {
        // Bytes beyond the wire cap are dropped, so a page at the cap is usable but truncated.
        let room = self.max_wire_bytes - self.wire_bytes;
        let taken = usize::try_from(room).map_or(chunk.len(), |room| room.min(chunk.len()));
        self.wire_bytes += taken as u64;
        let cut = taken < chunk.len();
        let chunk = &chunk[..taken];
        let written = match &mut self.decoder {
            BodyDecoder::Plain(sink) => sink.write_all(chunk),
            BodyDecoder::Gzip(decoder) => {
                // Set before every chunk: the sink cannot see how many wire bytes there are.
                decoder.get_mut().allowance =
                    self.wire_bytes.saturating_mul(ratio).max(RATIO_FREE_BYTES);
                decoder.write_all(chunk)
            }
        };
        let sink = self.sink();
        // The sink's own flags come before the decoder's error, which is only the `WriteZero` that the sink returned.
        if sink.bomb {
            return Err(BodyError::DecompressionBomb);
        }
        if sink.full || cut {
            sink.full = true;
            return Ok(ReadMore::No);
        }
        written
            .map_err(|_| BodyError::InvalidEncoding)
            .map(|()| ReadMore::Yes)
    }

    /// Returns the body, including the bytes that the decoder held back.
    pub(super) fn finish(mut self) -> Result<FetchedBody, BodyError> {
        // A reply to HEAD announces an encoding and has no body.
        if let BodyDecoder::Gzip(decoder) = &mut self.decoder
            && self.wire_bytes > 0
            && !decoder.get_ref().full
        {
            // The end of the stream writes the rest and checks the checksum of gzip.
            let ended = decoder.try_finish();
            let sink = decoder.get_ref();
            if sink.bomb {
                return Err(BodyError::DecompressionBomb);
                // A truncated body has no valid end, so only a complete one is checked.
            }
            if !sink.full {
                ended.map_err(|_| BodyError::InvalidEncoding)?;
            }
        }
        let sink = self.sink();
        Ok(FetchedBody {
            bytes: std::mem::take(&mut sink.bytes),
            truncated: sink.full,
        })
    }

    fn sink(&mut self) -> &mut DecodedSink {
        match &mut self.decoder {
            BodyDecoder::Plain(sink) => sink,
            BodyDecoder::Gzip(decoder) => decoder.get_mut(),
        }
    }
}

impl Write for DecodedSink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        // The first bytes of a body that is too long are usable, so they are kept.
        if buf.len() > room {
            self.bytes.extend_from_slice(&buf[..room]);
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        // A bomb is refused whole, because its content is an attack and not a page.
        if (self.bytes.len() + buf.len()) as u64 > self.allowance {
            self.bomb = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn take(encoding: Option<&str>, wire: &[u8], step: usize) -> Result<FetchedBody, BodyError> {
        let mut body = BodyCollector::new(encoding, 1 << 20, 4 << 20).expect("a known encoding");
        for chunk in wire.chunks(step) {
            if body.push(chunk, 100)? == ReadMore::No {
                break;
            }
        }
        body.finish()
    }

    #[test]
    fn plain_and_gzip_bodies_are_complete_for_any_split() {
        let text = "the newest release is 2.69.0\n".repeat(50);
        for step in [1, 7, 4096] {
            for (encoding, wire) in [
                (None, text.clone().into_bytes()),
                (Some("gzip"), gzip(text.as_bytes())),
            ] {
                let body = take(encoding, &wire, step).expect("a good body");
                assert_eq!(
                    (body.bytes.as_slice(), body.truncated),
                    (text.as_bytes(), false),
                    "{encoding:?} by {step}"
                );
            }
        }
    }

    #[test]
    fn long_body_is_truncated_and_marked() {
        let body = take(None, &vec![b'x'; (1 << 20) + 1], 5000).expect("cut, not refused");
        assert_eq!((body.bytes.len(), body.truncated), (1 << 20, true));
    }

    #[test]
    fn decompression_bomb_is_refused_early() {
        let bomb = gzip(&vec![0; 64 << 20]);
        let mut body = BodyCollector::new(Some("gzip"), 2 << 20, 128 << 20).expect("gzip");
        assert_eq!(body.push(&bomb, 100), Err(BodyError::DecompressionBomb));
        assert!(
            body.sink().bytes.capacity() < 16 << 20,
            "{}",
            body.sink().bytes.capacity()
        );
    }

    #[test]
    fn a_broken_or_cut_gzip_body_is_an_error() {
        let good = gzip("a page".repeat(100).as_bytes());
        assert_eq!(
            take(Some("gzip"), &good[..good.len() - 9], 64),
            Err(BodyError::InvalidEncoding)
        );
        assert_eq!(
            take(Some("gzip"), b"not gzip at all, no", 64),
            Err(BodyError::InvalidEncoding)
        );
    }

    #[test]
    fn only_one_gzip_layer_is_accepted() {
        for other in ["br", "deflate", "zstd", "gzip, gzip", "gzip;q=1"] {
            assert!(BodyCollector::new(Some(other), 1, 1).is_none(), "{other}");
        }
    }
}
