//! Files and folders that only the user may read.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::permission_bits::{ROOT, STICKY};

/// The permission bits of the group and of others.
const OTHERS: u32 = 0o077;

/// Creates a folder and its missing parents with mode 0700, whatever the umask. An existing folder keeps its mode.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a folder that only dicta uses, as [`create_private_folder`] does. An existing one of the user gets mode
/// 0700. The error of a folder of another user, or of one that everyone uses, states how to fix it.
pub fn create_own_folder(path: &Path) -> io::Result<()> {
    create_private_folder(path)?;
    // The opened folder is checked, so no other folder can take its place in between.
    let folder = fs::File::open(path)?;
    let meta = folder.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if meta.mode() & OTHERS == 0 {
        return Ok(());
    }
    if meta.uid() != user && meta.uid() != ROOT {
        return Err(refuse(
            path,
            "another user owns this folder; set DICTA_DATA_DIR to a folder of your own",
        ));
    }
    // A folder such as /tmp belongs to all users, so its mode must stay.
    if meta.mode() & STICKY != 0 {
        return Err(refuse(
            path,
            "all users share this folder; set DICTA_DATA_DIR to a folder inside it",
        ));
    }
    if meta.uid() != user {
        return Err(refuse(
            path,
            &format!(
                "other users can open this folder of root (mode {:03o}); set DICTA_DATA_DIR to a folder of your own",
                meta.mode() & 0o777
            ),
        ));
    }
    folder.set_permissions(Permissions::from_mode(0o700))
}

/// Reads a secret. The error states what makes the file unsafe: a link, another owner, or readers other than the user.
pub fn read_private_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_no_link(path)?;
    // The opened file is checked, so no other file can take its place in between.
    if let Some(problem) = find_private_file_problem(&file.metadata()?) {
        return Err(refuse(path, &problem));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file with a keyed checksum, so that its owner and mode do not matter: some file systems have no modes. A link or
/// a pipe is an error. The content of a longer file is cut, so its checksum is wrong.
pub fn read_signed_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_no_link(path)?;
    if !file.metadata()?.is_file() {
        return Err(refuse(path, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_no_link(path: &Path) -> io::Result<fs::File> {
    // Without NOFOLLOW, a link could name a file that another user chose; without NONBLOCK, a pipe would block.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| {
            if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
                return refuse(path, "it is a symbolic link; replace it by the file itself");
            }
            error
        })
}

/// Returns the reason why a file may not hold a secret, with the fix.
fn find_private_file_problem(meta: &Metadata) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    if !meta.is_file() {
        Some("it is not a file".to_owned())
    } else if meta.uid() != user && meta.uid() != ROOT {
        Some("another user owns it; delete it or take its ownership".to_owned())
    } else if meta.mode() & OTHERS != 0 {
        Some(format!(
            "other users can read it (mode {:03o}): chmod 600 it",
            meta.mode() & 0o777
        ))
    } else {
        None
    }
}

fn refuse(path: &Path, why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{}: {why}", path.display()),
    )
}

/// Deletes the user's own files of a folder whose names begin and end with the given texts, if they are older than
/// `age` at the time `now`. Files that cannot be deleted stay.
pub fn remove_expired_files(
    folder: &Path,
    (prefix, suffix): (&str, &str),
    age: Duration,
    now: SystemTime,
) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named_so = name
            .to_str()
            .is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix));
        // The metadata of an entry is that of a link itself, so a link counts as no file and stays.
        let is_old = || {
            entry.metadata().is_ok_and(|meta| {
                meta.is_file()
                    && meta.uid() == user
                    && meta
                        .modified()
                        .is_ok_and(|at| now.duration_since(at).is_ok_and(|passed| passed > age))
            })
        };
        if is_named_so && is_old() {
            let _stays = fs::remove_file(entry.path());
        }
    }
}

/// Deletes the user's own folders in a folder whose names begin with the given text, as [`remove_expired_files`] does.
pub fn remove_expired_folders(folder: &Path, prefix: &str, age: Duration, now: SystemTime) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named_so = name.to_str().is_some_and(|name| name.starts_with(prefix));
        // A link counts as no folder and stays.
        let is_old = || {
            entry.metadata().is_ok_and(|meta| {
                meta.is_dir()
                    && meta.uid() == user
                    && meta
                        .modified()
                        .is_ok_and(|at| now.duration_since(at).is_ok_and(|passed| passed > age))
            })
        };
        if is_named_so && is_old() {
            let _stays = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn existing_folder_of_dicta_becomes_private() {
        let dir = tempfile::tempdir().expect("a folder");
        let own = dir.path().join("data");
        let mode = || fs::metadata(&own).expect("a folder").mode() & 0o7777;
        create_own_folder(&own).expect("made");
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&own, Permissions::from_mode(0o775)).expect("mode");
        create_own_folder(&own).expect("narrowed");
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&own, Permissions::from_mode(0o1777)).expect("mode");
        let why = create_own_folder(&own).expect_err("shared").to_string();
        assert!(why.contains("all users share this folder"), "{why}");
        assert_eq!(mode(), 0o1777, "a shared folder keeps its mode");
    }

    #[test]
    fn secret_with_other_readers_or_behind_a_link_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("secret");
        fs::write(&path, "0123").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
        let why = read_private_file(&path, 64)
            .expect_err("open to a group")
            .to_string();
        assert!(why.contains("(mode 640): chmod 600 it"), "{why}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        assert_eq!(read_private_file(&path, 64).expect("read"), b"0123");
        assert_eq!(read_private_file(&path, 2).expect("read"), b"01");
        let link = dir.path().join("link");
        symlink(&path, &link).expect("linked");
        let why = read_private_file(&link, 64)
            .expect_err("a link")
            .to_string();
        assert!(why.contains("is a symbolic link"), "{why}");
        let missing = read_private_file(&dir.path().join("none"), 64).expect_err("missing");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_old_files_with_the_name_expire() {
        let dir = tempfile::tempdir().expect("a folder");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let make = |name: &str, age: u64| {
            let file = fs::File::create(dir.path().join(name)).expect("made");
            file.set_modified(now - Duration::from_secs(age))
                .expect("set");
        };
        make("copied-old.txt", 101);
        make("copied-new.txt", 99);
        make("other-old.txt", 101);
        symlink("other-old.txt", dir.path().join("copied-link.txt")).expect("linked");
        remove_expired_files(
            dir.path(),
            ("copied-", ".txt"),
            Duration::from_secs(100),
            now,
        );
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .expect("entries")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["copied-link.txt", "copied-new.txt", "other-old.txt"]);
    }
}
