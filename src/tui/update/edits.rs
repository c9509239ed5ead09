//! The newest edit: when it begins, what is judged because of it, and its labels.
//!
//! An edit begins with a save that changes what determines verdicts. Later runs belong to it until the next edit. An
//! edit that waits for its judging is continued by the next one, so that the diff explains all flips.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::notices::push_info;
use super::touched_evals::{self, TouchedEval};
use crate::compare::{FlipCause, unified_diff};
use crate::model::{Outcome, ScoreBounds, find_reason, pluralize};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::{
    DecisionChanges, FlipSide, RowFlip, RowId, compute_label_agreement,
};
use crate::tui::state::edit_report::{
    EditReport, EditedFile, EvalName, EvalRename, FileChange, NOTHING_MOVED, RecordedEdit,
    RemovedDecision, outcome_glyph, summarize,
};
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::pane::Pane;
use crate::tui::state::runs::RunTicket;
use crate::tui::state::saves::JUDGE_DEBOUNCE;
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::ScrollState;
use crate::workspace::Workspace;

/// The largest text in bytes that is compared here. A larger diff would delay keys.
const MAX_DIFF_BYTES: usize = 128 << 10;
/// Two scores that differ by less are equal.
const SCORE_TOLERANCE: f64 = 1e-9;

/// A save as the report needs it.
pub(super) struct SavedFiles<'s> {
    pub(super) old: &'s Arc<Workspace>,
    pub(super) new: &'s Arc<Workspace>,
    pub(super) changed: &'s [PathBuf],
    pub(super) touched: &'s [TouchedEval],
    /// True if the save changes what determines verdicts.
    pub(super) changes_revision: bool,
    /// The evals that have another name.
    pub(super) renames: Vec<EvalRename>,
}

/// Renames evals in the cells, so that their rows keep verdicts and traces.
pub(super) fn rename_evals(app: &mut App, old: &Workspace, new: &Workspace) -> Vec<EvalRename> {
    let mut renames = Vec::new();
    for (from, to) in touched_evals::find_renames(old, new) {
        let cells = &mut app.live_session.cells;
        let verdicts = cells.rename_eval((&from.rubric, &from.eval), (&to.rubric, &to.eval));
        renames.push(EvalRename { from, to, verdicts });
    }
    app.saves.renames.extend(renames.iter().cloned());
    renames
}

/// Returns the evals that an edit probably renamed and changed at once, so that their labels can follow.
fn find_replaced(old: &Workspace, new: &Workspace) -> Vec<EvalRename> {
    let pairs = touched_evals::find_replaced(old, new).into_iter();
    let replaced = pairs.map(|(from, to)| EvalRename {
        from,
        to,
        verdicts: 0,
    });
    replaced.collect()
}

/// Begins an edit, or adds a save to the newest one. `base` is the workspace of a save that this one continues. Returns a
/// sentence about the save alone, if the report is about more.
pub(super) fn add_save(
    app: &mut App,
    saved: &SavedFiles<'_>,
    base: Option<Arc<Workspace>>,
) -> Option<String> {
    let now = app.now;
    let session = &mut app.saves;
    session.number += 1;
    if saved.changes_revision {
        // The estimate belongs to the revision before.
        session.pending_estimate = None;
        session.revision += 1;
        session.record_due = Some(now + JUDGE_DEBOUNCE);
    }
    let known = session.report.take();
    let is_edit = known.as_ref().is_some_and(|known| known.is_edit);
    // A comment belongs to the newest edit, because it changes no verdict.
    if let Some(mut report) = known
        .clone()
        .filter(|_| is_edit && base.is_none() && !saved.changes_revision)
    {
        report.number = session.number;
        report.examples = None;
        update_diffs(&mut report, saved);
        session.report = Some(report);
        return Some(summarize(&describe_save_alone(saved)));
    }
    let waits = known.as_ref().is_some_and(EditReport::waits_for_judging);
    let continues = base.is_some() || (saved.changes_revision && waits);
    let mut report = if let Some(known) = known.filter(|_| continues) {
        known
    } else {
        session.selected = 0;
        session.scroll = ScrollState::top();
        if saved.changes_revision {
            session.edit += 1;
            session.changes_closed = false;
            app.live_session.cells.begin_edit();
        }
        EditReport {
            first_save: session.number,
            base: Some(Arc::clone(saved.old)),
            ..EditReport::default()
        }
    };
    report.number = session.number;
    report.saved_at = now;
    report.edit = session.edit;
    report.is_edit |= saved.changes_revision;
    if let Some(base) = base {
        report.base = Some(base);
    }
    update_diffs(&mut report, saved);
    add_base_bounds(&mut report, saved);
    report.renames.extend(saved.renames.iter().cloned());
    let from = report.base.as_ref().unwrap_or(saved.old);
    report.replaced = find_replaced(from, saved.new);
    for eval in saved.touched {
        let name = format!("{}/{}", eval.name.rubric, eval.name.eval);
        report.touched_evals.insert(name);
    }
    // These parts describe the newest save only.
    report.examples = None;
    report.replayed_evidence = None;
    report.paused = session.paused && !saved.touched.is_empty();
    let from = report.base.as_ref().unwrap_or(saved.old);
    let gone = touched_evals::count_removed(from, saved.new);
    let were_lost = report.lost_evals;
    report.lost_evals = touched_evals::count_removed(saved.old, saved.new) > 0;
    // A layout change keeps the text of the save that it continues, unless that text is about evals that are back.
    let earlier = if were_lost && gone == 0 {
        Some("the evals are back, nothing to judge again".to_owned())
    } else {
        report.not_judged
    };
    report.not_judged = if saved.touched.is_empty() {
        touched_evals::describe_other_changes(from, saved.new, saved.changed, gone).or(earlier)
    } else {
        None
    };
    app.saves.report = Some(report);
    None
}

/// Describes a save that belongs to an earlier edit.
fn describe_save_alone(saved: &SavedFiles<'_>) -> EditReport {
    let files = saved.changed.iter().map(|path| {
        let texts = (find_text(saved.old, path), find_text(saved.new, path));
        diff_file(path, texts)
    });
    EditReport {
        files: files.collect(),
        not_judged: touched_evals::describe_other_changes(saved.old, saved.new, saved.changed, 0),
        base: Some(Arc::clone(saved.old)),
        ..EditReport::default()
    }
}

/// Updates the diffs of the changed files. The diff covers all saves of the report, so it begins at their base.
fn update_diffs(report: &mut EditReport, saved: &SavedFiles<'_>) {
    let labels = saved.new.labels_file_path();
    for path in saved.changed {
        // Labels determine no verdict, so their diff would only hide the rubric's.
        if report.is_edit && !saved.changes_revision && saved.new.root.join(path) == labels {
            continue;
        }
        let known_base = report.base.is_some() || report.base_texts.contains_key(path);
        let before = if known_base {
            report.base_text(path)
        } else {
            find_text(saved.old, path)
        };
        let edited = diff_file(path, (before, find_text(saved.new, path)));
        match report.files.iter_mut().find(|file| file.path == *path) {
            Some(file) => *file = edited,
            None => report.files.push(edited),
        }
    }
}

/// Stores the bounds before the edit of each eval whose bounds changed.
fn add_base_bounds(report: &mut EditReport, saved: &SavedFiles<'_>) {
    for rename in &saved.renames {
        if let Some(bounds) = report.base_bounds.remove(&rename.from) {
            report.base_bounds.insert(rename.to.clone(), bounds);
        }
    }
    let changed = saved.touched.iter().filter(|eval| eval.decision_changed);
    let mut changed = changed.peekable();
    if changed.peek().is_none() {
        return;
    }
    let renames = saved.renames.iter();
    let renames: HashMap<&EvalName, &EvalName> =
        renames.map(|rename| (&rename.to, &rename.from)).collect();
    let old_evals = touched_evals::index_evals(saved.old);
    for eval in changed {
        let name = &eval.name;
        let was = renames.get(name).copied().unwrap_or(name);
        let Some(old) = old_evals.get(&(&*was.rubric, &*was.eval)) else {
            continue;
        };
        let bounds = ScoreBounds::from_decision_settings(&old.decision_settings);
        report.base_bounds.entry(name.clone()).or_insert(bounds);
    }
}

/// Returns the text of a file without its secrets, because the screen shows the diff. Recordings have the same text.
fn find_text(workspace: &Workspace, path: &Path) -> Option<Arc<str>> {
    workspace.masked_text(path)
}

/// Compares two versions of a file.
fn diff_file(path: &Path, (old, new): (Option<Arc<str>>, Option<Arc<str>>)) -> EditedFile {
    let change = match (&old, &new) {
        (None, Some(_)) => FileChange::New,
        (Some(_), None) => FileChange::Deleted,
        _ => FileChange::Saved,
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    // The screen's thread computes the diff, so its input is limited.
    let diff = if old.len().max(new.len()) > MAX_DIFF_BYTES {
        format!("(too large to compare here: {} bytes)\n", new.len())
    } else {
        unified_diff(path, &old, &new)
    };
    EditedFile {
        path: path.to_owned(),
        diff: diff.into(),
        change,
    }
}

/// Adds the decisions and flips of a run to the edit that it belongs to.
pub(super) fn add_to_report(app: &mut App, ticket: RunTicket, changes: DecisionChanges) {
    let DecisionChanges { mut flips, decided } = changes;
    let run = app.live_session.runs.by_ticket.get(&ticket);
    let Some(edit) = run.and_then(|run| run.edit) else {
        return;
    };
    for flip in &mut flips {
        flip.arithmetic = explain_arithmetic(app, flip);
        log_flip(app, flip);
    }
    let belongs = |report: &EditReport| report.edit == edit;
    let known = app.saves.report.as_ref().is_some_and(belongs);
    // Before the first edit, the first flip opens a report.
    if app.saves.report.is_none() && !flips.is_empty() {
        app.saves.selected = 0;
        app.saves.report = Some(EditReport {
            edit,
            saved_at: app.now,
            running_runs: vec![ticket],
            ..EditReport::default()
        });
    } else if !known {
        return;
    }
    if let Some(report) = &mut app.saves.report {
        // A run of everything also repeats the verdicts of other evals, which are not news of this edit.
        let cells = &app.live_session.cells;
        let is_touched = |report: &EditReport, row: RowId| {
            let eval = cells
                .row(row)
                .and_then(|row| cells.evals.get(row.eval as usize));
            let name = eval.map(|eval| format!("{}/{}", eval.rubric, eval.id));
            report.touched_evals.is_empty()
                || name.is_some_and(|name| report.touched_evals.contains(&name))
        };
        for one in decided {
            if is_touched(report, one.row) {
                report.add_decided(one);
            }
        }
        // The list keeps its selection once the user has moved it; else the first flip is selected.
        let is_chosen = app.saves.selected > 0 || app.ui.focus == Pane::Changes;
        let selected = report.flips.get(app.saves.selected).map(|flip| flip.row);
        for flip in flips {
            report.add_flip(flip);
        }
        let moved = report
            .flips
            .iter()
            .position(|flip| Some(flip.row) == selected);
        if let Some(moved) = moved.filter(|_| is_chosen) {
            app.saves.selected = moved;
        }
    }
}

/// Explains a flip by arithmetic, if the score is the same and only the bounds changed.
fn explain_arithmetic(app: &App, flip: &RowFlip) -> Option<String> {
    let report = app.saves.report.as_ref()?;
    let cells = &app.live_session.cells;
    let eval = cells.evals.get(cells.row(flip.row)?.eval as usize)?;
    let name = EvalName {
        rubric: eval.rubric.clone(),
        eval: eval.id.clone(),
    };
    let before = *report.base_bounds.get(&name)?;
    let after = eval.decision_rule.bounds;
    let (score, now) = (flip.before.score?, flip.after.score?);
    ((score - now).abs() < SCORE_TOLERANCE && before != after)
        .then(|| {
            FlipCause::Bounds {
                score: now,
                before,
                after,
            }
            .format_arithmetic()
        })
        .flatten()
}

/// Adds a line about a flip to the log: the cell, both verdicts, and the direction.
fn log_flip(app: &mut App, flip: &RowFlip) {
    let glyphs = app.ui.theme.glyphs();
    let name = app.live_session.cells.decision_name(flip.row);
    let name = name.map_or_else(|| "?".to_owned(), |name| name.to_plain_text());
    let direction = match flip.agrees_with_label {
        Some(true) => ", towards your label",
        Some(false) => ", away from your label",
        None => "",
    };
    // A line of the log has one line of each reason.
    let reason = |side: &FlipSide| find_reason(&side.explanation);
    let reasons = match &flip.arithmetic {
        Some(arithmetic) => arithmetic.clone(),
        None => format!(
            "{} {} {}",
            reason(&flip.before),
            glyphs.arrow,
            reason(&flip.after)
        ),
    };
    let text = format!(
        "flip {} {} {} {name}{direction}: {reasons}",
        outcome_glyph(flip.before.outcome, glyphs),
        glyphs.arrow,
        outcome_glyph(flip.after.outcome, glyphs),
    );
    app.notices.log_verdict(app.now, flip.row, text);
}

/// Adds a run that a key started to the edit.
pub(super) fn add_run(app: &mut App, ticket: RunTicket) {
    let edit = app.saves.edit;
    let report = app.saves.report.as_mut();
    if let Some(report) = report.filter(|report| report.is_edit && report.edit == edit) {
        report.running_runs.push(ticket);
    }
}

/// Removes a run that ended from the report. After the last run of a save, counts again what waits for `R`.
pub(super) fn remove_from_report(app: &mut App, ticket: RunTicket) {
    let cells = &app.live_session.cells;
    let Some(report) = &mut app.saves.report else {
        return;
    };
    let before = report.running_runs.len();
    report.running_runs.retain(|one| *one != ticket);
    let removed = report.running_runs.len() < before;
    let has_evals = report.is_restored || !report.touched_evals.is_empty();
    // The judge cells of a save start after its checks, and they do not wait for `R`.
    let is_last = report.running_runs.is_empty() && app.saves.pending_judging.is_none();
    // A run that judged nothing leaves the estimate, which has the cost.
    if removed && is_last && has_evals && (report.judged > 0 || report.is_restored) {
        let names = |row: RowId| {
            let eval = cells.evals.get(cells.row(row)?.eval as usize)?;
            Some(format!("{}/{}", eval.rubric, eval.id))
        };
        let waits = |row: &RowId| {
            let Some(one) = cells.row(*row).filter(|_| !cells.is_removed(*row)) else {
                return false;
            };
            // An error is not a verdict, so its cell still waits for one.
            let has_verdict = one.decision.as_ref().is_some_and(|decision| {
                !decision.outcome.is_error() || decision.outcome == Outcome::CheckError
            });
            // The edits of a restored report may be unknown, so every cell counts.
            let is_touched = report.touched_evals.is_empty()
                || names(*row).is_some_and(|name| report.touched_evals.contains(&name));
            (one.stale.is_some() || !has_verdict) && is_touched
        };
        let rows = (0..cells.rows.len()).map(|row| RowId(u32::try_from(row).unwrap_or(u32::MAX)));
        let many = rows.filter(waits).count() as u64;
        let wait = if many == 1 { "waits" } else { "wait" };
        report.not_judged = match many {
            0 if report.is_restored
                && report.flips.is_empty()
                && report.first_verdicts.is_empty() =>
            {
                Some(NOTHING_MOVED.to_owned())
            }
            0 => None,
            many => Some(format!("{} {wait} for R", pluralize(many, "cell"))),
        };
    }
    let ended = removed && report.running_runs.is_empty() && report.number > 0;
    // More judging of the same save may wait, and its end writes the line.
    if ended
        && app.saves.pending_judging.is_none()
        && let Some(report) = app.visible_report()
    {
        let text = summarize(&report);
        app.notices.log_only(app.now, NoticeLevel::Info, text);
    }
}

/// Adds the rows that the newest outline no longer contains to the edit.
pub(super) fn add_removed(app: &mut App, rows: &[RowId]) {
    let cells = &app.live_session.cells;
    let Some(report) = app.saves.report.as_mut().filter(|report| report.is_edit) else {
        return;
    };
    // The rest of a file that was written in pieces brings rows back.
    let is_gone = |removed: &RemovedDecision| removed.row.is_none_or(|row| cells.is_removed(row));
    report.removed.retain(is_gone);
    for row in rows {
        let (Some(name), Some(data)) = (cells.decision_name(*row), cells.row(*row)) else {
            continue;
        };
        report.removed.push(RemovedDecision {
            name,
            row: Some(*row),
            outcome: data.decision.as_ref().map(|decision| decision.outcome),
        });
    }
}

/// Stores the newest edit of the history.
pub(super) fn handle_edit_read(
    app: &mut App,
    read: Result<Option<Arc<RecordedEdit>>, TaskFailure>,
) -> Vec<Effect> {
    match read {
        Ok(edit) => {
            app.saves.recorded_edit = edit;
            restore_edit(app);
        }
        Err(why) => {
            let text = format!("the last edit is not shown: {}", why.as_str());
            app.notices.push(app.now, NoticeLevel::Warning, text);
        }
    }
    Vec::new()
}

/// Shows the newest edit of the history, once its rows are known. An edit of this session is newer.
pub(super) fn restore_edit(app: &mut App) {
    if !app.live_session.cells.outline_complete {
        return;
    }
    let Some(edit) = app.saves.recorded_edit.take() else {
        return;
    };
    let is_newer = app.saves.report.as_ref().is_some_and(|one| one.is_edit);
    if is_newer || app.saves.revision > 0 {
        return;
    }
    let cells = &mut app.live_session.cells;
    let mut report = edit.report.clone();
    for flip in &edit.flips {
        let Some(row) = cells
            .find_row(&flip.name)
            .filter(|row| !cells.is_removed(*row))
        else {
            continue;
        };
        cells.restore_flip(row, &flip.before);
        let label = cells.row(row).and_then(|row| row.label);
        report.add_flip(RowFlip {
            row,
            before: flip.before.clone(),
            agrees_with_label: compute_label_agreement(label, flip.after.outcome),
            after: flip.after.clone(),
            arithmetic: flip.arithmetic.clone(),
        });
    }
    for before in &edit.cells_before {
        if let Some(row) = cells.find_row(&before.name) {
            cells.restore_cells_before_edit(row, &before.cells);
        }
    }
    for (name, outcome) in &edit.first_verdicts {
        if let Some(row) = cells.find_row(name) {
            report.first_verdicts.insert(row, *outcome);
        }
    }
    cells.update_shown_if_due(app.now);
    report.edit = app.saves.edit;
    app.saves.selected = 0;
    app.saves.report = Some(report);
}

/// `w`: closes the changes pane until the next edit, or opens it again.
pub(super) fn toggle_changes(app: &mut App) -> Vec<Effect> {
    app.saves.changes_closed = !app.saves.changes_closed;
    if !app.saves.changes_closed {
        return Vec::new();
    }
    if app.ui.focus == Pane::Changes {
        app.ui.focus = Pane::Cells;
        app.ui.zoomed = false;
    }
    if app.ui.tab_pane == Pane::Changes {
        app.ui.tab_pane = Pane::Verdict;
    }
    push_info(
        app,
        "the changes are closed until the next edit (w or 7 shows them)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::EvalTypeRegistry;
    use crate::workspace::{Env, load};

    /// Returns the workspace of a judge with this model and these secrets.
    fn version(dir: &Path, model: &str, secret: &str) -> Arc<Workspace> {
        let config = format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: m\njudges:\n  m:\n    provider: openai\n    \
             base_url: 'http://127.0.0.1:9/v1'\n    api_key_env: null\n    model: {model}\n    \
             headers: {{ X-Portal: {secret} }}\n    extra_body: {{ password: {secret} }}\n"
        );
        let evals = "evals:\n  - {id: c, type: llm_judge, params: {criteria: Good.}}\n";
        for (name, text) in [
            ("t.jsonl", "{\"messages\":[]}\n"),
            ("r.yaml", evals),
            ("dicta.yaml", config.as_str()),
        ] {
            std::fs::write(dir.join(name), text).expect("a file");
        }
        let env = HashMap::from([("DICTA_DATA_DIR".to_owned(), dir.display().to_string())]);
        let loaded = load(dir, &Env(env), &EvalTypeRegistry::builtin());
        Arc::new(loaded.unwrap_or_else(|problems| panic!("{problems:?}")))
    }

    #[test]
    fn diff_of_a_save_has_no_secrets_of_judges() {
        let dir = tempfile::tempdir().expect("a folder");
        let old = version(dir.path(), "one", "hush-4711-hush");
        let new = version(dir.path(), "two", "hush-4712-hush");
        let report = EditReport {
            base: Some(Arc::clone(&old)),
            ..EditReport::default()
        };
        let path = Path::new("dicta.yaml");
        for before in [report.base_text(path), find_text(&old, path)] {
            let diff = diff_file(path, (before, find_text(&new, path))).diff;
            assert!(diff.contains("+    model: two"), "{diff}");
            assert!(!diff.contains("hush"), "{diff}");
        }
    }
}
