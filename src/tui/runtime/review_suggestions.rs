//! Groups of notes in the background: by similar words, and from a judge's model.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Runtime, RuntimeDeps};
use crate::model::JudgeConfig;
use crate::review::{
    ReviewNote, ReviewSession, SuggestionOrder, render_suggestion_prompt, suggest_groups,
};
use crate::run::PaidCalls;
use crate::tui::history_view::Shared;
use crate::tui::msg::Msg;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::{SECRET_FILE, data_dir, load_or_create_installation_secret};

impl Runtime {
    /// Groups notes by similar words.
    pub(super) fn group_notes(&self, number: u64, notes: Vec<ReviewNote>, cut: f64) {
        self.spawn_blocking(
            move || {
                let notes: Vec<&ReviewNote> = notes.iter().collect();
                Msg::GroupsSuggested {
                    number,
                    groups: Ok(suggest_groups(&notes, cut)),
                }
            },
            move |why| Msg::GroupsSuggested {
                number,
                groups: Err(why),
            },
        );
    }

    /// Renders the prompt for a judge and estimates its cost. Sends nothing.
    pub(super) fn estimate_suggestions(
        &self,
        number: u64,
        session: Shared<ReviewSession>,
        judge: JudgeConfig,
    ) {
        let deps = Arc::clone(&self.deps);
        self.spawn_waiting(
            move || Msg::SuggestionsEstimated {
                number,
                estimated: estimate(&deps, &session, judge).map_err(TaskFailure::new),
            },
            move |why| Msg::SuggestionsEstimated {
                number,
                estimated: Err(why),
            },
        );
    }

    /// Asks a judge for groups.
    pub(super) fn ask_for_suggestions(&mut self, number: u64, order: Shared<SuggestionOrder>) {
        self.suggestions_cancel.cancel();
        self.suggestions_cancel = CancellationToken::new();
        let cancel = self.suggestions_cancel.clone();
        let (deps, out) = (Arc::clone(&self.deps), self.outbox.clone());
        self.spawn_waiting(
            move || {
                let show = |phrase| out.send_answer(Msg::SuggestionProgress { number, phrase });
                let asking = order.ask(&deps.env, &deps.clock, &show, &cancel);
                // Opening the judge may block, and this thread belongs to the task.
                let made = Handle::current().block_on(asking);
                Msg::SuggestionsMade {
                    number,
                    made: made.map_err(|error| TaskFailure::new(error.to_string())),
                }
            },
            move |why| Msg::SuggestionsMade {
                number,
                made: Err(why),
            },
        );
    }
}

fn estimate(
    deps: &RuntimeDeps,
    session: &ReviewSession,
    judge: JudgeConfig,
) -> Result<(Shared<SuggestionOrder>, PaidCalls), String> {
    let folder = data_dir(&deps.env).map_err(|error| error.to_string())?;
    let secret = load_or_create_installation_secret(&folder.join(SECRET_FILE));
    let secret = secret.map_err(|error| error.to_string())?;
    let prompt = render_suggestion_prompt(&session.book, &secret);
    let workspace = session.place.workspace.clone();
    let order = SuggestionOrder {
        workspace: workspace.ok_or("a judge needs a workspace")?,
        judge,
        prompt: prompt.ok_or("fewer than two notes have no mode")?,
        files: session.place.files.clone(),
    };
    let estimate = order.estimate(&deps.env, &deps.clock);
    let calls = Handle::current().block_on(estimate);
    let calls = calls.map_err(|error| error.to_string())?;
    Ok((order.into(), calls))
}
