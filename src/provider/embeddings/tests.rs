use super::super::{ToolChoice, explain_request_body, read_reply_bytes};
use super::*;

fn turn_body(config: &JudgeConfig, texts: &[&str]) -> Result<Value, ProviderError> {
    let dialect = EmbeddingsDialect::new(config)?;
    let history = [HistoryItem::User(vec![
        HistoryBlock::System(String::new()),
        HistoryBlock::Text(json!(texts).to_string()),
    ])];
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let pieces = dialect.build_body_pieces(&turn, &OmittedSettings::default())?;
    Ok(serde_json::from_str(&pieces.concat()).expect("a body is JSON"))
}

fn config(kind: ProviderKind, model: &str) -> JudgeConfig {
    JudgeConfig {
        model: model.to_owned(),
        ..JudgeConfig::new("embed", kind)
    }
}

fn read(kind: ProviderKind, reply: &Value) -> Result<CompletedReply, ProviderError> {
    read_reply_bytes(kind, false, &[reply.to_string().as_bytes()])
}

#[test]
fn both_protocols_send_the_references_and_then_the_compared_text() {
    let mut openai = config(ProviderKind::OpenaiEmbeddings, "text-embedding-3-small");
    openai.extra_body = Some(json!({"dimensions": 256}));
    assert_eq!(
        turn_body(&openai, &["Paris", "It is Paris"]).expect("a body"),
        json!({"model": "text-embedding-3-small", "input": ["Paris", "It is Paris"], "dimensions": 256})
    );
    let url = EmbeddingsDialect::new(&openai).expect("a dialect").url;
    assert_eq!(url, "https://api.openai.com/v1/embeddings");
    let mut gemini = config(ProviderKind::GeminiEmbeddings, "gemini-embedding-001");
    gemini.extra_body = Some(json!({"outputDimensionality": 768}));
    let one = |text: &str| {
        json!({"model": "models/gemini-embedding-001", "content": {"parts": [{"text": text}]},
            "outputDimensionality": 768})
    };
    assert_eq!(
        turn_body(&gemini, &["Paris", "It is Paris"]).expect("a body"),
        json!({"requests": [one("Paris"), one("It is Paris")]})
    );
    let url = EmbeddingsDialect::new(&gemini).expect("a dialect").url;
    assert_eq!(
        url,
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents"
    );
}

#[test]
fn keys_that_dicta_sets_are_refused_in_extra_body() {
    for key in ["input", "requests", "content", "encoding_format", "model"] {
        let mut config = config(ProviderKind::OpenaiEmbeddings, "m");
        config.extra_body = Some(json!({ key: "x" }));
        assert!(EmbeddingsDialect::new(&config).is_err(), "{key}");
    }
}

#[test]
fn reply_has_a_cosine_for_each_reference_in_the_order_of_the_request() {
    // The server returns them in another order.
    let reply = json!({"data": [
        {"index": 2, "embedding": [1, 0]},
        {"index": 0, "embedding": [3, 4]},
        {"index": 1, "embedding": [0, 2]},
    ], "usage": {"prompt_tokens": 9, "total_tokens": 9}});
    let read_reply = read(ProviderKind::OpenaiEmbeddings, &reply).expect("a reply");
    assert_eq!(
        read_reply.reply.text,
        r#"{"cosines":[0.6,0.0],"numbers":2}"#
    );
    assert_eq!(
        (read_reply.usage.input, read_reply.usage.output),
        (Some(9), Some(0))
    );
    let reply = json!({"embeddings": [{"values": [0.5, 0.5]}, {"values": [1, 1]}]});
    let read_reply = read(ProviderKind::GeminiEmbeddings, &reply).expect("a reply");
    assert_eq!(read_reply.reply.text, r#"{"cosines":[1.0],"numbers":2}"#);
    assert_eq!(read_reply.usage.input, None);
}

#[test]
fn broken_reply_gives_no_cosine() {
    for reply in [
        json!({}),
        json!([]),
        json!({"data": []}),
        json!({"data": [{"index": 0, "embedding": [1]}]}),
        json!({"data": [{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [1, 0]}]}),
        json!({"data": [{"index": 0, "embedding": [1, 0]}, {"index": 7, "embedding": [1, 0]}]}),
        json!({"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1]}]}),
        json!({"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [0, 0]}]}),
        json!({"data": [{"index": 0, "embedding": "AACAPw=="}, {"index": 1, "embedding": [1]}]}),
        json!({"data": [{"index": 0, "embedding": [null]}, {"index": 1, "embedding": [1]}]}),
        json!({"error": {"message": "no such model", "code": 404}}),
        json!({"embeddings": [{"values": [1]}]}),
    ] {
        for kind in [
            ProviderKind::OpenaiEmbeddings,
            ProviderKind::GeminiEmbeddings,
        ] {
            assert!(read(kind, &reply).is_err(), "{reply}");
        }
    }
    let cut = br#"{"data": [{"index": 0, "embedd"#;
    let found = read_reply_bytes(ProviderKind::OpenaiEmbeddings, false, &[&cut[..]]);
    assert!(matches!(found, Err(ProviderError::Cut { .. })), "{found:?}");
}

#[test]
fn body_reads_as_its_texts() {
    let openai = config(ProviderKind::OpenaiEmbeddings, "m");
    let gemini = config(ProviderKind::GeminiEmbeddings, "m");
    for config in [openai, gemini] {
        let body = turn_body(&config, &["Paris", "It is Paris"]).expect("a body");
        let read = explain_request_body(&body.to_string()).expect("it is readable");
        let speakers: Vec<&str> = read.items.iter().map(|item| &*item.speaker).collect();
        assert_eq!(speakers, ["reference 1", "compared text"]);
    }
}

#[test]
fn question_in_words_is_refused() {
    let dialect =
        EmbeddingsDialect::new(&config(ProviderKind::OpenaiEmbeddings, "m")).expect("a dialect");
    let history = [HistoryItem::User(vec![HistoryBlock::Text(
        "Is it good?".to_owned(),
    )])];
    let turn = TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    };
    let error = dialect
        .build_body_pieces(&turn, &OmittedSettings::default())
        .expect_err("no texts");
    assert!(error.to_string().contains("`similar`"), "{error}");
}
