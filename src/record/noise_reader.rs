//! Reads the noise runs of a workspace again and again, as a workbench does after each save.
//!
//! Responsible for reading each run once: a later read opens only the runs that are new or changed since. Does not decide
//! what a repeat is; [`NoiseRecords`] does.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run_lister::{FoundRun, RunLister};
use super::{NoiseRecords, RunStore};
use crate::model::RunId;

/// The noise runs of a workspace that earlier reads found.
#[derive(Debug, Default)]
pub struct NoiseReader {
    /// The folder of the workspace.
    workspace: PathBuf,
    /// The runs that were read. A run that could not be read is absent, so the next read tries it again.
    known: HashMap<RunId, KnownNoise>,
}

/// A run that was read.
#[derive(Debug)]
struct KnownNoise {
    found: Arc<FoundRun>,
    /// `None` for a run without repeats, as most are.
    repeats: Option<Box<NoiseRecords>>,
}

impl NoiseReader {
    /// Returns the repeats of the noise runs of the workspace with this folder. A run that cannot be read adds nothing.
    pub fn read(
        &mut self,
        lister: &mut RunLister,
        store: &RunStore,
        workspace: &Path,
    ) -> NoiseRecords {
        if self.workspace != workspace {
            *self = Self {
                workspace: workspace.to_owned(),
                ..Self::default()
            };
        }
        let runs = lister.list(store);
        let mut all = NoiseRecords::default();
        // Oldest first, so that the newest run decides the name.
        for found in runs.iter().rev() {
            let id = &found.run.id;
            let known = self.known.get(id);
            if let Some(known) = known.filter(|known| known.found.has_same_log(found)) {
                if let Some(repeats) = &known.repeats {
                    all.add_newer(repeats);
                }
                continue;
            }
            self.known.remove(id);
            let mut repeats = NoiseRecords::default();
            if repeats.add_run(&found.run, workspace).is_err() {
                continue;
            }
            all.add_newer(&repeats);
            let known = KnownNoise {
                found: Arc::clone(found),
                repeats: (!repeats.is_empty()).then(|| Box::new(repeats)),
            };
            self.known.insert(id.clone(), known);
        }
        // Deleted runs must not stay in memory.
        if self.known.len() > runs.len() {
            let there: HashSet<&RunId> = runs.iter().map(|found| &found.run.id).collect();
            self.known.retain(|id, _| there.contains(id));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::event::{RunHeader, RunPurpose};
    use crate::model::Outcome;
    use crate::record::EVENTS_FILE;
    use crate::record::tests::samples::{end, ended, header, planned, record_run, started, store};

    /// Records a run with one verdict. Every third run measures noise, and every ninth is of another workspace.
    async fn record(folder: &Path, id: &str, number: u32) {
        let purpose = match number % 3 {
            0 => RunPurpose::Noise,
            1 => RunPurpose::SecondOpinion,
            _ => RunPurpose::Judging,
        };
        let workspace = if number % 9 == 6 { "/other" } else { "/w" };
        let header = RunHeader {
            purpose,
            workspace: workspace.into(),
            ..header(id)
        };
        let outcome = [Outcome::Pass, Outcome::Fail][number as usize / 3 % 2];
        let transcript = ["t", "u"][number as usize % 2];
        let kinds = vec![
            planned(transcript, 0),
            started(1, "key"),
            ended(1, outcome),
            end(),
        ];
        record_run(folder, header, kinds).await;
    }

    /// Reads all runs at once.
    fn read_once(store: &RunStore) -> NoiseRecords {
        let mut records = NoiseRecords::default();
        for (run, _) in store.list_runs().iter().rev() {
            let _unreadable = records.add_run(run, Path::new("/w"));
        }
        records
    }

    #[tokio::test]
    async fn repeated_reads_give_what_one_read_of_all_runs_gives() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = data.path();
        let store = store(folder);
        let (mut reader, mut lister) = (NoiseReader::default(), RunLister::default());
        let mut check = |what: &str| {
            let read = reader.read(&mut lister, &store, Path::new("/w"));
            assert!(read == read_once(&store), "{what}");
            (reader.known.len(), read.is_empty())
        };
        assert_eq!(check("no runs"), (0, true));
        for number in 0..24 {
            let id = format!("20260101T0000{number:02}Z-aaaa");
            record(folder, &id, number).await;
            check(&id);
        }
        assert_eq!(check("nothing new"), (24, false));
        fs::remove_dir_all(folder.join("20260101T000003Z-aaaa")).expect("removed");
        assert_eq!(check("a deleted run"), (23, false));
        record(folder, "20251231T000000Z-aaaa", 12).await;
        assert_eq!(check("a run with an earlier time"), (24, false));
        let log = folder.join("20260101T000009Z-aaaa").join(EVENTS_FILE);
        let text = fs::read_to_string(&log).expect("a log");
        let header = text.lines().next().expect("a header").len() + 1;
        fs::write(&log, &text[..header]).expect("cut");
        assert_eq!(check("a log that another program cut"), (24, false));
        fs::write(&log, "no log\n").expect("written");
        check("a log that is broken");
        fs::write(&log, &text).expect("written");
        assert_eq!(check("a log that is whole again"), (24, false));
    }
}
