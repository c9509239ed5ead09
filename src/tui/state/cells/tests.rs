//! A small session for tests, and tests of its rows: outlined, filled from past runs, sorted, filtered, walked.

use std::sync::Arc;

use super::*;
use crate::event::{CellKey, EvalSpec, JudgeSpec, RubricSpec};
use crate::model::Label;
use crate::model::{Cause, JudgeConfig, ProviderKind, WallTime};
use crate::record::RecordedResult;

pub(crate) fn digest(text: &str) -> Digest {
    Digest::hash_bytes(text.as_bytes())
}

/// Builds a header with a rubric `r` of these evals, each with the content `version`. The judge `one` decides an eval
/// whose name ends in `?`.
pub(crate) fn header(run: &str, evals: &[&str], version: &str) -> RunHeader {
    RunHeader {
        judges: vec![JudgeSpec::new(
            JudgeConfig::new("one", ProviderKind::Rules),
            digest("one"),
        )],
        rubrics: vec![RubricSpec {
            id: "r".into(),
            path: "r.yaml".into(),
            threshold: None,
        }],
        evals: evals
            .iter()
            .map(|id| EvalSpec {
                judged: id.ends_with('?'),
                ..EvalSpec::new(0, id.trim_end_matches('?'), "contains", digest(version))
            })
            .collect(),
        ..RunHeader::new(
            RunId(run.into()),
            WallTime("2026-11-21T00:00:00Z".into()),
            "/w".into(),
        )
    }
}

pub(crate) fn transcript(id: &str) -> TranscriptRef {
    TranscriptRef {
        part: 0,
        id: id.into(),
        path: "t.jsonl".into(),
        offset: 0,
        len: 1,
        digest: digest(id),
    }
}

/// Returns the keys of a transcript over the evals of [`header`].
pub(crate) fn keys(evals: &[&str]) -> Vec<CellKey> {
    let key = |(id, at): (&&str, u32)| CellKey {
        eval: at,
        message: None,
        judge: id.ends_with('?').then_some(0),
        repeat: None,
    };
    evals.iter().zip(0..).map(key).collect()
}

/// Returns cells of these transcripts and evals without results.
pub(crate) fn outlined(transcripts: &[&str], evals: &[&str]) -> CellsState {
    let mut cells = CellsState::default();
    outline(&mut cells, transcripts, evals, "v1");
    cells
}

pub(crate) fn outline(cells: &mut CellsState, transcripts: &[&str], evals: &[&str], version: &str) {
    cells.begin_outline();
    let names = cells.register_header(&header("outline", evals, version), true);
    for id in transcripts {
        cells.add_outlined_cells(&names, &transcript(id), &keys(evals));
    }
    cells.finish_outline();
    cells.update_shown();
}

pub(crate) fn on_board(run: &str, transcript: &str, outcome: Outcome, why: &str) -> RecordedResult {
    RecordedResult {
        run: RunId(run.into()),
        cell: CellIx(0),
        cached_from: None,
        outcome,
        score: None,
        explanation: why.into(),
        error: None,
        eval: Arc::new(digest("v1")),
        judge: None,
        transcript: Arc::new(digest(transcript)),
        key: None,
        bounds: crate::model::ScoreBounds::default(),
        stated: None,
        probability: None,
        doubt: None,
        causes: crate::model::CauseSet::EMPTY,
        is_own: true,
        used_tools: false,
        duration: crate::model::Millis(0),
    }
}

/// Returns the newest verdicts: cells `t/r/e` with their outcomes.
pub(crate) fn board(cells: &[(&str, Outcome)]) -> Arc<NewestVerdicts> {
    let mut board = NewestVerdicts::default();
    for (name, outcome) in cells {
        let transcript = name.split('/').next().unwrap_or_default();
        let mut cell = on_board("20260101T000000Z-past", transcript, *outcome, "said then");
        cell.judge = name.contains('~').then(|| Arc::new(digest("one")));
        board.insert((*name).to_owned(), cell);
    }
    Arc::new(board)
}

pub(crate) fn row(cells: &CellsState, name: &str) -> RowId {
    let name: CellName = name.parse().expect("a name");
    cells.find_row(&name).expect("a row")
}

/// Returns the visible entries, one per line.
fn shown(cells: &CellsState) -> Vec<String> {
    let line = |entry: &CellsEntry| match entry {
        CellsEntry::Group(eval) => format!("[{}]", cells.evals[*eval as usize].id),
        CellsEntry::Row(id) => {
            let row = cells.row(*id).expect("a row");
            let mark = match row.status() {
                RowStatus::NeverRun => '○',
                RowStatus::Live => '◐',
                RowStatus::Decided(outcome) => outcome.symbol(),
                RowStatus::Hidden => '?',
            };
            let stale = if row.stale.is_some() { "~" } else { "" };
            format!(
                "{stale}{mark} {}",
                cells.transcripts[row.transcript as usize].id
            )
        }
    };
    cells.shown.iter().map(line).collect()
}

fn filtered(cells: &mut CellsState, text: &str) -> Result<Vec<String>, String> {
    cells.set_filter(text)?;
    Ok(shown(cells))
}

use Outcome::{CheckError, Fail, Pass};

#[test]
fn cursor_begins_on_the_judged_row_that_fills_the_most_panes() {
    let mut cells = outlined(&["a", "b"], &["code", "asked?", "other?"]);
    let selected = |cells: &CellsState| {
        let row = cells.selected_row().expect("a row");
        cells.decision_name(row).expect("a name").to_string()
    };
    assert_eq!(selected(&cells), "a/r/asked", "before a run");
    assert_eq!(
        shown(&cells),
        ["[code]", "[asked]", "○ a", "○ b", "[other]"]
    );
    let fill = |cells: &mut CellsState, verdicts: &[(&str, Outcome, bool)]| {
        let mut newest = NewestVerdicts::default();
        for (name, outcome, used_tools) in verdicts {
            let transcript = name.split('/').next().unwrap_or_default();
            let mut cell = on_board("20260101T000000Z-past", transcript, *outcome, "why");
            cell.judge = name.contains('~').then(|| Arc::new(digest("one")));
            cell.used_tools = *used_tools;
            newest.insert((*name).to_owned(), cell);
        }
        cells.apply_newest_verdicts(&Arc::new(newest));
        cells.update_shown();
    };
    let code = ("a/r/code", Fail, false);
    fill(&mut cells, &[code]);
    assert_eq!(selected(&cells), "a/r/code", "the only verdict");
    let asked = ("b/r/asked~one", Pass, false);
    fill(&mut cells, &[code, asked]);
    assert_eq!(selected(&cells), "b/r/asked", "a judge fills more panes");
    let other = ("a/r/other~one", Pass, true);
    fill(&mut cells, &[code, asked, other]);
    assert_eq!(selected(&cells), "a/r/other", "its judge called tools");
    assert!(!cells.groups[1].open, "the cursor left the group");
    cells.move_cursor_by(1, 9);
    fill(
        &mut cells,
        &[code, asked, other, ("a/r/asked~one", Fail, true)],
    );
    assert_eq!(selected(&cells), "b/r/other", "the user chose it");
    assert!(cells.groups[2].open, "it stays open");
}

#[test]
fn cells_show_failures_first_and_select_first_failure() {
    let mut cells = outlined(&["a", "b", "c"], &["x", "y"]);
    assert_eq!(shown(&cells), ["[x]", "○ a", "○ b", "○ c", "[y]"]);
    cells.apply_newest_verdicts(&board(&[
        ("a/r/x", Pass),
        ("b/r/x", CheckError),
        ("c/r/x", Fail),
        ("a/r/y", Pass),
        ("b/r/y", Pass),
        ("c/r/y", Pass),
    ]));
    cells.update_shown();
    assert_eq!(shown(&cells), ["[x]", "✗ c", "! b", "✓ a", "[y]"]);
    assert_eq!(cells.selected_row(), Some(row(&cells, "c/r/x")));
    cells.set_sort(RowSort::FileOrder);
    assert_eq!(shown(&cells), ["[x]", "✓ a", "! b", "✗ c", "[y]"]);
    assert_eq!(
        cells.selected_row(),
        Some(row(&cells, "c/r/x")),
        "it goes along"
    );
    assert_eq!(
        cells
            .decision_name(row(&cells, "c/r/x"))
            .expect("named")
            .to_string(),
        "c/r/x"
    );
}

#[test]
fn rows_outlined_after_past_verdicts_get_results() {
    let mut cells = CellsState::default();
    cells.apply_newest_verdicts(&board(&[("a/r/x", Fail), ("gone/r/x", Pass)]));
    outline(&mut cells, &["a", "new"], &["x"], "v1");
    assert_eq!(shown(&cells), ["[x]", "✗ a", "○ new"]);
}

#[test]
fn changed_input_or_foreign_record_makes_verdict_stale_with_reason() {
    let mut cells = outlined(&["a", "b", "c", "d"], &["x", "y?"]);
    let mut board = NewestVerdicts::default();
    let judge = Some(Arc::new(digest("one")));
    let base = on_board("20260101T000000Z-past", "a", Pass, "");
    for (name, cell) in [
        ("a/r/x", base.clone()),
        (
            "b/r/x",
            RecordedResult {
                eval: Arc::new(digest("v0")),
                ..on_board("p", "b", Pass, "")
            },
        ),
        ("c/r/x", on_board("p", "other text", Pass, "")),
        (
            "a/r/y~one",
            RecordedResult {
                judge: judge.clone(),
                ..base.clone()
            },
        ),
        (
            "b/r/y~one",
            RecordedResult {
                judge: Some(Arc::new(digest("one, before"))),
                ..on_board("p", "b", Pass, "")
            },
        ),
        (
            "c/r/y~two",
            RecordedResult {
                judge: Some(Arc::new(digest("two"))),
                ..on_board("p", "c", Fail, "")
            },
        ),
        (
            "d/r/x",
            RecordedResult {
                is_own: false,
                ..on_board("p", "d", Pass, "")
            },
        ),
        (
            "d/r/y~one",
            RecordedResult {
                judge: judge.clone(),
                is_own: false,
                ..on_board("p", "d", Pass, "")
            },
        ),
    ] {
        board.insert(name.to_owned(), cell);
    }
    cells.apply_newest_verdicts(&Arc::new(board));
    let stale = |name: &str| cells.row(row(&cells, name)).expect("a row").stale;
    assert_eq!(stale("a/r/x"), None);
    assert_eq!(stale("b/r/x"), Some(StaleReason::Eval));
    assert_eq!(stale("c/r/x"), Some(StaleReason::Transcript));
    assert_eq!(stale("a/r/y"), None);
    assert_eq!(stale("b/r/y"), Some(StaleReason::Judge));
    assert_eq!(
        stale("c/r/y"),
        Some(StaleReason::Judge),
        "another judge said so"
    );
    let other = cells.row(row(&cells, "c/r/y")).expect("a row");
    assert_eq!(other.decision.as_ref().map(|d| d.outcome), Some(Fail));
    assert_eq!(stale("d/r/x"), None, "each run decides it again");
    assert_eq!(stale("d/r/y"), Some(StaleReason::Origin));
    assert_eq!(cells.total.stale, 5);
}

#[test]
fn reload_keeps_stale_results_and_hides_removed_rows() {
    let mut cells = outlined(&["a", "b"], &["x", "y"]);
    cells.apply_newest_verdicts(&board(&[
        ("a/r/x", Fail),
        ("b/r/x", Pass),
        ("a/r/y", Pass),
        ("b/r/y", Fail),
    ]));
    cells.update_shown();
    outline(&mut cells, &["b", "c"], &["x"], "v2");
    assert_eq!(shown(&cells), ["[x]", "~✓ b", "○ c"]);
    assert_eq!((cells.total.rows, cells.total.stale), (2, 1));
    outline(&mut cells, &["a", "b"], &["x", "y"], "v1");
    assert_eq!(shown(&cells), ["[x]", "✗ a", "✓ b", "[y]", "✗ b", "✓ a"]);
}

#[test]
fn cursor_returns_when_filter_is_cleared() {
    let mut cells = outlined(&["a", "b", "c"], &["x"]);
    cells.apply_newest_verdicts(&board(&[("a/r/x", Pass), ("b/r/x", Fail), ("c/r/x", Pass)]));
    cells.update_shown();
    cells.select_row(row(&cells, "c/r/x"));
    cells.set_filter("outcome:fail").expect("a filter");
    assert_eq!(shown(&cells), ["[x]", "✗ b"]);
    assert_eq!(cells.matching, 1);
    assert_ne!(cells.selected_row(), Some(row(&cells, "c/r/x")));
    cells.set_filter("").expect("no filter");
    assert_eq!(cells.selected_row(), Some(row(&cells, "c/r/x")));
}

#[test]
fn filter_matches_names_explanations_and_states() {
    let mut cells = outlined(&["a", "b"], &["x"]);
    let mut laid = NewestVerdicts::default();
    laid.insert(
        "a/r/x".into(),
        on_board("p", "a", Fail, "names Release 2.60"),
    );
    laid.insert("b/r/x".into(), on_board("p", "b, before", Pass, "fine"));
    cells.apply_newest_verdicts(&Arc::new(laid));
    let mut filter = |text: &str| filtered(&mut cells, text);
    assert_eq!(filter("release").expect("words"), ["[x]", "✗ a"]);
    assert_eq!(filter("is:stale").expect("is"), ["[x]", "~✓ b"]);
    assert_eq!(filter("!is:stale eval:x").expect("both"), ["[x]", "✗ a"]);
    assert_eq!(filter("transcript:b").expect("id"), ["[x]", "~✓ b"]);
    assert_eq!(filter("nowhere").expect("words"), [""; 0]);
    for (text, why) in [
        (
            "is:stalled",
            "`is:stalled` is not known; did you mean `is:stale`?",
        ),
        (
            "is:",
            "`is:` takes stale, flip, live, problem, error, failed-rerun, contradiction, citation, refused, repaired, fetch-error, truncated",
        ),
        (
            "outcome:failed",
            "`failed` is not an outcome; did you mean `fail`?",
        ),
    ] {
        assert_eq!(
            filtered(&mut cells, "transcript:a").expect("good"),
            ["[x]", "✗ a"]
        );
        assert_eq!(filtered(&mut cells, text).expect_err("bad"), why);
        // A term whose value is not typed yet hides nothing.
        let shown = if text == "is:" { 3 } else { 2 };
        assert_eq!(cells.shown.len(), shown, "what was shown stays");
        assert_eq!(cells.filter_problem.as_deref(), Some(why));
    }
}

#[test]
fn next_problem_wraps_and_opens_closed_groups() {
    let mut cells = outlined(&["a", "b"], &["x", "y", "z"]);
    assert!(!cells.select_next_problem(true), "nothing failed");
    cells.apply_newest_verdicts(&board(&[
        ("a/r/x", Fail),
        ("b/r/x", Pass),
        ("a/r/y", Pass),
        ("b/r/y", Pass),
        ("a/r/z", Pass),
        ("b/r/z", CheckError),
    ]));
    cells.update_shown();
    let (first, last) = (row(&cells, "a/r/x"), row(&cells, "b/r/z"));
    assert_eq!(cells.selected_row(), Some(first));
    cells.select_last(10);
    assert_eq!(cells.selected_row(), Some(row(&cells, "a/r/z")));
    cells.select_row(last);
    assert!(cells.toggle_group() && cells.group_rows().is_some());
    cells.select_row(first);
    assert!(cells.select_next_problem(true));
    assert_eq!(cells.selected_row(), Some(last), "its group opens");
    assert!(cells.select_next_problem(true));
    assert_eq!(cells.selected_row(), Some(first));
    assert!(cells.select_next_problem(false));
    assert_eq!(cells.selected_row(), Some(last));
}

#[test]
fn cursor_stays_in_range() {
    let ids: Vec<String> = (0..50).map(|n| format!("t{n:02}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut cells = outlined(&ids, &["x"]);
    assert_eq!(cells.visible_range(10), 0..10);
    cells.move_cursor_by(-5, 10);
    assert_eq!(cells.cursor_position(), Some(0));
    cells.move_cursor_by(9, 10);
    assert_eq!(
        (cells.cursor_position(), cells.visible_range(10)),
        (Some(9), 0..10)
    );
    cells.select_last(10);
    assert_eq!(
        (cells.cursor_position(), cells.visible_range(10)),
        (Some(50), 41..51)
    );
    assert_eq!(
        cells.visible_range(3),
        48..51,
        "a smaller pane still shows it"
    );
    cells.select_first(10);
    assert_eq!(cells.visible_range(10), 0..10);
    assert_eq!(CellsState::default().visible_range(10), 0..0);
}

#[test]
fn disagreements_come_first_over_all_evals() {
    let mut cells = outlined(&["a", "b"], &["x", "y", "z"]);
    cells.apply_newest_verdicts(&board(&[
        ("a/r/x", Fail),
        ("b/r/x", Pass),
        ("a/r/y", Pass),
        ("b/r/y", Pass),
        ("a/r/z", Pass),
        ("b/r/z", Pass),
    ]));
    let label = |cells: &mut CellsState, name: &str, passed: bool| {
        let name: CellName = name.parse().expect("a name");
        let label = Label {
            transcript: name.transcript.clone(),
            rubric: Some(name.rubric.clone()),
            eval: name.eval.clone(),
            passed: Some(passed),
            score: None,
            by: None,
            at: None,
            note: None,
            ..Label::default()
        };
        cells.set_local_label(&name, Some(label));
    };
    label(&mut cells, "b/r/z", false);
    cells.set_sort(RowSort::Disagreements);
    for group in &mut cells.groups {
        group.opened_by_user = Some(true);
    }
    cells.mark_order_outdated();
    cells.update_shown();
    let listed = [
        "[z]", "✓ b", "✓ a", "[x]", "✗ a", "✓ b", "[y]", "✓ a", "✓ b",
    ];
    assert_eq!(shown(&cells), listed);
    // A new label does not move groups under the user.
    label(&mut cells, "b/r/y", false);
    cells.update_shown();
    assert_eq!(shown(&cells), listed);
    cells.select_first(9);
    let mut visited = Vec::new();
    for _ in 0..3 {
        assert!(cells.select_next_problem(true));
        let row = cells.selected_row().expect("a row");
        visited.push(cells.decision_name(row).expect("a name").to_string());
    }
    assert_eq!(visited, ["b/r/z", "b/r/y", "b/r/z"], "only disagreements");
    cells.set_sort(RowSort::ProblemsFirst);
    assert_eq!(shown(&cells)[0], "[x]", "the order of the files");
}

#[test]
fn filter_finds_flagged_verdicts_and_errors() {
    let mut newest = NewestVerdicts::default();
    for (transcript, outcome, cause) in [
        ("a", Pass, Some(Cause::Citation)),
        ("b", Fail, Some(Cause::Contradiction)),
        ("c", CheckError, None),
        ("d", Fail, Some(Cause::Refused)),
    ] {
        let mut cell = on_board("20260101T000000Z-past", transcript, outcome, "why");
        if let Some(cause) = cause {
            cell.causes.insert(cause);
        }
        newest.insert(format!("{transcript}/r/x"), cell);
    }
    let mut cells = outlined(&["a", "b", "c", "d"], &["x"]);
    cells.apply_newest_verdicts(&Arc::new(newest));
    let mut find = |text: &str| filtered(&mut cells, text).expect("a filter")[1..].to_vec();
    assert_eq!(find("is:refused"), ["✗ d"]);
    assert_eq!(find("is:citation"), ["✓ a"]);
    assert_eq!(find("is:contradiction"), ["✗ b"]);
    assert_eq!(find("is:error"), ["! c"]);
    assert_eq!(find("is:citation,contradiction").len(), 2);
    let unknown = filtered(&mut cells, "is:citatio").expect_err("unknown");
    assert!(unknown.contains("did you mean `is:citation`?"), "{unknown}");
}
