//! The author of new labels.
//!
//! Responsible for the name: git's `user.name` of the repository around a folder, then git's `user.name` of the
//! person, else `$USER`. Reads git's files directly and runs no program, so it does not follow their includes.

use std::path::{Path, PathBuf};

use super::{Env, variables};
use crate::storage::read_regular_text;

/// The maximum size of a git configuration, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Returns the author's name, if git or the environment has one.
pub fn find_label_author(env: &Env, folder: &Path) -> Option<String> {
    let of_git = git_config_files(env, folder).into_iter().find_map(|file| {
        // An unreadable or huge file is skipped, and the next one may have the name.
        let text = read_regular_text(&file, MAX_CONFIG_BYTES).ok()?;
        parse_user_name(&text)
    });
    of_git.or_else(|| {
        let user = env
            .get(variables::USER)
            .or_else(|| env.get(variables::LOGNAME));
        user.map(str::to_owned)
    })
}

/// Lists git's configuration files, the one that takes precedence first.
fn git_config_files(env: &Env, folder: &Path) -> Vec<PathBuf> {
    // The nearest repository counts; repositories around it do not.
    let around = folder.ancestors().map(|above| above.join(".git/config"));
    let mut files: Vec<PathBuf> = around.filter(|file| file.is_file()).take(1).collect();
    // git reads this file instead of both global files.
    if let Some(global) = env.get(variables::GIT_CONFIG_GLOBAL) {
        files.push(global.into());
        return files;
    }
    let home = env.get(variables::HOME).map(PathBuf::from);
    files.extend(home.as_ref().map(|home| home.join(".gitconfig")));
    let config = env.get(variables::XDG_CONFIG_HOME).map(PathBuf::from);
    let config = config.or_else(|| home.map(|home| home.join(".config")));
    files.extend(config.map(|config| config.join("git/config")));
    files
}

/// Returns `name` of the section `[user]`. The last one counts.
fn parse_user_name(text: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split_once(']').map(|(name, _)| name.trim());
            // A section with a subsection, such as `[user "work"]`, is another section in git.
            inside = section.is_some_and(|name| name.eq_ignore_ascii_case("user"));
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("name")
        {
            found = Some(unquote_value(value.trim()));
        }
    }
    found.filter(|name| !name.is_empty())
}

/// Returns a value without quotes, escapes and comments.
fn unquote_value(value: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => out.extend(chars.next()),
            '#' | ';' if !quoted => break,
            // The name is shown on the terminal, so control characters are removed.
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_author_comes_from_the_repository_then_global_git() {
        let dir = tempfile::tempdir().expect("a folder");
        let work = dir.path().join("repo/deep/down");
        std::fs::create_dir_all(&work).expect("a folder");
        let env = |pairs: &[(&str, &str)]| {
            let home = ("HOME".to_owned(), dir.path().display().to_string());
            let own = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            Env(own.chain([home]).collect())
        };
        assert_eq!(find_label_author(&env(&[]), &work), None);
        let user = env(&[("USER", "ana")]);
        assert_eq!(find_label_author(&user, &work).as_deref(), Some("ana"));
        let global = "[core]\n\tname = no\n[User]\n\temail = a@b\n\tname = \"Ana # Lima\" ; me\n";
        std::fs::write(dir.path().join(".gitconfig"), global).expect("a file");
        assert_eq!(
            find_label_author(&user, &work).as_deref(),
            Some("Ana # Lima")
        );
        std::fs::create_dir_all(dir.path().join("repo/.git")).expect("a folder");
        let own = "[user]\nname = ana at work # here\n";
        std::fs::write(dir.path().join("repo/.git/config"), own).expect("a file");
        assert_eq!(
            find_label_author(&user, &work).as_deref(),
            Some("ana at work")
        );
    }
}
