//! `escape`: puts a text between delimiters and doubles the closing ones in it.

/// The delimiters of an identifier or literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelimiterEscape {
    Backticks,
    DoubleQuotes,
    SingleQuotes,
    SquareBrackets,
}

impl DelimiterEscape {
    /// The delimiters by their names in files.
    pub(super) const NAMES: [(&'static str, Self); 4] = [
        ("backticks", Self::Backticks),
        ("double-quotes", Self::DoubleQuotes),
        ("single-quotes", Self::SingleQuotes),
        ("square-brackets", Self::SquareBrackets),
    ];

    /// Returns the text between the delimiters. Only a closing delimiter can end it, so only that one is doubled.
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
