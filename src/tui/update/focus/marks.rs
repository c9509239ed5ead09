//! From a check's finding to the places it rests on.

use std::sync::Arc;

use super::{show, where_read};
use crate::handlers::TranscriptSpan;
use crate::model::{CellResult, Digest};
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::RowId;
use crate::tui::model::document::Doc;
use crate::tui::model::marks::{EvalOf, Marks, MarksKey};
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::trace::{Shown, same_eval, shown};
use crate::tui::widget::flow::Place;

/// After every update: asks for the places of the shown finding, once.
pub(super) fn ask(model: &mut Model) -> Option<Effect> {
    let known = model.desk().document.marks.of.as_ref();
    let Some(wanted) = wanted(model) else {
        if known.is_some() {
            model.desk_mut().document.marks = Marks::default();
        }
        return None;
    };
    if known.is_some_and(|known| wanted.is(known)) {
        return None;
    }
    let (key, eval) = wanted.into_owned();
    let effect = effect(model, &key, eval);
    model.desk_mut().document.marks = Marks {
        of: Some(key),
        ..Marks::default()
    };
    effect
}

/// What a key is made of, borrowed: it is asked after every update, and nearly always is the one that is known.
struct Wanted<'m> {
    row: RowId,
    transcript: &'m Digest,
    result: &'m CellResult,
    eval: EvalOf,
}

impl Wanted<'_> {
    fn is(&self, key: &MarksKey) -> bool {
        self.row == key.row
            && self.eval.eval().digest == key.eval
            && *self.transcript == key.transcript
            && self.result.outcome == key.outcome
            && self.result.explanation == key.explanation
    }

    fn into_owned(self) -> (MarksKey, EvalOf) {
        let key = MarksKey {
            row: self.row,
            eval: self.eval.eval().digest.clone(),
            transcript: self.transcript.clone(),
            outcome: self.result.outcome,
            explanation: self.result.explanation.clone(),
        };
        (key, self.eval)
    }
}

/// The check that decided what is shown, if one did and is at hand as it was.
fn wanted(model: &Model) -> Option<Wanted<'_>> {
    let desk = model.desk();
    desk.document.here()?;
    let shown = shown(model)?;
    let result = shown.result?;
    let eval = eval_of(model, &shown)?;
    let spec = eval.eval();
    // A program of the user's is not run again to look at a cell.
    if spec.eval_type == "script" || !same_eval(&shown, &spec.digest) {
        return None;
    }
    Some(Wanted {
        row: desk.trace.row?,
        transcript: &desk.document.of.as_ref()?.digest,
        result,
        eval,
    })
}

/// The eval of a row that no judge decides.
fn eval_of(model: &Model, shown: &Shown<'_>) -> Option<EvalOf> {
    let info = model.desk().cells.evals.get(shown.row.eval as usize)?;
    if info.judged {
        return None;
    }
    let (rubric, at) = model.workspace()?.find_eval(&info.rubric, &info.id)?;
    Some(EvalOf {
        rubric: Arc::clone(rubric),
        at,
    })
}

fn effect(model: &Model, key: &MarksKey, eval: EvalOf) -> Option<Effect> {
    let desk = model.desk();
    let row = desk.cells.row(key.row)?;
    let (transcript, run_dir) = where_read(model, desk.document.of.as_ref()?);
    Some(Effect::FindMarks {
        key: key.clone(),
        eval,
        message: row.message,
        map: super::map_of(model, &transcript.path),
        transcript,
        run_dir,
    })
}

/// The check has decided again.
pub(in crate::tui::update) fn found(
    model: &mut Model,
    key: &MarksKey,
    marks: &[TranscriptSpan],
) -> Vec<Effect> {
    let document = super::desks(model)
        .map(|desk| &mut desk.document)
        .find(|document| document.marks.of.as_ref() == Some(key));
    if let Some(document) = document
        && let Some(doc) = document.here().map(Arc::clone)
    {
        document.marks.places = places(&doc, marks);
    }
    Vec::new()
}

fn places(doc: &Doc, marks: &[TranscriptSpan]) -> Vec<(usize, std::ops::Range<usize>)> {
    marks.iter().filter_map(|mark| doc.place_of(mark)).collect()
}

/// The next place the shown finding rests on. `None` where a judge decided, whose verdict may cite.
pub(super) fn next(model: &mut Model) -> Option<Vec<Effect>> {
    let shown = shown(model)?;
    eval_of(model, &shown)?;
    let result = shown.result.is_some();
    let marks = &model.desk().document.marks;
    let count = marks.places.len();
    if count == 0 {
        let why = match (result, &marks.of) {
            (false, _) => "not decided yet: r runs this cell",
            (true, None) => {
                "this was decided by the eval as it was before: r decides it again and shows where"
            }
            (true, Some(_)) => "this finding rests on no single place",
        };
        model.notices.tell(model.now, Level::Info, why);
        return Some(Vec::new());
    }
    let at = marks.at.map_or(0, |at| at + 1) % count;
    let (piece, range) = marks.places[at].clone();
    let head = model
        .desk()
        .document
        .here()
        .map_or(0, |doc| doc.head_of(piece));
    show(
        model,
        Pane::Transcript,
        Place {
            block: piece,
            byte: range.start + head,
        },
    );
    let document = &mut model.desk_mut().document;
    document.marks.at = Some(at);
    document.quoted = Some((piece, range));
    Some(Vec::new())
}
