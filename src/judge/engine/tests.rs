//! Traces at the gate, cache keys, and evals with a model of their own.

use std::sync::Mutex;

use futures_util::FutureExt as _;
use serde_json::json;

use super::*;
use crate::event::EventKind;
use crate::judge::fake::{
    FakeTool, FakeToolBehavior, JudgeFixture, PASSED, Script, calls, format_facts, text,
};
use crate::judge::{Gate, GateAction, GateEdit, GateStop};
use crate::model::{CellIx, Millis, RawJson, ToolResponse};

/// Answers each boundary from a list; the first time it makes everybody wait for a signal.
struct Hand {
    answers: Mutex<Vec<(crate::event::GatePoint, GateAction)>>,
    wait: Option<tokio::sync::Semaphore>,
}

impl Gate for Hand {
    fn pass<'a>(&'a self, _cell: CellIx, stop: GateStop<'a>) -> BoxFuture<'a, GateAction> {
        let kind = stop.kind();
        Box::pin(async move {
            if let Some(wait) = &self.wait {
                wait.acquire().await.expect("open").forget();
            }
            let mut answers = self.answers.lock().expect("no panic");
            match answers.iter().position(|(at, _)| *at == kind) {
                Some(at) => answers.remove(at).1,
                None => GateAction::Continue,
            }
        })
    }
}

#[tokio::test]
async fn persons_edit_is_sent_and_marked_in_the_recording() {
    use crate::event::GatePoint;
    let tool = FakeTool::new("fetch_url", FakeToolBehavior::Echo);
    let mut fixture = JudgeFixture::new(std::slice::from_ref(&tool));
    fixture.gate = std::sync::Arc::new(Hand {
        answers: Mutex::new(vec![
            (
                GatePoint::BeforeTurn,
                GateAction::ContinueWith(GateEdit::Body("my body".into())),
            ),
            (
                GatePoint::Call,
                GateAction::ContinueWith(GateEdit::Args(
                    RawJson::parse(r#"{"url":"mine"}"#).expect("JSON"),
                )),
            ),
            (
                GatePoint::Answered,
                GateAction::AnswerCall(ToolResponse::ok("my page")),
            ),
        ]),
        wait: None,
    });
    let script = Script::new(vec![
        calls(&[("fetch_url", r#"{"url":"a"}"#)]),
        calls(&[("submit_verdict", PASSED)]),
    ]);
    let (result, facts) = fixture.judge(&script).await;
    assert!(result.by_human);
    assert_eq!(script.bodies.lock().expect("no panic")[0], "my body");
    assert_eq!(*tool.ran.lock().expect("no panic"), [r#"{"url":"mine"}"#]);
    assert!(script.bodies.lock().expect("no panic")[1].contains("my page"));
    let fact_words = format_facts(&facts);
    assert!(
        fact_words.contains(&"0.0 answered by hand".to_owned())
            && fact_words.contains(&"resumed edited".to_owned()),
        "{fact_words:?}"
    );
    // The gate answers at once, and each edit still has its stop.
    let stops = fact_words.into_iter();
    let stops = stops.filter(|fact| fact.starts_with("paused") || fact.starts_with("resumed"));
    assert_eq!(
        stops.collect::<Vec<String>>(),
        [
            "paused BeforeTurn",
            "resumed edited",
            "paused Call",
            "resumed edited",
            "paused Answered",
            "resumed answered",
        ]
    );
    let pending = facts.iter().filter_map(|fact| match fact {
        EventKind::Paused { pending, .. } => pending.as_deref(),
        _ => None,
    });
    assert_eq!(
        pending.count(),
        2,
        "the request and the response before the edits"
    );
}

#[tokio::test]
async fn deadline_is_paused_at_the_gate() {
    let mut fixture = JudgeFixture::new(&[]);
    let hand = std::sync::Arc::new(Hand {
        answers: Mutex::default(),
        wait: Some(tokio::sync::Semaphore::new(0)),
    });
    fixture.gate = hand.clone();
    let script = Script::new(vec![text(PASSED)]);
    let mut judged = Box::pin(fixture.judge(&script));
    assert!((&mut judged).now_or_never().is_none());
    fixture.clock.advance(Millis(1_000_000));
    assert!((&mut judged).now_or_never().is_none());
    // Enough for the boundaries that follow, too: they let go at once.
    hand.wait.as_ref().expect("waits").add_permits(3);
    let (result, facts) = judged.await;
    assert_eq!(result.outcome, Outcome::Pass);
    assert!(!result.by_human, "to let go is no edit");
    assert_eq!(
        facts
            .iter()
            .filter(|k| matches!(k, EventKind::Paused { .. }))
            .count(),
        1
    );
}

#[tokio::test]
async fn cache_key_contains_only_settings_that_could_change_a_verdict() {
    let key = |change: &dyn Fn(&mut JudgeFixture)| {
        let mut fixture = JudgeFixture::new(&[FakeTool::new("fetch_url", FakeToolBehavior::Echo)]);
        change(&mut fixture);
        fixture
            .engine(Script::new(Vec::new()))
            .cache_key(&fixture.request)
            .expect("a key")
            .key
    };
    let plain = key(&|_| {});
    assert_eq!(plain, key(&|b| b.request.params.min_score = Some(0.7)));
    assert_eq!(plain, key(&|b| b.config.name = "other".into()));
    assert_eq!(plain, key(&|b| b.config.timeout = Millis(1)));
    assert_eq!(
        plain,
        key(&|b| drop(
            b.config
                .headers
                .insert("authorization".into(), "Bearer x".into())
        ))
    );
    for change in [
        &(|b: &mut JudgeFixture| b.request.params.criteria.push('!')) as &dyn Fn(&mut JudgeFixture),
        &|b| b.request.repeat = Some(2),
        &|b| b.request.allow_not_applicable = true,
        &|b| b.request.params.scale = Some([1.0, 5.0].into()),
        &|b| b.config.model = "n".into(),
        &|b| b.config.temperature = Some(0.5),
        &|b| b.config.max_turns = 9,
        &|b| b.config.base_prompt = "hi".into(),
        &|b| b.tools.tools.clear(),
        &|b| b.config.transcript = crate::model::TranscriptMode::Tools,
    ] {
        assert_ne!(plain, key(change));
    }
}

/// Every field of a judge's configuration: a change of it, and whether that is another question. A field that is not
/// listed fails the test, so that the author of a new one decides.
#[tokio::test]
async fn every_field_of_a_judge_config_is_in_the_cache_key_or_listed_as_excluded() {
    use crate::model::{ApiKeySource, JudgeTool, Prices, TranscriptMode};
    type Change = fn(&mut JudgeConfig);
    let fields: &[(&str, bool, Change)] = &[
        ("name", false, |c| c.name = "other".into()),
        ("provider", true, |c| c.provider = ProviderKind::Gemini),
        ("model", true, |c| c.model = "n".into()),
        ("base_url", true, |c| {
            c.base_url = Some("http://h/v1".into());
        }),
        ("key", false, |c| c.key = ApiKeySource::Google(None)),
        ("tools", true, |c| {
            c.tools.push(JudgeTool {
                name: "fetch_url".into(),
                settings: [("max_bytes".to_owned(), json!(10))].into_iter().collect(),
            });
        }),
        ("max_turns", true, |c| c.max_turns = 9),
        ("verdict", true, |c| c.verdict = VerdictMode::Schema),
        ("temperature", true, |c| c.temperature = Some(0.5)),
        ("max_output_tokens", true, |c| c.max_output_tokens = Some(7)),
        ("reasoning", true, |c| c.reasoning = Some("high".into())),
        ("seed", true, |c| c.seed = Some(7)),
        ("headers", true, |c| {
            drop(c.headers.insert("x-route".into(), "b".into()));
        }),
        ("extra_body", true, |c| {
            c.extra_body = Some(json!({"top_p": 0.5}));
        }),
        ("timeout", false, |c| c.timeout = Millis(1)),
        ("prices", false, |c| {
            c.prices = Some(Prices {
                input: 1.0,
                output: 2.0,
                cached: None,
            });
        }),
        // The same words, at once or piece by piece.
        ("stream", false, |c| c.stream = false),
        ("base_prompt", true, |c| c.base_prompt = "hi".into()),
        ("requests_per_minute", false, |c| {
            c.requests_per_minute = Some(1);
        }),
        // A replay has no key at all.
        ("run", false, |c| c.run = Some("kvqa".into())),
        // Who pays, not who answers; where it is answered may be another model's build.
        ("project", false, |c| c.project = Some("p".into())),
        ("location", true, |c| c.location = Some("eu".into())),
        ("tokens_per_minute", false, |c| {
            c.tokens_per_minute = Some(1);
        }),
        ("max_attempts", false, |c| c.max_attempts = Some(1)),
        // Only by what it does to the prompt, which is in the key.
        ("context_window", false, |c| {
            c.context_window = Some(1 << 20);
        }),
        ("transcript", true, |c| c.transcript = TranscriptMode::Whole),
    ];
    let key = |field: &str, change: Change| {
        // A judge without tools has the verdict forms to choose from, one with tools the turns.
        let tools = [FakeTool::new("fetch_url", FakeToolBehavior::Echo)];
        let mut fixture = JudgeFixture::new(if field == "verdict" { &[] } else { &tools });
        change(&mut fixture.config);
        let engine = fixture.engine(Script::new(Vec::new()));
        engine.cache_key(&fixture.request).expect("a key").key
    };
    for (field, changes, change) in fields {
        let (plain, changed) = (key(field, |_| {}), key(field, *change));
        assert_eq!(plain != changed, *changes, "{field}");
    }
    let mut all = JudgeConfig::new("all", ProviderKind::Openai);
    for (_, _, change) in fields {
        change(&mut all);
    }
    let all = serde_json::to_value(&all).expect("JSON");
    let known: Vec<&str> = fields.iter().map(|(field, ..)| *field).collect();
    for field in all.as_object().expect("an object").keys() {
        assert!(
            known.contains(&field.as_str()),
            "{field}: does it change a verdict?"
        );
    }
}

#[tokio::test]
async fn eval_with_its_own_model_asks_that_model() {
    let mut fixture = JudgeFixture::new(&[]);
    fixture.request.params.model = Some("big".into());
    let (small, big) = (Script::new(Vec::new()), Script::new(vec![text(PASSED)]));
    let engine = fixture.engine(small.clone()).with_model("big", big);
    assert_eq!(fixture.judge_with(&engine).await.0.outcome, Outcome::Pass);
    let (result, _) = fixture.judge(&small).await;
    assert_eq!(result.outcome, Outcome::JudgeError);
}

#[test]
fn cache_key_contains_the_seen_rule_without_a_setting() {
    let identity = |settings: serde_json::Value| {
        let entry = crate::model::JudgeTool {
            name: crate::tools::FETCH_URL.to_owned(),
            settings: serde_json::from_value(settings).expect("settings"),
        };
        let resolver = Arc::new(crate::net::SystemResolver);
        let tool = crate::tools::FetchUrl::new(&entry, resolver).expect("valid settings");
        crate::judge::cache_key::describe_tool(&tool)
    };
    let default = identity(serde_json::json!({}));
    assert_eq!(default["rule"], "url");
    assert_eq!(default, identity(serde_json::json!({"seen": "url"})));
    assert_ne!(default, identity(serde_json::json!({"seen": "host"})));
}
