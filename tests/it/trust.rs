//! `dicta trust`: what dicta refuses or asks before the user trusts a workspace.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

fn set_mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("the test owns it");
}

fn polite(count: usize) -> WireServer {
    let verdict = || Reply::verdict(serde_json::from_str::<Value>(PASSES).expect("JSON"));
    WireServer::openai(std::iter::repeat_with(verdict).take(count).collect())
}

/// Runs the workspace with both variables set.
fn run(test_dir: &TestDir, args: &[&str]) -> Output {
    let mut command = test_dir.command(args);
    command.env("LOCAL_KEY", "local-secret-4711");
    command.env("OTHER_KEY", "other-secret-4711");
    command.env("HOME", test_dir.path());
    command.output().expect("the program runs")
}

/// Returns the refusal, after a check of its exit code.
fn refusal(output: &Output) -> String {
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("dicta trust "), "{why}");
    // The terminal width may break a line anywhere between two words.
    why.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn workspace_that_others_can_write_is_refused_until_it_is_trusted() {
    for unsafe_file in ["dicta.yaml", "r.yaml", "tools.yaml", "checks/run.sh", "."] {
        let test_dir = TestDir::new();
        test_dir.write("tools.yaml", "sources: {}\n");
        test_dir.write("checks/run.sh", "#!/bin/sh\n");
        test_dir.workspace(
            "tools: [tools.yaml]\nallow_scripts: true\n",
            &format!("{NAMES_A_RELEASE}  - {{ id: s, type: script, params: {{ command: [./checks/run.sh] }}, enabled: false }}\n"),
        );
        let path = test_dir.path().join(unsafe_file);
        let path = path.canonicalize().expect("it exists");
        let safe = path.metadata().expect("it exists").permissions().mode() & 0o777;
        let all: [&[&str]; 5] = [
            &["run", "-q"],
            &["check"],
            &["judges"],
            &["runs"],
            &["prompt", "one"],
        ];
        assert_ne!(test_dir.dicta(&["check"]).status.code(), Some(2));
        set_mode(&path, safe | 0o022);
        for args in all {
            let why = refusal(&test_dir.dicta(args));
            let mode = format!("mode {:03o}", safe | 0o022);
            for part in [path.to_str().expect("Unicode"), "owned by ", &mode] {
                assert!(why.contains(part), "{unsafe_file}, {args:?}: {part}: {why}");
            }
        }
        test_dir.trust();
        assert_eq!(test_dir.dicta(&["run", "-q"]).status.code(), Some(1));
        let listed = text(&test_dir.dicta(&["trust", "--list"]).stdout);
        assert!(
            listed.contains("other users may write its files"),
            "{listed}"
        );
        test_dir.dicta(&["trust", ".", "--remove"]);
        refusal(&test_dir.dicta(&["run", "-q"]));
        set_mode(&path, safe);
    }
}

#[test]
fn tools_of_a_workspace_without_trust_are_refused() {
    let test_dir = TestDir::new();
    test_dir.write("tools.yaml", "sources: {}\n");
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    set_mode(&test_dir.path().join("tools.yaml"), 0o666);
    refusal(&test_dir.dicta(&["tool", "no_such_tool", "{}"]));
    refusal(&test_dir.dicta(&["tools"]));
}

#[test]
fn program_and_key_file_of_a_tool_need_trust_in_commands_that_load_only_tools() {
    let test_dir = TestDir::new();
    test_dir.write("serve.sh", "echo started > started\n");
    test_dir.write("keys.json", r#"{"keys": []}"#);
    test_dir.write(
        "tools.yaml",
        "sources:\n  s: { kind: mcp, command: sh, args: [serve.sh] }\n\
         authServices:\n  own: { kind: generic, audience: a, issuer: i, jwks: keys.json, tokenEnv: T }\n",
    );
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    for file in ["serve.sh", "keys.json"] {
        let path = test_dir.path().join(file);
        set_mode(&path, 0o666);
        for args in [&["tool", "no_such_tool", "{}"][..], &["tools"]] {
            let why = refusal(&test_dir.dicta(args));
            assert!(why.contains(file), "{why}");
            assert!(!test_dir.path().join("started").exists(), "{args:?}");
        }
        set_mode(&path, 0o644);
    }
}

#[test]
fn group_that_others_are_in_counts_as_other_users() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let config = test_dir.path().join("dicta.yaml");
    // The file has the test's own group. A user's private group is accepted, any other is refused.
    set_mode(&config, 0o664);
    let code = test_dir.dicta(&["check"]).status.code();
    assert!(code == Some(0) || code == Some(2), "{code:?}");
    set_mode(&config, 0o644);
    assert_eq!(test_dir.dicta(&["check"]).status.code(), Some(0));
}

#[test]
fn variable_goes_to_a_new_address_only_after_trust() {
    let server = polite(8);
    let test_dir = TestDir::new();
    let judges = |key: &str| {
        format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: {key} }}\n",
            server.base_url()
        )
    };
    test_dir.workspace(&judges("LOCAL_KEY"), POLITE);
    let commands: [&[&str]; 3] = [&["run", "-q"], &["check", "--connect"], &["selftest", "m"]];
    for args in commands {
        let why = refusal(&run(&test_dir, args));
        let origin = server.base_url();
        let origin = origin.trim_end_matches("/v1");
        let expected = format!("send LOCAL_KEY to {origin}");
        assert!(why.contains(&expected), "{args:?}: {why}");
        assert!(!why.contains("local-secret"), "{why}");
        // The folder that the user knows, also for the made-up cases of `robustness`.
        let root = test_dir.path().canonicalize().expect("it exists");
        let command = format!("dicta trust {}`", root.display());
        assert!(why.contains(&command), "{args:?}: {why}");
    }
    assert_eq!(server.requests().len(), 0, "nothing was sent");
    // A dry run sends nothing, so it needs no trust.
    assert_eq!(run(&test_dir, &["run", "--dry-run"]).status.code(), Some(0));
    test_dir.trust();
    assert_eq!(run(&test_dir, &["run", "-q"]).status.code(), Some(0));
    assert_eq!(server.requests().len(), 2);
    // The trust covers this variable and this address, not the next variable.
    test_dir.workspace(&judges("OTHER_KEY"), POLITE);
    let why = refusal(&run(&test_dir, &["run", "-q", "--refresh"]));
    assert!(why.contains("send OTHER_KEY to "), "{why}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn implicit_key_variable_and_key_file_need_trust_too() {
    let server = polite(4);
    let test_dir = TestDir::new();
    let judge = |more: &str| {
        let url = server.base_url();
        format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{url}', model: m{more} }}\n"
        )
    };
    test_dir.workspace(&judge(""), POLITE);
    let mut command = test_dir.command(&["run", "-q"]);
    command.env("OPENAI_API_KEY", "sk-secret-4711");
    let why = refusal(&command.output().expect("the program runs"));
    assert!(why.contains("send OPENAI_API_KEY to "), "{why}");
    // The server is on this machine, as Ollama is, so it often needs no key.
    assert!(why.contains("write `api_key_env: null`"), "{why}");
    // Without the variable there is nothing to send.
    assert_eq!(test_dir.dicta(&["run", "-q"]).status.code(), Some(0));
    let key = test_dir.write("key", "file-secret-4711");
    set_mode(&key, 0o600);
    test_dir.workspace(&judge(", api_key_file: key"), POLITE);
    let why = refusal(&test_dir.dicta(&["run", "-q", "--refresh"]));
    assert!(why.contains("send the key file "), "{why}");
    assert_eq!(server.requests().len(), 2);
    // Trust in one file doesn't cover the file to which a later version of the workspace links.
    test_dir.trust();
    let other = test_dir.write("other-secret", "file-secret-4712");
    set_mode(&other, 0o600);
    std::fs::remove_file(&key).expect("the test owns it");
    std::os::unix::fs::symlink("other-secret", &key).expect("a link");
    let why = refusal(&test_dir.dicta(&["run", "-q", "--refresh"]));
    assert!(why.contains("/other-secret to "), "{why}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn variable_of_a_tools_file_needs_trust_for_its_source() {
    let server = polite(1);
    let origin = server.base_url();
    let origin = origin.trim_end_matches("/v1");
    let test_dir = TestDir::new();
    // The alias is as good as the placeholder itself.
    let tools = format!(
        "sources:\n  shop: {{ kind: http, baseUrl: '{origin}', allowPrivate: true, headers: {{ X-Key: &key '${{LOCAL_KEY}}' }} }}\n  \
         far: {{ kind: http, baseUrl: 'https://far.example', headers: {{ X-Key: *key }} }}\n\
         tools:\n  look: {{ kind: http, source: shop, method: GET, path: /, description: Looks. }}\n"
    );
    test_dir.write("tools.yaml", &tools);
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    let why = refusal(&run(&test_dir, &["tool", "look", "{}"]));
    assert!(
        why.contains(&format!("send LOCAL_KEY to {origin}")),
        "{why}"
    );
    assert_eq!(server.requests().len(), 0, "nothing was sent");
    let trusted = text(&run(&test_dir, &["trust", "."]).stdout);
    for address in [origin, "https://far.example"] {
        assert!(
            trusted.contains(&format!("runs may send LOCAL_KEY to {address}")),
            "{trusted}"
        );
    }
    run(&test_dir, &["tool", "look", "{}"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn address_in_a_variable_or_a_default_needs_trust_again_after_a_change() {
    let servers = [polite(1), polite(1)];
    let origins = servers
        .each_ref()
        .map(|server| server.base_url().trim_end_matches("/v1").to_owned());
    let test_dir = TestDir::new();
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    let write_tools = |address: &str| {
        let tools = format!(
            "sources:\n  shop: {{ kind: http, baseUrl: '{address}', allowPrivate: true, headers: {{ X-Key: '${{LOCAL_KEY}}' }} }}\n\
             tools:\n  look: {{ kind: http, source: shop, method: GET, path: /, description: Looks. }}\n"
        );
        test_dir.write("tools.yaml", &tools);
    };
    let run_at = |origin: &str, args: &[&str]| {
        let mut command = test_dir.command(args);
        command.env("SHOP_URL", origin);
        command.env("LOCAL_KEY", "local-secret-4711");
        command.output().expect("the program runs")
    };
    // The name of the second variable denotes a secret, but the file contains its value.
    for use_default in [false, true] {
        let set_address = |origin: &str| {
            if use_default {
                write_tools(&format!("${{SHOP_KEY:{origin}}}"));
            } else {
                write_tools("${SHOP_URL}");
            }
        };
        set_address(&origins[0]);
        let trusted = text(&run_at(&origins[0], &["trust", "."]).stdout);
        let expected = format!("runs may send LOCAL_KEY to {}", origins[0]);
        assert!(trusted.contains(&expected), "{trusted}");
        set_address(&origins[1]);
        let why = refusal(&run_at(&origins[1], &["tool", "look", "{}"]));
        // The value of a name that denotes a secret is not shown while its default is in use.
        let expected = format!("send LOCAL_KEY to {}", origins[1]);
        assert!(use_default || why.contains(&expected), "{why}");
        assert_eq!(servers[1].requests().len(), 0, "nothing was sent");
    }
}

#[test]
fn variable_that_a_judge_reads_in_its_tools_needs_trust_for_the_judge() {
    let server = polite(4);
    let test_dir = TestDir::new();
    let config = format!(
        "judge: m\ntools: [tools.yaml]\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: null, tools: [find] }}\n",
        server.base_url()
    );
    test_dir.workspace(&config, POLITE);
    // The judge sends no key, so nothing else asks.
    let texts: [(&str, &str); 4] = [
        ("Finds ${OTHER_KEY}.", "SELECT ? AS found"),
        ("Finds.", "SELECT ?, '${OTHER_KEY}'"),
        ("Finds. ${OTHER_KEY:default}", "SELECT ? AS found"),
        ("Finds.", "SELECT ?, '${OTHER_KEY}' -- ${HOME}"),
    ];
    let write = |description: &str, statement: &str| {
        test_dir.write(
            "tools.yaml",
            &format!(
                "sources:\n  db: {{ kind: sqlite, database: ':memory:' }}\ntools:\n  find:\n    kind: sqlite-sql\n    \
                 source: db\n    description: {description}\n    statement: \"{statement}\"\n    parameters: \
                 [{{ name: q, type: string, description: q }}]\n"
            ),
        );
    };
    let origin = server.base_url();
    let origin = origin.trim_end_matches("/v1");
    for (description, statement) in texts {
        write(description, statement);
        let why = refusal(&run(&test_dir, &["run", "-q"]));
        let expected = format!("send OTHER_KEY to {origin}");
        assert!(why.contains(&expected), "{description}, {statement}: {why}");
        assert!(!why.contains("HOME"), "{why}");
    }
    assert_eq!(server.requests().len(), 0, "nothing was sent");
    // A variable of the system is not a secret.
    write("Finds. ${HOME}", "SELECT ? AS found");
    assert_eq!(run(&test_dir, &["run", "-q"]).status.code(), Some(0));
    let (description, statement) = texts[0];
    write(description, statement);
    assert_eq!(run(&test_dir, &["trust", "."]).status.code(), Some(0));
    assert_eq!(run(&test_dir, &["run", "-q"]).status.code(), Some(0));
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn variable_in_a_base_prompt_needs_trust_for_the_judge() {
    let test_dir = TestDir::new();
    test_dir.write(
        "team.yaml",
        "generator: gcp_vertex_gemini\nvertex_model: m\nbase_prompt: 'Team ${OTHER_KEY} in ${HOME}'\n",
    );
    test_dir.workspace("judge: team\njudges: { team: team.yaml }\n", POLITE);
    let mut command = test_dir.command(&["run", "-q", "--yes"]);
    command.env("OTHER_KEY", "other-secret-4711");
    command.env("HOME", test_dir.path());
    command.env("GEMINI_API_KEY", "a-key-of-gemini");
    // The key goes to the provider's own address, and the other variable is not its key.
    let why = refusal(&command.output().expect("the program runs"));
    let expected = "send OTHER_KEY to https://generativelanguage.googleapis.com";
    assert!(why.contains(expected), "{why}");
    assert!(
        !why.contains("GEMINI_API_KEY") && !why.contains("HOME"),
        "{why}"
    );
}

#[test]
fn check_runs_no_script_and_no_server() {
    let server = polite(1);
    let test_dir = TestDir::new();
    let mark = test_dir.path().join("ran");
    let command = json!(["/bin/sh", "-c", format!("touch {}", mark.display())]);
    test_dir.write(
        "tools.yaml",
        &format!("sources:\n  s: {{ kind: mcp, command: {command} }}\n"),
    );
    test_dir.workspace(
        &format!(
            "allow_scripts: true\ntools: [tools.yaml]\njudge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: LOCAL_KEY, tools: [s] }}\n",
            server.base_url()
        ),
        &format!(
            "{POLITE}  - {{ id: s, type: script, params: {{ command: {command} }}, examples: [{{ text: x, expect: pass }}] }}\n"
        ),
    );
    let checked = run(&test_dir, &["check"]);
    assert!(!mark.exists(), "{}", text(&checked.stderr));
    run(&test_dir, &["judges"]);
    assert!(!mark.exists());
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn every_command_that_asks_a_judge_needs_trust_and_consent() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(PASSES));
    let test_dir = crate::variants::workspace(&server);
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("text");
    let with_key = config.replace("model: m,", "model: m, api_key_env: LOCAL_KEY,");
    let second = format!(
        "judges:\n  n: {{ provider: openai, base_url: '{}', model: n, api_key_env: OTHER_KEY, prices: {{ input: 1, output: 1 }} }}",
        server.base_url()
    );
    test_dir.write("dicta.yaml", &with_key.replace("judges:", &second));
    let note = |id: &str| {
        let note = json!({"id": id, "transcript": "t1", "by": "ana", "at": "2026-01-01T00:00:00Z",
            "outcome": "failure", "note": "says it without a reason"});
        format!("{note}\n")
    };
    test_dir.write("notes.jsonl", &[note("a"), note("b")].concat());
    test_dir.trust();
    // A recorded run, for the branch.
    let recorded = run(&test_dir, &["run", "-q", "--yes"]);
    assert!(
        matches!(recorded.status.code(), Some(0 | 1)),
        "{}",
        text(&recorded.stderr)
    );
    let asked = server.requests().len();
    assert!(asked > 0);
    let commands: [&[&str]; 7] = [
        &["run", "-q", "--refresh"],
        &["variants", "v.yaml"],
        &["improve", "r/colour", "--judge", "m"],
        &["migrate", "--from", "m", "--to", "n"],
        &["branch", "@", "t1/r/colour", "--at", "1.prompt"],
        &["review", "suggest", "--judge", "m"],
        &["noise", "*/r/colour", "--repeat", "2"],
    ];
    // Step: with trust, and without consent to the cost.
    for args in commands {
        let refused = run(&test_dir, args);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
        assert!(why.contains("--yes"), "{args:?}: {why}");
        assert_eq!(server.requests().len(), asked, "{args:?}");
    }
    // Step: with consent, and without trust.
    test_dir.dicta(&["trust", ".", "--remove"]);
    for args in commands {
        let why = refusal(&run(&test_dir, &[args, &["--yes"]].concat()));
        assert!(why.contains("send LOCAL_KEY to "), "{args:?}: {why}");
        assert_eq!(server.requests().len(), asked, "{args:?}");
    }
    // Step: the judge that proposes has another key than the one that decides. Nothing is judged before the question.
    let only_first = with_key.replace("judges:", &second.replace("OTHER_KEY", "LOCAL_KEY"));
    test_dir.write("dicta.yaml", &only_first);
    test_dir.trust();
    test_dir.write("dicta.yaml", &with_key.replace("judges:", &second));
    let why = refusal(&run(
        &test_dir,
        &["improve", "r/colour", "--judge", "n", "--yes"],
    ));
    assert!(why.contains("send OTHER_KEY to "), "{why}");
    assert_eq!(server.requests().len(), asked);
    // Step: files that others can write.
    set_mode(&test_dir.path().join("dicta.yaml"), 0o666);
    for args in commands {
        let why = refusal(&run(&test_dir, &[args, &["--yes"]].concat()));
        assert!(why.contains("mode 666"), "{args:?}: {why}");
    }
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn robustness_uses_the_trust_of_the_workspace() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(PASSES));
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: LOCAL_KEY }}\n",
            server.base_url()
        ),
        POLITE,
    );
    refusal(&run(&test_dir, &["robustness", "m"]));
    assert_eq!(server.requests().len(), 0);
    test_dir.trust();
    let attacked = run(&test_dir, &["robustness", "m"]);
    assert_eq!(
        attacked.status.code(),
        Some(0),
        "{}",
        text(&attacked.stderr)
    );
    assert!(server.requests().len() >= 16);
}

#[test]
fn relative_home_does_not_make_the_workspace_trust_itself() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let printed = test_dir
        .command(&["paths"])
        .env_remove("DICTA_DATA_DIR")
        .env("HOME", ".")
        .output()
        .expect("the program runs");
    let why = text(&printed.stderr);
    assert_eq!(printed.status.code(), Some(2), "{why}");
    assert!(why.contains("set DICTA_DATA_DIR"), "{why}");
}

#[test]
fn resumed_run_starts_no_program_of_another_workspace_or_installation() {
    let (old, today) = (TestDir::new(), TestDir::new());
    let started = old.path().join("started");
    let program = format!("#!/bin/sh\necho x >> {}\nexit 3\n", started.display());
    for test_dir in [&old, &today] {
        set_mode(&test_dir.write("fail.sh", &program), 0o755);
        test_dir.workspace(
            "allow_scripts: true\n",
            "  - { id: s, type: script, params: { command: [./fail.sh] } }\n",
        );
    }
    assert_eq!(old.dicta(&["run", "-q"]).status.code(), Some(3));
    let count = || {
        let lines = std::fs::read_to_string(&started).expect("the program ran");
        lines.lines().count()
    };
    let before = count();
    let runs = std::fs::read_dir(old.path().join("runs")).expect("runs");
    let folders = runs.map(|entry| entry.expect("an entry").path());
    let run = folders.filter(|path| path.join("events.jsonl").is_file());
    let run = run.last().expect("a run");
    let run = run.to_str().expect("Unicode");
    // The run of another installation, which could have any rubric.
    let refused = today.dicta(&["run", "-q", "--resume", run]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("recorded elsewhere"), "{why}");
    // A run of this installation, whose folder was not checked.
    let mut command = today.command(&["run", "-q", "--resume", run]);
    command.env("DICTA_DATA_DIR", old.path().join(".data"));
    let refused = command.output().expect("the program runs");
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("programs of another workspace"), "{why}");
    // The old folder may be gone.
    assert!(why.contains("start a new run here"), "{why}");
    assert_eq!(count(), before);
    // Its own workspace resumes it.
    let resumed = old.dicta(&["run", "-q", "--resume", run]);
    assert_eq!(resumed.status.code(), Some(3), "{}", text(&resumed.stderr));
    assert_eq!(count(), 2 * before);
}

#[test]
fn trusted_address_contains_no_value_of_a_secret_variable() {
    let test_dir = TestDir::new();
    test_dir.write(
        "tools.yaml",
        "sources:\n  api: { kind: http, baseUrl: 'https://${OTHER_KEY}.example/x' }\n",
    );
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    let mut command = test_dir.command(&["trust", "."]);
    // The parser of URLs writes a host in lower case.
    let output = command.env("OTHER_KEY", "Other-Secret-4711").output();
    let output = output.expect("the program runs");
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let file = test_dir.path().join(".data/trust.json");
    let stored = std::fs::read_to_string(file).expect("the trust is recorded");
    for text in [shown, stored] {
        assert!(text.contains("https://${OTHER_KEY}.example"), "{text}");
        assert!(!text.to_ascii_lowercase().contains("4711"), "{text}");
    }
}
