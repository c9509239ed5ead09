//! The forms a rubric comes in: ours, and those of other tools as far as they carry over.
//!
//! Owns which form a file is in (by what it holds, never by its name), and what each form becomes: evals in our language,
//! which then pass the same strict reading as ours. A check that would mean something else here (another case rule,
//! another default, a program of another runtime) is told as not carried over, with its place and what to write instead;
//! nothing is dropped in silence. Checks of one test case are bound to its transcripts: by scenario id, or by the
//! metadata that holds the case's variables. Refuses to run anything, and to read files but through [`Files`].

mod arena;
mod at;
mod evalbench;
mod evalset;
mod make;
mod openai;
mod promptfoo;
mod promptkit;
mod recognise;

use std::fmt;
use std::rc::Rc;

pub use recognise::{Recognised, recognise};

use super::eval::EvalReader;
use super::{Cx, Rubric};
use crate::diag::yaml::YamlDoc;
use make::Maker;

/// The form of a rubric file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Ours, and bare `evals:` lists of PromptKit.
    #[default]
    Own,
    /// PromptKit's `kind: PromptConfig`.
    PromptConfig,
    /// PromptKit's pack.
    Pack,
    /// PromptKit Arena's `kind: Scenario`.
    ArenaScenario,
    /// PromptKit Arena's `kind: Eval`.
    ArenaEval,
    /// evalbench's run config.
    EvalbenchRun,
    /// evalbench's evalset by itself.
    Evalset,
    /// promptfoo's config, tests or `assert:` list.
    Promptfoo,
    /// `testing_criteria` of OpenAI Evals.
    OpenaiEval,
}

impl Form {
    /// What a user calls it: `an evalbench run config`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "a dicta rubric",
            Self::PromptConfig => "a PromptKit prompt config",
            Self::Pack => "a PromptKit pack",
            Self::ArenaScenario => "a PromptKit Arena scenario",
            Self::ArenaEval => "a PromptKit Arena eval",
            Self::EvalbenchRun => "an evalbench run config",
            Self::Evalset => "an evalbench evalset",
            Self::Promptfoo => "promptfoo assertions",
            Self::OpenaiEval => "OpenAI Evals testing criteria",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a rubric in another form than ours.
pub(super) fn read(form: Form, cx: Cx<'_>, doc: &Rc<YamlDoc>, rubric: &mut Rubric) {
    let Cx {
        problems,
        catalog,
        files,
        ..
    } = cx;
    let mut maker = Maker::new(catalog, files);
    match form {
        Form::Own => return,
        Form::PromptConfig => {
            let mut evals = EvalReader::new(cx);
            return promptkit::prompt_config(doc, problems, &mut evals, rubric);
        }
        Form::Pack => {
            let mut evals = EvalReader::new(cx);
            return promptkit::pack(doc, problems, &mut evals, rubric);
        }
        Form::ArenaScenario | Form::ArenaEval => arena::read(doc, form, rubric, &mut maker),
        Form::EvalbenchRun => evalbench::read(doc, files, rubric, &mut maker),
        Form::Evalset => evalset::read(doc, &mut maker),
        Form::Promptfoo => promptfoo::read(doc, files, rubric, &mut maker),
        Form::OpenaiEval => openai::read(doc, rubric, &mut maker),
    }
    let made = maker.finish();
    let broken = crate::diag::has_errors(&made.problems);
    for problem in made.problems {
        problems.push(problem);
    }
    rubric.evals = made.evals;
    rubric.judges = made.judges;
    if rubric.evals.is_empty() && !broken {
        let message = format!("this is {form}, and no eval came of it");
        problems
            .push(doc.error("", "no-evals", message).help(
                "a rubric without evals checks nothing; `evals:` of a rubric file hold them",
            ));
    }
}

#[cfg(test)]
mod tests;
