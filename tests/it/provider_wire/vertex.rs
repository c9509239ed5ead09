//! Vertex AI and Google's credentials: tokens are asked for once, kept, replaced, and written nowhere.

mod claude;
mod secrets;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dicta::clock::{Clock, FakeClock};
use dicta::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor};
use dicta::model::{
    CellIx, HistoryItem, JudgeConfig, Millis, ProviderKind, StopReason, ToolResponse, TurnIx,
};
use dicta::provider::google_auth::{GoogleCredentials, GoogleTokens};
use dicta::provider::{self, CompletedReply, Provider, ProviderError, ToolChoice, TurnRequest};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::harness::{asked, decl};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

/// A key made for these tests; it opens nothing. (ring signs with RSA but makes no keys.)
const KEY: &str = include_str!("../../fixtures/throwaway-rsa.b64");
const REFRESH: &str = "1//refresh-canary-4711";
const SECRET: &str = "client-secret-canary";

fn pem() -> String {
    let word = "PRIVATE KEY";
    format!("-----BEGIN {word}-----\n{KEY}-----END {word}-----\n")
}

fn account(server: &WireServer) -> String {
    json!({"type": "service_account", "project_id": "own-project", "private_key_id": "kid-1",
        "private_key": pem(), "client_email": "judge@own-project.iam.gserviceaccount.com",
        "token_uri": format!("http://{}/token", server.address())})
    .to_string()
}

fn user(server: &WireServer) -> String {
    json!({"type": "authorized_user", "client_id": "client-1", "client_secret": SECRET,
        "refresh_token": REFRESH, "quota_project_id": "billed",
        "token_uri": format!("http://{}/token", server.address())})
    .to_string()
}

fn token(n: usize) -> String {
    format!("ya29.canary-token-{n}-abcdef")
}

/// Gives tokens that are valid for an hour, with numbers from 1. `model` answers the rest, and gets the number of tokens.
fn cloud(model: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> WireServer {
    let given = AtomicUsize::new(0);
    WireServer::answering(Dialect::Gemini, move |request| {
        if request.path.contains("oken") {
            let n = given.fetch_add(1, Ordering::SeqCst) + 1;
            let grant =
                json!({"access_token": token(n), "expires_in": 3600, "token_type": "Bearer"});
            return Reply::raw(grant.to_string()).header("Metadata-Flavor", "Google");
        }
        model(request, given.load(Ordering::SeqCst))
    })
}

struct VertexHarness {
    server: WireServer,
    provider: Arc<dyn Provider>,
    clock: FakeClock,
    cx: CallCx,
    facts: mpsc::Receiver<RedactedEvent>,
}

impl VertexHarness {
    fn new(server: WireServer, credentials: GoogleCredentials) -> Self {
        Self::with(server, credentials, |_| {})
    }

    fn with(
        server: WireServer,
        credentials: GoogleCredentials,
        change: impl FnOnce(&mut JudgeConfig),
    ) -> Self {
        let mut config = JudgeConfig::new("wire", ProviderKind::Vertex);
        "gemini-3-pro".clone_into(&mut config.model);
        config.base_url = Some(server.base_url());
        config.location = Some("europe-west4".to_owned());
        if credentials.project().is_none() {
            config.project = Some("p-1".to_owned());
        }
        change(&mut config);
        let clock = FakeClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let tokens = GoogleTokens::new(credentials, Arc::clone(&shared));
        let provider = provider::build_provider_with_tokens(&config, &tokens, Arc::clone(&shared));
        let (to, facts) = mpsc::channel(10_000);
        let blobs = Arc::new(MemoryBlobs::default());
        let cx = CallCx {
            out: Emitter::new(to, blobs, Arc::new(Redactor::default())),
            clock: shared,
            cancel: CancellationToken::new(),
            cell: CellIx(3),
            turn: TurnIx(0),
        };
        Self {
            server,
            provider: provider.expect("a good configuration"),
            clock,
            cx,
            facts,
        }
    }

    fn of_user(model: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let server = cloud(model);
        let credentials =
            GoogleCredentials::parse(&user(&server), "adc.json").expect("a user's file");
        Self::new(server, credentials)
    }

    async fn send(&self) -> Result<CompletedReply, ProviderError> {
        self.turn(&asked(), ToolChoice::NoTools).await
    }

    async fn turn(
        &self,
        history: &[HistoryItem],
        choice: ToolChoice,
    ) -> Result<CompletedReply, ProviderError> {
        let tools = [decl("f")];
        let turn = TurnRequest {
            history,
            tools: if choice == ToolChoice::NoTools {
                &[]
            } else {
                &tools
            },
            tool_choice: choice,
        };
        let body = self.provider.build_body(&turn).expect("a body");
        self.provider.send(&body, 1, &self.cx).await
    }

    fn requests(&self, to: &str) -> Vec<Request> {
        let all = self.server.requests().into_iter();
        all.filter(|request| request.path.contains(to)).collect()
    }

    fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        while let Ok(envelope) = self.facts.try_recv() {
            if let EventKind::Note { text, .. } = envelope.kind {
                notes.push(text);
            }
        }
        notes
    }
}

fn bearer(request: &Request) -> &str {
    request.header("authorization").unwrap_or_default()
}

/// Base64 in the alphabet of URLs.
fn decoded(text: &str) -> Vec<u8> {
    let six = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'-' | b'+' => 62,
        _ => 63,
    };
    let (mut out, mut word, mut bits) = (Vec::new(), 0_u32, 0);
    for c in text.bytes().filter(|c| !b"=\n".contains(c)) {
        word = word << 6 | u32::from(six(c));
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(word >> bits & 255).expect("a byte"));
        }
    }
    out
}

#[tokio::test]
async fn service_account_token_is_reused_until_it_expires() {
    let server = cloud(|_, _| Reply::text("ok"));
    let credentials = GoogleCredentials::parse(&account(&server), "sa.json").expect("an account");
    let harness = VertexHarness::new(server, credentials);
    for _ in 0..2 {
        assert_eq!(harness.send().await.expect("a reply").reply.text, "ok");
    }
    let asked = harness.requests("/token");
    assert_eq!(asked.len(), 1, "one token serves many requests");
    let form_fields: Vec<(String, String)> = url::form_urlencoded::parse(asked[0].body.as_bytes())
        .into_owned()
        .collect();
    assert_eq!(
        form_fields[0].1,
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let (signed, signature) = form_fields[1].1.rsplit_once('.').expect("three parts");
    let (header, claims) = signed.split_once('.').expect("three parts");
    let json = |part: &str| serde_json::from_slice::<Value>(&decoded(part)).expect("JSON");
    assert_eq!(
        json(header),
        json!({"alg": "RS256", "typ": "JWT", "kid": "kid-1"})
    );
    let claims = json(claims);
    assert_eq!(claims["iss"], "judge@own-project.iam.gserviceaccount.com");
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    assert_eq!(
        claims["aud"],
        format!("http://{}/token", harness.server.address())
    );
    assert_eq!((&claims["iat"], &claims["exp"]), (&json!(0), &json!(3600)));
    let pair = ring::signature::RsaKeyPair::from_pkcs8(&decoded(KEY)).expect("the key");
    let public = ring::signature::UnparsedPublicKey::new(
        &ring::signature::RSA_PKCS1_2048_8192_SHA256,
        pair.public().as_ref(),
    );
    let checked = public.verify(signed.as_bytes(), &decoded(signature));
    assert!(checked.is_ok(), "the signature is the key's");
    for request in harness.requests("enerateContent") {
        assert_eq!(
            request.path,
            "/v1beta1/projects/own-project/locations/europe-west4/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"
        );
        assert_eq!(bearer(&request), format!("Bearer {}", token(1)));
        assert_eq!(request.header("x-goog-api-key"), None);
        assert!(!request.body.contains("canary"));
    }
    // 225 s before its end it is old.
    harness.clock.advance(Millis::from_secs(3600 - 226));
    harness.send().await.expect("a reply");
    assert_eq!(harness.requests("/token").len(), 1);
    harness.clock.advance(Millis::from_secs(1));
    harness.send().await.expect("a reply");
    assert_eq!(harness.requests("/token").len(), 2);
    let last = harness.requests("enerateContent").pop().expect("four");
    assert_eq!(bearer(&last), format!("Bearer {}", token(2)));
}

#[tokio::test]
async fn concurrent_calls_request_one_token_from_a_user_file() {
    let harness = VertexHarness::of_user(|_, _| Reply::text("ok"));
    let all = (0..8).map(|_| harness.send());
    for sent in futures_util::future::join_all(all).await {
        assert_eq!(sent.expect("a reply").reply.text, "ok");
    }
    let asked = harness.requests("/token");
    assert_eq!(asked.len(), 1);
    let form_fields: Vec<(String, String)> = url::form_urlencoded::parse(asked[0].body.as_bytes())
        .into_owned()
        .collect();
    let form_fields: Vec<(&str, &str)> = form_fields
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(
        form_fields,
        [
            ("grant_type", "refresh_token"),
            ("client_id", "client-1"),
            ("client_secret", SECRET),
            ("refresh_token", REFRESH)
        ]
    );
    let request = &harness.requests("enerateContent")[0];
    assert_eq!(request.header("x-goog-user-project"), Some("billed"));
}

#[tokio::test]
async fn refused_token_is_replaced_once() {
    let mut harness = VertexHarness::of_user(|_, given| match given {
        1 => Reply::status(401),
        _ => Reply::text("ok"),
    });
    assert_eq!(harness.send().await.expect("a reply").reply.text, "ok");
    assert_eq!(harness.requests("/token").len(), 2);
    assert_eq!(
        harness.notes(),
        ["the server refused the access token (401); trying again with a new one"]
    );
    let harness = VertexHarness::of_user(|request, _| {
        Reply::status(401).body(format!(
            r#"{{"error":{{"message":"bad {}"}}}}"#,
            bearer(request)
        ))
    });
    let error = harness.send().await.expect_err("refused");
    assert_eq!(error.status(), Some(401));
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    assert_eq!(harness.requests("enerateContent").len(), 2, "and no more");
}

#[tokio::test]
async fn token_server_error_is_reported_without_secrets() {
    let refusing = |status: u16| {
        let server = WireServer::answering(Dialect::Gemini, move |request| {
            let error_body = json!({"error": "invalid_grant", "error_description": format!("no: {}", request.body)});
            Reply::status(status).body(error_body.to_string())
        });
        let credentials =
            GoogleCredentials::parse(&user(&server), "adc.json").expect("a user's file");
        VertexHarness::new(server, credentials)
    };
    let harness = refusing(400);
    let error = harness.send().await.expect_err("refused");
    let text = error.to_string();
    assert!(
        matches!(error, ProviderError::Request(_)),
        "not tried again: {text}"
    );
    assert!(
        text.contains("invalid_grant") && text.contains("gcloud auth application-default login")
    );
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(harness.requests("enerateContent").len(), 0);
    let passing = refusing(503).send().await.expect_err("refused");
    assert_eq!(passing.status(), Some(503), "{passing}");
    let garbled = cloud(|_, _| Reply::text("ok"));
    let file = user(&garbled).replace("/token", "/none");
    let credentials = GoogleCredentials::parse(&file, "adc.json").expect("a user's file");
    let error = VertexHarness::new(garbled, credentials)
        .send()
        .await
        .expect_err("no token");
    assert!(matches!(error, ProviderError::Malformed(_)), "{error}");
}

#[tokio::test]
async fn metadata_server_gives_tokens_and_an_impostor_is_refused() {
    let server = cloud(|_, _| Reply::text("ok"));
    let host = server.address().to_string();
    let harness = VertexHarness::new(server, GoogleCredentials::from_metadata_server(Some(&host)));
    assert_eq!(harness.send().await.expect("a reply").reply.text, "ok");
    let asked = &harness.requests("/computeMetadata/")[0];
    assert_eq!(
        asked.path,
        "/computeMetadata/v1/instance/service-accounts/default/token"
    );
    assert_eq!(asked.header("metadata-flavor"), Some("Google"));
    let impostor = WireServer::answering(Dialect::Gemini, |_| {
        Reply::raw(r#"{"access_token":"ya29.evil-token","expires_in":3600}"#)
    });
    let host = impostor.address().to_string();
    let harness = VertexHarness::new(
        impostor,
        GoogleCredentials::from_metadata_server(Some(&host)),
    );
    let error = harness.send().await.expect_err("no token").to_string();
    assert!(error.contains("is not Google's metadata server"), "{error}");
    assert!(!error.contains("evil"));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let host = gone.local_addr().expect("bound").to_string();
    drop(gone);
    let server = cloud(|_, _| Reply::text("ok"));
    let harness = VertexHarness::new(server, GoogleCredentials::from_metadata_server(Some(&host)));
    let error = harness.send().await.expect_err("no token").to_string();
    for word in [
        "no metadata server at",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "gcloud auth",
    ] {
        assert!(error.contains(word), "{error}");
    }
}

#[tokio::test]
async fn vertex_api_key_is_sent_without_a_project() {
    let server = WireServer::gemini(vec![Reply::text("whole")]);
    let harness = super::harness::ProviderHarness::with(server, ProviderKind::Vertex, |config| {
        config.stream = false;
    });
    assert_eq!(harness.send().await.expect("a reply").reply.text, "whole");
    let request = &harness.server.requests()[0];
    assert_eq!(
        request.path,
        "/v1beta1/publishers/google/models/scripted:generateContent"
    );
    assert_eq!(request.header("x-goog-api-key"), Some(super::harness::KEY));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn configured_authorization_header_needs_no_token() {
    let server = cloud(|_, _| Reply::text("ok"));
    let credentials = GoogleCredentials::parse(&user(&server), "adc.json").expect("a user's file");
    let harness = VertexHarness::with(server, credentials, |config| {
        let auth_header = ("Authorization".to_owned(), "Bearer gateway".to_owned());
        config.headers.extend([
            auth_header,
            ("X-Goog-User-Project".to_owned(), "mine".to_owned()),
        ]);
    });
    harness.send().await.expect("a reply");
    let requests = harness.server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(bearer(&requests[0]), "Bearer gateway");
    assert_eq!(requests[0].header("x-goog-user-project"), Some("mine"));
}

/// One frame of these parts.
fn frame(parts: &str, more: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}}{more}}}]}}\n\n")
}

#[tokio::test]
async fn gemini_signatures_survive_three_tool_turns_byte_for_byte() {
    let turns: Vec<String> = (0..3)
        .map(|n| {
            [
                format!(r#"{{ "text":"hm","thought":true}},{{"functionCall":{{"name":"f","args":{{"n":{n}.50}}}},"thoughtSignature":"S{n}+/="}}"#),
                r#"{"functionCall":{"name":"f","args":{}}}"#.to_owned(),
                format!(r#"{{"text":"", "thoughtSignature":"E{n}"}}"#),
            ]
            .join(",")
        })
        .collect();
    let script = turns.clone();
    let harness = VertexHarness::of_user(move |request, _| {
        let turn = request.json()["contents"]
            .as_array()
            .map_or(0, |all| all.len() / 2);
        match script.get(turn) {
            Some(parts) => Reply::raw(frame(parts, r#","finishReason":"STOP""#)),
            None => Reply::text("done"),
        }
    });
    let mut history = asked();
    for _ in 0..3 {
        let sent = harness.turn(&history, ToolChoice::Auto).await;
        let CompletedReply { native, reply, .. } = sent.expect("calls");
        assert_eq!(reply.calls.len(), 2);
        history.push(HistoryItem::Model { native, reply });
        history.push(HistoryItem::ToolResponses(vec![
            ToolResponse::ok("a"),
            ToolResponse::error("b"),
        ]));
    }
    let done = harness
        .turn(&history, ToolChoice::Auto)
        .await
        .expect("text");
    assert_eq!(done.reply.text, "done");
    let last = harness.requests("enerateContent").pop().expect("four");
    for parts in &turns {
        let sent = format!(r#"{{"role":"model","parts":[{parts}]}}"#);
        assert!(last.body.contains(&sent), "{sent}\n{}", last.body);
    }
    assert!(!last.body.contains("call_") && !last.body.contains("skip_thought"));
    assert!(
        last.body
            .contains(r#"{"functionResponse":{"name":"f","response":{"error":"Error: b"}}}"#)
    );
}

#[tokio::test]
async fn interrupted_reply_is_continued() {
    let going_on = |n: usize| {
        format!(
            "{}data: {{\"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":1}}}}\n\n",
            frame(
                &format!(r#"{{"text":"part {n}, "}}"#),
                &format!(r#","finishReason":"CONTINUATION","continuationToken":"go \"{n}\"""#)
            )
        )
    };
    let end = frame(r#"{"text":"end"}"#, r#","finishReason":"STOP""#);
    let asked_for = |request: &Request| {
        request.json()["continuationToken"]
            .as_str()
            .map(str::to_owned)
    };
    let rest = end.clone();
    let mut harness =
        VertexHarness::of_user(move |request, _| match asked_for(request).as_deref() {
            None => Reply::raw(going_on(1)),
            Some("go \"1\"") => Reply::raw(going_on(2)),
            _ => Reply::raw(rest.clone()),
        });
    let finished = harness.send().await.expect("a reply");
    assert_eq!(finished.reply.text, "part 1, part 2, end");
    assert_eq!(finished.reply.stop, StopReason::Stop);
    assert_eq!((finished.usage.input, finished.usage.calls), (Some(20), 2));
    assert_eq!(finished.native.len(), 3);
    let requests = harness.requests("enerateContent");
    let mut first = requests[0].json();
    first["continuationToken"] = json!("go \"2\"");
    assert_eq!(requests[2].json(), first, "the same request and the token");
    assert_eq!(harness.notes().len(), 2);
    // A server that always stops in the middle is asked for the rest three times.
    let harness = VertexHarness::of_user(move |_, _| Reply::raw(going_on(1)));
    let error = harness.send().await.expect_err("no end");
    assert!(
        matches!(&error, ProviderError::Cut { billed: Some(usage), .. } if usage.calls == 4),
        "{error:?}"
    );
    assert_eq!(harness.requests("enerateContent").len(), 4);
}
