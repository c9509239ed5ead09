//! The table of the goals. Doesn't measure: each measurement is in the module of its subject.

use std::process::Command;

use crate::{Campaign, Goal, Measure, Measured, Scale};

/// Every goal, in the order of the page.
pub(crate) fn all() -> &'static [Goal] {
    GOALS
}

const GOALS: &[Goal] = crate::goals_streams::GOALS;

/// Measures `goal` at the scale of `campaign`.
pub(crate) fn measure(campaign: &Campaign, goal: &Goal) -> Measured {
    match goal.measure {
        Measure::Here(function) => function(campaign),
        Measure::Nothing(reason) => Measured::Skipped(reason.to_owned()),
        Measure::Tests { .. } | Measure::Bench { .. } if campaign.scale == Scale::Short => {
            Measured::Skipped("only the whole campaign runs it here".to_owned())
        }
        Measure::Tests { target, names } => run_tests(campaign, target, names),
        Measure::Bench { bench, filter } => run_bench(campaign, bench, filter),
    }
}

/// Runs the tests whose names start with one of `names`; the figure is the count of passed tests.
fn run_tests(campaign: &Campaign, target: &str, names: &[&str]) -> Measured {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(&campaign.repository)
        .args(["test", "--locked", "--features", "full"]);
    match target {
        "lib" => command.arg("--lib"),
        other => command.args(["--test", other]),
    };
    let output = match command.arg("--").args(names).output() {
        Ok(output) => output,
        Err(error) => return Measured::Skipped(format!("cargo doesn't start: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = text.lines().find(|line| line.starts_with("test result:")) else {
        return Measured::Missed(format!("`{target}` doesn't build or run"));
    };
    let passed = summary
        .split_whitespace()
        .zip(summary.split_whitespace().skip(1))
        .find(|(_, word)| word.starts_with("passed"))
        .and_then(|(count, _)| count.parse::<usize>().ok())
        .unwrap_or(0);
    if output.status.success() && passed >= names.len() {
        Measured::Reached(format!("{passed} tests pass"))
    } else {
        Measured::Missed(summary.to_owned())
    }
}

/// Runs a benchmark; its last line is the figure, its exit code says whether the promise held.
fn run_bench(campaign: &Campaign, bench: &str, filter: &str) -> Measured {
    let output = Command::new(env!("CARGO"))
        .current_dir(&campaign.repository)
        .args([
            "bench",
            "--locked",
            "--features",
            "full",
            "--bench",
            bench,
            "--",
            filter,
        ])
        .output();
    match output {
        Err(error) => Measured::Skipped(format!("cargo doesn't start: {error}")),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let last = text.lines().rfind(|line| !line.trim().is_empty());
            let figure = last.unwrap_or("no output").trim().to_owned();
            if output.status.success() {
                Measured::Reached(figure)
            } else {
                Measured::Missed(figure)
            }
        }
    }
}
