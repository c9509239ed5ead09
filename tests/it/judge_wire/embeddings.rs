//! Judges that compare texts by their embeddings, over real loopback HTTP.

use super::*;

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

/// Returns the request of a `similar` eval with two references.
fn comparison(min_score: f64) -> JudgeRequest {
    let mut request = question();
    request.params = JudgedParams {
        min_score: Some(min_score),
        compared_texts: ["Use 2.69.", "No release.", "Use 2.69.0."]
            .map(str::to_owned)
            .to_vec(),
        ..JudgedParams::default()
    };
    request
}

/// The cosine of the second reference and the output is 0.6, that of the first one 0.8.
fn embedded(kind: ProviderKind) -> Reply {
    Reply::raw(match kind {
        ProviderKind::GeminiEmbeddings => {
            r#"{"embeddings":[{"values":[4,3]},{"values":[3,4]},{"values":[2,0]}]}"#.to_owned()
        }
        _ => r#"{"data":[{"index":0,"embedding":[4,3]},{"index":1,"embedding":[3,4]},{"index":2,"embedding":[2,0]}],"usage":{"prompt_tokens":12}}"#.to_owned(),
    })
}

#[tokio::test]
async fn embeddings_need_one_request_and_the_closest_reference_decides() {
    for (kind, path, key) in [
        (
            ProviderKind::OpenaiEmbeddings,
            "/embeddings",
            "authorization",
        ),
        (
            ProviderKind::GeminiEmbeddings,
            "/models/scripted:batchEmbedContents",
            "x-goog-api-key",
        ),
    ] {
        for (min_score, outcome) in [(0.8, Outcome::Pass), (0.81, Outcome::Fail)] {
            let harness = harness(kind, vec![embedded(kind)]);
            let request = comparison(min_score);
            let judged = harness.judge_request(&request).await;
            let result = &judged.result;
            assert_eq!(result.outcome, outcome, "{result:?}");
            assert_eq!(result.score, Some(0.8));
            assert_eq!(
                result.explanation,
                "cosine 0.8000 (reference 1 of 2), embeddings of 2 numbers"
            );
            assert_eq!(judged.requests.len(), 1);
            let sent = &judged.requests[0];
            assert!(sent.path.ends_with(path), "{}", sent.path);
            assert!(sent.header(key).is_some(), "the key is a header");
            let body = harness.engine.first_request_body(&request).expect("a body");
            assert_eq!(body.text(), sent.body, "what `dicta prompt` shows");
            // Nothing of the conversation but the compared texts leaves the machine.
            assert!(!sent.mentions("Which release?"), "{}", sent.body);
            let input = result.usage.as_ref().and_then(|usage| usage.input);
            let counted = (kind == ProviderKind::OpenaiEmbeddings).then_some(12);
            assert_eq!(input, counted);
        }
    }
}

#[tokio::test]
async fn broken_reply_of_an_embedding_model_is_no_verdict() {
    let kind = ProviderKind::OpenaiEmbeddings;
    for reply in [
        Reply::raw("{}"),
        Reply::raw(r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[1,0]}]}"#),
        Reply::raw(
            r#"{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,0]},{"index":2,"embedding":[1,0]}]}"#,
        ),
        Reply::status(400),
    ] {
        let judged = harness(kind, vec![reply])
            .judge_request(&comparison(0.1))
            .await;
        assert!(judged.result.outcome.is_error(), "{:?}", judged.result);
        assert_eq!((judged.result.score, judged.result.verdict), (None, None));
    }
}

#[tokio::test]
async fn question_in_words_sends_nothing_to_an_embedding_model() {
    let judged = harness(ProviderKind::OpenaiEmbeddings, Vec::new())
        .judge()
        .await;
    assert_eq!(judged.result.outcome, Outcome::JudgeError);
    let error = judged.result.error.unwrap_or_default();
    assert!(error.contains("decides only `similar`"), "{error}");
    assert!(judged.requests.is_empty());
}

#[tokio::test]
async fn cache_key_depends_on_the_texts_and_not_on_the_bounds() {
    let harness = harness(ProviderKind::OpenaiEmbeddings, Vec::new());
    let key = |request: &JudgeRequest| harness.engine.cache_key(request).expect("a key").key;
    let other_text = {
        let mut request = comparison(0.8);
        "No release".clone_into(&mut request.params.compared_texts[1]);
        request
    };
    assert_eq!(key(&comparison(0.8)), key(&comparison(0.2)));
    assert_ne!(key(&comparison(0.8)), key(&other_text));
}
