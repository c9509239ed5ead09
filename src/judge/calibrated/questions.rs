//! The questions of an eval to a Decisions endpoint, and the material they are about.

use super::super::parts::PartsFormat;
use super::super::prompt::{self, JudgePrompt};
use super::super::verdict_format::{ScoreRange, VerdictFormat};
use crate::handlers::{JudgeRequest, VerdictPartsSpec};
use crate::model::InstallationSecret;
use crate::provider::ProviderError;
use crate::provider::decisions::{AllowedAnswers, ProbabilityQuestion};

/// The number of levels of a scale without whole steps, or with too many of them.
const EVEN_LEVEL_COUNT: u32 = 11;
/// The most levels of a question.
const MAX_LEVELS: f64 = 255.0;

/// Renders the material as for any judge, without the verdict format.
pub(in super::super) fn render_prompt(
    request: &JudgeRequest,
    base_prompt: &str,
    secret: &InstallationSecret,
) -> JudgePrompt {
    prompt::render_material(
        request,
        base_prompt,
        secret,
        "Each question about this material is asked apart from it.",
    )
}

/// Builds the questions about a cell.
pub(in super::super) fn build_questions(
    request: &JudgeRequest,
    format: &VerdictFormat,
) -> Result<Vec<ProbabilityQuestion>, ProviderError> {
    let matter = prompt::describe_subject(request);
    // An eval without parts has one overall question, and at most one about the score.
    let Some(parts) = format.parts else {
        return Ok(build_overall_questions(request, format, &matter));
    };
    let (one, met, failed) = match parts {
        PartsFormat::Criteria(_) => ("criterion", "It is met.", "It is not met."),
        PartsFormat::Goals(Some(_)) => ("goal", "It is met in full.", "It is not met in full."),
        PartsFormat::Calls(_) => ("call", "It has no issue.", "It has an issue."),
        // These need written text, which a Decisions endpoint never returns.
        PartsFormat::Goals(None) | PartsFormat::Behaviors => {
            return Err(ProviderError::Request(
                "this judge answers with probabilities alone: it can neither name goals nor count; list the goals, or \
                 use a judge that writes"
                    .to_owned(),
            ));
        }
    };
    let asked = |number: usize| {
        // A question isn't delimited, so it may contain the author's words but no text of a transcript.
        let words = match &request.params.parts_spec {
            VerdictPartsSpec::Criteria(texts) => texts
                .get(number - 1)
                .map(|text| format!(" It says: {text}")),
            _ => None,
        };
        let question = match parts {
            PartsFormat::Calls(_) => {
                format!("Is call number {number} of those listed without an issue?")
            }
            // The words must agree with `met` above, which describes the answer "yes".
            _ => format!("Is {one} number {number} of those listed met?"),
        };
        yes_no_question(
            format!("part_{number}"),
            format!(
                "{matter} {question} Decide it by itself.{}",
                words.unwrap_or_default()
            ),
            [met, failed],
        )
    };
    let mut all: Vec<ProbabilityQuestion> = (1..=parts.numbered_count().unwrap_or(0))
        .map(asked)
        .collect();
    // `applicable` comes last, so that the numbered questions keep the order of the parts.
    if format.allow_na {
        all.push(yes_no_question(
            "applicable".to_owned(),
            format!("{matter} Can any of what is listed be applied to this conversation at all?"),
            ["At least one entry applies.", "None of it can be applied."],
        ));
    }
    Ok(all)
}

fn build_overall_questions(
    request: &JudgeRequest,
    format: &VerdictFormat,
    matter: &str,
) -> Vec<ProbabilityQuestion> {
    // Name only the standards that the eval has.
    let by = match (
        request.params.criteria.is_empty(),
        request.params.guide.is_empty(),
    ) {
        (false, true) => "the criteria",
        (true, _) => "the scoring guide",
        (false, false) => "the criteria, read with the scoring guide",
    };
    let instructions = format!("{matter} By {by} alone: does it meet them?");
    let [met, failed] = [
        "It meets them.",
        "It does not, or the material does not show that it does.",
    ];
    // Three options instead of yes or no, because "not applicable" is neither.
    let mut all = vec![if format.allow_na {
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
        yes_no_question("met".to_owned(), instructions, [met, failed])
    }];
    // A score on the eval's own scale is a question of its own.
    if format.scale.is_some() {
        let levels = list_scale_levels(format.score_range());
        // The scoring guide's own words describe a level best; otherwise only both ends have words.
        let last = levels.len() - 1;
        let described = levels.iter().enumerate().map(|(at, level)| {
            let description = find_level_description(&request.params.guide, *level);
            let means = match (description, at) {
                (Some(description), _) => description.to_owned(),
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

fn yes_no_question(id: String, instructions: String, [yes, no]: [&str; 2]) -> ProbabilityQuestion {
    ProbabilityQuestion {
        id,
        instructions,
        allowed_answers: AllowedAnswers::YesNo(yes.to_owned(), no.to_owned()),
    }
}

/// Lists the levels of a scale in ascending order: its whole numbers if there are 3 to 255 of them.
pub(super) fn list_scale_levels(ScoreRange { low, high }: ScoreRange) -> Vec<f64> {
    let steps = high - low;
    // Whole numbers only if both ends are whole and the endpoint accepts that many levels.
    let has_whole_levels =
        low.fract() == 0.0 && high.fract() == 0.0 && (2.0..MAX_LEVELS).contains(&steps);
    if has_whole_levels {
        let mut all = vec![low];
        while let Some(last) = all.last().copied().filter(|last| *last < high) {
            all.push(last + 1.0);
        }
        return all;
    }
    (0..EVEN_LEVEL_COUNT)
        .map(|at| {
            let exact = low + steps * f64::from(at) / f64::from(EVEN_LEVEL_COUNT - 1);
            // The label is the number's text, so the rounded value must be the one that counts.
            (exact * 1e6).round() / 1e6
        })
        .collect()
}

/// Returns the guide's text about a level, from the line that begins with it.
fn find_level_description(guide: &str, level: f64) -> Option<&str> {
    guide.lines().find_map(|line| {
        // Guides list levels as `- 3: text`, `3. text`, `3 – text`.
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*•".contains(c));
        let end = line
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(line.len());
        let number: f64 = line[..end].trim_end_matches('.').parse().ok()?;
        let description =
            line[end..].trim_start_matches(|c: char| c.is_whitespace() || ".:)–—-=".contains(c));
        // Levels between whole numbers are rounded, so compare with a tolerance.
        ((number - level).abs() < 1e-9 && !description.is_empty()).then_some(description)
    })
}
