//! Texts that are read when they are looked at: blobs, and what highlighting found. Bounded: the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;
use std::sync::Arc;

use crate::theme::{Lang, Role};

/// A text that is read when it is looked at.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    /// Being read.
    Reading,
    /// Here.
    Here(Arc<str>),
    /// Cannot be read.
    Failed(String),
}

/// What a text is made of, so that it can be coloured.
pub(crate) type Looks = Arc<Vec<(Range<usize>, Role)>>;

/// So many bytes of blobs are kept; one larger text alone stays too.
const BLOB_BYTES: usize = 64 << 20;
/// So many blobs are remembered, failures included.
const BLOBS: usize = 512;
/// So many texts keep their looks.
const LOOKS: usize = 1024;
/// Longer texts stay plain.
pub(crate) const HIGHLIGHT_MAX: usize = 256 << 10;

/// Everything read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// By the blob's name.
    pub(crate) blobs: HashMap<String, Read>,
    /// By a key over language and text; `None`: being worked on.
    pub(crate) looks: HashMap<u64, Option<Looks>>,
    blobs_in_order: VecDeque<String>,
    looks_in_order: VecDeque<u64>,
    bytes: usize,
}

/// What names a text of which a large one need not be hashed.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) enum Named<'a> {
    /// Itself.
    Text(&'a str),
    /// A blob's name, which is a digest.
    Blob(&'a str),
}

/// The key of a text's looks.
pub(crate) fn look_key(lang: Lang, name: Named<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    lang.hash(&mut hasher);
    name.hash(&mut hasher);
    hasher.finish()
}

/// The key under which it is kept where a browser does not show a text: that of no language.
pub(crate) fn unshown_key(raw: &str, text: Named<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    "unshown".hash(&mut hasher);
    raw.hash(&mut hasher);
    text.hash(&mut hasher);
    hasher.finish()
}

impl Texts {
    /// Notes that a blob is being read.
    pub(crate) fn reading(&mut self, blob: &str) {
        while self.blobs_in_order.len() >= BLOBS {
            self.forget_oldest();
        }
        if self.blobs.insert(blob.to_owned(), Read::Reading).is_none() {
            self.blobs_in_order.push_back(blob.to_owned());
        }
    }

    /// A blob that was asked for is here, or cannot be read; one that was forgotten meanwhile is not kept.
    pub(crate) fn read(&mut self, blob: &str, text: Result<Arc<str>, String>) {
        let Some(known) = self.blobs.get_mut(blob) else {
            return;
        };
        if let Read::Here(before) = known {
            self.bytes -= before.len();
        }
        *known = match text {
            Ok(text) => {
                self.bytes += text.len();
                Read::Here(text)
            }
            Err(why) => Read::Failed(why),
        };
        // The newest is what one looks at: it stays, however large.
        while self.bytes > BLOB_BYTES && self.blobs_in_order.len() > 1 {
            if self
                .blobs_in_order
                .front()
                .is_some_and(|oldest| oldest == blob)
            {
                self.blobs_in_order.rotate_left(1);
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.blobs_in_order.pop_front()
            && let Some(Read::Here(text)) = self.blobs.remove(&oldest)
        {
            self.bytes -= text.len();
        }
    }

    /// Notes that a text is being highlighted.
    pub(crate) fn looking(&mut self, key: u64) {
        while self.looks_in_order.len() >= LOOKS {
            if let Some(oldest) = self.looks_in_order.pop_front() {
                self.looks.remove(&oldest);
            }
        }
        if self.looks.insert(key, None).is_none() {
            self.looks_in_order.push_back(key);
        }
    }

    /// A text's looks are known.
    pub(crate) fn looked(&mut self, key: u64, spans: Vec<(Range<usize>, Role)>) {
        if let Some(known) = self.looks.get_mut(&key) {
            *known = Some(Arc::new(spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_go_when_there_are_too_many_and_the_newest_stays_however_large() {
        let mut texts = Texts::default();
        let large: Arc<str> = "x".repeat(BLOB_BYTES / 2).into();
        for name in ["a", "b", "c"] {
            texts.reading(name);
            texts.read(name, Ok(Arc::clone(&large)));
        }
        let mut left: Vec<&str> = texts.blobs.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["b", "c"]);
        texts.reading("d");
        texts.read("d", Ok("x".repeat(BLOB_BYTES + 1).into()));
        assert_eq!(texts.blobs.len(), 1);
        assert!(matches!(texts.blobs.get("d"), Some(Read::Here(_))));
        for n in 0..2 * BLOBS {
            texts.reading(&n.to_string());
        }
        assert_eq!(texts.blobs.len(), BLOBS);
        for key in 0..2 * LOOKS as u64 {
            texts.looking(key);
        }
        assert_eq!(texts.looks.len(), LOOKS);
    }

    #[test]
    fn what_was_forgotten_meanwhile_is_not_kept() {
        let mut texts = Texts::default();
        texts.read("never asked", Ok("late".into()));
        texts.looked(7, Vec::new());
        assert!(texts.blobs.is_empty() && texts.looks.is_empty());
    }
}
