use std::path::Path;

use serde_json::json;

use super::*;
use crate::diag::has_errors;
use crate::handlers::EvalTypeRegistry;
use crate::model::{
    JudgeTool, MessageRole, ProviderKind, SourceText, ToolCall, Transcript, TranscriptMessage,
    TranscriptPart,
};

fn rubric(text: &str) -> Arc<Rubric> {
    let registry = EvalTypeRegistry::builtin();
    let (rubric, problems) = crate::rubric::load(Arc::from(text), Path::new("r.yaml"), &registry);
    assert!(!has_errors(&problems), "{text}: {problems:?}");
    Arc::new(rubric.expect("it has no errors"))
}

/// Returns a rubric of evals in flow YAML, one per line from line 3 on.
fn evals(evals: &[&str]) -> Arc<Rubric> {
    let lines: Vec<String> = evals.iter().map(|eval| format!("  - {{{eval}}}")).collect();
    rubric(&format!("id: r\nevals:\n{}\n", lines.join("\n")))
}

fn lint_texts(found: &[Diagnostic]) -> Vec<String> {
    let place = |d: &Diagnostic| d.span.as_ref().map_or(0, |span| span.line);
    found
        .iter()
        .map(|d| format!("{}:{}", place(d), d.code))
        .collect()
}

fn at_load(rubric: &Arc<Rubric>) -> Vec<Diagnostic> {
    let model = |name: &str, tools: &[&str]| {
        let tool = |name: &&str| JudgeTool {
            name: (*name).to_owned(),
            settings: IndexMap::new(),
        };
        let config = JudgeConfig {
            tools: tools.iter().map(tool).collect(),
            ..JudgeConfig::new(name, ProviderKind::Openai)
        };
        (name.to_owned(), config)
    };
    let judges = IndexMap::from([
        model("plain", &[]),
        model("opens", &["fetch_url"]),
        (
            "again".to_owned(),
            JudgeConfig::new("again", ProviderKind::Replay),
        ),
    ]);
    lint_rubrics(
        std::slice::from_ref(rubric),
        &judges,
        Some("plain"),
        &EvalTypeRegistry::builtin(),
    )
}

/// Returns the names of one eval's lints. Also checks that `allow` on the eval or on the rubric removes each lint.
fn one(eval: &str) -> Vec<&'static str> {
    let found: Vec<&'static str> = at_load(&evals(&[eval])).iter().map(|d| d.code).collect();
    for name in &found {
        let allowed = at_load(&evals(&[&format!("{eval}, allow: [{name}]")]));
        assert!(allowed.iter().all(|d| d.code != *name), "{eval}");
        let all = rubric(&format!("allow: {name}\nevals:\n  - {{{eval}}}\n"));
        assert!(at_load(&all).iter().all(|d| d.code != *name), "{eval}");
    }
    found
}

#[test]
fn lint_finds_bounds_and_patterns_that_always_pass() {
    let judged =
        |bounds: &str| format!("id: a, type: llm_judge, params: {{criteria: c, {bounds}}}");
    let regex = |params: &str| format!("id: a, type: regex, params: {{{params}}}");
    for (eval, lints) in [
        (judged("min_score: 0"), &["cannot-fail"][..]),
        (judged("min_score: 0.01"), &[]),
        (judged("max_score: 1"), &["cannot-fail"]),
        (judged("max_score: 0.99"), &[]),
        (judged("min_score: 0, max_score: 1"), &["cannot-fail"]),
        (judged("min_score: 0, max_score: 0.5"), &[]),
        (
            judged("min_score: {from: metadata.least}, max_score: 1"),
            &[],
        ),
        (judged(""), &[]),
        (regex("pattern: 'x*'"), &["cannot-fail"]),
        (regex("pattern: '(?s).*'"), &["cannot-fail"]),
        (regex("pattern: '.*?'"), &["cannot-fail"]),
        (regex("pattern: 'refund|'"), &["cannot-fail"]),
        (regex("pattern: '^'"), &["cannot-fail"]),
        (
            regex("pattern: 'x*', expect_match: false"),
            &["cannot-pass"],
        ),
        (
            format!("{}, not: true", regex("pattern: 'x*'")),
            &["cannot-pass"],
        ),
        (
            format!("{}, not: true", regex("pattern: 'x*', expect_match: false")),
            &["cannot-fail"],
        ),
        (regex("pattern: 'x+'"), &[]),
        (regex("pattern: '\\B'"), &["empty-match"]),
        (format!("{}, enabled: false", regex("pattern: 'x*'")), &[]),
    ] {
        assert_eq!(one(&eval), lints, "{eval}");
    }
}

#[test]
fn lint_finds_patterns_that_match_the_empty_text() {
    let regex = |params: &str| format!("id: a, type: regex, params: {{{params}}}");
    for (eval, lints) in [
        (regex("pattern: '^$'"), &["empty-match"][..]),
        (regex("pattern: '^[a-z ]*$'"), &["empty-match"]),
        (regex("pattern: '^.*ok?$|^$'"), &["empty-match"]),
        (regex("pattern: '^\\s*$', expect_match: false"), &[]),
        (format!("{}, not: true", regex("pattern: '^\\s*$'")), &[]),
        (regex("pattern: '^.+$'"), &[]),
        (regex("pattern: {from: metadata.pattern}"), &[]),
        (
            "id: a, type: contains, params: {patterns: ['a*']}".to_owned(),
            &[],
        ),
    ] {
        assert_eq!(one(&eval), lints, "{eval}");
    }
}

#[test]
fn lint_finds_a_threshold_of_zero() {
    let with = |threshold: &str, required: &str| {
        let text =
            format!("threshold: {threshold}\nevals:\n  - {{id: a, type: json_valid{required}}}\n");
        lint_texts(&at_load(&rubric(&text)))
    };
    assert_eq!(with("0", ""), ["1:cannot-fail"]);
    assert!(with("0.1", "").is_empty());
    assert!(with("0", ", required: true").is_empty());
    let allowed =
        rubric("allow: [cannot-fail]\nthreshold: 0\nevals:\n  - {id: a, type: json_valid}\n");
    assert!(at_load(&allowed).is_empty());
}

#[test]
fn lint_finds_addresses_that_no_judge_can_open() {
    let judged = |params: &str| format!("id: a, type: llm_judge, params: {{{params}}}");
    let page = "criteria: 'Names the release on https://beam.example/get.'";
    for (eval, lints) in [
        (judged(page), &["unreachable-url"][..]),
        (format!("{}, judge: opens", judged(page)), &[]),
        (format!("{}, judge: again", judged(page)), &[]),
        (
            judged("criteria: c, rubric: '1.0 as beam.apache.org says'"),
            &["unreachable-url"],
        ),
        (
            judged("criteria: 'Says 2.69 e.g. in README.md', model: gpt.example.com"),
            &[],
        ),
    ] {
        assert_eq!(one(&eval), lints, "{eval}");
    }
    let found = at_load(&evals(&[&judged(page)]));
    assert_eq!(
        found[0].message,
        "this names https://beam.example/get, and the judge `plain` cannot open it: it has no fetch_url"
    );
    let unknown = lint_rubrics(
        &[evals(&[&judged(page)])],
        &IndexMap::new(),
        None,
        &EvalTypeRegistry::builtin(),
    );
    assert!(unknown.is_empty(), "a judge that is not known may open it");
}

#[test]
fn lint_finds_duplicate_evals() {
    let regex = "type: regex, params: {pattern: x}";
    let judged = "type: llm_judge, params: {criteria: c}";
    for (first, second, lints) in [
        (
            regex,
            "type: regex, params: {pattern: x, expect_match: true}",
            &["4:same-digest"][..],
        ),
        (regex, "type: regex, params: {pattern: y}", &[]),
        (
            regex,
            "type: regex, params: {pattern: x}, applies_to: {tags: [t]}",
            &[],
        ),
        (
            regex,
            "type: regex, params: {pattern: x}, enabled: false",
            &[],
        ),
        (
            regex,
            "type: regex, params: {pattern: x}, allow: [same-digest]",
            &[],
        ),
        (
            judged,
            "type: llm_judge, params: {criteria: c}, repeat: 3, weight: 2",
            &["4:same-digest"],
        ),
        (
            judged,
            "type: llm_judge, params: {criteria: c}, judge: opens",
            &[],
        ),
        (
            judged,
            "type: llm_judge, params: {criteria: c, min_score: 0.5}",
            &[],
        ),
    ] {
        let both = evals(&[&format!("id: a, {first}"), &format!("id: b, {second}")]);
        assert_eq!(lint_texts(&at_load(&both)), lints, "{second}");
    }
}

#[test]
fn lint_is_placed_at_its_cause() {
    let text = "kind: PromptConfig
spec:
  evals:
    - id: a
      type: regex
      params:
        pattern: 'x*'
";
    let found = at_load(&rubric(text));
    assert_eq!(lint_texts(&found), ["7:cannot-fail"]);
    assert_eq!(
        found[0].help.as_deref(),
        Some(
            "require at least one character: `x*` matches the empty text, `x+` does not; to accept it: `allow: [cannot-fail]`"
        )
    );
    let pack =
        "prompts:\n  p:\n    evals:\n      - {id: a, type: regex, params: {pattern: 'x*'}}\n";
    assert_eq!(lint_texts(&at_load(&rubric(pack))), ["4:cannot-fail"]);
}

fn transcript(id: &str, tags: &[&'static str], tools: &[&'static str]) -> Transcript<'static> {
    let call = |name: &&'static str| {
        TranscriptPart::ToolCall(ToolCall {
            id: SourceText::default(),
            name: SourceText::from(*name),
            arguments: SourceText::default(),
        })
    };
    Transcript {
        verdicts: Vec::new(),
        id: SourceText::from(id.to_owned()),
        messages: vec![TranscriptMessage {
            role: MessageRole::Assistant,
            parts: tools.iter().map(call).collect(),
            metadata: None,
        }],
        tags: tags.iter().map(|tag| SourceText::from(*tag)).collect(),
        metadata: None,
    }
}

fn observed(rubric: &Arc<Rubric>, transcripts: &[Transcript<'_>]) -> Vec<Diagnostic> {
    let mut observer = TranscriptLinter::new(std::slice::from_ref(rubric));
    for one in transcripts {
        observer.observe(one);
    }
    observer.finish()
}

#[test]
fn lint_suggests_the_nearest_tool_for_an_uncalled_one() {
    let all = [
        transcript("a", &[], &["get_order"]),
        transcript("b", &[], &["search", "get_order"]),
    ];
    let called = |names: &str, more: &str| {
        let eval = format!("id: a, type: tools_called, params: {{tool_names: [{names}]}}{more}");
        let found = observed(&evals(&[&eval]), &all);
        let lint_texts: Vec<String> = found.iter().map(|d| d.message.clone()).collect();
        lint_texts
    };
    assert_eq!(
        called("get_order, get_ordr, lookup", ""),
        [
            "no transcript calls `get_ordr`; did you mean `get_order`?",
            "no transcript calls `lookup`"
        ]
    );
    assert!(called("search", "").is_empty());
    assert!(called("lookup", ", allow: [unknown-tool]").is_empty());
    assert_eq!(
        called("get_ordr, delete_all", ", not: true"),
        ["no transcript calls `get_ordr`; did you mean `get_order`?"],
        "what must not be called may well be called by nobody"
    );
    let awaits = "id: a, type: contains, params: {patterns: [x]}, when: {tool_called: serch}";
    assert_eq!(
        observed(&evals(&[awaits]), &all)[0].message,
        "no transcript calls `serch`; did you mean `search`?"
    );
    let eval = "id: a, type: tools_called, params: {tool_names: [x]}";
    assert!(
        observed(&evals(&[eval]), &[]).is_empty(),
        "no transcript, no word"
    );
}

#[test]
fn lint_finds_tool_names_in_every_eval_type() {
    let all = [transcript("a", &[], &["get_order"])];
    for (kind, params, is_reported) in [
        ("trajectory_match", "expected: [get_ordr]", true),
        ("trajectory_match", "expected: [{tool: get_ordr}]", true),
        (
            "trajectory_match",
            "expected: [lookup], mode: subset",
            false,
        ),
        (
            "trajectory_match",
            "expected: [get_order], mode: superset, before: [[get_ordr, get_order]]",
            true,
        ),
        ("tool_call_chain", "steps: [{tool: get_ordr}]", true),
        (
            "tool_call_chain",
            "steps: [{tool: get_order, args_match: {tool: lookup}}]",
            false,
        ),
        (
            "outcome_equivalent",
            "metric: tool_calls, expected_tool_calls: [get_ordr]",
            true,
        ),
        (
            "outcome_equivalent",
            "metric: final_state, expected_state: lookup",
            false,
        ),
        ("parameter_analysis", "tools: [get_ordr]", true),
        ("agent_invoked", "agents: [lookup]", true),
        ("agent_not_invoked", "agents: [lookup]", false),
        (
            "agent_response_contains",
            "agent: lookup, contains: x",
            true,
        ),
        ("exact_match", "expected: lookup", false),
    ] {
        let found = observed(
            &evals(&[&format!("id: a, type: {kind}, params: {{{params}}}")]),
            &all,
        );
        assert_eq!(!found.is_empty(), is_reported, "{kind} {params}: {found:?}");
    }
}

#[test]
fn lint_reports_an_empty_selector_once() {
    let all = [
        transcript("a", &["beam"], &["search"]),
        transcript("b", &["shop"], &[]),
    ];
    let regex = "id: a, type: regex, params: {pattern: x}";
    for (eval, lints) in [
        (", applies_to: {tags: [beam]}", &[][..]),
        (", applies_to: {tags: [beem]}", &["3:selects-nothing"]),
        (
            ", applies_to: {tags: [shop], has_tool: search}",
            &["3:selects-nothing"],
        ),
        (", applies_to: {ids: ['c*']}, allow: selects-nothing", &[]),
        (", applies_to: {ids: ['c*']}, enabled: false", &[]),
        (
            ", trigger: sample_turns, sample_percentage: 0",
            &["3:selects-nothing"],
        ),
        (", trigger: sample_turns, sample_percentage: 1", &[]),
    ] {
        let found = observed(&evals(&[&format!("{regex}{eval}")]), &all);
        assert_eq!(lint_texts(&found), lints, "{eval}");
    }
    let transcript_with_tag = |tag: &str| {
        let text = format!(
            "applies_to: {{tags: [{tag}]}}\nevals:\n  - {{{regex}, applies_to: {{tags: [shop]}}}}\n"
        );
        observed(&rubric(&text), &all)
    };
    let found = transcript_with_tag("beem");
    assert_eq!(
        lint_texts(&found),
        ["1:selects-nothing"],
        "not for each of its evals as well"
    );
    let help = found[0].help.as_deref().unwrap_or_default();
    assert!(
        help.starts_with("no transcript has the tag `beem`; did you mean `beam`?"),
        "{help}"
    );
    assert_eq!(
        lint_texts(&transcript_with_tag("beam")),
        ["3:selects-nothing"],
        "both must hold for one transcript"
    );
    assert!(transcript_with_tag("shop").is_empty());
}

#[test]
fn lint_reports_equal_verdicts_from_ten_decisions_on() {
    let tally = |pass, fail| EvalTally {
        rubric: "r".to_owned(),
        eval: "a".to_owned(),
        pass,
        fail,
    };
    let eval = "id: a, type: json_valid";
    let lint_messages = |eval: &str, tally| {
        let found = lint_same_verdict(&[evals(&[eval])], &IndexMap::new(), &[tally]);
        let lint_texts: Vec<String> = found.iter().map(|d| d.message.clone()).collect();
        lint_texts
    };
    assert_eq!(
        lint_messages(eval, tally(10, 0)),
        ["`a` passed everywhere, in all 10 decisions"]
    );
    assert_eq!(
        lint_messages(eval, tally(0, 12)),
        ["`a` failed everywhere, in all 12 decisions"]
    );
    for other in [tally(9, 0), tally(0, 9), tally(10, 1), tally(0, 0)] {
        assert!(lint_messages(eval, other).is_empty());
    }
    let meant = "id: a, type: json_valid, allow: [same-verdict]";
    assert!(lint_messages(meant, tally(10, 0)).is_empty());
}

#[test]
fn verdicts_that_came_with_the_transcripts_give_no_lint() {
    let judged = rubric(
        "id: r\njudge: theirs\nevals:\n  - { id: a, type: llm_judge_session, params: { criteria: c } }\n",
    );
    let tally = EvalTally {
        rubric: "r".to_owned(),
        eval: "a".to_owned(),
        pass: 12,
        fail: 0,
    };
    let count = |provider| {
        let configs = IndexMap::from([("theirs".to_owned(), JudgeConfig::new("theirs", provider))]);
        lint_same_verdict(
            &[Arc::clone(&judged)],
            &configs,
            std::slice::from_ref(&tally),
        )
        .len()
    };
    assert_eq!(count(ProviderKind::Source), 0);
    assert_eq!(count(ProviderKind::Openai), 1);
}

#[test]
fn lint_of_another_tools_file_does_not_suggest_a_key_that_it_lacks() {
    let text = "assert: [{ type: is-json }]\n";
    let registry = EvalTypeRegistry::builtin();
    let path = Path::new("promptfooconfig.yaml");
    let (rubric, _) = crate::rubric::load(Arc::from(text), path, &registry);
    let rubric = Arc::new(rubric.expect("it has an assertion"));
    let tally = EvalTally {
        rubric: rubric.id.clone(),
        eval: rubric.evals[0].id.clone(),
        pass: 12,
        fail: 0,
    };
    let found = lint_same_verdict(&[rubric], &IndexMap::new(), &[tally]);
    let help = found[0].help.as_deref().unwrap_or_default();
    assert!(
        help.ends_with(
            "copy the eval into a rubric in dicta's format, with `allow: [same-verdict]`"
        ),
        "{help}"
    );
}

#[test]
fn lint_reports_a_missed_example_with_its_outcome() {
    let example = json!({"text": "a 1", "expect": "fail", "why": "one is no year"});
    let regex = |allow: &str| {
        format!(
            "id: a, type: regex, params: {{pattern: '\\d'}}, examples: [{{text: b, expect: fail}}, {example}]{allow}"
        )
    };
    let judged =
        "id: j, type: llm_judge, params: {criteria: c}, examples: [{text: x, expect: pass}]";
    let program =
        "id: s, type: script, params: {command: [x]}, examples: [{text: x, expect: pass}]";
    let rubrics = [evals(&[&regex(""), judged, program])];
    let tried = run_code_examples(&rubrics, &EvalTypeRegistry::builtin());
    assert_eq!((tried.as_expected, tried.missed), (1, 1));
    assert_eq!((tried.left_to_judges, tried.left_to_programs), (1, 1));
    assert_eq!(lint_texts(&tried.problems), ["3:misses-example"]);
    assert_eq!(
        tried.problems[0].message,
        "`a` misses example 2: expected fail, got pass (matches \"1\" in message 0)"
    );
    let help = tried.problems[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("one is no year"), "{help}");
    let allowed = run_code_examples(
        &[evals(&[&regex(", allow: [misses-example]")])],
        &EvalTypeRegistry::builtin(),
    );
    assert_eq!(
        (allowed.missed, allowed.problems.len()),
        (1, 0),
        "counted, not told"
    );
}
