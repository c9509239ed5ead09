//! Writes the choices on the screen one after the other, so that the newest one wins.

use std::sync::{Arc, PoisonError};

use super::Runtime;
use crate::tui::msg::Msg;
use crate::tui::screen_choices::ScreenChoices;

impl Runtime {
    /// Writes choices in the background. The program waits for the write when it ends. At most one write runs, and one
    /// waits for it.
    pub(super) fn remember_choices(&self, choices: ScreenChoices) {
        let (unwritten, writer) = (
            Arc::clone(&self.unwritten_choices),
            Arc::clone(&self.choices_writer),
        );
        let mut waiting = unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ordered = *waiting != ScreenChoices::default();
        waiting.merge(choices);
        drop(waiting);
        // The write that waits takes these choices, too.
        if is_ordered {
            return;
        }
        let (deps, out) = (Arc::clone(&self.deps), self.outbox.clone());
        let working = out.tasks.start_task();
        self.run_tasks.spawn_blocking(move || {
            // Held during the write, so that an older choice never replaces a newer one.
            let turn = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let all =
                std::mem::take(&mut *unwritten.lock().unwrap_or_else(PoisonError::into_inner));
            if all != ScreenChoices::default()
                && let Err(error) = all.write(&deps.env)
            {
                let why = format!("your choice is not remembered for the next start: {error}");
                out.send_answer(Msg::Refused(why));
            }
            drop(turn);
            drop(working);
        });
    }
}
