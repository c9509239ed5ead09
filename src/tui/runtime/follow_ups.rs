//! Follow-up questions: one call of the judge's model, recorded next to the run that judged.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Runtime, RuntimeDeps};
use crate::judge::ModelQuestion;
use crate::record::{FollowUp, RecordedRun};
use crate::report::{QuotePlaces, format_judge_trace};
use crate::run::{JudgeInquiry, PaidCalls, find_record_key, render_follow_up};
use crate::tui::msg::Msg;
use crate::tui::reads::{self, LastIndex};
use crate::tui::state::follow_ups::{FollowUpKey, FollowUpOrder};
use crate::tui::state::judge_trace::CellRef;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::{SECRET_FILE, data_dir, load_or_create_installation_secret};

impl Runtime {
    pub(super) fn read_follow_ups(&self, key: FollowUpKey) {
        let deps = Arc::clone(&self.deps);
        let failed = key.clone();
        self.spawn_blocking(
            move || {
                let list = find_run(&deps, &key).read_follow_ups(key.cell);
                Msg::FollowUpsRead { key, list }
            },
            // Without them, the trace is still complete.
            move |_| Msg::FollowUpsRead {
                key: failed,
                list: Vec::new(),
            },
        );
    }

    pub(super) fn ask_follow_up(&self, order: FollowUpOrder) {
        let deps = Arc::clone(&self.deps);
        let (key, failed) = (order.key.clone(), order.key.clone());
        self.spawn_waiting(
            move || match ask(&deps, order) {
                Ok(Asked::Priced(order, calls)) => Msg::FollowUpPriced { order, calls },
                Ok(Asked::Answered(answer)) => Msg::FollowUpAnswered {
                    key,
                    answered: Ok(answer),
                },
                Err(why) => Msg::FollowUpAnswered {
                    key,
                    answered: Err(TaskFailure::new(why)),
                },
            },
            move |why| Msg::FollowUpAnswered {
                key: failed,
                answered: Err(why),
            },
        );
    }
}

fn find_run(deps: &RuntimeDeps, key: &FollowUpKey) -> RecordedRun {
    RecordedRun {
        id: key.run.clone(),
        dir: key.dir.clone(),
        key: find_record_key(&deps.env),
    }
}

/// The result of an order.
enum Asked {
    /// The question costs more than the limit, and was not sent.
    Priced(Box<FollowUpOrder>, PaidCalls),
    /// The judge answered.
    Answered(Box<FollowUp>),
}

/// Asks the judge and records the answer. The error is a sentence.
fn ask(deps: &RuntimeDeps, order: FollowUpOrder) -> Result<Asked, String> {
    let FollowUpOrder {
        key,
        name,
        judge,
        question,
        workspace,
        is_confirmed,
    } = &order;
    let run = find_run(deps, key);
    let which = CellRef::Ix(key.cell);
    let recorded = reads::read_recorded_cell(&run, &which, &LastIndex::default(), &|| false)
        .ok_or_else(|| "the trace could not be read".to_owned())?
        .map_err(|error| error.to_string())?;
    let trace = format_judge_trace(name, &recorded.state, &*run.blobs(), &QuotePlaces::new());
    let folder = data_dir(&deps.env).map_err(|error| error.to_string())?;
    let secret = load_or_create_installation_secret(&folder.join(SECRET_FILE));
    let secret = secret.map_err(|error| error.to_string())?;
    let prompt = render_follow_up(&trace, question, &secret);
    let cancel = CancellationToken::new();
    let inquiry = JudgeInquiry {
        workspace,
        env: &deps.env,
        clock: &deps.clock,
        judge,
        question: &ModelQuestion {
            system: prompt.system,
            user: prompt.user,
        },
    };
    if !is_confirmed {
        let calls = Handle::current().block_on(inquiry.estimate());
        let calls = calls.map_err(|error| error.to_string())?;
        if calls.needs_confirmation(workspace.limits.confirm_usd) {
            return Ok(Asked::Priced(Box::new(order), calls));
        }
    }
    // The pane shows that the question is open, and needs no finer progress.
    let reply = Handle::current().block_on(inquiry.ask(&|_| {}, &cancel));
    let reply = reply.map_err(|error| error.to_string())?;
    let follow_up = FollowUp {
        cell: key.cell,
        at: deps.clock.wall_time(),
        judge: judge.name.clone(),
        model: judge.model.clone(),
        question: question.clone(),
        answer: reply.text,
        usage: reply.usage,
    };
    run.add_follow_up(&follow_up)
        .map_err(|error| format!("the answer could not be recorded: {error}"))?;
    Ok(Asked::Answered(Box::new(follow_up)))
}
