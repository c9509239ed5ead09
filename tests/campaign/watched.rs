//! A rubric that is replaced, cut, deleted or hidden while the workbench watches it (U9).

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::pty::Pty;
use crate::sandbox::Sandbox;
use crate::terminals::conclude;
use crate::{Campaign, Measured, Scale};

/// A name, the change of the file, and the text that the screen shows after it.
type Change = (&'static str, fn(&Path), &'static str);

/// The text in the header while a file does not load.
const BROKEN: &str = "does not load";

const CHANGES: &[Change] = &[
    (
        "renamed over",
        |path| {
            let next = path.with_extension("next");
            fs::write(&next, rubric("other")).expect("written");
            fs::rename(&next, path).expect("renamed");
        },
        "other",
    ),
    (
        "truncated",
        |path| fs::write(path, "").expect("written"),
        BROKEN,
    ),
    (
        "deleted",
        |path| fs::remove_file(path).expect("removed"),
        BROKEN,
    ),
    (
        "a folder",
        |path| {
            fs::remove_file(path).expect("removed");
            fs::create_dir(path).expect("a folder");
        },
        BROKEN,
    ),
    (
        "a dangling link",
        |path| {
            fs::remove_file(path).expect("removed");
            symlink("missing", path).expect("a link");
        },
        BROKEN,
    ),
    (
        "a looping link",
        |path| {
            fs::remove_file(path).expect("removed");
            symlink(path, path).expect("a link");
        },
        BROKEN,
    ),
    (
        "unreadable",
        |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("a mode");
        },
        BROKEN,
    ),
    (
        "its folder renamed",
        |path| {
            let folder = path.parent().expect("a folder");
            fs::rename(folder, folder.with_extension("away")).expect("renamed");
        },
        BROKEN,
    ),
];

/// The longest time until the screen shows a change of a file that dicta watches.
const MAX_NOTICE: Duration = Duration::from_secs(1);

/// The namespace whose user may watch nothing.
const WITHOUT_WATCHES: &str = "echo 0 > /proc/sys/user/max_inotify_watches && exec \"$@\"";

fn rubric(id: &str) -> String {
    format!("id: r\nevals:\n  - {{ id: {id}, type: contains, params: {{ patterns: [y] }} }}\n")
}

/// Changes the file in each way until the screen shows it, restores it with another eval, and waits until the screen
/// shows that eval.
pub(crate) fn measure_watches(campaign: &Campaign) -> Measured {
    let changes = &CHANGES[..campaign.count(2, CHANGES.len())];
    let mut problems = Vec::new();
    let sandbox = Sandbox::new(campaign);
    let mut pty = open(&sandbox, &[]);
    let mut slowest = Duration::ZERO;
    for (at, change) in changes.iter().enumerate() {
        let took = change_and_restore(&sandbox, &mut pty, *change, &format!("back-{at}"));
        slowest = slowest.max(took);
        let name = change.0;
        // Only the whole campaign looks at the time: the short form runs next to other tests.
        if campaign.scale == Scale::Full && took > MAX_NOTICE {
            problems.push(format!("{name} is shown after {} ms", took.as_millis()));
        }
        if pty.contents().contains("a bug in dicta") {
            problems.push(format!("{name}: {}", pty.contents()));
        }
    }
    // It asks if a run is still active.
    pty.type_in("qy");
    if pty.ended().code != 0 {
        problems.push("the workbench doesn't end as usual".to_owned());
    }
    let mut figure = format!(
        "{} changes of a watched file noticed, the slowest after {} ms",
        changes.len(),
        slowest.as_millis()
    );
    let allowed = std::process::Command::new("unshare")
        .args(["-Ur", "sh", "-c", WITHOUT_WATCHES, "sh", "true"])
        .output();
    if allowed.is_ok_and(|output| output.status.success()) {
        let sandbox = Sandbox::new(campaign);
        let prefix = ["unshare", "-Ur", "sh", "-c", WITHOUT_WATCHES, "sh"];
        let mut pty = open(&sandbox, &prefix);
        change_and_restore(&sandbox, &mut pty, CHANGES[0], "polled");
        // The log lists the message that dicta cannot watch.
        pty.type_in("L").until_shown("cannot be watched");
        pty.type_in("\u{1b}").until("the closed log", |pty| {
            !pty.contents().contains("cannot be watched")
        });
        pty.type_in("qy");
        if pty.ended().code != 0 {
            problems.push("the workbench without watches doesn't end as usual".to_owned());
        }
        figure.push_str(", also without watches");
        return conclude(&figure, &problems);
    }
    match conclude(&figure, &problems) {
        Measured::Reached(figure) => Measured::Partly(format!(
            "{figure}; not without watches, because this system has no user namespaces"
        )),
        missed => missed,
    }
}

fn open(sandbox: &Sandbox, prefix: &[&str]) -> Pty {
    sandbox.workspace(1, "judge: rules\n");
    sandbox.remove("r.yaml");
    sandbox.write("rubrics/r.yaml", &rubric("first"));
    sandbox.write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [rubrics/r.yaml]\nruns: runs\n",
    );
    let root = sandbox.path().to_str().expect("Unicode");
    let mut pty = Pty::with(&["open", root], |command| {
        command
            .get_argv_mut()
            .splice(0..0, prefix.iter().map(OsString::from));
    });
    pty.until_shown("first");
    pty
}

/// Returns the longer time until the screen shows the change or the restored file.
fn change_and_restore(sandbox: &Sandbox, pty: &mut Pty, change: Change, id: &str) -> Duration {
    let (name, change, shown) = change;
    let path = sandbox.path().join("rubrics/r.yaml");
    change(&path);
    let begin = Instant::now();
    // Root can read every file.
    if name != "unreadable" || fs::read(&path).is_err() {
        pty.until(&format!("the state `{name}`"), |pty| {
            pty.contents().contains(shown)
        });
    }
    let noticed = begin.elapsed();
    if path.is_dir() {
        fs::remove_dir(&path).expect("removed");
    } else if path.is_symlink() {
        fs::remove_file(&path).expect("removed");
    } else if path.exists() {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    }
    let away = sandbox.path().join("rubrics.away");
    if away.exists() {
        fs::rename(&away, sandbox.path().join("rubrics")).expect("renamed");
    }
    fs::write(&path, rubric(id)).expect("written");
    let begin = Instant::now();
    pty.until(&format!("the rubric after `{name}`"), |pty| {
        let screen = pty.contents();
        screen.contains(id) && !screen.contains(BROKEN)
    });
    noticed.max(begin.elapsed())
}
