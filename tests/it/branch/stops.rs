//! A judge trace that stops at breakpoints, is edited there, and continues: on every dialect, streamed and whole.

use std::sync::Arc;

use dicta::clock::{Clock, SystemClock};
use dicta::event::{EventKind, RunEvent};
use dicta::handlers::EvalTypeRegistry;
use dicta::judge::{Breakpoint, BreakpointGate, PauseDecision, PausedAt, PausedTrace};
use dicta::model::Outcome;
use dicta::run::{self, DecisionFilter, RunOptions};
use dicta::workspace::{self, Env};

use super::{Dialect, Shop, bodies, branch, dicta, judging, recorded_items, workspace};
use crate::cli::TestDir;
use crate::support::wire::WireServer;

/// Judges the transcript `one` with these breakpoints, and lets `decide` release each pause. Returns the run's name and its
/// events.
async fn run_with_stops(
    test_dir: &TestDir,
    breakpoints: &[&str],
    mut decide: impl FnMut(PausedTrace),
) -> (String, Vec<RunEvent>) {
    let data = test_dir.path().join(".data").display().to_string();
    let env = Env([
        ("DICTA_DATA_DIR".to_owned(), data),
        ("KEY".to_owned(), "k-4711-test".to_owned()),
    ]
    .into());
    let registry = EvalTypeRegistry::builtin();
    let workspace = workspace::load(test_dir.path(), &env, &registry).expect("a workspace");
    let breakpoints = breakpoints.iter().map(|text| text.parse().expect("valid"));
    let (gate, mut pauses) = BreakpointGate::new(breakpoints.collect::<Vec<Breakpoint>>());
    let options = RunOptions {
        gate: Arc::new(gate),
        filter: Some(DecisionFilter::parse("transcript:one").expect("a filter")),
        ..RunOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let started = run::start_run(Arc::new(workspace), &registry, &env, clock, options);
    let mut handle = started.await.expect("a run");
    let mut events = Vec::new();
    let mut waiting = std::collections::VecDeque::new();
    let mut recorded = 0;
    loop {
        tokio::select! {
            Some(trace) = pauses.recv() => waiting.push_back(trace),
            batch = handle.events.recv() => {
                let Some(batch) = batch else { break };
                let is_pause = |event: &&RunEvent| matches!(event.kind, EventKind::Paused { .. });
                recorded += batch.iter().filter(is_pause).count();
                events.extend(batch.iter().cloned());
            }
        }
        // As for a person, a pause is recorded before the decision.
        while recorded > 0
            && let Some(trace) = waiting.pop_front()
        {
            recorded -= 1;
            decide(trace);
        }
    }
    handle.join.await.expect("no panic").expect("a recording");
    (handle.run.0, events)
}

/// Stops before the call and at its response, edits both, and continues. Then branches twice and replays.
async fn check_stopped_trace(dialect: Dialect, provider: &str) {
    for stream in [true, false] {
        let (server, shop) = (judging(dialect), Shop::failing_first(0));
        let settings = format!("provider: {provider}, stream: {stream}");
        let test_dir = workspace(&[("m", &server, &settings)], &shop);
        let mut stops = Vec::new();
        let (run, events) = run_with_stops(&test_dir, &["call", "answer"], |trace| {
            let edited = match &trace.at {
                PausedAt::Call { .. } => r#"{"number": "TF-4108"}"#.to_owned(),
                PausedAt::Answered(text) => text.replace("190.25", "195.25"),
                other => panic!("{other:?}"),
            };
            stops.push(trace.point);
            let action = trace.at.edit(&edited).expect("a valid edit");
            trace.decide(PauseDecision::Edit(action));
        })
        .await;
        assert_eq!(stops.len(), 2, "{provider} {stream}: {stops:?}");
        let mut state = dicta::event::RunState::default();
        for event in &events {
            state.apply(event);
        }
        let result = state.cells[0].result.as_deref().expect("a result");
        assert_eq!(
            result.outcome,
            Outcome::Pass,
            "{provider} {:?}",
            result.error
        );
        assert!(result.by_human, "{provider}");
        // The edited call was made, and the judge got its own items again with the edited response.
        let asked = shop.server.requests();
        assert_eq!(asked.len(), 1, "{provider}");
        assert!(asked[0].path.contains("TF-4108"), "{}", asked[0].path);
        let requests = server.requests();
        let sent = bodies(&requests);
        assert_eq!(sent.len(), 2, "{provider} {stream}");
        for item in recorded_items(&test_dir, &run) {
            assert!(sent[1].contains(&item), "{provider} {stream}: {item}");
        }
        assert!(
            sent[1].contains("195.25") && !sent[1].contains("190.25"),
            "{provider}"
        );

        // Branches without a change send the same bytes, also a branch of a branch.
        let first = branch(&test_dir, &[&run, "one/r/grounded", "--at", "2.prompt"]);
        let of_branch = first["run"].as_str().expect("a run");
        branch(
            &test_dir,
            &[of_branch, "one/r/grounded", "--at", "2.prompt"],
        );
        let requests = server.requests();
        let sent = bodies(&requests);
        assert_eq!(sent.len(), 4, "{provider} {stream}");
        assert!(sent[2] == sent[1], "{provider} {stream}: {}", sent[2]);
        assert!(sent[3] == sent[1], "{provider} {stream}: {}", sent[3]);
        assert_eq!(first["edited"], true, "{provider}");

        // A replay shows the edits and calls nothing.
        let (code, out, err) = dicta(&test_dir, &["replay", &run, "--print"]);
        assert_eq!(code, Some(0), "{out}{err}");
        let edits = out.matches("resumed by human: edited").count();
        assert_eq!(edits, 2, "{provider}: {out}");
        assert_eq!(
            (server.requests().len(), shop.asked()),
            (4, 1),
            "{provider}"
        );
    }
}

/// Edits the prompt before the first model call. The later requests, and those of branches, keep the edit.
async fn check_edited_prompt(dialect: Dialect, provider: &str) {
    let (server, shop) = (judging(dialect), Shop::failing_first(0));
    let settings = format!("provider: {provider}");
    let test_dir = workspace(&[("m", &server, &settings)], &shop);
    let mut is_first = true;
    let (run, _) = run_with_stops(&test_dir, &["turn"], |trace| {
        let decision = if std::mem::take(&mut is_first) {
            let text = trace.at.editable_text().expect("texts");
            let text = text.replace("The amount is on file.", "The amount is on file today.");
            PauseDecision::Edit(trace.at.edit(&text).expect("a valid edit"))
        } else {
            PauseDecision::Continue
        };
        trace.decide(decision);
    })
    .await;
    for at in ["1.prompt", "2.prompt"] {
        let again = branch(&test_dir, &[&run, "one/r/grounded", "--at", at]);
        assert_eq!(again["edited"], true, "{provider} {at}: {again}");
    }
    let requests = server.requests();
    let sent = bodies(&requests);
    assert_eq!(sent.len(), 5, "{provider}");
    for body in &sent {
        assert!(body.contains("on file today."), "{provider}: {body}");
    }
    assert!(sent[2] == sent[0], "{provider}: {}", sent[2]);
    assert!(sent[4] == sent[1], "{provider}: {}", sent[4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edited_prompt_stays_in_the_later_requests() {
    for (dialect, provider) in [
        (Dialect::Openai, "openai"),
        (Dialect::Gemini, "gemini"),
        (Dialect::Anthropic, "anthropic"),
        (Dialect::Responses, "openai-responses"),
    ] {
        check_edited_prompt(dialect, provider).await;
    }
}

/// Judges with the first request edited by `edit`. Returns the run's name.
async fn run_with_edited_prompt(test_dir: &TestDir, edit: impl Fn(&PausedAt) -> String) -> String {
    let mut is_first = true;
    let (run, _) = run_with_stops(test_dir, &["turn"], |trace| {
        let decision = if std::mem::take(&mut is_first) {
            let text = edit(&trace.at);
            PauseDecision::Edit(trace.at.edit(&text).expect("a valid edit"))
        } else {
            PauseDecision::Continue
        };
        trace.decide(decision);
    })
    .await;
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edit_of_other_values_than_texts_is_repeated_by_a_branch() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    let run = run_with_edited_prompt(&test_dir, |at| match at {
        PausedAt::Turn(body) => body.replacen('{', "{\"top_p\":0.5,", 1),
        other => panic!("{other}"),
    })
    .await;
    branch(&test_dir, &[&run, "one/r/grounded", "--at", "1.prompt"]);
    let requests = server.requests();
    let sent = bodies(&requests);
    assert!(sent[0].contains("\"top_p\":0.5"), "{}", sent[0]);
    assert!(sent[2] == sent[0], "{}", sent[2]);
}

/// Returns a workspace with the judges `m` and `short`, and a run in which a person edited the prompt of `m`.
async fn run_next_to_another_judge(server: &WireServer, shop: &Shop) -> (TestDir, String) {
    let judges = [
        ("m", server, "provider: openai"),
        ("short", server, "provider: openai, max_turns: 3"),
    ];
    let test_dir = workspace(&judges, shop);
    let run = run_with_edited_prompt(&test_dir, |at| {
        let text = at.editable_text().expect("texts");
        text.replace("The amount is on file.", "The amount is on file today.")
    })
    .await;
    (test_dir, run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_judge_gets_the_edit_and_keeps_its_own_texts() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let (test_dir, run) = run_next_to_another_judge(&server, &shop).await;
    let at = ["--at", "1.prompt", "--judge", "short"];
    branch(&test_dir, &[&[&*run, "one/r/grounded"][..], &at].concat());
    let requests = server.requests();
    let sent = bodies(&requests);
    assert!(sent[2].contains("on file today."), "{}", sent[2]);
    assert!(sent[2].contains("at most 3 times"), "{}", sent[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branch_of_a_branch_with_another_judge_gets_the_edit_too() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let (test_dir, run) = run_next_to_another_judge(&server, &shop).await;
    // The first branch repeats the edit in its own request, or takes it from the recording.
    for at in ["1.prompt", "2.prompt"] {
        let first = branch(&test_dir, &[&run, "one/r/grounded", "--at", at]);
        let of_branch = first["run"].as_str().expect("a run");
        let args = ["--at", "1.prompt", "--judge", "short"];
        let before = server.requests().len();
        branch(
            &test_dir,
            &[&[of_branch, "one/r/grounded"][..], &args].concat(),
        );
        let requests = server.requests();
        let sent = bodies(&requests);
        assert!(sent[before].contains("on file today."), "{}", sent[before]);
        assert!(sent[before].contains("at most 3 times"), "{}", sent[before]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_and_edited_trace_continues_with_the_models_own_items_of_openai() {
    check_stopped_trace(Dialect::Openai, "openai").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_and_edited_trace_continues_with_the_models_own_items_of_gemini() {
    check_stopped_trace(Dialect::Gemini, "gemini").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_and_edited_trace_continues_with_the_models_own_items_of_anthropic() {
    check_stopped_trace(Dialect::Anthropic, "anthropic").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_and_edited_trace_continues_with_the_models_own_items_of_openai_responses() {
    check_stopped_trace(Dialect::Responses, "openai-responses").await;
}
