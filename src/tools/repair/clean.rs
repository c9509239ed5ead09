//! What livekit does to texts after a repair, and only then: leaked template tokens out, then trimmed.

use std::sync::LazyLock;

use regex::Regex;

/// In this order: whole tokens, the head of a broken one, the tail of a broken one, tags of a turn.
static TOKENS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
    [
        r"<\|.{0,40}?\|>",
        r"<\|\W{0,10}",
        r"\W{0,10}\|>",
        r"</?(?:start|end)_of_turn>",
    ]
    .map(|pattern| Regex::new(pattern).expect("a valid pattern"))
});

pub(super) struct Cleaned {
    pub(super) text: String,
    pub(super) tokens: bool,
    pub(super) trimmed: bool,
}

pub(super) fn clean(text: String) -> Cleaned {
    let before = text.len();
    let mut text = text;
    // Most texts hold none.
    if text.contains("<|") || text.contains("|>") || text.contains("_of_turn>") {
        for pattern in TOKENS.iter() {
            if let std::borrow::Cow::Owned(cleaned) = pattern.replace_all(&text, "") {
                text = cleaned;
            }
        }
    }
    let tokens = text.len() < before;
    let inner = text.trim();
    let trimmed = inner.len() < text.len();
    if trimmed {
        text = inner.to_owned();
    }
    Cleaned {
        text,
        tokens,
        trimmed,
    }
}
