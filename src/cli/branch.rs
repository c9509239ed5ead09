//! `dicta branch RUN CELL --at STEP`: continues a recorded judge trace from one of its steps, with or without a change.
//!
//! Responsible for the question about the cost, and for the report. The run is recorded as a branch, which is
//! not part of the history. Does not build the prefix; `run` does.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::consent::{confirm_paid_calls, describe_calls, print_dry_run};
use super::error::CommandError;
use super::format::{Format, format_document};
use super::judged_cells::find_judged_cell;
use super::measured_run::{MeasuredRun, run_to_end, to_command_error};
use super::quote_places::find_places_in_run;
use super::show::{describe_result, select_cells};
use super::state_args::BranchArgs;
use super::trust::confirm_run;
use super::workspace::load_workspace_without_judges;
use super::{CommandCx, build_runtime};
use crate::event::{RunState, StepId, list_trace_steps};
use crate::handlers::EvalTypeRegistry;
use crate::judge::BranchChange;
use crate::model::{CellIx, CellResult, explain_file_error, make_visible};
use crate::record::{RecordedRun, RunNeed, RunStore};
use crate::report::format_judge_trace;
use crate::run::{self, BranchOrder, RunOptions};

/// The exit code if the branch has no verdict; a run that only has errors exits with the same code.
const NO_VERDICT: u8 = 3;
/// The largest file for `--set`.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Continues a recorded trace, and prints the trace of the branch.
pub(super) fn branch(args: &BranchArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?;
    opened.announce_briefly(cx);
    let store = RunStore {
        dir: opened.workspace.runs.clone(),
        extra_dirs: opened.workspace.extra_run_folders.clone(),
        key: run::find_record_key(&cx.env),
    };
    let parent = ParentTrace::find(&args.run, &args.cell, &store, cx)?;
    let Some(at) = args.at else {
        let text = match args.format {
            Format::Human => parent.format_steps(),
            format => format_document(format, &parent.steps_to_json()),
        };
        cx.streams.print_format_lines(args.format, &text);
        return Ok(0);
    };
    let change = match (&args.set, args.refetch) {
        (Some(set), _) => Some(read_change(set)?),
        (None, true) => Some(BranchChange::Refetch),
        (None, false) => None,
    };
    if args.refetch && opened.workspace.replayed_evidence_run.is_some() {
        cx.streams.print_note(
            "note: --refetch makes the call, although `replay_tools` names recorded responses; their hosts may not exist, as in the demo",
        );
    }
    let set = change.as_ref().map(BranchChange::part);
    let order = BranchOrder {
        run: parent.run.id.clone(),
        cell: parent.cell,
        at,
        change,
        judge: args.judge.clone(),
        model: args.model.clone(),
    };
    let options = RunOptions {
        branch: Some(Arc::new(order)),
        max_cost_usd: args.consent.max_cost,
        ..RunOptions::default()
    };
    let registry = EvalTypeRegistry::builtin();
    let runtime = build_runtime()?;
    let workspace = || Arc::clone(&opened.workspace);
    let calls =
        run::estimate_paid_calls(workspace(), &registry, &cx.env, &cx.clock, options.clone());
    let calls = runtime.block_on(calls).map_err(to_command_error)?;
    if args.dry_run {
        let letters = parent.run.id.letters();
        let plan = || json!({"run": letters, "cell": parent.name, "at": at.to_string()});
        let human = || {
            format!(
                "continues {} of run {letters} from {at}: {}",
                make_visible(&parent.name, false),
                describe_calls(&calls, "branch")
            )
        };
        print_dry_run("branch", args.format, &calls, plan, human, cx)?;
        return Ok(0);
    }
    confirm_run(&opened.workspace, &registry, &options, cx)?;
    let limit_usd = opened.workspace.limits.confirm_usd;
    confirm_paid_calls(&calls, "branch", limit_usd, &args.consent, cx)?;
    let finished = runtime.block_on(run_to_end(workspace(), options, &registry, cx));
    // A judge may block in a call that can't be cancelled, so don't wait for it.
    drop(runtime);
    let finished = finished?;
    let branched = store.resolve(&finished.run.0)?;
    let report = BranchReport {
        parent: &parent,
        branched: &branched,
        finished: &finished,
        at,
        set,
    };
    let text = match args.format {
        Format::Human => report.format_text()?,
        format => format_document(format, &report.to_json()),
    };
    cx.streams.print_format_lines(args.format, &text);
    let decided = report
        .result()
        .is_some_and(|result| !result.outcome.is_error());
    Ok(if decided { 0 } else { NO_VERDICT })
}

/// Reads `PART=FILE`.
fn read_change(set: &str) -> Result<BranchChange, CommandError> {
    let Some((part, file)) = set.split_once('=') else {
        return Err(CommandError::usage(format!(
            "--set {set}: write PART=FILE, such as `answer=answer.json`"
        )));
    };
    let text = read_input(Path::new(file))
        .map_err(|why| CommandError::usage(format!("--set {set}: {why}")))?;
    run::parse_branch_change(part, &text)
        .map_err(|why| CommandError::usage(format!("--set {set}: {why}")))
}

fn read_input(file: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| explain_file_error(file, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("the file is larger than 16 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())?;
    // Editors end a file with a line break that the author did not mean.
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The recorded trace that the branch continues.
struct ParentTrace {
    run: RecordedRun,
    state: RunState,
    cell: CellIx,
    name: String,
}

impl ParentTrace {
    /// Finds the one cell that matches. A reused verdict has its trace in the run that judged it.
    fn find(
        run: &str,
        pattern: &str,
        store: &RunStore,
        cx: &CommandCx,
    ) -> Result<Self, CommandError> {
        let run = store.resolve_for(run, RunNeed::Play)?;
        let state = run.read_state()?;
        let mut picked = select_cells(&state, pattern)?;
        // A pattern often matches checks too, which have no trace.
        if picked.len() > 1 {
            picked.retain(|(cell, _)| {
                let planned = state.cells[cell.index()].planned;
                planned.is_some_and(|planned| planned.key.judge.is_some())
            });
        }
        let [(cell, name)] = &picked[..] else {
            let names: Vec<&str> = picked
                .iter()
                .map(|(_, name)| name.as_str())
                .take(5)
                .collect();
            return Err(CommandError::usage(format!(
                "`{pattern}` matches {} judged cells; name one: {}",
                picked.len(),
                names.join(", ")
            )));
        };
        let (cell, name) = (*cell, name.clone());
        let mut found = Self {
            run,
            state,
            cell,
            name,
        };
        while let Some((run, state, cell)) = find_judged_cell(store, &found.state, found.cell) {
            // A changed recording could name itself.
            if run.id == found.run.id {
                break;
            }
            cx.streams.print_note(&format!(
                "note: run {} reused this verdict; the judge trace is that of run {}",
                found.run.id.letters(),
                run.id.letters()
            ));
            found = Self {
                run,
                state,
                cell,
                name: found.name,
            };
        }
        Ok(found)
    }

    fn result(&self) -> Option<&CellResult> {
        self.state.cells.get(self.cell.index())?.result.as_deref()
    }

    /// Lists the steps with their ids.
    fn format_steps(&self) -> String {
        let Some(cell) = self.state.cells.get(self.cell.index()) else {
            return String::new();
        };
        let mut out = format!(
            "steps of {} in run {}; `--at` takes one of them\n",
            make_visible(&self.name, false),
            self.run.id.letters()
        );
        for step in list_trace_steps(cell) {
            let made = crate::event::find_call(cell, step.id);
            let tool = made.map_or("", |made| made.name.as_str());
            let id = step.id.to_string();
            let line = format!("  {id:<14} {}", make_visible(tool, false));
            let _infallible = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// Returns the steps with their ids, and the tool of each call and response.
    fn steps_to_json(&self) -> Value {
        let cell = self.state.cells.get(self.cell.index());
        let steps = cell.map(|cell| {
            let steps = list_trace_steps(cell).into_iter().map(|step| {
                let made = crate::event::find_call(cell, step.id);
                json!({
                    "step": step.id.to_string(),
                    "tool": made.map(|made| made.name.as_str()),
                })
            });
            steps.collect::<Vec<Value>>()
        });
        json!({
            "type": "branch_steps",
            "run": self.run.id.0,
            "letters": self.run.id.letters(),
            "cell": self.name,
            "steps": steps.unwrap_or_default(),
        })
    }
}

/// The trace of a branch next to that of its parent.
struct BranchReport<'a> {
    parent: &'a ParentTrace,
    branched: &'a RecordedRun,
    finished: &'a MeasuredRun,
    at: StepId,
    set: Option<&'static str>,
}

impl BranchReport<'_> {
    fn result(&self) -> Option<&CellResult> {
        self.finished.state.cells.first()?.result.as_deref()
    }

    fn format_text(&self) -> Result<String, CommandError> {
        let state = self.branched.read_state()?;
        let blobs = self.branched.blobs();
        let mut out = match state.cells.first() {
            Some(cell) => {
                let places = find_places_in_run(&state, CellIx(0), &*blobs);
                format_judge_trace(&self.parent.name, cell, &*blobs, &places)
            }
            None => String::new(),
        };
        let (run, parent) = (self.branched.id.letters(), self.parent.run.id.letters());
        let point = state
            .header
            .as_ref()
            .and_then(|header| header.branch_point());
        let point = point.map_or_else(|| self.at.to_string(), |point| point.describe());
        let _infallible = write!(
            out,
            "\nbranch {run} of run {parent}, from {point}\n{} → {}\n",
            describe_result(self.parent.result()),
            describe_result(self.result())
        );
        Ok(out)
    }

    fn to_json(&self) -> Value {
        let describe = |result: Option<&CellResult>| {
            result.map(|result| {
                json!({
                    "outcome": result.outcome,
                    "score": result.score,
                    "explanation": result.explanation,
                    "error": result.error,
                })
            })
        };
        let result = self.result();
        let header = self.branched.read_header().ok();
        let point = header.and_then(|header| header.branch_point());
        let point = point.unwrap_or_default();
        json!({
            "type": "branch",
            "run": self.branched.id.0,
            "letters": self.branched.id.letters(),
            "parent": self.parent.run.id.0,
            "cell": self.parent.name,
            "step": self.at.to_string(),
            "set": self.set,
            "judge": point.judge,
            "model": point.model,
            "edited": result.is_some_and(|result| result.by_human),
            "before": describe(self.parent.result()),
            "after": describe(result),
            "calls": result.and_then(|result| result.usage).map(|usage| usage.calls),
            "cost_usd": result.and_then(|result| result.cost_usd),
        })
    }
}
