//! Symbolic links: the file at the end of a chain of links, and the owners of links.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The largest number of links in a chain. Linux has the same limit.
const MAX_LINKS: usize = 40;
/// The user id of root.
const ROOT: u32 = 0;

/// The place to which a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// A path that is not a link. It may not exist.
    Path(PathBuf),
    /// Standard output of this process.
    StandardOutput,
    /// Standard error of this process.
    StandardError,
    /// Another open file of this process, such as `/dev/fd/63`.
    OpenFile(PathBuf),
}

/// Follows the links at the end of a path, also if the last one leads to a missing file.
pub(super) fn follow_links(path: &Path) -> io::Result<LinkTarget> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        // These are links too, but what they lead to is an open file and must not be replaced.
        match at.to_str() {
            Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => {
                return Ok(LinkTarget::StandardOutput);
            }
            Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => {
                return Ok(LinkTarget::StandardError);
            }
            _ if at.starts_with("/dev/fd") || at.starts_with("/proc/self/fd") => {
                return Ok(LinkTarget::OpenFile(at));
            }
            _ => {}
        }
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_symlink() => {
                let next = fs::read_link(&at)?;
                // A relative link starts from its own folder.
                at = at.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok(_) => return Ok(LinkTarget::Path(at)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(LinkTarget::Path(at));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Returns the first symbolic link of a path that neither this user nor root owns.
///
/// Another user can change such a link at any time, and so choose the folder that dicta reads or writes.
pub fn find_foreign_link(path: &Path) -> Option<PathBuf> {
    find_link_not_owned_by(path, &[rustix::process::geteuid().as_raw(), ROOT])
}

/// Returns an error that names the first symbolic link of a path that neither this user nor root owns.
pub fn refuse_foreign_links(path: &Path) -> io::Result<()> {
    match find_foreign_link(path) {
        None => Ok(()),
        Some(link) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "another user owns the symbolic link {}; name its target instead, or remove the link",
                link.display()
            ),
        )),
    }
}

fn find_link_not_owned_by(path: &Path, trusted: &[u32]) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    for component in path.components() {
        at.push(component);
        if matches!(component, Component::Normal(_))
            && let Ok(meta) = fs::symlink_metadata(&at)
            && meta.is_symlink()
            && !trusted.contains(&meta.uid())
        {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn chain_of_links_leads_to_a_missing_file() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("deep")).expect("made");
        symlink("deep/second", dir.path().join("first")).expect("linked");
        symlink("missing.jsonl", dir.path().join("deep/second")).expect("linked");
        let found = follow_links(&dir.path().join("first")).expect("followed");
        assert_eq!(
            found,
            LinkTarget::Path(dir.path().join("deep/missing.jsonl"))
        );
        symlink("loop", dir.path().join("loop")).expect("linked");
        assert!(follow_links(&dir.path().join("loop")).is_err());
    }

    #[test]
    fn open_files_of_the_process_are_recognized_behind_links() {
        let dir = tempfile::tempdir().expect("a folder");
        let link = dir.path().join("out.jsonl");
        symlink("/dev/stdout", &link).expect("linked");
        assert_eq!(
            follow_links(&link).expect("followed"),
            LinkTarget::StandardOutput
        );
        assert_eq!(
            follow_links(Path::new("/dev/fd/63")).expect("followed"),
            LinkTarget::OpenFile("/dev/fd/63".into())
        );
    }

    #[test]
    fn link_of_another_user_is_found_at_any_place_of_a_path() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        fs::create_dir_all(root.join("real/runs")).expect("made");
        symlink("real", root.join("link")).expect("linked");
        let own = fs::symlink_metadata(root.join("link"))
            .expect("there")
            .uid();
        let path = root.join("link/runs");
        assert_eq!(find_link_not_owned_by(&path, &[own]), None);
        assert_eq!(
            find_link_not_owned_by(&path, &[own + 1]),
            Some(root.join("link"))
        );
        assert_eq!(
            find_link_not_owned_by(&root.join("real/runs"), &[own + 1]),
            None
        );
    }
}
