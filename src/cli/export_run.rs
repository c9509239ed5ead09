//! `dicta export STATE [CELL]` in the formats of a recording: a bundle, spans of OpenTelemetry, or the screen of the replay.
//!
//! Responsible for the selection of runs and cells. Does not know the formats: `record`, `report` and `tui` write them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;

use super::error::CommandError;
use super::output_file::{
    OutputFiles, add_files_around, collect_input_files, name_output, warn_of_keys,
};
use super::show::select_cells;
use super::state_args::{ExportArgs, RunFormat};
use super::states::StateCatalog;
use super::{CommandCx, judged_cells};
use crate::event::RunState;
use crate::model::{CellIx, CellName, Millis, make_visible, pluralize};
use crate::record::{RecordedRun, RunNeed, RunStore, write_bundle};
use crate::report::{ExportedCell, KeyFinder, describe_keys, write_otlp};
use crate::theme::Theme;
use crate::tui::{CastOrder, write_cast};

/// The number of columns and rows of a recorded screen.
const CAST_SIZE: (u16, u16) = (120, 40);

/// A run with its state.
struct ExportedRun {
    run: RecordedRun,
    state: RunState,
}

/// A judged cell with the name that it has in the exported run.
struct TracedCell {
    name: String,
    judged: judged_cells::JudgedCell,
    /// True if the transcript measures nothing, because it is an example of the judge.
    is_shot: bool,
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
        None if args.state.starts_with('@') => find_run_of_state(&catalog, &args.state)?,
        None => store.resolve(&args.state)?,
    };
    let exported = ExportedRun {
        state: run.read_state()?,
        run,
    };
    let cells = match &args.cell {
        Some(pattern) => Some(select_cells(&exported.state, pattern)?),
        None => None,
    };
    let loaded = catalog.workspace.as_deref();
    let mut inputs = collect_input_files(loaded, &cx.env);
    // A bundle must not replace the one that is read.
    inputs.insert(Path::new(&args.state));
    add_files_around(&mut inputs, &args.output, loaded, &cx.env);
    let mut file = OutputFiles::new(&cx.env).open("-o", &args.output, &inputs)?;
    let mut finder = KeyFinder::new(&mut file);
    let out = &mut finder;
    let written = match format {
        RunFormat::Bundle => write_runs(out, &exported, cells.as_deref(), args, store, cx)?,
        RunFormat::Otlp => write_spans(out, &exported, cells.as_deref(), args, store)?,
        RunFormat::Cast => write_screen(out, &exported, cells.as_deref(), args, store, cx)?,
    };
    let keys = describe_keys(&finder.finish());
    let name = name_output(&args.output);
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

/// Returns the newest run of a state that judged something. If none did, returns its newest run, which reuses verdicts.
fn find_run_of_state(catalog: &StateCatalog, name: &str) -> Result<RecordedRun, CommandError> {
    let history = catalog.history()?;
    // The recordings of the demo are not in its history.
    if history.entries().is_empty() {
        return Ok(catalog.store()?.resolve_for(name, RunNeed::Play)?);
    }
    let entry = history.resolve(name)?;
    let newest_first = entry.runs.iter().rev();
    let mut runs = newest_first
        .filter_map(|own| history.runs().iter().find(|run| run.id == own.id))
        .peekable();
    let newest = runs.peek().copied();
    let found = runs.find(|run| run.has_own_result()).or(newest);
    found.cloned().ok_or_else(|| {
        CommandError::usage(format!(
            "the recordings of `{name}` are gone; `dicta runs` lists all"
        ))
    })
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
    let (runs, missing): (Vec<crate::record::BundledRun>, Vec<crate::model::RunId>) =
        if let Some(cells) = cells {
            select_bundled(exported, cells, store)
        } else {
            let reused = store.find_reused_runs(&exported.run)?;
            let runs = std::iter::once(exported.run.clone()).chain(reused.runs);
            let whole = |run| crate::record::BundledRun { run, cells: None };
            (runs.map(whole).collect(), reused.missing)
        };
    for missing in &missing {
        cx.streams.print_stderr(&format!(
            "note: run {} is gone, so the bundle lacks the judge traces of its verdicts",
            missing.letters()
        ));
    }
    let reused_count = runs.len() as u64 - 1;
    let written = write_bundle(out, &runs, args.cell.as_deref());
    written.map_err(|error| write_failed(args, &error))?;
    let part = match cells {
        None => "the recording".to_owned(),
        Some(cells) => pluralize(cells.len() as u64, "cell"),
    };
    Ok(match reused_count {
        0 => part,
        count => format!(
            "{part}, and {} whose verdicts it reuses,",
            pluralize(count, "run")
        ),
    })
}

/// Returns the parts of the runs that some cells need, and the runs that are gone.
fn select_bundled(
    exported: &ExportedRun,
    cells: &[(CellIx, String)],
    store: &RunStore,
) -> (Vec<crate::record::BundledRun>, Vec<crate::model::RunId>) {
    let mut judged = judged_cells::JudgedCells::new(store);
    let mut older: IndexMap<crate::model::RunId, BTreeSet<CellIx>> = IndexMap::new();
    let mut missing = BTreeSet::new();
    for (cell, _) in cells {
        let reused = judged.follow(&exported.state, *cell);
        missing.extend(reused.missing);
        for (run, cell) in reused.cells {
            older.entry(run).or_default().insert(cell);
        }
    }
    let mut runs = vec![crate::record::BundledRun {
        run: exported.run.clone(),
        cells: Some(cells.iter().map(|(cell, _)| *cell).collect()),
    }];
    runs.extend(older.into_iter().filter_map(|(id, cells)| {
        let run = judged.run(&id)?.clone();
        let cells = Some(cells);
        Some(crate::record::BundledRun { run, cells })
    }));
    (runs, missing.into_iter().collect())
}

fn write_failed(args: &ExportArgs, error: &std::io::Error) -> CommandError {
    CommandError::write_failed(&name_output(&args.output), error)
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
        .map(|traced| ExportedCell {
            header: traced.judged.header,
            cell: traced.judged.trace,
            blobs: traced.judged.run.blobs(),
            name: traced.name,
            is_shot: traced.is_shot,
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
    let (run, last, cell): (
        RecordedRun,
        Option<crate::event::LastEvent>,
        Option<CellName>,
    );
    match cells {
        None => (run, last, cell) = (exported.run.clone(), exported.state.last, None),
        Some(cells) => {
            let traced = find_traces(exported, Some(cells), store)?;
            let [one] = traced.as_slice() else {
                let names: Vec<&str> = traced.iter().map(|one| one.name.as_str()).take(5).collect();
                return Err(CommandError::usage(format!(
                    "--format cast follows one cell, and {} match; name one: {}",
                    traced.len(),
                    make_visible(&names.join(", "), false)
                )));
            };
            run = one.judged.run.clone();
            last = one.judged.last;
            cell = one.judged.name.clone();
        }
    }
    let length = last.map_or(Millis(0), |last| last.at);
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
    let state = &exported.state;
    let header = state.header.as_deref().cloned().map(Arc::new);
    let mut reused = judged_cells::JudgedCells::new(store);
    let mut found = Vec::new();
    for (cell, name) in cells {
        let own = state.cells.get(cell.index());
        // Code decides the other cells.
        let own = own.filter(|own| {
            own.planned
                .is_some_and(|planned| planned.key.judge.is_some())
        });
        let (Some(own), Some(header)) = (own, &header) else {
            continue;
        };
        let judged = reused
            .find(state, *cell)
            .unwrap_or_else(|| judged_cells::JudgedCell {
                run: exported.run.clone(),
                header: Arc::clone(header),
                name: state.cell_name(*cell),
                trace: own.clone(),
                transcript: None,
                last: state.last,
            });
        // The exported run decides what is a shot, also for a reused verdict.
        let asked = own.planned.map(|planned| planned.key);
        let eval = asked.and_then(|key| header.evals.get(key.eval as usize));
        let transcript = state.cell_name(*cell).map(|name| name.transcript);
        let is_shot = eval
            .zip(transcript)
            .is_some_and(|(eval, transcript)| eval.is_shot(&transcript));
        let name = name.clone();
        found.push(TracedCell {
            name,
            judged,
            is_shot,
        });
    }
    if found.is_empty() {
        return Err(CommandError::usage(format!(
            "no judge decided any of these cells in run {}, so no judge trace can be exported",
            exported.run.id.letters()
        )));
    }
    Ok(found)
}
