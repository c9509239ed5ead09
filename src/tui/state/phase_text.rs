//! The phase of a judge in words: waiting, streaming, running tools, backing off and why, the number of the attempt.
//!
//! Responsible for the texts only; the fold computes [`CellPhase`]. Times are those of the run, so that a replay
//! counts down like the run.

use indexmap::IndexMap;

use crate::event::{AttemptState, CellPhase, CellState, GatePoint, ThrottleReason, TurnState};
use crate::model::Millis;

/// Shown when a throttle is over but other cells are first.
const WAITING_FOR_SLOT: &str = "waiting its turn";

/// Describes a phase in a few words. `now` is the run's own time.
pub(crate) fn describe_phase(phase: &CellPhase, now: Millis) -> String {
    match phase {
        CellPhase::Planned => "queued".to_owned(),
        CellPhase::Waiting => "waiting".to_owned(),
        CellPhase::Streaming => "streaming".to_owned(),
        CellPhase::RunningTools(1) => "running a tool".to_owned(),
        CellPhase::RunningTools(n) => format!("running {n} tools"),
        CellPhase::Held { by, until } => {
            let what = by.as_str();
            // Rounded up, so that the countdown ends with 1 and not with 0.
            match until.map(|until| until.since(now).0.div_ceil(1000)) {
                Some(0) => WAITING_FOR_SLOT.to_owned(),
                Some(seconds) => format!("waiting {seconds} s for {what}"),
                None => format!("waiting for {what}"),
            }
        }
        CellPhase::BackingOff { until } => {
            format!("backing off {} s", until.since(now).0.div_ceil(1000))
        }
        CellPhase::Paused(at) => format!("paused {}", describe_gate(*at)),
        CellPhase::Done => "done".to_owned(),
    }
}

/// Describes the place of a pause in a few words.
pub(crate) const fn describe_gate(at: GatePoint) -> &'static str {
    match at {
        GatePoint::BeforeTurn => "before a model call",
        GatePoint::Call => "before a tool call",
        GatePoint::Rejected => "after a refused call",
        GatePoint::Answered => "after an answer",
        GatePoint::Verdict => "after the verdict",
        GatePoint::Ended => "at the end",
    }
}

/// Describes the end of a trace that its run left without a result.
pub(crate) fn describe_interruption(paused_at: Option<GatePoint>) -> String {
    match paused_at {
        Some(at) => format!("interrupted at a pause {}", describe_gate(at)),
        None => "interrupted".to_owned(),
    }
}

/// Describes the phase of a cell for narrow places: names the running tool, and begins with the reason for a wait.
pub(crate) fn describe_cell_phase(cell: &CellState, now: Millis) -> String {
    if let CellPhase::Held { by, until } = cell.phase {
        let what = describe_hold(by);
        return match until.map(|until| until.since(now).0.div_ceil(1000)) {
            Some(0) => WAITING_FOR_SLOT.to_owned(),
            Some(seconds) => format!("{what} {seconds} s"),
            None => what.to_owned(),
        };
    }
    if let CellPhase::RunningTools(n) = cell.phase
        && let Some(name) = running_tool_names(cell).next()
    {
        return match n {
            // A count of 0 can arrive before the calls are listed.
            0 | 1 => format!("{name}…"),
            n => format!("{name}… +{}", n - 1),
        };
    }
    describe_phase(&cell.phase, now)
}

/// Describes only the rest of a wait, such as `4 s`; `None` if the cell does not wait for a known time.
pub(crate) fn describe_countdown(phase: &CellPhase, now: Millis) -> Option<String> {
    let until = match phase {
        CellPhase::Held { until, .. } => *until,
        CellPhase::BackingOff { until } => Some(*until),
        _ => None,
    };
    let seconds = until?.since(now).0.div_ceil(1000);
    (seconds > 0).then(|| format!("{seconds} s"))
}

const fn describe_hold(by: ThrottleReason) -> &'static str {
    match by {
        ThrottleReason::Rate => "rate limit",
        ThrottleReason::Tokens => "token limit",
        ThrottleReason::Server => "server's delay",
        ThrottleReason::Concurrency => WAITING_FOR_SLOT,
    }
}

/// Describes the phase in full: every running tool, the attempt, and the failure of the attempt before. `None` if the
/// cell is done.
pub(crate) fn describe_phase_in_full(cell: &CellState, now: Millis) -> Option<String> {
    let plain = describe_phase(&cell.phase, now);
    let attempt = find_open_attempt(cell);
    Some(match cell.phase {
        CellPhase::Done => return None,
        CellPhase::RunningTools(_) => match format_running_tools(cell) {
            names if names.is_empty() => plain,
            names => format!("running {names}"),
        },
        CellPhase::BackingOff { .. } => match attempt {
            Some((number, failed)) => match &failed.failed {
                Some(failure) => {
                    let why = describe_failure(failure.status, &failure.why);
                    format!("{plain} after attempt {number}: {why}")
                }
                None => plain,
            },
            None => plain,
        },
        CellPhase::Waiting | CellPhase::Streaming => match attempt {
            // The first attempt is the normal case, so it is not mentioned.
            Some((number @ 2.., _)) => format!("{plain}, attempt {number}"),
            _ => plain,
        },
        CellPhase::Planned | CellPhase::Paused(_) | CellPhase::Held { .. } => plain,
    })
}

/// Returns the newest attempt of a model call without a reply.
fn find_open_attempt(cell: &CellState) -> Option<(u8, &AttemptState)> {
    let turn = cell
        .judge_trace
        .last()
        .filter(|turn| turn.finished.is_none())?;
    let (number, attempt) = turn.attempts.last()?;
    Some((*number, attempt))
}

/// Returns the running tools in the order of their calls.
fn running_tool_names(cell: &CellState) -> impl Iterator<Item = &str> {
    let calls = cell
        .judge_trace
        .last()
        .into_iter()
        .flat_map(|turn| &turn.calls);
    let running = calls.filter(|call| call.started && call.finished.is_none());
    running.map(|call| call.name.as_str())
}

/// Formats the running tools, such as `fetch_url (2), search_transcript`.
fn format_running_tools(cell: &CellState) -> String {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for name in running_tool_names(cell) {
        *counts.entry(name).or_default() += 1;
    }
    let named = counts.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        n => format!("{name} ({n})"),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Describes the failure of an attempt in a word: its status, or the kind of the failure.
pub(crate) fn describe_failure(status: Option<u16>, why: &str) -> String {
    // The beginnings of the sentences of `ProviderError`.
    const WORDS: [(&str, &str); 4] = [
        ("cannot reach", "no connection"),
        ("the reply was cut", "cut"),
        ("the server reported an error", "error in the reply"),
        ("the reply is not the protocol", "not the protocol"),
    ];
    let known = || WORDS.iter().find(|(begins, _)| why.starts_with(begins));
    match status {
        Some(status) => status.to_string(),
        None => known().map_or("failed", |(_, word)| word).to_owned(),
    }
}

/// Returns the number of attempts of a trace, and the number of failed ones.
pub(crate) fn count_attempts(turns: &[TurnState]) -> (usize, usize) {
    let all = || turns.iter().flat_map(|turn| turn.attempts.values());
    let failed = all().filter(|attempt| attempt.failed.is_some()).count();
    (all().count(), failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{AttemptFailure, CallState, TurnState};
    use crate::provider::ProviderError;

    fn cell(phase: CellPhase, turn: TurnState) -> CellState {
        CellState {
            phase,
            judge_trace: vec![turn],
            ..CellState::default()
        }
    }

    fn attempts_of(failed: &[(Option<u16>, &str)], more: bool) -> TurnState {
        let mut turn = TurnState::default();
        for (number, (status, why)) in (1..).zip(failed) {
            let failed = Some(AttemptFailure {
                status: *status,
                why: (*why).to_owned(),
                retry_in: Some(Millis(1)),
            });
            let state = AttemptState {
                failed,
                ..AttemptState::default()
            };
            turn.attempts.insert(number, state);
        }
        if more {
            let number = u8::try_from(failed.len() + 1).expect("few");
            turn.attempts.insert(number, AttemptState::default());
        }
        turn
    }

    #[test]
    fn phases_are_described_briefly() {
        for (phase, text) in [
            (CellPhase::Planned, "queued"),
            (CellPhase::Waiting, "waiting"),
            (CellPhase::Streaming, "streaming"),
            (CellPhase::RunningTools(2), "running 2 tools"),
            (
                CellPhase::BackingOff {
                    until: Millis(5001),
                },
                "backing off 4 s",
            ),
        ] {
            assert_eq!(describe_phase(&phase, Millis(1500)), text);
        }
    }

    #[test]
    fn hold_reason_fits_list_row() {
        let describe = |by, until| {
            let held = cell(CellPhase::Held { by, until }, TurnState::default());
            describe_cell_phase(&held, Millis(500))
        };
        let soon = Some(Millis(4000));
        assert_eq!(describe(ThrottleReason::Server, soon), "server's delay 4 s");
        assert_eq!(
            describe(ThrottleReason::Rate, Some(Millis(1))),
            "waiting its turn"
        );
        assert_eq!(describe(ThrottleReason::Rate, None), "rate limit");
        assert_eq!(describe(ThrottleReason::Tokens, soon), "token limit 4 s");
        assert_eq!(
            describe(ThrottleReason::Concurrency, None),
            "waiting its turn"
        );
    }

    #[test]
    fn running_tools_are_named() {
        let call = |name: &str, started: bool| CallState {
            name: name.to_owned(),
            started,
            ..CallState::default()
        };
        let with_calls = |calls: Vec<CallState>| {
            let turn = TurnState {
                calls,
                ..TurnState::default()
            };
            let n = turn.calls.iter().filter(|call| call.started).count();
            cell(
                CellPhase::RunningTools(u16::try_from(n).expect("few")),
                turn,
            )
        };
        let one = with_calls(vec![call("fetch_url", true)]);
        assert_eq!(describe_cell_phase(&one, Millis(0)), "fetch_url…");
        assert_eq!(
            describe_phase_in_full(&one, Millis(0)).as_deref(),
            Some("running fetch_url")
        );
        let some = with_calls(vec![
            call("fetch_url", true),
            call("idle", false),
            call("read", true),
            call("fetch_url", true),
        ]);
        assert_eq!(describe_cell_phase(&some, Millis(0)), "fetch_url… +2");
        assert_eq!(
            describe_phase_in_full(&some, Millis(0)).as_deref(),
            Some("running fetch_url (2), read")
        );
    }

    #[test]
    fn attempts_are_counted_and_their_failures_named() {
        let line = |phase, turn| describe_phase_in_full(&cell(phase, turn), Millis(500));
        let off = CellPhase::BackingOff {
            until: Millis(3000),
        };
        let refused = [(Some(429), "429 from x"), (Some(503), "503 from x")];
        assert_eq!(
            line(off, attempts_of(&refused, false)).as_deref(),
            Some("backing off 3 s after attempt 2: 503")
        );
        assert_eq!(
            line(CellPhase::Waiting, attempts_of(&refused, true)).as_deref(),
            Some("waiting, attempt 3")
        );
        assert_eq!(
            line(CellPhase::Streaming, attempts_of(&[], true)).as_deref(),
            Some("streaming")
        );
        assert_eq!(count_attempts(&[attempts_of(&refused, true)]), (3, 2));
        assert_eq!(line(CellPhase::Done, attempts_of(&refused, true)), None);
    }

    #[test]
    fn every_provider_failure_has_short_description() {
        let url = "http://h".to_owned();
        let why = "x".to_owned();
        for (error, word) in [
            (
                ProviderError::Connect {
                    url,
                    why: why.clone(),
                },
                "no connection",
            ),
            (
                ProviderError::Cut {
                    why: why.clone(),
                    billed: None,
                },
                "cut",
            ),
            (
                ProviderError::InStream {
                    message: why.clone(),
                    retryable: true,
                },
                "error in the reply",
            ),
            (ProviderError::Malformed(why.clone()), "not the protocol"),
            (ProviderError::Request(why), "failed"),
        ] {
            assert_eq!(describe_failure(error.status(), &error.to_string()), word);
        }
    }
}
