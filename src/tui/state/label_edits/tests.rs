use std::sync::Arc;

use super::*;
use crate::diag::LoadedFile;
use crate::workspace::label_edit::fingerprint_text;
use crate::workspace::{Env, load};

/// Returns a workspace whose labels file contains this text.
fn workspace_with_labels(text: &str) -> Workspace {
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("a file");
    };
    file("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n");
    file("t.jsonl", "{\"id\":\"a\",\"messages\":[]}\n");
    file(
        "r.yaml",
        "id: r\nevals: [{id: x, type: contains, params: {patterns: [a]}}]\n",
    );
    let registry = crate::handlers::EvalTypeRegistry::builtin();
    let mut workspace = load(dir.path(), &Env::default(), &registry).expect("it loads");
    workspace
        .files
        .retain(|file| !file.path.ends_with("labels.jsonl"));
    workspace.files.push(LoadedFile {
        path: "labels.jsonl".into(),
        text: Arc::from(text),
    });
    assert_eq!(
        workspace.labels_file_path(),
        workspace.root.join("labels.jsonl")
    );
    workspace
}

/// Reads a labels file with this text. Returns the transcripts without pending edits, and true if dicta wrote it.
fn read(labelling: &mut LabelEdits, text: &str) -> (Vec<String>, bool) {
    let (names, mine) = labelling.reconcile_with_files(&workspace_with_labels(text));
    let names = names.into_iter().map(|name| name.transcript);
    (names.collect(), mine)
}

/// Returns two changes and the texts that they wrote.
fn two() -> LabelEdits {
    let mut labelling = LabelEdits::default();
    for (number, transcript) in [(1, "a"), (2, "b")] {
        let name = format!("{transcript}/r/x").parse().expect("a name");
        labelling.pending.push(LabelEdit {
            number,
            name,
            label: None,
            previous: None,
            written: false,
            undoes: None,
        });
    }
    labelling
}

fn written(labelling: &mut LabelEdits, number: u64, before: &str, after: &str) {
    let written = WrittenLabel {
        label: None,
        text_before: fingerprint_text(before.as_bytes()),
        text_after: fingerprint_text(after.as_bytes()),
    };
    labelling.remember_written(number, &written);
    labelling.pending[usize::try_from(number - 1).expect("small")].written = true;
}

#[test]
fn older_reload_keeps_newer_label_edits() {
    let mut labelling = two();
    assert!(labelling.has_unwritten());
    written(&mut labelling, 1, "", "one");
    written(&mut labelling, 2, "one", "two");
    // The text from before both changes, from another program or an early read: no change is known to be in it.
    assert_eq!(read(&mut labelling, "").0, Vec::<String>::new());
    // The text after the first change alone.
    assert_eq!(read(&mut labelling, "one"), (vec!["a".to_owned()], true));
    assert_eq!(read(&mut labelling, "two"), (vec!["b".to_owned()], true));
    assert!(labelling.pending.is_empty() && !labelling.has_unwritten());
}

#[test]
fn reload_with_an_unknown_text_waits_for_the_result_of_a_write() {
    let mut labelling = two();
    let reload = |text: &str, file: &str| HeldReload {
        workspace: Arc::new(workspace_with_labels(text)),
        changed: vec![file.into()],
    };
    // The watcher is faster than the results of both writes.
    assert!(labelling.admit_reload(reload("one", "r.yaml")).is_none());
    assert!(
        labelling
            .admit_reload(reload("two", "labels.jsonl"))
            .is_none()
    );
    written(&mut labelling, 1, "", "one");
    assert!(labelling.release_reload().is_none());
    written(&mut labelling, 2, "one", "two");
    let released = labelling.release_reload().expect("both are written");
    let changed: Vec<PathBuf> = vec!["r.yaml".into(), "labels.jsonl".into()];
    assert_eq!(released.changed, changed);
    assert!(labelling.release_reload().is_none());
    // Without a write, nothing waits.
    assert!(labelling.admit_reload(reload("other", "r.yaml")).is_some());
}

#[test]
fn text_of_another_program_replaces_label_edits() {
    let mut labelling = two();
    written(&mut labelling, 1, "", "one");
    // The second change is not written yet and continues to count.
    let (names, mine) = read(&mut labelling, "one, and more");
    assert_eq!((names, mine), (vec!["a".to_owned()], false));
    assert_eq!(labelling.pending.len(), 1);
}
