//! The clauses of a rubric as the `rules` judge understands them.
//!
//! Responsible for the types alone. [`super::grammar`] parses clauses, [`super::clause_check`] checks them.

use crate::handlers::grounding::FactKind;

/// A clause of a rubric and the check that it asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    /// As written.
    pub(super) text: String,
    /// `true` if everything the agent said counts, `false` if only the answer does.
    pub(super) whole_conversation: bool,
    /// `true` if the check must not hold.
    pub(super) negated: bool,
    /// The check, or the reason why `rules` can't parse the clause.
    pub(super) check: Result<ClauseCheck, String>,
}

/// The check that a clause asks for.
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
    Grounded {
        kinds: Vec<FactKind>,
        /// `true` if the messages of the user are sources, too.
        in_user_messages: bool,
    },
    QuotesSource,
    Json,
    Empty,
    Starts(String),
    Ends(String),
    Calls(String),
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitBound {
    AtMost,
    AtLeast,
    Exactly,
}

/// The things that a limit counts.
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

/// The thing that the agent must ask for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AskTarget {
    Question,
    Confirmation,
    For(String),
    About(String),
}

/// The thing that the answer must contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Fact(FactKind),
    Code,
    List,
    Table,
    Emoji,
    Question,
}
