//! Files that third-party tools made themselves (`tests/made/README.md`): each is opened and read to its end.
//!
//! Runs only if `DICTA_MADE` names their folder, and prints it otherwise.

use std::path::{Path, PathBuf};

use dicta::transcript::{TranscriptError, TranscriptFile};

/// The folder of the files of a format, the endings of transcripts, and the name of the format.
const FORMATS: &[(&str, &[&str], &str)] = &[
    ("inspect", &["eval", "json"], "Inspect"),
    ("promptfoo", &["json", "jsonl"], "promptfoo"),
    ("promptfooold", &["json"], "promptfoo"),
    ("otlp", &["jsonl"], "OpenTelemetry"),
    ("claude_code/projects", &["jsonl"], "Claude Code"),
    ("claude_code_mid/projects", &["jsonl"], "Claude Code"),
    ("claude_code_old/projects", &["jsonl"], "Claude Code"),
    ("codex/sessions", &["jsonl"], "Codex"),
    ("codex_mid/sessions", &["jsonl"], "Codex"),
    ("codex_old/sessions", &["jsonl"], "Codex"),
    ("deepeval/results", &["json"], "DeepEval"),
    ("livekit", &["json"], "livekit"),
];

/// Other files in the folders, which are not transcripts.
const NONE: &[&str] = &[
    // Logs of a run whose spans have the conversation.
    "official_events_logs.jsonl",
    // Spans without content.
    "official_nocontent.jsonl",
    // A provider of this project, and files of npm.
    "package.json",
    "package-lock.json",
];

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            // promptfoo's own settings; its old results are below.
            if name != "cache" && name != "logs" {
                files(&path, endings, found);
            }
        } else if ending.is_some_and(|ending| endings.contains(&ending))
            && !NONE.contains(&name.as_str())
            && std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0)
        {
            found.push(path);
        }
    }
}

/// The number of transcripts of a file, or the reason why it has none or a fault.
fn transcripts(path: &Path, format: &str) -> Result<Option<usize>, String> {
    let mut file = match TranscriptFile::open(path) {
        Ok(file) => file,
        Err(TranscriptError::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !file.format().contains(format) {
        return Err(format!("taken for {}", file.format()));
    }
    let mut count = 0;
    while let Some(block) = file.next_block().map_err(|error| error.to_string())? {
        for (record, bytes) in block.records() {
            record
                .parse(bytes, "x")
                .map_err(|bad| format!("record {}: {}", bad.number, bad.why))?;
            let again = file
                .read_native(record.span)
                .map_err(|error| error.to_string())?;
            if again != bytes {
                return Err(format!(
                    "record {} reads otherwise again",
                    record.span.number
                ));
            }
            count += 1;
        }
    }
    if count == 0 {
        return Err("no transcripts".to_owned());
    }
    Ok(Some(count))
}

#[test]
fn files_made_by_the_original_tools_are_read() {
    let Some(made) = std::env::var_os("DICTA_MADE") else {
        eprintln!("skipped: DICTA_MADE names no folder (see tests/made/README.md)");
        return;
    };
    let made = PathBuf::from(made);
    let mut wrong = Vec::new();
    let mut opened = 0;
    for (folder, endings, format) in FORMATS {
        let mut found = Vec::new();
        files(&made.join(folder), endings, &mut found);
        found.sort();
        for path in found {
            match transcripts(&path, format) {
                Ok(Some(count)) => {
                    opened += 1;
                    eprintln!("{count:>6}  {}", path.display());
                }
                Ok(None) => eprintln!("not read yet  {}", path.display()),
                Err(why) => wrong.push(format!("{}: {why}", path.display())),
            }
        }
    }
    assert!(opened > 0, "no file below {} was read", made.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
