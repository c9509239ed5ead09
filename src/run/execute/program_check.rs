//! The check of a cell that waits for a program (`script`).
//!
//! Responsible for the result and its duration. Does not start or limit programs: the schedule gives each one a place.

use super::context::RunCx;
use super::worker::run_check;
use crate::handlers::Subject;
use crate::model::{CellResult, Outcome, Transcript};
use crate::run::plan::judged_decision::JudgedDecision;
use crate::run::plan::judged_message_count;

/// Runs the check of a cell that waits for a program; `None` if the run was cancelled meanwhile.
pub(super) fn run_program_check(
    core: &RunCx,
    transcript: &Transcript<'_>,
    decision: JudgedDecision,
) -> Option<CellResult> {
    let began = core.clock.now();
    let stop = &core.judge_pool.cancel_flag;
    let subject = Subject::prefix(
        transcript,
        judged_message_count(transcript, decision.message),
    )
    .with_cancel_flag(stop)
    .with_redactor(core.emitter.redactor());
    let mut result = match core.judge_pool.check(decision.eval) {
        Some(check) => run_check(check, &subject),
        None => CellResult::from_error(Outcome::CheckError, "this eval has no check"),
    };
    // The handler does not measure time, so measure the program here.
    result.duration_ms = core.clock.now().since(began);
    (!stop.is_cancelled()).then_some(result)
}
