//! API keys of other services in exported text: responsible for finding them. Never changes the text.
//!
//! dicta redacts the secrets of its own user before it writes. A transcript can contain keys that dicta does not know, so
//! they are recognized by their form.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet};

/// The forms of keys, each with the name of its issuer. Each match has at most [`MAX_KEY_BYTES`] bytes.
const FORMS: &[(&str, &str)] = &[
    ("Anthropic", r"sk-ant-[A-Za-z0-9_-]{24,200}"),
    ("AWS", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("Azure storage", r"AccountKey=[A-Za-z0-9+/]{86}=="),
    ("DigitalOcean", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    (
        "GitHub",
        r"\b(?:gh[opsur]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40,120})",
    ),
    ("GitLab", r"\bglpat-[A-Za-z0-9_-]{20,120}"),
    ("Google API", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("Google OAuth", r"\bya29\.[0-9A-Za-z_-]{30,200}"),
    ("Groq", r"\bgsk_[A-Za-z0-9]{40,80}"),
    ("Hugging Face", r"\bhf_[A-Za-z0-9]{34}\b"),
    (
        "JSON Web Token",
        r"\beyJ[A-Za-z0-9_-]{10,150}\.eyJ[A-Za-z0-9_-]{10,150}\.[A-Za-z0-9_-]{10,150}",
    ),
    ("npm", r"\bnpm_[A-Za-z0-9]{36}\b"),
    (
        "OpenAI",
        r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_]{32,200}",
    ),
    ("Perplexity", r"\bpplx-[A-Za-z0-9]{40,80}"),
    (
        "private key",
        r"-----BEGIN (?:[A-Z]{2,20} ){0,2}PRIVATE KEY-----",
    ),
    ("PyPI", r"\bpypi-AgE[A-Za-z0-9_-]{50,200}"),
    ("Replicate", r"\br8_[A-Za-z0-9]{37}\b"),
    ("SendGrid", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("Shopify", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    ("Slack", r"\bxox[abeprs]-[A-Za-z0-9-]{20,120}"),
    (
        "Slack webhook",
        r"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,30}",
    ),
    ("Stripe", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,120}"),
    ("Telegram", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    (
        "URL with a password",
        r"\b[a-z][a-z0-9+]{1,20}://[A-Za-z0-9._%+-]{1,60}:[^\s:@/'<>\x22]{6,80}@[A-Za-z0-9.-]{3,100}",
    ),
    ("xAI", r"\bxai-[A-Za-z0-9]{40,120}"),
];

/// The longest match. A text is searched in parts that overlap by this length.
const MAX_KEY_BYTES: usize = 1024;
/// The text that is searched at once.
const PART_BYTES: usize = 64 << 10;

/// The compiled forms: one set that finds which of them occur, and each of them for its places.
struct Forms {
    any: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Forms> = LazyLock::new(|| {
    let patterns = FORMS.iter().map(|(_, pattern)| *pattern);
    Forms {
        any: RegexSet::new(patterns.clone()).expect("the forms are valid patterns"),
        each: patterns
            .map(|pattern| Regex::new(pattern).expect("the forms are valid patterns"))
            .collect(),
    }
});

/// A writer that passes bytes on unchanged and counts the keys in them.
pub struct KeyFinder<'w> {
    out: &'w mut dyn Write,
    /// The text that is not searched yet, after the end of the text before it.
    waiting: Vec<u8>,
    /// The bytes at the begin of `waiting` in which a match may begin that is counted already.
    overlap: usize,
    found: BTreeMap<&'static str, u64>,
}

impl<'w> KeyFinder<'w> {
    /// Returns a finder that writes to `out`.
    pub fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            waiting: Vec::new(),
            overlap: 0,
            found: BTreeMap::new(),
        }
    }

    /// Returns the number of keys by issuer. The text has ended.
    pub fn finish(mut self) -> BTreeMap<&'static str, u64> {
        self.search(true);
        self.found
    }

    /// Counts the keys that begin in the waiting text. A match that can go on in the next text waits for it.
    fn search(&mut self, is_end: bool) {
        let forms = &*COMPILED;
        let safe_end = if is_end {
            self.waiting.len()
        } else {
            self.waiting.len().saturating_sub(MAX_KEY_BYTES)
        };
        for form in forms.any.matches(&self.waiting) {
            let matches = forms.each[form].find_iter(&self.waiting);
            let counted = matches.filter(|found| (self.overlap..safe_end).contains(&found.start()));
            let count = counted.count() as u64;
            if count > 0 {
                *self.found.entry(FORMS[form].0).or_default() += count;
            }
        }
        // A word boundary and the begin of a match need the text before.
        let kept = safe_end.saturating_sub(MAX_KEY_BYTES);
        self.waiting.drain(..kept);
        self.overlap = safe_end - kept;
    }
}

impl Write for KeyFinder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.waiting.extend_from_slice(&bytes[..written]);
        if self.waiting.len() >= PART_BYTES {
            self.search(false);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Describes the keys of an exported file: `it contains texts that look like keys: 2 of GitHub, 1 of Slack`. `None` if
/// there are none.
pub fn describe_keys(found: &BTreeMap<&'static str, u64>) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let counts: Vec<String> = found
        .iter()
        .map(|(issuer, count)| format!("{issuer} ({count})"))
        .collect();
    Some(format!(
        "contains texts that look like keys: {}",
        counts.join(", ")
    ))
}

#[cfg(test)]
mod tests;
