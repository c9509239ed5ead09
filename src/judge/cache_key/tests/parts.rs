//! The exact content of the key's parts. A recorded verdict is used only while they stay equal.

use serde_json::{Value, json};

use super::super::{
    CREDENTIALS_PURPOSE, PARSER_VERSION, RESPONSE_FORMAT_VERSION, calibrated, describe_tool,
    similarity,
};
use super::{
    Digest, InstallationSecret, JudgeFixture, ProviderKind, Script, TranscriptMode,
    VerdictPartsSpec, base,
};
use crate::judge::{parts, rules};

/// Returns one of the named digests that the key is made of.
fn part(fixture: &JudgeFixture, name: &str) -> Digest {
    let engine = fixture.engine(Script::new(Vec::new()));
    let key = engine.cache_key(&fixture.request).expect("a key");
    let mut parts = key.parts.into_iter();
    parts.find(|(part, _)| part == name).expect("a part").1
}

fn digest(value: &Value) -> Digest {
    Digest::hash_bytes(value.to_string().as_bytes())
}

fn full() -> JudgeFixture {
    base(&["", "", ""].map(str::to_owned), false)
}

#[test]
fn judge_part_lists_the_settings_without_secrets() {
    let mut fixture = full();
    let headers = &mut fixture.config.headers;
    for (name, value) in [("Z-Route", "b"), ("A-Route", "c"), ("Authorization", "k")] {
        headers.insert(name.to_owned(), value.to_owned());
    }
    fixture.config.extra_body = Some(json!({
        "api_key": "k", "top_p": 0.5, "safety": [{"tenant_token": "a", "level": 2}]
    }));
    let mut expected = json!({
        "provider": "openai",
        "model": "m",
        "base_url": null,
        "location": null,
        "temperature": 0.0,
        "max_output_tokens": 4096,
        "reasoning": null,
        "seed": null,
        "extra_body": {"top_p": 0.5, "safety": [{"tenant_token": null, "level": 2}]},
        "headers": [["a-route", "c"], ["x-author", "a"], ["z-route", "b"]],
        "verdict": "call",
        "max_turns": 5,
        "transcript": null,
    });
    assert_eq!(part(&fixture, "judge"), digest(&expected), "{expected}");
    fixture.config.transcript = TranscriptMode::Whole;
    expected["transcript"] = json!("whole");
    assert_eq!(part(&fixture, "judge"), digest(&expected), "{expected}");
}

#[test]
fn credentials_part_names_the_owner_and_the_place_of_each_secret() {
    let mut fixture = full();
    fixture.config.extra_body = Some(json!({
        "first_secret": "x", "safety": [{"a/b_token": "a"}, {"level": 2, "tenant_token": 7}]
    }));
    let texts = [
        ["header", "x-tenant-token", "a"],
        ["extra_body", "/first_secret", "\"x\""],
        ["extra_body", "/safety/0/a~1b_token", "\"a\""],
        ["extra_body", "/safety/1/tenant_token", "7"],
        ["fetch_url", "Authorization", "Bearer tenant-a"],
    ];
    let secret = InstallationSecret::new([1; 32]);
    let texts = texts.iter().flatten().map(|text| text.as_bytes());
    let expected = secret.keyed_digest(CREDENTIALS_PURPOSE, texts);
    assert_eq!(part(&fixture, "credentials"), expected);
    assert_eq!(
        part(&JudgeFixture::new(&[]), "credentials"),
        Digest::hash_parts([])
    );
}

#[test]
fn tools_part_has_the_tools_of_the_judge_without_the_one_for_the_verdict() {
    let mut fixture = full();
    fixture.config.tools = vec![crate::model::JudgeTool {
        name: "fetch_url".to_owned(),
        settings: [("max_bytes".to_owned(), json!(10))].into_iter().collect(),
    }];
    let expected = json!({
        "declared": [describe_tool(&*fixture.tools.tools[0])],
        "settings": [{"name": "fetch_url", "settings": {"max_bytes": 10}}],
    });
    assert_eq!(part(&fixture, "tools"), digest(&expected));
}

#[test]
fn repeat_part_is_the_same_for_a_single_verdict_and_a_first_repeat() {
    let mut fixture = full();
    for (repeat, listed) in [(None, None), (Some(1), None), (Some(2), Some(2))] {
        fixture.request.repeat = repeat;
        let expected = json!({"repeat": listed, "twin": 0});
        assert_eq!(part(&fixture, "repeat"), digest(&expected), "{repeat:?}");
    }
}

#[test]
fn parser_part_names_exactly_the_code_that_reads_the_reply() {
    type Version = Option<u32>;
    let versions = |rules: Version, decisions: Version, parts: Version, responses: Version| {
        digest(&json!({
            "version": PARSER_VERSION,
            "rules": rules,
            "decisions": decisions,
            "parts": parts,
            "responses": responses,
        }))
    };
    let plain = || JudgeFixture::new(&[]);
    let of_kind = |kind: ProviderKind| {
        let mut fixture = plain();
        fixture.config.provider = kind;
        if kind.is_embeddings() {
            fixture.request.params.compared_texts = vec!["a".to_owned(), "b".to_owned()];
        }
        part(&fixture, "parser")
    };
    let none = versions(None, None, None, None);
    assert_eq!(of_kind(ProviderKind::Openai), none);
    assert_eq!(
        of_kind(ProviderKind::Rules),
        versions(Some(rules::VERSION), None, None, None)
    );
    for kind in [ProviderKind::OpenaiDecisions, ProviderKind::GeminiDecisions] {
        let expected = versions(None, Some(calibrated::VERSION), None, None);
        assert_eq!(of_kind(kind), expected, "{kind:?}");
    }
    for kind in [
        ProviderKind::OpenaiEmbeddings,
        ProviderKind::GeminiEmbeddings,
    ] {
        let expected = versions(None, Some(similarity::VERSION), None, None);
        assert_eq!(of_kind(kind), expected, "{kind:?}");
    }
    let mut with_parts = plain();
    with_parts.request.params.parts_spec =
        VerdictPartsSpec::Criteria(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(
        part(&with_parts, "parser"),
        versions(None, None, Some(parts::VERSION), None)
    );
    assert_eq!(
        part(&full(), "parser"),
        versions(None, None, None, Some(RESPONSE_FORMAT_VERSION))
    );
}
