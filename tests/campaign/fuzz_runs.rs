//! The runs of fuzz targets that earlier calls of the campaign made, in `tests/fuzz/runs.jsonl`.
//!
//! All targets together take hours, so a call continues where the last one ended. Only runs of the same sources count:
//! after a change of the code, all counts begin at 0.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The sources that the fuzz program is built from.
const SOURCES: [&str; 5] = [
    "src",
    "tests/fuzz/targets.rs",
    "tests/fuzz/fuzz_targets",
    "tests/fuzz/Cargo.toml",
    "Cargo.lock",
];

/// The runs of one target without a crash: a line of the file, or their sum.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FuzzRun {
    /// The digest of the sources.
    sources: String,
    target: String,
    /// The inputs that the target read.
    pub(crate) runs: u64,
    pub(crate) seconds: u64,
}

/// The runs of all calls with the same sources.
pub(crate) struct FuzzRuns {
    path: PathBuf,
    sources: String,
}

impl FuzzRuns {
    pub(crate) fn open(repository: &Path) -> Result<Self, String> {
        Ok(Self {
            path: repository.join("tests/fuzz/runs.jsonl"),
            sources: digest_sources(repository)?,
        })
    }

    /// Returns the sum of the runs of each target.
    pub(crate) fn totals(&self) -> Result<BTreeMap<String, FuzzRun>, String> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => String::new(),
            Err(why) => return Err(self.describe(&why)),
        };
        let mut totals = BTreeMap::<String, FuzzRun>::new();
        for line in text.lines() {
            let run: FuzzRun = serde_json::from_str(line).map_err(|why| self.describe(&why))?;
            if run.sources != self.sources {
                continue;
            }
            match totals.get_mut(&run.target) {
                Some(total) => {
                    total.runs += run.runs;
                    total.seconds += run.seconds;
                }
                None => {
                    totals.insert(run.target.clone(), run);
                }
            }
        }
        Ok(totals)
    }

    /// Appends the runs of one call.
    pub(crate) fn add(&self, target: &str, runs: u64, seconds: u64) -> Result<(), String> {
        let run = FuzzRun {
            sources: self.sources.clone(),
            target: target.to_owned(),
            runs,
            seconds,
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

/// Returns a digest of the names and contents of all sources.
fn digest_sources(repository: &Path) -> Result<String, String> {
    let mut hasher = blake3::Hasher::new();
    for source in SOURCES {
        for entry in walkdir::WalkDir::new(repository.join(source)).sort_by_file_name() {
            let entry = entry.map_err(|why| why.to_string())?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = entry.path().strip_prefix(repository);
            let name = name.map_err(|why| why.to_string())?;
            let content = fs::read(entry.path()).map_err(|why| why.to_string())?;
            for part in [name.as_os_str().as_encoded_bytes(), &content] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}
