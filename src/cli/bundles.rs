//! Bundles as arguments: `dicta show FILE`, `dicta replay FILE` and `dicta open FILE` open one anywhere.
//!
//! Responsible for the folder into which a bundle is unpacked. It is private, and removed at the end of the command.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::CommandCx;
use super::error::CommandError;
use crate::record::{RecordedRun, RunStore, is_bundle, unpack_bundle};
use crate::run::find_record_key;
use crate::storage;
use crate::workspace::data_dir;

/// The beginning of the name of an unpacked bundle.
const FOLDER_PREFIX: &str = "bundle-";
/// The age after which the folder of a command that was killed is removed.
const MAX_FOLDER_AGE: Duration = Duration::from_hours(24);

/// An unpacked bundle.
pub(super) struct OpenedBundle {
    /// The runs of the bundle.
    pub(super) store: RunStore,
    /// The exported run.
    pub(super) run: RecordedRun,
    /// The folder, which is removed when it is dropped.
    _folder: TempDir,
}

impl OpenedBundle {
    /// Returns true if a name is that of a bundle.
    pub(super) fn is_bundle_name(name: &str) -> bool {
        let path = Path::new(name);
        path.is_file() && is_bundle(path)
    }

    /// Opens a bundle; `None` if the name is not that of a bundle.
    pub(super) fn open(name: &str, cx: &CommandCx) -> Result<Option<Self>, CommandError> {
        if !Self::is_bundle_name(name) {
            return Ok(None);
        }
        let path = Path::new(name);
        let parent =
            data_dir(&cx.env).map_err(|error| CommandError::from_error_at(name, &error))?;
        storage::create_own_folder(&parent)
            .map_err(|error| CommandError::from_error_at(name, &error))?;
        if let Ok(now) = cx.clock.wall_time().0.parse::<jiff::Timestamp>() {
            let now = SystemTime::from(now);
            storage::remove_expired_folders(&parent, FOLDER_PREFIX, MAX_FOLDER_AGE, now);
        }
        let folder = tempfile::Builder::new()
            .prefix(FOLDER_PREFIX)
            .tempdir_in(&parent)
            .map_err(|error| CommandError::from_error_at(name, &error))?;
        let manifest =
            unpack_bundle(path, folder.path()).map_err(|error| CommandError::from_error(&error))?;
        let dir = folder.path().join("runs");
        let key = find_record_key(&cx.env);
        let run = RecordedRun {
            dir: dir.join(&manifest.run.0),
            id: manifest.run,
            key: key.clone(),
        };
        let store = RunStore {
            dir,
            extra_dirs: Vec::new(),
            key,
        };
        Ok(Some(Self {
            store,
            run,
            _folder: folder,
        }))
    }
}
