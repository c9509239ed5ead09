//! Lists the variants of the workspace's files with the figures of recorded verdicts, and judges one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Runtime, RuntimeDeps};
use crate::clock::box_task;
use crate::compare::{
    VariantVerdicts, compare_variants_after, read_variant_verdicts, unified_diff,
};
use crate::model::SplitPart;
use crate::run::{
    self, PaidCalls, PreparedVariant, VariantReader, count_earlier_variants, list_part_labels,
    prepare_variant, variant_key,
};
use crate::tui::history_view::Shared;
use crate::tui::msg::Msg;
use crate::tui::state::variants::{ListedVariant, VariantListing, VariantsRead, add_table};
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;
use crate::workspace::rubric_write::RubricFileChange;
use crate::workspace::variant_file::{VariantFile, list_variant_files};

/// The largest number of files to list.
const MAX_FILES: usize = 20;

impl Runtime {
    /// Reads the files of variants and the recorded verdicts. Calls no judge.
    pub(super) fn list_variants(&self, number: u64, workspace: Arc<Workspace>) {
        let deps = Arc::clone(&self.deps);
        let out = self.outbox.clone();
        self.spawn_waiting(
            move || {
                let report = |read: VariantsRead| {
                    out.send_answer(Msg::VariantsRead { number, read });
                };
                Msg::VariantsListed {
                    number,
                    listed: Ok(list_all(&deps, &workspace, &report).into()),
                }
            },
            move |why| Msg::VariantsListed {
                number,
                listed: Err(why),
            },
        );
    }

    /// Judges a variant on its dev labels. The run is recorded; the cells of the screen stay as they are.
    pub(super) fn judge_variant(
        &self,
        number: u64,
        listing: &Shared<VariantListing>,
        position: usize,
    ) {
        let Some(one) = listing.variants.get(position) else {
            return;
        };
        let (deps, out) = (Arc::clone(&self.deps), self.outbox.clone());
        let (prepared, name) = (one.prepared.clone(), one.figures.name.clone());
        let working = out.tasks.start_task();
        let cancel = self.variants_cancel.clone();
        self.run_tasks.spawn(box_task(async move {
            let done = judge(deps, prepared, cancel)
                .await
                .map_err(TaskFailure::new);
            out.send_answer(Msg::VariantJudged { number, name, done });
            drop(working);
        }));
    }

    /// Cancels the runs of variants. Their verdicts so far stay recorded.
    pub(super) fn cancel_variants(&mut self) {
        self.variants_cancel.cancel();
        self.variants_cancel = CancellationToken::new();
    }
}

async fn judge(
    deps: Arc<RuntimeDeps>,
    prepared: PreparedVariant,
    cancel: CancellationToken,
) -> Result<(), String> {
    // Compiling reads past runs, so it needs a thread that may block.
    let started = tokio::task::spawn_blocking(move || {
        let starting = run::start_run(
            prepared.workspace,
            &deps.registry,
            &deps.env,
            Arc::clone(&deps.clock),
            prepared.options,
        );
        Handle::current().block_on(starting)
    });
    let started = started
        .await
        .map_err(|error| super::describe_join_error(&error))?;
    let mut handle = started.map_err(|error| error.to_string())?;
    // The recording has the events; the figures are read from it.
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            () = cancel.cancelled(), if !is_cancelled => {
                handle.cancel.cancel();
                is_cancelled = true;
            }
            events = handle.events.recv() => if events.is_none() {
                break;
            },
        }
    }
    match handle.join.await {
        Ok(Ok(_totals)) if is_cancelled => Err("its run was cancelled".to_owned()),
        Ok(Ok(_totals)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(super::describe_join_error(&error)),
    }
}

fn list_all(
    deps: &RuntimeDeps,
    workspace: &Arc<Workspace>,
    report: &dyn Fn(VariantsRead),
) -> VariantListing {
    let mut listing = VariantListing::default();
    // All files have the recordings of one workspace.
    let mut reader = VariantReader::default();
    for path in list_variant_files(&workspace.root)
        .into_iter()
        .take(MAX_FILES)
    {
        let shown = path
            .strip_prefix(&workspace.root)
            .unwrap_or(&path)
            .to_owned();
        let file = (path.as_path(), shown.as_path());
        if let Err(why) = list_file(deps, workspace, file, &mut reader, (&mut listing, report)) {
            listing.problems.push(format!("{}: {why}", shown.display()));
        }
    }
    listing
}

fn list_file(
    deps: &RuntimeDeps,
    workspace: &Arc<Workspace>,
    (path, shown): (&Path, &Path),
    reader: &mut VariantReader,
    (listing, report): (&mut VariantListing, &dyn Fn(VariantsRead)),
) -> Result<(), String> {
    let (registry, env, clock) = (&deps.registry, &deps.env, &deps.clock);
    let file = VariantFile::read(path, workspace, registry).map_err(|error| error.to_string())?;
    let labels = list_part_labels(&file, SplitPart::Dev, workspace, registry, env, clock)
        .map_err(|error| error.to_string())?;
    let ids: Vec<&str> = labels
        .iter()
        .map(|label| label.transcript.as_str())
        .collect();
    let mut verdicts: Vec<VariantVerdicts> = Vec::new();
    let (mut parts, mut keys) = (Vec::new(), BTreeSet::new());
    for (read, variant) in file.variants.iter().enumerate() {
        report(VariantsRead {
            file: shown.to_owned(),
            read,
            all: file.variants.len(),
        });
        let named = |why: String| format!("variant {}: {why}", variant.name);
        let prepared = prepare_variant(&file, variant, &labels, workspace, registry)
            .map_err(|error| named(error.to_string()))?;
        let known = Handle::current()
            .block_on(reader.read(&prepared, registry, env, clock))
            .map_err(|error| named(error.to_string()))?;
        let (text, _) = file
            .apply(variant, workspace, registry)
            .map_err(|error| named(error.to_string()))?;
        verdicts.push(read_variant_verdicts(&variant.name, &known.state, &ids));
        let header = known.state.header.as_deref();
        keys.extend(header.map(|header| variant_key(header, &file)));
        parts.push((prepared, PaidCalls::of_run(&known.preview), text));
    }
    let passed: Vec<bool> = labels.iter().map(|label| label.passed).collect();
    let earlier = count_earlier_variants(workspace, env, &file, &keys);
    let table = compare_variants_after(&passed, &verdicts, earlier);
    let rubric = &file.rubric;
    let mut parts = parts.into_iter();
    add_table(listing, table, |_, figures| {
        let (prepared, calls, text) = parts.next().expect("one part for each variant");
        let is_change = *text != *rubric.source;
        let diff = if is_change {
            unified_diff(&rubric.path, &rubric.source, &text)
        } else {
            String::new()
        };
        ListedVariant {
            file: shown.to_owned(),
            eval: file.eval_name(),
            labels: labels.len() as u64,
            figures,
            warning: None,
            diff,
            change: is_change.then(|| RubricFileChange {
                path: rubric.path.clone(),
                before: Some(Arc::clone(&rubric.source)),
                after: Some(text),
            }),
            calls,
            prepared,
        }
    });
    Ok(())
}
