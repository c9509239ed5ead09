//! Tests of a workspace's labels, and of the judges of source verdicts.

use super::*;

#[test]
fn unmatched_and_contradicting_labels_are_warnings() {
    let folder = config("labels: [l.jsonl, { path: '*.csv', eval: a, by: ann }]\n");
    folder.write(
        "r.yaml",
        "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n  - {id: every, type: regex, trigger: every_turn, params: {pattern: x}}\n",
    );
    let good = "{\"transcript\":\"t\",\"eval\":\"a\",\"passed\":true,\"by\":\"ann\"}\n";
    folder.write(
        "l.jsonl",
        &format!(
            "{good}{{\"transcript\":\"t\",\"eval\":\"aa\",\"passed\":true}}\n{{\"transcript\":\"t\",\"rubric\":\"s\",\"eval\":\"a\",\"passed\":true}}\n{{\"transcript\":\"t\",\"eval\":\"every\",\"passed\":true}}\n"
        ),
    );
    folder.write("m.csv", "transcript,passed\nt,no\n");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.label_problems, []);
    assert_eq!(
        lines(&workspace.warnings),
        [
            "l.jsonl:2:1: 1 label is for the eval `aa`, which is not here; did you mean `a`?",
            "l.jsonl:3:1: 1 label is for the rubric `s`, which is not here; did you mean `r`?",
            "l.jsonl:4:1: 1 label is for the eval `every`, which judges message by message; a label is about a whole transcript, so dicta cannot use it",
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
        lines(&find_stray_labels(&workspace, &ids)),
        ["l.jsonl:1:1: a label for the transcript `t`, which is not here; did you mean `tt`?"]
    );
}

#[test]
fn labels_file_that_is_another_file_under_a_second_name_is_an_error() {
    type Link = fn(&std::path::Path, &std::path::Path);
    let links: [Link; 2] = [
        |file, link| std::os::unix::fs::symlink(file, link).expect("linked"),
        |file, link| std::fs::hard_link(file, link).expect("linked"),
    ];
    for link in links {
        for other in ["t.jsonl", "r.yaml"] {
            let folder = config("");
            let root = folder.root();
            let labels = root.join("labels.jsonl");
            folder.write("own.jsonl", "");
            link(&root.join("own.jsonl"), &labels);
            assert!(folder.load().is_ok(), "{other}");
            std::fs::remove_file(&labels).expect("removed");
            link(&root.join(other), &labels);
            let found = lines(&folder.load().expect_err("refused"));
            let expected = format!(
                "labels.jsonl: this is the file {other} under another name, and a new label would change that file"
            );
            assert!(found.contains(&expected), "{found:?}");
        }
    }
}

#[test]
fn default_label_file_needs_no_key() {
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
            "dicta.yaml:3:9: labels holds files as text, or { path, eval, rubric, by, map, pass, split } (got 7)",
        ),
        (
            "labels: [{eval: a}]",
            "dicta.yaml:3:10: a file of labels needs its `path`, such as `path: labels.jsonl`",
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
fn source_judges_exist_when_named() {
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
        (was.source.as_deref(), was.scorer.as_deref()),
        (Some("promptfoo"), Some("tone"))
    );
    assert!(was.is_free());
    assert_eq!(
        workspace.find_judge("arena").map(|j| j.provider),
        Some(ProviderKind::Source)
    );
    assert!(workspace.find_judge("nobody").is_none());
    for (judge, problem) in [
        (
            "{provider: source, off: x}",
            "4:27: unknown key `off`; did you mean `of`?",
        ),
        (
            "{provider: source, model: x}",
            "4:34: source takes no `model`: it returns source verdicts and calls nothing",
        ),
        (
            "{provider: source, tools: [fetch_url]}",
            "4:27: source takes no `tools`: it returns source verdicts and calls nothing",
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

#[test]
fn labels_of_a_mapping_count_and_their_errors_are_at_the_mapping() {
    let map = |labels: &str| {
        format!(
            "transcripts: [t.jsonl, {{path: a.csv, map: {{id: id, input: q, output: a, label: {labels}}}}}]\nrubrics: [r.yaml]\n"
        )
    };
    let folder = Folder::new(&[
        ("dicta.yaml", &map("{eval: a, passed: ok, by: who}")),
        (
            "a.csv",
            "id,q,a,ok,who\none,hi,\"hello\nyou\",good,ann\ntwo,hi,no,,ann\none,hi,hey,bad,ann\n,hi,ho,n,\n",
        ),
        (
            "labels.jsonl",
            "{\"transcript\":\"one\",\"eval\":\"a\",\"passed\":false,\"by\":\"ann\"}\n",
        ),
    ]);
    folder.write(
        "r.yaml",
        "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let passed_by_label: Vec<_> = workspace
        .labels
        .iter()
        .zip(&workspace.label_places)
        .map(|(label, place)| (&*label.transcript, label.passed, place.span.line))
        .collect();
    // A label that a person wrote counts after the label in the transcript file.
    assert_eq!(
        passed_by_label,
        [
            ("one", Some(true), 2),
            // The same id as that of its transcript in a run.
            ("one~2", Some(false), 5),
            ("a:4", Some(false), 6),
            ("one", Some(false), 1)
        ]
    );
    assert_eq!(workspace.labels[0].by.as_deref(), Some("ann"));
    assert_eq!(
        lines(&workspace.warnings),
        [
            "labels.jsonl:1:1: this label of `a` on `one` contradicts the one in a.csv:2; the last one counts",
        ]
    );
    folder.write(
        "dicta.yaml",
        &map("[{eval: aa, passed: ok}, {eval: a, rubric: s, passed: ok}]"),
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let messages = lines(&workspace.warnings);
    assert!(
        messages[0].ends_with("the labels of this mapping are for the eval `aa`, which is not here; did you mean `a`?")
            && messages[1]
                .ends_with("the labels of this mapping are for the rubric `s`, which is not here; did you mean `r`?")
            && messages
                .iter()
                .take(2)
                .all(|line| line.starts_with("dicta.yaml:1:")),
        "{messages:?}"
    );
    folder.write("dicta.yaml", &map("{eval: a, passed: ok}"));
    let large = std::fs::File::create(folder.root().join("a.csv")).expect("a file");
    large.set_len((64 << 20) + 1).expect("a hole");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.labels.len(), 1);
    assert_eq!(
        lines(&workspace.warnings),
        [
            "a.csv: its labels are not read: it is larger than 64 MiB; `dicta import a.csv -o FILE --labels labels.jsonl` writes them where they are"
        ]
    );
}

#[test]
fn label_of_a_mapping_has_the_id_that_a_run_gives_to_its_transcript() {
    let folder = Folder::new(&[
        (
            "dicta.yaml",
            "transcripts: [b.jsonl, {path: a.csv, map: {id: id, output: a, label: {eval: a, passed: ok}}}]\nrubrics: [r.yaml]\n",
        ),
        ("a.csv", "id,a,ok\none,x,good\ntwo,y,bad\n"),
        (
            "b.jsonl",
            "{\"id\":\"two\",\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}\n",
        ),
        (
            "r.yaml",
            "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
        ),
    ]);
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let labels: Vec<_> = workspace
        .labels
        .iter()
        .map(|label| (&*label.transcript, label.passed))
        .collect();
    // The transcript `two` of b.jsonl has no label.
    assert_eq!(labels, [("one", Some(true)), ("two~2", Some(false))]);
}

#[test]
fn unmatched_label_does_not_refuse_a_rubric() {
    let folder = config("");
    folder.write(
        "labels.jsonl",
        "{\"transcript\":\"t\",\"eval\":\"gone\",\"passed\":true}\n{\"torn\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(
        lines(&workspace.warnings),
        ["labels.jsonl:1:1: 1 label is for the eval `gone`, which is not here"]
    );
    let messages = lines(&workspace.label_problems);
    assert!(
        messages[0].starts_with("labels.jsonl:2:") && messages.len() == 1,
        "{messages:?}"
    );
    // Problems of other files are reported with it.
    folder.write("r.yaml", "evals: [{id: a, type: regexx}]\n");
    let problems = folder.load().expect_err("the rubric is wrong");
    assert!(problems.iter().any(|problem| problem.code == "label"));
}

#[test]
fn scout_uuid_is_resolved_to_the_transcript_id() {
    let folder = config("labels: {path: s.csv, eval: a}\n");
    let log = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/inspect/log.json"
    );
    let text = std::fs::read_to_string(log).expect("a fixture");
    let uuid = "5o3i6Dfyck4V26SHEu4Jte";
    let own = r#""id": "one","#;
    assert!(text.contains(own));
    let text = text.replace(own, &format!("{own} \"uuid\": \"{uuid}\","));
    folder.write("l.json", &text);
    folder.write(
        "dicta.yaml",
        "transcripts: l.json\nrubrics: [r.yaml]\nlabels: {path: s.csv, eval: a}\n",
    );
    folder.write(
        "r.yaml",
        "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
    );
    folder.write("s.csv", &format!("id,target\n{uuid},true\nother,false\n"));
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let ids: Vec<&str> = workspace.labels.iter().map(|l| &*l.transcript).collect();
    assert!(ids[0].starts_with("one") && ids[0] != uuid, "{ids:?}");
    assert_eq!(ids[1], "other");
}

#[test]
fn label_table_accepts_unsure_and_refuses_promptfoo_csv() {
    let folder = config("labels: m.csv\n");
    folder.write(
        "r.yaml",
        "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
    );
    folder.write("m.csv", "transcript,eval,passed\nt,a,Unsure\nu,a,Correct\n");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let passed_by_label: Vec<_> = workspace.labels.iter().map(|label| label.passed).collect();
    assert_eq!(passed_by_label, [None, Some(true)]);
    folder.write(
        "m.csv",
        "Description,word,Status,Score,Named Scores,Status,Score\n,a,PASS,1,,FAIL,0\n",
    );
    let messages = folder.problems();
    assert!(
        messages[0].contains("export the eval as JSON"),
        "{messages:?}"
    );
}

#[test]
fn labels_of_a_renamed_rubric_or_eval_are_one_warning_with_the_command() {
    let folder = config("");
    folder.write(
        "r.yaml",
        "id: support\nevals:\n  - {id: manner, type: regex, params: {pattern: x}}\n  - {id: facts, type: regex, params: {pattern: y}}\n",
    );
    let mut text = String::new();
    for transcript in 0..300 {
        // The rubric was renamed without any similar letters, and an eval with few.
        for (rubric, eval) in [("zzz", "facts"), ("support", "manners")] {
            let label = serde_json::json!({
                "transcript": format!("t{transcript}"), "rubric": rubric, "eval": eval, "passed": true,
            });
            text.push_str(&label.to_string());
            text.push('\n');
        }
    }
    folder.write("labels.jsonl", &text);
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.label_problems, []);
    assert_eq!(
        lines(&workspace.warnings),
        [
            "labels.jsonl:1:1: 300 labels are for the rubric `zzz`, which is not here; did you mean `support`?",
            "labels.jsonl:2:1: 300 labels are for the eval `manners` of the rubric `support`, which is not here; did you mean `manner`?",
        ]
    );
    let helps: Vec<&str> = workspace
        .warnings
        .iter()
        .filter_map(|warning| warning.help.as_deref())
        .collect();
    assert!(
        helps[0]
            .starts_with("`dicta labels rename zzz support` renames, `dicta labels prune` deletes")
            && helps[1].starts_with("`dicta labels rename support/manners support/manner` renames"),
        "{helps:?}"
    );
    // dicta writes no table, so the warning names the file instead.
    folder.write("labels.jsonl", "");
    folder.write("m.csv", "transcript,eval,passed\nt,manners,yes\n");
    folder.write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nlabels: m.csv\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let help = workspace.warnings[0].help.as_deref().expect("help");
    assert!(help.starts_with("change the names in m.csv"), "{help}");
}

#[test]
fn renamed_eval_is_found_if_its_name_only_grew() {
    let folder = config("labels: l.jsonl\n");
    folder.write(
        "r.yaml",
        "evals:\n  - {id: grounded-in-tools, type: regex, params: {pattern: x}}\n  - {id: brief, type: regex, params: {pattern: y}}\n",
    );
    folder.write(
        "l.jsonl",
        "{\"transcript\":\"t\",\"eval\":\"grounded\",\"passed\":true}\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(
        lines(&workspace.warnings),
        [
            "l.jsonl:1:1: 1 label is for the eval `grounded`, which is not here; did you mean `grounded-in-tools`?"
        ]
    );
}
