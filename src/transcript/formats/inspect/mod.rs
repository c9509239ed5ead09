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
mod wire;

#[cfg(test)]
mod tests;

use attachments::InspectAttachments;

use crate::transcript::fields::RawFields;
use crate::transcript::native::json_string;

pub(super) use eval::open as open_eval;
pub(super) use json::open as open_json;

/// Facts of a log are no longer than this.
const MAX_HEADER_BYTES: usize = 16 * 1024 * 1024;

/// What a log says of all its samples.
#[derive(Debug, Default, Clone)]
struct InspectLog {
    task: Option<String>,
    model: Option<String>,
    tags: Vec<String>,
    epochs: u64,
    /// The scorer of logs that had one only.
    scorer: String,
}

impl InspectLog {
    /// From a log's header, or as much of it as is known: `eval`, `results`, `tags`. Never made a tree: one of small
    /// numbers is a hundred times its text.
    fn parse(header: &str) -> Result<Self, String> {
        let header = RawFields::parse(header)?;
        let eval = header.object("eval").unwrap_or_default();
        let results = header.object("results").unwrap_or_default();
        let text = |of: &RawFields<'_>, key: &str| of.text(key).map(|text| text.0.into_owned());
        let tags = |of: &RawFields<'_>| -> Vec<String> {
            let tags = of.list("tags").unwrap_or_default();
            let tags = tags.into_iter().filter_map(json_string);
            tags.map(|tag| tag.0.into_owned()).collect()
        };
        // Those at the top are what became of them later.
        let edited = tags(&header);
        let scorer = results.object("scorer").or_else(|| {
            let scores = results.list("scores")?;
            RawFields::from_raw(scores.first()?)
        });
        let config = eval.object("config").unwrap_or_default();
        Ok(Self {
            task: text(&eval, "task"),
            model: text(&eval, "model"),
            tags: if edited.is_empty() {
                tags(&eval)
            } else {
                edited
            },
            epochs: config.integer("epochs").unwrap_or(1),
            scorer: scorer
                .and_then(|scorer| text(&scorer, "name"))
                .unwrap_or_else(|| "score".to_owned()),
        })
    }

    /// A sample's id. `id` is JSON: text or a number.
    fn sample_id(&self, id: &str, epoch: u64) -> String {
        let id: String = serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
        self.sample_id_from_text(&id, epoch)
    }

    /// The same of an id that is text.
    fn sample_id_from_text(&self, id: &str, epoch: u64) -> String {
        if self.epochs > 1 || epoch != 1 {
            format!("{id}_epoch_{epoch}")
        } else {
            id.to_owned()
        }
    }
}
