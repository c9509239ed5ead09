//! The cleanup that livekit applies to repaired texts: removes leaked template tokens, then trims.

use std::sync::LazyLock;

use regex::Regex;

/// Applied in this order: tokens of one word or one quote, tags of a turn. A lone `<|` or `|>` is an operator of code.
static TEMPLATE_TOKENS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        r#"<\|(?:[\w-]{1,40}|\\?["'])\|>"#,
        r"</?(?:start|end)_of_turn>",
    ]
    .map(|pattern| Regex::new(pattern).expect("a valid pattern"))
});

pub(super) struct CleanedText {
    pub(super) text: String,
    pub(super) had_tokens: bool,
    pub(super) was_trimmed: bool,
}

pub(super) fn clean_text(text: String) -> CleanedText {
    let before = text.len();
    let mut text = text;
    // Most texts contain no token; this test avoids the regular expressions.
    if text.contains("<|") || text.contains("_of_turn>") {
        for pattern in TEMPLATE_TOKENS.iter() {
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
    CleanedText {
        text,
        had_tokens: tokens,
        was_trimmed: trimmed,
    }
}
