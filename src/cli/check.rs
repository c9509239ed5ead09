//! `dicta check`: responsible for the errors of loading, the lints, the examples of code checks, and the report on a
//! transcript file. Does not call a judge; `judged_examples` and `connect` do.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::args::ExampleArgs;
use super::check_notes::{check_notes, format_notes};
use super::check_report::CheckReport;
use super::error::{CommandError, EXIT_USAGE};
use super::format::Format;
use super::judged_examples::UnjudgedExamples;
use super::transcript_report::{self, CappedWarnings, TranscriptFileReport, WorkspaceFilesReport};
use super::workspace::{check_labels, find_root, load_workspace_to_check};
use super::{CommandCx, judged_examples};
use crate::diag::yaml::{self, YamlLimits};
use crate::diag::{Diagnostic, has_errors};
use crate::handlers::EvalTypeRegistry;
use crate::model::{explain_file_error, make_visible, pluralize};
use crate::net::{Resolver, SystemResolver};
use crate::review::ReviewPlace;
use crate::rubric::{self, DetectedFile, NOT_CARRIED, Rubric, detect_rubric_format};
use crate::run;
use crate::storage::read_regular_text;
use crate::tools::toolbox::Toolbox;
use crate::transcript::TranscriptError;
use crate::workspace::lint::{self, ExampleSummary, TranscriptLinter};
use crate::workspace::{self, LabelledTranscripts};

/// The largest size of a rubric or tools file, in bytes.
const MAX_RUBRIC_BYTES: u64 = YamlLimits::GENERATED.file_bytes();

/// Checks a workspace, a rubric, a tools file or a transcript file. Returns the exit code.
pub(super) fn check(
    path: Option<&Path>,
    strict: bool,
    exam: &ExampleArgs,
    format: Format,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mut report = CheckReport::new(format, cx);
    let outcome = check_path(path, strict, exam, &mut report, cx);
    report.finish(outcome)
}

fn check_path(
    path: Option<&Path>,
    strict: bool,
    exam: &ExampleArgs,
    report: &mut CheckReport<'_>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    // The file dicta.yaml represents its whole workspace.
    let file =
        path.filter(|path| path.is_file() && path.file_name() != Some("dicta.yaml".as_ref()));
    // Judges are defined in dicta.yaml, so a single file has none to call.
    if let Some(path) = file.filter(|_| exam.examples) {
        return Err(CommandError::usage(format!(
            "{} defines no judges; pass the folder of the workspace with `--examples`",
            path.display()
        )));
    }
    match path {
        Some(path) if path.is_file() && path.file_name() != Some("dicta.yaml".as_ref()) => {
            // Try a tools file first: it is YAML, too, and a rubric's errors would not help its author.
            if let Some(found) = parse_tools_file(path, cx) {
                check_tools_file(path, &found, strict, report)
            } else if is_rubric_file(path) {
                check_rubric(path, strict, report)
            } else {
                transcript_report::check_transcripts(path, strict, report, cx)
            }
        }
        _ => check_workspace(path, strict, exam, report, cx),
    }
}

/// Returns the exit code: warnings count only with `--strict`.
fn exit_code(warnings: usize, strict: bool) -> u8 {
    if strict && warnings > 0 {
        EXIT_USAGE
    } else {
        0
    }
}

/// Returns true if a file is YAML by its name. Transcripts are in other formats.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "yaml" || e == "yml")
}

/// Reads a tools file and its diagnostics. Returns None if the file does not declare tools.
fn parse_tools_file(path: &Path, cx: &CommandCx) -> Option<(Toolbox, Vec<Diagnostic>)> {
    if !is_yaml(path) && path.extension().is_none_or(|e| e != "json") {
        return None;
    }
    let text = read_regular_text(path, MAX_RUBRIC_BYTES).ok()?;
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    workspace::parse_tools_file(path, &Arc::from(text), &cx.env, &resolver)
}

fn check_tools_file(
    path: &Path,
    (toolbox, problems): &(Toolbox, Vec<Diagnostic>),
    strict: bool,
    report: &mut CheckReport<'_>,
) -> Result<u8, CommandError> {
    if has_errors(problems) {
        return Err(CommandError::from_diagnostics(problems.clone()));
    }
    report.diagnose(problems);
    report.count("tools", toolbox.tools.len());
    report.count("sources", toolbox.sources.len());
    report.count("toolsets", toolbox.sets.len());
    report.print(&format!(
        "{}: {}, {}, {}, {}\n{}",
        path.display(),
        pluralize(toolbox.tools.len() as u64, "tool"),
        pluralize(toolbox.sources.len() as u64, "source"),
        pluralize(toolbox.sets.len() as u64, "toolset"),
        pluralize(toolbox.auth.len() as u64, "auth service"),
        format_warning_count(problems.len())
    ));
    Ok(exit_code(problems.len(), strict))
}

/// Returns true if a file is a rubric and not a transcript file.
pub(super) fn is_rubric_file(path: &Path) -> bool {
    is_yaml(path) || is_json_rubric(path)
}

/// Returns true if a JSON file is a rubric, in the format of dicta or of another tool.
fn is_json_rubric(path: &Path) -> bool {
    if path.extension().is_none_or(|e| e != "json") {
        return false;
    }
    // The size is checked first: a transcript file can have gigabytes.
    let small = path
        .metadata()
        .is_ok_and(|meta| meta.len() <= MAX_RUBRIC_BYTES);
    // The loader refuses larger files, so a larger one is a transcript file.
    let text = small.then(|| read_regular_text(path, MAX_RUBRIC_BYTES).ok());
    let doc = text.flatten().and_then(|text| {
        yaml::read_limited_document(&Arc::from(text), path, YamlLimits::GENERATED).ok()
    });
    doc.is_some_and(|doc| {
        // A transcript may have the key `evals`, but a rubric has no `messages`.
        let has_evals = doc.value.get("evals").is_some() && doc.value.get("messages").is_none();
        has_evals
            || matches!(
                detect_rubric_format(&doc.value),
                Some(DetectedFile::Rubric(_))
            )
    })
}

/// Formats a rubric as one line, with another line for each key that dicta could not carry over.
fn format_rubric(rubric: &Rubric) -> String {
    let evals = pluralize(rubric.evals.len() as u64, "eval");
    let path = rubric.path.display();
    let mut out = format!(
        "{path}: {}, rubric `{}` with {evals}\n",
        rubric.format, rubric.id
    );
    for lost in &rubric.not_carried {
        let _infallible = writeln!(out, "  {lost}");
        if let Some(help) = &lost.help {
            let _infallible = writeln!(out, "    instead: {}", make_visible(help, false));
        }
    }
    out
}

fn check_workspace(
    path: Option<&Path>,
    strict: bool,
    asked: &ExampleArgs,
    report: &mut CheckReport<'_>,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    // The files of the errors of loading are relative to the workspace, too.
    report.root = find_root(path, cx)?;
    let opened = load_workspace_to_check(path, asked.judge.as_deref(), cx)?;
    check_labels(&opened.workspace)?;
    let workspace = &opened.workspace;
    if report.is_human() {
        opened.announce_in_full(cx);
    } else {
        report.diagnose(&workspace.warnings);
    }
    report.diagnose(&workspace.judge_problems);
    let evals: usize = workspace.rubrics.iter().map(|r| r.evals.len()).sum();
    let mut warnings_of_files = CappedWarnings::default();
    // `ids` finds duplicates. `kept_ids` are the ids as a run names them, for labels.
    let (mut ids, mut unique_ids, mut kept_ids) = (
        HashSet::new(),
        run::TranscriptIds::default(),
        HashSet::new(),
    );
    let mut labelled = LabelledTranscripts::new(workspace);
    let mut observer = TranscriptLinter::new(&workspace.rubrics);
    let mut all = WorkspaceFilesReport::default();
    // A run skips these files. Here they are errors, because the user asks for everything that is wrong.
    let mut broken_files: Vec<Diagnostic> = Vec::new();
    // Step: read every transcript file once, for its warnings, the lints and the ids.
    for path in &workspace.transcripts {
        let file = match workspace.field_maps.open(path) {
            Ok(file) => file,
            Err(error) => {
                broken_files.push(explain_broken_file(path, &error));
                continue;
            }
        };
        // The closure borrows the file's report, so collect its warnings here first.
        let mut taken = Vec::new();
        let read = TranscriptFileReport::read(file, &mut |transcript| {
            observer.observe(transcript);
            let id = unique_ids.make_unique(transcript.id.to_string()).0;
            labelled.observe(&id, transcript);
            kept_ids.insert(id);
            if !ids.insert(transcript.id.to_string()) {
                taken.push(duplicate_id_warning(path, &transcript.id));
            }
        });
        let mut understood = match read {
            Ok(understood) => understood,
            Err(error) => {
                broken_files.push(explain_broken_file(path, &error));
                continue;
            }
        };
        warnings_of_files.append(std::mem::take(&mut understood.faults));
        for one in taken {
            warnings_of_files.push(one);
        }
        all.add(path, workspace, understood);
    }
    // Step: try the examples.
    warnings_of_files.report(report);
    report.diagnose(&broken_files);
    report.count("broken_files", broken_files.len());
    let registry = EvalTypeRegistry::builtin();
    let mut tried = lint::run_code_examples(&workspace.rubrics, &registry);
    let unjudged = if asked.examples {
        judged_examples::run_judged_examples(asked, workspace, &registry, &mut tried, cx)?
    } else {
        UnjudgedExamples::default()
    };
    // Step: the shots, which a run refuses, too.
    let shots = run::check_shots(workspace);
    report.diagnose(&shots);
    // Step: the labels and the lints.
    let strays = workspace::find_stray_labels(workspace, &kept_ids);
    report.diagnose(&strays);
    let unselected = labelled.into_warnings();
    report.diagnose(&unselected);
    let review = check_notes(&ReviewPlace::of_workspace(workspace), report)?;
    let mut lints = observer.finish();
    lints.extend(lint::lint_same_verdict(
        &workspace.rubrics,
        &workspace.judges,
        &run::tally_newest_verdicts(workspace),
    ));
    report.diagnose(&tried.problems);
    report.diagnose(&lints);
    // Step: the summary on standard output.
    for (name, number) in [
        ("rubrics", workspace.rubrics.len()),
        ("evals", evals),
        ("transcript_files", workspace.transcripts.len()),
        ("judges", workspace.judges.len()),
        ("labels", workspace.labels.len()),
        ("sealed_labels", workspace.count_sealed()),
    ] {
        report.count(name, number);
    }
    report.count(
        "transcripts",
        usize::try_from(all.transcripts).unwrap_or(usize::MAX),
    );
    report.count("records_not_understood", all.not_understood());
    count_examples(&tried, report);
    let mut out = format!(
        "{}: {} with {}, {} in {}, {}, {}{}\n",
        workspace.root.display(),
        pluralize(workspace.rubrics.len(), "rubric"),
        pluralize(evals, "eval"),
        pluralize(all.transcripts, "transcript"),
        pluralize(workspace.transcripts.len(), "file"),
        pluralize(workspace.judges.len(), "judge"),
        pluralize(workspace.labels.len(), "label"),
        match workspace.count_sealed() {
            0 => String::new(),
            sealed => format!(" and {}", pluralize(sealed, "sealed label")),
        },
    );
    out.push_str(&format_notes(&review));
    out.push_str(&all.lines());
    for rubric in &workspace.rubrics {
        out.push_str(&format_rubric(rubric));
    }
    for opened in workspace::list_model_configs(workspace, &cx.env) {
        let _infallible = writeln!(out, "{opened}");
    }
    let mut unusable = 0_u64;
    for judge in workspace.judges.values() {
        if let Err(why) = workspace::resolve_key(judge, &cx.env) {
            unusable += 1;
            let _infallible = writeln!(out, "{why}");
        }
        let source = workspace::find_google_credentials_source(judge, &cx.env);
        if let Some(warning) = source.and_then(|source| source.warning) {
            let _infallible = writeln!(out, "{warning}");
        }
    }
    out.push_str(&format_example_summary(&tried, unjudged));
    let warnings =
        workspace.warnings.len() + warnings_of_files.count() + lints.len() + tried.problems.len();
    let warnings = warnings + unselected.len() + review.stale.len();
    let errors = strays.len() + broken_files.len() + review.problems.len() + shots.len();
    let errors = errors + workspace.judge_problems.len();
    if errors == 0 {
        out.push_str(&format_conclusion(warnings, unusable, unjudged));
    } else {
        let _infallible = writeln!(out, "{}", pluralize(errors, "error"));
    }
    report.print(&out);
    // A label or note without a transcript and a broken file are errors, so `--strict` does not matter.
    if errors > 0 {
        return Ok(EXIT_USAGE);
    }
    match exit_code(warnings + all.not_understood(), strict) {
        // Misconfiguration (2) is more important than an example that ended in an error (3).
        // The user asked for examples that dicta did not judge, so the check is not a success.
        0 if unjudged.needs_consent => Ok(EXIT_USAGE),
        0 if unjudged.undecided > 0 => Ok(judged_examples::EXIT_UNDECIDED),
        code => Ok(code),
    }
}

/// Adds the results of the examples to the summary of formats for programs.
fn count_examples(tried: &ExampleSummary, report: &mut CheckReport<'_>) {
    for (name, number) in [
        ("examples_as_expected", tried.as_expected),
        ("examples_missed", tried.missed),
        ("examples_left_to_judges", tried.left_to_judges),
        ("examples_left_to_programs", tried.left_to_programs),
    ] {
        report.count(name, usize::try_from(number).unwrap_or(usize::MAX));
    }
}

/// Formats the results of the examples. Returns an empty text without examples.
fn format_example_summary(tried: &ExampleSummary, unjudged: UnjudgedExamples) -> String {
    let ExampleSummary {
        as_expected,
        missed,
        left_to_judges: judged,
        left_to_programs: programs,
        ..
    } = *tried;
    let count_examples = |n: u64, first: bool| {
        if first {
            pluralize(n, "example")
        } else {
            n.to_string()
        }
    };
    let mut parts = Vec::new();
    if as_expected + missed > 0 {
        let hold = if as_expected == 1 { "holds" } else { "hold" };
        parts.push(format!("{} {hold}", pluralize(as_expected, "example")));
    }
    if missed > 0 {
        parts.push(format!("{missed} missed"));
    }
    // The first part names the noun, and the others only give numbers.
    if unjudged.undecided > 0 {
        let examples = count_examples(unjudged.undecided, parts.is_empty());
        parts.push(format!("{examples} without a verdict"));
    }
    if judged > 0 {
        let examples = count_examples(judged, parts.is_empty());
        let judge = if unjudged.needs_consent {
            "a judge that may cost money (`--yes` or `--max-cost USD`)"
        } else {
            "a judge (`--examples`)"
        };
        parts.push(format!("{examples} not run: they need {judge}"));
    }
    if programs > 0 {
        let examples = count_examples(programs, parts.is_empty());
        parts.push(format!("{examples} not run: they need a program"));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("{}\n", parts.join(", "))
}

/// Formats the last line of a workspace's report. A judge without its key is not an error, because its evals may not be
/// judged here; but the workspace is not ready, either. The same applies to examples that the user asked for and that
/// have no result.
fn format_conclusion(warnings: usize, unusable: u64, unjudged: UnjudgedExamples) -> String {
    let mut open = Vec::new();
    if unusable > 0 {
        let verb = if unusable == 1 { "is" } else { "are" };
        let judges = pluralize(unusable, "judge");
        open.push(format!("{judges} {verb} not usable yet"));
    }
    if unjudged.undecided > 0 || unjudged.needs_consent {
        open.push("not every example has a result".to_owned());
    }
    let open = open.join("; ");
    match warnings {
        n if open.is_empty() => format_warning_count(n),
        0 => format!("{open}\n"),
        n => format!("no errors, {}; {open}\n", pluralize(n as u64, "warning")),
    }
}

fn format_warning_count(warnings: usize) -> String {
    match warnings {
        0 => "no problems\n".to_owned(),
        n => format!("no errors, {}\n", pluralize(n as u64, "warning")),
    }
}

/// Returns the error of a transcript file that cannot be read. The diagnostic names the file, so its message does not.
fn explain_broken_file(path: &Path, error: &TranscriptError) -> Diagnostic {
    let message = error.to_string();
    let rest = message.strip_prefix(&path.display().to_string());
    let rest = rest.and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' ')));
    Diagnostic::error("broken-file", path, rest.unwrap_or(&message))
}

fn duplicate_id_warning(file: &Path, id: &str) -> Diagnostic {
    let message =
        format!("an earlier transcript has the id `{id}`; dicta adds a suffix to this one");
    Diagnostic::warning("duplicate-id", file, message).help("give every transcript its own `id`")
}

fn check_rubric(
    path: &Path,
    strict: bool,
    report: &mut CheckReport<'_>,
) -> Result<u8, CommandError> {
    let text = read_regular_text(path, MAX_RUBRIC_BYTES)
        .map_err(|error| CommandError::usage(explain_file_error(path, &error)))?;
    let registry = EvalTypeRegistry::builtin();
    let neighbor_files = workspace::WorkspaceRubricFiles::for_standalone_rubric(path);
    let (rubric, mut problems) =
        rubric::load_with_files(Arc::from(text), path, &registry, &neighbor_files);
    // The loader may return a rubric together with errors, and errors end the check.
    let Some(rubric) = rubric.filter(|_| !has_errors(&problems)) else {
        return Err(CommandError::from_diagnostics(problems));
    };
    // The rubric's report below lists these, with the suggested replacement.
    problems.retain(|problem| problem.code != NOT_CARRIED);
    let rubrics: [Arc<Rubric>; 1] = [Arc::new(rubric)];
    // Only a workspace defines judges and transcripts, so the lints on them can't run here.
    let judges = indexmap::IndexMap::new();
    problems.extend(lint::lint_rubrics(&rubrics, &judges, None, &registry));
    let tried = lint::run_code_examples(&rubrics, &registry);
    report.diagnose(&tried.problems);
    report.diagnose(&problems);
    if !report.is_human() {
        report.diagnose(&rubrics[0].not_carried);
    }
    report.count("evals", rubrics[0].evals.len());
    count_examples(&tried, report);
    report.print(&format!(
        "{}{}",
        format_rubric(&rubrics[0]),
        format_example_summary(&tried, UnjudgedExamples::default())
    ));
    Ok(exit_code(
        problems.len() + tried.problems.len() + rubrics[0].not_carried.len(),
        strict,
    ))
}
