//! Finds the user's editor and builds the command that opens a file at a line. Does not start it; the runtime does.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::storage;
use crate::workspace::{Env, data_dir, variables};

/// The reason why no editor can be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum EditorError {
    /// The variable's value is not a command line.
    #[error("${variable} is `{value}`: {why}")]
    Malformed {
        /// `VISUAL` or `EDITOR`.
        variable: &'static str,
        value: String,
        why: String,
    },
    /// The variable's value has no program.
    #[error("$EDITOR is empty; set it to a command")]
    Empty,
    /// No variable is set, and no common editor is installed.
    #[error("found no editor: set EDITOR to your editor's command, then press e again")]
    NotInstalled,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorCommand {
    /// The program, as a path or a name in PATH.
    pub(crate) program: String,
    /// The arguments, including the file.
    pub(crate) args: Vec<String>,
}

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePosition {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The column, from 1.
    pub(crate) column: u32,
}

/// The beginning and the end of the name of a file with a text for the editor, in the data directory.
pub(crate) const EDITED_FILE_NAME: (&str, &str) = ("edit-", ".json");

/// A private file with a text for the editor. It is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct EditedFile(PathBuf);

impl EditedFile {
    /// Writes the text to a new file. The error is a sentence.
    pub(crate) fn create(text: &str, env: &Env) -> Result<Self, String> {
        let folder = data_dir(env).map_err(|error| error.to_string())?;
        storage::create_private_folder(&folder).map_err(|error| error.to_string())?;
        let (start, end) = EDITED_FILE_NAME;
        let path = folder.join(format!("{start}{}{end}", std::process::id()));
        // A crash may have left the file of an earlier process with this number.
        _ = std::fs::remove_file(&path);
        storage::create_private_file(&path, text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the text after the edit, or `None` if it equals the text before. The error is a sentence.
    pub(crate) fn read_change(&self, before: &str) -> Result<Option<String>, String> {
        let after = storage::read_regular_text(&self.0, storage::MAX_GROWING_FILE)
            .map_err(|error| error.to_string())?;
        // Editors end a file with a line break.
        let after = match after.strip_suffix('\n') {
            Some(shorter) if !before.ends_with('\n') => shorter,
            _ => &after,
        };
        Ok((after != before).then(|| after.to_owned()))
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the command that opens `path` at a position, with `$VISUAL`, else `$EDITOR`, else an installed editor.
pub(crate) fn build_editor_command(
    env: &Env,
    path: &Path,
    at: FilePosition,
    installed: impl Fn(&Path) -> bool,
) -> Result<EditorCommand, EditorError> {
    let set = [variables::VISUAL, variables::EDITOR]
        // VISUAL comes first, as in git and other Unix programs.
        .into_iter()
        .find_map(|name| Some((name, env.get(name)?.trim())))
        // A variable that is set to an empty text counts as unset.
        .filter(|(_, value)| !value.is_empty());
    let mut words = match set {
        Some((variable, value)) => {
            split_shell_words(value).map_err(|why| EditorError::Malformed {
                variable,
                value: value.to_owned(),
                why,
            })?
        }
        None => vec![find_installed_editor(env, installed)?],
    };
    // A value such as `""` or only quotes gives no program.
    if words.is_empty() {
        return Err(EditorError::Empty);
    }
    let program = words.remove(0);
    words.extend(position_args(&program, path, at));
    Ok(EditorCommand {
        program,
        args: words,
    })
}

/// Returns an editor that almost every system has.
fn find_installed_editor(
    env: &Env,
    installed: impl Fn(&Path) -> bool,
) -> Result<String, EditorError> {
    let folders: Vec<PathBuf> =
        std::env::split_paths(env.get(variables::PATH).unwrap_or_default()).collect();
    // nano comes first, because a new user can leave it without help.
    ["nano", "vi"]
        .into_iter()
        .find(|name| folders.iter().any(|folder| installed(&folder.join(name))))
        .map(str::to_owned)
        .ok_or(EditorError::NotInstalled)
}

/// Returns the arguments for the file and line in the syntax of a known editor.
fn position_args(program: &str, path: &Path, at: FilePosition) -> Vec<String> {
    let file = path.display().to_string();
    let FilePosition { line, column } = at;
    let name = Path::new(program)
        // A path such as `/usr/bin/Vim` names the same editor as `vim`.
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    match name.as_str() {
        "vi" | "vim" | "nvim" | "view" | "nano" | "pico" | "emacs" | "emacsclient" | "kak"
        | "micro" | "jed" | "joe" | "mg" | "ne" => vec![format!("+{line}"), file],
        // These editors take a position after the file name.
        "hx" | "helix" | "zed" | "subl" | "sublime_text" => {
            vec![format!("{file}:{line}:{column}")]
        }
        // Editors based on VS Code need `-g` before the position.
        "code" | "code-insiders" | "codium" | "vscodium" | "cursor" | "windsurf" => {
            vec!["-g".to_owned(), format!("{file}:{line}:{column}")]
        }
        // An unknown editor might take `+3` as a file name, so pass the file alone.
        _ => vec![file],
    }
}

/// Splits a text into words like a shell, with quotes and backslashes but without variables. Does not run a shell, so
/// nothing in the text is executed.
fn split_shell_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            // The same quote character closes the word's quoted part.
            (_, Some(q)) if c == q => quote = None,
            // A single quote keeps backslashes as they are, as in POSIX shells.
            ('\\', None | Some('"')) => {
                let escaped = chars.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(escaped);
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                // An empty pair of quotes is a word of its own.
                word.get_or_insert_default();
            }
            (_, None) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    // A shell would wait for more input here, but there is none.
    if let Some(quote) = quote {
        return Err(format!("a {quote} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: FilePosition = FilePosition { line: 7, column: 3 };

    fn format_editor_command(editor: &str) -> Result<String, EditorError> {
        let env = Env([("EDITOR".to_owned(), editor.to_owned())].into());
        let command = build_editor_command(&env, Path::new("/w/a b.yaml"), AT, |_| false)?;
        Ok(format!("{} {}", command.program, command.args.join("|")))
    }

    #[test]
    fn each_editor_gets_line_in_its_syntax() {
        for (editor, command) in [
            ("vim", "vim +7|/w/a b.yaml"),
            ("/usr/bin/nvim -p", "/usr/bin/nvim -p|+7|/w/a b.yaml"),
            ("emacs -nw", "emacs -nw|+7|/w/a b.yaml"),
            ("hx", "hx /w/a b.yaml:7:3"),
            ("code --wait", "code --wait|-g|/w/a b.yaml:7:3"),
            ("'/opt/my ed' \"x y\"", "/opt/my ed x y|/w/a b.yaml"),
            (r"my\ ed", "my ed /w/a b.yaml"),
        ] {
            assert_eq!(
                format_editor_command(editor).as_deref(),
                Ok(command),
                "{editor}"
            );
        }
    }

    #[test]
    fn invalid_editor_command_returns_reason() {
        let malformed = format_editor_command("vim 'x").expect_err("an open quote");
        assert_eq!(
            malformed.to_string(),
            "$EDITOR is `vim 'x`: a ' is not closed"
        );
        let none = build_editor_command(&Env::default(), Path::new("/f"), AT, |_| false);
        assert!(none.is_err_and(|why| why == EditorError::NotInstalled));
    }

    #[test]
    fn visual_has_priority_and_installed_editor_is_fallback() {
        let env = |pairs: &[(&str, &str)]| {
            Env(pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect())
        };
        let both = env(&[("VISUAL", "hx"), ("EDITOR", "vi")]);
        let program = |env: &Env| {
            build_editor_command(env, Path::new("/f"), AT, |path| path == Path::new("/b/vi"))
                .map(|command| command.program)
        };
        assert_eq!(program(&both), Ok("hx".to_owned()));
        assert_eq!(program(&env(&[("PATH", "/a:/b")])), Ok("vi".to_owned()));
    }
}
