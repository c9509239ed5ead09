//! Failure modes: the groups of notes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A failure mode: one entry of `modes.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureMode {
    /// The id that notes name. It never changes.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// One or two sentences: when the mode occurs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// The day on which the mode was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The ids of notes that show the mode best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The modes that were merged into this one. Notes with their ids count for this mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formerly: Vec<FormerMode>,
    /// Unknown keys, which dicta keeps.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A mode that was merged into another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FormerMode {
    /// The id.
    pub id: String,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The definition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// The day of the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
}

/// The modes in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModeList {
    /// The modes.
    pub modes: Vec<FailureMode>,
}

impl ModeList {
    /// Returns the current id of a mode; follows merges. `None` for an unknown id.
    pub fn resolve(&self, id: &str) -> Option<&str> {
        let found = self.modes.iter().find(|mode| mode.id == id).or_else(|| {
            let was = |mode: &&FailureMode| mode.formerly.iter().any(|former| former.id == id);
            self.modes.iter().find(was)
        });
        found.map(|mode| mode.id.as_str())
    }

    /// Returns a mode by its current id.
    pub fn find(&self, id: &str) -> Option<&FailureMode> {
        self.modes.iter().find(|mode| mode.id == id)
    }

    /// Returns a mode by its id, its name, or the beginning of its id, if only one mode fits.
    pub fn find_by_word(&self, word: &str) -> Option<&FailureMode> {
        let same_name = |mode: &&FailureMode| mode.name.eq_ignore_ascii_case(word);
        let exact = self
            .resolve(word)
            .and_then(|id| self.find(id))
            .or_else(|| self.modes.iter().find(same_name));
        exact.or_else(|| {
            let mut begins = self.modes.iter().filter(|mode| mode.id.starts_with(word));
            let first = begins.next()?;
            begins.next().is_none().then_some(first)
        })
    }

    /// Returns answers with current ids. If a merge joins a "yes" and a "no", the joined mode occurs.
    pub fn resolve_answers(&self, answers: &BTreeMap<String, bool>) -> BTreeMap<String, bool> {
        let mut resolved: BTreeMap<String, bool> = BTreeMap::new();
        for (id, occurs) in answers {
            if let Some(id) = self.resolve(id) {
                *resolved.entry(id.to_owned()).or_default() |= occurs;
            }
        }
        resolved
    }

    /// Returns every id that is in use now or was before.
    fn all_ids(&self) -> impl Iterator<Item = &str> {
        self.modes.iter().flat_map(|mode| {
            let former = mode.formerly.iter().map(|former| former.id.as_str());
            std::iter::once(mode.id.as_str()).chain(former)
        })
    }

    /// Returns an id for a name: its words with hyphens, and a number if the id is in use.
    pub fn new_id(&self, name: &str) -> String {
        let words: Vec<String> = name
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .take(6)
            .collect();
        let stem = if words.is_empty() {
            "mode".to_owned()
        } else {
            words.join("-")
        };
        let is_free = |id: &str| self.all_ids().all(|used| used != id);
        if is_free(&stem) {
            return stem;
        }
        let mut numbered = (2_u32..).map(|number| format!("{stem}-{number}"));
        numbered.find(|id| is_free(id)).unwrap_or(stem)
    }
}
