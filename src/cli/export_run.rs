//! `dicta export RUN [CELL]` in the formats of a recording: a bundle, spans of OpenTelemetry, or the screen of the replay.
//!
//! Responsible for the selection of runs and cells. Does not know the formats: `record`, `report` and `tui` write them.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::export::warn_of_keys;
use super::output_file::OutputFiles;
use super::show::{find_judged_cell, select_cells};
use super::state_args::{ExportArgs, RunFormat};
use super::states::StateCatalog;
use crate::event::RunState;
use crate::model::{CellIx, CellName, Millis, make_visible, pluralize};
use crate::record::{RecordedRun, RunNeed, RunStore, write_bundle};
use crate::report::{ExportedCell, KeyFinder, describe_keys, write_otlp};
use crate::storage::InputFiles;
use crate::theme::Theme;
use crate::tui::{CastOrder, write_cast};

/// The largest number of runs through which dicta follows a reused verdict.
const MAX_REUSES: usize = 16;
/// The number of columns and rows of a recorded screen.
const CAST_SIZE: (u16, u16) = (120, 40);

/// A run with its state.
struct ExportedRun {
    run: RecordedRun,
    state: RunState,
}

/// A judged cell, in the run that has its trace.
struct TracedCell {
    name: String,
    run: RecordedRun,
    state: Arc<RunState>,
    cell: CellIx,
}

/// Writes a run, or cells of it, to a file.
pub(super) fn export_run(
    args: &ExportArgs,
    format: RunFormat,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let catalog = StateCatalog::open(args.place.workspace.as_deref(), &[&args.state], cx)?;
    let store = catalog.store()?;
    let run = match catalog.bundled_run() {
        Some(run) => run.clone(),
        None => store.resolve_for(&args.state, RunNeed::Play)?,
    };
    let exported = ExportedRun {
        state: run.read_state()?,
        run,
    };
    let cells = match &args.cell {
        Some(pattern) => Some(select_cells(&exported.state, pattern)?),
        None => None,
    };
    let mut inputs = catalog
        .workspace
        .as_deref()
        .map_or_else(InputFiles::default, |workspace| {
            let files = workspace.input_files(&cx.env);
            files.transcripts.into_iter().chain(files.others).collect()
        });
    // A bundle must not replace the one that is read.
    inputs.insert(Path::new(&args.state));
    let mut file = OutputFiles::default().open("-o", &args.output, &inputs)?;
    let mut finder = KeyFinder::new(&mut file);
    let out = &mut finder;
    let written = match format {
        RunFormat::Bundle => write_runs(out, &exported, cells.as_deref(), args, store, cx)?,
        RunFormat::Otlp => write_spans(out, &exported, cells.as_deref(), args, store)?,
        RunFormat::Cast => write_screen(out, &exported, cells.as_deref(), args, store, cx)?,
    };
    let keys = describe_keys(&finder.finish());
    let name = args.output.display().to_string();
    let finished = file.flush().and_then(|()| file.finish());
    finished.map_err(|error| CommandError::write_failed(&name, &error))?;
    if let Some(warning) = warn_of_keys(&args.output, keys.as_deref()) {
        cx.streams.print_stderr(&warning);
    }
    cx.streams.print_note(&format!(
        "note: {name} has {written} of run {}; it contains texts of your transcripts",
        exported.run.id.letters()
    ));
    Ok(0)
}

/// Writes a bundle. Returns the words for its content.
fn write_runs(
    out: &mut dyn std::io::Write,
    exported: &ExportedRun,
    cells: Option<&[(CellIx, String)]>,
    args: &ExportArgs,
    store: &RunStore,
    cx: &CommandCx,
) -> Result<String, CommandError> {
    let chosen: Option<Vec<CellIx>> =
        cells.map(|cells| cells.iter().map(|(cell, _)| *cell).collect());
    let reused = store.find_reused_runs(&exported.run, chosen.as_deref())?;
    for missing in &reused.missing {
        cx.streams.print_stderr(&format!(
            "note: run {} is gone, so the bundle lacks the judge traces of its verdicts",
            missing.letters()
        ));
    }
    let reused_count = reused.runs.len() as u64;
    let mut runs = vec![exported.run.clone()];
    runs.extend(reused.runs);
    let written = write_bundle(out, &runs, args.cell.as_deref());
    written.map_err(|error| write_failed(args, &error))?;
    Ok(match reused_count {
        0 => "the recording".to_owned(),
        count => format!(
            "the recording, and {} whose verdicts it reuses,",
            pluralize(count, "run")
        ),
    })
}

fn write_failed(args: &ExportArgs, error: &std::io::Error) -> CommandError {
    CommandError::write_failed(&args.output.display().to_string(), error)
}

/// Writes spans. Returns the words for their content.
fn write_spans(
    out: &mut dyn std::io::Write,
    exported: &ExportedRun,
    cells: Option<&[(CellIx, String)]>,
    args: &ExportArgs,
    store: &RunStore,
) -> Result<String, CommandError> {
    let traced = find_traces(exported, cells, store)?;
    let cells: Vec<ExportedCell> = traced
        .into_iter()
        .filter_map(|traced| {
            Some(ExportedCell {
                header: Arc::new((**traced.state.header.as_ref()?).clone()),
                cell: traced.state.cells.get(traced.cell.index())?.clone(),
                blobs: traced.run.blobs(),
                name: traced.name,
            })
        })
        .collect();
    write_otlp(out, &cells).map_err(|error| write_failed(args, &error))?;
    Ok(pluralize(cells.len() as u64, "judge trace"))
}

/// Writes the screen of the replay. Returns the words for its content.
fn write_screen(
    out: &mut dyn std::io::Write,
    exported: &ExportedRun,
    cells: Option<&[(CellIx, String)]>,
    args: &ExportArgs,
    store: &RunStore,
    cx: &CommandCx,
) -> Result<String, CommandError> {
    let (run, state, cell): (RecordedRun, &RunState, Option<CellName>);
    let traced;
    match cells {
        None => (run, state, cell) = (exported.run.clone(), &exported.state, None),
        Some(cells) => {
            traced = find_traces(exported, Some(cells), store)?;
            let [one] = traced.as_slice() else {
                let names: Vec<&str> = traced.iter().map(|one| one.name.as_str()).take(5).collect();
                return Err(CommandError::usage(format!(
                    "--format cast follows one cell, and {} match; name one: {}",
                    traced.len(),
                    make_visible(&names.join(", "), false)
                )));
            };
            run = one.run.clone();
            state = &one.state;
            cell = one.state.cell_name(one.cell);
        }
    }
    let length = state.last.map_or(Millis(0), |last| last.at);
    let theme = Theme::bundled("dark").map_err(|error| CommandError::usage(error.to_string()))?;
    let order = CastOrder {
        run: run.id,
        dir: run.dir,
        length,
        cell,
        // Labels are not part of the recording, so they are not on its screen.
        workspace: None,
        env: cx.env.clone(),
        theme,
        size: CAST_SIZE,
    };
    let frames = write_cast(out, order).map_err(|error| write_failed(args, &error))?;
    Ok(format!(
        "{} of the replay",
        pluralize(frames as u64, "frame")
    ))
}

/// Returns the judge traces of cells. A reused verdict has its trace in the run that judged it.
fn find_traces(
    exported: &ExportedRun,
    cells: Option<&[(CellIx, String)]>,
    store: &RunStore,
) -> Result<Vec<TracedCell>, CommandError> {
    let all = match cells {
        Some(_) => Vec::new(),
        None => select_cells(&exported.state, "*")?,
    };
    let cells = cells.unwrap_or(&all);
    let state = Arc::new(exported.state.clone());
    let mut found = Vec::new();
    for (cell, name) in cells {
        let planned = state.cells.get(cell.index()).and_then(|cell| cell.planned);
        // Code decides the other cells.
        if planned.is_none_or(|planned| planned.key.judge.is_none()) {
            continue;
        }
        let mut traced = TracedCell {
            name: name.clone(),
            run: exported.run.clone(),
            state: Arc::clone(&state),
            cell: *cell,
        };
        for _ in 0..MAX_REUSES {
            let judged = find_judged_cell(store, &traced.state, traced.cell);
            let Some((run, state, cell)) = judged else {
                break;
            };
            (traced.run, traced.state, traced.cell) = (run, Arc::new(state), cell);
        }
        found.push(traced);
    }
    if found.is_empty() {
        return Err(CommandError::usage(format!(
            "no judge decided any of these cells in run {}, so no judge trace can be exported",
            exported.run.id.letters()
        )));
    }
    Ok(found)
}
