//! The statement of a judge that returns probabilities instead of reasoning, and its display.

use serde::{Deserialize, Serialize};

/// The statement of a judge that returns probabilities instead of reasoning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibratedScore {
    /// The kind of judge, such as `openai-decisions`.
    pub by: String,
    /// The probability of a pass; `None` for a verdict with parts, or if the criteria do not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The probability of each value, if there are more than two values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueProbability>,
    /// The confidence that the service states, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// A value with its probability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueProbability {
    /// The value: `met`, `not_met` or `not_applicable`.
    pub value: String,
    /// The probability, from 0 to 1.
    pub probability: f64,
}

impl CalibratedScore {
    /// Formats the line that replaces the reasoning: `p = 0.93, no rationale (openai-decisions)`.
    pub fn summary_line(&self) -> String {
        let mut statement: Vec<String> = Vec::new();
        if let Some(p) = self.probability {
            statement.push(format!("p = {}", format_probability(p)));
        }
        let values = self.values.iter();
        statement
            .extend(values.map(|v| format!("{} {}", v.value, format_probability(v.probability))));
        if let Some(confidence) = self.confidence {
            statement.push(format!("confidence {}", format_probability(confidence)));
        }
        statement.push(format!("no rationale ({})", self.by));
        statement.join(", ")
    }
}

/// Formats a probability with up to four digits. Fewer digits would print a likely value as certain.
pub(super) fn format_probability(p: f64) -> String {
    ((p * 1e4).round() / 1e4).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_line_states_that_there_is_no_rationale() {
        let mut statement = CalibratedScore {
            by: "openai-decisions".to_owned(),
            probability: Some(0.93),
            ..CalibratedScore::default()
        };
        assert_eq!(
            statement.summary_line(),
            "p = 0.93, no rationale (openai-decisions)"
        );
        statement.probability = Some(0.9996);
        assert_eq!(
            statement.summary_line(),
            "p = 0.9996, no rationale (openai-decisions)",
            "likely is not certain"
        );
        let old: CalibratedScore = serde_json::from_str(r#"{"by":"x"}"#).expect("defaults");
        assert_eq!(old.summary_line(), "no rationale (x)");
    }
}
