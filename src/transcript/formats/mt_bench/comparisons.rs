//! Comparisons of two answers by a judge: MT-Bench's pairs (`g1_winner`, `g2_winner`) and Arena-Hard's `games`.
//!
//! Responsible for the verdict on each of the two answers. The judge sees both orders, and an answer passes if it wins in both.
//! Orders that contradict each other are a tie, as in FastChat. A tie is neither pass nor fail.

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::{RawJson, SourceVerdict};
use crate::transcript::fields::RawFields;
use crate::transcript::native::text_or_json;

/// The outcomes of a comparison for the first answer, with what the source writes.
struct GamePair {
    judge: String,
    /// The outcome of each order: `Greater` if the first answer won, `Equal` for a tie. `None` if the judge named no winner.
    outcomes: Vec<Option<Ordering>>,
    value: Value,
    reasoning: Option<String>,
}

impl GamePair {
    /// Returns the verdict on the first answer.
    fn into_verdict(self, eval: String) -> SourceVerdict {
        let known: Option<Vec<Ordering>> = self.outcomes.into_iter().collect();
        let known = known.filter(|all| !all.is_empty());
        let all_are = |outcome: Ordering| {
            let known = known.as_ref();
            known.is_some_and(|all| all.iter().all(|one| *one == outcome))
        };
        let passed = if all_are(Ordering::Greater) {
            Some(true)
        } else if all_are(Ordering::Less) {
            Some(false)
        } else {
            None
        };
        let error = known
            .is_none()
            .then(|| "a judgment names no winner".to_owned());
        SourceVerdict {
            judge: self.judge,
            eval,
            passed,
            score: None,
            value: RawJson::parse(&self.value.to_string()).ok(),
            reasoning: self.reasoning,
            error,
        }
    }

    /// Returns the same comparison from the view of the second answer.
    fn reversed(&self) -> Self {
        let outcomes = self.outcomes.iter();
        Self {
            judge: self.judge.clone(),
            outcomes: outcomes.map(|one| one.map(Ordering::reverse)).collect(),
            value: self.value.clone(),
            reasoning: self.reasoning.clone(),
        }
    }
}

/// Returns the verdicts of a pair, each with the model of its answer.
pub(super) fn read_pair(fields: &RawFields<'_>, judge: String) -> Vec<(String, SourceVerdict)> {
    let (Some(first), Some(second)) = (fields.id_text("model_1"), fields.id_text("model_2")) else {
        return Vec::new();
    };
    let winners = ["g1_winner", "g2_winner"].map(|key| fields.text(key).unwrap_or_default());
    let outcomes = winners.iter().map(|winner| match &**winner {
        "model_1" => Some(Ordering::Greater),
        "model_2" => Some(Ordering::Less),
        "tie" => Some(Ordering::Equal),
        // FastChat writes `error` if it found no winner in the judgment.
        _ => None,
    });
    let reasons = ["g1_judgment", "g2_judgment"].map(|key| fields.text(key).unwrap_or_default());
    let comparison = GamePair {
        judge,
        outcomes: outcomes.collect(),
        value: serde_json::json!({"g1_winner": &*winners[0], "g2_winner": &*winners[1]}),
        reasoning: join_reasons(reasons.iter().map(|reason| &**reason)),
    };
    let turn = fields.integer("turn").unwrap_or(1);
    let other = comparison.reversed();
    vec![
        (
            first.to_string(),
            comparison.into_verdict(format!("turn {turn} against {}", &*second)),
        ),
        (
            second.to_string(),
            other.into_verdict(format!("turn {turn} against {}", &*first)),
        ),
    ]
}

/// Returns the verdict of Arena-Hard's games on the answer of a model. In the first game, the answer of the baseline has the
/// letter A; in the second one, the answer of the model has it.
pub(super) fn read_games(fields: &RawFields<'_>, judge: String) -> Vec<(String, SourceVerdict)> {
    let Some(model) = fields.id_text("model") else {
        return Vec::new();
    };
    let games = fields.list("games").unwrap_or_default();
    let games = games
        .into_iter()
        .map(|raw| RawFields::from_raw(raw).unwrap_or_default());
    let games: Vec<RawFields<'_>> = games.collect();
    let outcomes = games.iter().enumerate().map(|(at, game)| {
        let of_a = match game.text("score").as_deref() {
            Some("A>>B" | "A>B") => Ordering::Greater,
            Some("B>>A" | "B>A" | "A<<B" | "A<B") => Ordering::Less,
            Some("A=B" | "B=A") => Ordering::Equal,
            _ => return None,
        };
        Some(if at % 2 == 0 { of_a.reverse() } else { of_a })
    });
    let scores = games.iter().map(|game| match game.text("score") {
        Some(score) => Value::from(&*score),
        None => Value::Null,
    });
    let reasons = games.iter().map(|game| {
        let judgment = game.get("judgment");
        // The second version wraps the text in an object.
        let nested = game.object("judgment").and_then(|all| all.get("answer"));
        nested.or(judgment).map(text_or_json).unwrap_or_default()
    });
    let reasons: Vec<_> = reasons.collect();
    let baseline = fields.text("baseline");
    let baseline = baseline.as_deref().unwrap_or("the baseline");
    let comparison = GamePair {
        judge,
        outcomes: outcomes.collect(),
        value: scores.collect(),
        reasoning: join_reasons(reasons.iter().map(|reason| &**reason)),
    };
    vec![(
        model.to_string(),
        comparison.into_verdict(format!("against {baseline}")),
    )]
}

/// Returns the reasons of both orders as one text.
fn join_reasons<'r>(reasons: impl Iterator<Item = &'r str>) -> Option<String> {
    let reasons: Vec<&str> = reasons
        .map(str::trim)
        .filter(|reason| !reason.is_empty())
        .collect();
    (!reasons.is_empty()).then(|| reasons.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts as `model eval passed error`.
    fn show(found: &[(String, SourceVerdict)]) -> Vec<String> {
        let show = |(model, verdict): &(String, SourceVerdict)| {
            format!(
                "{model} {} {:?} {:?}",
                verdict.eval, verdict.passed, verdict.error
            )
        };
        found.iter().map(show).collect()
    }

    fn pair(first: &str, second: &str) -> Vec<String> {
        let record = format!(
            r#"{{"question_id":1,"model_1":"m","model_2":"n","g1_winner":"{first}","g2_winner":"{second}","turn":2}}"#
        );
        let fields = RawFields::parse(&record).expect("a pair");
        show(&read_pair(&fields, "gpt-4".to_owned()))
    }

    fn game(first: &str, second: &str) -> Vec<String> {
        let record = format!(
            r#"{{"question_id":"q","model":"m","games":[{{"score":{first}}},{{"score":{second}}}]}}"#
        );
        let fields = RawFields::parse(&record).expect("games");
        show(&read_games(&fields, "gpt-4".to_owned()))
    }

    #[test]
    fn answer_that_wins_in_both_orders_passes_and_the_other_one_fails() {
        assert_eq!(
            pair("model_1", "model_1"),
            [
                "m turn 2 against n Some(true) None",
                "n turn 2 against m Some(false) None"
            ]
        );
        let won = ["m against the baseline Some(true) None"];
        assert_eq!(game(r#""B>A""#, r#""A>>B""#), won);
        let lost = ["m against the baseline Some(false) None"];
        assert_eq!(game(r#""A>>B""#, r#""B>A""#), lost);
    }

    #[test]
    fn orders_that_contradict_each_other_are_a_tie() {
        let tie = [
            "m turn 2 against n None None",
            "n turn 2 against m None None",
        ];
        for (first, second) in [("model_1", "model_2"), ("tie", "model_1"), ("tie", "tie")] {
            assert_eq!(pair(first, second), tie, "{first} {second}");
        }
        let tie = ["m against the baseline None None"];
        assert_eq!(game(r#""A>B""#, r#""A>B""#), tie);
        assert_eq!(game(r#""A=B""#, r#""A>B""#), tie);
    }

    #[test]
    fn order_without_a_winner_is_an_error_of_the_judge() {
        let error = r#"None Some("a judgment names no winner")"#;
        assert_eq!(
            pair("error", "model_1"),
            [
                format!("m turn 2 against n {error}"),
                format!("n turn 2 against m {error}")
            ]
        );
        let expected = [format!("m against the baseline {error}")];
        assert_eq!(game("null", r#""A>B""#), expected);
    }
}
