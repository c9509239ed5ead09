//! The record of a repair, counted by kind. A text with 300 single quotes adds one line and not 300.

use std::fmt::Write as _;

use crate::model::ArgumentChange;

/// The number of places that are listed per kind; further ones are counted.
const MAX_LOCATIONS: usize = 4;

/// The length limit of a listed JSON pointer in bytes, because the model chooses the keys.
const MAX_POINTER: usize = 300;

/// One step of the path to a value.
#[derive(Debug, Clone)]
pub(super) enum RepairPathStep {
    Key(String),
    Index(usize),
}

/// A kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepairKind {
    LeadingThought,
    CodeFence,
    SurroundingText,
    RepeatedObject,
    KeyQuotes,
    WordQuotes,
    OtherQuotes,
    EndQuote,
    InnerQuote,
    ControlCharacter,
    Escape,
    Surrogate,
    Literal,
    Number,
    NotFinite,
    MissingValue,
    JoinedTexts,
    StringPrefix,
    MissingComma,
    ExtraComma,
    OtherComma,
    MissingColon,
    OtherColon,
    Comment,
    Ellipsis,
    NonJsonBlank,
    OpeningBracket,
    MissingBracket,
    WrongBracket,
    StrayBracket,
    DoubledBracket,
    SetAsArray,
    Token,
    TextToken,
    Trimmed,
    DroppedEmptyText,
    DroppedNull,
    DuplicateKey,
    CutKey,
    CutText,
    CutBracket,
}

impl RepairKind {
    /// Returns true if the repair applies to the whole text and has no place.
    fn has_no_location(self) -> bool {
        !matches!(
            self,
            RepairKind::NotFinite
                | RepairKind::MissingValue
                | RepairKind::JoinedTexts
                | RepairKind::TextToken
                | RepairKind::Trimmed
                | RepairKind::DroppedEmptyText
                | RepairKind::DroppedNull
                | RepairKind::DuplicateKey
        )
    }

    fn describe(self, n: usize) -> String {
        let count = |one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        match self {
            RepairKind::LeadingThought => "left out the thought in front".to_owned(),
            RepairKind::CodeFence => "took it out of its code fence".to_owned(),
            RepairKind::SurroundingText => "left out the text around it".to_owned(),
            RepairKind::RepeatedObject => format!("kept one of {} equal objects", n + 1),
            RepairKind::KeyQuotes => format!("added quotes around {}", count("key", "keys")),
            RepairKind::WordQuotes => format!("added quotes around {}", count("value", "values")),
            RepairKind::OtherQuotes => {
                format!("made the quotes of {} double", count("text", "texts"))
            }
            RepairKind::EndQuote => format!("added {}", count("end quote", "end quotes")),
            RepairKind::InnerQuote => format!("escaped {} inside texts", count("quote", "quotes")),
            RepairKind::ControlCharacter => {
                format!(
                    "escaped {}",
                    count("control character", "control characters")
                )
            }
            RepairKind::Escape => format!("repaired {}", count("escape", "escapes")),
            RepairKind::Surrogate => format!(
                "replaced {}",
                count("half of a surrogate pair", "halves of surrogate pairs")
            ),
            RepairKind::Literal => {
                format!("wrote {} as true, false or null", count("word", "words"))
            }
            RepairKind::Number => format!("wrote {} as JSON has it", count("number", "numbers")),
            RepairKind::NotFinite => "made it a text: JSON has no such number".to_owned(),
            RepairKind::MissingValue => "it had no value: made it an empty text".to_owned(),
            RepairKind::JoinedTexts => format!("joined its {} texts", n + 1),
            RepairKind::StringPrefix => {
                format!("dropped {}", count("string prefix", "string prefixes"))
            }
            RepairKind::MissingComma => format!("added {}", count("comma", "commas")),
            RepairKind::ExtraComma => format!("dropped {}", count("comma", "commas")),
            RepairKind::OtherComma => format!("made {}", count("sign a comma", "signs commas")),
            RepairKind::MissingColon => format!("added {}", count("colon", "colons")),
            RepairKind::OtherColon => format!("made {}", count("sign a colon", "signs colons")),
            RepairKind::Comment => format!("dropped {}", count("comment", "comments")),
            RepairKind::Ellipsis => format!("dropped {}", count("ellipsis", "ellipses")),
            RepairKind::NonJsonBlank => "dropped blanks that JSON does not have".to_owned(),
            RepairKind::OpeningBracket => "added the opening bracket".to_owned(),
            RepairKind::MissingBracket => {
                format!("added {}", count("missing bracket", "missing brackets"))
            }
            RepairKind::WrongBracket => {
                format!("replaced {}", count("wrong bracket", "wrong brackets"))
            }
            RepairKind::StrayBracket => {
                format!("dropped {}", count("stray bracket", "stray brackets"))
            }
            RepairKind::DoubledBracket => {
                format!("dropped {}", count("doubled bracket", "doubled brackets"))
            }
            RepairKind::SetAsArray => format!("made {}", count("set an array", "sets arrays")),
            RepairKind::Token => format!("dropped {}", count("template token", "template tokens")),
            RepairKind::TextToken => "took template tokens out of it".to_owned(),
            RepairKind::Trimmed => "trimmed".to_owned(),
            RepairKind::DroppedEmptyText => {
                format!("dropped {}", count("empty text", "empty texts"))
            }
            RepairKind::DroppedNull => format!("dropped {}", count("null", "nulls")),
            RepairKind::DuplicateKey => {
                "the key stood more than once: kept its last value".to_owned()
            }
            RepairKind::CutKey => "dropped the key that was cut off".to_owned(),
            RepairKind::CutText => format!("closed {}", count("text", "texts")),
            RepairKind::CutBracket => format!("closed {}", count("bracket", "brackets")),
        }
    }
}

#[derive(Debug)]
struct RepairCount {
    kind: RepairKind,
    count: usize,
    /// The first places with their counts, unless the repair applies to the whole text.
    locations: Vec<CountedLocation>,
    /// True if `locations` lacks some places.
    has_more_locations: bool,
}

/// A repaired place.
#[derive(Debug)]
struct CountedLocation {
    pointer: String,
    /// The number of repairs at this place.
    count: usize,
}

/// The repairs in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct RepairLog(Vec<RepairCount>);

impl RepairLog {
    pub(super) fn add(&mut self, kind: RepairKind, path: &[RepairPathStep]) {
        // A linear search: there are few kinds.
        let at = self.0.iter().position(|tally| tally.kind == kind);
        let at = at.unwrap_or_else(|| {
            self.0.push(RepairCount {
                kind,
                count: 0,
                locations: Vec::new(),
                has_more_locations: false,
            });
            self.0.len() - 1
        });
        let tally = &mut self.0[at];
        tally.count += 1;
        // These kinds apply to the whole text, or their places are already too many.
        if kind.has_no_location() || tally.has_more_locations {
            return;
        }
        let pointer = json_pointer(path);
        let mut locations = tally.locations.iter_mut();
        if let Some(same) = locations.find(|known| known.pointer == pointer) {
            same.count += 1;
        } else if tally.locations.len() < MAX_LOCATIONS {
            tally.locations.push(CountedLocation { pointer, count: 1 });
        } else {
            tally.has_more_locations = true;
        }
    }

    pub(super) fn has(&self, kind: RepairKind) -> bool {
        self.0.iter().any(|tally| tally.kind == kind)
    }

    pub(super) fn into_changes(self) -> Vec<ArgumentChange> {
        let mut changes = Vec::new();
        for tally in self.0 {
            if tally.kind.has_no_location() {
                changes.push(ArgumentChange {
                    path: String::new(),
                    what: tally.kind.describe(tally.count),
                });
                continue;
            }
            // With many places, one line with the count replaces their list.
            if tally.has_more_locations {
                changes.push(ArgumentChange {
                    path: String::new(),
                    what: format!("{} (at {} places)", tally.kind.describe(1), tally.count),
                });
                continue;
            }
            for location in tally.locations {
                changes.push(ArgumentChange {
                    path: location.pointer,
                    what: tally.kind.describe(location.count),
                });
            }
        }
        changes
    }
}

fn json_pointer(path: &[RepairPathStep]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            RepairPathStep::Index(at) => {
                let _infallible = write!(out, "/{at}");
            }
            // A shortened pointer would name another place, so the change applies to the whole text.
            RepairPathStep::Key(key) if key.len() > MAX_POINTER => return String::new(),
            RepairPathStep::Key(key) => {
                out.push('/');
                out.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
        }
        if out.len() > MAX_POINTER {
            return String::new();
        }
    }
    out
}
