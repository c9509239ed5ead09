//! Tests of juries and cascades in runs: which cells are planned, and that every reader decides the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::support::{
    FixedVerdictCache, FunctionJudge, Running, judge_pool_mut, key, outcomes, planned, run_with,
    summarize_log, transcript,
};
use crate::event::{EventKind, RunTotals};
use crate::model::{CellResult, Outcome, RunId, Verdict};
use crate::run::RunOptions;
use crate::run::execute::context::RunCx;

const JURY: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, jury: { judges: [one, two, three] }, params: { criteria: is polite } }
";

const UNANIMOUS: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, jury: { judges: [one, two, three], by: unanimity }, params: { criteria: is polite } }
";

const CASCADE: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, cascade: { judges: [two, one] }, params: { criteria: is polite } }
";

const REPEATED: &str = "
id: r
evals:
  - { id: tone, type: llm_judge, repeat: 3, jury: { judges: [one, two, three] }, params: { criteria: is polite } }
";

/// Starts a run of one transcript whose judges return these outcomes, in the order of the run's judges.
fn judged(rubric: &str, says: &[Outcome], change: impl FnOnce(&mut RunCx)) -> Running {
    let undecided_judge = Arc::new(FunctionJudge::new(|_| Outcome::JudgeError));
    let says = says.to_vec();
    let records = vec![transcript("t", "x")];
    run_with(
        rubric,
        &RunOptions::default(),
        records,
        &undecided_judge,
        |core| {
            for (nth, outcome) in says.into_iter().enumerate() {
                let slot = judge_pool_mut(core).slots[nth].as_mut().expect("a slot");
                slot.judge = Arc::new(FunctionJudge::new(move |_| outcome));
                let of = nth;
                slot.cache_key =
                    Box::new(move |ask| Some(key(&format!("{of}/{}", ask.transcript.id), 0)));
            }
            change(core);
        },
    )
}

async fn ended(running: Running) -> (RunTotals, Vec<String>, Vec<EventKind>) {
    let core = Arc::clone(&running.core);
    let (totals, log) = running.ended().await;
    let names = planned(&core, &log).into_iter().map(|(_, name)| name);
    (totals, names.collect(), log)
}

#[tokio::test]
async fn agreeing_jury_skips_its_third_member() {
    let (totals, names, _) = ended(judged(JURY, &[Outcome::Pass; 3], |_| {})).await;
    assert_eq!(names, ["t/r/tone~one", "t/r/tone~two"]);
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)], "one decision");
}

#[tokio::test]
async fn split_jury_plans_its_third_member_before_recording_the_second() {
    use Outcome::{Fail, Pass};
    let (totals, names, log) = ended(judged(JURY, &[Pass, Fail, Fail], |_| {})).await;
    assert_eq!(names, ["t/r/tone~one", "t/r/tone~two", "t/r/tone~three"]);
    assert_eq!(outcomes(&totals), [(Fail, 1)]);
    let lines = summarize_log(&log);
    let third = lines.iter().position(|line| line == "plan t 2+1");
    let finishes = |line: &String| line.starts_with("finish");
    let ends: Vec<usize> = (0..lines.len())
        .filter(|at| finishes(&lines[*at]))
        .collect();
    assert!(third > Some(ends[0]) && third < Some(ends[1]), "{lines:?}");
}

#[tokio::test]
async fn jury_without_a_majority_is_inconclusive_and_abstentions_do_not_pass() {
    use Outcome::{Fail, JudgeError, Pass, Timeout};
    for (rubric, says, cells, want) in [
        (JURY, [JudgeError, JudgeError, Pass], 2, JudgeError),
        (JURY, [Pass, JudgeError, Pass], 3, Pass),
        (UNANIMOUS, [Pass, Pass, Timeout], 3, Timeout),
        (UNANIMOUS, [Pass, Fail, Pass], 2, Fail),
        (UNANIMOUS, [Pass, Pass, Pass], 3, Pass),
    ] {
        let (totals, names, _) = ended(judged(rubric, &says, |_| {})).await;
        assert_eq!(outcomes(&totals), [(want, 1)], "{says:?}");
        assert_eq!(names.len(), cells, "{says:?}");
    }
}

#[tokio::test]
async fn each_member_repeats_until_its_vote_is_decided() {
    let (totals, names, _) = ended(judged(REPEATED, &[Outcome::Pass; 3], |_| {})).await;
    assert_eq!(
        names,
        [
            "t/r/tone~one#1",
            "t/r/tone~one#2",
            "t/r/tone~two#1",
            "t/r/tone~two#2"
        ]
    );
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
}

#[tokio::test]
async fn jury_renders_the_prompt_of_each_member_at_most_twice() {
    let rendered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rendered);
    let (totals, names, log) = ended(judged(UNANIMOUS, &[Outcome::Pass; 3], move |core| {
        for slot in judge_pool_mut(core).slots.iter_mut().flatten() {
            let rendered = Arc::clone(&counted);
            // The judges send the same request, so the last one is the third with its key.
            slot.cache_key = Box::new(move |ask| {
                rendered.fetch_add(1, Ordering::SeqCst);
                Some(key("same", ask.duplicate_index))
            });
        }
    }))
    .await;
    assert_eq!(
        (names.len(), outcomes(&totals)),
        (3, vec![(Outcome::Pass, 1)])
    );
    let keys = log.iter().filter_map(|kind| match kind {
        EventKind::CellStarted { key, .. } => key.clone(),
        _ => None,
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort();
    let mut want = [0, 1, 2].map(|index| key("same", index));
    want.sort();
    assert_eq!(keys, want);
    // Once for the number and once for the key, and the first member needs no number for itself.
    assert!(rendered.load(Ordering::SeqCst) <= 6, "{rendered:?}");
}

#[tokio::test]
async fn cascade_asks_the_strong_judge_only_if_the_cheap_one_is_unsure() {
    use Outcome::{Fail, Pass, Unparsed};
    // `two` is first in the cascade, and so first among the run's judges.
    let (totals, names, _) = ended(judged(CASCADE, &[Pass, Fail], |_| {})).await;
    assert_eq!((names.len(), outcomes(&totals)), (1, vec![(Pass, 1)]));
    let (totals, names, _) = ended(judged(CASCADE, &[Unparsed, Fail], |_| {})).await;
    assert_eq!(names, ["t/r/tone~two", "t/r/tone~one"]);
    assert_eq!(outcomes(&totals), [(Fail, 1)], "its decision stands");
}

#[tokio::test]
async fn cached_doubt_continues_a_cascade_and_cached_verdict_ends_it() {
    let recalled = |contradiction: Option<&str>| CellResult {
        verdict: Some(Box::new(Verdict {
            contradiction: contradiction.map(str::to_owned),
            ..Verdict::default()
        })),
        cached: Some(RunId("20260101T000000Z-past".into())),
        ..CellResult::new(Outcome::Pass, "")
    };
    for (contradiction, asked) in [(None, 0), (Some("it says fail"), 1)] {
        let known = FixedVerdictCache(vec![(key("0/t", 0), recalled(contradiction))]);
        let running = judged(CASCADE, &[Outcome::Pass, Outcome::Fail], |core| {
            judge_pool_mut(core).verdict_cache = Some(Box::new(known));
        });
        let (totals, _, log) = ended(running).await;
        let starts = log
            .iter()
            .filter(|k| matches!(k, EventKind::CellStarted { .. }));
        assert_eq!(starts.count(), asked);
        let want = [Outcome::Pass, Outcome::Fail][asked];
        assert_eq!(outcomes(&totals), [(want, 1)]);
    }
}

#[tokio::test]
async fn cancelled_jury_stays_pending() {
    let held = Arc::new(Semaphore::new(0));
    let mut running = judged(JURY, &[Outcome::Pass; 3], |core| {
        let slot = judge_pool_mut(core).slots[1].as_mut().expect("a slot");
        slot.judge = Arc::new(FunctionJudge::new(|_| Outcome::Pass).held(&held));
    });
    running
        .until(|kind| matches!(kind, EventKind::CellFinished { .. }))
        .await;
    running.core.cancel.cancel();
    let (totals, names, _) = ended(running).await;
    assert_eq!(names.len(), 3, "the third would be needed");
    assert_eq!((totals.pending, outcomes(&totals)), (1, vec![]));
}

#[test]
fn judge_option_replaces_a_jury() {
    let options = RunOptions {
        judge: Some("two".into()),
        ..RunOptions::default()
    };
    let compilation = super::support::compiled(JURY, &options);
    let plan = &compilation.plan.evals[0];
    assert_eq!(
        (plan.panel.is_none(), plan.judge_positions().len()),
        (true, 1)
    );
    let own = super::support::compiled(JURY, &RunOptions::default());
    assert_eq!(own.needed.len(), 3, "all are built");
    let spec = &own.eval_specs()[0];
    assert_eq!(spec.panel.as_ref().map(|panel| panel.judges.len()), Some(3));
}
