//! Ids and units. Each number that crosses a module border has its own type.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The number of a cell within one run, from 0 without gaps, in plan order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellIx(pub u32);

impl CellIx {
    /// Returns the position in a `Vec` of cells.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a model call within one judge trace, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnIx(pub u16);

/// The number of a tool call within one turn, from 0, in the order of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallIx(pub u16);

impl CallIx {
    /// Converts the position of a call in a reply. A position that is too large becomes the largest number.
    pub fn from_position(at: usize) -> Self {
        Self(u16::try_from(at).unwrap_or(u16::MAX))
    }
}

/// Milliseconds: a duration, or a moment on a [`crate::clock::Clock`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Converts whole seconds to milliseconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Converts seconds with a fraction, such as `timeout_s: 1.5`, to milliseconds. Negative numbers and NaN become
    /// 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=u64::MAX by `as`"
    )]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs.max(0.0) * 1000.0).round() as u64)
    }

    /// Converts to a standard duration.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// Returns `self - other`, or 0 if `other` is later.
    #[must_use]
    pub const fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Millis {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Millis {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl fmt::Display for Millis {
    /// Formats for people: `850 ms`, `3.2 s`, `2 min 05 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms @ 0..1000 => write!(f, "{ms} ms"),
            ms @ 1000..60_000 => write!(f, "{:.1} s", ms as f64 / 1000.0),
            ms => write!(f, "{} min {:02} s", ms / 60_000, ms % 60_000 / 1000),
        }
    }
}

/// A wall time in RFC 3339 with offset. Occurs in headers and labels, never in events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(pub String);

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A BLAKE3 digest in lower-case hex, 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

impl Digest {
    /// Returns the digest of bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self::from_hash(&blake3::hash(bytes))
    }

    /// Returns a placeholder for the digest of bytes that dicta has not read yet. Listings do not need the real one.
    pub const fn unread() -> Self {
        Self(String::new())
    }

    /// Returns true for the placeholder of [`Digest::unread`].
    pub fn is_unread(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the digest of a sequence of parts. Each part is preceded by its length, so that different splits have
    /// different digests.
    pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        // The hasher takes longer for many short pieces than for their bytes, so short pieces are joined.
        let mut joined = [0_u8; 512];
        let mut length = 0;
        let mut hasher: Option<blake3::Hasher> = None;
        for part in parts {
            // A fixed width and byte order give the same digest on every machine.
            let prefix = (part.len() as u64).to_le_bytes();
            for piece in [&prefix[..], part] {
                if let Some(room) = joined.get_mut(length..length + piece.len()) {
                    room.copy_from_slice(piece);
                    length += piece.len();
                } else {
                    let hasher = hasher.get_or_insert_default();
                    hasher.update(&joined[..length]).update(piece);
                    length = 0;
                }
            }
        }
        let rest = &joined[..length];
        Self::from_hash(&match hasher {
            Some(mut hasher) => hasher.update(rest).finalize(),
            None => blake3::hash(rest),
        })
    }

    /// Returns the digest with this value.
    fn from_hash(hash: &blake3::Hash) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // By hand, because `to_hex` takes as long as the hash of a short text.
        let mut hex = [0_u8; 64];
        for (digits, byte) in hex.chunks_exact_mut(2).zip(hash.as_bytes()) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(String::from_utf8_lossy(&hex).into_owned())
    }

    /// Returns the first 12 characters, for display.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a text or body that dicta stores once next to the event log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Blob {
    /// The BLAKE3 digest of the bytes.
    pub hash: Digest,
    /// The number of bytes.
    pub bytes: u64,
}

impl Blob {
    /// Names bytes; does not store them.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            hash: Digest::hash_bytes(bytes),
            bytes: bytes.len() as u64,
        }
    }
}

/// The name of a run's folder: `<time>-<4 random letters>`, such as `20261121T015301Z-kvqa`. The letters alone also
/// identify the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl RunId {
    /// Returns the letters at the end.
    pub fn letters(&self) -> &str {
        self.0
            .rsplit_once('-')
            .map_or(self.0.as_str(), |(_, letters)| letters)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digest_of_parts_covers_each_length_and_part(
            lengths in proptest::collection::vec(0_usize..700, 0..8),
        ) {
            let parts: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
            let mut all = blake3::Hasher::new();
            for part in &parts {
                all.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            let digest = Digest::hash_parts(parts.iter().map(Vec::as_slice));
            prop_assert_eq!(digest.0, all.finalize().to_hex().to_string());
        }

        #[test]
        fn digest_of_bytes_is_blake3_in_lower_case_hex(
            bytes in proptest::collection::vec(0_u8..=255, 0..90),
        ) {
            let expected = blake3::hash(&bytes).to_hex().to_string();
            prop_assert_eq!(Digest::hash_bytes(&bytes).0, expected);
        }
    }
}
