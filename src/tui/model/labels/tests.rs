use std::sync::Arc;

use super::*;
use crate::workspace::label_edit::fingerprint_text;
use crate::workspace::{Env, load};

/// A workspace whose labels file holds these texts, one after the other.
fn read(labelling: &mut Labelling, text: &str) -> (Vec<String>, bool) {
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
    workspace.files.retain(|(path, _)| !path.ends_with(FILE));
    workspace.files.push((FILE.into(), Arc::from(text)));
    assert_eq!(file_of(&workspace), workspace.root.join(FILE));
    let (names, mine) = labelling.read(&workspace);
    let names = names.into_iter().map(|name| name.transcript);
    (names.collect(), mine)
}

/// Two changes; what they made of the file.
fn two() -> Labelling {
    let mut labelling = Labelling::default();
    for (number, transcript) in [(1, "a"), (2, "b")] {
        let name = format!("{transcript}/r/x").parse().expect("a name");
        labelling.own.push(Own {
            number,
            name,
            label: None,
            before: None,
            written: false,
            undoes: None,
        });
    }
    labelling
}

fn written(labelling: &mut Labelling, number: u64, before: &str, after: &str) {
    let written = Written {
        label: None,
        before: fingerprint_text(before.as_bytes()),
        after: fingerprint_text(after.as_bytes()),
    };
    labelling.made(number, &written);
    labelling.own[usize::try_from(number - 1).expect("small")].written = true;
}

#[test]
fn an_older_look_at_the_file_takes_nothing_newer_away() {
    let mut labelling = two();
    assert!(labelling.writes());
    written(&mut labelling, 1, "", "one");
    written(&mut labelling, 2, "one", "two");
    // As it was before all of it: somebody's, or read too early; nothing is known to be there.
    assert_eq!(read(&mut labelling, "").0, Vec::<String>::new());
    // After the first alone.
    assert_eq!(read(&mut labelling, "one"), (vec!["a".to_owned()], true));
    assert_eq!(read(&mut labelling, "two"), (vec!["b".to_owned()], true));
    assert!(labelling.own.is_empty() && !labelling.writes());
}

#[test]
fn what_another_program_wrote_over_ours_counts() {
    let mut labelling = two();
    written(&mut labelling, 1, "", "one");
    // The second is not written yet, and counts on.
    let (names, mine) = read(&mut labelling, "one, and more");
    assert_eq!((names, mine), (vec!["a".to_owned()], false));
    assert_eq!(labelling.own.len(), 1);
}
