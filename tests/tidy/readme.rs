//! Every command the README shows exists, with its flags; and `.ci/run` tests with the README's own command.

use std::fs;
use std::process::{Command, Stdio};

use crate::fail_with;
use crate::source::root;

/// The words of every command line the README shows: lines of shell blocks without comments, and inline code that
/// begins with `dicta ` or `cargo `.
fn readme_commands(readme: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    let (mut fenced, mut shell) = (false, false);
    for line in readme.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fenced = !fenced;
            shell = fenced && matches!(kind, "sh" | "bash" | "console");
        } else if shell {
            lines.push(line.split(" #").next().unwrap_or("").trim());
        } else if !fenced {
            let inline = line.split('`').skip(1).step_by(2);
            lines.extend(
                inline.filter(|code| code.starts_with("dicta ") || code.starts_with("cargo ")),
            );
        }
    }
    lines
        .into_iter()
        .map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|words| words.first().is_some_and(|word| !word.starts_with('#')))
        .collect()
}

fn help_of(command: &str) -> Result<String, String> {
    let out = Command::new(env!("CARGO_BIN_EXE_dicta"))
        .args([command, "--help"])
        .stdin(Stdio::null())
        .output()
        .expect("the built program starts");
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() && help.contains("Usage") {
        Ok(help)
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

/// A command line of dicta: the command exists, and so do its flags.
fn dicta_problems(words: &[String]) -> Vec<String> {
    let line = words.join(" ");
    let Some(command) = words.first().filter(|word| !word.starts_with('-')) else {
        return Vec::new();
    };
    let help = match help_of(command) {
        Ok(help) => help,
        Err(error) => return vec![format!("`dicta {line}`: no such command: {}", error.trim())],
    };
    words
        .iter()
        .filter(|word| word.starts_with('-'))
        .filter(|flag| !help.contains(flag.split('=').next().unwrap_or(flag)))
        .map(|flag| format!("`dicta {line}`: `dicta {command} --help` does not know {flag}"))
        .collect()
}

fn cargo_problems(words: &[String], manifest: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for pair in words.windows(2) {
        let kind = match pair[0].as_str() {
            "--bench" => "[[bench]]",
            "--example" => "[[example]]",
            _ => continue,
        };
        let entry = format!("{kind}\nname = \"{}\"", pair[1]);
        if !manifest.contains(&entry) {
            problems.push(format!(
                "`{}`: Cargo.toml has no {kind} named {}",
                words.join(" "),
                pair[1]
            ));
        }
    }
    problems
}

#[test]
fn the_commands_of_the_readme_exist() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md is there");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml is there");
    let commands = readme_commands(&readme);
    assert!(
        commands.len() > 10,
        "the README shows its commands in ```sh blocks"
    );
    let mut problems = Vec::new();
    for words in &commands {
        match words[0].as_str() {
            "dicta" => problems.extend(dicta_problems(&words[1..])),
            "cargo" => {
                problems.extend(cargo_problems(words, &manifest));
                if words.get(1).is_some_and(|w| w == "run")
                    && let Some(at) = words.iter().position(|w| w == "--")
                    && !words.iter().any(|w| w == "--example")
                {
                    problems.extend(dicta_problems(&words[at + 1..]));
                }
            }
            path if path.starts_with(".ci/") && !root().join(path).exists() => {
                problems.push(format!("`{}`: there is no {path}", words.join(" ")));
            }
            _ => {}
        }
    }
    fail_with(&problems, "commands of the README");
}

#[test]
fn ci_runs_the_readmes_test_command() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md is there");
    let ci = fs::read_to_string(root().join(".ci/run")).expect(".ci/run is there");
    let commands = readme_commands(&readme);
    let test = commands
        .iter()
        .find(|words| words.get(..2).is_some_and(|w| w == ["cargo", "test"]))
        .expect("the README has a test command");
    assert!(
        ci.contains(&test.join(" ")),
        ".ci/run does not run `{}`",
        test.join(" ")
    );
}
