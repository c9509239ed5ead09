//! Texts that are read when they are looked at: blobs, and what highlighting found. Bounded: the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;
use std::sync::Arc;

use crate::theme::{CodeLanguage, Role};

/// A text that is read when it is looked at.
#[derive(Debug, Clone)]
pub(crate) enum BlobState {
    /// Being read.
    Loading,
    /// Here.
    Loaded(Arc<str>),
    /// Cannot be read.
    Failed(String),
}

/// What a text is made of, so that it can be coloured.
pub(crate) type HighlightSpans = Arc<Vec<(Range<usize>, Role)>>;

/// So many bytes of blobs are kept; one larger text alone stays too.
const MAX_BLOB_BYTES: usize = 64 << 20;
/// So many blobs are remembered, failures included.
const MAX_BLOBS: usize = 512;
/// So many texts keep their looks.
const MAX_HIGHLIGHTS: usize = 1024;
/// Longer texts stay plain.
pub(crate) const MAX_HIGHLIGHT_BYTES: usize = 256 << 10;

/// Everything read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextCache {
    /// By the blob's name.
    pub(crate) blobs: HashMap<String, BlobState>,
    /// By a key over language and text; `None`: being worked on.
    pub(crate) highlights: HashMap<u64, Option<HighlightSpans>>,
    blobs_in_order: VecDeque<String>,
    highlights_in_order: VecDeque<u64>,
    blob_bytes: usize,
}

/// What names a text of which a large one need not be hashed.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) enum TextIdentity<'a> {
    /// Itself.
    Text(&'a str),
    /// A blob's name, which is a digest.
    Blob(&'a str),
}

/// The key of a text's looks.
pub(crate) fn highlight_key(lang: CodeLanguage, name: TextIdentity<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    lang.hash(&mut hasher);
    name.hash(&mut hasher);
    hasher.finish()
}

/// The key under which it is kept where a browser does not show a text: that of no language.
pub(crate) fn unshown_text_key(raw: &str, text: TextIdentity<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    "unshown".hash(&mut hasher);
    raw.hash(&mut hasher);
    text.hash(&mut hasher);
    hasher.finish()
}

impl TextCache {
    /// Notes that a blob is being read.
    pub(crate) fn start_blob(&mut self, blob: &str) {
        while self.blobs_in_order.len() >= MAX_BLOBS {
            self.evict_oldest_blobs();
        }
        if self
            .blobs
            .insert(blob.to_owned(), BlobState::Loading)
            .is_none()
        {
            self.blobs_in_order.push_back(blob.to_owned());
        }
    }

    /// A blob that was asked for is here, or cannot be read; one that was forgotten meanwhile is not kept.
    pub(crate) fn finish_blob(&mut self, blob: &str, text: Result<Arc<str>, String>) {
        let Some(known) = self.blobs.get_mut(blob) else {
            return;
        };
        if let BlobState::Loaded(before) = known {
            self.blob_bytes -= before.len();
        }
        *known = match text {
            Ok(text) => {
                self.blob_bytes += text.len();
                BlobState::Loaded(text)
            }
            Err(why) => BlobState::Failed(why),
        };
        // The newest is what one looks at: it stays, however large.
        while self.blob_bytes > MAX_BLOB_BYTES && self.blobs_in_order.len() > 1 {
            if self
                .blobs_in_order
                .front()
                .is_some_and(|oldest| oldest == blob)
            {
                self.blobs_in_order.rotate_left(1);
            }
            self.evict_oldest_blobs();
        }
    }

    fn evict_oldest_blobs(&mut self) {
        if let Some(oldest) = self.blobs_in_order.pop_front()
            && let Some(BlobState::Loaded(text)) = self.blobs.remove(&oldest)
        {
            self.blob_bytes -= text.len();
        }
    }

    /// Notes that a text is being highlighted.
    pub(crate) fn start_highlight(&mut self, key: u64) {
        while self.highlights_in_order.len() >= MAX_HIGHLIGHTS {
            if let Some(oldest) = self.highlights_in_order.pop_front() {
                self.highlights.remove(&oldest);
            }
        }
        if self.highlights.insert(key, None).is_none() {
            self.highlights_in_order.push_back(key);
        }
    }

    /// A text's looks are known.
    pub(crate) fn finish_highlight(&mut self, key: u64, spans: Vec<(Range<usize>, Role)>) {
        if let Some(known) = self.highlights.get_mut(&key) {
            *known = Some(Arc::new(spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_go_when_there_are_too_many_and_the_newest_stays_however_large() {
        let mut texts = TextCache::default();
        let large: Arc<str> = "x".repeat(MAX_BLOB_BYTES / 2).into();
        for name in ["a", "b", "c"] {
            texts.start_blob(name);
            texts.finish_blob(name, Ok(Arc::clone(&large)));
        }
        let mut left: Vec<&str> = texts.blobs.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["b", "c"]);
        texts.start_blob("d");
        texts.finish_blob("d", Ok("x".repeat(MAX_BLOB_BYTES + 1).into()));
        assert_eq!(texts.blobs.len(), 1);
        assert!(matches!(texts.blobs.get("d"), Some(BlobState::Loaded(_))));
        for n in 0..2 * MAX_BLOBS {
            texts.start_blob(&n.to_string());
        }
        assert_eq!(texts.blobs.len(), MAX_BLOBS);
        for key in 0..2 * MAX_HIGHLIGHTS as u64 {
            texts.start_highlight(key);
        }
        assert_eq!(texts.highlights.len(), MAX_HIGHLIGHTS);
    }

    #[test]
    fn what_was_forgotten_meanwhile_is_not_kept() {
        let mut texts = TextCache::default();
        texts.finish_blob("never asked", Ok("late".into()));
        texts.finish_highlight(7, Vec::new());
        assert!(texts.blobs.is_empty() && texts.highlights.is_empty());
    }
}
