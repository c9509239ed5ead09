//! Files and folders that dicta writes outside of recordings, and files that it reads whole.
//!
//! Responsible for the loss of nothing. A file is replaced in one step or not at all, and an input is never an output.
//! Two processes that change one file lose no change. Private files stay private. Reading a file neither blocks
//! nor fills the memory. Every module that writes a file, or reads one whole, uses these functions; only recordings have
//! functions of their own (`record`). Does not know what a file contains. Unix only.

mod append;
mod atomic_file;
mod file_lock;
mod input_files;
mod links;
mod list;
mod permission_bits;
mod private;
mod regular_file;

pub use append::append_lines;
pub use atomic_file::{
    AtomicFile, create_new_file, create_private_file, has_new_content, replace_file,
    replace_private_file, replace_signed_file, sync_folder, sync_new_name,
};
pub use file_lock::{FileLock, has_no_locks};
pub use input_files::InputFiles;
pub use links::{
    PathLink, find_foreign_link, list_links, may_have_other_names, refuse_foreign_links,
};
pub use list::{has_name_form, list_entries};
pub use permission_bits::{OTHERS_WRITE, ROOT, STICKY};
pub use private::{
    create_own_folder, create_private_folder, read_private_file, read_signed_file,
    remove_expired_files, remove_expired_folders,
};
pub use regular_file::{
    MAX_CERTIFICATES, MAX_GROWING_FILE, read_optional_text, read_regular_file, read_regular_text,
};
