//! The quotes that may surround a text.

/// The opening quote of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteStyle {
    Double,
    Single,
    Backtick,
    Smart,
    SmartSingle,
    /// Gemma's leaked `<|"|>`.
    Token,
    /// Python's triple quote.
    Triple(char),
}

const QUOTE_TOKENS: [&str; 3] = ["<|\"|>", "<|\\\"|>", "<|'|>"];

impl QuoteStyle {
    /// Parses the opening quote and its length. A triple quote counts only if the caller finds its end.
    pub(super) fn parse_opening(rest: &str) -> Option<(Self, usize)> {
        let c = rest.chars().next()?;
        let quote = match c {
            '"' | '＂' => QuoteStyle::Double,
            '\'' => QuoteStyle::Single,
            // Three backticks open a code fence.
            '`' if !rest.starts_with("```") => QuoteStyle::Backtick,
            '“' | '”' | '„' | '‟' => QuoteStyle::Smart,
            '‘' | '’' | '‚' | '‛' => QuoteStyle::SmartSingle,
            '<' => {
                let token = QUOTE_TOKENS
                    .iter()
                    .find(|token| rest.starts_with(**token))?;
                return Some((QuoteStyle::Token, token.len()));
            }
            _ => return None,
        };
        Some((quote, c.len_utf8()))
    }

    /// Returns the length of the closing quote. An apostrophe between letters closes nothing.
    pub(super) fn closing_len(self, rest: &str, before: Option<char>) -> Option<usize> {
        let c = rest.chars().next()?;
        let closes = match self {
            QuoteStyle::Double => matches!(c, '"' | '＂'),
            QuoteStyle::Single => c == '\'',
            QuoteStyle::Backtick => c == '`',
            // Models also close a smart quote with a plain one.
            QuoteStyle::Smart => matches!(c, '“' | '”' | '‟' | '"'),
            QuoteStyle::SmartSingle => matches!(c, '‘' | '’' | '‛' | '\''),
            QuoteStyle::Token => {
                return QUOTE_TOKENS
                    .iter()
                    .find(|token| rest.starts_with(**token))
                    .map(|token| token.len());
            }
            QuoteStyle::Triple(one) => {
                // Exactly three: the first of four quotes belongs to the text.
                return (c == one && rest.chars().take(3).filter(|c| *c == one).count() == 3)
                    .then_some(3);
            }
        };
        let length = c.len_utf8();
        // An apostrophe inside a word, as in `don't`, does not close the text.
        let apostrophe = matches!(self, QuoteStyle::Single | QuoteStyle::SmartSingle)
            && before.is_some_and(char::is_alphanumeric)
            && rest[length..].starts_with(char::is_alphanumeric);
        (closes && !apostrophe).then_some(length)
    }
}
