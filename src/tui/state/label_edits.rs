//! Labels that were set here: those that the loaded files do not contain yet, those that can be undone, and the
//! results of writes.
//!
//! A label counts at once and is written in the background. The watcher then reads our own text. Its hash shows how
//! recent that text is, so an old text never replaces a newer label.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{CellName, Label};
use crate::tui::label_write::{MovedLabels, WrittenLabel};
use crate::workspace::Workspace;
use crate::workspace::label_edit::fingerprint_text;

/// The number of text hashes that are remembered.
const MAX_KNOWN_TEXTS: usize = 256;

/// A change that the loaded files may not contain yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelEdit {
    pub(crate) number: u64,
    pub(crate) name: CellName,
    pub(crate) label: Option<Label>,
    /// The label before the change.
    pub(crate) previous: Option<Label>,
    /// True if the change is in the file.
    pub(crate) written: bool,
    /// The change that this one undoes.
    pub(crate) undoes: Option<Box<LabelEdit>>,
}

/// A move of labels that can be undone.
#[derive(Debug, Clone, PartialEq)]
struct LabelMove {
    /// The number in the order of all changes.
    number: u64,
    moved: MovedLabels,
}

/// The label edits: see the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelEdits {
    /// The number of the last order.
    pub(crate) last_number: u64,
    /// The changes that the loaded files may not contain, oldest first.
    pub(crate) pending: Vec<LabelEdit>,
    /// The changes that can be undone, newest last.
    pub(crate) undo_stack: Vec<LabelEdit>,
    /// The moves of labels to the new names of their evals, newest last.
    moves: Vec<LabelMove>,
    /// The newest texts that orders found or wrote, oldest first.
    known_texts: Vec<KnownText>,
    /// True if the user quit while a label was not written yet.
    pub(crate) quit_when_written: bool,
    /// A reload whose labels file may be dicta's own write. It waits for the result of the write.
    held_reload: Option<HeldReload>,
}

/// A reloaded workspace and the files that changed.
#[derive(Debug, Clone)]
pub(crate) struct HeldReload {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) changed: Vec<PathBuf>,
}

impl HeldReload {
    /// Adds the changed files of an earlier reload that was not applied.
    pub(crate) fn merge_earlier(self, earlier: Option<Self>) -> Self {
        let mut changed = earlier.map_or_else(Vec::new, |earlier| earlier.changed);
        changed.retain(|path| !self.changed.contains(path));
        changed.extend(self.changed);
        Self { changed, ..self }
    }
}

/// A text of the labels file that an order found or wrote.
#[derive(Debug, Clone, Copy)]
struct KnownText {
    /// The number of the order.
    order: u64,
    /// The hash of the text.
    hash: u64,
    /// True if the order wrote the text, false if it found it.
    written: bool,
}

/// Returns the hash of that file's text as it was loaded.
fn hash_labels_file(workspace: &Workspace) -> Option<u64> {
    let file = workspace.labels_file_path();
    let mut files = workspace.files.iter();
    let found = files.find(|known| workspace.root.join(&known.path) == file)?;
    // The loaded text lacks the answers of sealed labels, so its hash would never match.
    let sealed = workspace.sealed.as_ref();
    if let Some(hash) = sealed.and_then(|sealed| sealed.fingerprint(&found.path)) {
        return Some(hash);
    }
    Some(fingerprint_text(found.text.as_bytes()))
}

/// Returns true if the workspace has an empty labels file that the former version lacked. dicta creates such a file to
/// lock it, and then writes the first label.
pub(crate) fn is_created_for_first_label(before: &Workspace, now: &Workspace) -> bool {
    hash_labels_file(before).is_none() && hash_labels_file(now) == Some(fingerprint_text(b""))
}

impl LabelEdits {
    /// Returns true if a change of labels can be undone.
    pub(crate) fn can_undo(&self) -> bool {
        !self.undo_stack.is_empty() || !self.moves.is_empty()
    }

    /// Adds a move of labels.
    pub(crate) fn add_move(&mut self, moved: MovedLabels) {
        self.last_number += 1;
        self.moves.push(LabelMove {
            number: self.last_number,
            moved,
        });
    }

    /// Removes the newest move and returns it, if it is the newest of all changes.
    pub(crate) fn take_newest_move(&mut self) -> Option<MovedLabels> {
        let newest_label = self.undo_stack.last().map_or(0, |edit| edit.number);
        let newest = self.moves.pop_if(|newest| newest.number > newest_label)?;
        Some(newest.moved)
    }

    /// Returns true if the loaded text is the one that was written last, so no reload follows.
    pub(crate) fn matches_loaded_file(&self, workspace: &Workspace) -> bool {
        let last = self.known_texts.last().map(|known| known.hash);
        last.is_some() && last == hash_labels_file(workspace)
    }

    /// Returns true if a label is not written yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.pending.iter().any(|edit| !edit.written)
    }

    /// Returns the reload if it can be applied now. A labels file with an unknown text waits while a label is being
    /// written: the watcher may be faster than the result of the write.
    pub(crate) fn admit_reload(&mut self, reload: HeldReload) -> Option<HeldReload> {
        let reload = reload.merge_earlier(self.held_reload.take());
        if self.may_be_own_write(&reload.workspace) {
            self.held_reload = Some(reload);
            return None;
        }
        Some(reload)
    }

    /// Returns the reload that waited for the result of a write, unless it still waits for another one.
    pub(crate) fn release_reload(&mut self) -> Option<HeldReload> {
        let held = self.held_reload.take()?;
        self.admit_reload(held)
    }

    fn may_be_own_write(&self, workspace: &Workspace) -> bool {
        let is_known = |text: u64| self.known_texts.iter().any(|known| known.hash == text);
        self.has_unwritten() && hash_labels_file(workspace).is_some_and(|text| !is_known(text))
    }

    /// Stores the text hashes before and after a write.
    pub(crate) fn remember_written(&mut self, number: u64, written: &WrittenLabel) {
        // The text before the write matters if a reload is late and still reads the old file.
        self.known_texts.extend([
            KnownText {
                order: number,
                hash: written.text_before,
                written: false,
            },
            KnownText {
                order: number,
                hash: written.text_after,
                written: true,
            },
        ]);
        // The oldest texts go first: a late reload has one of the newest.
        let over = self.known_texts.len().saturating_sub(MAX_KNOWN_TEXTS);
        self.known_texts.drain(..over);
    }

    /// Compares the edits with reloaded files and removes those that the files contain. Returns the names without
    /// pending edits, and true if dicta wrote the text.
    pub(crate) fn reconcile_with_files(&mut self, workspace: &Workspace) -> (Vec<CellName>, bool) {
        let Some(text) = hash_labels_file(workspace) else {
            // The file is not among the loaded ones, so the edits continue to count.
            return (Vec::new(), false);
        };
        // Two orders may produce the same text, for example after an undo.
        let matches = |known: &&KnownText| known.hash == text;
        let written_by_dicta = self
            .known_texts
            .iter()
            .filter(matches)
            .any(|known| known.written);
        let known = self.known_texts.iter().rfind(matches).copied();
        let is_in_file = |edit: &LabelEdit| match known {
            // The file contains the changes up to the order that wrote it.
            Some(known) if known.written => edit.number <= known.order,
            // The order found this text, so its own change is not in it.
            Some(known) => edit.number < known.order,
            // Another program wrote after dicta and kept dicta's changes.
            None => edit.written,
        };
        let (in_file, pending): (Vec<LabelEdit>, Vec<LabelEdit>) =
            self.pending.drain(..).partition(is_in_file);
        self.pending = pending;
        let names = in_file.into_iter().map(|edit| edit.name);
        // A newer edit of the same decision still counts.
        let gone = names.filter(|name| self.pending.iter().all(|edit| edit.name != *name));
        (gone.collect(), written_by_dicta)
    }
}

#[cfg(test)]
mod tests;
