//! The quotes texts come in.

/// What a text was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    Back,
    Smart,
    SmartSingle,
    /// Gemma's `<|"|>`, leaked.
    Token,
    /// Python's.
    Triple(char),
}

const TOKENS: [&str; 3] = ["<|\"|>", "<|\\\"|>", "<|'|>"];

impl Quote {
    /// The quote that stands here and its length. Three in a row count only where the caller finds the other three.
    pub(super) fn open(rest: &str) -> Option<(Self, usize)> {
        let c = rest.chars().next()?;
        let quote = match c {
            '"' | '＂' => Quote::Double,
            '\'' => Quote::Single,
            '`' if !rest.starts_with("```") => Quote::Back,
            '“' | '”' | '„' | '‟' => Quote::Smart,
            '‘' | '’' | '‚' | '‛' => Quote::SmartSingle,
            '<' => {
                let token = TOKENS.iter().find(|token| rest.starts_with(**token))?;
                return Some((Quote::Token, token.len()));
            }
            _ => return None,
        };
        Some((quote, c.len_utf8()))
    }

    /// The length of what closes it here. An apostrophe between letters closes nothing.
    pub(super) fn closed_by(self, rest: &str, before: Option<char>) -> Option<usize> {
        let c = rest.chars().next()?;
        let closes = match self {
            Quote::Double => matches!(c, '"' | '＂'),
            Quote::Single => c == '\'',
            Quote::Back => c == '`',
            Quote::Smart => matches!(c, '“' | '”' | '‟' | '"'),
            Quote::SmartSingle => matches!(c, '‘' | '’' | '‛' | '\''),
            Quote::Token => {
                return TOKENS
                    .iter()
                    .find(|token| rest.starts_with(**token))
                    .map(|token| token.len());
            }
            Quote::Triple(one) => {
                return (c == one && rest.chars().take(3).filter(|c| *c == one).count() == 3)
                    .then_some(3);
            }
        };
        let length = c.len_utf8();
        let apostrophe = matches!(self, Quote::Single | Quote::SmartSingle)
            && before.is_some_and(char::is_alphanumeric)
            && rest[length..].starts_with(char::is_alphanumeric);
        (closes && !apostrophe).then_some(length)
    }
}
