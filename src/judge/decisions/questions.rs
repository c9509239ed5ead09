//! The questions of an eval, and the material they are asked of.

use super::super::form::Form;
use super::super::marker::Secret;
use super::super::parts::PartsForm;
use super::super::prompt::{self, Prompt};
use crate::handlers::{JudgeRequest, VerdictPartsSpec};
use crate::provider::ProviderError;
use crate::provider::decisions::{AllowedAnswers, ProbabilityQuestion};

/// Levels of a scale that has no whole steps, or too many of them.
const EVEN: u32 = 11;
/// Most levels of a question.
const MOST_LEVELS: f64 = 255.0;

/// The material, as any judge is shown it, without the verdict's form.
pub(in super::super) fn prompt(ask: &JudgeRequest, base_prompt: &str, secret: &Secret) -> Prompt {
    prompt::render_material(
        ask,
        base_prompt,
        secret,
        "Each question about this material is asked apart from it.",
    )
}

/// What is asked about a cell.
pub(in super::super) fn questions(
    ask: &JudgeRequest,
    form: &Form,
) -> Result<Vec<ProbabilityQuestion>, ProviderError> {
    let matter = prompt::matter_of(ask);
    let Some(parts) = form.parts else {
        return Ok(whole(ask, form, &matter));
    };
    let (one, met, failed) = match parts {
        PartsForm::Criteria(_) => ("criterion", "It is met.", "It is not met."),
        PartsForm::Goals(Some(_)) => ("goal", "It is met in full.", "It is not met in full."),
        PartsForm::Calls(_) => ("call", "It has no issue.", "It has an issue."),
        PartsForm::Goals(None) | PartsForm::Behaviors => {
            return Err(ProviderError::Request(
                "this judge answers with probabilities alone: it can neither name goals nor count; list the goals, or \
                 use a judge that writes"
                    .to_owned(),
            ));
        }
    };
    let asked = |number: usize| {
        // The author's own words may stand in a question; what comes from a transcript may not.
        let words = match &ask.params.parts_spec {
            VerdictPartsSpec::Criteria(texts) => texts
                .get(number - 1)
                .map(|text| format!(" It says: {text}")),
            _ => None,
        };
        let does = match parts {
            PartsForm::Calls(_) => {
                format!("Is call number {number} of those listed without an issue?")
            }
            _ => format!("Is {one} number {number} of those listed met?"),
        };
        yes_no(
            format!("part_{number}"),
            format!(
                "{matter} {does} Decide it by itself.{}",
                words.unwrap_or_default()
            ),
            [met, failed],
        )
    };
    let mut all: Vec<ProbabilityQuestion> =
        (1..=parts.numbered().unwrap_or(0)).map(asked).collect();
    if form.allow_na {
        all.push(yes_no(
            "applicable".to_owned(),
            format!("{matter} Can any of what is listed be applied to this conversation at all?"),
            ["At least one entry applies.", "None of it can be applied."],
        ));
    }
    Ok(all)
}

fn whole(ask: &JudgeRequest, form: &Form, matter: &str) -> Vec<ProbabilityQuestion> {
    let by = match (ask.params.criteria.is_empty(), ask.params.guide.is_empty()) {
        (false, true) => "the criteria",
        (true, _) => "the scoring guide",
        (false, false) => "the criteria, read with the scoring guide",
    };
    let instructions = format!("{matter} By {by} alone: does it meet them?");
    let [met, failed] = [
        "It meets them.",
        "It does not, or the material does not show that it does.",
    ];
    let mut all = vec![if form.allow_na {
        let option = |name: &str, means: &str| (name.to_owned(), means.to_owned());
        ProbabilityQuestion {
            id: "met".to_owned(),
            instructions,
            allowed_answers: AllowedAnswers::Options(vec![
                option("met", met),
                option("not_met", failed),
                option(
                    "not_applicable",
                    "They cannot be applied to this conversation at all.",
                ),
            ]),
        }
    } else {
        yes_no("met".to_owned(), instructions, [met, failed])
    }];
    if form.scale.is_some() {
        let levels = levels(form.bounds());
        let last = levels.len() - 1;
        let described = levels.iter().enumerate().map(|(at, level)| {
            let said = guided(&ask.params.guide, *level);
            let means = match (said, at) {
                (Some(said), _) => said.to_owned(),
                (None, 0) => "Not at all.".to_owned(),
                (None, at) if at == last => "Fully.".to_owned(),
                (None, _) => format!("{level} on a scale from {} to {}.", levels[0], levels[last]),
            };
            (level.to_string(), means)
        });
        all.push(ProbabilityQuestion {
            id: "score".to_owned(),
            instructions: format!("{matter} By {by} alone: to what degree does it meet them?"),
            allowed_answers: AllowedAnswers::Levels(described.collect()),
        });
    }
    all
}

fn yes_no(id: String, instructions: String, [yes, no]: [&str; 2]) -> ProbabilityQuestion {
    ProbabilityQuestion {
        id,
        instructions,
        allowed_answers: AllowedAnswers::YesNo(yes.to_owned(), no.to_owned()),
    }
}

/// The levels of a scale, from the lowest: its whole numbers where it has at least three and not too many.
pub(super) fn levels((low, high): (f64, f64)) -> Vec<f64> {
    let steps = high - low;
    let whole = low.fract() == 0.0 && high.fract() == 0.0 && (2.0..MOST_LEVELS).contains(&steps);
    if whole {
        let mut all = vec![low];
        while let Some(last) = all.last().copied().filter(|last| *last < high) {
            all.push(last + 1.0);
        }
        return all;
    }
    (0..EVEN)
        .map(|at| {
            let exact = low + steps * f64::from(at) / f64::from(EVEN - 1);
            // What it is called is what it is worth.
            (exact * 1e6).round() / 1e6
        })
        .collect()
}

/// What the guide says of a level, on a line that begins with it.
fn guided(guide: &str, level: f64) -> Option<&str> {
    guide.lines().find_map(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*•".contains(c));
        let end = line
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(line.len());
        let number: f64 = line[..end].trim_end_matches('.').parse().ok()?;
        let said =
            line[end..].trim_start_matches(|c: char| c.is_whitespace() || ".:)–—-=".contains(c));
        ((number - level).abs() < 1e-9 && !said.is_empty()).then_some(said)
    })
}
