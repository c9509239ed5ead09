//! The attachments of a sample: long texts and media that its messages refer to.
//!
//! Responsible for references, which it replaces by their content. It reads attachments on first use, and only the
//! necessary parts. All references to an attachment share one text, and the size limit of a record applies to the
//! texts with their repeats: otherwise a file of 2 KB could fill the memory. A reference without an attachment stays as
//! it is, as in Inspect, and is counted. Does not read messages.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use serde_json::value::RawValue;

use super::archive::InspectArchive;
use crate::model::{JsonText, SourceText};
use crate::transcript::MAX_RECORD;
use crate::transcript::native::json_string;

/// The prefixes of references: the current one, and that of logs from 2024.
const PROTOCOLS: [&str; 2] = ["attachment://", "tc://"];

/// The attachments of a sample.
pub(super) struct InspectAttachments<'a> {
    store: AttachmentStore<'a>,
    missing: Cell<u64>,
    /// The number of bytes that references may still expand to; `None` if they exceed the limit.
    remaining_bytes: Cell<Option<usize>>,
}

enum AttachmentStore<'a> {
    /// In the sample: `{hash: text}`.
    Inline {
        raw: Option<&'a RawValue>,
        /// The attachments by hash, found on first use.
        by_hash: OnceCell<HashMap<String, Attachment<'a>>>,
    },
    /// In separate members, by index.
    Chunks(AttachmentChunks<'a>),
}

/// An attachment, decoded on first use.
struct Attachment<'a> {
    raw: Option<&'a RawValue>,
    text: OnceCell<Option<SourceText<'a>>>,
    text_hash: OnceCell<u64>,
    escaped_len: OnceCell<usize>,
}

impl<'a> Attachment<'a> {
    fn from_raw(raw: &'a RawValue) -> Self {
        Self {
            raw: Some(raw),
            text: OnceCell::new(),
            text_hash: OnceCell::new(),
            escaped_len: OnceCell::new(),
        }
    }

    fn text(&self) -> Option<&str> {
        let text = self.text.get_or_init(|| json_string(self.raw?));
        text.as_deref()
    }

    fn from_text(text: String) -> Self {
        Self {
            raw: None,
            text: OnceCell::from(Some(SourceText::from(text))),
            text_hash: OnceCell::new(),
            escaped_len: OnceCell::new(),
        }
    }
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
pub(super) struct AttachmentChunks<'a> {
    archive: InspectArchive,
    /// The members in the order of their first elements.
    chunks: Vec<AttachmentChunk<'a>>,
    /// The number of bytes that may still be decompressed.
    remaining_bytes: Cell<usize>,
}

struct AttachmentChunk<'a> {
    chunk: ListChunk,
    /// The attachments, unpacked on first use.
    texts: OnceCell<Vec<Attachment<'a>>>,
}

impl<'a> AttachmentChunks<'a> {
    pub(super) fn new(archive: InspectArchive, chunks: Vec<ListChunk>) -> Self {
        let packed = |chunk| AttachmentChunk {
            chunk,
            texts: OnceCell::new(),
        };
        Self {
            archive,
            chunks: chunks.into_iter().map(packed).collect(),
            remaining_bytes: Cell::new(MAX_RECORD),
        }
    }

    fn find(&self, name: &str) -> Option<&Attachment<'a>> {
        // The name is an index into one list, of which each member holds a consecutive part.
        let number: u64 = name.parse().ok()?;
        // The last part that begins at or before this index contains it.
        let after = self.chunks.partition_point(|one| one.chunk.first <= number);
        let AttachmentChunk { chunk, texts } = self.chunks.get(after.checked_sub(1)?)?;
        let texts = texts.get_or_init(|| {
            // All parts of a sample share the size limit of one record.
            // A damaged member gives no texts, so its references count as missing.
            let bytes = self
                .archive
                .read_bytes(chunk.member, self.remaining_bytes.get())
                .unwrap_or_default();
            self.remaining_bytes
                .set(self.remaining_bytes.get() - bytes.len());
            let texts: Vec<String> = serde_json::from_slice(&bytes).unwrap_or_default();
            texts.into_iter().map(Attachment::from_text).collect()
        });
        texts.get(usize::try_from(number - chunk.first).ok()?)
    }
}

impl<'a> InspectAttachments<'a> {
    fn new(store: AttachmentStore<'a>) -> Self {
        Self {
            store,
            missing: Cell::new(0),
            remaining_bytes: Cell::new(Some(MAX_RECORD)),
        }
    }

    /// Returns the attachments in a sample.
    pub(super) fn from_sample(attachments: Option<&'a RawValue>) -> Self {
        Self::new(AttachmentStore::Inline {
            raw: attachments,
            by_hash: OnceCell::new(),
        })
    }

    /// Returns the attachments in separate members.
    pub(super) fn from_chunks(chunks: AttachmentChunks<'a>) -> Self {
        Self::new(AttachmentStore::Chunks(chunks))
    }

    /// Returns no attachments.
    pub(super) fn empty() -> Self {
        Self::from_sample(None)
    }

    /// Returns the number of references without an attachment.
    pub(super) fn missing(&self) -> u64 {
        self.missing.get()
    }

    /// Returns an error if the references so far expand to more than a record may have.
    pub(super) fn check_size(&self) -> Result<(), String> {
        let limit = MAX_RECORD / (1024 * 1024);
        match self.remaining_bytes.get() {
            Some(_) => Ok(()),
            None => Err(format!(
                "its references to attachments expand to more than {limit} MiB, which is the limit for a sample"
            )),
        }
    }

    /// Returns the text, or the attachment that it refers to. Above the size limit the reference stays as it is, and
    /// [`Self::check_size`] returns an error.
    pub(super) fn resolve<'t>(&'t self, text: SourceText<'t>) -> SourceText<'t> {
        let Some(name) = reference_name(&text) else {
            return text;
        };
        let attachment = self.find(name);
        match attachment.and_then(|found| Some((found, found.text()?))) {
            Some((found, resolved)) if self.count_expanded(found, resolved) => {
                SourceText::from(resolved)
            }
            Some(_) => text,
            None => {
                self.missing.set(self.missing.get() + 1);
                text
            }
        }
    }

    /// Returns a hash of the text, or of the attachment that it refers to.
    pub(super) fn hash_resolved(&self, text: &str) -> u64 {
        let attachment = reference_name(text).and_then(|name| self.find(name));
        match attachment.map(|found| (found, found.text())) {
            // An attachment is hashed once, however many events refer to it.
            Some((found, Some(resolved))) => *found.text_hash.get_or_init(|| hash_text(resolved)),
            _ => hash_text(text),
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

    /// Counts a text that replaces a reference. Returns false if all of them together are too long.
    fn count_expanded(&self, attachment: &Attachment<'_>, text: &str) -> bool {
        let len = *attachment.escaped_len.get_or_init(|| escaped_len(text));
        let remaining = self.remaining_bytes.get();
        let remaining = remaining.and_then(|remaining| remaining.checked_sub(len));
        self.remaining_bytes.set(remaining);
        remaining.is_some()
    }

    fn find(&self, name: &str) -> Option<&Attachment<'a>> {
        match &self.store {
            AttachmentStore::Chunks(chunks) => chunks.find(name),
            AttachmentStore::Inline { raw, by_hash } => {
                // The map is built on first use, because most samples have no reference.
                let by_hash = by_hash.get_or_init(|| {
                    let all = raw.map(|raw| serde_json::from_str(raw.get()).ok());
                    let all: HashMap<SourceText<'a>, &'a RawValue> =
                        all.flatten().unwrap_or_default();
                    let found = |(hash, raw): (SourceText<'_>, _)| {
                        (hash.to_string(), Attachment::from_raw(raw))
                    };
                    all.into_iter().map(found).collect()
                });
                // A hash contains no characters that JSON escapes.
                by_hash.get(name)
            }
        }
    }
}

/// Returns the name of the attachment that a text refers to.
fn reference_name(text: &str) -> Option<&str> {
    PROTOCOLS
        .iter()
        .find_map(|protocol| text.strip_prefix(protocol))
}

/// Returns the length of a text in a JSON string. dicta writes the text that way, so this length fills the memory.
fn escaped_len(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escape).sum()
}

fn hash_text(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}
