//! The file with the secret of this installation.
//!
//! Responsible for reading and creating it. [`InstallationSecret`] computes what dicta derives from it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::model::InstallationSecret;

/// Reads the secret at `path`, or creates it there with 32 bytes and mode 0600.
///
/// If two processes create it at once, one wins and both use its secret.
pub fn load_or_create_installation_secret(path: &Path) -> io::Result<InstallationSecret> {
    match load_installation_secret(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Any error except "not found" must not lead to a new secret: it would change every delimiter.
        done => return done,
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    // If dicta creates the folder, only its user can read it, whatever the umask.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut bytes = [0; 32];
    // The system's random source; no crate is necessary for 32 bytes.
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // Temporary files have mode 0600, and linking one into place never overwrites another process's file.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&bytes)?;
    // Write the bytes to disk first: a crash must not leave an empty secret under its final name.
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(InstallationSecret::new(bytes)),
        // Another process was faster, so use its secret.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            load_installation_secret(path)
        }
        Err(error) => Err(error.error),
    }
}

/// Reads the secret at `path`.
pub fn load_installation_secret(path: &Path) -> io::Result<InstallationSecret> {
    let bytes = fs::read(path)?;
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
        fs::write(&path, "short").expect("written");
        assert!(load_or_create_installation_secret(&path).is_err());
    }
}
