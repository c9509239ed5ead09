//! `max_length`, `min_length`: how long the output is, in characters (not bytes, as newer `PromptKit` counts).

use schemars::JsonSchema;
use serde::Deserialize;

use super::registry::{EvalType, problem};
use super::{Check, Compiled, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `max_length`: one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MaxLength {
    /// The most characters the output may have.
    #[serde(default)]
    max: Option<u64>,
    /// Another name for `max`.
    #[serde(default)]
    max_characters: Option<u64>,
    /// Another name for `max`.
    #[serde(default)]
    max_chars: Option<u64>,
}

impl EvalType for MaxLength {
    const NAME: &'static str = "max_length";
    const SUMMARY: &'static str = "The output has at most so many characters.";
    const EXAMPLE: &'static str = "max: 700";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let names = ["max", "max_characters", "max_chars"];
        let most = one_of([self.max, self.max_characters, self.max_chars], names)?;
        Ok(Compiled::Check(Box::new(Length { least: 0, most })))
    }
}

/// Params of `min_length`: one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MinLength {
    /// The fewest characters the output may have.
    #[serde(default)]
    #[schemars(range(min = 1))]
    min: Option<u64>,
    /// Another name for `min`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    min_characters: Option<u64>,
    /// Another name for `min`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    min_chars: Option<u64>,
}

impl EvalType for MinLength {
    const NAME: &'static str = "min_length";
    const SUMMARY: &'static str = "The output has at least so many characters.";
    const EXAMPLE: &'static str = "min: 20";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let names = ["min", "min_characters", "min_chars"];
        let least = one_of([self.min, self.min_characters, self.min_chars], names)?;
        if least == 0 {
            return Err(vec![problem(
                "/min",
                "must be 1 or more: every text has 0 characters",
            )]);
        }
        Ok(Compiled::Check(Box::new(Length {
            least,
            most: u64::MAX,
        })))
    }
}

fn one_of(given: [Option<u64>; 3], names: [&str; 3]) -> Result<u64, Vec<ParamProblem>> {
    let mut set = given
        .iter()
        .zip(names)
        .filter_map(|(value, name)| Some(((*value)?, name)));
    match (set.next(), set.next()) {
        (Some((value, _)), None) => Ok(value),
        (Some((_, first)), Some((_, second))) => {
            let why = format!("says the same as `{first}`: give one of them");
            Err(vec![problem(format!("/{second}"), why)])
        }
        (None, _) => Err(vec![problem("", format!("`{}` is missing", names[0]))]),
    }
}

/// Characters, bounds included.
#[derive(Debug)]
struct Length {
    least: u64,
    most: u64,
}

impl Check for Length {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let length = subject.output().text.chars().count() as u64;
        if length > self.most {
            let over = length - self.most;
            return Finding::of(
                false,
                format!("{length} characters, {over} more than {}", self.most),
            );
        }
        if length < self.least {
            let short = self.least - length;
            return Finding::of(
                false,
                format!("{length} characters, {short} fewer than {}", self.least),
            );
        }
        Finding::of(true, format!("{length} characters"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{on_output, passes, refused, told};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn characters_count_not_bytes_and_bounds_are_inside() {
        for (kind, params, output, passed) in [
            ("max_length", json!({"max": 3}), "日本語", true),
            ("max_length", json!({"max_characters": 3}), "日本語!", false),
            ("max_length", json!({"max_chars": 0}), "", true),
            ("min_length", json!({"min": 3}), "日本語", true),
            ("min_length", json!({"min_chars": 4}), "日本語", false),
        ] {
            assert_eq!(
                passes(kind, &params, output),
                Some(passed),
                "{kind} {params} {output}"
            );
        }
        assert_eq!(
            on_output("max_length", &json!({"max": 3}), "abcde").explanation,
            "5 characters, 2 more than 3"
        );
        assert_eq!(
            on_output("min_length", &json!({"min": 7}), "abcde").explanation,
            "5 characters, 2 fewer than 7"
        );
        let none = json!({"messages": []});
        assert_eq!(told("max_length", &json!({"max": 3}), &none).0, Pass);
        assert_eq!(told("min_length", &json!({"min": 3}), &none).0, Fail);
    }

    #[test]
    fn one_limit_is_given() {
        assert_eq!(
            refused("max_length", &json!({})),
            [(String::new(), "`max` is missing".to_owned())]
        );
        assert_eq!(
            refused("max_length", &json!({"max": 1, "max_chars": 2})),
            [(
                "/max_chars".to_owned(),
                "max_chars says the same as `max`: give one of them".to_owned()
            )]
        );
        assert!(!refused("min_length", &json!({"min": 0})).is_empty());
    }
}
