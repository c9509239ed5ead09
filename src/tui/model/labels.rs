//! Labels that are being changed here: what the files may not say yet, what can be taken back, what was written.
//!
//! A key counts at once, and is written elsewhere. The watcher then reads what we wrote: by the text it knows how far that
//! reading is, so that nothing newer is lost to an older look and nothing is told as if somebody else had saved.

use std::path::PathBuf;

use crate::model::{CellName, Label};
use crate::tui::msg::Written;
use crate::workspace::Workspace;
use crate::workspace::label_edit::fingerprint_text;

/// A file that no `labels:` names.
const FILE: &str = "labels.jsonl";
/// Texts that are known again.
const TEXTS: usize = 256;

/// A change that the files, as they were read last, need not hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Own {
    pub(crate) number: u64,
    pub(crate) name: CellName,
    pub(crate) label: Option<Label>,
    /// What was said before it.
    pub(crate) before: Option<Label>,
    /// It is in the file.
    pub(crate) written: bool,
    /// It takes this change back.
    pub(crate) undoes: Option<Box<Own>>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labelling {
    /// The last order.
    pub(crate) number: u64,
    /// Oldest first.
    pub(crate) own: Vec<Own>,
    /// What can be taken back, the newest last.
    pub(crate) done: Vec<Own>,
    /// Which text a number of ours made, or found: number, text, whether it was made.
    texts: Vec<(u64, u64, bool)>,
    /// The end was asked for while something was still to be written.
    pub(crate) leaving: bool,
}

/// Where labels of a workspace are written: into the file it reads them from, if it is of lines.
pub(crate) fn file_of(workspace: &Workspace) -> PathBuf {
    match &workspace.labels_file {
        Some(file) => file.clone(),
        None => workspace.root.join(FILE),
    }
}

/// Stands for the text of that file, as it was read last.
fn text_of(workspace: &Workspace) -> Option<u64> {
    let file = file_of(workspace);
    let mut files = workspace.files.iter();
    let (_, text) = files.find(|(path, _)| workspace.root.join(path) == file)?;
    Some(fingerprint_text(text.as_bytes()))
}

impl Labelling {
    /// Whether what was written last is what was read before: nobody will read it anew.
    pub(crate) fn is_as_read(&self, workspace: &Workspace) -> bool {
        let last = self.texts.last().map(|(_, text, _)| *text);
        last.is_some() && last == text_of(workspace)
    }

    /// Whether something is still to be written.
    pub(crate) fn writes(&self) -> bool {
        self.own.iter().any(|own| !own.written)
    }

    /// Remembers what a change made of the file.
    pub(crate) fn made(&mut self, number: u64, written: &Written) {
        self.texts.push((number, written.before, false));
        self.texts.push((number, written.after, true));
        let over = self.texts.len().saturating_sub(TEXTS);
        self.texts.drain(..over);
    }

    /// The files were read: takes out what they hold now, the names that are not waited for any more; and whether the text
    /// is one that we wrote.
    pub(crate) fn read(&mut self, workspace: &Workspace) -> (Vec<CellName>, bool) {
        let Some(text) = text_of(workspace) else {
            // It is not read here: what was said counts on.
            return (Vec::new(), false);
        };
        let is = |(_, known, _): &&(u64, u64, bool)| *known == text;
        let mine = self.texts.iter().filter(is).any(|(_, _, made)| *made);
        let known = self.texts.iter().rev().find(is).copied();
        let holds = |own: &Own| match known {
            Some((number, _, true)) => own.number <= number,
            Some((number, _, false)) => own.number < number,
            // Somebody else wrote after us: on top of what we had written.
            None => own.written,
        };
        let (held, waits): (Vec<Own>, Vec<Own>) = self.own.drain(..).partition(holds);
        self.own = waits;
        let names = held.into_iter().map(|own| own.name);
        let gone = names.filter(|name| self.own.iter().all(|own| own.name != *name));
        (gone.collect(), mine)
    }
}

#[cfg(test)]
mod tests;
