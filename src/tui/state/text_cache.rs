//! A cache of blobs and highlighting results, with an upper size. The oldest entries are dropped first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use crate::theme::{CodeLanguage, StyledSpan};
use crate::tui::task_failure::TaskFailure;

/// The loading state of a blob.
#[derive(Debug, Clone)]
pub(crate) enum BlobState {
    /// Being read.
    Loading,
    /// Here.
    Loaded(Arc<str>),
    /// Cannot be read.
    Failed(String),
}

/// Ranges of a text with their colors.
pub(crate) type HighlightSpans = Arc<Vec<StyledSpan>>;

/// The maximum number of bytes of blobs. One larger text may stay alone.
const MAX_BLOB_BYTES: usize = 64 << 20;
/// The maximum number of blobs, failures included.
const MAX_BLOBS: usize = 512;
/// The maximum number of highlighted texts.
const MAX_HIGHLIGHTS: usize = 1024;
/// The maximum length in bytes of a text that is highlighted.
pub(crate) const MAX_HIGHLIGHT_BYTES: usize = 256 << 10;

/// The cache: see the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextCache {
    /// The blobs by name.
    pub(crate) blobs: HashMap<String, BlobState>,
    /// The highlighting by a key over language and text; `None` while it is computed.
    pub(crate) highlights: HashMap<u64, Option<HighlightSpans>>,
    blobs_in_order: VecDeque<String>,
    highlights_in_order: VecDeque<u64>,
    blob_bytes: usize,
}

/// The identity of a text. A blob's name saves hashing a large text.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) enum TextIdentity<'a> {
    /// The text itself.
    Text(&'a str),
    /// The name of a blob, which is a digest.
    Blob(&'a str),
}

/// Returns the key of a text's highlighting.
pub(crate) fn highlight_key(lang: CodeLanguage, name: TextIdentity<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    lang.hash(&mut hasher);
    name.hash(&mut hasher);
    hasher.finish()
}

/// Returns the key of the hidden parts of a page. It uses no language, so it differs from all highlighting keys.
pub(crate) fn unshown_text_key(raw: &str, text: TextIdentity<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    "unshown".hash(&mut hasher);
    raw.hash(&mut hasher);
    text.hash(&mut hasher);
    hasher.finish()
}

impl TextCache {
    /// Records that a blob is being read.
    pub(crate) fn start_blob(&mut self, blob: &str) {
        // Failed and loading blobs take no bytes, so their number is limited, too.
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

    /// Stores a blob or its failure, unless it was dropped from the cache in the meantime.
    pub(crate) fn finish_blob(&mut self, blob: &str, text: Result<Arc<str>, TaskFailure>) {
        // The blob was dropped while it was read, so its text is not needed.
        let Some(known) = self.blobs.get_mut(blob) else {
            return;
        };
        // A blob can arrive twice if it was dropped and ordered again.
        if let BlobState::Loaded(before) = known {
            self.blob_bytes -= before.len();
        }
        *known = match text {
            Ok(text) => {
                self.blob_bytes += text.len();
                BlobState::Loaded(text)
            }
            Err(why) => BlobState::Failed(why.into()),
        };
        // The newest blob is visible, so it stays even if it is too large.
        while self.blob_bytes > MAX_BLOB_BYTES && self.blobs_in_order.len() > 1 {
            if self
                .blobs_in_order
                .front()
                .is_some_and(|oldest| oldest == blob)
            {
                // The new blob moves to the end of the queue, so another one is dropped.
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

    /// Records that a text is being highlighted.
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

    /// Stores the highlighting of a text.
    pub(crate) fn finish_highlight(&mut self, key: u64, spans: Vec<StyledSpan>) {
        if let Some(known) = self.highlights.get_mut(&key) {
            *known = Some(Arc::new(spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_drops_oldest_texts_and_keeps_newest() {
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
    fn late_text_of_dropped_blob_is_ignored() {
        let mut texts = TextCache::default();
        texts.finish_blob("never asked", Ok("late".into()));
        texts.finish_highlight(7, Vec::new());
        assert!(texts.blobs.is_empty() && texts.highlights.is_empty());
    }
}
