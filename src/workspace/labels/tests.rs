//! Tests of label files, as people and their tools write them.

use super::*;

/// Returns the labels of a file as `transcript eval ✓`, and the problems as lines.
fn of(name: &str, text: &str, entry: &LabelsEntry) -> (Vec<String>, Vec<String>) {
    let text: Arc<str> = Arc::from(text);
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join(name);
    std::fs::write(&path, text.as_bytes()).expect("written");
    let mut found = LoadedLabels::default();
    found.file(dir.path(), &path, entry).expect("readable");
    let labels = found.labels.iter().map(|label| {
        let rubric = label
            .rubric
            .as_ref()
            .map_or(String::new(), |r| format!("{r}/"));
        let mut line = format!(
            "{} {rubric}{} {}",
            label.transcript,
            label.eval,
            label
                .passed
                .map_or("unsure".to_owned(), |passed| passed.to_string())
        );
        for more in [
            label.score.map(|score| score.to_string()),
            label.by.clone(),
            label.at.as_ref().map(ToString::to_string),
            label.note.clone(),
        ] {
            line.extend(more.map(|more| format!(" {more}")));
        }
        line
    });
    (
        labels.collect(),
        found.problems.iter().map(ToString::to_string).collect(),
    )
}

fn eval(name: &str) -> LabelsEntry {
    LabelsEntry {
        eval: Some(name.to_owned()),
        ..LabelsEntry::default()
    }
}

#[test]
fn label_table_is_read_with_any_delimiter() {
    let comma = "\u{feff}transcript,eval,passed,score,by,at,note\r\nt1,grounded,TRUE,0.5,ann,2026-11-21,\"one,\r\ntwo\"\r\n\r\nt2,grounded,no,,,,\r\n";
    let want = [
        "t1 grounded true 0.5 ann 2026-11-21 one,\r\ntwo",
        "t2 grounded false",
    ];
    assert_eq!(
        of("l.csv", comma, &LabelsEntry::default()),
        (want.map(str::to_owned).into(), vec![])
    );
    let tabs = "transcript\trubric\tlabel\nt1\tr\tpass\nt2\t\t0\n";
    let entry = LabelsEntry {
        by: Some("ann".to_owned()),
        ..eval("grounded")
    };
    let want = ["t1 r/grounded true ann", "t2 grounded false ann"];
    assert_eq!(
        of("l.tsv", tabs, &entry),
        (want.map(str::to_owned).into(), vec![])
    );
    let semicolons = "transcript;eval;verdict\nt1;e;fail\n";
    assert_eq!(
        of("l.csv", semicolons, &LabelsEntry::default()).0,
        ["t1 e false"]
    );
}

#[test]
fn broken_label_table_is_reported_with_its_line() {
    let text = "transcript,eval,passed,question\nt1,e,maybe,q\nt2,e,,q\n,e,1,q\nt4,e\nt5,,1,q\nt6,e,1,q\nt7,e,,q\n";
    let (labels, problems) = of("l.csv", text, &LabelsEntry::default());
    assert_eq!(labels, ["t6 e true"]);
    assert_eq!(
        problems,
        [
            "l.csv:1:1: the column `question` is not read",
            "l.csv:2:1: passed must be true or false, pass or fail, yes or no, 1 or 0 (got `maybe`)",
            "l.csv:4:1: this row names no transcript",
            "l.csv:5:1: this row has 2 cells, and the header names 4",
            "l.csv:6:1: this row names no eval",
            "l.csv:3:1: 2 rows have no verdict, and do not count as labels",
        ]
    );
    let problem = |text: &str| of("l.csv", text, &LabelsEntry::default()).1.join("\n");
    assert_eq!(
        problem("transcript,eval,passed,label\n"),
        "l.csv:1:1: one column must hold the verdict: `passed`, `label` or `verdict`"
    );
    assert_eq!(
        problem("transcript,passed\n"),
        "l.csv:1:1: no column names the eval: add `eval`, or say in dicta.yaml `labels: { path: …, eval: … }`"
    );
    assert_eq!(
        problem("transcript,eval,eval,passed\n"),
        "l.csv:1:1: two columns are called `eval`"
    );
    assert!(problem("a,b,c\n1,2,3\n").contains("the first line must name the columns"));
    assert_eq!(
        problem("transcript,eval,passed,score\nt,e,1,high\n"),
        "l.csv:2:1: score must be a number (got `high`)"
    );
    assert_eq!(
        problem("transcript,eval,passed,score\nt,e,1,7\n"),
        "l.csv:2:1: score must be between 0 and 1"
    );
}

#[test]
fn scout_cases_with_true_or_false_are_labels() {
    let fields = "id,target_deception,target_score\nabc,true,4\ndef,false,\n";
    let (labels, problems) = of("v.csv", fields, &LabelsEntry::default());
    assert_eq!(labels, ["abc deception true", "def deception false"]);
    assert_eq!(
        problems,
        ["v.csv:2:1: score must be true or false, pass or fail, yes or no, 1 or 0 (got \"4\")"]
    );
    let headerless = "abc,true\ndef,false\n";
    assert_eq!(
        of("v.csv", headerless, &eval("g")).0,
        ["abc g true", "def g false"]
    );
    let split = "id,target,split,predicate\na,true,dev,eq\nb,true,test,contains\n";
    let (labels, problems) = of("v.csv", split, &eval("g"));
    assert_eq!(labels, ["a g true"]);
    assert_eq!(
        problems,
        ["v.csv:3:1: a target that is compared by \"contains\" says neither pass nor fail"]
    );
    let lines = "{\"id\": \"a\", \"labels\": {\"x\": true, \"y\": false}}\n\n{\"id\": [\"b\", \"c\"], \"target\": true}\n";
    let (labels, problems) = of("v.jsonl", lines, &LabelsEntry::default());
    assert_eq!(labels, ["a x true", "a y false"]);
    assert_eq!(
        problems,
        ["v.jsonl:3:1: a case of several transcripts ([\"b\",\"c\"]) cannot label one transcript"]
    );
    let nested = "- split: dev\n  cases:\n    - id: abc\n      target: true\n    - id: def\n      target.tone: false\n";
    assert_eq!(
        of("v.yaml", nested, &eval("g")).0,
        ["abc g true", "def tone false"]
    );
    assert_eq!(
        of(
            "v.json",
            "[{\"id\": \"a\", \"target\": \"no\"}]",
            &eval("g")
        )
        .0,
        ["a g false"]
    );
    assert_eq!(
        of(
            "v.json",
            "[{\"id\": \"a\", \"target\": \"C\"}]",
            &LabelsEntry::default()
        )
        .1,
        ["v.json:1:9: target must be true or false, pass or fail, yes or no, 1 or 0 (got \"C\")"]
    );
    let (labels, problems) = of("v.csv", "id,target\na,true\n", &LabelsEntry::default());
    assert_eq!(labels, [""; 0]);
    assert_eq!(
        problems,
        [
            "v.csv:1:1: a target names no eval: say in dicta.yaml which it is, `labels: { path: …, eval: … }`"
        ]
    );
}

#[test]
fn promptfoo_ratings_are_labels() {
    let result = |id: &str, component: &str| {
        format!(
            r#"{{{id}"testIdx":2,"promptIdx":1,"gradingResult":{{"pass":true,"comment":"why","componentResults":[{{"pass":true,"score":1,"assertion":{{"type":"equals"}}}}{component}]}}}}"#
        )
    };
    let human = r#",{"pass":false,"score":0,"assertion":{"type":"human"}}"#;
    let metric =
        r#",{"pass":true,"score":1,"comment":"fine","assertion":{"type":"human","metric":"tone"}}"#;
    let document = format!(
        "{{\n\"evalId\":\"eval-1\",\n\"results\":{{\"version\":3,\"results\":[\n{},\n{},\n{}]}}}}",
        result(r#""id":"abc","#, human),
        result("", metric),
        result(r#""id":"none","#, "")
    );
    let (labels, problems) = of("out.json", &document, &eval("grounded"));
    assert_eq!(
        labels,
        ["abc grounded false 0 why", "eval-1:2:1 tone true 1 fine"]
    );
    assert_eq!(problems, [""; 0]);
    let (labels, problems) = of("out.json", &document, &LabelsEntry::default());
    assert_eq!(labels, ["eval-1:2:1 tone true 1 fine"]);
    assert_eq!(
        problems,
        [
            "out.json:4:1: promptfoo's marks are about a whole result: name the eval that they label in dicta.yaml, `labels: { path: …, eval: … }`"
        ]
    );
    let lines = format!(
        "{}\n{}\n",
        result(r#""id":"abc","#, human),
        result("", metric)
    );
    assert_eq!(
        of("out.jsonl", &lines, &eval("g")).0,
        ["abc g false 0 why", "out:2:1 tone true 1 fine"]
    );
    let (labels, problems) = of(
        "out.jsonl",
        &result(r#""id":"abc","#, ""),
        &LabelsEntry::default(),
    );
    assert_eq!(labels, [""; 0]);
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn promptfoo_rating_on_another_scale_is_a_label_without_score_and_a_warning() {
    let result = r#"{"id":"abc","testIdx":2,"promptIdx":1,"gradingResult":{"pass":true,"componentResults":[{"pass":true,"score":4.5,"assertion":{"type":"human"}}]}}"#;
    let (labels, problems) = of("out.jsonl", result, &eval("g"));
    assert_eq!(labels.len(), 1, "{labels:?}");
    assert!(labels[0].starts_with("abc g true"), "{labels:?}");
    assert_eq!(
        problems,
        [
            "out.jsonl:1:1: the score of the mark on `abc` is not between 0 and 1 (got 4.5), so its label has no score"
        ]
    );
}

#[test]
fn hostile_label_files_never_panic() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (name, text) in [
        ("l.json", "[".repeat(100_000)),
        ("l.json", deep.clone()),
        ("l.jsonl", format!("{{\"id\":{deep}}}")),
        ("l.json", format!("{{\"evalId\":1,\n\"results\":{deep}}}")),
        ("l.csv", "transcript,eval,passed\n\"t,e,1\n".to_owned()),
        ("l.csv", "id,target\n\u{0},\u{202e}\n".to_owned()),
        ("l.jsonl", "{\"id\":1e999999,\"target\":NaN}\n".to_owned()),
        (
            "l.jsonl",
            "{\"transcript\":\"t\",\"eval\":\"e\",\"pas".to_owned(),
        ),
        ("l.yaml", "- 7\n- [x]\n".to_owned()),
    ] {
        let (labels, problems) = of(name, &text, &eval("g"));
        assert_eq!(labels, [""; 0], "{name} {text:.40}");
        assert!(!problems.is_empty(), "{name} {text:.40}");
    }
    for text in ["", "\u{feff}", "\n\n", "  "] {
        for name in ["l.jsonl", "l.csv", "l.json"] {
            assert_eq!(
                of(name, text, &LabelsEntry::default()),
                (vec![], vec![]),
                "{name} {text:?}"
            );
        }
    }
    let mut found = LoadedLabels::default();
    let dir = tempfile::tempdir().expect("a folder");
    let why = found.file(dir.path(), dir.path(), &LabelsEntry::default());
    assert_eq!(why, Err("is a folder, not a file".to_owned()));
}
