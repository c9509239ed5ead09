//! The name of a cell: `transcript/rubric/eval[@message][~judge][#repeat]`, with `/ @ ~ # %` percent-encoded in its
//! parts.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use thiserror::Error;

use super::visible::make_visible;

/// The full name of one cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellName {
    /// The id of the transcript.
    pub transcript: String,
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// The position of the judged message from 0, for `every_turn` and `sample_turns`.
    pub message: Option<u32>,
    /// The judge, for judged evals only.
    pub judge: Option<String>,
    /// The number of the repeat from 1, only with repeats.
    pub repeat: Option<u32>,
}

/// The reason why a text is not a cell name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CellNameError {
    /// The text does not have three parts.
    #[error("a cell is named transcript/rubric/eval[@message][~judge][#repeat], got `{0}`")]
    Shape(String),
    /// A message or repeat is not a number.
    #[error("`{0}` is not a number from 1 in a cell name (after # or @)")]
    Number(String),
    /// A percent escape is invalid.
    #[error("`%` in a cell name is followed by two hex digits, as in %2F for /; got `{0}`")]
    Escape(String),
}

impl CellName {
    /// Borrows the name.
    pub fn by_ref(&self) -> CellNameRef<'_> {
        CellNameRef {
            transcript: &self.transcript,
            rubric: &self.rubric,
            eval: &self.eval,
            message: self.message,
            judge: self.judge.as_deref(),
            repeat: self.repeat,
        }
    }

    /// Returns the name for people: the ids without percent-encoding, with hidden characters as marks. It may not parse.
    pub fn to_plain_text(&self) -> String {
        let show = |id: &str| make_visible(id, false).into_owned();
        let ids = [&self.transcript, &self.rubric, &self.eval].map(|id| show(id.as_str()));
        let message = self.message.map(|at| format!("@{at}"));
        let judge = self
            .judge
            .as_deref()
            .map(|judge| format!("~{}", show(judge)));
        let repeat = self.repeat.map(|at| format!("#{at}"));
        let rest = [message, judge, repeat].into_iter().flatten();
        ids.join("/") + &rest.collect::<String>()
    }

    /// Returns the name of the decision: without judge and repeat.
    #[must_use]
    pub fn decision_name(&self) -> Self {
        Self {
            judge: None,
            repeat: None,
            ..self.clone()
        }
    }
}

/// A borrowed cell name. Reports write many thousand of them without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellNameRef<'a> {
    /// See [`CellName::transcript`].
    pub transcript: &'a str,
    /// See [`CellName::rubric`].
    pub rubric: &'a str,
    /// See [`CellName::eval`].
    pub eval: &'a str,
    /// See [`CellName::message`].
    pub message: Option<u32>,
    /// See [`CellName::judge`].
    pub judge: Option<&'a str>,
    /// See [`CellName::repeat`].
    pub repeat: Option<u32>,
}

impl CellNameRef<'_> {
    /// Copies the name.
    pub fn to_owned(self) -> CellName {
        CellName {
            transcript: self.transcript.to_owned(),
            rubric: self.rubric.to_owned(),
            eval: self.eval.to_owned(),
            message: self.message,
            judge: self.judge.map(str::to_owned),
            repeat: self.repeat,
        }
    }
}

impl fmt::Display for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by_ref().fmt(f)
    }
}

impl fmt::Display for CellNameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        percent_encode(f, self.transcript)?;
        f.write_char('/')?;
        percent_encode(f, self.rubric)?;
        f.write_char('/')?;
        percent_encode(f, self.eval)?;
        if let Some(message) = self.message {
            write!(f, "@{message}")?;
        }
        if let Some(judge) = self.judge {
            f.write_char('~')?;
            percent_encode(f, judge)?;
        }
        if let Some(repeat) = self.repeat {
            write!(f, "#{repeat}")?;
        }
        Ok(())
    }
}

fn percent_encode(f: &mut impl fmt::Write, part: &str) -> fmt::Result {
    // Controls too, because a name is one line that people type into shells.
    let spelled = |c: char| matches!(c, '/' | '@' | '~' | '#' | '%') || c.is_ascii_control();
    // Nearly all names need no escape, and reports write many thousand of them.
    if !part.contains(spelled) {
        return f.write_str(part);
    }
    for c in part.chars() {
        if spelled(c) {
            write!(f, "%{:02X}", c as u32)?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

fn percent_decode(part: &str) -> Result<String, CellNameError> {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let hex = rest
            // `get` also refuses a position inside a character of several bytes.
            .get(at + 1..at + 3)
            .ok_or_else(|| CellNameError::Escape(part.to_owned()))?;
        let byte =
            u8::from_str_radix(hex, 16).map_err(|_| CellNameError::Escape(part.to_owned()))?;
        // `percent_encode` escapes only ASCII; other bytes could form invalid UTF-8.
        if !byte.is_ascii() {
            return Err(CellNameError::Escape(part.to_owned()));
        }
        out.push(byte as char);
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    Ok(out)
}

impl FromStr for CellName {
    type Err = CellNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = || CellNameError::Shape(text.to_owned());
        let mut parts = text.splitn(3, '/');
        let (Some(transcript), Some(rubric), Some(tail)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(shape());
        };
        if tail.contains('/') {
            return Err(shape());
        }
        // The marks have a fixed order, so the parser takes them off from the end.
        let (tail, repeat) = split_off_number(tail, '#')?;
        let (tail, judge) = match tail.split_once('~') {
            Some((tail, judge)) => (tail, Some(percent_decode(judge)?)),
            None => (tail, None),
        };
        let (eval, message) = split_off_number(tail, '@')?;
        Ok(Self {
            transcript: percent_decode(transcript)?,
            rubric: percent_decode(rubric)?,
            eval: percent_decode(eval)?,
            message,
            judge,
            repeat,
        })
    }
}

fn split_off_number(text: &str, mark: char) -> Result<(&str, Option<u32>), CellNameError> {
    match text.split_once(mark) {
        None => Ok((text, None)),
        Some((head, number)) => number
            .parse()
            .map(|n| (head, Some(n)))
            .map_err(|_| CellNameError::Number(number.to_owned())),
    }
}

/// A pattern for cells: a name, a unique prefix of a name, or a glob (`*` and `?`) over the whole name.
#[derive(Debug, Clone)]
pub struct CellPattern {
    text: String,
    glob: Option<globset::GlobMatcher>,
}

impl CellPattern {
    /// Parses a pattern. An invalid glob counts as plain text.
    pub fn new(text: &str) -> Self {
        let is_glob = text.contains(['*', '?']);
        let glob = is_glob
            .then(|| globset::Glob::new(text).ok())
            .flatten()
            .map(|g| g.compile_matcher());
        Self {
            text: text.to_owned(),
            glob,
        }
    }

    /// Reports whether a cell matches: its name, or its name without judge and repeat.
    pub fn matches(&self, name: &CellName) -> bool {
        let full = name.to_string();
        let Some(glob) = &self.glob else {
            return full.starts_with(&self.text);
        };
        let decision = CellName {
            judge: None,
            repeat: None,
            ..name.clone()
        };
        glob.is_match(&full) || glob.is_match(decision.to_string())
    }

    /// Returns the selected cells: the exact name alone if it exists, else all matches of the glob or prefix.
    pub fn select<'n>(&self, names: &'n [String]) -> Vec<&'n String> {
        // An exact name can also be the beginning of others, such as `#1` of `#10`.
        if let Some(exact) = names.iter().find(|n| **n == self.text) {
            return vec![exact];
        }
        match &self.glob {
            Some(glob) => names.iter().filter(|n| glob.is_match(n)).collect(),
            None => names.iter().filter(|n| n.starts_with(&self.text)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_reads_as_it_prints() {
        let name: CellName = "refund-03/beam/grounded@4~gemini#2"
            .parse()
            .expect("a full name");
        assert_eq!(name.message, Some(4));
        assert_eq!(name.judge.as_deref(), Some("gemini"));
        assert_eq!(name.repeat, Some(2));
        assert_eq!(name.to_string(), "refund-03/beam/grounded@4~gemini#2");
        assert!("a/b".parse::<CellName>().is_err());
        assert!("a/b/c/d".parse::<CellName>().is_err());
        assert!("a/b/c#x".parse::<CellName>().is_err());
    }

    #[test]
    fn plain_text_of_a_name_has_its_ids_as_they_are() {
        let name: CellName = "data%2Fchat:1/beam/a%40b@4~gemini#2"
            .parse()
            .expect("a full name");
        assert_eq!(name.to_plain_text(), "data/chat:1/beam/a@b@4~gemini#2");
    }

    #[test]
    fn a_prefix_or_a_glob_selects() {
        let names: Vec<String> = ["a/r/x", "a/r/xy", "b/r/x"].map(str::to_owned).into();
        assert_eq!(
            CellPattern::new("a/r/x").select(&names),
            [&names[0]],
            "an exact name wins over its extensions"
        );
        assert_eq!(CellPattern::new("a/").select(&names).len(), 2);
        assert_eq!(CellPattern::new("*/x").select(&names).len(), 2);
    }

    proptest! {
        #[test]
        fn any_parts_survive(t in "\\PC{0,8}", r in "[a/@~#%]{0,6}", e in "\\PC{0,8}",
                             m in prop::option::of(0u32..9), j in prop::option::of("[b~#/]{1,4}"), n in prop::option::of(1u32..9)) {
            let name = CellName { transcript: t, rubric: r, eval: e, message: m, judge: j, repeat: n };
            prop_assert_eq!(name.to_string().parse::<CellName>(), Ok(name));
        }
    }
}
