//! `dicta export`: writes a state to a file, as a page or as a table. `export_run` writes recordings.
//!
//! Responsible for the file, the selection and the comparisons. Does not find states (`states` does) or format them
//! (`report` does).

use std::collections::HashSet;
use std::path::Path;

use clap::ValueEnum as _;

use super::CommandCx;
use super::compare_figures::ComparisonFigures;
use super::error::CommandError;
use super::export_run::export_run;
use super::format::split_named_format;
use super::history::name_entry;
use super::output_file::{
    OutputFiles, add_files_around, collect_input_files, name_output, warn_of_keys,
};
use super::state_args::{ExportArgs, ExportFormat, RunFormat};
use super::states::{LoadedState, StateCatalog, StateSource};
use crate::diag::suggest_cell;
use crate::model::{CellName, CellPattern, Labels, pluralize};
use crate::record::{State, StateDecision};
use crate::report::html::{
    PageComparison, PageHistory, PageSelection, StatePage, write_state_page,
};
use crate::report::{CellSource, KeyFinder, describe_keys, write_decision_csv};

/// Writes a state to a file.
pub(super) fn export(args: &ExportArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let args = &separate_format(args)?;
    let format = match choose_format(args.format, &args.output)? {
        ChosenFormat::State(format) => format,
        ChosenFormat::Run(format) => return export_run(args, format, cx),
    };
    let catalog = StateCatalog::open(args.place.workspace.as_deref(), &[&args.state], cx)?;
    catalog.require_labels()?;
    let shown = catalog.load(&args.state, catalog.resolve(&args.state)?, 1, cx)?;
    let (count, keys) = write_state(
        &catalog,
        &shown,
        args.cell.as_deref(),
        (format, &args.output),
        cx,
    )?;
    let name = name_output(&args.output);
    if let Some(warning) = warn_of_keys(&args.output, keys.as_deref()) {
        cx.streams.print_stderr(&warning);
    }
    if shown.is_incomplete {
        cx.streams.print_stderr(&format!(
            "note: {} is incomplete; {name} has only its recorded part",
            shown.describe()
        ));
    }
    let written = describe_written(&args.output, count, &shown);
    cx.streams.print_note(&format!("note: {written}"));
    Ok(0)
}

/// Writes a state of the history to a file, for the workbench. Prints nothing. Returns a sentence about the file; the
/// error is a sentence.
pub(super) fn export_entry(
    root: &Path,
    number: usize,
    output: &Path,
    cx: &CommandCx,
) -> Result<String, String> {
    let write = || {
        let ChosenFormat::State(format) = choose_format(None, output)? else {
            return Err(CommandError::usage(
                "a state is exported as a page (.html) or a table (.csv)",
            ));
        };
        let catalog = StateCatalog::open(Some(root), &["@"], cx)?;
        catalog.require_labels()?;
        let name = name_entry(catalog.history()?.entries().len(), number);
        let shown = catalog.load(&name, StateSource::Entry(number), 1, cx)?;
        let (count, keys) = write_state(&catalog, &shown, None, (format, output), cx)?;
        let written = describe_written(output, count, &shown);
        Ok(match keys {
            Some(keys) => format!("{written}; it {keys}"),
            None => written,
        })
    };
    write().map_err(|error: CommandError| error.to_sentence())
}

fn describe_written(output: &Path, count: usize, shown: &LoadedState) -> String {
    format!(
        "{} has {} of {}; it contains texts of your transcripts",
        name_output(output),
        pluralize(count, "decision"),
        shown.describe(),
    )
}

/// Writes the decisions of a state that match a pattern, or all. Returns their number, and a description of the keys of
/// other services in them.
fn write_state(
    catalog: &StateCatalog,
    shown: &LoadedState,
    pattern: Option<&str>,
    (format, output): (StateFormat, &Path),
    cx: &CommandCx,
) -> Result<(usize, Option<String>), CommandError> {
    let labels = catalog.labels(&[shown], cx);
    let state = &shown.state;
    let selected = match pattern {
        Some(pattern) => Some(select_decisions(state, pattern)?),
        None => None,
    };
    let selects = |decision: &StateDecision| match &selected {
        Some(names) => names.contains(&state.name(decision)),
        None => true,
    };
    // Start the file before the reading of results, so that a wrong folder is reported at once.
    let loaded = catalog.workspace.as_deref();
    let mut inputs = collect_input_files(loaded, &cx.env);
    if let StateSource::File(path) = &shown.source {
        inputs.insert(path);
    }
    // A page must not replace the bundle that it shows.
    if let Some(path) = catalog.bundle_path() {
        inputs.insert(path);
    }
    add_files_around(&mut inputs, output, loaded, &cx.env);
    let mut file = OutputFiles::new(&cx.env).open("-o", output, &inputs)?;
    let mut finder = KeyFinder::new(&mut file);
    let source = catalog.recordings([shown, shown]);
    let written = match format {
        StateFormat::Csv => write_decision_csv(&mut finder, state, &labels, &source, &selects),
        StateFormat::Html => {
            let earlier = load_earlier(catalog, shown, cx)?;
            let page = StatePage {
                workspace: &name_workspace(catalog),
                side: shown.page_side(),
                labels: &labels,
                comparisons: earlier
                    .iter()
                    .map(|earlier| compare_sides(earlier, shown, &labels, &source, catalog))
                    .collect::<Result<_, _>>()?,
                history: match shown.source {
                    StateSource::Entry(number) => Some(PageHistory {
                        history: catalog.history()?,
                        number,
                    }),
                    StateSource::Run(_) | StateSource::File(_) => None,
                },
                source: &source,
                selected: pattern.map(|pattern| PageSelection {
                    pattern,
                    selects: &selects,
                }),
            };
            write_state_page(&mut finder, &page)
        }
    };
    let keys = describe_keys(&finder.finish());
    let name = name_output(output);
    let finished = written.and_then(|()| file.finish());
    finished.map_err(|error| CommandError::write_failed(&name, &error))?;
    let count = selected.as_ref().map_or(state.len(), HashSet::len);
    Ok((count, keys))
}

/// A format of decisions of a state.
#[derive(Debug, Clone, Copy)]
enum StateFormat {
    Html,
    Csv,
}

/// A format, by what it exports.
enum ChosenFormat {
    State(StateFormat),
    Run(RunFormat),
}

/// Separates the format from the file in `-o FORMAT=FILE`, as `dicta run` does.
fn separate_format(args: &ExportArgs) -> Result<ExportArgs, CommandError> {
    let Some((name, path)) = split_named_format(&args.output) else {
        return Ok(args.clone());
    };
    let shown = args.output.display();
    let fail = |why: String| CommandError::usage(format!("-o {shown}: {why}"));
    let format = ExportFormat::from_str(name, false).map_err(|_| {
        fail(format!(
            "unknown format {name}; use one of html, csv, bundle, cast or otlp, or write ./{shown} for a file of this name"
        ))
    })?;
    if path.is_empty() {
        return Err(fail(format!("the file is missing, as in -o {name}=result")));
    }
    if args.format.is_some_and(|named| named != format) {
        return Err(fail(
            "--format names another format; leave one of them out".to_owned(),
        ));
    }
    Ok(ExportArgs {
        format: Some(format),
        output: path.into(),
        ..args.clone()
    })
}

/// Returns the format that the user named, else that of the file's extension.
fn choose_format(named: Option<ExportFormat>, output: &Path) -> Result<ChosenFormat, CommandError> {
    let extension = output.extension().and_then(|text| text.to_str());
    let format = match (named, extension) {
        (Some(format), _) => format,
        (None, Some("html" | "htm")) => ExportFormat::Html,
        (None, Some("csv")) => ExportFormat::Csv,
        (None, Some("cast")) => ExportFormat::Cast,
        (None, Some("dicta")) => ExportFormat::Bundle,
        (None, _) => {
            return Err(CommandError::usage(format!(
                "-o {}: the extension names no format; add --format html, csv, bundle, cast or otlp",
                output.display()
            )));
        }
    };
    Ok(match format {
        ExportFormat::Html => ChosenFormat::State(StateFormat::Html),
        ExportFormat::Csv => ChosenFormat::State(StateFormat::Csv),
        ExportFormat::Bundle => ChosenFormat::Run(RunFormat::Bundle),
        ExportFormat::Cast => ChosenFormat::Run(RunFormat::Cast),
        ExportFormat::Otlp => ChosenFormat::Run(RunFormat::Otlp),
    })
}

/// Returns the decisions that match a pattern.
fn select_decisions(state: &State, pattern: &str) -> Result<HashSet<CellName>, CommandError> {
    let names: Vec<CellName> = state.decisions().map(|one| state.name(one)).collect();
    let texts: Vec<String> = names.iter().map(CellName::to_string).collect();
    let mut found = CellPattern::new(pattern).select(&texts);
    // A copied name of a cell has a judge, which the name of its decision lacks.
    if let (true, Ok(cell)) = (found.is_empty(), pattern.parse::<CellName>()) {
        found = CellPattern::new(&cell.decision_name().to_string()).select(&texts);
    }
    let found: HashSet<&String> = found.into_iter().collect();
    if found.is_empty() {
        return Err(CommandError::usage(format!(
            "no decision matches `{pattern}`{}",
            suggest_cell(pattern, &texts)
        )));
    }
    let selected = names.iter().zip(&texts);
    Ok(selected
        .filter(|(_, text)| found.contains(text))
        .map(|(name, _)| name.clone())
        .collect())
}

/// Returns the name of the workspace, else that of its folder.
fn name_workspace(catalog: &StateCatalog) -> String {
    match catalog.workspace.as_deref() {
        Some(workspace) if !workspace.name.is_empty() => workspace.name.clone(),
        _ => {
            let folder = catalog.root().file_name();
            folder.map_or_else(
                || "dicta".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            )
        }
    }
}

/// Loads the states with which the page compares a state of the history: the baseline, and the state before.
fn load_earlier(
    catalog: &StateCatalog,
    shown: &LoadedState,
    cx: &CommandCx,
) -> Result<Vec<LoadedState>, CommandError> {
    let StateSource::Entry(number) = shown.source else {
        return Ok(Vec::new());
    };
    let baseline = catalog.history()?.baseline().map(|entry| entry.number);
    let before = number.checked_sub(1).filter(|before| *before > 0);
    let mut earlier = Vec::new();
    for (name, other) in [("the baseline", baseline), ("the state before", before)] {
        let is_new = |loaded: &[LoadedState], other| {
            let mut loaded = loaded.iter();
            !loaded.any(|one| matches!(one.source, StateSource::Entry(known) if known == other))
        };
        if let Some(other) = other.filter(|other| *other != number && is_new(&earlier, *other)) {
            earlier.push(catalog.load(name, StateSource::Entry(other), 0, cx)?);
        }
    }
    Ok(earlier)
}

/// Compares a state with the exported one.
fn compare_sides<'s>(
    before: &'s LoadedState,
    after: &'s LoadedState,
    labels: &Labels,
    source: &dyn CellSource,
    catalog: &StateCatalog,
) -> Result<PageComparison<'s>, CommandError> {
    let files = before.diff_files(after);
    let figures = ComparisonFigures::of_states([before, after], labels, catalog)?;
    let found = catalog.compare([before, after], source)?;
    let sides = (before.page_side(), after.page_side());
    let page = PageComparison::with_found(sides.0, sides.1, found, labels, source, files);
    Ok(page.with_figures(figures.to_page(&after.state), figures.records().clone()))
}
