//! Long texts and media that stand once beside a sample's messages, put back where they are referred to.
//!
//! Read when first asked for, and only those parts that are. Inspect leaves a reference without an attachment as it is;
//! so is it here, and counted.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::archive::InspectArchive;
use crate::model::{JsonText, SourceText};
use crate::transcript::MAX_RECORD;

/// How a reference begins: today, and in logs of 2024.
const PROTOCOLS: [&str; 2] = ["attachment://", "tc://"];

/// A sample's attachments.
pub(super) struct InspectAttachments<'a> {
    store: AttachmentStore<'a>,
    missing: Cell<u64>,
}

enum AttachmentStore<'a> {
    /// In the sample: `{hash: text}`.
    Inline(
        Option<&'a RawValue>,
        OnceCell<HashMap<SourceText<'a>, &'a RawValue>>,
    ),
    /// In members of their own, by number.
    Chunks(AttachmentChunks),
}

/// Members that hold a list of texts each; together they are one list.
pub(super) struct AttachmentChunks {
    pub(super) archive: InspectArchive,
    /// The number of the first text in each member, rising, and the member.
    pub(super) starts: Vec<(u64, usize)>,
    unpacked: RefCell<HashMap<usize, Vec<String>>>,
    /// So many bytes may still be unpacked.
    remaining_bytes: Cell<usize>,
}

impl AttachmentChunks {
    pub(super) fn new(archive: InspectArchive, starts: Vec<(u64, usize)>) -> Self {
        Self {
            archive,
            starts,
            unpacked: RefCell::default(),
            remaining_bytes: Cell::new(MAX_RECORD),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        let number: u64 = name.parse().ok()?;
        let after = self.starts.partition_point(|(start, _)| *start <= number);
        let (start, member) = *self.starts.get(after.checked_sub(1)?)?;
        let mut read = self.unpacked.borrow_mut();
        let texts = read.entry(member).or_insert_with(|| {
            let bytes = self
                .archive
                .read_bytes(member, self.remaining_bytes.get())
                .unwrap_or_default();
            self.remaining_bytes
                .set(self.remaining_bytes.get() - bytes.len());
            serde_json::from_slice(&bytes).unwrap_or_default()
        });
        texts.get(usize::try_from(number - start).ok()?).cloned()
    }
}

impl<'a> InspectAttachments<'a> {
    /// Those that stand in the sample.
    pub(super) fn from_sample(attachments: Option<&'a RawValue>) -> Self {
        Self {
            store: AttachmentStore::Inline(attachments, OnceCell::new()),
            missing: Cell::new(0),
        }
    }

    /// Those that stand in members of their own.
    pub(super) fn from_chunks(chunks: AttachmentChunks) -> Self {
        Self {
            store: AttachmentStore::Chunks(chunks),
            missing: Cell::new(0),
        }
    }

    /// None at all.
    pub(super) fn empty() -> Self {
        Self::from_sample(None)
    }

    /// How many references led nowhere.
    pub(super) fn missing(&self) -> u64 {
        self.missing.get()
    }

    /// The text, or the attachment it stands for.
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

    /// A part with its attachment put back; `None` where it refers to none.
    pub(super) fn resolve_media(&self, raw: &RawValue) -> Option<JsonText<'static>> {
        let refers = PROTOCOLS.iter().any(|protocol| {
            memchr::memmem::find(raw.get().as_bytes(), protocol.as_bytes()).is_some()
        });
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
            AttachmentStore::Inline(raw, read) => {
                let read = read.get_or_init(|| {
                    let all = raw.map(|raw| serde_json::from_str(raw.get()).ok());
                    all.flatten().unwrap_or_default()
                });
                // A hash holds nothing that would have to be escaped.
                serde_json::from_str(read.get(&SourceText::from(name))?.get()).ok()
            }
        }
    }
}
