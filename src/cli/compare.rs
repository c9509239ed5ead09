//! `dicta compare`: finds two states, compares them, and decides about `--fail-on`. Does not compute the difference;
//! `compare` does. Does not print it; `compare_report` does.

use super::CommandCx;
use super::agree_gate::apply_gate;
use super::compare_figures::ComparisonFigures;
use super::compare_report::{ComparisonReport, write_comparison};
use super::error::CommandError;
use super::format::{Format, LIST_FORMATS};
use super::migration::MigrationReport;
use super::state_args::CompareArgs;
use super::states::{LoadedState, StateCatalog, StateSource, adopt_digests};
use crate::compare::compute_label_figures;
use crate::compare::statistics::Confidence;
use crate::model::{ExitReason, Labels, pluralize};
use crate::report::html::{self, PageComparison};

/// The state before the last edit.
const OLDER_DEFAULT: &str = "@2";
/// The newest state.
const NEWER_DEFAULT: &str = "@";

/// Prints the comparison of two states. Returns the exit code.
pub(super) fn compare(args: &CompareArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let before = args.before.as_deref().unwrap_or(OLDER_DEFAULT);
    let after = args.after.as_deref().unwrap_or(NEWER_DEFAULT);
    let catalog = StateCatalog::open(args.place.workspace.as_deref(), &[before, after], cx)?;
    // A gate or a page without the labels would be wrong.
    if args.fail_on.is_some() || args.migration || args.format == Format::Html {
        catalog.require_labels()?;
    }
    catalog.note_missing_labels(cx);
    // Resolve both names before reading, so that a wrong second name is reported at once.
    let sources = (catalog.resolve(before)?, catalog.resolve(after)?);
    let mut old = catalog.load(before, sources.0, 0, cx)?;
    let mut new = catalog.load(after, sources.1, 1, cx)?;
    note_limits(&old, &new, cx);
    let has_digests = old.has_digests && new.has_digests;
    if !old.has_digests {
        adopt_digests(&mut old.state, &new.state);
    } else if !new.has_digests {
        adopt_digests(&mut new.state, &old.state);
    }
    old.adopt_names(&new);
    new.adopt_names(&old);
    let recordings = catalog.recordings([&old, &new]);
    let found = catalog.compare([&old, &new], &recordings)?;
    let labels = catalog.labels(&[&old, &new], cx);
    let changes = found.flips.iter().chain(&found.changes);
    let cells = changes.flat_map(|change| change.before.cells.iter().chain(&change.after.cells));
    let results = catalog.read_results([&old, &new], cells.copied())?;
    let files = old.diff_files(&new);
    let figures = ComparisonFigures::of_states([&old, &new], &labels, &catalog)?;
    let migration = if args.migration {
        args.format.require(LIST_FORMATS, "--migration")?;
        let sides = [&old, &new];
        Some(MigrationReport::new(
            sides,
            &figures,
            args.margin,
            &catalog,
        )?)
    } else {
        None
    };
    let page = (args.format == Format::Html).then(|| {
        let (before, after) = (old.page_side(), new.page_side());
        let (found, files) = (found.clone(), files.clone());
        let page = PageComparison::with_found(before, after, found, &labels, &recordings, files)
            .with_figures(figures.to_page(&new.state), figures.records().clone());
        let title = format!("dicta compare {} {}", old.name, new.name);
        format_page(&title, &page.with_causes(has_digests), &labels)
    });
    let gate = args
        .fail_on
        .as_ref()
        .and_then(|fail_on| fail_on.gate.as_ref());
    let gate_figures = match gate {
        Some(_) => {
            let draws = catalog.draws()?;
            compute_label_figures(&new.state, &labels, &draws, Confidence::P95, |_| true)
        }
        None => Vec::new(),
    };
    let report = ComparisonReport::new(
        [&old, &new],
        found,
        labels,
        results,
        files,
        figures,
        has_digests,
    )
    .with_migration(migration);
    let text = match page {
        Some(page) => page,
        None => write_comparison(&report, args.format, cx.streams.out)?,
    };
    cx.streams.print_format(args.format, &text);
    let mut code = 0;
    if let Some(accepted) = args.fail_on.as_ref().and_then(|fail_on| fail_on.accepted) {
        let regressions = report.count_regressions();
        if regressions > accepted {
            cx.streams.print_stderr(&format!(
                "dicta: {}; --fail-on accepts {accepted}",
                pluralize(regressions, "regression"),
            ));
            code = ExitReason::Failed.code();
        }
    }
    if let Some(gate) = gate {
        let gated = apply_gate(gate, &new.state, &gate_figures, cx);
        // A failure is more important than too few labels.
        code = if code == 0 { gated } else { code };
    }
    Ok(code)
}

/// Returns the page of a comparison.
fn format_page(title: &str, comparison: &PageComparison<'_>, labels: &Labels) -> String {
    let mut page = Vec::new();
    html::write_comparison(&mut page, title, comparison, labels)
        .expect("a vector accepts every write");
    String::from_utf8_lossy(&page).into_owned()
}

/// Prints what the comparison of these two cannot show.
fn note_limits(old: &LoadedState, new: &LoadedState, cx: &CommandCx) {
    for state in [old, new] {
        let name = &state.name;
        if !state.has_digests {
            cx.streams.print_stderr(&format!(
                "note: {name} has no digests, because an earlier version wrote it; decisions are compared by name, and \
                 causes are unknown"
            ));
        }
        if state.is_incomplete {
            let what = match state.source {
                StateSource::File(_) => "file",
                _ => "run",
            };
            cx.streams.print_stderr(&format!(
                "note: {what} {name} is incomplete; its missing decisions count as new, removed or pending"
            ));
        }
    }
}
