//! The runs of fuzz targets that earlier calls of the campaign made, in `tests/fuzz/runs.jsonl`.
//!
//! All targets together take hours, so a call continues where the last one ended. Only runs of the same code count: after a
//! change of a module that a reader uses, its count begins at 0.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fuzz::Target;
use crate::layers::LAYERS;

/// The sources of every target, next to the modules of its reader.
const SHARED_SOURCES: [&str; 5] = [
    "src/untrusted.rs",
    "tests/fuzz/targets.rs",
    "tests/fuzz/fuzz_targets",
    "tests/fuzz/Cargo.toml",
    "Cargo.lock",
];

/// Sources that only some targets reach, with the names of these targets. A change of them does not reset the other counts.
const SOURCES_OF_TARGETS: [(&str, &[&str]); 5] = [
    // This reader needs a file. The other targets keep their input in memory.
    ("src/transcript/formats/databases.rs", &["sqlite"]),
    ("src/transcript/formats/databases", &["sqlite"]),
    (
        "src/transcript/formats/csv.rs",
        &[
            "transcript-any",
            "transcript-csv-table",
            "transcript-evalbench-result-table-csv",
            "transcript-guess",
            "transcript-mapped",
            "transcript-promptfoo-table-csv",
            "transcript-rows-ragas",
        ],
    ),
    // Other modules use only the requests of this protocol.
    ("src/provider/openai_chat/stream.rs", &["reply-openai-chat"]),
    // The repair of JSON that a model wrote.
    ("src/tools/repair", &["arguments"]),
];

/// A line of the file: the runs of one target in one call, without a crash.
#[derive(Serialize, Deserialize)]
struct RecordedRun {
    target: String,
    /// The digest of the sources.
    sources: String,
    #[serde(flatten)]
    amount: FuzzAmount,
}

/// The runs of one target, in one call or in all.
#[derive(Serialize, Deserialize, Clone, Copy, Default)]
pub(crate) struct FuzzAmount {
    /// The inputs that the target read.
    pub(crate) runs: u64,
    pub(crate) seconds: u64,
}

/// The runs of all calls with the same sources.
pub(crate) struct FuzzRuns {
    path: PathBuf,
    /// The digest of the sources of each target, by its name.
    sources: BTreeMap<String, String>,
}

impl FuzzRuns {
    pub(crate) fn open(repository: &Path, targets: &[Target]) -> Result<Self, String> {
        check_sources_of_targets(repository, targets)?;
        let mut sources = BTreeMap::new();
        // Most targets of a module have the same sources.
        let mut digests = BTreeMap::new();
        for target in targets {
            let others = SOURCES_OF_TARGETS.iter();
            let others = others.filter(|(_, owners)| !owners.contains(&target.name.as_str()));
            let others: Vec<&str> = others.map(|(source, _)| *source).collect();
            let digest = match digests.entry((target.module, others)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let (module, others) = entry.key();
                    let digest = digest_sources(repository, module, others)?;
                    entry.insert(digest)
                }
            };
            sources.insert(target.name.clone(), digest.clone());
        }
        Ok(Self {
            path: repository.join("tests/fuzz/runs.jsonl"),
            sources,
        })
    }

    /// Returns the sum of the runs of each target, in the order of the targets.
    pub(crate) fn totals(&self, targets: &[Target]) -> Result<Vec<FuzzAmount>, String> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => String::new(),
            Err(why) => return Err(self.describe(&why)),
        };
        let mut totals = vec![FuzzAmount::default(); targets.len()];
        for line in text.lines() {
            let run: RecordedRun = serde_json::from_str(line).map_err(|why| self.describe(&why))?;
            let same_code = |target: &Target| {
                target.name == run.target && self.sources[&target.name] == run.sources
            };
            if let Some(at) = targets.iter().position(same_code) {
                totals[at].runs += run.amount.runs;
                totals[at].seconds += run.amount.seconds;
            }
        }
        Ok(totals)
    }

    /// Appends the runs of one call.
    pub(crate) fn add(&self, target: &Target, amount: FuzzAmount) -> Result<(), String> {
        let run = RecordedRun {
            target: target.name.clone(),
            sources: self.sources[&target.name].clone(),
            amount,
        };
        let line = serde_json::to_string(&run).map_err(|why| self.describe(&why))? + "\n";
        let mut options = fs::OpenOptions::new();
        let file = options.append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|why| self.describe(&why))
    }

    fn describe(&self, why: &dyn std::fmt::Display) -> String {
        format!("{}: {why}", self.path.display())
    }
}

/// Refuses an entry that names a source or a target that does not exist.
fn check_sources_of_targets(repository: &Path, targets: &[Target]) -> Result<(), String> {
    for (source, owners) in SOURCES_OF_TARGETS {
        if !repository.join(source).exists() {
            return Err(format!("SOURCES_OF_TARGETS: {source} does not exist"));
        }
        for owner in owners {
            if !targets.iter().any(|target| target.name == *owner) {
                return Err(format!("SOURCES_OF_TARGETS: no target is called {owner}"));
            }
        }
    }
    Ok(())
}

/// Returns a digest of the names and contents of the sources of a module and of all modules that it may use. Leaves out
/// `others`, the sources of other targets.
fn digest_sources(repository: &Path, module: &str, others: &[&str]) -> Result<String, String> {
    let mut sources: Vec<String> = SHARED_SOURCES.map(str::to_owned).into();
    for used in find_used_modules(module) {
        sources.extend([format!("src/{used}"), format!("src/{used}.rs")]);
    }
    let mut hasher = blake3::Hasher::new();
    for source in sources {
        let source = repository.join(source);
        // A module is a folder or a file.
        if !source.exists() {
            continue;
        }
        for entry in walkdir::WalkDir::new(source).sort_by_file_name() {
            let entry = entry.map_err(|why| why.to_string())?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = entry.path().strip_prefix(repository);
            let name = name.map_err(|why| why.to_string())?;
            if is_test(name) || others.iter().any(|other| name.starts_with(other)) {
                continue;
            }
            let content = fs::read(entry.path()).map_err(|why| why.to_string())?;
            for part in [name.as_os_str().as_encoded_bytes(), &content] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

/// Returns true for a source that only test builds contain.
fn is_test(source: &Path) -> bool {
    source.starts_with("src")
        && source
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
}

/// Returns a module and the modules that it may import, also by way of others. `tests/tidy` tests the imports.
fn find_used_modules(module: &str) -> BTreeSet<&'static str> {
    let mut used = BTreeSet::new();
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        let layer = LAYERS.iter().find(|(name, _)| *name == module);
        let (name, imports) = layer.expect("the module has a layer");
        if used.insert(*name) {
            open.extend(imports.iter().copied());
        }
    }
    used
}
