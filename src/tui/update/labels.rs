//! Labels: what a person says of the focused decision counts at once, is written elsewhere, and can be taken back.

use std::path::PathBuf;
use std::sync::Arc;

use super::keys::{self, told};
use super::panes::in_view;
use crate::model::{CellName, Label, make_visible};
use crate::tui::effect::{Effect, LabelChange, LabelOrder};
use crate::tui::model::Model;
use crate::tui::model::cells::{Human, Row, RowId, Sort, towards};
use crate::tui::model::labels::{Own, file_of};
use crate::tui::model::notices::Level;
use crate::tui::msg::Written;
use crate::workspace::Workspace;

/// `p`, `f`, `u`.
pub(super) fn say(model: &mut Model, passed: Option<bool>) -> Vec<Effect> {
    let Some((row, name)) = focused(model) else {
        return Vec::new();
    };
    let before = model.live.cells.label_of(row).cloned();
    let word = Human::of(passed).word();
    let what = called(model, &name);
    if before.as_ref().is_some_and(|label| label.passed == passed) {
        return told(
            model,
            format!("{what} is labelled {word} already (x removes it)"),
        );
    }
    let label = Label {
        transcript: name.transcript.clone(),
        rubric: Some(name.rubric.clone()),
        eval: name.eval.clone(),
        passed,
        score: None,
        by: None,
        at: None,
        note: before.as_ref().and_then(|label| label.note.clone()),
    };
    let change = LabelChange::Say(name.clone(), passed);
    let effects = take_up(model, name, Some(label), before, change, None);
    let agrees = model.live.cells.row(row).and_then(Row::agrees);
    let agrees = match agrees {
        Some(true) => ", the verdict agrees",
        Some(false) => ", the verdict disagrees",
        None => "",
    };
    told(
        model,
        format!("labelled {what}: {word}{agrees} (U takes it back)"),
    );
    effects
}

/// `x`.
pub(super) fn remove(model: &mut Model) -> Vec<Effect> {
    let Some((row, name)) = focused(model) else {
        return Vec::new();
    };
    let Some(before) = model.live.cells.label_of(row).cloned() else {
        return Vec::new();
    };
    let what = called(model, &name);
    let whose = before.by.as_ref().map(|by| format!(" (by {by})"));
    let said = format!(
        "removed the label of {what}: {}{} (U takes it back)",
        Human::of(before.passed).word(),
        whose.unwrap_or_default()
    );
    let change = LabelChange::Remove(name.clone());
    let effects = take_up(model, name, None, Some(before), change, None);
    told(model, said);
    effects
}

/// `U`.
pub(super) fn take_back(model: &mut Model) -> Vec<Effect> {
    let Some(last) = model.labels.done.pop() else {
        return Vec::new();
    };
    let what = called(model, &last.name);
    let is = match &last.before {
        Some(label) => format!("labelled {} again", Human::of(label.passed).word()),
        None => "not labelled any more".to_owned(),
    };
    let more = match model.labels.done.len() {
        0 => String::new(),
        more => format!(" ({more} more can be taken back)"),
    };
    if let Some(row) = model.live.cells.row_of(&last.name) {
        // What happens is seen.
        model.live.cells.select(row);
        in_view(model);
    }
    let change = LabelChange::TakeBack(last.number);
    let (name, before, now) = (last.name.clone(), last.label.clone(), last.before.clone());
    let effects = take_up(model, name, now, before, change, Some(last));
    told(model, format!("{what} is {is}{more}"));
    effects
}

/// The label counts from now on, and is to be written.
fn take_up(
    model: &mut Model,
    name: CellName,
    label: Option<Label>,
    before: Option<Label>,
    what: LabelChange,
    undoes: Option<Own>,
) -> Vec<Effect> {
    let Some(file) = model.workspace().map(|workspace| file_of(workspace)) else {
        return Vec::new();
    };
    model.labels.number += 1;
    let number = model.labels.number;
    model.live.cells.set_own(&name, label.clone());
    let own = Own {
        number,
        name,
        label,
        before,
        written: false,
        undoes: undoes.map(Box::new),
    };
    if own.undoes.is_none() {
        model.labels.done.push(own.clone());
    }
    model.labels.own.push(own);
    moved(model);
    vec![Effect::WriteLabel(LabelOrder { number, file, what })]
}

/// What stands beside verdicts moved: where flips went is told anew.
fn moved(model: &mut Model) {
    let cells = &mut model.live.cells;
    if let Some(report) = &mut model.saves.report {
        for flip in &mut report.flips {
            let label = cells.row(flip.row).and_then(|row| row.label);
            flip.towards = towards(label, flip.after.outcome);
        }
    }
    cells.settle_at(model.now);
}

/// It was written, or it was not: then nothing was said.
pub(super) fn written(
    model: &mut Model,
    number: u64,
    written: Result<Written, String>,
) -> Vec<Effect> {
    match written {
        Ok(written) => {
            model.labels.made(number, &written);
            let found = model.labels.own.iter_mut().find(|own| own.number == number);
            if let Some(own) = found {
                own.written = true;
                // Who said it and when is known now; a removed one may leave another behind, which the file tells.
                if own.label.is_some() && written.label.is_some() {
                    own.label = written.label;
                    counts_again(model, number);
                }
            }
        }
        Err(why) => failed(model, number, &why),
    }
    let read = model.workspace().map(Arc::clone);
    if let Some(workspace) = read.filter(|workspace| model.labels.is_as_read(workspace)) {
        // Back at where it was: no other look will come.
        reloaded(model, &workspace, &[]);
    }
    if model.labels.leaving && !model.labels.writes() {
        model.labels.leaving = false;
        return keys::end(model, 0);
    }
    Vec::new()
}

/// The newest word on a decision is what counts.
fn counts_again(model: &mut Model, number: u64) {
    let own = &model.labels.own;
    let of = own.iter().find(|own| own.number == number);
    let newest = of.and_then(|of| own.iter().rfind(|own| own.name == of.name));
    if let Some(newest) = newest {
        let (name, label) = (newest.name.clone(), newest.label.clone());
        model.live.cells.set_own(&name, label);
    }
}

fn failed(model: &mut Model, number: u64, why: &str) {
    let labels = &mut model.labels;
    let Some(at) = labels.own.iter().position(|own| own.number == number) else {
        return;
    };
    let own = labels.own.remove(at);
    labels.done.retain(|done| done.number != number);
    for later in &mut labels.own {
        // What was never written cannot be taken back, nor said again.
        later.undoes = later.undoes.take().filter(|undone| undone.number != number);
    }
    labels.done.extend(own.undoes.map(|undone| *undone));
    labels.done.sort_by_key(|done| done.number);
    labels.leaving = false;
    match labels.own.iter().rfind(|other| other.name == own.name) {
        Some(other) => {
            let (name, label) = (other.name.clone(), other.label.clone());
            model.live.cells.set_own(&name, label);
        }
        None => model.live.cells.forget_own(&own.name),
    }
    moved(model);
    let what = called(model, &own.name);
    let said = format!("the label of {what} is as before: {why}");
    model.notices.tell(model.now, Level::Error, said);
}

/// The workspace was read again: what of `changed` somebody else wrote. What is only ours is taken over without a word.
pub(super) fn reloaded(
    model: &mut Model,
    workspace: &Arc<Workspace>,
    changed: &[PathBuf],
) -> Vec<PathBuf> {
    let (held, mine) = model.labels.read(workspace);
    if !mine && held.is_empty() {
        return changed.to_vec();
    }
    model.live.cells.label(&workspace.labels);
    for name in &held {
        model.live.cells.forget_own(name);
    }
    moved(model);
    if !mine {
        return changed.to_vec();
    }
    let file = file_of(workspace);
    let others = changed
        .iter()
        .filter(|path| workspace.root.join(path) != file);
    others.cloned().collect()
}

/// Tells what is wrong with labels, where it is news: a rubric is judged all the same, and they count for nothing.
pub(super) fn problems(model: &mut Model, before: Option<&Workspace>, now: &Workspace) {
    let known = before.map_or(&[][..], |before| &before.label_problems);
    if known == now.label_problems {
        return;
    }
    let Some(first) = now.label_problems.first() else {
        let said = "all labels match again";
        return model.notices.tell(model.now, Level::Info, said);
    };
    let first = make_visible(&first.to_string(), false).into_owned();
    let said = match now.label_problems.len() {
        1 => format!("{first} (it counts for nothing until mended)"),
        n => format!(
            "{first} (and {} more; they count for nothing until mended)",
            n - 1
        ),
    };
    model.notices.tell(model.now, Level::Warning, said);
}

/// `s`: the next decision nobody labelled.
pub(super) fn next(model: &mut Model) -> Vec<Effect> {
    if !model.desk_mut().cells.next_unlabelled() {
        return told(model, "everything that is listed is labelled");
    }
    in_view(model);
    Vec::new()
}

/// `B`: verdicts are hidden until they are labelled, or shown.
pub(super) fn blind(model: &mut Model) -> Vec<Effect> {
    let cells = &mut model.live.cells;
    let blind = !cells.blind;
    if blind && cells.sort == Sort::ProblemsFirst {
        // Else what is labelled and failed would lie above the rest.
        cells.sort = Sort::FileOrder;
    }
    cells.set_blind(blind);
    in_view(model);
    let said = if blind {
        "blind: a verdict is hidden until you label it (p pass, f fail, u unsure; B shows all)"
    } else {
        "all verdicts are shown"
    };
    told(model, said)
}

fn focused(model: &Model) -> Option<(RowId, CellName)> {
    let cells = &model.live.cells;
    let row = cells.selected()?;
    Some((row, cells.name(row)?))
}

/// `refund-03 × grounded`.
fn called(model: &Model, name: &CellName) -> String {
    let times = if model.ui.theme.glyphs().ascii {
        "x"
    } else {
        "×"
    };
    format!("{} {times} {}", name.transcript, name.eval)
}
