//! `script`: a check that runs the author's own program.
//!
//! Responsible for the program's input (`wire`), its answer (`verdict`), and its lifetime. It starts without a shell
//! in the rubric's folder, in its own process group, with an environment without keys. It ends at its deadline, when
//! the run is cancelled, and with dicta itself ([`crate::process`]).
//!
//! Does not run anything unless the workspace has `allow_scripts: true`, so that opening a stranger's rubrics is
//! safe.

mod verdict;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::eval_type::{EvalType, param_problem};
use super::explain::QuotedText;
use super::{Check, CompiledEval, ExecutionMode, Finding, Subject};
use crate::model::{Millis, make_visible};
use crate::process::{MAX_STDOUT_BYTES, ProgramCommand, ProgramExit, run_program};
use crate::rubric::ParamProblem;

/// The reason why cells are skipped if the workspace does not allow scripts.
const SCRIPTS_DISABLED: &str = "scripts are off: set `allow_scripts: true` in dicta.yaml";
/// The largest time limit of a program, in seconds.
const MAX_TIMEOUT_SECONDS: f64 = 3600.0;
/// The largest number of characters of a program's standard error in an explanation.
const MAX_STDERR_CHARS: usize = 2000;

/// The context of compiling an eval: the folder that its params are relative to, and the permissions of the
/// workspace. The default allows nothing.
#[derive(Debug, Clone, Default)]
pub struct CompileCx {
    /// The folder of the rubric.
    pub rubric_folder: PathBuf,
    /// The environment of programs; `None` if programs are not allowed.
    pub script_env: Option<Arc<ScriptEnv>>,
}

/// The environment of programs.
#[derive(Debug, Default)]
pub struct ScriptEnv {
    /// All variables of the program's environment.
    variables: Vec<(String, String)>,
}

/// The variables that a program inherits, in addition to those whose names begin with `LC_`. A list of allowed names
/// and not of forbidden ones, because an API key can have any name.
const INHERITED_VARIABLES: [&str; 14] = [
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

impl ScriptEnv {
    /// Selects the variables that a program may inherit.
    pub fn from_variables<'e>(variables: impl IntoIterator<Item = (&'e str, &'e str)>) -> Self {
        let mut variables: Vec<(String, String)> = variables
            .into_iter()
            .filter(|(name, _)| INHERITED_VARIABLES.contains(name) || name.starts_with("LC_"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        // Sorted, so that the environment does not depend on the order of the process environment.
        variables.sort_unstable();
        Self { variables }
    }

    fn path(&self) -> &str {
        let mut env = self.variables.iter();
        env.find(|(name, _)| name == "PATH")
            .map_or("", |(_, value)| value)
    }
}

/// Params of `script`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptEval {
    /// The program and its arguments, run without a shell in the rubric's folder. A program with a `/` is relative to
    /// the rubric's folder; any other is searched on the PATH.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// Params that the program gets unchanged.
    #[serde(default)]
    params: Map<String, Value>,
    /// The time limit in seconds.
    #[serde(default = "half_a_minute")]
    #[schemars(range(min = 0.001, max = 3600.0))]
    timeout_s: f64,
}

const fn half_a_minute() -> f64 {
    // Half a minute by default: enough to start an interpreter.
    30.0
}

impl EvalType for ScriptEval {
    const NAME: &'static str = "script";
    const SUMMARY: &'static str = "Your own program reads {type, params, transcript} as JSON and answers {passed, score, reason}. Requires `allow_scripts: true` in dicta.yaml.";
    const EXAMPLE: &'static str = "command: [python3, checks/tone.py]\nparams:\n  limit: 3";
    const SCORED: bool = true;
    const FIXED_PARAMS: &'static [&'static str] = &["command"];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.compile_in(&CompileCx::default())
    }

    fn compile_in(self, home: &CompileCx) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.command.is_empty() {
            problems.push(param_problem("/command", "needs a program"));
        }
        // A NUL byte ends an argument in the operating system, so no program could receive it.
        for (at, word) in self.command.iter().enumerate() {
            let pointer = format!("/command/{at}");
            if at == 0 && word.trim().is_empty() {
                problems.push(param_problem(pointer, "is empty; it must be a program"));
            } else if word.contains('\0') {
                problems.push(param_problem(
                    pointer,
                    "contains a NUL character, which an argument cannot contain",
                ));
            }
        }
        // The negated form also refuses NaN.
        if !(self.timeout_s > 0.0 && self.timeout_s <= MAX_TIMEOUT_SECONDS) {
            let got = self.timeout_s;
            problems.push(param_problem(
                "/timeout_s",
                format!("must be more than 0 and at most {MAX_TIMEOUT_SECONDS} (got {got})"),
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // dicta looks for the program only when the check runs, so a rubric loads without it.
        Ok(CompiledEval::Check(Box::new(ScriptCheck {
            command: self.command,
            params: self.params,
            timeout_s: self.timeout_s,
            compile_cx: home.clone(),
        })))
    }

    fn execution_mode(home: &CompileCx) -> ExecutionMode {
        match home.script_env {
            Some(_) => ExecutionMode::Blocking,
            None => ExecutionMode::Disabled(SCRIPTS_DISABLED),
        }
    }
}

#[derive(Debug)]
struct ScriptCheck {
    /// The program and its arguments; not empty.
    command: Vec<String>,
    params: Map<String, Value>,
    timeout_s: f64,
    compile_cx: CompileCx,
}

impl Check for ScriptCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Runs disable such cells before; this is the second barrier if a caller does not.
        let Some(scripts) = &self.compile_cx.script_env else {
            return Finding::check_error(SCRIPTS_DISABLED);
        };
        match self.run(scripts, subject) {
            Ok(ended) => self.interpret_exit(ended, subject),
            Err(why) => Finding::check_error(why),
        }
    }

    fn execution_mode(&self) -> ExecutionMode {
        <ScriptEval as EvalType>::execution_mode(&self.compile_cx)
    }
}

impl ScriptCheck {
    fn run(&self, scripts: &ScriptEnv, subject: &Subject<'_>) -> Result<ProgramExit, String> {
        let name = QuotedText(&self.command[0]);
        // Find the program.
        let program = find_program(
            &self.command[0],
            &self.compile_cx.rubric_folder,
            scripts.path(),
        )
        .map_err(|why| format!("{name} {why}"))?;
        // Encode the transcript before the program starts, so that an error starts nothing.
        let input = wire::encode_request(&self.params, subject)
            .map_err(|why| format!("the transcript cannot be written as JSON: {why}"))?;
        let job = ProgramCommand {
            program: &program,
            arguments: &self.command[1..],
            folder: &self.compile_cx.rubric_folder,
            env: &scripts.variables,
            input: &input,
            timeout: to_millis(self.timeout_s),
        };
        // The flag is polled while the program runs, so that a cancelled run does not wait for it.
        run_program(&job, &|| subject.is_cancelled()).map_err(|why| format!("{name} {why}"))
    }

    fn interpret_exit(&self, exit: ProgramExit, subject: &Subject<'_>) -> Finding {
        let name = QuotedText(&self.command[0]);
        let describe_stderr = |stderr: &[u8]| describe_stderr(stderr, subject);
        // Only a program that ended by itself with a valid answer gives a verdict.
        match exit {
            ProgramExit::Cancelled => {
                Finding::check_error(format!("{name} was ended because the run was cancelled"))
            }
            ProgramExit::TimedOut { stderr } => Finding::check_error(format!(
                "{name} took longer than {} s and was ended{}",
                self.timeout_s,
                describe_stderr(&stderr)
            )),
            ProgramExit::OutputTooLarge => Finding::check_error(format!(
                "{name} wrote more than {} KiB to its standard output and was ended",
                MAX_STDOUT_BYTES >> 10
            )),
            ProgramExit::Failed {
                description,
                stderr,
            } => Finding::check_error(format!("{name} {description}{}", describe_stderr(&stderr))),
            ProgramExit::Success { stdout, stderr } => {
                match verdict::parse_finding(&subject.redact_bytes(&stdout)) {
                    Ok(finding) => finding,
                    Err(why) => {
                        Finding::check_error(format!("{name} {why}{}", describe_stderr(&stderr)))
                    }
                }
            }
        }
    }
}

/// Formats the end of a program's standard error, as further lines of an explanation.
fn describe_stderr(stderr: &[u8], subject: &Subject<'_>) -> String {
    // Standard error can have any bytes; an explanation needs text.
    let text = subject.redact(String::from_utf8_lossy(stderr));
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    // The end of the text: an interpreter prints the error last.
    let from = text
        .char_indices()
        .rev()
        .nth(MAX_STDERR_CHARS - 1)
        .map_or(0, |(at, _)| at);
    let cut = if from > 0 { "…" } else { "" };
    format!(
        "; its standard error:\n{cut}{}",
        // Escaped, because the program can print what a transcript contains.
        make_visible(&text[from..], true)
    )
}

/// Returns the program's file. The error completes a sentence that begins with the program's name.
fn find_program(program: &str, folder: &Path, path: &str) -> Result<PathBuf, String> {
    // A path is relative to the rubric's folder; `join` keeps an absolute path unchanged.
    if program.contains('/') {
        let file = folder.join(program);
        return if file.is_file() {
            Ok(file)
        } else {
            Err("is not a file in the rubric's folder".to_owned())
        };
    }
    // Relative folders of the PATH are skipped: they would depend on the current folder.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file()).ok_or_else(|| {
        // A frequent mistake: the file is next to the rubric but is written without `./`.
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
fn to_millis(seconds: f64) -> Millis {
    // At least 1 ms, because a limit of 0 would end the program at once.
    Millis(((seconds * 1000.0) as u64).max(1))
}

#[cfg(test)]
mod tests;
