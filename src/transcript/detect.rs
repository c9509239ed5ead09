//! Which format a file is in, from its first bytes alone; names and endings count for nothing.
//!
//! The formats and their signs are one table, `formats::FORMATS`; the first whose sign a file bears is its format. One that
//! is recognised but not read yet is named; anything else is described.

use super::formats::{self, Open};
use super::scan::ValueScan;
use super::sniff::Sniff;
use super::walk::Walk;

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One a line.
    Lines,
    /// One after another over any lines, as elements of an array or bare.
    Values {
        /// Whether an array is open.
        array: bool,
    },
    /// The elements of an array within a larger value: what follows its end is not read. Where the file ends before the
    /// array does, an empty record stands for the rest.
    Elements,
    /// Rows of a table in CSV: a quoted cell may hold line ends.
    Rows,
    /// All have been read.
    Done,
}

/// What was recognised.
#[derive(Debug)]
pub(super) struct Detected<'h> {
    /// The format's name.
    pub(super) name: &'static str,
    /// Makes its reader.
    pub(super) open: Open,
    /// What it was recognised by.
    pub(super) look: Look<'h>,
}

/// The beginning of a file, as far as it is looked at.
#[derive(Debug)]
pub(super) struct Look<'h> {
    /// The first bytes, as they are.
    pub(super) head: &'h [u8],
    /// How records stand in it.
    pub(super) form: Form,
    /// Where they begin: after a byte order mark, white space, an opening bracket.
    pub(super) start: usize,
    /// The first records, with the keys of their top level. The last one may be torn.
    pub(super) records: Vec<Seen<'h>>,
}

/// A record that was looked at.
#[derive(Debug)]
pub(super) struct Seen<'h> {
    /// As it stands.
    pub(super) bytes: &'h [u8],
    /// What it tells of itself.
    pub(super) sniff: Sniff,
}

impl Look<'_> {
    /// A walk over the records, as they were recognised.
    pub(super) fn walk(&self) -> Walk {
        Walk::new(self.form, self.start as u64)
    }

    /// The same, where a list is one record: the file's only one, one on each line, or one in a list of lists.
    pub(super) fn whole(&self) -> Walk {
        let inner = self
            .records
            .first()
            .is_some_and(|seen| seen.bytes.starts_with(b"["));
        if self.form != (Form::Values { array: true }) || inner {
            return self.walk();
        }
        // `start` is behind the bracket.
        let start = self.start - 1;
        let body = &self.head[start..];
        let line = memchr::memchr(b'\n', body).unwrap_or(body.len());
        let ends = ValueScan::default()
            .feed(body)
            .is_some_and(|end| end <= line);
        let form = if ends && !body[line..].trim_ascii().is_empty() {
            Form::Lines
        } else {
            Form::Values { array: false }
        };
        Walk::new(form, start as u64)
    }

    /// Whether the first record looks so.
    pub(super) fn first(&self, is: impl FnOnce(&Sniff) -> bool) -> bool {
        self.records.first().is_some_and(|seen| is(&seen.sniff))
    }

    /// Whether one of the first records looks so.
    pub(super) fn any(&self, is: impl Fn(&Sniff) -> bool) -> bool {
        self.records.iter().any(|seen| is(&seen.sniff))
    }
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unsupported(&'static str),
    Unknown(String),
    /// Records or rows of a shape that is nobody's in particular: a map can say what they mean.
    Foreign(String),
}

/// How many records are looked at before a file is called foreign.
const LOOK_AT: usize = 64;

/// Recognises a file from `head`, its first bytes.
pub(super) fn detect(head: &[u8]) -> Result<Detected<'_>, Refusal> {
    if let Some(found) = formats::MAGIC
        .iter()
        .find(|found| head.starts_with(found.bytes))
    {
        let look = Look {
            head,
            form: Form::Done,
            start: 0,
            records: Vec::new(),
        };
        return opened(found.name, found.open, look);
    }
    let look = look(head)?;
    if let Some(format) = formats::FORMATS.iter().find(|format| (format.is)(&look)) {
        return opened(format.name, format.open, look);
    }
    match look.records.first() {
        Some(seen) if seen.sniff.is_empty() => {
            Err(Refusal::Unknown(seen.sniff.describe(seen.bytes)))
        }
        Some(seen) => Err(Refusal::Foreign(seen.sniff.describe(seen.bytes))),
        // An empty array: no transcripts, and nothing wrong.
        None => opened(formats::NATIVE.name, formats::NATIVE.open, look),
    }
}

fn opened<'h>(
    name: &'static str,
    open: Option<Open>,
    look: Look<'h>,
) -> Result<Detected<'h>, Refusal> {
    match open {
        Some(open) => Ok(Detected { name, open, look }),
        None => Err(Refusal::Unsupported(name)),
    }
}

/// How records stand in a file, and the first of them.
pub(super) fn look(head: &[u8]) -> Result<Look<'_>, Refusal> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Refusal::Unknown(
            "it is UTF-16 text; save it as UTF-8".to_owned(),
        ));
    }
    let bom = if head.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let blank = head[bom..].len() - head[bom..].trim_ascii_start().len();
    let start = bom + blank;
    let body = &head[start..];
    let seen = |bytes| Seen {
        bytes,
        sniff: Sniff::of(bytes),
    };
    let (form, start, records) = match body.first() {
        None => return Err(Refusal::Unknown("it holds only white space".to_owned())),
        Some(b'[') => (
            Form::Values { array: true },
            start + 1,
            values(body[1..].trim_ascii_start())
                .take(LOOK_AT)
                .map(seen)
                .collect(),
        ),
        Some(b'{') if spans_lines(body) => (
            Form::Values { array: false },
            start,
            values(body).take(LOOK_AT).map(seen).collect(),
        ),
        Some(_) => {
            let lines = body.split(|b| *b == b'\n');
            let lines = lines.filter(|line| !line.trim_ascii().is_empty());
            (Form::Lines, start, lines.take(LOOK_AT).map(seen).collect())
        }
    };
    Ok(Look {
        head,
        form,
        start,
        records,
    })
}

/// Whether the object at the beginning goes over several lines, rather than being one of the lines of JSONL.
fn spans_lines(body: &[u8]) -> bool {
    let mut scan = ValueScan::default();
    let end = scan.feed(body);
    let first_line = memchr::memchr(b'\n', body).unwrap_or(body.len());
    match end {
        Some(end) => end > first_line && !scan.torn_string,
        // Not closed: a large or torn object, or a first line that is broken. Then the second line is whole.
        None if scan.torn_string => false,
        None => {
            let rest = body[first_line..].trim_ascii_start();
            let line = rest
                .split(|b| *b == b'\n')
                .next()
                .unwrap_or_default()
                .trim_ascii_end();
            !(line.starts_with(b"{") && ValueScan::default().feed(line) == Some(line.len()))
                && first_line < body.len()
        }
    }
}

/// The values at the beginning of `body`, the last one perhaps torn.
pub(super) fn values(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let begin = rest
            .iter()
            .position(|b| !(b.is_ascii_whitespace() || *b == b','))?;
        rest = &rest[begin..];
        if rest[0] == b']' {
            return None;
        }
        let len = ValueScan::default().feed(rest).unwrap_or(rest.len());
        let (value, after) = rest.split_at(len);
        rest = after;
        Some(value)
    })
}

#[cfg(test)]
mod tests;
