//! What a repair changed, counted by kind, so that a text with 300 single quotes is one line and not 300.

use std::fmt::Write as _;

use crate::model::ArgumentChange;

/// Places of one kind that are told one by one; more are told as a number.
const SHOWN: usize = 4;

/// A longer pointer is not told: keys are as long as the one who writes them likes.
const MAX_POINTER: usize = 300;

/// One step of the way to a value.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Thought,
    Fence,
    Around,
    Glued,
    KeyQuotes,
    WordQuotes,
    OtherQuotes,
    EndQuote,
    InnerQuote,
    Control,
    Escape,
    Surrogate,
    Literal,
    Number,
    NotFinite,
    Missing,
    Joined,
    Prefix,
    Comma,
    ExtraComma,
    OtherComma,
    Colon,
    OtherColon,
    Comment,
    Ellipsis,
    Blank,
    Opening,
    Bracket,
    WrongBracket,
    StrayBracket,
    Doubled,
    Set,
    Token,
    TextToken,
    Trimmed,
    EmptyText,
    Null,
    Twice,
    CutKey,
    CutText,
    CutBracket,
}

impl Kind {
    /// Whether it is told of the whole, whatever place it has.
    fn of_whole(self) -> bool {
        !matches!(
            self,
            Kind::NotFinite
                | Kind::Missing
                | Kind::Joined
                | Kind::TextToken
                | Kind::Trimmed
                | Kind::EmptyText
                | Kind::Null
                | Kind::Twice
        )
    }

    fn told(self, n: usize) -> String {
        let count = |one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        match self {
            Kind::Thought => "left out the thought in front".to_owned(),
            Kind::Fence => "took it out of its code fence".to_owned(),
            Kind::Around => "left out the text around it".to_owned(),
            Kind::Glued => format!("kept the last of {} objects with the same keys", n + 1),
            Kind::KeyQuotes => format!("added quotes around {}", count("key", "keys")),
            Kind::WordQuotes => format!("added quotes around {}", count("value", "values")),
            Kind::OtherQuotes => format!("made the quotes of {} double", count("text", "texts")),
            Kind::EndQuote => format!("added {}", count("end quote", "end quotes")),
            Kind::InnerQuote => format!("escaped {} inside texts", count("quote", "quotes")),
            Kind::Control => {
                format!(
                    "escaped {}",
                    count("control character", "control characters")
                )
            }
            Kind::Escape => format!("mended {}", count("escape", "escapes")),
            Kind::Surrogate => format!(
                "replaced {}",
                count("half of a surrogate pair", "halves of surrogate pairs")
            ),
            Kind::Literal => format!("wrote {} as true, false or null", count("word", "words")),
            Kind::Number => format!("wrote {} as JSON has it", count("number", "numbers")),
            Kind::NotFinite => "made it a text: JSON has no such number".to_owned(),
            Kind::Missing => "it had no value: made it an empty text".to_owned(),
            Kind::Joined => format!("joined its {} texts", n + 1),
            Kind::Prefix => format!("dropped {}", count("string prefix", "string prefixes")),
            Kind::Comma => format!("added {}", count("comma", "commas")),
            Kind::ExtraComma => format!("dropped {}", count("comma", "commas")),
            Kind::OtherComma => format!("made {}", count("sign a comma", "signs commas")),
            Kind::Colon => format!("added {}", count("colon", "colons")),
            Kind::OtherColon => format!("made {}", count("sign a colon", "signs colons")),
            Kind::Comment => format!("dropped {}", count("comment", "comments")),
            Kind::Ellipsis => format!("dropped {}", count("ellipsis", "ellipses")),
            Kind::Blank => "dropped blanks that JSON does not have".to_owned(),
            Kind::Opening => "added the opening bracket".to_owned(),
            Kind::Bracket => format!("added {}", count("missing bracket", "missing brackets")),
            Kind::WrongBracket => {
                format!("replaced {}", count("wrong bracket", "wrong brackets"))
            }
            Kind::StrayBracket => format!("dropped {}", count("stray bracket", "stray brackets")),
            Kind::Doubled => format!("dropped {}", count("doubled bracket", "doubled brackets")),
            Kind::Set => format!("made {}", count("set an array", "sets arrays")),
            Kind::Token => format!("dropped {}", count("template token", "template tokens")),
            Kind::TextToken => "took template tokens out of it".to_owned(),
            Kind::Trimmed => "trimmed".to_owned(),
            Kind::EmptyText => format!("dropped {}", count("empty text", "empty texts")),
            Kind::Null => format!("dropped {}", count("null", "nulls")),
            Kind::Twice => "the key stood more than once: kept its last value".to_owned(),
            Kind::CutKey => "dropped the key that was cut off".to_owned(),
            Kind::CutText => format!("closed {}", count("text", "texts")),
            Kind::CutBracket => format!("closed {}", count("bracket", "brackets")),
        }
    }
}

#[derive(Debug)]
struct Tally {
    kind: Kind,
    count: usize,
    /// The first places and how often each, unless it is told of the whole.
    places: Vec<(String, usize)>,
    /// Not all places are there.
    more: bool,
}

/// Everything that was done, in the order in which each kind was first done.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<Tally>);

impl Notes {
    pub(super) fn add(&mut self, kind: Kind, path: &[Step]) {
        let at = self.0.iter().position(|tally| tally.kind == kind);
        let at = at.unwrap_or_else(|| {
            self.0.push(Tally {
                kind,
                count: 0,
                places: Vec::new(),
                more: false,
            });
            self.0.len() - 1
        });
        let tally = &mut self.0[at];
        tally.count += 1;
        if kind.of_whole() || tally.more {
            return;
        }
        let place = pointer(path);
        if let Some(same) = tally.places.iter_mut().find(|(at, _)| *at == place) {
            same.1 += 1;
        } else if tally.places.len() < SHOWN {
            tally.places.push((place, 1));
        } else {
            tally.more = true;
        }
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|tally| tally.kind == kind)
    }

    pub(super) fn changes(self) -> Vec<ArgumentChange> {
        let mut changes = Vec::new();
        for tally in self.0 {
            if tally.kind.of_whole() {
                changes.push(ArgumentChange {
                    path: String::new(),
                    what: tally.kind.told(tally.count),
                });
                continue;
            }
            if tally.more {
                changes.push(ArgumentChange {
                    path: String::new(),
                    what: format!("{} (at {} places)", tally.kind.told(1), tally.count),
                });
                continue;
            }
            for (path, count) in tally.places {
                changes.push(ArgumentChange {
                    path,
                    what: tally.kind.told(count),
                });
            }
        }
        changes
    }
}

fn pointer(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Index(at) => {
                let _infallible = write!(out, "/{at}");
            }
            Step::Key(key) if key.len() > MAX_POINTER => return String::new(),
            Step::Key(key) => {
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
