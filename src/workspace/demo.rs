//! The demo workspace that is embedded in the program.
//!
//! Responsible for unpacking the demo once into the data directory, where a user can edit it. The folder's name
//! contains a digest of the content: a newer demo gets a new folder. Does not overwrite an edited demo.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, include_dir};
use thiserror::Error;

use crate::model::Digest;
use crate::storage;
use crate::workspace::paths::{RUNS_FOLDER, default_runs_folder};

/// The beginning of the name of a demo's folder in the data directory.
pub const FOLDER_PREFIX: &str = "demo-";
/// The name of the file next to the workspace folder that marks the parent folder as an unpacked demo. It contains the
/// digest of the demo's files once all of them are unpacked; during a reset, it is empty.
pub const MARKER_FILE: &str = ".dicta-demo";
/// The size limit of the marker, in bytes.
const MAX_MARKER_BYTES: u64 = 1 << 10;

static EMBEDDED_DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/sample-runs");

/// The name of files that only keep a folder in git.
const EMPTY_FOLDER_FILE: &str = ".gitkeep";

/// The reason why dicta cannot unpack the demo.
#[derive(Debug, Error)]
pub enum DemoUnpackError {
    /// dicta cannot create a file or folder of the demo.
    #[error(
        "the demo cannot be unpacked: {}: {source}; DICTA_DATA_DIR selects another folder",
        .path.display()
    )]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// The files of a demo and their digest, which names the demo's folder. The digest is calculated once, because every
/// command with `--demo` needs it.
struct DemoFiles<'f> {
    /// The content by path, sorted.
    files: Vec<(String, Cow<'f, [u8]>)>,
    digest: Digest,
}

impl<'f> DemoFiles<'f> {
    fn new(files: Vec<(String, Cow<'f, [u8]>)>) -> Self {
        let parts = files
            .iter()
            .flat_map(|(name, bytes)| [name.as_bytes(), &**bytes]);
        let digest = Digest::hash_parts(parts);
        Self { files, digest }
    }

    /// Returns the folder of this version of the demo: the digest in its name gives every version its own.
    fn folder(&self, data_dir: &Path) -> PathBuf {
        let short = self.digest.0.get(..8).unwrap_or_default();
        data_dir.join(format!("{FOLDER_PREFIX}{short}"))
    }
}

/// Returns the demo workspace's folder; unpacks it under `data_dir` if it does not exist yet. Two processes may do so
/// at once.
pub fn unpack(data_dir: &Path) -> Result<PathBuf, DemoUnpackError> {
    unpack_files(data_dir, &embedded_files())
}

/// A restored demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredDemo {
    /// The folder of the demo's workspace.
    pub workspace: PathBuf,
    /// The folder that has the former files; `None` if the demo was not unpacked before.
    pub moved_to: Option<PathBuf>,
}

/// Restores the demo's original files in the same folder, so that a shell in it sees them. The former files and the
/// recorded runs move to a folder next to it, so that nothing is lost.
pub fn reset(data_dir: &Path) -> Result<RestoredDemo, DemoUnpackError> {
    reset_files(data_dir, &embedded_files())
}

fn reset_files(data_dir: &Path, files: &DemoFiles<'_>) -> Result<RestoredDemo, DemoUnpackError> {
    let folder = files.folder(data_dir);
    let moved_to = if folder.exists() {
        Some(move_former_demo(data_dir, &folder)?)
    } else {
        None
    };
    Ok(RestoredDemo {
        workspace: unpack_files(data_dir, files)?,
        moved_to,
    })
}

/// Moves the content of the demo's folder and its recorded runs into a new folder. Returns the former workspace.
fn move_former_demo(data_dir: &Path, folder: &Path) -> Result<PathBuf, DemoUnpackError> {
    let former = (1..=u32::MAX)
        .map(|n| folder.with_extension(format!("former-{n}")))
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.with_extension("former"));
    let workspace = folder.join("demo");
    let kept = former.join("demo");
    create_folder(&kept)?;
    // The marker becomes empty first: the folder is then not a complete demo, and the next command unpacks the rest. It
    // stays, because an open workbench loads the folder again during the reset, and the folder is a demo all the time.
    let marker = folder.join(MARKER_FILE);
    let kept_marker = former.join(MARKER_FILE);
    let digest = storage::read_regular_file(&marker, MAX_MARKER_BYTES).unwrap_or_default();
    storage::create_new_file(&kept_marker, &digest)
        .map_err(|error| io_error(&kept_marker, error))?;
    storage::replace_file(&marker, b"").map_err(|error| io_error(&marker, error))?;
    create_folder(&workspace)?;
    for name in list_names(&workspace)? {
        rename(&workspace.join(&name), &kept.join(&name))?;
    }
    for name in list_names(folder)? {
        if name != "demo" && name != MARKER_FILE {
            rename(&folder.join(&name), &former.join(&name))?;
        }
    }
    // Runs of the edited files would be stale verdicts of the restored ones.
    let root = workspace
        .canonicalize()
        .map_err(|error| io_error(&workspace, error))?;
    let runs = default_runs_folder(data_dir, &root, "demo");
    if runs.exists() {
        rename(&runs, &former.join("recorded-runs"))?;
    }
    Ok(kept)
}

/// Returns the names in a folder; none if it does not exist.
fn list_names(folder: &Path) -> Result<Vec<OsString>, DemoUnpackError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error(folder, error)),
    };
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()
        .map_err(|error| io_error(folder, error))
}

/// Creates a folder with mode 0700. With the usual mode, dicta would refuse the demo under a umask that lets other users
/// write.
fn create_folder(path: &Path) -> Result<(), DemoUnpackError> {
    storage::create_private_folder(path).map_err(|error| io_error(path, error))
}

fn rename(from: &Path, to: &Path) -> Result<(), DemoUnpackError> {
    fs::rename(from, to).map_err(|error| io_error(to, error))
}

fn io_error(path: &Path, source: std::io::Error) -> DemoUnpackError {
    DemoUnpackError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Returns the files of the demo in this program.
fn embedded_files() -> DemoFiles<'static> {
    let mut files = Vec::new();
    let mut folders = vec![&EMBEDDED_DEMO];
    while let Some(folder) = folders.pop() {
        for entry in folder.entries() {
            match entry {
                DirEntry::Dir(inner) => folders.push(inner),
                DirEntry::File(file) if file.path().ends_with(EMPTY_FOLDER_FILE) => {}
                DirEntry::File(file) => {
                    let name = file.path().to_string_lossy().into_owned();
                    files.push((name, Cow::Borrowed(file.contents())));
                }
            }
        }
    }
    // The digest in the folder's name depends on the order of the files.
    files.sort_by(|a, b| a.0.cmp(&b.0));
    DemoFiles::new(files)
}

/// Returns the folder of this version of the demo, which may not be unpacked yet.
pub fn folder(data_dir: &Path) -> PathBuf {
    embedded_files().folder(data_dir)
}

fn unpack_files(data_dir: &Path, files: &DemoFiles<'_>) -> Result<PathBuf, DemoUnpackError> {
    let folder = files.folder(data_dir);
    let workspace = folder.join("demo");
    if is_complete(&folder, files) {
        return Ok(workspace);
    }
    storage::create_own_folder(data_dir).map_err(|error| io_error(data_dir, error))?;
    if folder.exists() {
        // A reset emptied it, or was interrupted. The folder stays, because a shell may be in it.
        fill_folder(&folder, files)?;
        return Ok(workspace);
    }
    // The folder gets its name last, so that an interrupted unpacking leaves no half demo behind.
    let temp = tempfile::Builder::new()
        .prefix(".demo-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(data_dir)
        .map_err(|error| io_error(data_dir, error))?;
    fill_folder(temp.path(), files)?;
    match fs::rename(temp.path(), &folder) {
        Ok(()) => {
            // The folder has been renamed, so there is nothing left to delete.
            let _moved = temp.keep();
            storage::sync_folder(data_dir).map_err(|error| io_error(data_dir, error))?;
            Ok(workspace)
        }
        // Another process was faster; it unpacked the same content.
        Err(_) if is_complete(&folder, files) => Ok(workspace),
        Err(error) => Err(io_error(&folder, error)),
    }
}

/// Returns true if all files of the demo were unpacked into the folder.
fn is_complete(folder: &Path, files: &DemoFiles<'_>) -> bool {
    storage::read_regular_file(&folder.join(MARKER_FILE), MAX_MARKER_BYTES)
        .is_ok_and(|marker| marker == files.digest.0.as_bytes())
}

/// Writes the demo's files that a folder lacks, and then the marker.
fn fill_folder(folder: &Path, files: &DemoFiles<'_>) -> Result<(), DemoUnpackError> {
    for (name, bytes) in &files.files {
        let path = folder.join(name);
        create_folder(path.parent().unwrap_or(folder))?;
        match storage::create_private_file(&path, bytes) {
            // Another process restores the demo too, with the same content.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => written.map_err(|error| io_error(&path, error))?,
        }
    }
    let marker = folder.join(MARKER_FILE);
    // The marker is the last file; a folder with the digest in it is complete.
    storage::replace_file(&marker, files.digest.0.as_bytes())
        .map_err(|error| io_error(&marker, error))
}

/// Returns the folder with the demo's recorded runs, if `root` is an unpacked demo.
pub(super) fn find_demo_runs(root: &Path) -> Option<PathBuf> {
    let folder = root.parent()?;
    folder
        .join(MARKER_FILE)
        .is_file()
        .then(|| folder.join(RUNS_FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> DemoFiles<'_> {
        DemoFiles::new(vec![
            ("demo/dicta.yaml".to_owned(), Cow::Borrowed(text.as_bytes())),
            ("demo/transcripts/a.jsonl".to_owned(), Cow::Borrowed(b"{}")),
            ("runs/r/events.jsonl".to_owned(), Cow::Borrowed(b"{}")),
        ])
    }

    #[test]
    fn edited_demo_is_kept_and_a_newer_demo_gets_its_own_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("data");
        let first = unpack_files(&data, &files("v1")).expect("unpacked");
        assert!(first.join("transcripts/a.jsonl").is_file());
        assert!(
            find_demo_runs(&first)
                .expect("it is")
                .join("r/events.jsonl")
                .is_file()
        );
        fs::write(first.join("dicta.yaml"), "edited").expect("written");
        let again = unpack_files(&data, &files("v1")).expect("still there");
        assert_eq!(again, first);
        assert_eq!(
            fs::read_to_string(again.join("dicta.yaml")).expect("text"),
            "edited"
        );
        let newer = unpack_files(&data, &files("v2")).expect("unpacked");
        assert_ne!(newer, first);
        let left: Vec<_> = fs::read_dir(&data).expect("entries").collect();
        assert_eq!(left.len(), 2, "no temporary folder stays: {left:?}");
    }

    #[test]
    fn demo_is_private_whatever_the_umask() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = unpack_files(&dir.path().join("data"), &files("v1")).expect("unpacked");
        let mode = |path: &Path| {
            let meta = path.metadata().expect("it exists");
            meta.permissions().mode() & 0o777
        };
        for (path, expected) in [
            ("..", 0o700),
            ("", 0o700),
            ("transcripts", 0o700),
            ("dicta.yaml", 0o600),
            ("transcripts/a.jsonl", 0o600),
        ] {
            assert_eq!(mode(&root.join(path)), expected, "{path}");
        }
    }

    #[test]
    fn reset_demo_stays_in_its_folder_and_keeps_edits_and_runs_next_to_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("data");
        let root = unpack_files(&data, &files("v1")).expect("unpacked");
        let runs = default_runs_folder(&data, &root, "demo");
        fs::create_dir_all(runs.join("r")).expect("a run");
        fs::write(root.join("dicta.yaml"), "edited").expect("written");
        fs::write(root.join("mine.yaml"), "mine").expect("written");
        // A shell in the folder refers to its inode.
        let inode =
            |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().expect("it exists"));
        let before = inode(&root);
        let restored = reset_files(&data, &files("v1")).expect("restored");
        assert_eq!((&restored.workspace, inode(&root)), (&root, before));
        let text = |path: &Path| fs::read_to_string(path).expect("text");
        assert_eq!(text(&root.join("dicta.yaml")), "v1");
        assert!(!root.join("mine.yaml").exists() && !runs.exists());
        let former = restored.moved_to.expect("the former files");
        assert_eq!(text(&former.join("dicta.yaml")), "edited");
        assert_eq!(text(&former.join("mine.yaml")), "mine");
        assert!(former.with_file_name("recorded-runs").join("r").is_dir());
        assert!(find_demo_runs(&root).is_some_and(|runs| runs.join("r").is_dir()));
        let again = reset_files(&data, &files("v1")).expect("restored");
        assert_ne!(again.moved_to, Some(former));
    }

    #[test]
    fn demo_stays_a_demo_during_a_reset_and_an_interrupted_reset_is_completed() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("data");
        let root = unpack_files(&data, &files("v1")).expect("unpacked");
        let folder = root.parent().expect("a parent").to_owned();
        let former = move_former_demo(&data, &folder).expect("moved");
        // An open workbench loads the folder now.
        assert!(find_demo_runs(&root).is_some(), "the badge DEMO stays");
        assert!(find_demo_runs(&former).is_some());
        assert!(!root.join("dicta.yaml").exists());
        // Here, the reset ends early, and the next command unpacks the rest.
        let again = unpack_files(&data, &files("v1")).expect("unpacked");
        assert_eq!(again, root);
        assert!(root.join("dicta.yaml").is_file() && root.join("transcripts/a.jsonl").is_file());
    }

    #[test]
    fn concurrent_processes_unpack_the_demo_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let content = files("v1");
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| unpack_files(dir.path(), &content)))
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().expect("no panic").expect("unpacked"))
                .collect()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(fs::read_dir(dir.path()).expect("entries").count(), 1);
    }

    #[test]
    fn uncreatable_data_directory_is_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("a file");
        let error = unpack_files(&file.join("x"), &files("v1"))
            .expect_err("no folder")
            .to_string();
        assert!(
            error.starts_with("the demo cannot be unpacked: ")
                && error.ends_with("; DICTA_DATA_DIR selects another folder"),
            "{error}"
        );
    }
}
