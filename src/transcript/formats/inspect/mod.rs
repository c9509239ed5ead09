//! Inspect's logs: `.eval` (a ZIP archive with a member for each sample) and `.json` (one object with all samples).
//!
//! Responsible for the data of the whole log and for the ids. A sample's **id** is `<id>` if the log has one epoch,
//! else `<id>_epoch_<n>`, as in Inspect's file names. Both parts come from the JSON, because a file name may contain
//! anything. `eval.rs` and `json.rs` read the two files, and `sample.rs` converts a sample. Checked against the output
//! of Inspect 0.3.60 to 0.3.285. Does not write logs.

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

/// The size limit of a log's header, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024 * 1024;

/// The data of a log that applies to all samples.
#[derive(Debug, Default, Clone)]
struct InspectLog {
    task: Option<String>,
    model: Option<String>,
    tags: Vec<String>,
    epochs: u64,
    /// The only scorer of an old log.
    scorer: String,
}

impl InspectLog {
    /// Parses the known part of a log's header: `eval`, `results`, `tags`. It does not build a tree, because a tree of
    /// small numbers takes a hundred times the size of the text.
    fn parse(header: &str) -> Result<Self, String> {
        let header = RawFields::parse(header)?;
        let eval = header.object("eval").unwrap_or_default();
        let results = header.object("results").unwrap_or_default();
        let text =
            |fields: &RawFields<'_>, key: &str| fields.text(key).map(|text| text.0.into_owned());
        let tags = |fields: &RawFields<'_>| -> Vec<String> {
            let tags = fields.list("tags").unwrap_or_default();
            let tags = tags.into_iter().filter_map(json_string);
            tags.map(|tag| tag.0.into_owned()).collect()
        };
        // The tags at the top level are the result of later edits.
        let edited = tags(&header);
        // Logs from 2024 have one `scorer`; newer ones list `scores`.
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
            // A log without this number has one epoch.
            epochs: config.integer("epochs").unwrap_or(1),
            scorer: scorer
                .and_then(|scorer| text(&scorer, "name"))
                .unwrap_or_else(|| "score".to_owned()),
        })
    }

    /// A sample's id. `id` is JSON: text or a number.
    fn sample_id(&self, id: &str, epoch: u64) -> String {
        // The id is JSON text. A number keeps its digits, because it does not parse as a string.
        let id: String = serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
        self.sample_id_from_text(&id, epoch)
    }

    /// The same of an id that is text.
    fn sample_id_from_text(&self, id: &str, epoch: u64) -> String {
        // With several epochs, the samples of one id would share a transcript id.
        if self.epochs > 1 || epoch != 1 {
            format!("{id}_epoch_{epoch}")
        } else {
            id.to_owned()
        }
    }
}
