//! The owners and permissions of a workspace's files.
//!
//! Responsible for finding files that another user owns or can write. Reads metadata only.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::accounts::Accounts;
use crate::storage::{OTHERS_WRITE, PathLink, STICKY, list_links};

/// The permission bits of a mode.
const PERMISSION_BITS: u32 = 0o7777;
/// The permission of the group to write.
const GROUP_WRITE: u32 = 0o020;
/// The attribute of a file with an access control list, on Linux.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// The owner and permissions of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileOwner {
    /// The owner.
    pub(super) uid: u32,
    /// The group.
    pub(super) gid: u32,
    /// The permission bits.
    pub(super) mode: u32,
    /// True for a folder.
    pub(super) is_folder: bool,
    /// True if an access control list gives rights to further users or groups.
    pub(super) has_access_list: bool,
}

impl FileOwner {
    /// Reads the owner of a file; follows symbolic links.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let meta = path.metadata()?;
        Ok(Self {
            uid: meta.uid(),
            gid: meta.gid(),
            mode: meta.mode() & PERMISSION_BITS,
            is_folder: meta.is_dir(),
            // The system removes a list that gives no more rights than the mode.
            has_access_list: rustix::fs::getxattr_query(path, ACCESS_LIST).is_ok(),
        })
    }

    /// Returns true if a user other than the owner, root and this user can change the file.
    fn is_writable_by_others(self, accounts: &Accounts) -> bool {
        // In such a folder, a new file belongs to the user who made it, so its own check refuses it.
        if self.is_folder && self.mode & STICKY != 0 {
            return false;
        }
        // With an access control list, the permission of the group is the most that any user or group of the list has.
        let others_in_group = self.has_access_list || !accounts.is_private_group(self.gid);
        self.mode & OTHERS_WRITE != 0 || (self.mode & GROUP_WRITE != 0 && others_in_group)
    }
}

/// A file or folder that another user owns or can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsafeFile {
    /// The file or folder.
    pub path: PathBuf,
    /// The owner's user id, if the owner is neither the user nor root.
    pub foreign_owner: Option<u32>,
    /// True if other users can write it.
    pub writable: bool,
    /// A description of the owner and the mode: `owned by bob (uid 1001), mode 644`.
    pub description: String,
}

/// Finds the unsafe ones of these files and of all folders above them.
///
/// A user who can write a folder can replace everything below it. The owner of a symbolic link can change where it leads,
/// so the links between a path and its file are searched as well. The search ends at the user's home: dicta trusts the
/// system that contains it.
pub(super) fn find_unsafe_files(
    paths: &[PathBuf],
    accounts: &Accounts,
    read_owner: &dyn Fn(&Path) -> io::Result<FileOwner>,
) -> Vec<UnsafeFile> {
    let home = accounts.home();
    // The set of files has the targets of links, which have owners of their own.
    let (mut seen, mut seen_links) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    for path in paths {
        // A link is safe if its owner, its own folder and its target are safe.
        let target = path.canonicalize().unwrap_or_else(|_| path.clone());
        let links = list_links(path);
        for link in &links {
            if seen_links.insert(link.path.clone()) {
                found.extend(find_link_problem(link, accounts));
            }
        }
        let folders = [path.as_path(), target.as_path()]
            .into_iter()
            .chain(links.iter().map(|link| link.path.as_path()))
            .flat_map(|path| list_folders_above(path, home));
        for path in std::iter::once(path.as_path()).chain(folders) {
            let path = path.to_owned();
            if !seen.insert(path.clone()) {
                continue;
            }
            // A file that is gone is an error of the loader, which reads it.
            let Ok(owner) = read_owner(&path) else {
                continue;
            };
            let foreign = !accounts.is_trusted_owner(owner.uid);
            let writable = owner.is_writable_by_others(accounts);
            if foreign || writable {
                found.push(UnsafeFile {
                    path,
                    foreign_owner: foreign.then_some(owner.uid),
                    writable,
                    description: format!(
                        "owned by {}, mode {:03o}{}",
                        accounts.describe_user(owner.uid),
                        owner.mode,
                        if owner.has_access_list {
                            " with an access control list"
                        } else {
                            ""
                        }
                    ),
                });
            }
        }
    }
    found
}

/// Returns the problem of a link that another user owns, and so can change.
fn find_link_problem(link: &PathLink, accounts: &Accounts) -> Option<UnsafeFile> {
    let is_above_home = accounts
        .home()
        .is_some_and(|home| home.starts_with(&link.path));
    if is_above_home || accounts.is_trusted_owner(link.uid) {
        return None;
    }
    Some(UnsafeFile {
        path: link.path.clone(),
        foreign_owner: Some(link.uid),
        writable: false,
        description: format!(
            "a symbolic link owned by {}",
            accounts.describe_user(link.uid)
        ),
    })
}

/// Returns the folders above a path, from the nearest one to the home or the root.
fn list_folders_above<'p>(
    path: &'p Path,
    home: Option<&'p Path>,
) -> impl Iterator<Item = &'p Path> {
    let is_above_home = move |folder: &Path| {
        home.is_some_and(|home| path.starts_with(home) && !folder.starts_with(home))
    };
    let above = path.ancestors().skip(1);
    // The parent of a relative name is the empty path, and that does not name a folder.
    above.take_while(move |folder| !folder.as_os_str().is_empty() && !is_above_home(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1000;

    fn accounts() -> Accounts {
        Accounts {
            user: USER,
            passwd: "ann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n".to_owned(),
            group: "ann:x:1000:\nbob:x:1001:\n".to_owned(),
        }
    }

    /// Returns the unsafe files of `/w/f` if `/w` and `/w/f` have these owners.
    fn unsafe_files(folder: FileOwner, file: FileOwner) -> Vec<String> {
        let read = |path: &Path| match path.to_str() {
            Some("/w") => Ok(folder),
            Some("/w/f") => Ok(file),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let found = find_unsafe_files(&["/w/f".into()], &accounts(), &read);
        let lines = found.iter().map(|file| {
            format!(
                "{} {:?} {} {}",
                file.path.display(),
                file.foreign_owner,
                file.writable,
                file.description
            )
        });
        lines.collect()
    }

    fn folder(uid: u32, gid: u32, mode: u32) -> FileOwner {
        FileOwner {
            uid,
            gid,
            mode,
            is_folder: true,
            has_access_list: false,
        }
    }

    fn file(uid: u32, gid: u32, mode: u32) -> FileOwner {
        FileOwner {
            is_folder: false,
            ..folder(uid, gid, mode)
        }
    }

    #[test]
    fn files_of_the_user_and_of_root_are_safe() {
        for uid in [USER, 0] {
            let none = unsafe_files(folder(uid, 0, 0o755), file(uid, 1001, 0o644));
            assert_eq!(none, Vec::<String>::new());
        }
        // A usual umask gives the user's private group the permission to write.
        let none = unsafe_files(folder(USER, USER, 0o775), file(USER, USER, 0o664));
        assert_eq!(none, Vec::<String>::new());
        // Everyone can write to /tmp, but not replace the files of others there.
        let none = unsafe_files(folder(0, 0, 0o1777), file(USER, USER, 0o644));
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn file_is_unsafe_if_an_access_control_list_gives_the_permission_to_write() {
        let with_list = |mode: u32| FileOwner {
            has_access_list: true,
            ..file(USER, USER, mode)
        };
        let safe_folder = folder(USER, USER, 0o755);
        assert_eq!(
            unsafe_files(safe_folder, with_list(0o664)),
            ["/w/f None true owned by ann (uid 1000), mode 664 with an access control list"]
        );
        assert_eq!(
            unsafe_files(safe_folder, with_list(0o644)),
            Vec::<String>::new()
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn access_control_list_of_a_file_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        std::fs::write(&path, "x").expect("written");
        let read = || FileOwner::read(&path).expect("read");
        assert!(!read().has_access_list);
        // Version 2, then tag, rights and id of each entry: the owner, user 65534, the group, the mask, and others.
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in [
            (0x01_u16, 6_u16, u32::MAX),
            (0x02, 6, 65534),
            (0x04, 4, u32::MAX),
            (0x10, 6, u32::MAX),
            (0x20, 4, u32::MAX),
        ] {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(path.as_path(), ACCESS_LIST, &list, flags) {
            // The file system of the test has no access control lists.
            Err(rustix::io::Errno::NOTSUP) => {}
            set => {
                set.expect("set");
                assert!(read().has_access_list);
                assert_eq!(read().mode, 0o664, "the mode shows the mask");
            }
        }
    }

    #[test]
    fn folder_above_the_workspace_that_others_can_replace_is_unsafe() {
        let owners = |unsafe_folder: &'static str, owner: FileOwner| {
            move |path: &Path| match path.to_str() {
                Some("/") => Ok::<_, io::Error>(folder(0, 0, 0o755)),
                Some(known) if known == unsafe_folder => Ok(owner),
                Some("/tmp") => Ok(folder(0, 0, 0o1777)),
                Some("/tmp/a/b/w/f") => Ok(file(USER, USER, 0o644)),
                _ => Ok(folder(USER, USER, 0o755)),
            }
        };
        let find = |unsafe_folder, owner| {
            let read = owners(unsafe_folder, owner);
            let found = find_unsafe_files(&["/tmp/a/b/w/f".into()], &accounts(), &read);
            let paths = found.into_iter().map(|file| file.path);
            paths.collect::<Vec<_>>()
        };
        let none: [PathBuf; 0] = [];
        assert_eq!(find("/tmp/a", folder(USER, USER, 0o755)), none);
        assert_eq!(
            find("/tmp/a", folder(USER, USER, 0o777)),
            [PathBuf::from("/tmp/a")]
        );
        assert_eq!(
            find("/tmp/a", folder(1001, 1001, 0o755)),
            [PathBuf::from("/tmp/a")]
        );
        assert_eq!(find("/tmp", folder(0, 0, 0o777)), [PathBuf::from("/tmp")]);
    }

    #[test]
    fn folders_above_the_home_are_not_checked() {
        let accounts = Accounts {
            passwd: "ann:x:1000:1000::/home/ann:/bin/sh\n".to_owned(),
            ..accounts()
        };
        let read = |path: &Path| match path.to_str() {
            Some("/home" | "/") => Ok::<_, io::Error>(folder(65534, 65534, 0o777)),
            Some("/home/ann/w/f") => Ok(file(USER, USER, 0o644)),
            _ => Ok(folder(USER, USER, 0o755)),
        };
        assert_eq!(
            find_unsafe_files(&["/home/ann/w/f".into()], &accounts, &read),
            []
        );
        let elsewhere = find_unsafe_files(&["/home/anna/w/f".into()], &accounts, &read);
        assert_eq!(elsewhere.len(), 2, "{elsewhere:?}");
    }

    #[test]
    fn link_between_a_path_and_its_file_must_be_safe() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["own", "shared"] {
            std::fs::create_dir(root.join(name)).expect("made");
        }
        std::fs::write(root.join("own/a.yaml"), "x").expect("written");
        let shared = root.join("shared");
        std::os::unix::fs::symlink(root.join("own/a.yaml"), shared.join("b")).expect("linked");
        std::os::unix::fs::symlink(shared.join("b"), root.join("c.yaml")).expect("linked");
        let find = |mode: u32| {
            let read = |path: &Path| {
                Ok::<_, io::Error>(FileOwner {
                    mode: if path == shared { mode } else { 0o755 },
                    ..folder(USER, USER, 0)
                })
            };
            let found = find_unsafe_files(&[root.join("c.yaml")], &accounts(), &read);
            let unsafe_folders = found.into_iter().filter(|file| file.writable);
            unsafe_folders.map(|file| file.path).collect::<Vec<_>>()
        };
        let none: [PathBuf; 0] = [];
        assert_eq!(find(0o755), none);
        // Another user can replace the link there.
        assert_eq!(find(0o757), [shared.as_path()]);
        // In a folder with the sticky bit, only the owner of the link can.
        assert_eq!(find(0o1777), none);
        let link = |uid: u32| PathLink {
            path: "/tmp/b".into(),
            uid,
        };
        for uid in [USER, 0] {
            assert_eq!(find_link_problem(&link(uid), &accounts()), None);
        }
        let problem = find_link_problem(&link(1001), &accounts()).expect("bob can change it");
        assert_eq!(problem.foreign_owner, Some(1001));
        assert_eq!(
            problem.description,
            "a symbolic link owned by bob (uid 1001)"
        );
        let at_home = Accounts {
            passwd: "ann:x:1000:1000::/tmp/b/ann:/bin/sh\n".to_owned(),
            ..accounts()
        };
        assert_eq!(find_link_problem(&link(1001), &at_home), None);
    }

    #[test]
    fn files_that_another_user_owns_or_can_write_are_unsafe() {
        assert_eq!(
            unsafe_files(folder(1001, 1001, 0o755), file(1002, 1002, 0o640)),
            [
                "/w/f Some(1002) false owned by uid 1002, mode 640",
                "/w Some(1001) false owned by bob (uid 1001), mode 755",
            ]
        );
        assert_eq!(
            unsafe_files(folder(USER, USER, 0o757), file(USER, 1001, 0o664)),
            [
                "/w/f None true owned by ann (uid 1000), mode 664",
                "/w None true owned by ann (uid 1000), mode 757",
            ]
        );
        // The sticky bit protects the entries of a folder, not the folder's own owner.
        assert_eq!(
            unsafe_files(folder(1001, 0, 0o1777), file(USER, USER, 0o1666)),
            [
                "/w/f None true owned by ann (uid 1000), mode 1666",
                "/w Some(1001) false owned by bob (uid 1001), mode 1777",
            ]
        );
    }
}
