//! Source verdicts in runs: as the verdicts of a judge, and hidden from other judges.

use super::*;
use crate::model::{CellResult, Label};

/// Returns a home whose `t0` and `t1` have source verdicts and whose `t2` has none.
fn home() -> TestFolder {
    let home = TestFolder::new(&["hello", "no", "hello"]);
    let path = home.dir.path().join("t.jsonl");
    let text = fs::read_to_string(&path).expect("written");
    let verdicts = [
        r#","verdicts":[{"judge":"inspect","eval":"Greets","passed":false,"score":0.0,"value":"I","reasoning":"SECRET reasons"},{"judge":"inspect","eval":"f1","score":0.4,"value":0.4}]}"#,
        r#","verdicts":[{"judge":"inspect","eval":"greets","error":"no grade was found"}]}"#,
        "}",
    ];
    let lines = text.lines().zip(verdicts);
    let lines = lines
        .map(|(line, more)| line.strip_suffix('}').expect("an object").to_owned() + more + "\n");
    fs::write(&path, lines.collect::<String>()).expect("written");
    home
}

fn results(kinds: &[EventKind]) -> Vec<&CellResult> {
    let of = |kind: &'_ EventKind| matches!(kind, EventKind::CellFinished { .. });
    let finished = kinds.iter().filter(|kind| of(kind));
    let mut all: Vec<(_, &CellResult)> = finished
        .filter_map(|kind| match kind {
            EventKind::CellFinished { cell, result } => Some((*cell, &**result)),
            _ => None,
        })
        .collect();
    all.sort_by_key(|(cell, _)| *cell);
    all.into_iter().map(|(_, result)| result).collect()
}

#[tokio::test]
async fn source_judge_returns_the_source_verdict() {
    let home = home();
    let by = |judge: &str| RunOptions {
        judge: Some(judge.to_owned()),
        filter: Some(DecisionFilter::parse("eval:greets").expect("parses")),
        ..RunOptions::default()
    };
    // `inspect` is not configured. It exists because the options name it.
    let (_, kinds, totals) = home.run(home.workspace(), by("inspect")).await;
    assert_eq!(
        outcomes(&totals),
        [(Outcome::Fail, 1), (Outcome::JudgeError, 2)]
    );
    let text = results(&kinds);
    assert_eq!(
        text[0].explanation,
        "as recorded by inspect: I (Greets)\nSECRET reasons"
    );
    assert_eq!(
        text[1].error.as_deref(),
        Some("inspect's own grader `greets` failed: no grade was found")
    );
    assert_eq!(
        text[2].error.as_deref(),
        Some("this transcript came without verdicts of a source")
    );
    assert!(
        text.iter()
            .all(|result| result.cached.is_none() && !result.by_human)
    );
    assert!(
        !kinds
            .iter()
            .any(|kind| matches!(kind, EventKind::Turn { .. }))
    );

    // A second run asks the source judge again: the cache holds no source verdicts.
    let (_, again, _) = home.run(home.workspace(), by("inspect")).await;
    assert!(results(&again).iter().all(|result| result.cached.is_none()));

    let mut workspace = home.workspace();
    let was = JudgeConfig {
        scorer: Some("f1".to_owned()),
        ..JudgeConfig::new("was", ProviderKind::Source)
    };
    workspace.judges.insert("was".into(), was);
    let (_, kinds, _) = home.run(workspace, by("was")).await;
    assert_eq!(
        results(&kinds)[0].error.as_deref(),
        Some("inspect recorded 0.4 for `f1` without a pass or fail: set min_score, which decides")
    );
    let why = home.refused(home.workspace(), by("inspekt")).await;
    assert!(why.contains("no judge is called `inspekt`"), "{why}");
}

#[tokio::test]
async fn judges_see_neither_labels_nor_source_verdicts() {
    let home = home();
    let mut workspace = home.workspace();
    let label = Label {
        transcript: "t0".to_owned(),
        rubric: None,
        eval: "greets".to_owned(),
        passed: Some(true),
        score: None,
        by: Some("HIDDEN person".to_owned()),
        at: None,
        note: Some("HIDDEN note".to_owned()),
        ..Label::default()
    };
    workspace.labels = vec![label.into()];
    let (env, clock) = (home.env(), home.clock());
    let registry = EvalTypeRegistry::builtin();
    let workspace = Arc::new(workspace);
    let options = RunOptions::default();
    let shown = render_prompts(&workspace, &registry, &env, &clock, &options, "t0/r/greets").await;
    let shown = shown.expect("one prompt");
    let text = shown[0].body.text();
    assert!(text.contains("hello"), "{text}");
    assert!(
        !text.contains("SECRET") && !text.contains("HIDDEN"),
        "{text}"
    );

    let by = RunOptions {
        judge: Some("inspect".to_owned()),
        ..RunOptions::default()
    };
    let none = render_prompts(&workspace, &registry, &env, &clock, &by, "t0/r/greets").await;
    let why = none.expect_err("no request").to_string();
    assert!(why.contains("is sent no request"), "{why}");
}
