//! Labels of a workspace, and the judges of verdicts that came with its transcripts.

use super::*;

#[test]
fn a_label_that_matches_nothing_is_an_error_and_one_that_contradicts_a_warning() {
    let folder = config("labels: [l.jsonl, { path: '*.csv', eval: a, by: ann }]\n");
    folder.write(
        "r.yaml",
        "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n  - {id: every, type: regex, trigger: every_turn, params: {pattern: x}}\n",
    );
    let good = "{\"transcript\":\"t\",\"eval\":\"a\",\"passed\":true}\n";
    folder.write(
        "l.jsonl",
        &format!(
            "{good}{{\"transcript\":\"t\",\"eval\":\"aa\",\"passed\":true}}\n{{\"transcript\":\"t\",\"rubric\":\"s\",\"eval\":\"a\",\"passed\":true}}\n{{\"transcript\":\"t\",\"eval\":\"every\",\"passed\":true}}\n"
        ),
    );
    folder.write("m.csv", "transcript,passed\nt,no\n");
    assert_eq!(
        folder.problems(),
        [
            "l.jsonl:2:1: a label for the eval `aa`, which is not here; did you mean `a`?",
            "l.jsonl:3:1: a label for the rubric `s`, which is not here; did you mean `r`?",
            "l.jsonl:4:1: the eval `every` judges message by message, and a label is about a whole transcript: it cannot be labelled yet",
            "m.csv:2:1: this label of `a` on `t` contradicts the one in l.jsonl:1; the last one counts",
        ]
    );
    folder.write("l.jsonl", good);
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.labels.len(), 2);
    assert_eq!(workspace.labels[1].by.as_deref(), Some("ann"));
    assert_eq!(workspace.labels_file, Some(folder.root().join("l.jsonl")));
    assert_eq!(workspace.warnings.len(), 1);
    let ids = std::collections::HashSet::from(["tt".to_owned()]);
    assert_eq!(
        lines(&strays(&workspace, &ids)),
        ["l.jsonl:1:1: a label for the transcript `t`, which is not here; did you mean `tt`?"]
    );
}

#[test]
fn labels_beside_dicta_yaml_need_no_key() {
    let folder = config("");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let file = folder.root().join("labels.jsonl");
    assert_eq!(
        (workspace.labels.len(), workspace.labels_file),
        (0, Some(file.clone()))
    );
    folder.write(
        "labels.jsonl",
        "{\"transcript\":\"t\",\"eval\":\"a\",\"passed\":true}\n",
    );
    folder.write("m.csv", "transcript,eval,passed\nu,a,no\n");
    folder.write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nlabels: m.csv\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(
        (workspace.labels.len(), workspace.labels_file),
        (2, Some(file))
    );
    for (labels, problem) in [
        (
            "labels: 7",
            "dicta.yaml:3:9: labels holds files as text, or { path, eval, rubric, by } (got 7)",
        ),
        (
            "labels: [{eval: a}]",
            "dicta.yaml:3:10: a file of labels needs its `path`",
        ),
        (
            "labels: {path: m.csv, evil: a}",
            "dicta.yaml:3:29: unknown key `evil`; did you mean `eval`?",
        ),
        ("labels: n*.csv", "dicta.yaml:3:9: `n*.csv` matches no file"),
    ] {
        folder.write(
            "dicta.yaml",
            &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{labels}\n"),
        );
        assert_eq!(folder.problems(), [problem]);
    }
}

#[test]
fn judges_of_sources_are_there_once_they_are_named() {
    let folder =
        config("judge: inspect\njudges:\n  was: {provider: source, of: promptfoo, scorer: tone}\n");
    folder.write(
        "r.yaml",
        "judge: otel\nevals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let names: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
    assert_eq!(names, ["was", "rules", "inspect", "otel"]);
    let was = &workspace.judges["was"];
    assert_eq!(
        (was.of.as_deref(), was.scorer.as_deref()),
        (Some("promptfoo"), Some("tone"))
    );
    assert!(was.is_free());
    assert_eq!(
        workspace.judge_named("arena").map(|j| j.provider),
        Some(ProviderKind::Source)
    );
    assert!(workspace.judge_named("nobody").is_none());
    for (judge, problem) in [
        (
            "{provider: source, off: x}",
            "4:27: unknown key `off`; did you mean `of`?",
        ),
        (
            "{provider: source, model: x}",
            "4:34: source takes no `model`: the verdicts are there, and nobody is asked",
        ),
        (
            "{provider: source, tools: [fetch_url]}",
            "4:27: source takes no `tools`: the verdicts are there, and nobody is asked",
        ),
        (
            "{provider: rules, of: inspect}",
            "4:30: of is for `provider: source`",
        ),
    ] {
        let folder = config(&format!("judges:\n  was: {judge}\n"));
        assert_eq!(folder.problems(), [format!("dicta.yaml:{problem}")]);
    }
}
