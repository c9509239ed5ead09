//! The file with the secret of this installation.
//!
//! Responsible for reading and creating it. [`InstallationSecret`] computes what dicta derives from it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crate::model::InstallationSecret;
use crate::storage;

/// The file's name in the data directory.
pub const SECRET_FILE: &str = "secret";

/// Reads the secret at `path`, or creates it there with 32 bytes and mode 0600.
///
/// If two processes create it at once, one wins and both use its secret. The error names the file and the fix.
pub fn load_or_create_installation_secret(path: &Path) -> io::Result<InstallationSecret> {
    match load_installation_secret(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Any error except "not found" must not lead to a new secret: it would change every delimiter.
        done => return done,
    }
    let unusable = |error| explain_unusable(path, error);
    storage::create_own_folder(path.parent().unwrap_or(Path::new("."))).map_err(unusable)?;
    let mut bytes = [0; 32];
    // The system's random source; no crate is necessary for 32 bytes.
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    match storage::create_private_file(path, &bytes) {
        Ok(()) => Ok(InstallationSecret::new(bytes)),
        // Another process was faster, so use its secret.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            load_installation_secret(path)
        }
        Err(error) => Err(unusable(error)),
    }
}

/// Adds the file and the fix to an error of the system.
fn explain_unusable(path: &Path, error: io::Error) -> io::Error {
    // dicta's own errors have both.
    if error.raw_os_error().is_none() && !storage::has_new_content(&error) {
        return error;
    }
    let why = format!(
        "{}: {error}; set DICTA_DATA_DIR to a folder of your own",
        path.display()
    );
    io::Error::new(error.kind(), why)
}

/// Reads the secret at `path`. An error names the file and the fix, except for a file that does not exist.
pub fn load_installation_secret(path: &Path) -> io::Result<InstallationSecret> {
    // One byte more than a secret has shows that the file is not one.
    let bytes = storage::read_private_file(path, 33).map_err(|error| match error.kind() {
        // No fault: a new installation has no secret yet.
        io::ErrorKind::NotFound => error,
        _ => explain_unusable(path, error),
    })?;
    let bytes = bytes.try_into().map_err(|_| {
        let why = format!(
            "{}: expected 32 bytes; delete the file, and dicta creates a new secret",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, why)
    })?;
    Ok(InstallationSecret::new(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secret_is_created_once_with_mode_0600() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("deep/secret");
        let first = load_or_create_installation_secret(&path).expect("made");
        assert_eq!(
            load_or_create_installation_secret(&path).expect("read"),
            first
        );
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let folder = fs::metadata(dir.path().join("deep")).expect("there");
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
        // With the secret, others could close a block of a prompt, so a file that they can read is not a secret.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
        let why = load_or_create_installation_secret(&path).expect_err("readable");
        assert!(why.to_string().contains("chmod 600"), "{why}");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let why = load_or_create_installation_secret(&link).expect_err("a link");
        assert!(why.to_string().contains("symbolic link"), "{why}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        fs::write(&path, "short").expect("written");
        let why = load_or_create_installation_secret(&path).expect_err("short");
        assert!(why.to_string().contains("expected 32 bytes"), "{why}");
        // The kernel's own folder takes no new folder.
        let path = Path::new("/proc/dicta-test/secret");
        let why = load_or_create_installation_secret(path).expect_err("no folder");
        let why = why.to_string();
        assert!(
            why.ends_with("; set DICTA_DATA_DIR to a folder of your own"),
            "{why}"
        );
        assert_eq!(why.matches("dicta-test/secret").count(), 1, "{why}");
    }
}
