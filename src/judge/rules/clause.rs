//! The clauses of a rubric as the `rules` judge understands them.
//!
//! Responsible for the types alone. [`super::grammar`] parses clauses, [`super::clause_check`] checks them.

use crate::handlers::grounding::FactKind;

/// A clause of a rubric and what it was understood to ask.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    /// As written.
    pub(super) text: String,
    /// Whether all the agent said counts, or the answer alone.
    pub(super) whole_conversation: bool,
    /// Whether the check must not hold.
    pub(super) negated: bool,
    /// What to look for, or why the clause cannot be read.
    pub(super) check: Result<ClauseCheck, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClauseCheck {
    Mentions {
        phrases: Vec<String>,
        every: bool,
    },
    Limit {
        bound: LimitBound,
        count: usize,
        unit: CountUnit,
    },
    Asks(AskTarget),
    Newest {
        date: bool,
        product: Vec<String>,
        url: String,
    },
    Has(ContentKind),
    LinksTo(String),
    Apologises,
    Grounded(Vec<FactKind>),
    QuotesSource,
    Json,
    Empty,
    Starts(String),
    Ends(String),
    Calls(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitBound {
    AtMost,
    AtLeast,
    Exactly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountUnit {
    Sentences,
    Words,
    Characters,
    Lines,
    Paragraphs,
    Bullets,
    Questions,
    Links,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AskTarget {
    Question,
    Confirmation,
    For(String),
    About(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Fact(FactKind),
    Code,
    List,
    Table,
    Emoji,
    Question,
}
