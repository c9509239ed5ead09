//! `escape`: a text between delimiters, the closing ones inside it doubled.

/// Delimiters of an identifier or literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelimiterEscape {
    Backticks,
    DoubleQuotes,
    SingleQuotes,
    SquareBrackets,
}

impl DelimiterEscape {
    /// By the names that files use.
    pub(super) const NAMES: [(&'static str, Self); 4] = [
        ("backticks", Self::Backticks),
        ("double-quotes", Self::DoubleQuotes),
        ("single-quotes", Self::SingleQuotes),
        ("square-brackets", Self::SquareBrackets),
    ];

    /// The text between the delimiters. Only a closing delimiter can end it, so only that is doubled.
    pub(super) fn apply(self, text: &str) -> String {
        let (open, close) = match self {
            Self::Backticks => ('`', '`'),
            Self::DoubleQuotes => ('"', '"'),
            Self::SingleQuotes => ('\'', '\''),
            Self::SquareBrackets => ('[', ']'),
        };
        let doubled = text.replace(close, &format!("{close}{close}"));
        format!("{open}{doubled}{close}")
    }
}
