//! A bundle: one file with recorded runs, which opens anywhere. It is a tar archive without compression.
//!
//! ```text
//! dicta-bundle.json              the manifest, first
//! runs/<id>/events.jsonl         the log of each run
//! runs/<id>/followups.jsonl      its follow-up questions, if there are any
//! runs/<id>/blobs/<BLAKE3>       its texts: tool responses, rubric files, transcripts
//! ```
//! Responsible for writing and unpacking it. Does not choose runs. A bundle comes from elsewhere, so every name in it is
//! checked before a file is created.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::follow_ups::FOLLOW_UPS_FILE;
use super::partial_log::{PartialLog, read_partial_log};
use super::{EVENTS_FILE, RecordedRun, RunStore};
use crate::event::RunState;
use crate::model::{CellIx, RunId};
use crate::storage::{self, AtomicFile};

/// The name of the first entry.
const MANIFEST: &str = "dicta-bundle.json";
/// The version of the layout.
const VERSION: u32 = 1;
/// The size of a tar block.
const BLOCK: usize = 512;
/// The largest manifest, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The largest entry that the header of a tar archive can state, in bytes.
const MAX_ENTRY_BYTES: u64 = 0o77_777_777_777;
/// The folder of the runs in the archive, and where they are unpacked.
const RUNS: &str = "runs";

/// The description of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    /// The version of the layout.
    pub bundle: u32,
    /// The version of dicta that wrote it.
    pub dicta: String,
    /// The run that was exported.
    pub run: RunId,
    /// The cells that were exported, as a pattern; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// All runs: the exported one, and those whose verdicts it reuses.
    pub runs: Vec<RunId>,
}

/// The reason why a bundle can't be opened.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The file can't be read, or a file can't be written.
    #[error("{path}: {why}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        why: io::Error,
    },
    /// The file is not a valid bundle.
    #[error("{path} is not a valid bundle: {why}; export it again")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The runs that a bundle of one run needs.
#[derive(Debug, Default)]
pub struct ReusedRuns {
    /// The runs, without the first one.
    pub runs: Vec<RecordedRun>,
    /// The runs that the store no longer has.
    pub missing: Vec<RunId>,
}

impl RunStore {
    /// Finds the runs whose verdicts a run reuses, directly or through another run.
    pub fn find_reused_runs(&self, run: &RecordedRun) -> Result<ReusedRuns, super::RecordError> {
        let mut found = ReusedRuns::default();
        let mut known: HashSet<RunId> = HashSet::from([run.id.clone()]);
        let mut waiting: Vec<RunId> = list_reused(&run.read_final_state()?.state);
        while let Some(id) = waiting.pop() {
            if !known.insert(id.clone()) {
                continue;
            }
            match self.resolve(&id.0) {
                Ok(older) => {
                    waiting.extend(list_reused(&older.read_final_state()?.state));
                    found.runs.push(older);
                }
                Err(_) => found.missing.push(id),
            }
        }
        Ok(found)
    }
}

fn list_reused(state: &RunState) -> Vec<RunId> {
    let cells = state.cells.iter();
    let mut runs: Vec<RunId> = cells
        .filter_map(|cell| cell.result.as_ref()?.cached.clone())
        .collect();
    runs.sort();
    runs.dedup();
    runs
}

/// A run of a bundle.
#[derive(Debug, Clone)]
pub struct BundledRun {
    /// The run.
    pub run: RecordedRun,
    /// The cells that the bundle contains; `None` for all.
    pub cells: Option<BTreeSet<CellIx>>,
}

/// Writes a bundle. `runs[0]` is the exported run.
pub fn write_bundle(
    out: &mut dyn Write,
    runs: &[BundledRun],
    cell: Option<&str>,
) -> io::Result<()> {
    let Some(first) = runs.first() else {
        return Ok(());
    };
    let manifest = BundleManifest {
        bundle: VERSION,
        dicta: env!("CARGO_PKG_VERSION").to_owned(),
        run: first.run.id.clone(),
        cell: cell.map(str::to_owned),
        runs: runs.iter().map(|one| one.run.id.clone()).collect(),
    };
    let text = serde_json::to_vec_pretty(&manifest)?;
    write_entry(out, MANIFEST, text.len() as u64, &mut text.as_slice())?;
    for BundledRun { run, cells } in runs {
        let folder = format!("{RUNS}/{}", run.id);
        let part = match cells {
            None => None,
            Some(cells) => Some(read_partial_log(run, cells).map_err(io::Error::other)?),
        };
        if let Some(part) = &part {
            let name = format!("{folder}/{EVENTS_FILE}");
            write_text(out, &name, &part.lines)?;
            let follow_ups = renumber_follow_ups(run, part)?;
            if !follow_ups.is_empty() {
                write_text(out, &format!("{folder}/{FOLLOW_UPS_FILE}"), &follow_ups)?;
            }
        } else {
            let log = run.dir.join(EVENTS_FILE);
            write_file(out, &format!("{folder}/{EVENTS_FILE}"), &log)?;
            let follow_ups = run.dir.join(FOLLOW_UPS_FILE);
            if follow_ups.is_file() {
                write_file(out, &format!("{folder}/{FOLLOW_UPS_FILE}"), &follow_ups)?;
            }
        }
        let mut blobs: Vec<PathBuf> = std::fs::read_dir(run.dir.join("blobs"))
            // A run with short texts has no blobs.
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        blobs.sort();
        for blob in blobs {
            let name = blob.file_name().and_then(|name| name.to_str());
            let is_needed = |name: &str| {
                is_blob_name(name) && part.as_ref().is_none_or(|part| part.blobs.contains(name))
            };
            if let Some(name) = name.filter(|name| is_needed(name)) {
                write_file(out, &format!("{folder}/blobs/{name}"), &blob)?;
            }
        }
    }
    // Two empty blocks end an archive.
    out.write_all(&[0; BLOCK * 2])
}

fn write_text(out: &mut dyn Write, name: &str, text: &[u8]) -> io::Result<()> {
    let mut content = text;
    write_entry(out, name, text.len() as u64, &mut content)
}

/// Returns the lines of the follow-up questions about the cells of a part, with their numbers in the part.
fn renumber_follow_ups(run: &RecordedRun, part: &PartialLog) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (whole, number) in &part.cells {
        for mut follow_up in run.read_follow_ups(*whole) {
            follow_up.cell = *number;
            serde_json::to_writer(&mut lines, &follow_up)?;
            lines.push(b'\n');
        }
    }
    Ok(lines)
}

fn write_file(out: &mut dyn Write, name: &str, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // The log of a running run may grow, so only the bytes of now are copied.
    let size = file.metadata()?.len();
    write_entry(out, name, size, &mut file.take(size))
}

fn write_entry(
    out: &mut dyn Write,
    name: &str,
    size: u64,
    content: &mut dyn Read,
) -> io::Result<()> {
    if size > MAX_ENTRY_BYTES {
        let why = format!("{name} has {size} bytes, more than a bundle can have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    out.write_all(&entry_header(name, size)?)?;
    let copied = io::copy(content, out)?;
    if copied != size {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{name} became shorter while it was copied"),
        ));
    }
    let rest = (BLOCK - usize::try_from(size % BLOCK as u64).unwrap_or(0)) % BLOCK;
    out.write_all(&[0; BLOCK][..rest])
}

/// Returns the header of a file in the ustar format. The time is 0, so that the same runs give the same bytes.
fn entry_header(name: &str, size: u64) -> io::Result<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    // A long path is split at a slash: at most 155 bytes of folders, and 100 bytes after them.
    let (prefix, rest) = match name.rfind('/') {
        Some(at) if name.len() > 100 => (&name[..at], &name[at + 1..]),
        _ => ("", name),
    };
    if rest.len() > 100 || prefix.len() > 155 {
        let why = format!("{name}: the name is too long for a bundle");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    put(0, rest.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum = checksum(&header);
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Returns the checksum of a header: the sum of its bytes, with blanks in place of the checksum.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    let bytes = header.iter().enumerate();
    bytes
        .map(|(at, byte)| match at {
            148..156 => u32::from(b' '),
            _ => u32::from(*byte),
        })
        .sum()
}

/// Returns true if a file begins like a bundle.
pub fn is_bundle(path: &Path) -> bool {
    let mut header = [0; BLOCK];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && parse_header(&header).is_ok_and(|(name, _)| name == MANIFEST)
}

/// Returns the name and the size of an entry. The error is a reason.
fn parse_header(header: &[u8; BLOCK]) -> Result<(String, u64), String> {
    let field = |at: std::ops::Range<usize>| -> Option<&str> {
        let bytes = &header[at];
        let end = bytes.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()
    };
    let number = |at| u64::from_str_radix(field(at)?.trim(), 8).ok();
    if number(148..156) != Some(u64::from(checksum(header))) {
        return Err("a header is damaged".to_owned());
    }
    let kind = header[156];
    if kind != b'0' || field(257..263) != Some("ustar") {
        return Err("an entry is not a plain file".to_owned());
    }
    let (Some(name), Some(prefix), Some(size)) = (field(0..100), field(345..500), number(124..136))
    else {
        return Err("a header is not readable".to_owned());
    };
    let name = match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}/{name}"),
    };
    Ok((name, size))
}

fn is_blob_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for a name that can be a folder of a run. It has no dot at its beginning and no slash.
fn is_run_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && !name.starts_with('.') && name.len() <= 128 && name.bytes().all(plain)
}

/// Returns the path of an entry below the folder, if a bundle may have such an entry.
fn entry_path(name: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = name.split('/').collect();
    let allowed = match parts[..] {
        [RUNS, run, EVENTS_FILE | FOLLOW_UPS_FILE] => is_run_name(run),
        [RUNS, run, "blobs", blob] => is_run_name(run) && is_blob_name(blob),
        _ => false,
    };
    allowed.then(|| PathBuf::from(name))
}

/// Unpacks a bundle into an empty folder. Its runs are in the folder `runs` below it.
pub fn unpack_bundle(path: &Path, into: &Path) -> Result<BundleManifest, BundleError> {
    let invalid = |why: &str| BundleError::Invalid {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    let failed = |at: &Path| {
        let at = at.to_owned();
        move |why| BundleError::Io { path: at, why }
    };
    let file = File::open(path).map_err(failed(path))?;
    let mut archive = io::BufReader::with_capacity(1 << 16, file);
    let mut manifest: Option<BundleManifest> = None;
    loop {
        let mut header = [0; BLOCK];
        archive
            .read_exact(&mut header)
            .map_err(|_| invalid("the file ends early"))?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let (name, size) = parse_header(&header).map_err(|why| invalid(&why))?;
        let mut content = (&mut archive).take(size);
        let copied = if manifest.is_none() {
            if name != MANIFEST || size > MAX_MANIFEST_BYTES {
                return Err(invalid("it does not begin with its manifest"));
            }
            let mut text = Vec::new();
            let copied = content.read_to_end(&mut text).map_err(failed(path))?;
            manifest = Some(read_manifest(&text).map_err(|why| invalid(&why))?);
            copied as u64
        } else {
            let place = entry_path(&name).ok_or_else(|| invalid("it has an unknown entry"))?;
            let target = into.join(place);
            let folder = target.parent().unwrap_or(into);
            storage::create_private_folder(folder).map_err(failed(folder))?;
            let mut out = AtomicFile::create_private(&target).map_err(failed(&target))?;
            let copied = io::copy(&mut content, &mut out).map_err(failed(&target))?;
            out.finish().map_err(failed(&target))?;
            copied
        };
        if copied != size {
            return Err(invalid("the file ends early"));
        }
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        let skipped = io::copy(&mut (&mut archive).take(rest), &mut io::sink());
        if skipped.map_err(failed(path))? != rest {
            return Err(invalid("the file ends early"));
        }
    }
    let manifest = manifest.ok_or_else(|| invalid("it is empty"))?;
    let log = into.join(RUNS).join(&manifest.run.0).join(EVENTS_FILE);
    if !log.is_file() {
        return Err(invalid("it lacks the run that its manifest names"));
    }
    Ok(manifest)
}

/// Reads the manifest. The error is a reason.
fn read_manifest(text: &[u8]) -> Result<BundleManifest, String> {
    let manifest: BundleManifest =
        serde_json::from_slice(text).map_err(|error| format!("its manifest: {error}"))?;
    if manifest.bundle != VERSION {
        return Err(format!(
            "it has version {}, and this dicta reads version {VERSION}",
            manifest.bundle
        ));
    }
    if !is_run_name(&manifest.run.0) {
        return Err("its manifest names no run".to_owned());
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_in(dir: &Path, id: &str, blob: Option<&str>) -> BundledRun {
        let dir = dir.join(id);
        std::fs::create_dir_all(dir.join("blobs")).expect("made");
        std::fs::write(dir.join(EVENTS_FILE), format!("{{\"of\":\"{id}\"}}\n")).expect("written");
        if let Some(text) = blob {
            let name = "ab".repeat(32);
            std::fs::write(dir.join("blobs").join(name), text).expect("written");
        }
        let run = RecordedRun {
            id: RunId(id.to_owned()),
            dir,
            key: None,
        };
        BundledRun { run, cells: None }
    }

    fn bundle(dir: &Path, long: &str) -> (PathBuf, Vec<u8>) {
        let runs = [
            run_in(dir, "20261124T000000Z-abcd", Some(long)),
            run_in(dir, "20261123T000000Z-efgh", None),
        ];
        let mut bytes = Vec::new();
        write_bundle(&mut bytes, &runs, Some("t/r/*")).expect("a bundle");
        let path = dir.join("b.dicta");
        std::fs::write(&path, &bytes).expect("written");
        (path, bytes)
    }

    #[test]
    fn unpacked_bundle_has_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a folder");
        let long = "x".repeat(5000);
        let (path, _) = bundle(dir.path(), &long);
        assert!(is_bundle(&path));
        let into = dir.path().join("out");
        let manifest = unpack_bundle(&path, &into).expect("a bundle");
        assert_eq!(manifest.run.0, "20261124T000000Z-abcd");
        assert_eq!(manifest.cell.as_deref(), Some("t/r/*"));
        assert_eq!(manifest.runs.len(), 2);
        for (name, text) in [
            (
                "20261124T000000Z-abcd/events.jsonl",
                "{\"of\":\"20261124T000000Z-abcd\"}\n",
            ),
            (
                "20261123T000000Z-efgh/events.jsonl",
                "{\"of\":\"20261123T000000Z-efgh\"}\n",
            ),
        ] {
            let read = std::fs::read_to_string(into.join("runs").join(name)).expect(name);
            assert_eq!(read, text);
        }
        let blob = format!("runs/20261124T000000Z-abcd/blobs/{}", "ab".repeat(32));
        assert_eq!(
            std::fs::read_to_string(into.join(blob)).expect("a blob"),
            long
        );
    }

    #[test]
    fn every_shortened_bundle_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes) = bundle(dir.path(), "short");
        // The last block may be missing; every shorter file lacks content.
        for end in (0..bytes.len() - BLOCK * 2).step_by(97) {
            std::fs::write(&path, &bytes[..end]).expect("written");
            let into = dir.path().join(format!("out{end}"));
            assert!(unpack_bundle(&path, &into).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn entries_with_other_names_are_refused() {
        for (name, good) in [
            ("runs/a-b/events.jsonl", true),
            ("runs/a-b/followups.jsonl", true),
            ("runs/a-b/lock", false),
            ("runs/../events.jsonl", false),
            ("runs/.hidden/events.jsonl", false),
            ("/runs/a/events.jsonl", false),
            ("runs/a/blobs/../../x", false),
            ("runs/a/blobs/zz", false),
            ("runs//events.jsonl", false),
        ] {
            assert_eq!(entry_path(name).is_some(), good, "{name}");
        }
        let dir = tempfile::tempdir().expect("a folder");
        let manifest = BundleManifest {
            bundle: VERSION,
            dicta: String::new(),
            run: RunId("a".to_owned()),
            cell: None,
            runs: Vec::new(),
        };
        let text = serde_json::to_vec(&manifest).expect("JSON");
        let mut bytes = Vec::new();
        write_entry(
            &mut bytes,
            MANIFEST,
            text.len() as u64,
            &mut text.as_slice(),
        )
        .expect("written");
        write_entry(&mut bytes, "../../evil", 1, &mut b"x".as_slice()).expect("written");
        bytes.extend([0; BLOCK * 2]);
        let path = dir.path().join("b.dicta");
        std::fs::write(&path, &bytes).expect("written");
        let error = unpack_bundle(&path, &dir.path().join("out")).expect_err("refused");
        assert!(error.to_string().contains("unknown entry"), "{error}");
        assert!(!dir.path().join("evil").exists());
    }

    #[test]
    fn damaged_header_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, mut bytes) = bundle(dir.path(), "short");
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        assert!(!is_bundle(&path));
        assert!(unpack_bundle(&path, &dir.path().join("out")).is_err());
    }
}
