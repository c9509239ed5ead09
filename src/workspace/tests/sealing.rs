//! The seal of the test part: nothing that a loaded workspace shows depends on the answer of a sealed label.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::model::SplitPart;

const SPLIT: &str = "labels: [{ path: labels.jsonl, split: { test: 0.5, seed: 3 } }, { path: sheet.csv, eval: a }]\n";
const COUNT: u8 = 8;

/// A label of the test: a transcript, an author, and what the person answered.
#[derive(Debug, Clone)]
struct TestLabel {
    transcript: u8,
    by: u8,
    eval: &'static str,
    passed: bool,
    flipped: Option<bool>,
    score: Option<f64>,
    in_table: bool,
}

fn any_label() -> impl Strategy<Value = TestLabel> {
    let eval = prop_oneof![4 => Just("a"), 1 => Just("gone")];
    let score = prop::option::of(prop_oneof![Just(0.5), Just(7.0)]);
    let answers = (any::<bool>(), any::<Option<bool>>());
    (0..COUNT + 2, 0..2_u8, eval, answers, score, any::<bool>()).prop_map(
        |(transcript, by, eval, (passed, flipped), score, in_table)| TestLabel {
            transcript,
            by,
            eval,
            passed,
            flipped,
            score,
            in_table: in_table && eval == "a",
        },
    )
}

/// Writes the labels. `flips` selects those that get another answer.
fn write(folder: &Folder, labels: &[TestLabel], flips: impl Fn(&str) -> bool) {
    let mut lines = "\u{feff}".to_owned();
    let mut table = "transcript,passed,by,note\n".to_owned();
    for label in labels {
        let id = format!("t{}", label.transcript);
        let flipped = flips(&id);
        let passed = if flipped {
            label.flipped
        } else {
            Some(label.passed)
        };
        if label.in_table {
            // An empty verdict is not a label, so a table has only passes and fails.
            let word = passed.unwrap_or(!label.passed);
            let _infallible = writeln!(table, "{id},{word},p{},note on {word}", label.by);
        } else {
            let score = label.score.filter(|_| !flipped || label.score == Some(7.0));
            let line = json!({
                "transcript": id, "eval": label.eval, "by": format!("p{}", label.by),
                "passed": passed, "score": score, "note": format!("it is {passed:?}"),
            });
            let _infallible = writeln!(lines, "{line}");
        }
    }
    folder.write("labels.jsonl", &lines);
    folder.write("sheet.csv", &table);
}

/// Returns everything of a workspace that a command can read without an unsealing.
fn visible(folder: &Folder) -> String {
    let workspace = match folder.load() {
        Ok(workspace) => workspace,
        Err(problems) => return format!("{:?}", lines(&problems)),
    };
    let ids = (0..COUNT).map(|at| format!("t{at}")).collect();
    let strays = find_stray_labels(&workspace, &ids);
    let sealed = workspace.sealed.as_ref().expect("a split");
    let mut known: Vec<String> = sealed.list().map(|label| format!("{label:?}")).collect();
    known.push(format!("{:?}", workspace.count_sealed()));
    let problems = workspace.label_problems.iter().chain(&workspace.warnings);
    let rendered = crate::diag::render(&problems.cloned().collect::<Vec<_>>(), false, 100);
    let strays = crate::diag::render(&strays, false, 100);
    format!(
        "{:?} {:?} {:?} {known:?} {rendered} {strays}",
        workspace.labels, workspace.label_places, workspace.files,
    )
}

fn split_folder() -> Folder {
    let folder = config(SPLIT);
    let transcripts = (0..COUNT).map(|at| format!("{{\"id\":\"t{at}\",\"messages\":[]}}\n"));
    folder.write("t.jsonl", &transcripts.collect::<String>());
    folder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn loaded_workspace_shows_nothing_of_a_sealed_answer(
        labels in prop::collection::vec(any_label(), 0..24),
    ) {
        let folder = split_folder();
        write(&folder, &labels, |_| false);
        let before = visible(&folder);
        let workspace = folder.load().expect("a workspace");
        write(&folder, &labels, |id| workspace.is_sealed(id));
        prop_assert_eq!(before, visible(&folder));
    }
}

#[test]
fn sealed_label_is_listed_with_its_place_and_without_its_answer() {
    let folder = split_folder();
    let labels: Vec<TestLabel> = (0..COUNT)
        .map(|transcript| TestLabel {
            transcript,
            by: 0,
            eval: "a",
            passed: true,
            flipped: None,
            score: None,
            in_table: false,
        })
        .collect();
    write(&folder, &labels, |_| false);
    let workspace = folder.load().expect("a workspace");
    let sealed = workspace.sealed.clone().expect("a split");
    assert!(sealed.count() > 0 && !workspace.labels.is_empty());
    assert_eq!(sealed.count() + workspace.labels.len(), usize::from(COUNT));
    for (label, place) in workspace.list_labels() {
        let file = workspace
            .files
            .iter()
            .find(|file| *file.path == *place.file);
        let line = &file.expect("the text").text[place.span.bytes.clone()];
        assert!(
            line.contains(&format!("\"{}\"", label.transcript)),
            "{line}"
        );
        let number: u32 = label.transcript[1..].parse().expect("a number");
        assert_eq!(place.span.line, number + 1);
        assert_eq!(
            line.contains("\"sealed\":true"),
            workspace.is_sealed(&label.transcript)
        );
        assert_eq!(
            label.passed.is_none(),
            workspace.is_sealed(&label.transcript)
        );
    }
    // Only the unsealing has the answers, and no others.
    let unsealed = sealed.unseal();
    let hidden = workspace
        .labels
        .iter()
        .all(|label| unsealed.is_sealed(&label.transcript));
    assert!(hidden);
    // The parts are stored, so another seed moves nothing.
    folder.write(
        "dicta.yaml",
        &format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{}",
            SPLIT.replace("seed: 3", "seed: 4")
        ),
    );
    let again = folder.load().expect("a workspace");
    for at in 0..COUNT {
        let id = format!("t{at}");
        assert_eq!(again.is_sealed(&id), workspace.is_sealed(&id), "{id}");
    }
    let stored = fs::read_to_string(folder.root().join("labels.split.jsonl")).expect("stored");
    let part = format!("\"part\":\"{}\"", SplitPart::Test.as_str());
    assert_eq!(stored.matches(&part).count(), sealed.count());
}

#[test]
fn missing_labels_file_is_an_empty_one_with_a_warning() {
    let folder = config("labels: mine.jsonl\n");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.labels, []);
    assert_eq!(
        workspace.labels_file,
        Some(folder.root().join("mine.jsonl"))
    );
    assert_eq!(
        lines(&workspace.warnings),
        ["dicta.yaml:3:9: `mine.jsonl` does not exist yet; the first label creates it"]
    );
    // A missing folder is more likely a typing error.
    let folder = config("labels: nowhere/mine.jsonl\n");
    assert_eq!(folder.problems().len(), 1);
}
