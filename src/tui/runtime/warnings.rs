//! Finds the warnings of `dicta check` that need all transcripts or the newest verdicts, and the keys that are missing.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Runtime;
use crate::diag::Diagnostic;
use crate::run;
use crate::tui::msg::Msg;
use crate::workspace::lint::{self, TranscriptLinter};
use crate::workspace::{self, Workspace};

/// The maximum number of warnings about records. A file of the wrong kind would give one per record.
const MAX_RECORD_WARNINGS: usize = 20;

impl Runtime {
    /// Finds warnings on another thread, and cancels an earlier search. At most one search runs, and one waits.
    pub(super) fn find_warnings(&mut self, number: u64, workspace: Arc<Workspace>) {
        self.warnings_cancel.cancel();
        self.warnings_cancel = CancellationToken::new();
        let stop = self.warnings_cancel.clone();
        let (past, env) = (self.past_verdicts.clone(), self.deps.env.clone());
        self.warning_searches.submit(
            &self.outbox,
            move |_| {
                let mut warnings = collect_warnings(&workspace, &stop);
                if !stop.is_cancelled() {
                    let (newest, _unreadable) = past.read(&workspace, &env);
                    let tallies = run::tally_verdicts(&workspace, newest);
                    warnings.extend(lint::lint_same_verdict(&workspace.rubrics, &tallies));
                }
                Some(Msg::WarningsFound { number, warnings })
            },
            // Without warnings the workspace is still usable.
            move |_| Msg::WarningsFound {
                number,
                warnings: Vec::new(),
            },
        );
    }
}

impl Runtime {
    /// Finds the judges that lack their key. A key file is read, so this happens on another thread.
    pub(super) fn check_keys(&self, workspace: Arc<Workspace>) {
        let env = self.deps.env.clone();
        // The result has no number, so the newest check must end last.
        self.key_checks.submit(
            &self.outbox,
            move |_| {
                let judges = workspace.judges.values();
                let missing = judges.filter_map(|judge| {
                    let why = workspace::resolve_key(judge, &env).err()?;
                    Some((judge.name.clone(), why.to_string()))
                });
                Some(Msg::KeysChecked(missing.collect()))
            },
            // A run then reports the key that is missing.
            |_| Msg::KeysChecked(BTreeMap::new()),
        );
    }
}

/// Returns the warnings about transcripts, or nothing if the search was cancelled.
fn collect_warnings(workspace: &Workspace, stop: &CancellationToken) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let mut linter = TranscriptLinter::new(&workspace.rubrics);
    // `ids` finds duplicates. `kept_ids` are the ids as a run names them, for labels.
    let (mut ids, mut unique_ids) = (HashSet::new(), run::TranscriptIds::default());
    let mut kept_ids = HashSet::new();
    for path in &workspace.transcripts {
        let shown = path.strip_prefix(&workspace.root).unwrap_or(path);
        let mut file = match workspace.field_maps.open(path) {
            Ok(file) => file,
            // A run skips the file and continues.
            Err(error) => {
                warnings.push(Diagnostic::warning("broken-file", shown, error.to_string()));
                continue;
            }
        };
        while let Ok(Some(block)) = file.next_block() {
            if stop.is_cancelled() {
                return Vec::new();
            }
            for (record, bytes) in block.records() {
                let warning = match record.parse(bytes, &file.default_id(record.span.number)) {
                    Ok(transcript) => {
                        linter.observe(&transcript);
                        let id = transcript.id.to_string();
                        kept_ids.insert(unique_ids.make_unique(id.clone()).0);
                        let is_new = ids.insert(id);
                        (!is_new).then(|| {
                            let message = format!(
                                "an earlier transcript has the id `{}`; dicta adds a suffix to this one",
                                transcript.id
                            );
                            Diagnostic::warning("duplicate-id", shown, message)
                        })
                    }
                    Err(fault) => {
                        let message = format!("record {}: {}", fault.number, fault.why);
                        Some(Diagnostic::warning("bad-record", shown, message))
                    }
                };
                if warnings.len() < MAX_RECORD_WARNINGS {
                    warnings.extend(warning);
                }
            }
        }
        warnings.extend(file.pair_warnings(shown));
    }
    warnings.extend(workspace::find_stray_labels(workspace, &kept_ids));
    warnings.extend(linter.finish());
    warnings
}
