//! Labels are written one after the other, in the order they were said: whoever presses keys fast loses none.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{Deps, Runtime, Working};
use crate::model::{Label, WallTime};
use crate::tui::effect::{LabelChange, LabelOrder};
use crate::tui::msg::{Msg, Written};
use crate::workspace::find_label_author;
use crate::workspace::label_edit::{LabelFileEdit, LabelUndo, edit_labels_file};

/// Where orders go; once it is dropped, what was ordered is still written.
pub(super) struct Scribe(UnboundedSender<(LabelOrder, WallTime, Working)>);

/// What takes each order back.
type Journal = HashMap<u64, LabelUndo>;

impl Runtime {
    /// The moment is that of the order, whenever its turn comes.
    pub(super) fn write_label(&mut self, order: LabelOrder) {
        let at = self.deps.clock.wall_time();
        let working = self.out.busy.enter();
        if self.scribe.is_none() {
            self.scribe = Some(self.scribe());
        }
        if let Some(Scribe(orders)) = &self.scribe {
            // It listens as long as it is kept here.
            let _gone = orders.send((order, at, working));
        }
    }

    fn scribe(&self) -> Scribe {
        let (orders, mut ordered) = unbounded_channel::<(LabelOrder, WallTime, Working)>();
        let (out, deps) = (self.out.clone(), Arc::clone(&self.deps));
        self.runs.spawn(async move {
            let mut journal = Journal::new();
            while let Some((order, at, working)) = ordered.recv().await {
                let number = order.number;
                let mut own = std::mem::take(&mut journal);
                let deps = Arc::clone(&deps);
                let work = tokio::task::spawn_blocking(move || {
                    let written = write(&order, at, &deps, &mut own);
                    (own, written)
                });
                let written = match work.await {
                    Ok((own, written)) => {
                        journal = own;
                        written
                    }
                    Err(error) => Err(super::bug(&error)),
                };
                out.answer(Msg::LabelWritten { number, written });
                drop(working);
            }
        });
        Scribe(orders)
    }
}

fn write(
    order: &LabelOrder,
    at: WallTime,
    deps: &Deps,
    journal: &mut Journal,
) -> Result<Written, String> {
    let what = match &order.what {
        LabelChange::Say(name, passed) => LabelFileEdit::Put(Label {
            transcript: name.transcript.clone(),
            rubric: Some(name.rubric.clone()),
            eval: name.eval.clone(),
            passed: *passed,
            score: None,
            by: order
                .file
                .parent()
                .and_then(|folder| find_label_author(&deps.env, folder)),
            at: Some(at),
            note: None,
        }),
        LabelChange::Remove(name) => LabelFileEdit::Remove {
            transcript: name.transcript.clone(),
            rubric: name.rubric.clone(),
            eval: name.eval.clone(),
        },
        LabelChange::TakeBack(number) => {
            let back = journal.get(number).cloned();
            LabelFileEdit::Undo(
                back.ok_or("it was not written, and there is nothing to take back")?,
            )
        }
    };
    let changed = edit_labels_file(&order.file, &what)?;
    journal.insert(order.number, changed.undo);
    Ok(Written {
        label: changed.label,
        before: changed.fingerprint_before,
        after: changed.fingerprint_after,
    })
}
