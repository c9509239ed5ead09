//! No fault of a server that speaks Anthropic Messages becomes a number.

use super::*;

impl JudgeHarness {
    /// Judges, with every wait for another attempt over at once.
    async fn judge_impatiently(&self) -> CellResult {
        let (to, mut facts) = mpsc::channel::<RedactedEvent>(10_000);
        let cx = CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock: Arc::new(self.clock.clone()),
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let question = question();
        let mut judging = self.engine.judge(&question, &cx);
        loop {
            tokio::select! {
                biased;
                Some(envelope) = facts.recv() => {
                    let EventKind::Turn { fact, .. } = envelope.kind else {
                        continue;
                    };
                    if let TurnFact::AttemptFailed { retry_in: Some(wait), .. } = fact {
                        self.clock.advance(wait);
                    }
                }
                result = &mut judging => return result,
            }
        }
    }
}

/// The faulty replies of a server: a name, and the reply.
fn faults() -> Vec<(String, Reply)> {
    let good = || Reply::text(verdict(true).to_string());
    let mut all: Vec<(String, Reply)> = Vec::new();
    for status in [
        307, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529,
    ] {
        all.push((format!("status {status}"), Reply::status(status)));
    }
    for at in [0, 1, 60, 200, 300, 400, 500, 700, 900, 1100] {
        all.push((format!("broken at byte {at}"), good().cut_at(at)));
        all.push((format!("ended at byte {at}"), good().end_at(at)));
    }
    for reason in [
        "max_tokens",
        "refusal",
        "pause_turn",
        "model_context_window_exceeded",
    ] {
        all.push((format!("stop reason `{reason}`"), good().finish(reason)));
    }
    for kind in [
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "invalid_request_error",
        "brand_new_error",
    ] {
        let error = json!({"type": kind, "message": "boom"});
        all.push((format!("{kind} in the stream"), good().then_error(error)));
    }
    let raw = |text: &str| Reply::raw(text);
    for (name, reply) in [
        ("no message_stop", good().no_done()),
        ("half an event", good().then_malformed()),
        ("a page", raw("<html>hello</html>\n")),
        ("nothing", raw("")),
        ("an error with 200", raw(r#"{"error":{"message":"boom"}}"#)),
        ("no JSON", raw("data: nonsense\n\n")),
        (
            "a call nobody offered",
            Reply::call("submit_verdict", verdict(true)),
        ),
    ] {
        all.push((name.to_owned(), reply));
    }
    for text in [
        "",
        "PASS",
        "{}",
        "[]",
        r#"{"passed": "yes", "score": 1}"#,
        r#"{"passed": true, "score": NaN}"#,
        r#"{"passed": true, "score": 7}"#,
        r#"{"passed": true, "passed": false, "score": 1}"#,
        r#"{"reasoning": "good", "score": "high"}"#,
        r#"{"reasoning": "it is good"}"#,
        r#"{"passed": true, "score": 1.0"#,
        r#"{"passed": true, "score": 1} {"passed": false, "score": 0}"#,
    ] {
        all.push((format!("the text `{text}`"), Reply::text(text)));
    }
    all
}

#[tokio::test]
async fn broken_anthropic_reply_never_becomes_a_score() {
    let faults = faults();
    assert!(faults.len() >= 60, "{}", faults.len());
    for (what, reply) in faults {
        let harness = JudgeHarness::new(Dialect::Anthropic, false, vec![reply; 4]);
        let result = harness.judge_impatiently().await;
        assert!(
            result.outcome.is_error() && result.score.is_none() && result.verdict.is_none(),
            "{what}: {result:?}"
        );
        assert!(result.error.is_some(), "{what}");
    }
    let good = JudgeHarness::new(
        Dialect::Anthropic,
        false,
        vec![Reply::text(verdict(true).to_string())],
    );
    assert_eq!(good.judge_impatiently().await.outcome, Outcome::Pass);
}

#[tokio::test]
async fn broken_reply_after_a_tool_turn_never_becomes_a_score() {
    for reply in [
        Reply::call("submit_verdict", verdict(true)).finish("max_tokens"),
        Reply::call("submit_verdict", verdict(true)).finish("refusal"),
        Reply::call("submit_verdict", verdict(true)).no_done(),
        Reply::raw_call(
            "submit_verdict",
            r#"{"reasoning": "fine", "passed": true, "score": 1"#,
        ),
        Reply::raw_call("submit_verdict", ""),
    ] {
        let page = Reply::call("fetch_url", json!({"url": "https://releases.example"}));
        let script = [vec![page], vec![reply.clone(); 4]].concat();
        let result = JudgeHarness::new(Dialect::Anthropic, true, script)
            .judge_impatiently()
            .await;
        assert!(
            result.outcome.is_error() && result.score.is_none(),
            "{reply:?}: {result:?}"
        );
    }
}
