//! Globs of dicta.yaml: `*`, `?`, `[…]`, `{a,b}` within a folder, `**` over folders.
//!
//! Responsible for the files that a glob matches. Hidden files match only if the glob names them. Loops of symlinks
//! end. Skips what is not a regular file and reports it. Does not read files.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use walkdir::{DirEntry, WalkDir};

use super::{Env, files};

/// The maximum number of folders that dicta watches for one glob.
const MAX_FOLDERS: usize = 1000;

/// The result of a glob.
#[derive(Debug, Default)]
pub(super) struct GlobMatches {
    /// The matching files, absolute and sorted.
    pub(super) files: Vec<PathBuf>,
    /// Descriptions of what was skipped, each with the reason.
    pub(super) skipped: Vec<String>,
}

/// Returns the files of a glob or of a plain path, relative to `root` or absolute. The error is a sentence.
pub(super) fn expand(root: &Path, written: &str) -> Result<GlobMatches, String> {
    let full_path = super::paths::absolute(&root.join(written));
    // A name that exists is taken literally, even if it contains wildcard characters.
    match full_path.metadata() {
        Ok(meta) if meta.is_file() => {
            return Ok(GlobMatches {
                files: vec![full_path],
                skipped: Vec::new(),
            });
        }
        Ok(meta) if meta.is_dir() => {
            return Err(format!(
                "`{written}` is a folder; `{}/**/*` takes its files",
                written.trim_end_matches('/')
            ));
        }
        Ok(meta) => {
            return Err(format!(
                "`{written}` is {}, not a file",
                files::describe_file_kind(&meta)
            ));
        }
        Err(error) if !is_glob(written) => {
            return Err(format!("`{written}` {}", files::explain_io_error(&error)));
        }
        Err(_) => {}
    }
    // The walk begins at the deepest folder without a wildcard, not at `/`.
    let parts = GlobParts::split(root, &full_path);
    let glob = GlobBuilder::new(&parts.pattern())
        .literal_separator(true)
        .build()
        .map_err(|error| format!("`{written}` is not a glob: {}", error.kind()))?;
    let found = walk_folders(&parts, &glob.compile_matcher());
    if found.files.is_empty() {
        let mut message = format!("`{written}` matches no file");
        if let Some(first) = found.skipped.first() {
            message = format!("{message} ({first})");
        }
        return Err(message);
    }
    Ok(found)
}

/// Expands a glob that may begin with `~/` for the home folder. Errors name the path as written.
pub(super) fn expand_from_home(
    root: &Path,
    written: &str,
    env: &Env,
) -> Result<GlobMatches, String> {
    // Only `~/` needs the expanded path; `expand` joins all other paths with `root` itself.
    let full_path = super::paths::resolve(root, written, env);
    let full_path = full_path.to_string_lossy();
    // The expanded path would surprise the author, so the message shows the path as written.
    if written.starts_with("~/") {
        return expand(root, &full_path).map_err(|why| why.replace(&*full_path, written));
    }
    expand(root, written)
}

/// Returns the folders to watch for files of a glob, and a matcher that recognizes these files. A plain path gives
/// one folder and no matcher.
pub(super) fn find_watch_folders(
    root: &Path,
    written: &str,
) -> (Vec<PathBuf>, Option<GlobMatcher>) {
    let full_path = super::paths::absolute(&root.join(written));
    let parts = GlobParts::split(root, &full_path);
    // The folder of the file is watched, because editors replace a file when they save it.
    if parts.rest.is_empty() {
        return (
            full_path.parent().map(Path::to_owned).into_iter().collect(),
            None,
        );
    }
    let mut folders = vec![parts.base.clone()];
    // Only `**` reaches folders at any depth.
    let deep = parts.rest.iter().any(|part| part.contains("**"));
    if deep || parts.rest.len() > 1 {
        let depth = if deep {
            usize::MAX
        } else {
            parts.rest.len() - 1
        };
        let below = WalkDir::new(&parts.base)
            .min_depth(1)
            .max_depth(depth)
            .into_iter()
            .filter_entry(|entry| entry.file_type().is_dir())
            .filter_map(Result::ok)
            // The system limits the number of watches per user.
            .take(MAX_FOLDERS);
        folders.extend(below.map(DirEntry::into_path));
    }
    let glob = GlobBuilder::new(&parts.pattern())
        .literal_separator(true)
        .build();
    (folders, glob.ok().map(|glob| glob.compile_matcher()))
}

/// Returns true if a path contains wildcard characters.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The two parts of a glob: the deepest folder that it names without a wildcard, and the rest.
struct GlobParts {
    base: PathBuf,
    rest: Vec<String>,
}

impl GlobParts {
    /// Splits a glob. The part that it shares with the workspace's own path is literal, whatever characters it
    /// contains.
    fn split(root: &Path, full_path: &Path) -> Self {
        let text = |c: Component<'_>| c.as_os_str().to_string_lossy().into_owned();
        let components: Vec<Component<'_>> = full_path.components().collect();
        let shared_count = root
            .components()
            .zip(&components)
            .take_while(|(a, b)| a == *b)
            .count();
        // Only what the author wrote below the workspace's path may contain wildcards.
        let fixed = components[shared_count..]
            .iter()
            .take_while(|c| !is_glob(&text(**c)))
            .count();
        Self {
            base: components[..shared_count + fixed].iter().collect(),
            rest: components[shared_count + fixed..]
                .iter()
                .map(|c| text(*c))
                .collect(),
        }
    }

    fn pattern(&self) -> String {
        // The literal part may contain wildcard characters, for example in the name of the workspace's
        // folder.
        let base = globset::escape(&self.base.to_string_lossy());
        format!("{}/{}", base.trim_end_matches('/'), self.rest.join("/"))
    }
}

fn walk_folders(parts: &GlobParts, matcher: &GlobMatcher) -> GlobMatches {
    let base = &parts.base;
    let depth = if parts.rest.iter().any(|part| part.contains("**")) {
        usize::MAX
    } else {
        parts.rest.len()
    };
    // As in a shell, hidden names count only if a part of the pattern begins with a dot.
    let hidden_too = parts.rest.iter().any(|part| part.starts_with('.'));
    let mut found = GlobMatches::default();
    let mut links = LinkGuard::new(base);
    let entries = WalkDir::new(base)
        // Users link folders of transcripts into a workspace; `LinkGuard` prevents endless walks.
        .follow_links(true)
        .max_depth(depth)
        // The walk in a fixed order visits the same link first each time.
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| {
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            entry.depth() == 0 || ((hidden_too || !hidden) && links.may_enter(entry))
        });
    for entry in entries {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) if !matcher.is_match(entry.path()) => {}
            Ok(entry) if entry.file_type().is_file() => found.files.push(entry.into_path()),
            Ok(entry) => {
                let kind = entry
                    .metadata()
                    .map_or("no regular file", |meta| files::describe_file_kind(&meta));
                found
                    .skipped
                    .push(format!("skipped {}: it is {kind}", entry.path().display()));
            }
            Err(error) => {
                let path = error.path().unwrap_or(base).display();
                let reason = if error.loop_ancestor().is_some() {
                    "a symlink loop".to_owned()
                } else {
                    error
                        .io_error()
                        .map_or_else(|| "it cannot be read".to_owned(), files::explain_io_error)
                };
                found.skipped.push(format!("skipped {path}: {reason}"));
            }
        }
    }
    // The order of a directory differs between file systems, and transcripts keep the order of their files.
    found.files.sort();
    // Through a link, one file can have two paths. Without links, the check would cost a system call per
    // file.
    if !links.entered.is_empty() {
        let mut seen = HashSet::new();
        found
            .files
            .retain(|file| file.canonicalize().is_ok_and(|file| seen.insert(file)));
    }
    found.skipped.extend(
        links
            .loops
            .iter()
            .map(|path| format!("skipped {}: a symlink loop", path.display())),
    );
    found
}

/// The guard against loops of symlinks. The walk follows each link to a folder once, and never back to its start.
/// Otherwise links could produce more paths than there are files.
struct LinkGuard {
    base: PathBuf,
    entered: HashSet<PathBuf>,
    loops: Vec<PathBuf>,
}

impl LinkGuard {
    fn new(base: &Path) -> Self {
        Self {
            base: base.canonicalize().unwrap_or_else(|_| base.to_owned()),
            entered: HashSet::new(),
            loops: Vec::new(),
        }
    }

    fn may_enter(&mut self, entry: &DirEntry) -> bool {
        if !entry.path_is_symlink() || !entry.file_type().is_dir() {
            return true;
        }
        // The walk itself reports a broken link.
        let Ok(target) = entry.path().canonicalize() else {
            return true;
        };
        if self.base.starts_with(&target) {
            self.loops.push(entry.path().to_owned());
            return false;
        }
        self.entered.insert(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path, glob: &str) -> Result<Vec<String>, String> {
        expand(root, glob).map(|found| {
            found
                .files
                .iter()
                .map(|path| {
                    path.strip_prefix(root)
                        .unwrap_or(path)
                        .display()
                        .to_string()
                })
                .collect()
        })
    }

    #[test]
    fn globs_find_what_a_shell_would() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = super::super::paths::absolute(dir.path()).join("[a] *");
        for file in [
            "t/b.jsonl",
            "t/a.jsonl",
            "t/.hidden.jsonl",
            "t/sub/c.jsonl",
            "t/x.txt",
            "t/[odd].jsonl",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("folders");
            std::fs::write(path, "x").expect("a file");
        }
        std::os::unix::fs::symlink(&root, root.join("t/sub/loop")).expect("a loop");
        let cases: &[(&str, &[&str])] = &[
            ("t/*.jsonl", &["t/[odd].jsonl", "t/a.jsonl", "t/b.jsonl"]),
            ("t/[odd].jsonl", &["t/[odd].jsonl"]),
            ("t/{a,b}.jsonl", &["t/a.jsonl", "t/b.jsonl"]),
            ("./t/?.jsonl", &["t/a.jsonl", "t/b.jsonl"]),
            ("t/**/c.jsonl", &["t/sub/c.jsonl"]),
            ("t/.*.jsonl", &["t/.hidden.jsonl"]),
        ];
        for (glob, expected) in cases {
            assert_eq!(
                names(&root, glob),
                Ok(expected.iter().map(|&s| s.to_owned()).collect()),
                "{glob}"
            );
        }
        let absolute = format!("{}/t/a.*", root.display());
        assert_eq!(names(&root, &absolute), Ok(vec!["t/a.jsonl".to_owned()]));
        let looping = expand(&root, "t/**/*.jsonl").expect("files");
        assert_eq!(looping.files.len(), 4);
        assert!(
            looping.skipped[0].ends_with("a symlink loop"),
            "{:?}",
            looping.skipped
        );
        let errors = [
            ("none/*.jsonl", "`none/*.jsonl` matches no file (skipped "),
            ("missing.jsonl", "`missing.jsonl` does not exist"),
            ("t", "`t` is a folder; `t/**/*` takes its files"),
            (
                "t/{a",
                "`t/{a` is not a glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
            ),
        ];
        for (glob, expected) in errors {
            let error = names(&root, glob).expect_err(glob);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn pipes_and_devices_never_block() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = super::super::paths::absolute(dir.path());
        std::os::unix::net::UnixListener::bind(root.join("s.jsonl")).expect("a socket");
        std::os::unix::fs::symlink("/dev/zero", root.join("z.jsonl")).expect("a link");
        let error = names(&root, "*.jsonl").expect_err("no file");
        assert!(error.contains("it is a socket"), "{error}");
        assert_eq!(
            names(&root, "z.jsonl"),
            Err("`z.jsonl` is a device, not a file".to_owned())
        );
    }
}
