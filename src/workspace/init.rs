//! `dicta init`: a small workspace that runs at once, with a check that passes and one that fails.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The files of the starter workspace with their paths.
const STARTER_FILES: &[(&str, &str)] = &[
    ("dicta.yaml", include_str!("starter/dicta.yaml")),
    (
        "transcripts/support.jsonl",
        include_str!("starter/support.jsonl"),
    ),
    ("rubrics/refunds.yaml", include_str!("starter/refunds.yaml")),
    ("labels.jsonl", include_str!("starter/labels.jsonl")),
    (".gitignore", include_str!("starter/gitignore")),
];

/// Writes the starter workspace into `dir` and returns the files written. Creates `dir` if necessary.
///
/// Does not overwrite: if a file exists, it writes none. An existing `.gitignore` is the exception; it stays
/// unchanged. The error is a sentence.
pub fn init(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let wanted = STARTER_FILES
        .iter()
        .filter(|(name, _)| *name != ".gitignore" || !dir.join(name).exists());
    let wanted: Vec<(PathBuf, &str)> = wanted.map(|(name, text)| (dir.join(name), *text)).collect();
    if let Some((path, _)) = wanted
        .iter()
        .find(|(path, _)| path.symlink_metadata().is_ok())
    {
        return Err(format!(
            "{} is there already; nothing was written",
            path.display()
        ));
    }
    let mut written = Vec::new();
    for (path, text) in wanted {
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(fail)?;
        fs::File::create_new(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(fail)?;
        written.push(path);
    }
    Ok(written)
}
