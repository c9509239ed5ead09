//! Ids and units. Every number that crosses a module border has a type of its own.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A cell's number within one run: dense, from 0, in plan order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellIx(pub u32);

impl CellIx {
    /// The position in a `Vec` of cells.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A model call within one trace, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnIx(pub u16);

/// A tool call within one turn, from 0, in the order the model made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallIx(pub u16);

/// Milliseconds: a duration, or a moment on a [`crate::clock::Clock`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Whole seconds as milliseconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Seconds that may have a fraction (`timeout_s: 1.5`); negative and NaN become 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=u64::MAX by `as`"
    )]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs.max(0.0) * 1000.0).round() as u64)
    }

    /// The same length as a standard duration.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// `self - other`, or 0.
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
    /// `850 ms`, `3.2 s`, `2 min 05 s`: for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms @ 0..1000 => write!(f, "{ms} ms"),
            ms @ 1000..60_000 => write!(f, "{:.1} s", ms as f64 / 1000.0),
            ms => write!(f, "{} min {:02} s", ms / 60_000, ms % 60_000 / 1000),
        }
    }
}

/// A moment of wall time, RFC 3339 with offset. Stands in headers and labels, never in events.
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
    /// The digest of some bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Of bytes that nobody has read yet: a list of what is there does without them.
    pub const fn unread() -> Self {
        Self(String::new())
    }

    /// See [`Digest::unread`].
    pub fn is_unread(&self) -> bool {
        self.0.is_empty()
    }

    /// The digest of a sequence of parts, each preceded by its length, so that parts cannot run into each other.
    pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().to_hex().to_string())
    }

    /// The first 12 characters: enough for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text or body that is stored once beside the event log and named by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Blob {
    /// BLAKE3 of the bytes.
    pub hash: Digest,
    /// How many bytes.
    pub bytes: u64,
}

impl Blob {
    /// Names some bytes; does not store them.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            hash: Digest::hash_bytes(bytes),
            bytes: bytes.len() as u64,
        }
    }
}

/// A run's folder name: `<time>-<4 random letters>`, for example `20261121T015301Z-kvqa`. The letters alone name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl RunId {
    /// The letters at the end.
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
