//! A rubric that is replaced, cut, deleted or hidden while the workbench watches it (U9).

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::pty::Pty;
use crate::sandbox::Sandbox;
use crate::terminals::conclude;
use crate::{Campaign, Measured};

/// What happens to the file, and how.
type Change = (&'static str, fn(&Path));

const CHANGES: &[Change] = &[
    ("renamed over", |path| {
        let next = path.with_extension("next");
        fs::write(&next, rubric("other")).expect("written");
        fs::rename(&next, path).expect("renamed");
    }),
    ("truncated", |path| fs::write(path, "").expect("written")),
    ("deleted", |path| fs::remove_file(path).expect("removed")),
    ("a folder", |path| {
        fs::remove_file(path).expect("removed");
        fs::create_dir(path).expect("a folder");
    }),
    ("a dangling link", |path| {
        fs::remove_file(path).expect("removed");
        symlink("missing", path).expect("a link");
    }),
    ("a looping link", |path| {
        fs::remove_file(path).expect("removed");
        symlink(path, path).expect("a link");
    }),
    ("unreadable", |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("a mode");
    }),
    ("its folder renamed", |path| {
        let folder = path.parent().expect("a folder");
        fs::rename(folder, folder.with_extension("away")).expect("renamed");
    }),
];

/// The namespace whose user may watch nothing.
const WITHOUT_WATCHES: &str = "echo 0 > /proc/sys/user/max_inotify_watches && exec \"$@\"";

fn rubric(id: &str) -> String {
    format!("id: r\nevals:\n  - {{ id: {id}, type: contains, params: {{ patterns: [y] }} }}\n")
}

/// Changes the file in each way, restores it with another eval, and waits until the screen shows that eval.
pub(crate) fn measure_watches(campaign: &Campaign) -> Measured {
    let changes = &CHANGES[..campaign.count(2, CHANGES.len())];
    let mut problems = Vec::new();
    let sandbox = Sandbox::new(campaign);
    let mut pty = open(&sandbox, &[]);
    for (at, (name, change)) in changes.iter().enumerate() {
        change_and_restore(&sandbox, &mut pty, (*name, *change), &format!("back-{at}"));
        if pty.contents().contains("a bug in dicta") {
            problems.push(format!("{name}: {}", pty.contents()));
        }
    }
    // It asks if a run is still active.
    pty.type_in("qy");
    if pty.ended().code != 0 {
        problems.push("the workbench doesn't end as usual".to_owned());
    }
    let mut figure = format!("{} changes of a watched file noticed", changes.len());
    let allowed = std::process::Command::new("unshare")
        .args(["-Ur", "sh", "-c", WITHOUT_WATCHES, "sh", "true"])
        .output();
    if allowed.is_ok_and(|output| output.status.success()) {
        let sandbox = Sandbox::new(campaign);
        let prefix = ["unshare", "-Ur", "sh", "-c", WITHOUT_WATCHES, "sh"];
        let mut pty = open(&sandbox, &prefix);
        change_and_restore(&sandbox, &mut pty, CHANGES[0], "polled");
        pty.type_in("qy");
        pty.ended();
        figure.push_str(", also without watches");
    }
    conclude(&figure, &problems)
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

fn change_and_restore(sandbox: &Sandbox, pty: &mut Pty, (name, change): Change, id: &str) {
    let path = sandbox.path().join("rubrics/r.yaml");
    let before = pty.contents();
    change(&path);
    // Root can read every file.
    if name != "unreadable" || fs::read(&path).is_err() {
        pty.until(&format!("the state `{name}`"), |pty| {
            pty.contents() != before
        });
    }
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
    pty.until_shown(id);
}
