use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::clock::SystemClock;
use crate::model::Prices;
use crate::tui::state::runs::RunTicket;
use crate::workspace::load;

fn env(names: &[&str]) -> Env {
    let pair = |name: &&str| ((*name).to_owned(), "sk-secret".to_owned());
    Env(names.iter().map(pair).collect())
}

fn order() -> (tempfile::TempDir, RunOrder) {
    let dir = tempfile::tempdir().expect("a folder");
    crate::workspace::init(dir.path()).expect("written");
    let workspace =
        load(dir.path(), &Env::default(), &EvalTypeRegistry::builtin()).expect("it loads");
    let eval = workspace.rubrics[0]
        .evals
        .iter()
        .find(|eval| eval.eval_type == "llm_judge")
        .expect("the starter has one");
    let file = std::fs::read_to_string(&workspace.transcripts[0]).expect("transcripts");
    let first: serde_json::Value =
        serde_json::from_str(file.lines().next().expect("one")).expect("JSON");
    let id = first["id"].as_str().expect("an id");
    let name = format!("{id}/{}/{}", workspace.rubrics[0].id, eval.id);
    let order = RunOrder {
        ticket: RunTicket(1),
        workspace: Arc::new(workspace),
        only: Some(Arc::new(vec![name])),
        filter: None,
        except: None,
        judge: None,
        cache: CachePolicy::Off,
        recorded_only: false,
        branch: None,
        repeat: None,
        replayed_evidence: None,
        parent: None,
        measures_noise: false,
        is_of_save: false,
    };
    (dir, order)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

fn with_judge(order: &mut RunOrder, judge: JudgeConfig) {
    let mut workspace = (*order.workspace).clone();
    workspace.judges.insert(judge.name.clone(), judge);
    order.workspace = Arc::new(workspace);
}

/// A server on loopback that answers everything with one body, or nothing at all.
async fn server(body: Option<&'static str>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(body) = body else {
                silent.push(stream);
                continue;
            };
            let mut request = [0; 2048];
            let _read = stream.read(&mut request).await;
            let reply = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _written = stream.write_all(reply.as_bytes()).await;
        }
    });
    port
}

#[tokio::test]
async fn api_keys_in_environment_are_listed_as_judges() {
    let (_dir, order) = order();
    let env = env(&[
        "OPENAI_API_KEY",
        "GOOGLE_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENROUTER_API_KEY",
    ]);
    let found = find_with_servers(&[], &env, &order, &clock()).await;
    let titles: Vec<_> = found.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "gemini · gemini-2.5-pro · key in GOOGLE_API_KEY",
            "openai · gpt-5 · key in OPENAI_API_KEY",
            "anthropic · claude-sonnet-4-6 · key in ANTHROPIC_API_KEY",
            "openrouter · key in OPENROUTER_API_KEY"
        ]
    );
    let (priced, unpriced) = (&found[0].note, &found[1].note);
    assert!(
        priced.contains("about $0.") && priced.ends_with("(prices as of 2026-10-07)"),
        "{priced}"
    );
    assert!(unpriced.ends_with(" tokens, cost unknown (no prices)"));
    let anthropic = found[2].judge.as_ref().expect("it can be asked");
    assert_eq!(anthropic.provider, ProviderKind::Anthropic);
    assert!(found[3].judge.is_none() && found[3].note.starts_with("configure it in dicta.yaml"));
    assert!(!format!("{found:?}").contains("sk-secret"));
}

#[tokio::test]
async fn workspace_judge_shows_cost_or_missing_key() {
    let (_dir, mut order) = order();
    let judge = JudgeConfig {
        model: "gemini-2.5-pro".to_owned(),
        key: ApiKeySource::Env("GEMINI_API_KEY".to_owned()),
        prices: Some(Prices {
            input: 1.25,
            output: 10.0,
            cached: None,
        }),
        ..JudgeConfig::new("dear", ProviderKind::Gemini)
    };
    with_judge(&mut order, judge.clone());
    let missing = find_with_servers(&[], &Env::default(), &order, &clock()).await;
    let without = AvailableJudge {
        title: "dear · gemini-2.5-pro · of this workspace".to_owned(),
        judge: None,
        note: "judge `dear` needs a key: set GEMINI_API_KEY, or api_key_file".to_owned(),
    };
    assert_eq!(missing, [without]);
    let found = find_with_servers(&[], &env(&["GEMINI_API_KEY"]), &order, &clock()).await;
    assert_eq!(found.len(), 1, "its key is not offered a second time");
    assert_eq!(found[0].judge, Some(judge));
    assert!(
        found[0].note.contains(" tokens, about $0.0"),
        "{:?}",
        found[0].note
    );
}

#[tokio::test]
async fn local_servers_list_models_and_silent_ones_are_skipped() {
    let (_dir, order) = order();
    let hostile = r#"{"data":[{"id":"qwen3:8b"},{"id":"x\u001b[2J\u202e"},{"id":" "}]}"#;
    let servers = [
        ("ollama", server(Some(hostile)).await),
        ("lm-studio", server(Some(r#"{"data":[]}"#)).await),
        ("llama.cpp", server(Some("<html>")).await),
        ("vllm", server(None).await),
    ];
    let found = find_with_servers(&servers, &Env::default(), &order, &clock()).await;
    let base = |at: usize| format!("http://127.0.0.1:{}/v1", servers[at].1);
    let titles: Vec<_> = found.iter().map(|one| one.title.clone()).collect();
    assert_eq!(
        titles,
        [
            format!("ollama · qwen3:8b · {}", base(0)),
            format!("ollama · x␛[2J‹U+202E› · {}", base(0)),
            format!("lm-studio · {}", base(1)),
        ]
    );
    assert!(found[0].note.ends_with("free (local)"), "{}", found[0].note);
    let names: Vec<_> = found
        .iter()
        .filter_map(|one| Some(&one.judge.as_ref()?.name))
        .collect();
    assert_eq!(names, ["ollama", "ollama-2"]);
    assert!(found[2].judge.is_none());
}

#[test]
fn tokens_of_recorded_cells_are_not_those_of_one_call() {
    let judge = JudgeConfig::new("house", ProviderKind::Openai);
    let mut preview = JudgePreview {
        cells: 1,
        calls_least: 1,
        calls_most: 5,
        input_tokens: 2745,
        output_tokens: 100,
        ..JudgePreview::default()
    };
    let note = describe_preview(&judge, &preview);
    let sized = "about 2,745 + 100 tokens a call, up to 5 calls, ";
    assert!(note.starts_with(sized), "{note}");
    preview.cells_with_history = 1;
    let note = describe_preview(&judge, &preview);
    let recorded = "about 2,745 + 100 tokens, up to 5 calls, ";
    assert!(note.starts_with(recorded), "{note}");
}

#[test]
fn numbers_are_grouped_in_thousands() {
    assert_eq!(format_thousands(300), "300");
    assert_eq!(format_thousands(2_100), "2,100");
    assert_eq!(format_thousands(1_234_567), "1,234,567");
}
