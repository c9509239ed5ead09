//! The attachments of a sample: long texts and media that its messages refer to.
//!
//! Responsible for references, which it replaces by their content. It reads attachments on first use, and only the
//! necessary parts. A reference without an attachment stays as it is, as in Inspect, and is counted. Does not read
//! messages.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::archive::InspectArchive;
use crate::model::{JsonText, SourceText};
use crate::transcript::MAX_RECORD;

/// The prefixes of references: the current one, and that of logs from 2024.
const PROTOCOLS: [&str; 2] = ["attachment://", "tc://"];

/// The attachments of a sample.
pub(super) struct InspectAttachments<'a> {
    store: AttachmentStore<'a>,
    missing: Cell<u64>,
}

enum AttachmentStore<'a> {
    /// In the sample: `{hash: text}`.
    Inline {
        raw: Option<&'a RawValue>,
        /// The texts by hash, parsed on first use.
        by_hash: OnceCell<HashMap<SourceText<'a>, &'a RawValue>>,
    },
    /// In separate members, by index.
    Chunks(AttachmentChunks),
}

/// A member that contains a part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListChunk {
    /// The index in the list of the member's first element.
    pub(super) first: u64,
    /// The index of the member in the archive.
    pub(super) member: usize,
}

/// Members that each contain a part of one list of texts.
pub(super) struct AttachmentChunks {
    pub(super) archive: InspectArchive,
    /// The members in the order of their first elements.
    pub(super) chunks: Vec<ListChunk>,
    unpacked: RefCell<HashMap<usize, Vec<String>>>,
    /// The number of bytes that may still be decompressed.
    remaining_bytes: Cell<usize>,
}

impl AttachmentChunks {
    pub(super) fn new(archive: InspectArchive, chunks: Vec<ListChunk>) -> Self {
        Self {
            archive,
            chunks,
            unpacked: RefCell::default(),
            remaining_bytes: Cell::new(MAX_RECORD),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        // The name is an index into one list, of which each member holds a consecutive part.
        let number: u64 = name.parse().ok()?;
        // The last part that begins at or before this index contains it.
        let after = self.chunks.partition_point(|chunk| chunk.first <= number);
        let ListChunk { first, member } = *self.chunks.get(after.checked_sub(1)?)?;
        let mut cache = self.unpacked.borrow_mut();
        let texts = cache.entry(member).or_insert_with(|| {
            // All parts of a sample share the size limit of one record.
            // A damaged member gives no texts, so its references count as missing.
            let bytes = self
                .archive
                .read_bytes(member, self.remaining_bytes.get())
                .unwrap_or_default();
            self.remaining_bytes
                .set(self.remaining_bytes.get() - bytes.len());
            serde_json::from_slice(&bytes).unwrap_or_default()
        });
        texts.get(usize::try_from(number - first).ok()?).cloned()
    }
}

impl<'a> InspectAttachments<'a> {
    /// Returns the attachments in a sample.
    pub(super) fn from_sample(attachments: Option<&'a RawValue>) -> Self {
        Self {
            store: AttachmentStore::Inline {
                raw: attachments,
                by_hash: OnceCell::new(),
            },
            missing: Cell::new(0),
        }
    }

    /// Returns the attachments in separate members.
    pub(super) fn from_chunks(chunks: AttachmentChunks) -> Self {
        Self {
            store: AttachmentStore::Chunks(chunks),
            missing: Cell::new(0),
        }
    }

    /// Returns no attachments.
    pub(super) fn empty() -> Self {
        Self::from_sample(None)
    }

    /// Returns the number of references without an attachment.
    pub(super) fn missing(&self) -> u64 {
        self.missing.get()
    }

    /// Returns the text, or the attachment that it refers to.
    pub(super) fn resolve<'t>(&self, text: SourceText<'t>) -> SourceText<'t> {
        let name = PROTOCOLS
            .iter()
            .find_map(|protocol| text.strip_prefix(protocol));
        match name.map(|name| self.get(name)) {
            None => text,
            Some(Some(found)) => SourceText::from(found),
            Some(None) => {
                self.missing.set(self.missing.get() + 1);
                text
            }
        }
    }

    /// Returns a part with its attachment; `None` if it has no reference.
    pub(super) fn resolve_media(&self, raw: &RawValue) -> Option<JsonText<'static>> {
        // The search avoids a JSON tree for a part without a reference.
        let refers = PROTOCOLS.iter().any(|protocol| {
            memchr::memmem::find(raw.get().as_bytes(), protocol.as_bytes()).is_some()
        });
        // A part without a reference, or one that is not an object, stays borrowed.
        let Ok(Value::Object(mut fields)) = serde_json::from_str(refers.then_some(raw.get())?)
        else {
            return None;
        };
        for field in fields.values_mut() {
            if let Value::String(text) = field {
                *text = self
                    .resolve(SourceText::from(std::mem::take(text)))
                    .0
                    .into_owned();
            }
        }
        Some(JsonText::from_value(&Value::Object(fields)))
    }

    fn get(&self, name: &str) -> Option<String> {
        match &self.store {
            AttachmentStore::Chunks(chunks) => chunks.get(name),
            AttachmentStore::Inline { raw, by_hash } => {
                // The map is built on first use, because most samples have no reference.
                let by_hash = by_hash.get_or_init(|| {
                    let all = raw.map(|raw| serde_json::from_str(raw.get()).ok());
                    all.flatten().unwrap_or_default()
                });
                // A hash contains no characters that JSON escapes.
                serde_json::from_str(by_hash.get(&SourceText::from(name))?.get()).ok()
            }
        }
    }
}
