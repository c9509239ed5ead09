//! The permission bits and the user that all checks of owners use.

/// The user id of root.
pub const ROOT: u32 = 0;
/// In a folder with this permission bit, users cannot rename or replace the files of others.
pub const STICKY: u32 = 0o1000;
/// The permission of everyone to write.
pub const OTHERS_WRITE: u32 = 0o002;
