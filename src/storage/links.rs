//! Symbolic links: the file at the end of a chain of links, and the owners of links.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::permission_bits::{OTHERS_WRITE, ROOT, STICKY};

/// The largest number of links in a chain. Linux has the same limit.
const MAX_LINKS: usize = 40;

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
    follow(path, |_| Ok(()))
}

/// As [`follow_links`], for a file that is written. A link that another user made in a folder for everyone is an error:
/// in `/tmp`, it could lead an output to any file of this user.
pub(super) fn follow_links_for_writing(path: &Path) -> io::Result<LinkTarget> {
    follow(path, |link| refuse_planted(link, "symbolic link"))
}

/// Returns an error for a link, pipe or device that another user made in a folder for everyone.
///
/// Linux has such a rule, too (`fs.protected_symlinks`). dicta follows links itself, so the system does not see that. The
/// rule of the system for pipes applies only to programs that would create a file.
pub(super) fn refuse_planted(path: &Path, what: &str) -> io::Result<()> {
    let folder = fs::metadata(parent_folder(path))?;
    let uid = fs::symlink_metadata(path)?.uid();
    let user = rustix::process::geteuid().as_raw();
    if !is_planted(uid, (folder.uid(), folder.mode()), user) {
        return Ok(());
    }
    let why = format!(
        "another user made the {what} {} in a folder that everyone may write; name another file",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Returns the folder of a file. A path without a folder is in the current one.
pub(super) fn parent_folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns true if a link is in a sticky folder that everyone may write, and someone else owns it: neither this user nor
/// the owner of the folder.
fn is_planted(link_owner: u32, (folder_owner, folder_mode): (u32, u32), user: u32) -> bool {
    let is_shared = folder_mode & STICKY != 0 && folder_mode & OTHERS_WRITE != 0;
    is_shared && link_owner != user && link_owner != folder_owner
}

fn follow(path: &Path, check: impl Fn(&Path) -> io::Result<()>) -> io::Result<LinkTarget> {
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
                check(&at)?;
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

/// A symbolic link on the way from a path to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathLink {
    /// The link itself. Its folder contains no further link.
    pub path: PathBuf,
    /// The link's owner.
    pub uid: u32,
}

/// Returns all symbolic links that the system follows from a path to its file, in order: those of its folders, and those
/// that links lead to. Ends at a part that is missing.
pub fn list_links(path: &Path) -> Vec<PathLink> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = Vec::new();
    let mut at = PathBuf::new();
    // The parts to come, the next one last.
    let mut rest: Vec<OsString> = split_reversed(&path);
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        // An absolute part, which is the root, replaces the path so far.
        at.push(part);
        let Ok(meta) = fs::symlink_metadata(&at) else {
            break;
        };
        if !meta.is_symlink() {
            continue;
        }
        let Ok(target) = fs::read_link(&at) else {
            break;
        };
        found.push(PathLink {
            path: at.clone(),
            uid: meta.uid(),
        });
        // The system follows no more links than these.
        if found.len() == MAX_LINKS {
            break;
        }
        // A relative target starts from the link's own folder.
        at.pop();
        rest.extend(split_reversed(&target));
    }
    found
}

/// Returns true if an existing file may have a second name: a hard link, or a path through a symbolic link.
pub fn may_have_other_names(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.nlink() > 1)
        || path.canonicalize().is_ok_and(|real| real != path)
}

fn split_reversed(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let mut parts: Vec<OsString> = parts.map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
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
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    fn link_of_another_user_in_a_folder_for_everyone_is_not_followed_for_writing() {
        const ANN: u32 = 1000;
        const BOB: u32 = 1001;
        let tmp = (ROOT, 0o41777);
        assert!(is_planted(BOB, tmp, ANN));
        assert!(is_planted(BOB, tmp, ROOT));
        assert!(!is_planted(ANN, tmp, ANN), "her own link");
        assert!(!is_planted(ROOT, tmp, ANN), "the owner of the folder");
        // In other folders, links of colleagues are usual.
        assert!(!is_planted(BOB, (BOB, 0o40775), ANN));
        assert!(!is_planted(BOB, (ROOT, 0o41770), ANN));
        let dir = tempfile::tempdir().expect("a folder");
        let mode = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(dir.path(), mode).expect("mode");
        let (target, link) = (dir.path().join("report.md"), dir.path().join("link"));
        symlink(&target, &link).expect("linked");
        let followed = follow_links_for_writing(&link).expect("this user's link");
        assert_eq!(followed, LinkTarget::Path(target));
        // Only root can give a link to another user.
        let other = rustix::process::geteuid().as_raw() + 1;
        if std::os::unix::fs::lchown(&link, Some(other), None).is_ok() {
            let why = follow_links_for_writing(&link).expect_err("a planted link");
            assert!(why.to_string().contains("another user made"), "{why}");
            assert!(follow_links(&link).is_ok(), "it is only read");
        }
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
    fn all_links_on_the_way_to_a_file_are_listed() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        fs::create_dir_all(root.join("real/rubrics")).expect("made");
        fs::create_dir_all(root.join("shared")).expect("made");
        fs::write(root.join("real/rubrics/a.yaml"), "x").expect("written");
        symlink("../real/./rubrics", root.join("shared/middle")).expect("linked");
        symlink(root.join("shared/middle"), root.join("rubrics")).expect("linked");
        symlink("a.yaml", root.join("real/rubrics/b.yaml")).expect("linked");
        let list = |path: &str| {
            let links = list_links(&root.join(path)).into_iter();
            links
                .map(|link| {
                    let path = link.path.strip_prefix(&root).expect("inside").to_owned();
                    path.to_str().expect("Unicode").to_owned()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            list("rubrics/b.yaml"),
            ["rubrics", "shared/middle", "real/rubrics/b.yaml"]
        );
        assert_eq!(
            list("shared/../rubrics/a.yaml"),
            ["rubrics", "shared/middle"]
        );
        assert_eq!(list("real/rubrics/a.yaml"), [""; 0]);
        assert_eq!(list("missing/rubrics"), [""; 0]);
        symlink("loop", root.join("loop")).expect("linked");
        assert_eq!(list("loop").len(), MAX_LINKS);
        let own = fs::symlink_metadata(root.join("rubrics")).expect("there");
        assert_eq!(list_links(&root.join("rubrics"))[0].uid, own.uid());
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
