//! `script`: a check that is the author's own program.
//!
//! Owns what the program is given (`wire`), what it may answer (`verdict`), and its life: started without a shell in the
//! rubric's folder, in a process group of its own, with an environment that holds no keys; ended at its deadline, when
//! the run is told to stop, and with dicta itself (`child`, `guard`). Refuses to run anything where the workspace does
//! not say `allow_scripts: true`: whoever opens a stranger's rubrics runs none of their programs.

mod child;
pub mod guard;
mod verdict;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::explain::Quoted;
use super::registry::{EvalType, problem};
use super::{Check, Compiled, Finding, Nature, Subject};
use crate::model::{Millis, make_visible};
use crate::rubric::ParamProblem;
use child::{Ended, Job};

/// Why cells are skipped where scripts are not allowed.
const OFF: &str = "scripts are off: set `allow_scripts: true` in dicta.yaml";
/// The longest a program may take, in seconds.
const MOST_SECONDS: f64 = 3600.0;
/// How much of what a program wrote to its standard error is shown, in characters.
const SHOWN: usize = 2000;

/// Where an eval is at home: what its params are relative to, and what the workspace allows. The default one allows
/// nothing.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// The folder of the rubric.
    pub folder: PathBuf,
    /// How programs are run; `None`: they are not.
    pub scripts: Option<Arc<Scripts>>,
}

/// What programs are run with.
#[derive(Debug, Default)]
pub struct Scripts {
    /// All of the program's environment.
    env: Vec<(String, String)>,
}

/// Variables that are handed on, by name; and those whose names begin with `LC_`. A list of what may, not of what may
/// not: a key can have any name.
const HANDED_ON: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "NO_COLOR",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "NODE_PATH",
    "RUBYLIB",
];

impl Scripts {
    /// With what of an environment may be handed on.
    pub fn of<'e>(variables: impl IntoIterator<Item = (&'e str, &'e str)>) -> Self {
        let mut env: Vec<(String, String)> = variables
            .into_iter()
            .filter(|(name, _)| HANDED_ON.contains(name) || name.starts_with("LC_"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        env.sort_unstable();
        Self { env }
    }

    fn path(&self) -> &str {
        let mut env = self.env.iter();
        env.find(|(name, _)| name == "PATH")
            .map_or("", |(_, value)| value)
    }
}

/// Params of `script`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptEval {
    /// The program and its arguments; no shell reads them. A program with a `/` is relative to the rubric's folder, any
    /// other is looked for on the PATH. It is run in the rubric's folder.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// Handed to the program as they are.
    #[serde(default)]
    params: Map<String, Value>,
    /// How long the program may take, in seconds.
    #[serde(default = "half_a_minute")]
    #[schemars(range(min = 0.001, max = 3600.0))]
    timeout_s: f64,
}

const fn half_a_minute() -> f64 {
    30.0
}

impl EvalType for ScriptEval {
    const NAME: &'static str = "script";
    const SUMMARY: &'static str = "The author's own program reads {type, params, transcript} as JSON and answers {passed, score, reason}; only where dicta.yaml says `allow_scripts: true`.";
    const EXAMPLE: &'static str = "command: [python3, checks/tone.py]\nparams:\n  limit: 3";
    const SCORED: bool = true;
    const FIXED: &'static [&'static str] = &["command"];

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        self.compile_at(&Home::default())
    }

    fn compile_at(self, home: &Home) -> Result<Compiled, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.command.is_empty() {
            problems.push(problem("/command", "needs a program"));
        }
        for (at, word) in self.command.iter().enumerate() {
            let pointer = format!("/command/{at}");
            if at == 0 && word.trim().is_empty() {
                problems.push(problem(pointer, "is empty; it must be a program"));
            } else if word.contains('\0') {
                problems.push(problem(pointer, "holds a NUL, which no argument can"));
            }
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= MOST_SECONDS) {
            let got = self.timeout_s;
            problems.push(problem(
                "/timeout_s",
                format!("must be more than 0 and at most {MOST_SECONDS} (got {got})"),
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Compiled::Check(Box::new(Script {
            command: self.command,
            params: self.params,
            timeout_s: self.timeout_s,
            home: home.clone(),
        })))
    }

    fn nature(home: &Home) -> Nature {
        match home.scripts {
            Some(_) => Nature::Waits,
            None => Nature::Off(OFF),
        }
    }
}

#[derive(Debug)]
struct Script {
    /// Not empty.
    command: Vec<String>,
    params: Map<String, Value>,
    timeout_s: f64,
    home: Home,
}

impl Check for Script {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let Some(scripts) = &self.home.scripts else {
            return Finding::check_error(OFF);
        };
        match self.run(scripts, subject) {
            Ok(ended) => self.read(ended),
            Err(why) => Finding::check_error(why),
        }
    }

    fn nature(&self) -> Nature {
        <ScriptEval as EvalType>::nature(&self.home)
    }
}

impl Script {
    fn run(&self, scripts: &Scripts, subject: &Subject<'_>) -> Result<Ended, String> {
        let name = Quoted(&self.command[0]);
        let program = find(&self.command[0], &self.home.folder, scripts.path())
            .map_err(|why| format!("{name} {why}"))?;
        let input = wire::request(&self.params, subject)
            .map_err(|why| format!("the transcript cannot be handed over: {why}"))?;
        let job = Job {
            program: &program,
            arguments: &self.command[1..],
            folder: &self.home.folder,
            env: &scripts.env,
            input: &input,
            timeout: milliseconds(self.timeout_s),
        };
        child::run(&job, &|| subject.stopped()).map_err(|why| format!("{name} {why}"))
    }

    fn read(&self, ended: Ended) -> Finding {
        let name = Quoted(&self.command[0]);
        match ended {
            Ended::Stopped => Finding::check_error(format!("{name} was ended with the run")),
            Ended::TooLate(stderr) => Finding::check_error(format!(
                "{name} took longer than {} s and was ended{}",
                self.timeout_s,
                told(&stderr)
            )),
            Ended::TooMuch(limit) => Finding::check_error(format!(
                "{name} wrote more than {} KiB to its standard output and was ended",
                limit >> 10
            )),
            Ended::Failed(how, stderr) => {
                Finding::check_error(format!("{name} {how}{}", told(&stderr)))
            }
            Ended::Well(stdout, stderr) => match verdict::read(&stdout) {
                Ok(finding) => finding,
                Err(why) => Finding::check_error(format!("{name} {why}{}", told(&stderr))),
            },
        }
    }
}

/// What a program said on its standard error, its last words: further lines of an explanation.
fn told(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let from = text
        .char_indices()
        .rev()
        .nth(SHOWN - 1)
        .map_or(0, |(at, _)| at);
    let cut = if from > 0 { "…" } else { "" };
    format!(
        "; its standard error:\n{cut}{}",
        make_visible(&text[from..], true)
    )
}

/// The program's file. The error is a sentence's end.
fn find(program: &str, folder: &Path, path: &str) -> Result<PathBuf, String> {
    if program.contains('/') {
        let file = folder.join(program);
        return if file.is_file() {
            Ok(file)
        } else {
            Err("is no file in the rubric's folder".to_owned())
        };
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file()).ok_or_else(|| {
        if folder.join(program).is_file() {
            format!("is not on the PATH; for the file in the rubric's folder write `./{program}`")
        } else {
            "is not on the PATH".to_owned()
        }
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "params are checked: between 0 and an hour"
)]
fn milliseconds(seconds: f64) -> Millis {
    Millis(((seconds * 1000.0) as u64).max(1))
}

#[cfg(test)]
mod tests;
