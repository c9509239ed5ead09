//! Inspect's logs: `.eval` (a zip with a member for each sample) and `.json` (one object with all of them).
//!
//! Owns what both have in common: the log's own facts and the ids. A sample's **id** is Inspect's, `<id>`, where the log
//! has one epoch, else `<id>_epoch_<n>`, which is how Inspect calls its files; both come from the JSON, since a name may
//! hold anything. `eval.rs` reads the one file, `json.rs` the other, `sample.rs` tells what becomes of a sample.
//!
//! Checked against what Inspect 0.3.60 to 0.3.285 writes. Refuses to write: logs are Inspect's.

mod archive;
mod attachments;
mod chunked;
mod eval;
mod events;
mod json;
mod message;
mod sample;
mod scores;

#[cfg(test)]
mod tests;

use serde_json::Value;
use serde_json::value::RawValue;

use attachments::Attachments;

use crate::model::Text;

pub(super) use eval::open as open_eval;
pub(super) use json::open as open_json;

/// What a log says of all its samples.
#[derive(Debug, Default, Clone)]
struct Log {
    task: Option<String>,
    model: Option<String>,
    tags: Vec<String>,
    epochs: u64,
    /// The scorer of logs that had one only.
    scorer: String,
}

impl Log {
    /// From a log's header, or as much of it as is known: `eval`, `results`, `tags`.
    fn of(header: &Value) -> Self {
        let text = |at: &str| {
            header
                .pointer(at)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let tags = |at: &str| {
            let tags = header.pointer(at).and_then(Value::as_array);
            let tags = tags.into_iter().flatten().filter_map(Value::as_str);
            tags.map(str::to_owned).collect::<Vec<_>>()
        };
        // Those at the top are what became of them later.
        let edited = tags("/tags");
        let scorer = text("/results/scorer/name").or_else(|| text("/results/scores/0/name"));
        Self {
            task: text("/eval/task"),
            model: text("/eval/model"),
            tags: if edited.is_empty() {
                tags("/eval/tags")
            } else {
                edited
            },
            epochs: header
                .pointer("/eval/config/epochs")
                .and_then(Value::as_u64)
                .unwrap_or(1),
            scorer: scorer.unwrap_or_else(|| "score".to_owned()),
        }
    }

    /// A sample's id. `id` is JSON: text or a number.
    fn id(&self, id: &str, epoch: u64) -> String {
        let id: String = serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
        self.named(&id, epoch)
    }

    /// The same of an id that is text.
    fn named(&self, id: &str, epoch: u64) -> String {
        if self.epochs > 1 || epoch != 1 {
            format!("{id}_epoch_{epoch}")
        } else {
            id.to_owned()
        }
    }
}

/// The text of a JSON string; `None` for anything else.
fn string(raw: &RawValue) -> Option<Text<'_>> {
    raw.get()
        .starts_with('"')
        .then(|| serde_json::from_str(raw.get()).ok())?
}
