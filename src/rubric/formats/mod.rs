//! The formats of rubrics: dicta's own, and those of other tools as far as they carry over.
//!
//! Responsible for the detection of a file's format (by content, not by name) and for the conversion to evals in
//! dicta's format. dicta's loader then reads the converted evals as strictly as its own.
//!
//! A check that would have another meaning in dicta is reported as not carried over. The report has its place and an
//! alternative. Examples are another case rule, another default, or a program of another runtime. Nothing is dropped
//! silently.
//!
//! Checks of one test case apply only to its transcripts: by scenario id, or by the metadata with the case's
//! variables. Does not run anything, and reads files only through [`super::RubricFiles`].

mod arena;
mod conversion;
mod detect;
mod doc_location;
mod evalbench;
mod evalset;
mod openai;
mod promptfoo;
mod promptkit;
mod tool_settings;

use std::fmt;
use std::rc::Rc;

pub use detect::{DetectedFile, detect_rubric_format};
pub use tool_settings::find_tool_secrets;
pub(super) use tool_settings::mask_tool_secrets;

use super::eval::EvalReader;
use super::{NO_EVALS, Rubric, RubricCx};
use crate::diag::yaml::YamlDoc;
use crate::diag::{Diagnostic, Severity};
use conversion::EvalConverter;

/// The format of a rubric file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RubricFormat {
    /// dicta's own format, which includes bare `evals:` lists of PromptKit.
    #[default]
    Native,
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
    /// evalbench's evalset without a run config.
    Evalset,
    /// promptfoo's config, tests or `assert:` list.
    Promptfoo,
    /// `testing_criteria` of OpenAI Evals.
    OpenaiEval,
}

impl RubricFormat {
    /// Returns the name of the format as a user knows it: `an evalbench run config`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "a dicta rubric",
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

impl fmt::Display for RubricFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a rubric in another tool's format.
pub(super) fn read_foreign(
    format: RubricFormat,
    cx: RubricCx<'_>,
    doc: &Rc<YamlDoc>,
    rubric: &mut Rubric,
) {
    let RubricCx {
        problems,
        catalog,
        files,
        ..
    } = cx;
    let mut converter = EvalConverter::new(catalog, files);
    match format {
        // `load` reads the native format itself.
        RubricFormat::Native => return,
        // PromptKit's evals are dicta's evals, so they need no conversion.
        RubricFormat::PromptConfig => {
            let mut evals = EvalReader::new(cx);
            return promptkit::read_prompt_config(doc, problems, &mut evals, rubric);
        }
        RubricFormat::Pack => {
            let mut evals = EvalReader::new(cx);
            return promptkit::read_pack(doc, problems, &mut evals, rubric);
        }
        RubricFormat::ArenaScenario | RubricFormat::ArenaEval => {
            arena::read(doc, format, rubric, &mut converter);
        }
        RubricFormat::EvalbenchRun => evalbench::read(doc, files, rubric, &mut converter),
        RubricFormat::Evalset => evalset::read(doc, &mut converter),
        RubricFormat::Promptfoo => promptfoo::read(doc, files, rubric, &mut converter),
        RubricFormat::OpenaiEval => openai::read(doc, rubric, &mut converter),
    }
    // Read the converted evals with dicta's loader.
    let has_no_checks = converter.has_no_checks;
    let result = converter.finish();
    let broken = crate::diag::has_errors(&result.problems);
    for problem in result.problems {
        problems.push(problem);
    }
    rubric.evals = result.evals;
    for eval in &mut rubric.evals {
        eval.needs_text_output = matches!(format, RubricFormat::Promptfoo);
    }
    rubric.judges = result.judges;
    // If there are errors, they explain the missing evals.
    if rubric.evals.is_empty() && !broken {
        problems.push(if has_no_checks {
            warn_of_missing_assertions(doc)
        } else {
            let message = format!("this is {format}, and no eval came of it");
            doc.error("", NO_EVALS, message)
                .help("a rubric without evals checks nothing; `evals:` of a rubric file hold them")
        });
    }
}

/// Returns the warning about a promptfoo config without assertions. promptfoo also runs configs whose outputs only people
/// read, so such a config is not an error.
fn warn_of_missing_assertions(doc: &YamlDoc) -> Diagnostic {
    let (message, help) = if doc.value.get("redteam").is_some() {
        (
            "this promptfoo config only generates tests (`redteam:`), so it judges nothing",
            "name the file that `promptfoo redteam generate` writes, or `dicta init --from` with its results",
        )
    } else {
        (
            "this promptfoo config has no assertions, so it judges nothing",
            "`dicta init --from CONFIG RESULTS` makes a workspace with its outputs and a first rubric",
        )
    };
    Diagnostic {
        severity: Severity::Warning,
        ..doc.error("", NO_EVALS, message).help(help)
    }
}

#[cfg(test)]
mod tests;
