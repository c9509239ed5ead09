use super::super::testing::opening;
use super::*;

fn config(kind: ProviderKind) -> JudgeConfig {
    let mut config = JudgeConfig::new("j", kind);
    config.model = "m".to_owned();
    config.base_url = Some("http://h/v1".to_owned());
    config
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

fn questions() -> Vec<ProbabilityQuestion> {
    let question = |id: &str, among| ProbabilityQuestion {
        id: id.to_owned(),
        instructions: "Is it?".to_owned(),
        allowed_answers: among,
    };
    vec![
        question(
            "a",
            AllowedAnswers::YesNo("Yes.".to_owned(), "No.".to_owned()),
        ),
        question(
            "b",
            AllowedAnswers::Options(vec![pair("x", "X"), pair("y", "Y")]),
        ),
        question(
            "c",
            AllowedAnswers::Levels(vec![pair("1", "low"), pair("2", "high")]),
        ),
    ]
}

fn sent(kind: ProviderKind) -> String {
    let mut config = config(kind);
    config.extra_body = Some(json!({"service_tier": "flex"}));
    let turn = TurnRequest {
        history: &opening(),
        tools: &[],
        tool_choice: ToolChoice::Schema(json!(questions())),
    };
    let dialect = DecisionsDialect::new(&config).expect("good");
    let pieces = dialect.build_body_pieces(&turn, &OmittedSettings::default());
    pieces.expect("a body").concat()
}

#[test]
fn questions_are_rendered_in_the_format_of_each_service() {
    assert_eq!(
        sent(ProviderKind::OpenaiDecisions),
        r#"{"model":"m","input":"You judge.\n\nJudge \"this\".","questions":[{"type":"predicate","name":"a","instructions":"Is it? True: Yes. False: No."},{"type":"choice","name":"b","instructions":"Is it?","choices":[{"value":"x","description":"X"},{"value":"y","description":"Y"}]},{"type":"score","name":"c","instructions":"Is it?","levels":[{"label":"1","description":"low"},{"label":"2","description":"high"}]}],"service_tier":"flex"}"#
    );
    assert_eq!(
        sent(ProviderKind::GeminiDecisions),
        r#"{"model":"models/m","input":"You judge.\n\nJudge \"this\".","questions":{"a":{"type":"noul","instructions":"Is it?","criteria":{"true_description":"Yes.","false_description":"No."}},"b":{"type":"choice","instructions":"Is it?","criteria":{"x":"X","y":"Y"}},"c":{"type":"score","instructions":"Is it?","criteria":["1: low","2: high"]}},"service_tier":"flex"}"#
    );
}

#[test]
fn address_joins_base_url_and_path() {
    let url = |kind, base: Option<&str>| {
        let mut config = config(kind);
        config.base_url = base.map(str::to_owned);
        DecisionsDialect::new(&config).expect("good").url
    };
    let (one, two) = (ProviderKind::OpenaiDecisions, ProviderKind::GeminiDecisions);
    assert_eq!(url(one, None), "https://api.openai.com/v1/decisions");
    assert_eq!(url(one, Some("http://h/v1/")), "http://h/v1/decisions");
    assert_eq!(
        url(two, None),
        "https://generativelanguage.googleapis.com/v1beta/decisions"
    );
    assert_eq!(url(two, Some("http://h")), "http://h/v1beta/decisions");
    assert_eq!(url(two, Some("http://h/v1")), "http://h/v1/decisions");
}

#[test]
fn request_without_questions_is_not_sent() {
    let dialect = DecisionsDialect::new(&config(ProviderKind::OpenaiDecisions)).expect("good");
    let many: Vec<ProbabilityQuestion> = questions().into_iter().cycle().take(401).collect();
    for choice in [
        ToolChoice::NoTools,
        ToolChoice::Auto,
        ToolChoice::Schema(json!({"type": "object"})),
        ToolChoice::Schema(json!(many)),
    ] {
        let turn = TurnRequest {
            history: &opening(),
            tools: &[],
            tool_choice: choice,
        };
        let refused = dialect.build_body_pieces(&turn, &OmittedSettings::default());
        assert!(matches!(refused, Err(ProviderError::Request(_))));
    }
    let mut config = config(ProviderKind::OpenaiDecisions);
    config.extra_body = Some(json!({"questions": []}));
    assert!(DecisionsDialect::new(&config).is_err());
}

const A: &str = r#"{"type":"predicate","name":"a","probability":0.93,"confidence":0.8}"#;
const B: &str = r#"{"type":"choice","choice":"y","confidence":0.5,"probabilities":[{"value":"y","probability":0.6},{"value":"x","probability":0.4}]}"#;
const C: &str = r#"{"type":"score","score":0.75,"confidence":0.5,"probabilities":[{"value":0,"label":"1","probability":0.25},{"value":1,"label":"2","probability":0.75}]}"#;
const G: &str = r#"{"answers":{"c":{"score":0.75,"probabilities":{"1":0.75,"0":0.25},"legend":["1: low","2: high"],"confidence":0.5},"a":{"noul":0.93,"confidence":0.8},"b":{"choice":"y","probabilities":{"y":0.6,"x":0.4},"confidence":0.5}},"usage":{}}"#;

fn openai_reply(a: &str, b: &str, c: &str) -> String {
    format!(r#"{{"answers":[{a},{b},{c}],"model":"m","usage":{{}}}}"#)
}

#[test]
fn answers_have_the_order_of_the_questions() {
    let expected = [
        ProbabilityAnswer::Yes {
            probability: 0.93,
            confidence: Some(0.8),
        },
        ProbabilityAnswer::Distribution {
            probabilities: vec![0.4, 0.6],
            confidence: Some(0.5),
        },
        ProbabilityAnswer::Distribution {
            probabilities: vec![0.25, 0.75],
            confidence: Some(0.5),
        },
    ];
    let one = parse_answers(
        ProviderKind::OpenaiDecisions,
        &questions(),
        &openai_reply(A, B, C),
    );
    assert_eq!(one.expect("answers"), expected);
    let two = parse_answers(ProviderKind::GeminiDecisions, &questions(), G);
    assert_eq!(two.expect("answers"), expected);
    let refused = openai_reply(r#"{"type":"refusal","refusal":"no"}"#, B, C);
    let refused = parse_answers(ProviderKind::OpenaiDecisions, &questions(), &refused);
    assert_eq!(
        refused.expect("answers")[0],
        ProbabilityAnswer::Refused("no".to_owned())
    );
}

#[test]
fn reply_without_answers_is_never_a_default_verdict() {
    let mut bad = vec![
        openai_reply(B, A, C),
        openai_reply(r#"{"name":"b","probability":0.9}"#, B, C),
        format!(r#"{{"answers":[{A},{B}]}}"#),
        format!(r#"{{"answers":[{A},{B},{C},{A}]}}"#),
        r#"{"answers":null}"#.to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        String::new(),
    ];
    for (good, wrong) in [
        ("0.93", "1.01"),
        ("0.93", "-0.01"),
        ("0.93", "NaN"),
        ("0.93", "\"NaN\""),
        ("0.93", "1e400"),
        ("0.93", "null"),
        (r#""probability":0.93,"#, ""),
        (
            r#""probability":0.93,"#,
            r#""probability":0.93,"probability":0.1,"#,
        ),
        ("0.8}", "1.8}"),
        (r#""choice":"y""#, r#""choice":"z""#),
        (r#""choice":"y""#, r#""choice":"x""#),
        (r#""choice":"y","#, ""),
        (
            r#""value":"x","probability":0.4"#,
            r#""value":"y","probability":0.4"#,
        ),
        (
            r#""value":"x","probability":0.4"#,
            r#""value":"x","probability":0.1"#,
        ),
        (r#",{"value":"x","probability":0.4}"#, ""),
        (r#""label":"1""#, r#""label":"2""#),
        (r#""label":"1""#, r#""label":"9""#),
        (r#""score":0.75,"#, ""),
        ("0.25", "1.25"),
    ] {
        let valid_reply = openai_reply(A, B, C);
        assert!(valid_reply.contains(good), "{good}");
        bad.push(valid_reply.replacen(good, wrong, 1));
    }
    for text in &bad {
        let read = parse_answers(ProviderKind::OpenaiDecisions, &questions(), text);
        assert!(read.is_err(), "{text}: {read:?}");
    }
    for (good, wrong) in [
        (r#""a":"#, r#""z":"#),
        (r#""a":"#, r#""b":"#),
        (r#""usage":{}"#, r#""answers":{}"#),
        (r#"{"1":0.75"#, r#"{"2":0.75"#),
        (r#"{"1":0.75"#, r#"{"1":0.75,"2":0.0"#),
        (r#""noul":0.93,"#, ""),
        ("0.93", "93"),
        (r#""c":{"score""#, r#""d":{"noul":0.5},"c":{"score""#),
    ] {
        assert!(G.contains(good), "{good}");
        let text = G.replacen(good, wrong, 1);
        let read = parse_answers(ProviderKind::GeminiDecisions, &questions(), &text);
        assert!(read.is_err(), "{text}: {read:?}");
    }
}

#[test]
fn reply_keeps_the_document_unchanged() {
    let read_document = |body: &str| {
        let mut reader = Box::new(DecisionsReplyReader::default());
        reader.read_document(body, &mut NewDeltas::new())?;
        reader.finish()
    };
    let body = r#"{"answers":[],"usage":{"input_tokens":70}}"#;
    let finished = read_document(body).expect("a document");
    assert_eq!(finished.reply.text, body);
    assert_eq!(finished.native[0].get(), body);
    assert_eq!(
        (finished.usage.input, finished.usage.output),
        (Some(70), Some(0))
    );
    let silent = read_document(r#"{"answers":[]}"#).expect("a document");
    assert_eq!((silent.usage.input, silent.usage.output), (None, None));
    let blocked =
        read_document(r#"{"prompt_feedback":{"block_reason":"SAFETY"}}"#).expect("a document");
    assert_eq!(blocked.reply.stop, StopReason::Refused("SAFETY".to_owned()));
    for cut in 1..body.len() {
        assert!(
            matches!(read_document(&body[..cut]), Err(ProviderError::Cut { .. })),
            "{cut}"
        );
    }
    assert!(matches!(read_document(""), Err(ProviderError::Cut { .. })));
    assert!(matches!(
        read_document(r#"{"error":{"message":"x"}}"#),
        Err(ProviderError::InStream { .. })
    ));
    assert!(matches!(
        read_document("<html>"),
        Err(ProviderError::WrongProtocol(_))
    ));
    assert!(read_document(r#"{"answers":[{"probability":NaN}]}"#).is_ok());
}
