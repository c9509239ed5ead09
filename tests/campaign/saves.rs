//! Files that dicta writes, when it is killed at every call: the old or the new content remains (D8).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;

use crate::pty::Pty;
use crate::sandbox::{
    DISK_CALLS, Injection, Sandbox, find_strace_problem, grouped, has_panicked, is_killed, text,
};
use crate::terminals::conclude;
use crate::{Campaign, Measured, Scale};

/// The content of the files before a command that replaces them.
const OLD: &str = "{\"id\":\"old\"}\n";

/// A command that writes files, and how to recognize a whole file.
pub(crate) struct Save {
    pub(crate) name: &'static str,
    setup: fn(&Sandbox),
    pub(crate) args: &'static [&'static str],
    is_whole: fn(&Tree, &Saved) -> Result<(), String>,
}

/// The written files by their path, hidden temporary files excluded. Also the mode of a report and the target of a link.
type Tree = BTreeMap<String, Vec<u8>>;

/// The files before a command and after a complete one.
pub(crate) struct Saved {
    old: Tree,
    new: Tree,
}

/// The commands that replace or create files.
pub(crate) const SAVES: &[Save] = &[
    Save {
        name: "import",
        setup: |sandbox| {
            sandbox.write("out.jsonl", OLD);
            let private = fs::Permissions::from_mode(0o640);
            fs::set_permissions(sandbox.path().join("out.jsonl"), private).expect("a mode");
        },
        args: &["import", "t.jsonl", "-o", "out.jsonl"],
        is_whole: is_old_or_new,
    },
    Save {
        name: "report through a link",
        setup: |sandbox| {
            sandbox.write("kept/out.xml", OLD);
            sandbox.remove("link.xml");
            symlink("kept/out.xml", sandbox.path().join("link.xml")).expect("a link");
        },
        args: &["run", "-q", "--format", "jsonl", "-o", "link.xml"],
        is_whole: |now, saved| {
            check_each(now, saved, |_, bytes| {
                text(bytes).trim_end().ends_with("</testsuites>")
            })
        },
    },
    Save {
        name: "streamed report",
        setup: |sandbox| {
            sandbox.write("out.jsonl", OLD);
        },
        args: &["run", "-q", "--format", "jsonl", "-o", "out.jsonl"],
        // A streamed report contains the results so far.
        is_whole: |now, saved| {
            check_each(now, saved, |_, bytes| {
                bytes.ends_with(b"\n")
                    && text(bytes)
                        .lines()
                        .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            })
        },
    },
    Save {
        name: "secret",
        setup: |sandbox| sandbox.remove(".data"),
        args: &["run", "-q", "--format", "jsonl"],
        is_whole: |now, saved| check_each(now, saved, |_, _| false),
    },
    Save {
        name: "first trust",
        setup: |sandbox| {
            sandbox.remove(".data");
            open_to_others(sandbox, "dicta.yaml");
        },
        args: &["trust", "."],
        is_whole: is_old_or_new,
    },
    Save {
        name: "second trust",
        setup: |sandbox| {
            sandbox.remove(".data");
            sandbox.write("other/dicta.yaml", "transcripts: []\nrubrics: []\n");
            open_to_others(sandbox, "other/dicta.yaml");
            sandbox.dicta(&["trust", "other"]);
            open_to_others(sandbox, "dicta.yaml");
        },
        args: &["trust", "."],
        is_whole: is_old_or_new,
    },
    Save {
        name: "demo",
        setup: |sandbox| sandbox.remove(".data"),
        args: &["demo"],
        is_whole: is_old_or_new_folder,
    },
    Save {
        name: "demo reset",
        setup: |sandbox| {
            sandbox.remove(".data");
            sandbox.dicta(&["demo"]);
            let demo = fs::read_dir(sandbox.data_dir())
                .expect("a data directory")
                .flatten()
                .find(|entry| entry.file_name().to_string_lossy().starts_with("demo-"))
                .expect("the demo")
                .path();
            fs::write(demo.join("demo/dicta.yaml"), EDIT).expect("an edit");
        },
        args: &["demo", "--reset"],
        is_whole: |now, saved| {
            if !now.values().any(|bytes| bytes == EDIT.as_bytes()) {
                return Err("the edited file is lost".to_owned());
            }
            // The content moves to another folder, and then returns file by file. The marker is empty until the end: the
            // next `dicta demo` completes a folder with an empty one.
            let lost = saved.old.values().filter(|bytes| {
                let mut all = now.values();
                !all.any(|other| other == *bytes)
            });
            let lost = lost.count();
            if lost > 0 {
                return Err(format!("{lost} files of the demo are lost"));
            }
            let is_former = |name: &str| name.contains(".former-");
            let mut present = now.iter().filter(|(name, _)| !is_former(name));
            let is_marker = |name: &str| name.ends_with("/.dicta-demo");
            let is_complete = present
                .clone()
                .any(|(name, bytes)| is_marker(name) && !bytes.is_empty());
            if is_complete && !present.clone().count().is_multiple_of(saved.old.len()) {
                return Err(format!("a complete demo has {} files", present.count()));
            }
            let is_whole = |(name, bytes): (&String, &Vec<u8>)| {
                saved.old.get(name) == Some(bytes)
                    || saved.new.get(name) == Some(bytes)
                    || (is_marker(name) && bytes.is_empty())
            };
            match present.find(|file| !is_whole(*file)) {
                Some((name, _)) => Err(format!("{name} is neither old nor new")),
                None => Ok(()),
            }
        },
    },
    Save {
        name: "label",
        setup: |sandbox| {
            sandbox.write("labels.jsonl", OLD_LABEL);
            sandbox.write("dicta.yaml", LABELLED);
        },
        args: &["label", "t0/r/polite", "pass"],
        // The time of a label differs each time.
        is_whole: |now, saved| {
            check_each(now, saved, |name, bytes| {
                name == "labels.jsonl"
                    && bytes.starts_with(OLD_LABEL.as_bytes())
                    && bytes.ends_with(b"\n")
                    && text(bytes)
                        .lines()
                        .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            })
        },
    },
    Save {
        name: "page",
        setup: |sandbox| {
            sandbox.write("page.html", "old\n");
            // A page needs a run.
            sandbox.dicta(&["run", "-q"]);
        },
        args: &["export", "@", "-o", "page.html"],
        is_whole: |now, saved| {
            check_each(now, saved, |name, bytes| {
                name == "page.html" && text(bytes).trim_end().ends_with("</html>")
            })
        },
    },
    Save {
        name: "starter workspace",
        setup: |sandbox| sandbox.remove("fresh"),
        args: &["init", "fresh"],
        is_whole: is_old_or_new,
    },
];

/// The label before the command that adds one, and the workspace that names the file of the labels.
const OLD_LABEL: &str = "{\"transcript\":\"old\",\"eval\":\"x\",\"passed\":true}\n";
const LABELLED: &str =
    "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\nlabels: labels.jsonl\n";

/// A change by the user in the demo.
const EDIT: &str = "# edited\n";

fn open_to_others(sandbox: &Sandbox, name: &str) {
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(sandbox.path().join(name), open).expect("a mode");
}

fn is_old_or_new(now: &Tree, saved: &Saved) -> Result<(), String> {
    check_each(now, saved, |name, bytes| {
        saved.new.get(name).map(Vec::as_slice) == Some(bytes)
    })
}

fn is_old_or_new_folder(now: &Tree, saved: &Saved) -> Result<(), String> {
    if *now == saved.old || *now == saved.new {
        Ok(())
    } else {
        Err(format!("{} of {} files", now.len(), saved.new.len()))
    }
}

/// An error unless each file has its old content or a new one that is whole.
fn check_each(
    now: &Tree,
    saved: &Saved,
    is_whole: impl Fn(&str, &[u8]) -> bool,
) -> Result<(), String> {
    for name in saved.old.keys() {
        if !now.contains_key(name) {
            return Err(format!("{name} is gone"));
        }
    }
    for (name, bytes) in now {
        // A run creates a new secret in a new data directory.
        let is_secret = name == ".data/secret" && bytes.len() == 32;
        if !is_secret && saved.old.get(name) != Some(bytes) && !is_whole(name, bytes) {
            return Err(format!(
                "{name} is neither old nor new: {} bytes",
                bytes.len()
            ));
        }
    }
    Ok(())
}

/// The files that saves write: reports, labels, pages, the data directory and the starter workspace.
fn read_tree(sandbox: &Sandbox) -> Tree {
    let mut tree = Tree::new();
    for name in ["out.jsonl", "kept/out.xml", "labels.jsonl", "page.html"] {
        if let Some(bytes) = sandbox.read(name) {
            tree.insert(name.to_owned(), bytes);
        }
    }
    if let Ok(meta) = fs::metadata(sandbox.path().join("out.jsonl")) {
        let mode = format!("{:o}", meta.permissions().mode());
        tree.insert("the mode of out.jsonl".to_owned(), mode.into_bytes());
    }
    let link = sandbox.path().join("link.xml");
    if link.exists() {
        let target = fs::read_link(&link).map_or_else(
            |_| "a file".to_owned(),
            |target| target.display().to_string(),
        );
        tree.insert("the target of link.xml".to_owned(), target.into_bytes());
    }
    for folder in [".data", "fresh"] {
        add_files(sandbox.path(), &sandbox.path().join(folder), &mut tree);
    }
    tree
}

fn add_files(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Temporary files and folders; a kill leaves them, and readers skip them. A lock file has no content.
        let is_temporary = name.starts_with(".dicta-")
            || name.starts_with(".demo-")
            || path
                .extension()
                .is_some_and(|extension| extension == "lock");
        if is_temporary {
            continue;
        }
        if path.is_dir() {
            add_files(root, &path, tree);
        } else {
            let relative = path
                .strip_prefix(root)
                .expect("inside")
                .display()
                .to_string();
            tree.insert(relative, fs::read(&path).expect("readable"));
        }
    }
}

/// A sandbox in which a save can be repeated.
pub(crate) struct SaveBench {
    pub(crate) sandbox: Sandbox,
    saved: Saved,
    code: Option<i32>,
}

impl SaveBench {
    pub(crate) fn new(campaign: &Campaign, save: &Save) -> Self {
        let sandbox = Sandbox::new(campaign);
        sandbox.workspace(3, "judge: rules\n");
        (save.setup)(&sandbox);
        let old = read_tree(&sandbox);
        let output = sandbox.dicta(save.args);
        let new = read_tree(&sandbox);
        assert_ne!(old, new, "{} writes: {}", save.name, text(&output.stderr));
        Self {
            sandbox,
            saved: Saved { old, new },
            code: output.status.code(),
        }
    }

    /// Restores the files before the save.
    pub(crate) fn restore(&self, save: &Save) {
        for name in ["runs", "fresh"] {
            self.sandbox.remove(name);
        }
        (save.setup)(&self.sandbox);
    }

    /// Checks the files after an interrupted save.
    pub(crate) fn check(&self, save: &Save, output: &Output) -> Result<(), String> {
        (save.is_whole)(&read_tree(&self.sandbox), &self.saved)?;
        if has_panicked(output) {
            return Err(format!("it panicked: {}", text(&output.stderr)));
        }
        Ok(())
    }

    /// An error unless the save now works. A starter workspace is the exception: dicta overwrites no file of it.
    pub(crate) fn check_again(&self, save: &Save) -> Result<(), String> {
        if save.name == "starter workspace" {
            return Ok(());
        }
        let again = self.sandbox.dicta(save.args);
        if again.status.code() != self.code {
            return Err(format!("the next save fails: {}", text(&again.stderr)));
        }
        (save.is_whole)(&read_tree(&self.sandbox), &self.saved)
    }
}

/// More calls of one kind than a thread of a save makes: a demo syncs about 200 files and folders.
const MAX_CALLS: usize = 2000;

/// Kills each save at each call that changes the disk.
pub(crate) fn measure_saves(campaign: &Campaign) -> Measured {
    if let Some(problem) = find_strace_problem() {
        return Measured::Skipped(problem);
    }
    let mut killed = 0;
    let mut failures: Vec<String> = Vec::new();
    let saves = &SAVES[..campaign.count(1, SAVES.len())];
    for save in saves {
        let bench = SaveBench::new(campaign, save);
        bench.restore(save);
        let unlisted = bench.sandbox.find_unlisted_calls(save.args);
        if !unlisted.is_empty() {
            failures.push(format!("{} also makes {unlisted:?}", save.name));
        }
        let before = killed;
        for call in DISK_CALLS {
            for at in 1..=campaign.count(1, MAX_CALLS) {
                bench.restore(save);
                let output = bench.sandbox.inject(&Injection::kill(call, at), save.args);
                if !is_killed(&output) {
                    break;
                }
                killed += 1;
                let checked = bench.check(save, &output);
                if let Err(problem) = checked.and_then(|()| bench.check_again(save)) {
                    failures.push(format!("{} killed at {call} {at}: {problem}", save.name));
                }
            }
        }
        if killed == before {
            failures.push(format!("no call of {} is killed", save.name));
        }
    }
    let labels = kill_labelling(campaign, &mut failures);
    let figure = format!(
        "{} kills of {} commands that save, {labels} kills of a workbench that labels next to another one",
        grouped(killed),
        saves.len()
    );
    conclude(&figure, &failures)
}

/// The number of labels that a workbench writes.
const LABELS: usize = 6;

/// Two workbenches label into one file, and one is killed. Returns the number of kills.
fn kill_labelling(campaign: &Campaign, failures: &mut Vec<String>) -> usize {
    let points: &[(&'static str, usize)] = match campaign.scale {
        Scale::Short => &[("fsync", 1)],
        Scale::Full => &[
            ("fsync", 1),
            ("fsync", 2),
            ("fsync", 3),
            ("fsync", 4),
            ("fsync", 5),
            ("fsync", 6),
            ("renameat", 1),
            ("renameat", 2),
            ("renameat", 3),
            ("flock", 1),
            ("flock", 2),
            ("flock", 3),
            ("fchmod", 1),
            ("fchmod", 2),
        ],
    };
    let mut killed = 0;
    for (call, at) in points {
        let sandbox = Sandbox::new(campaign);
        sandbox.write("labels.jsonl", "");
        // The installation has its secret, so a workbench writes nothing when it starts.
        sandbox.workspace(1, "judge: rules\n");
        sandbox.dicta(&["run", "-q"]);
        let words = Injection::kill(call, *at).words();
        let mut labeller = open_labeller(&sandbox, "killed", &words);
        let mut other = open_labeller(&sandbox, "other", &[]);
        // All keys at once: a killed workbench reads only the first ones.
        let keys = "pj".repeat(LABELS) + "q";
        labeller.type_in(&keys);
        other.type_in(&keys);
        let ended = other.ended();
        let is_killed = labeller.ended().code != 0;
        killed += usize::from(is_killed);
        if *at == 1 && !is_killed {
            failures.push(format!("labels are written without {call}"));
        }
        let labels = text(&sandbox.read("labels.jsonl").unwrap_or_default());
        let parsed: Option<BTreeSet<String>> = labels
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .map(|label| Some(label?["transcript"].as_str()?.to_owned()))
            .collect();
        let kept = parsed.as_ref().map(|all| {
            let is_other = |id: &&String| id.starts_with("other");
            all.iter().filter(is_other).count()
        });
        if ended.code != 0 || kept != Some(LABELS) {
            failures.push(format!(
                "labels with a kill at {call} {at}: {kept:?} of {LABELS} labels of the other workbench: {labels}"
            ));
        }
    }
    killed
}

fn open_labeller(sandbox: &Sandbox, name: &str, prefix: &[String]) -> Pty {
    let lines = (0..LABELS).map(|at| {
        format!(
            "{{\"id\":\"{name}-{at:02}\",\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}},{{\"role\":\"assistant\",\"content\":\"y\"}}]}}\n"
        )
    });
    sandbox.write(&format!("{name}/t.jsonl"), &lines.collect::<String>());
    sandbox.write(
        &format!("{name}/r.yaml"),
        "id: r\nevals:\n  - { id: e, type: llm_judge, params: { criteria: Polite? } }\n",
    );
    // Nothing runs until a key asks for it: only labels write to the disk, so the kill is in one of them.
    sandbox.write(
        &format!("{name}/dicta.yaml"),
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\nlabels: ../labels.jsonl\njudge: j\n\
         judges:\n  j: { provider: openai, model: m, base_url: \"http://127.0.0.1:9/v1\" }\n",
    );
    let root = sandbox.path().join(name);
    let mut pty = Pty::with(&["open", root.to_str().expect("Unicode")], |command| {
        let words = prefix.iter().map(std::ffi::OsString::from);
        command.get_argv_mut().splice(0..0, words);
        command.env("DICTA_DATA_DIR", sandbox.data_dir());
    });
    pty.until_shown(&format!("{name}-{:02}", LABELS - 1));
    pty
}
