//! The tests of a promptfoo config: `tests`, files of tests as YAML, JSON or CSV, and `scenarios`.
//!
//! Responsible for the list of tests. promptfoo runs each test of a scenario with each of its configs, so each such pair
//! is one test here. Does not convert assertions.

use serde_json::Value;

use super::super::conversion::{ConversionError, EvalConverter};
use super::super::doc_location::{DocLocation, find_file, load_doc};
use super::csv_tests::{read_csv_tests, rows_to_tests};
use crate::rubric::RubricFiles;

/// The largest number of tests that the scenarios of a config give.
const MAX_SCENARIO_TESTS: usize = 10_000;

/// A test, with the config of its scenario.
#[derive(Debug, Clone)]
pub(super) struct TestSource {
    pub(super) at: DocLocation,
    /// The entry of `scenarios[].config` with more variables; `None` outside of scenarios.
    pub(super) config: Option<DocLocation>,
    /// The name of a test without a description.
    pub(super) default_name: String,
}

impl TestSource {
    fn numbered(at: DocLocation, index: usize) -> Self {
        Self {
            at,
            config: None,
            default_name: format!("test-{}", index + 1),
        }
    }

    /// Returns the location of a key: the test's own, else that of the scenario's config.
    pub(super) fn get(&self, key: &str) -> Option<DocLocation> {
        let config = || self.config.as_ref()?.get(key);
        self.at.get(key).or_else(config)
    }
}

/// Returns the tests of a list, in order.
pub(super) fn number_tests(items: Vec<DocLocation>) -> Vec<TestSource> {
    let items = items.into_iter().enumerate();
    items
        .map(|(index, at)| TestSource::numbered(at, index))
        .collect()
}

/// Returns the tests of a config: those of `tests`, then those of `scenarios`.
pub(super) fn collect_config_tests(
    files: &dyn RubricFiles,
    root: &DocLocation,
    converter: &mut EvalConverter<'_>,
) -> Vec<TestSource> {
    let mut tests = Vec::new();
    collect_tests(files, &root.child("tests"), &mut tests, converter);
    let mut all = number_tests(tests);
    let mut scenarios = Vec::new();
    collect_tests(files, &root.child("scenarios"), &mut scenarios, converter);
    for (index, scenario) in scenarios.iter().enumerate() {
        let mut configs = Vec::new();
        collect_tests(files, &scenario.child("config"), &mut configs, converter);
        let mut tests = Vec::new();
        collect_tests(files, &scenario.child("tests"), &mut tests, converter);
        if configs.is_empty() && !tests.is_empty() {
            let error = ConversionError::new(
                "it has no `config`, so promptfoo runs none of its tests",
                "move its tests to `tests:`",
            );
            converter.report_error(scenario, "scenarios", error);
            continue;
        }
        let default_name = |config: usize, test: usize| {
            format!("scenario-{}-{}-{}", index + 1, config + 1, test + 1)
        };
        for (config_index, config) in configs.iter().enumerate() {
            if all.len() + tests.len().max(1) > MAX_SCENARIO_TESTS {
                let error = ConversionError::new(
                    format!("the scenarios give more than {MAX_SCENARIO_TESTS} tests"),
                    "split the config",
                );
                converter.report_error(scenario, "scenarios", error);
                return all;
            }
            // A scenario without tests runs each config as a test.
            if tests.is_empty() {
                all.push(TestSource {
                    at: config.clone(),
                    config: None,
                    default_name: default_name(config_index, 0),
                });
            }
            all.extend(
                tests
                    .iter()
                    .enumerate()
                    .map(|(test_index, test)| TestSource {
                        at: test.clone(),
                        config: Some(config.clone()),
                        default_name: default_name(config_index, test_index),
                    }),
            );
        }
    }
    all
}

/// Adds the entries of a list, and of the files that it names.
fn collect_tests(
    files: &dyn RubricFiles,
    at: &DocLocation,
    all: &mut Vec<DocLocation>,
    converter: &mut EvalConverter<'_>,
) {
    match at.value() {
        Value::Array(_) => {
            for item in at.items() {
                // A list can mix tests and files of tests.
                if item.value().is_string() || item.text("path").is_some() {
                    collect_tests(files, &item, all, converter);
                } else {
                    all.push(item);
                }
            }
        }
        Value::String(written) => {
            for path in list_files(files, at, written, converter) {
                read_tests_file(files, at, &path, all, converter);
            }
        }
        Value::Null => {}
        // A file with a `config` for its program.
        _ if at.text("path").is_some() => {
            collect_tests(files, &at.child("path"), all, converter);
        }
        _ => {
            let name = at.pointer.rsplit('/').next().unwrap_or_default();
            let error = ConversionError::new("it is neither a list nor a file", "write a list");
            converter.report_error(at, name, error);
        }
    }
}

/// Returns the files that a text names: one file, or the files of a glob.
fn list_files(
    files: &dyn RubricFiles,
    at: &DocLocation,
    written: &str,
    converter: &mut EvalConverter<'_>,
) -> Vec<String> {
    let path = written.strip_prefix("file://").unwrap_or(written);
    if path.contains("://") {
        let error = ConversionError::new(
            "it is on a server, and dicta reads only files",
            "save its tests as a CSV file, and name that",
        );
        converter.report_error(at, written, error);
        return Vec::new();
    }
    if !path.contains(['*', '?']) {
        return vec![path.to_owned()];
    }
    let folder = at.doc.path.parent().unwrap_or(std::path::Path::new(""));
    let pattern = folder.join(path);
    let found = files.list(&pattern.to_string_lossy());
    if found.is_empty() {
        let error = ConversionError::new("no file matches it", "name a file of tests");
        converter.report_error(at, written, error);
    }
    let relative = |path: &std::path::PathBuf| {
        let inside = path.strip_prefix(folder).unwrap_or(path);
        inside.to_string_lossy().into_owned()
    };
    found.iter().map(relative).collect()
}

fn read_tests_file(
    files: &dyn RubricFiles,
    at: &DocLocation,
    path: &str,
    all: &mut Vec<DocLocation>,
    converter: &mut EvalConverter<'_>,
) {
    let ends = |endings: &[&str]| endings.iter().any(|end| path.ends_with(end));
    if ends(&[".csv"]) {
        let read = find_file(files, &at.doc.path, path)
            .map_err(|why| format!("the file `{path}` {why}"))
            .and_then(|found| read_csv_tests(&found.text, &found.path));
        match read {
            Ok(doc) => all.extend(DocLocation::root(&doc).items()),
            Err(why) => {
                let error = ConversionError::new(why, "");
                converter.report_error(at, "tests", error);
            }
        }
        return;
    }
    // Scripts and services are not read.
    if !ends(&[".yaml", ".yml", ".json", ".jsonl"]) {
        let why = "only files of YAML, JSON, JSON lines or CSV are read for tests";
        let error = ConversionError::new(why, "name a YAML file of tests");
        return converter.report_error(at, path, error);
    }
    if ends(&[".jsonl"]) {
        match find_file(files, &at.doc.path, path) {
            Ok(found) => match super::csv_tests::read_json_lines(&found.text, &found.path) {
                Ok(doc) => all.extend(DocLocation::root(&doc).items()),
                Err(why) => {
                    converter.report_error(at, "tests", ConversionError::new(why, ""));
                }
            },
            Err(why) => {
                let why = format!("the file `{path}` {why}");
                converter.report_error(at, "tests", ConversionError::new(why, ""));
            }
        }
        return;
    }
    match load_doc(files, at, path) {
        Ok(doc) => {
            let doc = match rows_to_tests(doc) {
                Ok(doc) => doc,
                Err(why) => {
                    return converter.report_error(at, "tests", ConversionError::new(why, ""));
                }
            };
            let root = DocLocation::root(&doc);
            // A file may hold one test.
            if root.value().is_object() {
                all.push(root);
            } else {
                all.extend(root.items());
            }
        }
        Err(problems) => converter.problems.extend(problems),
    }
}
