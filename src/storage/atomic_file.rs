//! A file that replaces another one in one step.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};
use thiserror::Error;

use super::links::{LinkTarget, follow_links_for_writing, parent_folder, refuse_planted};

/// The mode of a file that only the user may read.
const PRIVATE: u32 = 0o600;
/// The mode of any new file, before the umask.
const PUBLIC: u32 = 0o666;
/// The start of the name of a temporary file. Globs skip hidden files, so a temporary file is never an input.
const TEMP_PREFIX: &str = ".dicta-";
/// The end of the name of a temporary file.
const TEMP_SUFFIX: &str = ".tmp";
/// The age from which a temporary file without a lock is the rest of a process that was killed.
const STALE_AGE: Duration = Duration::from_mins(10);

/// A new content for a file. Until [`Self::publish`], readers of the file see the old content; dropping this value
/// keeps the old file.
///
/// A link stays, and the file that it names is replaced. Pipes, devices and standard output are written directly.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// The content so far; `None` after publication, and for a pipe or device.
    unpublished: Option<UnpublishedFile>,
    is_new: bool,
}

/// A temporary file and its final name.
#[derive(Debug)]
struct UnpublishedFile {
    temp: TempPath,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a new content for the file `path`, which need not exist. The temporary file is in the same folder,
    /// because a rename works only within one file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = match follow_links_for_writing(path)? {
            LinkTarget::Path(target) => target,
            // A second open file at position 0 would overwrite what this process already wrote.
            LinkTarget::StandardOutput => {
                return Ok(Self::direct(
                    io::stdout().as_fd().try_clone_to_owned()?.into(),
                ));
            }
            LinkTarget::StandardError => {
                return Ok(Self::direct(
                    io::stderr().as_fd().try_clone_to_owned()?.into(),
                ));
            }
            LinkTarget::OpenFile(path) => {
                return Ok(Self::direct(OpenOptions::new().append(true).open(path)?));
            }
        };
        let old = match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => {
                let why = "it is a folder; name a file in it";
                return Err(io::Error::new(io::ErrorKind::IsADirectory, why));
            }
            Ok(meta) if !meta.is_file() => {
                // Who reads a pipe gets the whole output.
                refuse_planted(&target, "pipe or device")?;
                return Ok(Self::direct(OpenOptions::new().write(true).open(&target)?));
            }
            Ok(meta) => {
                // A rename needs no permission for the file itself, so a write-protected file is refused here.
                drop(OpenOptions::new().write(true).open(&target)?);
                Some(meta)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // The old file may be private, so its replacement is private until it has the old mode.
        let mode = if old.is_some() { PRIVATE } else { PUBLIC };
        let (file, temp) = create_temp_file(&target, mode)?;
        if let Some(old) = &old {
            copy_owner_and_mode(&file, old)?;
        }
        Ok(Self {
            file,
            unpublished: Some(UnpublishedFile { temp, target }),
            is_new: false,
        })
    }

    /// Starts the content of a file with mode 0600 that must not exist.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::create_new(path, PRIVATE)
    }

    /// Starts the content of a file that must not exist. Publication fails if another process creates it before.
    fn create_new(path: &Path, mode: u32) -> io::Result<Self> {
        let (file, temp) = create_temp_file(path, mode)?;
        Ok(Self {
            file,
            unpublished: Some(UnpublishedFile {
                temp,
                target: path.to_owned(),
            }),
            is_new: true,
        })
    }

    fn direct(file: File) -> Self {
        Self {
            file,
            unpublished: None,
            is_new: false,
        }
    }

    /// Returns true if the content goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        self.unpublished.is_none() && self.file.is_terminal()
    }

    /// Returns another handle for writing to the same content.
    pub fn try_clone_file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Replaces the file by the content so far. Later writes go to the same file. Returns once the content and the
    /// name survive a loss of power. Does nothing after the first call.
    pub fn publish(&mut self) -> io::Result<()> {
        let Some(UnpublishedFile { temp, target }) = self.unpublished.take() else {
            return Ok(());
        };
        // Without this sync, a crash after the rename could leave an empty file.
        self.file.sync_all()?;
        if self.is_new {
            temp.persist_noclobber(&target)
        } else {
            temp.persist(&target)
        }
        .map_err(|error| explain_busy_target(error.error))?;
        // The file has its final name, and others may lock it.
        let _unlocked_if_locked = self.file.unlock();
        sync_new_name(parent_folder(&target))
    }

    /// Publishes the whole content. Returns once it survives a loss of power.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.unpublished.is_some() {
            return self.publish();
        }
        match self.file.sync_all() {
            // Pipes and devices cannot be synced.
            Err(error) if is_unsyncable(&error) => Ok(()),
            done => done,
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a whole file in one step. An existing file is replaced.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole(AtomicFile::create(path)?, bytes)
}

/// Writes a whole file with mode 0600 in one step. An existing file is replaced. Replaces a link itself, and not the file
/// that it names: dicta chose the name, so a link there is not the user's wish.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, temp) = create_temp_file(path, PRIVATE)?;
    let file = AtomicFile {
        file,
        unpublished: Some(UnpublishedFile {
            temp,
            target: path.to_owned(),
        }),
        is_new: false,
    };
    write_whole(file, bytes)
}

/// Writes a whole file with a keyed checksum in one step, as [`replace_private_file`] does, but does not wait for the disk.
/// After a loss of power, the file can be damaged. Its checksum is then wrong, and dicta builds the file again.
pub fn replace_signed_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, temp) = create_temp_file(path, PRIVATE)?;
    file.write_all(bytes)?;
    temp.persist(path).map_err(|error| error.error)
}

/// Writes a whole file in one step. An existing file, also a broken link, is an error.
pub fn create_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole(AtomicFile::create_new(path, PUBLIC)?, bytes)
}

/// Writes a whole file with mode 0600 in one step. An existing file, also a broken link, is an error.
pub fn create_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole(AtomicFile::create_new(path, PRIVATE)?, bytes)
}

/// Returns an error with a fix if the target is busy: a container that mounts a single file makes it a mount point.
fn explain_busy_target(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file is a mount point, which no program can replace; mount its folder instead of the file",
        ),
        _ => error,
    }
}

fn write_whole(mut file: AtomicFile, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.finish()
}

/// Returns once the names in a folder survive a loss of power.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems have no sync of folders. They keep the order of operations, or nothing helps.
        Err(error) if is_unsyncable(&error) => Ok(()),
        done => done,
    }
}

/// The error of a file that has its new content, but whose folder was not synced.
#[derive(Debug, Error)]
#[error("{0}; the file has its new content, but a loss of power can undo the change")]
struct UnsyncedName(io::Error);

/// Syncs a folder in which a file just got its new content. [`has_new_content`] recognizes the error.
pub fn sync_new_name(folder: &Path) -> io::Result<()> {
    sync_folder(folder).map_err(|error| io::Error::new(error.kind(), UnsyncedName(error)))
}

/// Returns true if a write failed only after the file got its new content. The error's text then reports it.
pub fn has_new_content(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else {
        return false;
    };
    inner.is::<UnsyncedName>()
}

fn is_unsyncable(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(Errno::INVAL | Errno::ROFS | Errno::NOTSUP | Errno::BADF)
    )
}

fn create_temp_file(target: &Path, mode: u32) -> io::Result<(File, TempPath)> {
    let folder = parent_folder(target);
    let mut hasher = DefaultHasher::new();
    target.file_name().hash(&mut hasher);
    // A killed process leaves its file under this name, so the next writers of the target find it.
    let name = format!("{TEMP_PREFIX}{:016x}", hasher.finish());
    let named = match create_named_temp_file(folder, &name, 0, mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let named = create_named_temp_file(folder, TEMP_PREFIX, 6, mode)?;
            remove_stale_file(
                &folder.join(format!("{name}{TEMP_SUFFIX}")),
                named.as_file(),
            );
            named
        }
        created => created?,
    };
    // The lock shows that the file is in use. Without it, the file counts as in use until it is old.
    let _locked_if_possible = named.as_file().try_lock();
    Ok(named.into_parts())
}

fn create_named_temp_file(
    folder: &Path,
    prefix: &str,
    random_letters: usize,
    mode: u32,
) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(prefix)
        .suffix(TEMP_SUFFIX)
        .rand_bytes(random_letters)
        .make_in(folder, |name| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(name)
        })
}

/// Deletes the temporary file of a process that was killed. It belongs to the user, has no lock, and is older than `new`,
/// a file that was just created: both times come from the file system. Any other file stays.
fn remove_stale_file(path: &Path, new: &File) {
    let is_stale = |meta: &fs::Metadata| {
        let age = new
            .metadata()
            .and_then(|new| Ok(new.modified()?.duration_since(meta.modified()?)));
        meta.is_file()
            && meta.uid() == rustix::process::geteuid().as_raw()
            && meta.nlink() == 1
            && matches!(age, Ok(Ok(age)) if age > STALE_AGE)
    };
    // A pipe or a device is not opened.
    if !fs::symlink_metadata(path).is_ok_and(|meta| is_stale(&meta)) {
        return;
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        // Network file systems lock only files that are open for writing.
        .append(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let Ok(file) = opened else { return };
    if file.try_lock().is_err() {
        return;
    }
    // Only the process with the lock deletes the file, so the path still names it after this check.
    let is_same = match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(locked), Ok(named)) => {
            is_stale(&locked) && (locked.dev(), locked.ino()) == (named.dev(), named.ino())
        }
        _ => false,
    };
    if is_same {
        let _stays = fs::remove_file(path);
    }
}

/// Gives a file the mode of the file that it replaces, and its owner and group if that is possible.
fn copy_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (old.uid(), old.gid()) != (new.uid(), new.gid())
        && std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).is_err()
        && std::os::unix::fs::fchown(file, None, Some(old.gid())).is_err()
        && old.gid() != new.gid()
    {
        // The file now belongs to another group, which must not get the rights of the old one.
        mode &= !0o070 | ((mode & 0o007) << 3);
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn list(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("entries");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn dropped_content_keeps_the_old_file_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("report.md");
        fs::write(&path, "old").expect("written");
        let mut file = AtomicFile::create(&path).expect("begun");
        file.write_all(b"half").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        drop(file);
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert_eq!(list(dir.path()), ["report.md"]);
    }

    #[test]
    fn failed_sync_of_the_folder_is_not_a_failed_write() {
        let dir = tempfile::tempdir().expect("a folder");
        sync_new_name(dir.path()).expect("synced");
        let error = sync_new_name(&dir.path().join("missing")).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(has_new_content(&error));
        let text = error.to_string();
        assert!(text.contains("the file has its new content"), "{text}");
        let error = replace_file(&dir.path().join("missing/a"), b"a").expect_err("no folder");
        assert!(!has_new_content(&error));
    }

    #[test]
    fn replaced_file_keeps_its_mode_and_its_link() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("real")).expect("made");
        let real = dir.path().join("real/report.md");
        fs::write(&real, "old").expect("written");
        fs::set_permissions(&real, Permissions::from_mode(0o640)).expect("mode");
        let link = dir.path().join("link.md");
        symlink("real/report.md", &link).expect("linked");
        replace_file(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("read"), "new");
        let mode = fs::metadata(&real).expect("there").mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(list(dir.path()), ["link.md", "real"]);
        assert_eq!(list(&dir.path().join("real")), ["report.md"]);
    }

    #[test]
    fn new_file_has_the_mode_of_any_new_file() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("plain"), "").expect("written");
        replace_file(&dir.path().join("atomic"), b"x").expect("written");
        create_new_file(&dir.path().join("new"), b"x").expect("written");
        create_private_file(&dir.path().join("private"), b"x").expect("written");
        let mode = |name: &str| fs::metadata(dir.path().join(name)).expect("there").mode();
        assert_eq!(mode("atomic"), mode("plain"));
        assert_eq!(mode("new"), mode("plain"));
        assert_eq!(mode("private") & 0o777, 0o600);
    }

    #[test]
    fn private_file_replaces_a_link_and_not_the_file_that_it_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let (real, link) = (dir.path().join("notes"), dir.path().join("index"));
        fs::write(&real, "of the user").expect("written");
        for replace in [replace_private_file, replace_signed_file] {
            symlink("notes", &link).expect("linked");
            for text in ["one", "two"] {
                replace(&link, text.as_bytes()).expect("written");
                assert_eq!(fs::read_to_string(&link).expect("read"), text);
                let mode = fs::symlink_metadata(&link).expect("there").mode();
                assert_eq!(mode, 0o100_600);
            }
            assert_eq!(fs::read_to_string(&real).expect("read"), "of the user");
            assert_eq!(list(dir.path()), ["index", "notes"]);
            fs::remove_file(&link).expect("removed");
        }
    }

    #[test]
    fn temporary_file_of_a_killed_process_disappears_with_a_later_write() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("labels.jsonl");
        let file = AtomicFile::create(&path).expect("begun");
        let names = list(dir.path());
        let [name] = names.as_slice() else {
            panic!("one file: {names:?}");
        };
        let name = name.as_str();
        let left = dir.path().join(name);
        drop(file);
        let old = fs::metadata(dir.path())
            .and_then(|meta| meta.modified())
            .expect("a time")
            - 2 * STALE_AGE;
        let leave = |modified| {
            let left = File::create(&left).expect("created");
            left.set_modified(modified).expect("set");
            left
        };
        // A file that is in use or young stays.
        let used = leave(old);
        used.lock().expect("locked");
        replace_file(&path, b"one").expect("written");
        assert_eq!(list(dir.path()), [name, "labels.jsonl"]);
        drop(used);
        drop(leave(old + 2 * STALE_AGE));
        replace_file(&path, b"two").expect("written");
        assert_eq!(list(dir.path()), [name, "labels.jsonl"]);
        // The rest of another target stays.
        drop(leave(old));
        replace_file(&dir.path().join("notes.jsonl"), b"").expect("written");
        assert_eq!(list(dir.path()), [name, "labels.jsonl", "notes.jsonl"]);
        replace_file(&path, b"three").expect("written");
        assert_eq!(list(dir.path()), ["labels.jsonl", "notes.jsonl"]);
        assert_eq!(fs::read_to_string(&path).expect("read"), "three");
    }

    #[test]
    fn published_file_has_no_lock() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("out.jsonl");
        let mut file = AtomicFile::create(&path).expect("begun");
        file.publish().expect("published");
        let other = File::open(&path).expect("opened");
        other.try_lock().expect("no other lock");
    }

    #[test]
    fn writes_after_publication_reach_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("out.jsonl");
        let mut file = AtomicFile::create(&path).expect("begun");
        file.write_all(b"one\n").expect("written");
        assert!(!path.exists());
        file.publish().expect("published");
        file.write_all(b"two\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "one\ntwo\n");
        file.finish().expect("finished");
        assert_eq!(list(dir.path()), ["out.jsonl"]);
    }

    #[test]
    fn new_file_never_replaces_another_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("dicta.yaml");
        let mut file = AtomicFile::create_new(&path, PUBLIC).expect("begun");
        file.write_all(b"new").expect("written");
        fs::write(&path, "of another process").expect("written");
        let error = file.finish().expect_err("it exists");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            fs::read_to_string(&path).expect("read"),
            "of another process"
        );
        assert_eq!(list(dir.path()), ["dicta.yaml"]);
    }

    #[test]
    fn pipe_is_written_directly_and_stays_a_pipe() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo ran").success());
        let reader = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                File::open(path)
                    .and_then(|mut file| file.read_to_string(&mut text))
                    .expect("read");
                text
            })
        };
        replace_file(&path, b"through").expect("written");
        assert_eq!(reader.join().expect("no panic"), "through");
        assert!(!fs::metadata(&path).expect("there").is_file());
        replace_file(Path::new("/dev/null"), b"nowhere").expect("written");
        // Only root can give a pipe to another user.
        let other = rustix::process::geteuid().as_raw() + 1;
        if std::os::unix::fs::chown(&path, Some(other), None).is_ok() {
            let shared = Permissions::from_mode(0o1777);
            fs::set_permissions(dir.path(), shared).expect("mode");
            let why = replace_file(&path, b"secret").expect_err("a planted pipe");
            assert!(why.to_string().contains("another user made"), "{why}");
        }
    }

    #[test]
    fn busy_target_is_an_error_with_a_fix() {
        let busy = io::Error::from(rustix::io::Errno::BUSY);
        let why = explain_busy_target(busy);
        assert_eq!(why.kind(), io::ErrorKind::ResourceBusy);
        assert!(why.to_string().contains("mount its folder"), "{why}");
        let full = explain_busy_target(io::ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn folder_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let why = AtomicFile::create(dir.path())
            .expect_err("a folder")
            .to_string();
        assert!(why.contains("name a file in it"), "{why}");
    }
}
