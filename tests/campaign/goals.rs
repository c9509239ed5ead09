//! The table of the goals, and the measurements that run tests or benchmarks. Each other measurement is in the module
//! of its subject.

mod api;
mod endurance;
mod fetch;
mod hostile;
mod judging;
mod recording;
mod secrets;
mod terminal;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::{Campaign, Goal, Measure, Measured, Scale, Suite};

/// Names a folder with built test programs (`lib`, `it`, `tidy`), for a machine on which cargo must not build.
const PROGRAMS_VARIABLE: &str = "DICTA_TEST_PROGRAMS";

/// Every goal, in the order of the page.
pub(crate) fn all() -> impl Iterator<Item = &'static Goal> {
    [
        fetch::GOALS,
        terminal::GOALS,
        recording::GOALS,
        api::GOALS,
        judging::GOALS,
        secrets::GOALS,
        hostile::GOALS,
        endurance::GOALS,
    ]
    .into_iter()
    .flatten()
}

/// Tests that measure a promise.
const fn tests(suites: &'static [Suite]) -> Measure {
    Measure::Tests { suites }
}

/// Measures `goal` at the scale of `campaign`.
pub(crate) fn measure(campaign: &Campaign, goal: &Goal) -> Measured {
    match goal.measure {
        Measure::Here(function) => measure_here(campaign, function),
        Measure::Nothing(reason) => Measured::Skipped(reason.to_owned()),
        Measure::Tests { suites } if campaign.scale == Scale::Short => {
            find_missing_test(campaign, suites).map_or_else(
                || Measured::Skipped("only the whole campaign runs its tests again".to_owned()),
                |name| Measured::Missed(format!("there is no test `{name}`")),
            )
        }
        Measure::Tests { suites } => run_tests(campaign, suites),
    }
}

/// A failed assertion of a measurement is a missed goal.
fn measure_here(campaign: &Campaign, function: fn(&Campaign) -> Measured) -> Measured {
    std::panic::catch_unwind(AssertUnwindSafe(|| function(campaign))).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let message = message.unwrap_or("it ended with a panic");
        Measured::Missed(message.lines().next().unwrap_or_default().to_owned())
    })
}

/// Returns a test that the sources of its suite don't contain: a renamed or moved test would otherwise leave its goal
/// unmeasured.
pub(crate) fn find_missing_test(
    campaign: &Campaign,
    suites: &'static [Suite],
) -> Option<&'static str> {
    let mut missing = suites.iter().filter_map(|(target, names)| {
        let functions = list_functions(campaign, target);
        let mut names = names.iter().copied();
        names.find(|name| !functions.contains(*name))
    });
    missing.next()
}

/// The names of the functions in the sources of a suite.
fn list_functions(campaign: &Campaign, target: &str) -> &'static BTreeSet<String> {
    static LIB: OnceLock<BTreeSet<String>> = OnceLock::new();
    static IT: OnceLock<BTreeSet<String>> = OnceLock::new();
    static TIDY: OnceLock<BTreeSet<String>> = OnceLock::new();
    let (functions, folder) = match target {
        "lib" => (&LIB, "src"),
        "it" => (&IT, "tests/it"),
        _ => (&TIDY, "tests"),
    };
    functions.get_or_init(|| {
        let mut found = BTreeSet::new();
        collect_functions(&campaign.repository.join(folder), &mut found);
        found
    })
}

fn collect_functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            found.extend(text.split("fn ").skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                rest[..end.unwrap_or(rest.len())].to_owned()
            }));
        }
    }
}

/// Runs the tests of some suites; the figure is the count of passed tests.
pub(crate) fn run_tests(campaign: &Campaign, suites: &'static [Suite]) -> Measured {
    let mut passed = 0;
    for (target, names) in suites {
        // Tests with a count have a smaller one in every `cargo test`.
        let mut command = test_program(campaign, target);
        command.env("DICTA_CAMPAIGN", "full");
        let output = match command.args(*names).output() {
            Ok(output) => output,
            Err(error) => return Measured::Skipped(format!("the tests don't start: {error}")),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let runs = |name: &str| {
            // Output of a test can be between its name and its result, so the result can be lines below.
            text.lines()
                .filter_map(|line| line.strip_prefix("test "))
                .filter_map(|line| line.split(" ... ").next())
                .any(|path| path.rsplit("::").next() == Some(name))
        };
        if let Some(name) = names.iter().find(|name| !runs(name)) {
            return Measured::Missed(format!("the test `{name}` doesn't run"));
        }
        let Some(summary) = text.lines().find(|line| line.starts_with("test result:")) else {
            return Measured::Missed(format!("the tests `{target}` don't build or run"));
        };
        if !output.status.success() {
            return Measured::Missed(summary.to_owned());
        }
        let count = count_passed(summary);
        // An ignored test has a line, too.
        if count < names.len() {
            return Measured::Missed(summary.to_owned());
        }
        passed += count;
    }
    Measured::Reached(format!("{passed} tests pass"))
}

/// The figure of a measurement of this program, with the tests that measure the rest of the goal.
pub(crate) fn combine(campaign: &Campaign, here: Measured, suites: &'static [Suite]) -> Measured {
    let Measured::Reached(figure) = &here else {
        return here;
    };
    if campaign.scale == Scale::Short {
        let missing = find_missing_test(campaign, suites);
        return missing.map_or(here, |name| {
            Measured::Missed(format!("there is no test `{name}`"))
        });
    }
    match run_tests(campaign, suites) {
        Measured::Reached(tests) => Measured::Reached(format!("{figure}; {tests}")),
        other => other,
    }
}

/// The test program of a suite: built by cargo, or a built one in the folder that [`PROGRAMS_VARIABLE`] names.
fn test_program(campaign: &Campaign, target: &str) -> Command {
    if let Some(folder) = std::env::var_os(PROGRAMS_VARIABLE) {
        let mut command = Command::new(Path::new(&folder).join(target));
        command.current_dir(&campaign.repository);
        return command;
    }
    let mut command = cargo(campaign);
    command.args(["test", "--locked", "--features", "full"]);
    match target {
        "lib" => command.arg("--lib"),
        other => command.args(["--test", other]),
    };
    command.arg("--");
    command
}

/// Cargo in the repository. Without the variables of the cargo that started the campaign, because build scripts compile
/// their libraries again if one of them changes.
pub(crate) fn cargo(campaign: &Campaign) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&campaign.repository);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The number before `passed` in the last line of a test program.
fn count_passed(summary: &str) -> usize {
    summary
        .split_whitespace()
        .zip(summary.split_whitespace().skip(1))
        .find(|(_, word)| word.starts_with("passed"))
        .and_then(|(count, _)| count.parse().ok())
        .unwrap_or(0)
}
