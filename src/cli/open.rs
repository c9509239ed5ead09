//! The workbench: what it opens, and how it looks.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use super::Cx;
use super::args::{Look, Place};
use super::trouble::Trouble;
use super::workspace::{open as open_workspace, store_and_workspace};
use crate::handlers::EvalTypeRegistry;
use crate::record::{RecordedRun, RunStore};
use crate::theme::{ColorDepth, Theme, ThemeError};
use crate::tui::{self, OpenRequest, WorkbenchSetup};
use crate::workspace::{self, CONFIG_FILE, Workspace};

/// Why there can be no screen, if so.
pub(super) fn no_screen(cx: &Cx) -> Option<&'static str> {
    if !cx.streams.out.terminal || !io::stdin().is_terminal() {
        Some("no terminal")
    } else if cx.env.get("TERM") == Some("dumb") {
        Some("this terminal is too plain for the workbench (TERM=dumb)")
    } else {
        None
    }
}

/// `dicta`: the workbench on the workspace found here or above, else on the demo.
pub(super) fn here(look: &Look, cx: &Cx) -> Result<u8, Trouble> {
    let opened = open_workspace(None, cx)?;
    show(OpenRequest::Workspace(opened.workspace), look, cx)
}

/// `dicta open PATH`: a workspace, a file in one, a file of transcripts, a run.
pub(super) fn open(path: Option<&Path>, look: &Look, cx: &Cx) -> Result<u8, Trouble> {
    let what = match path {
        None => return here(look, cx),
        Some(path) => what_is(path, cx)?,
    };
    show(what, look, cx)
}

/// `dicta replay RUN`: plays it on the screen.
pub(super) fn replay(
    run: &str,
    speed: f64,
    look: &Look,
    place: &Place,
    cx: &Cx,
) -> Result<u8, Trouble> {
    let (store, around) = store_and_workspace(place.workspace.as_deref(), cx)?;
    let run = store.resolve(run)?;
    show(recording(run, Some(speed), around), look, cx)
}

fn recording(run: RecordedRun, speed: Option<f64>, around: Option<Arc<Workspace>>) -> OpenRequest {
    OpenRequest::Run {
        workspace: around,
        run: run.id,
        dir: run.dir,
        speed,
    }
}

/// What can be done with a folder that is no workspace: of files that look like transcripts one is named.
fn instead(folder: &Path) -> String {
    const ENDS: [&str; 6] = ["jsonl", "json", "eval", "csv", "tsv", "ndjson"];
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| {
        let end = file.extension().and_then(|end| end.to_str());
        end.is_some_and(|end| ENDS.contains(&end)) && file.is_file()
    });
    files.sort();
    match files.first() {
        Some(file) => format!(
            "`dicta open {}` shows one of its files, and W there makes a workspace around it",
            file.display()
        ),
        None => "`dicta init DIR` makes a workspace".to_owned(),
    }
}

/// What a path on the command line is.
fn what_is(path: &Path, cx: &Cx) -> Result<OpenRequest, Trouble> {
    let text = path.to_string_lossy();
    if !path.exists() || path.join("events.jsonl").is_file() || path.ends_with("events.jsonl") {
        // A run by its name, where no file has that name; a path to one is found without a workspace.
        let (store, around) = if path.exists() {
            let around = workspace::find_workspace_root(path).and_then(|root| {
                let loaded = workspace::load(&root, &cx.env, &EvalTypeRegistry::builtin());
                loaded.ok().map(Arc::new)
            });
            let store = RunStore {
                dir: path.to_owned(),
                extra_dirs: Vec::new(),
            };
            (store, around)
        } else {
            store_and_workspace(None, cx)?
        };
        let name = if path.exists() && !text.contains('/') {
            format!("./{text}")
        } else {
            text.into_owned()
        };
        let run = store.resolve(&name).map_err(|error| {
            if path.exists() {
                Trouble::from(error)
            } else if path.components().nth(1).is_some() {
                Trouble::usage(format!("{} does not exist", path.display()))
            } else {
                Trouble::usage(format!("{} does not exist, and {error}", path.display()))
            }
        })?;
        return Ok(recording(run, None, around));
    }
    let Some(root) = workspace::find_workspace_root(path) else {
        if path.is_dir() {
            return Err(Trouble::usage(format!(
                "there is no {CONFIG_FILE} at or above {}; {}",
                path.display(),
                instead(path)
            )));
        }
        return Ok(OpenRequest::File(path.to_owned()));
    };
    let loaded =
        workspace::load(&root, &cx.env, &EvalTypeRegistry::builtin()).map_err(Trouble::files)?;
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let belongs = path.is_dir()
        || loaded.transcripts.contains(&real)
        || loaded
            .files
            .iter()
            .any(|(file, _)| root.join(file) == real || *file == real)
        || real
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
    if belongs {
        Ok(OpenRequest::Workspace(Arc::new(loaded)))
    } else {
        Ok(OpenRequest::File(path.to_owned()))
    }
}

fn show(what: OpenRequest, look: &Look, cx: &Cx) -> Result<u8, Trouble> {
    if let Some(why) = no_screen(cx) {
        return Err(Trouble::usage(format!(
            "{why}: `dicta run`, `dicta show` and `dicta replay --print` work without one"
        )));
    }
    let no_colour = cx.env.get("NO_COLOR").is_some();
    let left = tui::run_workbench(WorkbenchSetup {
        open: what,
        env: cx.env.clone(),
        clock: Arc::clone(&cx.clock),
        theme: chosen(look, no_colour, cx)?,
    })
    .map_err(Trouble::usage)?;
    cx.streams.tell(&left.summary);
    if let Some(problem) = left.problem {
        cx.streams.tell(&format!("dicta: {problem}"));
    }
    Ok(left.code)
}

/// The theme that was asked for, as the terminal can show it.
fn chosen(look: &Look, no_colour: bool, cx: &Cx) -> Result<Theme, Trouble> {
    let depth = ColorDepth::detect(cx.env.get("COLORTERM"), cx.env.get("TERM"));
    let theme = match &look.theme {
        Some(name) => Theme::load(name),
        None => Theme::bundled(Theme::default_for(depth)),
    };
    let theme = theme
        .map_err(|error| match error {
            ThemeError::Unknown(why) => Trouble::usage(why),
            ThemeError::Refused(faults) => Trouble::files(faults),
        })?
        .for_depth(depth);
    let theme = if no_colour {
        theme.without_colour()
    } else {
        theme
    };
    Ok(if look.ascii { theme.in_ascii() } else { theme })
}
