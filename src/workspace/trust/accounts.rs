//! The user that runs dicta, and the groups that only this user is in.
//!
//! Responsible for reading `/etc/passwd` and `/etc/group`. A user or group that only a directory service knows counts
//! as unknown, so its group is not private.

use std::path::Path;

use crate::storage::{self, ROOT};

/// The size limit of a file of accounts, in bytes.
const MAX_ACCOUNTS_BYTES: u64 = 64 << 20;

/// The local accounts, as the text of both files.
#[derive(Debug, Clone, Default)]
pub(super) struct Accounts {
    /// The user that runs dicta.
    pub(super) user: u32,
    /// The text of `/etc/passwd`.
    pub(super) passwd: String,
    /// The text of `/etc/group`.
    pub(super) group: String,
}

/// A line of `/etc/passwd`.
struct PasswdEntry<'t> {
    name: &'t str,
    uid: u32,
    gid: u32,
}

impl Accounts {
    /// Reads the accounts of this machine.
    pub(super) fn from_system() -> Self {
        // An unreadable file contains no account, so no group is private.
        let read = |path| {
            storage::read_regular_text(Path::new(path), MAX_ACCOUNTS_BYTES).unwrap_or_default()
        };
        Self {
            user: rustix::process::geteuid().as_raw(),
            passwd: read("/etc/passwd"),
            group: read("/etc/group"),
        }
    }

    /// Returns the home of the user, if it is known. The root folder is not a home.
    pub(super) fn home(&self) -> Option<&Path> {
        let line = self.passwd.lines().find(|line| {
            let uid = line.split(':').nth(2).and_then(|uid| uid.parse().ok());
            uid == Some(self.user)
        })?;
        let home = Path::new(line.split(':').nth(5)?);
        (home.is_absolute() && home.parent().is_some()).then_some(home)
    }

    /// Returns true if files of this owner are safe: the owner is the user or root.
    pub(super) fn is_trusted_owner(&self, uid: u32) -> bool {
        uid == self.user || uid == ROOT
    }

    /// Returns true if no other user than this one and root is in the group.
    pub(super) fn is_private_group(&self, gid: u32) -> bool {
        let Some((name, members)) = self.find_group(gid) else {
            return false;
        };
        let is_own = |uid: u32| self.is_trusted_owner(uid);
        let is_own_name = |name: &str| {
            self.entries()
                .any(|user| user.name == name && is_own(user.uid))
        };
        // Members of a group are listed in it, or have it as their primary group.
        let others_listed = members.iter().any(|member| !is_own_name(member));
        let others_primary = self
            .entries()
            .any(|user| user.gid == gid && !is_own(user.uid));
        if others_listed || others_primary {
            return false;
        }
        // A group of another name and number may have members that only a directory service knows.
        self.entries()
            .filter(|user| is_own(user.uid))
            .any(|user| user.name == name || user.gid == gid)
    }

    /// Returns an owner for messages: `mallory (uid 1001)`, or `uid 1001` if the name is unknown.
    pub(super) fn describe_user(&self, uid: u32) -> String {
        let entry = self.entries().find(|user| user.uid == uid);
        entry.map_or_else(
            || format!("uid {uid}"),
            |user| format!("{} (uid {uid})", user.name),
        )
    }

    fn entries(&self) -> impl Iterator<Item = PasswdEntry<'_>> {
        self.passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let mut numbers = fields.skip(1).map(|field| field.parse().ok());
            Some(PasswdEntry {
                name,
                uid: numbers.next()??,
                gid: numbers.next()??,
            })
        })
    }

    /// Returns the name and the listed members of a group.
    fn find_group(&self, gid: u32) -> Option<(&str, Vec<&str>)> {
        self.group.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let id: u32 = fields.nth(1)?.parse().ok()?;
            let members = fields.next().unwrap_or_default();
            let members = members.split(',').map(str::trim);
            (id == gid).then(|| (name, members.filter(|name| !name.is_empty()).collect()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                          bob:x:1001:1001::/home/bob:/bin/sh\ncid:x:1002:100::/:/bin/sh\ndan:x:1003:100::/:/bin/sh\n\
                          eve:x:1004:1004::/:/bin/sh\nbroken\n";
    const GROUP: &str = "root:x:0:\nann:x:1000:\nbob:x:1001:ann\nusers:x:100:\nstaff:x:50:\neve:x:1004:bob\nbroken\n";

    fn accounts(user: u32) -> Accounts {
        Accounts {
            user,
            passwd: PASSWD.to_owned(),
            group: GROUP.to_owned(),
        }
    }

    #[test]
    fn only_a_group_without_other_members_is_private() {
        assert!(accounts(1000).is_private_group(1000), "her own group");
        assert!(accounts(1000).is_private_group(0), "root may write anyway");
        assert!(!accounts(1000).is_private_group(1001), "bob's own group");
        assert!(!accounts(1002).is_private_group(100), "dan has it, too");
        assert!(!accounts(1004).is_private_group(1004), "bob is in it");
        assert!(!accounts(1000).is_private_group(50), "members are unknown");
        assert!(
            !accounts(1000).is_private_group(777),
            "the group is unknown"
        );
        assert!(
            !accounts(5000).is_private_group(5000),
            "the user is unknown"
        );
    }

    #[test]
    fn owners_are_named_for_messages() {
        assert_eq!(accounts(1000).describe_user(1001), "bob (uid 1001)");
        assert_eq!(accounts(1000).describe_user(4711), "uid 4711");
    }
}
