use super::{DetectedFile, InMemoryFiles, RubricFormat, detect_rubric_format, from_yaml, loaded};

#[test]
fn format_is_detected_from_its_keys() {
    for (text, form) in [
        ("evals: []", RubricFormat::Native),
        ("{kind: PromptConfig, spec: {}}", RubricFormat::PromptConfig),
        ("{prompts: {}}", RubricFormat::Pack),
        (
            "{apiVersion: promptkit.altairalabs.ai/v1alpha1, kind: Scenario, spec: {}}",
            RubricFormat::ArenaScenario,
        ),
        (
            "{kind: Eval, spec: {conversation_assertions: []}}",
            RubricFormat::ArenaEval,
        ),
        (
            "{dataset_config: x, scorers: {}}",
            RubricFormat::EvalbenchRun,
        ),
        (
            "{orchestrator: agent, scorers: {a: null}}",
            RubricFormat::EvalbenchRun,
        ),
        (
            "{scenarios: [{id: a, starting_prompt: x}]}",
            RubricFormat::Evalset,
        ),
        (
            "{prompts: [x], providers: [y], tests: []}",
            RubricFormat::Promptfoo,
        ),
        (
            "{prompts: [{id: 'file://a.txt'}, x]}",
            RubricFormat::Promptfoo,
        ),
        ("{defaultTest: {assert: []}}", RubricFormat::Promptfoo),
        ("{assert: [{type: is-json}]}", RubricFormat::Promptfoo),
        ("[{vars: {}, assert: []}]", RubricFormat::Promptfoo),
        ("[{type: not-contains, value: x}]", RubricFormat::Promptfoo),
        ("{testing_criteria: []}", RubricFormat::OpenaiEval),
        ("[{type: string_check, name: a}]", RubricFormat::OpenaiEval),
    ] {
        assert_eq!(
            detect_rubric_format(&from_yaml(text)),
            Some(DetectedFile::Rubric(form)),
            "{text}"
        );
    }
    for text in [
        "id: x",
        "[a]",
        "[{id: a, type: regex}]",
        // Messages of LangChain, as `messages_to_dict` writes them.
        "[{type: human, data: {content: hi}}]",
        "x",
        "{scenarios: [{config: []}]}",
        // Prompts of another tool, such as a replay of Copilot's chats.
        "{exportedAt: x, prompts: [{prompt: hi, logs: []}]}",
        "{exportedAt: x, prompts: []}",
    ] {
        assert_eq!(detect_rubric_format(&from_yaml(text)), None, "{text}");
    }
}

#[test]
fn other_file_of_another_tool_is_named() {
    for (text, what) in [
        ("{evalId: x, results: {}}", "promptfoo results"),
        ("{results: {version: 3, stats: {}}}", "promptfoo results"),
        // A summary has the key `prompts` of a config.
        (
            "{version: 3, prompts: [{raw: hi}], results: [], stats: {}}",
            "promptfoo results",
        ),
        (
            "{prompts: [{raw: hi}], results: [{promptIdx: 0, success: true}]}",
            "promptfoo results",
        ),
        (
            "{config: {prompts: [x]}, prompts: [{raw: hi, label: hi}], results: []}",
            "promptfoo results",
        ),
        (
            "{generator: gcp_vertex_gemini, vertex_model: x}",
            "an evalbench model config",
        ),
        (
            "[{id: 1, nl_prompt: x, golden_sql: {}}]",
            "an evalbench SQL evalset",
        ),
        (
            "{apiVersion: promptkit.altairalabs.ai/v1alpha1, kind: Provider, spec: {}}",
            "a PromptKit provider",
        ),
        (
            "{object: eval.run.output_item}",
            "results of an OpenAI eval run",
        ),
        ("{transcripts: [a], rubrics: [b]}", "a dicta workspace"),
        ("{messages: []}", "a transcript"),
    ] {
        let (rubric, problems) = loaded(text, "x.yaml", &InMemoryFiles::default());
        assert!(rubric.is_none(), "{text}");
        assert_eq!(
            problems[0].to_string(),
            format!("x.yaml:1:1: this is {what}, which holds no rubric"),
            "{text}"
        );
        assert!(problems[0].help.is_some(), "{text}");
    }
}
