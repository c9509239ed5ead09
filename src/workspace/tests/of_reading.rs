//! Tests of judges that read their transcript with tools.

use super::*;

#[test]
fn judge_with_transcript_tools_needs_enough_turns() {
    let judge = |keys: &str| {
        config(&format!(
            "judges:\n  j: {{provider: openai, model: m, {keys}}}\n"
        ))
    };
    let warned = |keys: &str| {
        let workspace = judge(keys)
            .load()
            .unwrap_or_else(|p| panic!("{keys}: {:?}", lines(&p)));
        lines(&workspace.warnings)
    };
    let none: [String; 0] = [];
    assert_eq!(warned("transcript: tools"), none);
    assert_eq!(warned("tools: [read_message]"), none);
    assert_eq!(warned("transcript: tools, verdict: call"), none);
    for (keys, why) in [
        (
            "transcript: tools, max_turns: 1",
            "so the transcript is shown whole and no tool is called",
        ),
        (
            "tools: [search_transcript], max_turns: 2",
            "leaves the judge one reply to read the transcript with",
        ),
    ] {
        let warnings = warned(keys);
        assert!(
            warnings.len() == 1 && warnings[0].ends_with(why) || warnings[0].contains(why),
            "{warnings:?}"
        );
    }
    for (keys, why) in [
        (
            "transcript: tools, verdict: text",
            "verdict: text is for a judge without tools",
        ),
        (
            "transcript: whole, tools: [read_message]",
            "`transcript: whole` shows all there is to read",
        ),
        (
            "tools: [{read_message: {max: 3}}]",
            "read_message: it has no settings",
        ),
        ("tools: [read_mesage]", "did you mean `read_message`?"),
        (
            "transcript: tools, verdict: call, max_turns: 1",
            "max_turns: 1 leaves no turn to read the transcript",
        ),
        (
            "tools: [read_message], verdict: call, max_turns: 1",
            "raise max_turns, or remove verdict: call",
        ),
    ] {
        let problems = judge(keys).problems();
        assert!(
            problems.len() == 1 && problems[0].contains(why),
            "{keys}: {problems:?}"
        );
    }
    // A tool of its own leaves the judge something to call, even if only the verdict is left to call.
    let own = warned("transcript: tools, tools: [fetch_url], verdict: call, max_turns: 1");
    assert!(
        own.len() == 1 && own[0].contains("no tool is called"),
        "{own:?}"
    );
    let rules = config("judges:\n  j: {provider: rules, tools: [read_message]}\n").problems();
    assert!(
        rules[0].contains("`rules` reads the whole prompt"),
        "{rules:?}"
    );
}
