//! Judges that answer with probabilities, over real loopback HTTP.

use super::*;

const KINDS: [ProviderKind; 2] = [ProviderKind::OpenaiDecisions, ProviderKind::GeminiDecisions];

fn harness(kind: ProviderKind, replies: Vec<Reply>) -> JudgeHarness {
    let server = WireServer::openai(replies);
    let mut config = JudgeConfig::new("wire", kind);
    "scripted".clone_into(&mut config.model);
    config.base_url = Some(server.base_url());
    let clock = FakeClock::new();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let provider = provider::build_provider(&config, Some("sk-test-4711-abcdef"), shared)
        .expect("a known dialect");
    let deps = JudgeEngineDeps {
        gate: Arc::new(OpenGate),
        evidence: Arc::new(NoEvidence),
        budget: Arc::default(),
        secret: InstallationSecret::new([5; 32]),
    };
    JudgeHarness {
        server,
        engine: JudgeEngine::new(config, provider, ToolSet::default(), deps),
        clock,
        cancel: CancellationToken::new(),
    }
}

fn answered(kind: ProviderKind, p: &str) -> Reply {
    Reply::raw(match kind {
        ProviderKind::GeminiDecisions => {
            format!(r#"{{"answers":{{"met":{{"noul":{p}}}}},"usage":{{"input_tokens":50}}}}"#)
        }
        _ => {
            format!(
                r#"{{"answers":[{{"type":"predicate","probability":{p}}}],"usage":{{"input_tokens":50}}}}"#
            )
        }
    })
}

#[tokio::test]
async fn decision_needs_one_request_and_emits_its_facts() {
    for kind in KINDS {
        let harness = harness(kind, vec![answered(kind, "0.93")]);
        let judged = harness.judge().await;
        assert_eq!(judged.result.outcome, Outcome::Pass, "{:?}", judged.result);
        assert_eq!(
            judged.result.explanation,
            format!("p = 0.93, no rationale ({})", kind.as_str())
        );
        let usage = judged.result.usage.expect("counted");
        assert_eq!(
            (usage.input, usage.output, usage.calls),
            (Some(50), Some(0), 1)
        );
        let request = &judged.requests[0];
        assert!(request.path.ends_with("/v1/decisions"), "{}", request.path);
        let (header, key) = match kind {
            ProviderKind::GeminiDecisions => ("x-goog-api-key", "sk-test-4711-abcdef"),
            _ => ("authorization", "Bearer sk-test-4711-abcdef"),
        };
        assert_eq!(request.header(header), Some(key));
        assert!(request.mentions("begin transcript") && request.mentions("begin criteria"));
        let mut keys = Vec::new();
        all_keys(&request.json(), &mut keys);
        for none in ["temperature", "stream", "tools", "max_output_tokens"] {
            assert!(!keys.contains(&none.to_owned()), "{keys:?}");
        }
        let body = harness
            .engine
            .first_request_body(&question())
            .expect("a body");
        assert_eq!(body.text(), request.body, "what `dicta prompt` shows");
        let fact_names: Vec<&str> = judged
            .kinds
            .iter()
            .filter_map(|kind| match kind {
                EventKind::Turn { fact, .. } => Some(match fact {
                    TurnFact::Started { .. } => "started",
                    TurnFact::AttemptStarted { .. } => "attempt",
                    TurnFact::Delta { .. } => "delta",
                    TurnFact::Finished { .. } => "finished",
                    TurnFact::VerdictReached(_) => "verdict",
                    _ => "other",
                }),
                _ => None,
            })
            .collect();
        assert_eq!(
            fact_names,
            ["started", "attempt", "delta", "finished", "verdict"]
        );
    }
}

/// Judges while time moves on by what each attempt waits for.
async fn in_time(harness: &JudgeHarness) -> Judged {
    let moving = async {
        loop {
            tokio::task::yield_now().await;
            if let Some(at) = harness.clock.next_wake().filter(|at| *at < Millis(10_000)) {
                harness.clock.advance(at - harness.clock.now());
            }
        }
    };
    tokio::select! {
        judged = harness.judge() => judged,
        () = moving => unreachable!("it never ends"),
    }
}

#[tokio::test]
async fn broken_decision_reply_never_becomes_a_score() {
    for kind in KINDS {
        let good = answered(kind, "0.93");
        for (what, reply, outcome) in [
            ("too much", answered(kind, "1.5"), Outcome::Unparsed),
            ("no number", answered(kind, "NaN"), Outcome::Unparsed),
            ("infinite", answered(kind, "1e999"), Outcome::Unparsed),
            ("null", answered(kind, "null"), Outcome::Unparsed),
            ("nothing", Reply::raw("{}"), Outcome::Unparsed),
            (
                "blocked",
                Reply::raw(r#"{"answers":{},"prompt_feedback":{"block_reason":"SAFETY"}}"#),
                Outcome::JudgeError,
            ),
            ("401", Reply::status(401), Outcome::JudgeError),
            ("400", Reply::status(400), Outcome::JudgeError),
        ] {
            let judged = harness(kind, vec![reply]).judge().await;
            assert_eq!(
                judged.result.outcome, outcome,
                "{what}: {:?}",
                judged.result
            );
            assert_eq!((judged.result.score, judged.result.verdict), (None, None));
        }
        // Cut at every byte: the four attempts are the same, and the time for the waits is taken from them.
        for cut in (0..60).step_by(7) {
            let judged = in_time(&harness(kind, vec![good.clone().end_at(cut)])).await;
            assert_eq!(judged.result.score, None, "cut at {cut}");
        }
    }
}

#[tokio::test]
async fn busy_decisions_service_is_retried() {
    let kind = ProviderKind::OpenaiDecisions;
    let harness = harness(
        kind,
        vec![
            Reply::status(503).header("retry-after", "0"),
            answered(kind, "0.2"),
        ],
    );
    let judged = in_time(&harness).await;
    assert_eq!(judged.result.outcome, Outcome::Fail);
    assert_eq!(judged.requests.len(), 2);
}
