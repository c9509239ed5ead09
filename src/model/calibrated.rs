//! What a judge states that answers with probabilities: numbers in the place of reasons, and how they are shown.

use serde::{Deserialize, Serialize};

/// What a judge states that answers with probabilities and gives no reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibratedScore {
    /// Which kind of judge: `openai-decisions`.
    pub by: String,
    /// How likely it passes; absent where that was asked of its parts, or where it does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How likely each value is, where there were more than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueProbability>,
    /// How sure the service is, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// How likely a value is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueProbability {
    /// `met`, `not_met` or `not_applicable`.
    pub value: String,
    /// From 0 to 1.
    pub probability: f64,
}

impl CalibratedScore {
    /// What stands where another judge's reason would: `p = 0.93, no rationale (openai-decisions)`.
    pub fn summary_line(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        if let Some(p) = self.probability {
            said.push(format!("p = {}", format_probability(p)));
        }
        let values = self.values.iter();
        said.extend(values.map(|v| format!("{} {}", v.value, format_probability(v.probability))));
        if let Some(confidence) = self.confidence {
            said.push(format!("confidence {}", format_probability(confidence)));
        }
        said.push(format!("no rationale ({})", self.by));
        said.join(", ")
    }
}

/// A probability with up to four digits: rounder ones would call what is likely certain.
pub(super) fn format_probability(p: f64) -> String {
    ((p * 1e4).round() / 1e4).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_plainly_that_there_is_no_reason() {
        let mut said = CalibratedScore {
            by: "openai-decisions".to_owned(),
            probability: Some(0.93),
            ..CalibratedScore::default()
        };
        assert_eq!(
            said.summary_line(),
            "p = 0.93, no rationale (openai-decisions)"
        );
        said.probability = Some(0.9996);
        assert_eq!(
            said.summary_line(),
            "p = 0.9996, no rationale (openai-decisions)",
            "likely is not certain"
        );
        let old: CalibratedScore = serde_json::from_str(r#"{"by":"x"}"#).expect("defaults");
        assert_eq!(old.summary_line(), "no rationale (x)");
    }
}
