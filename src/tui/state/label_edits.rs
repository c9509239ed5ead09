//! Labels that are being changed here: what the files may not say yet, what can be taken back, what was written.
//!
//! A key counts at once, and is written elsewhere. The watcher then reads what we wrote: by the text it knows how far that
//! reading is, so that nothing newer is lost to an older look and nothing is told as if somebody else had saved.

use std::path::PathBuf;

use crate::model::{CellName, Label};
use crate::tui::label_write::WrittenLabel;
use crate::workspace::Workspace;
use crate::workspace::label_edit::fingerprint_text;

/// A file that no `labels:` names.
const DEFAULT_LABELS_FILE: &str = "labels.jsonl";
/// Texts that are known again.
const MAX_KNOWN_TEXTS: usize = 256;

/// A change that the files, as they were read last, need not hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelEdit {
    pub(crate) number: u64,
    pub(crate) name: CellName,
    pub(crate) label: Option<Label>,
    /// What was said before it.
    pub(crate) previous: Option<Label>,
    /// It is in the file.
    pub(crate) written: bool,
    /// It takes this change back.
    pub(crate) undoes: Option<Box<LabelEdit>>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelEdits {
    /// The last order.
    pub(crate) last_number: u64,
    /// Oldest first.
    pub(crate) pending: Vec<LabelEdit>,
    /// What can be taken back, the newest last.
    pub(crate) undo_stack: Vec<LabelEdit>,
    /// Which text a number of ours made, or found: number, text, whether it was made.
    known_texts: Vec<(u64, u64, bool)>,
    /// The end was asked for while something was still to be written.
    pub(crate) quit_when_written: bool,
}

/// Where labels of a workspace are written: into the file it reads them from, if it is of lines.
pub(crate) fn labels_file_path(workspace: &Workspace) -> PathBuf {
    match &workspace.labels_file {
        Some(file) => file.clone(),
        None => workspace.root.join(DEFAULT_LABELS_FILE),
    }
}

/// Stands for the text of that file, as it was read last.
fn hash_labels_file(workspace: &Workspace) -> Option<u64> {
    let file = labels_file_path(workspace);
    let mut files = workspace.files.iter();
    let (_, text) = files.find(|(path, _)| workspace.root.join(path) == file)?;
    Some(fingerprint_text(text.as_bytes()))
}

impl LabelEdits {
    /// Whether what was written last is what was read before: nobody will read it anew.
    pub(crate) fn matches_loaded_file(&self, workspace: &Workspace) -> bool {
        let last = self.known_texts.last().map(|(_, text, _)| *text);
        last.is_some() && last == hash_labels_file(workspace)
    }

    /// Whether something is still to be written.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.pending.iter().any(|own| !own.written)
    }

    /// Remembers what a change made of the file.
    pub(crate) fn remember_written(&mut self, number: u64, written: &WrittenLabel) {
        self.known_texts.push((number, written.text_before, false));
        self.known_texts.push((number, written.text_after, true));
        let over = self.known_texts.len().saturating_sub(MAX_KNOWN_TEXTS);
        self.known_texts.drain(..over);
    }

    /// The files were read: takes out what they hold now, the names that are not waited for any more; and whether the text
    /// is one that we wrote.
    pub(crate) fn reconcile_with_files(&mut self, workspace: &Workspace) -> (Vec<CellName>, bool) {
        let Some(text) = hash_labels_file(workspace) else {
            // It is not read here: what was said counts on.
            return (Vec::new(), false);
        };
        let is = |(_, known, _): &&(u64, u64, bool)| *known == text;
        let mine = self.known_texts.iter().filter(is).any(|(_, _, made)| *made);
        let known = self.known_texts.iter().rev().find(is).copied();
        let holds = |own: &LabelEdit| match known {
            Some((number, _, true)) => own.number <= number,
            Some((number, _, false)) => own.number < number,
            // Somebody else wrote after us: on top of what we had written.
            None => own.written,
        };
        let (held, waits): (Vec<LabelEdit>, Vec<LabelEdit>) =
            self.pending.drain(..).partition(holds);
        self.pending = waits;
        let names = held.into_iter().map(|own| own.name);
        let gone = names.filter(|name| self.pending.iter().all(|own| own.name != *name));
        (gone.collect(), mine)
    }
}

#[cfg(test)]
mod tests;
