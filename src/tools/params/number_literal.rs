//! Numbers in JSON's spelling, and the bounds that dicta compares with them.
//!
//! Keeps an integer of 64 bits exact; a float loses digits beyond 2^53.

use std::cmp::Ordering;
use std::fmt;

/// An inclusive bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NumericLimit {
    Whole(i64),
    Float(f64),
}

impl NumericLimit {
    /// Parses a JSON literal, as an integer if it is written as one and fits 64 bits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match parse_whole_number(text) {
            Some(n) => Some(Self::Whole(n)),
            None => parse_finite_float(text).map(Self::Float),
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.to_f64().partial_cmp(&b.to_f64()),
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Float(x) => x,
        }
    }

    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Whole(n) => n.into(),
            Self::Float(x) => x.into(),
        }
    }

    pub(super) fn is_above(self, other: Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }
}

impl fmt::Display for NumericLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
        }
    }
}

/// Parses an integer literal without a dot or exponent that fits 64 bits.
pub(super) fn parse_whole_number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Parses a number literal that a finite `f64` can hold.
pub(super) fn parse_finite_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

/// Returns true if a JSON literal is a number and not `true`, `false` or `null`.
pub(super) fn is_number_literal(plain: &str) -> bool {
    plain.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}
