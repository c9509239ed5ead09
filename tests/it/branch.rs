//! `dicta branch` through the built program: what a judge gets again, what a branch costs, and what it leaves alone.

mod stops;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

const GROUNDED: &str =
    "  - { id: grounded, type: llm_judge, params: { criteria: The amount is on file. } }\n";

fn verdict(passed: bool) -> Value {
    json!({"citations": [], "reasoning": "As the shop has it on file.", "passed": passed, "score": if passed { 0.9 } else { 0.2 }})
}

/// Looks the order up, then fails the answer, unless a tool response has the amount 195.25.
fn judging(dialect: Dialect) -> WireServer {
    WireServer::answering(dialect, |request| {
        if request.mentions("195.25") || request.mentions("be generous") {
            return Reply::verdict(verdict(true));
        }
        if request.mentions("It is the order file") {
            return Reply::verdict(verdict(false));
        }
        Reply::call("order", json!({"number": "TF-4107"}))
            .thinking("I look the order up.")
            .signed("c2lnbmVkLWJ5LXRoZS1tb2RlbA==")
    })
}

/// A shop whose first answers are errors.
struct Shop {
    server: WireServer,
    asked: Arc<AtomicUsize>,
}

impl Shop {
    fn failing_first(failures: usize) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let server = WireServer::answering(Dialect::Gemini, move |_| {
            if count.fetch_add(1, Ordering::SeqCst) < failures {
                Reply::status(404).body(r#"{"error":"It is the order file that is missing"}"#)
            } else {
                Reply::raw(r#"{"note":"It is the order file","total":190.25}"#)
            }
        });
        Self { server, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn workspace(judges: &[(&str, &WireServer, &str)], shop: &Shop) -> TestDir {
    let test_dir = TestDir::new();
    let judges: Vec<String> = judges
        .iter()
        .map(|(name, server, settings)| {
            let url = server.base_url();
            format!("  {name}: {{ base_url: '{url}', model: m, tools: [order], api_key_env: KEY, {settings} }}\n")
        })
        .collect();
    test_dir.workspace(
        &format!(
            "tools: [tools.yaml]\njudge: m\njudges:\n{}",
            judges.concat()
        ),
        GROUNDED,
    );
    let url = shop.server.base_url();
    test_dir.write(
        "tools.yaml",
        &format!(
            "sources:\n  shop: {{kind: http, baseUrl: '{url}', allowPrivate: true}}\ntools:\n  order:\n    kind: http\n    \
             source: shop\n    method: GET\n    path: /orders\n    description: Looks an order up.\n    queryParams:\n      \
             - {{name: number, type: string, description: The number.}}\n"
        ),
    );
    test_dir.trust();
    test_dir
}

fn dicta(test_dir: &TestDir, args: &[&str]) -> (Option<i32>, String, String) {
    let output = test_dir.command(args).env("KEY", "k-4711-test").output();
    let output = output.expect("the program runs");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn branch(test_dir: &TestDir, args: &[&str]) -> Value {
    let mut all = vec!["branch"];
    all.extend(args);
    all.extend(["--yes", "--format", "json"]);
    let (code, out, err) = dicta(test_dir, &all);
    let report: Value =
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code:?} {out}\n{err}"));
    assert_eq!(code, Some(0), "{report} {err}");
    report
}

/// Returns the native items of the newest run's first reply, as its recording has them.
fn recorded_items(test_dir: &TestDir, run: &str) -> Vec<String> {
    let log = test_dir.path().join("runs").join(run).join("events.jsonl");
    let log = std::fs::read_to_string(log).expect("a log");
    let mut lines = log.lines().filter_map(|line| {
        // A record ends with its signature.
        let mut values = serde_json::Deserializer::from_str(line).into_iter::<Value>();
        values.next()?.ok()
    });
    let native = lines.find_map(|event| {
        let native = event.pointer("/kind/turn/fact/finished/native")?;
        Some(native.as_array()?.clone())
    });
    let items = native.expect("a reply").into_iter();
    items
        .map(|item| item["text"].as_str().expect("a short item").to_owned())
        .collect()
}

fn run_once(test_dir: &TestDir) -> String {
    let (code, _, err) = dicta(
        test_dir,
        &["run", "-q", "--yes", "--where", "transcript:one"],
    );
    assert_eq!(code, Some(1), "{err}");
    newest_run(test_dir)
}

fn newest_run(test_dir: &TestDir) -> String {
    let (_, out, _) = dicta(test_dir, &["runs", "--format", "jsonl"]);
    let first: Value = serde_json::from_str(out.lines().next().expect("a run")).expect("JSON");
    first["run"].as_str().expect("a name").to_owned()
}

fn bodies(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.body.as_str())
        .collect()
}

/// Branches twice without a change, and once from the first step.
fn check_unchanged_branch(dialect: Dialect, provider: &str) {
    for stream in [true, false] {
        let (server, shop) = (judging(dialect), Shop::failing_first(0));
        let settings = format!("provider: {provider}, stream: {stream}");
        let test_dir = workspace(&[("m", &server, &settings)], &shop);
        let run = run_once(&test_dir);
        let again = branch(&test_dir, &[&run, "one/r/grounded", "--at", "2.prompt"]);
        let of_branch = again["run"].as_str().expect("a run");
        branch(
            &test_dir,
            &[of_branch, "one/r/grounded", "--at", "2.verdict"],
        );
        branch(&test_dir, &[&run, "one/r/grounded", "--at", "1.prompt"]);
        let requests = server.requests();
        let all = bodies(&requests);
        assert_eq!(all.len(), 6, "{provider} {stream}");
        assert!(all[2] == all[1], "{provider} {stream}: {}", all[2]);
        assert!(all[3] == all[1], "{provider} {stream}: {}", all[3]);
        assert!(all[4] == all[0], "{provider} {stream}: {}", all[4]);
        for item in recorded_items(&test_dir, &run) {
            assert!(all[2].contains(&item), "{provider} {stream}: {item}");
        }
        assert_eq!(again["calls"], 1, "the branch pays only its own turn");
        assert_eq!(again["edited"], false);
        assert_eq!(shop.asked(), 1, "{provider}: recorded responses are used");
    }
}

/// Changes the tool response, and branches again from the branch.
fn check_changed_answer(dialect: Dialect, provider: &str) {
    for stream in [true, false] {
        let (server, shop) = (judging(dialect), Shop::failing_first(0));
        let settings = format!("provider: {provider}, stream: {stream}");
        let test_dir = workspace(&[("m", &server, &settings)], &shop);
        let run = run_once(&test_dir);
        test_dir.write("answer.json", "{\"total\": 195.25}\n");
        let set = ["--at", "1.response.1", "--set", "answer=answer.json"];
        let changed = branch(&test_dir, &[&[&*run, "one/r/grounded"], &set[..]].concat());
        assert_eq!(changed["before"]["outcome"], "fail", "{provider}");
        assert_eq!(changed["after"]["outcome"], "pass", "{provider}");
        assert_eq!(changed["edited"], true);
        let requests = server.requests();
        let body = &requests[2].body;
        for item in recorded_items(&test_dir, &run) {
            assert!(
                body.contains(&item),
                "{provider} {stream}: {item} in {body}"
            );
        }
        assert!(
            body.contains("195.25") && !body.contains("190.25"),
            "{provider}"
        );
        // A branch of the edited branch keeps the edit and its mark.
        let edited = changed["run"].as_str().expect("a run");
        let again = branch(&test_dir, &[edited, "one/r/grounded", "--at", "2.prompt"]);
        assert_eq!(again["edited"], true, "{provider}");
        let requests = server.requests();
        assert!(
            requests[3].body == requests[2].body,
            "{provider} {stream}: {}",
            requests[3].body
        );
        assert_eq!(shop.asked(), 1, "{provider}");
    }
}

#[test]
fn unchanged_branch_sends_the_recorded_requests_of_openai() {
    check_unchanged_branch(Dialect::Openai, "openai");
}

#[test]
fn changed_answer_goes_out_with_the_models_own_items_of_openai() {
    check_changed_answer(Dialect::Openai, "openai");
}

#[test]
fn unchanged_branch_sends_the_recorded_requests_of_gemini() {
    check_unchanged_branch(Dialect::Gemini, "gemini");
}

#[test]
fn changed_answer_goes_out_with_the_models_own_items_of_gemini() {
    check_changed_answer(Dialect::Gemini, "gemini");
}

#[test]
fn unchanged_branch_sends_the_recorded_requests_of_anthropic() {
    check_unchanged_branch(Dialect::Anthropic, "anthropic");
}

#[test]
fn changed_answer_goes_out_with_the_models_own_items_of_anthropic() {
    check_changed_answer(Dialect::Anthropic, "anthropic");
}

#[test]
fn unchanged_branch_sends_the_recorded_requests_of_openai_responses() {
    check_unchanged_branch(Dialect::Responses, "openai-responses");
}

#[test]
fn changed_answer_goes_out_with_the_models_own_items_of_openai_responses() {
    check_changed_answer(Dialect::Responses, "openai-responses");
}

#[test]
fn branch_leaves_history_cache_and_the_original_as_they_are() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    let run = run_once(&test_dir);
    let log = test_dir.path().join("runs").join(&run).join("events.jsonl");
    let before = std::fs::read(&log).expect("a log");
    let (_, history, _) = dicta(&test_dir, &["history", "--format", "json"]);
    let (_, shown, _) = dicta(&test_dir, &["show", "@", "--format", "json"]);
    test_dir.write("args.json", r#"{"number": "TF-1"}"#);
    test_dir.write("answer.txt", "EUR 195.25");
    test_dir.write("prompt.txt", "be generous");
    let mut newest = String::new();
    for (at, set) in [
        ("1.call.1", "arguments=args.json"),
        ("1.response.1", "answer=answer.txt"),
        ("1.prompt", "prompt=prompt.txt"),
        ("1.prompt", "criteria=prompt.txt"),
    ] {
        let changed = branch(
            &test_dir,
            &["@", "one/r/grounded", "--at", at, "--set", set],
        );
        let passes = set != "arguments=args.json";
        let expected = if passes { "pass" } else { "fail" };
        assert_eq!(changed["after"]["outcome"], expected, "{set}: {changed}");
        assert_eq!(changed["edited"], true, "{set}");
        newest = changed["run"].as_str().expect("a run").to_owned();
    }
    // Without an argument, a replay plays the newest run, which is a branch.
    let (code, _, err) = dicta(&test_dir, &["replay", "--print", "--speed", "0"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains(&format!("replay of {newest}")), "{err}");
    assert_eq!(std::fs::read(&log).expect("a log"), before);
    assert_eq!(
        dicta(&test_dir, &["history", "--format", "json"]).1,
        history
    );
    assert_eq!(
        dicta(&test_dir, &["show", "@", "--format", "json"]).1,
        shown
    );
    let calls = server.requests().len();
    let (code, ..) = dicta(&test_dir, &["run", "-q", "--where", "transcript:one"]);
    assert_eq!(
        code,
        Some(1),
        "the recorded verdict is used, not that of a branch"
    );
    assert_eq!(server.requests().len(), calls);
    let (_, runs, _) = dicta(&test_dir, &["runs"]);
    let letters = run.rsplit('-').next().expect("letters");
    let line = format!("branch of {letters} from 1.response.1, answer changed");
    assert!(runs.contains(&line), "{runs}");
    let (_, summary, _) = dicta(&test_dir, &["show", &newest]);
    let origin =
        format!("branch of run {letters} from 1.prompt, criteria changed, so it decides nothing");
    assert!(summary.contains(&origin), "{summary}");
    // A bundle opens without the workspace, which has the tree.
    let args = ["export", &newest, "--format", "bundle", "-o", "b.dicta"];
    assert_eq!(dicta(&test_dir, &args).0, Some(0));
    let bundle = test_dir.path().join("b.dicta").display().to_string();
    let (_, alone, _) = dicta(&TestDir::new(), &["show", &bundle, "one/r/grounded"]);
    assert!(alone.contains(&origin), "{alone}");
    let marked = runs
        .lines()
        .filter(|run| run.contains("  1 edited by hand"));
    assert_eq!(marked.count(), 4, "{runs}");
    let (_, tree, _) = dicta(&test_dir, &["show", &run, "one/r/grounded"]);
    assert!(tree.contains(&format!("▌ {letters}  fail 0.20")), "{tree}");
    assert!(
        tree.contains("from 1.call.1, arguments changed  fail 0.20, edited by hand"),
        "{tree}"
    );
    assert!(
        tree.contains("from 1.prompt, criteria changed  pass 0.90, edited by hand"),
        "{tree}"
    );
}

#[test]
fn refetch_answers_what_would_have_happened_if_the_page_had_loaded() {
    let (server, shop) = (judging(Dialect::Anthropic), Shop::failing_first(1));
    let test_dir = workspace(&[("m", &server, "provider: anthropic")], &shop);
    run_once(&test_dir);
    // The failed fetch selects the cell, with the word that the screen uses.
    for (words, cells) in [("is:fetch-error", 1), ("is:refused,citation", 0)] {
        let (_, plan, _) = dicta(&test_dir, &["run", "--dry-run", "--where", words]);
        let found = plan.starts_with(&format!("{cells} cell"));
        assert!(found, "{words}: {plan}");
    }
    let asked = shop.asked();
    let again = branch(
        &test_dir,
        &["@", "one/r/grounded", "--at", "1.call.1", "--refetch"],
    );
    assert_eq!(shop.asked(), asked + 1);
    assert_eq!(again["edited"], false, "a fetch is no edit: {again}");
    let requests = server.requests();
    let sent = &requests.last().expect("a request").body;
    assert!(sent.contains("190.25"), "{sent}");
}

#[test]
fn refetch_in_a_workspace_with_recorded_responses_is_explained() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    let run = run_once(&test_dir);
    let args = [
        "branch",
        "@",
        "one/r/grounded",
        "--at",
        "1.call.1",
        "--refetch",
        "--dry-run",
    ];
    let (_, _, err) = dicta(&test_dir, &args);
    assert!(!err.contains("replay_tools"), "{err}");
    let settings = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("a file");
    let settings = format!("{settings}\nreplay_tools: runs/{run}\n");
    test_dir.write("dicta.yaml", &settings);
    let (_, _, err) = dicta(&test_dir, &args);
    assert!(
        err.contains("--refetch makes the call, although `replay_tools`"),
        "{err}"
    );
}

#[test]
fn other_judge_gets_the_record_as_a_text_and_the_note_says_so() {
    let (first, second) = (judging(Dialect::Gemini), judging(Dialect::Anthropic));
    let shop = Shop::failing_first(0);
    let test_dir = workspace(
        &[
            ("m", &first, "provider: gemini"),
            ("other", &second, "provider: anthropic"),
        ],
        &shop,
    );
    run_once(&test_dir);
    let args = [
        "@",
        "one/r/grounded",
        "--at",
        "2.prompt",
        "--judge",
        "other",
    ];
    let asked = branch(&test_dir, &args);
    assert_eq!(
        (&asked["judge"], &asked["model"]),
        (&json!("other"), &Value::Null)
    );
    let requests = second.requests();
    assert_eq!(requests.len(), 1);
    let sent = &requests[0].body;
    assert!(
        sent.contains("You called order(") && sent.contains("190.25"),
        "{sent}"
    );
    assert!(!sent.contains("c2lnbmVkLWJ5LXRoZS1tb2RlbA=="), "{sent}");
    let (_, runs, _) = dicta(&test_dir, &["runs"]);
    assert!(
        runs.contains("from 2.prompt, judge other, earlier turns sent as text"),
        "{runs}"
    );
    let run = asked["letters"].as_str().expect("letters");
    let log = test_dir
        .path()
        .join("runs")
        .join(asked["run"].as_str().expect("a run"));
    let log = std::fs::read_to_string(log.join("events.jsonl")).expect("a log");
    assert!(
        log.contains("can't take over the messages of m"),
        "{run}: {log}"
    );
}

#[test]
fn redacted_reply_is_not_sent_again() {
    let secret = "k-4711-test";
    let server = WireServer::answering(Dialect::Openai, move |request| {
        if request.mentions("It is the order file") {
            return Reply::verdict(verdict(false));
        }
        Reply::call("order", json!({"number": "TF-4107"})).saying(format!("My key is {secret}."))
    });
    let shop = Shop::failing_first(0);
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    run_once(&test_dir);
    // Without a change, the branch continues from the last step that can be sent.
    let (code, out, err) = dicta(
        &test_dir,
        &["branch", "@", "one/r/grounded", "--at", "2.prompt", "--yes"],
    );
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("the branch continues from 1.prompt"), "{err}");
    assert!(out.contains("from 1.prompt\n"), "{out}");
    assert_eq!(server.requests().len(), 4);
    // With a change, the judge gets the earlier turns as a text.
    test_dir.write("a.txt", "It is the order file: 7");
    let (code, _, err) = dicta(
        &test_dir,
        &[
            "branch",
            "@",
            "one/r/grounded",
            "--at",
            "1.response.1",
            "--set",
            "answer=a.txt",
            "--yes",
        ],
    );
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("gets the first 1 turn as a text"), "{err}");
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert!(
        requests[4].mentions("You called order("),
        "{}",
        requests[4].body
    );
}

#[test]
fn branch_of_a_paid_judge_needs_consent_and_names_only_its_own_calls() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let settings = "provider: openai, max_turns: 3, prices: { input: 1, output: 10 }";
    let test_dir = workspace(&[("m", &server, settings)], &shop);
    run_once(&test_dir);
    let calls = server.requests().len();
    let args = ["branch", "@", "one/r/grounded", "--at", "2.prompt"];
    let (code, _, err) = dicta(&test_dir, &args);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("1 branch by m, 1 to 2 model calls, about $0."),
        "{err}"
    );
    let (code, out, _) = dicta(&test_dir, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0));
    assert!(out.contains("nothing was run"), "{out}");
    let as_json = [&args[..], &["--dry-run", "--format", "json"]].concat();
    let (_, plan, _) = dicta(&test_dir, &as_json);
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(
        (&plan["command"], &plan["at"]),
        (&json!("branch"), &json!("2.prompt"))
    );
    assert_eq!(plan["calls"]["calls_most"], 2);
    assert_eq!(server.requests().len(), calls);
}

#[test]
fn branch_does_not_lower_the_estimate_of_whole_cells() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    run_once(&test_dir);
    let plan = || {
        let args = ["run", "--dry-run", "--refresh", "--where", "transcript:one"];
        dicta(&test_dir, &args).1
    };
    let before = plan();
    assert!(before.contains("from 1 past cell"), "{before}");
    // The branch makes one of the two calls.
    branch(&test_dir, &["@", "one/r/grounded", "--at", "2.prompt"]);
    assert_eq!(plan(), before);
}

#[test]
fn wrong_step_or_part_is_refused_with_the_steps_of_the_trace() {
    let (server, shop) = (judging(Dialect::Openai), Shop::failing_first(0));
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    run_once(&test_dir);
    test_dir.write("x", "{}");
    let (_, steps, _) = dicta(&test_dir, &["branch", "@", "one/r/grounded"]);
    assert!(steps.contains("1.call.1       order\n"), "{steps}");
    let all = ["branch", "@", "one/r/grounded", "--format", "json"];
    let (_, steps, _) = dicta(&test_dir, &all);
    let steps: Value = serde_json::from_str(&steps).expect("JSON");
    assert_eq!(steps["type"], "branch_steps");
    let of_tools = steps["steps"].as_array().expect("steps");
    assert!(
        of_tools.contains(&json!({"step": "1.call.1", "tool": "order"})),
        "{steps}"
    );
    for (args, part) in [
        (
            &["--at", "7.prompt"][..],
            "the trace has no step 7.prompt; it has 1.prompt,",
        ),
        (
            &["--at", "2.prompt", "--set", "answer=x"],
            "step 2.prompt is not a tool call",
        ),
        (
            &["--at", "2.prompt", "--set", "prompt=x"],
            "write `1.prompt`",
        ),
        (
            &["--at", "1.call.1", "--set", "nothing=x"],
            "`nothing` can't be set",
        ),
        (&["--at", "1.call.1", "--set", "answer=gone"], "answer=gone"),
        (
            &["--at", "1.prompt", "--judge", "nobody"],
            "no judge is called `nobody`",
        ),
    ] {
        let all = [&["branch", "@", "one/r/grounded"], args].concat();
        let (code, _, err) = dicta(&test_dir, &all);
        assert_eq!(code, Some(2), "{args:?}");
        assert!(err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn quote_that_its_source_lacks_is_shown_with_the_place_that_has_it() {
    let server = WireServer::answering(Dialect::Openai, |request| {
        if !request.mentions("It is the order file") {
            return Reply::call("order", json!({"number": "TF-4107"}));
        }
        let cite = |source: &str, quote: &str| json!({"source": source, "quote": quote});
        let mut verdict = verdict(false);
        verdict["citations"] = json!([
            cite("message 0", "It is the order file"),
            cite("fetch 1", "amount is on file"),
            cite("message 0", "never written anywhere"),
        ]);
        Reply::verdict(verdict)
    });
    let shop = Shop::failing_first(0);
    let test_dir = workspace(&[("m", &server, "provider: openai")], &shop);
    let run = run_once(&test_dir);
    let (_, shown, _) = dicta(&test_dir, &["show", &run, "one/r/grounded"]);
    for line in [
        "“It is the order file” [message 0] NOT FOUND there, found in fetch 1\n",
        "“amount is on file” [fetch 1] NOT FOUND there, found in rubric\n",
        "“never written anywhere” [message 0] NOT FOUND\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    // A page and the trace of a branch have the same lines.
    let (code, _, err) = dicta(
        &test_dir,
        &["export", &run, "--format", "html", "-o", "p.html"],
    );
    assert_eq!(code, Some(0), "{err}");
    let page = std::fs::read_to_string(test_dir.path().join("p.html")).expect("a page");
    assert!(page.contains("NOT FOUND there, found in fetch 1"), "{page}");
    let (_, branched, _) = dicta(
        &test_dir,
        &[
            "branch",
            &run,
            "one/r/grounded",
            "--at",
            "2.prompt",
            "--yes",
        ],
    );
    assert!(
        branched.contains("NOT FOUND there, found in rubric"),
        "{branched}"
    );
}
