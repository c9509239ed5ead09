//! `--fail-on` of `dicta compare`: the conditions under which a comparison fails. Does not count regressions or compute
//! figures.

use super::agree_gate::AgreementGate;

/// The conditions of `--fail-on`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FailOn {
    /// The number of regressions that is still accepted; `None` if regressions do not matter.
    pub(super) accepted: Option<u64>,
    /// The bounds of the newer state's figures.
    pub(super) gate: Option<AgreementGate>,
}

impl FailOn {
    /// Parses `regressions`, `regressions=N` and bounds, with commas between.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self::default();
        let mut bounds = Vec::new();
        for condition in text.split(',') {
            let (name, number) = match condition.split_once('=') {
                None => (condition, None),
                Some((name, number)) => (name, Some(number)),
            };
            match name {
                "regressions" => {
                    let accepted = number.map_or(Ok(0), str::parse);
                    found.accepted = Some(accepted.map_err(|_| {
                        "N must be a whole number, such as `regressions=2`".to_owned()
                    })?);
                }
                _ if number.is_some() => bounds.push(condition),
                _ => {
                    return Err(format!(
                        "`{condition}` is not a condition; write `regressions`, `regressions=N`, or a bound such as \
                         `tpr-lower-below=0.85`"
                    ));
                }
            }
        }
        if !bounds.is_empty() {
            found.gate = Some(AgreementGate::parse(&bounds.join(","))?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regressions_are_a_word_with_an_optional_number() {
        for (text, accepted) in [
            ("regressions", 0),
            ("regressions=0", 0),
            ("regressions=3", 3),
        ] {
            let found = FailOn::parse(text).expect(text);
            assert_eq!(
                (found.accepted, found.gate),
                (Some(accepted), None),
                "{text}"
            );
        }
        for wrong in [
            "",
            "flips",
            "regressions=",
            "regressions=-1",
            "regressions=x",
            "regression",
            "regressions,tpr=0.5",
            "regressions,",
        ] {
            assert!(FailOn::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_and_regressions_are_one_list() {
        let found = FailOn::parse("tpr-lower-below=0.85,regressions=2,labels-below=40");
        let found = found.expect("three conditions");
        let bounds = AgreementGate::parse("tpr-lower-below=0.85,labels-below=40");
        assert_eq!((found.accepted, found.gate), (Some(2), bounds.ok()));
        assert_eq!(
            FailOn::parse("labels-below=4").expect("a bound").accepted,
            None
        );
    }
}
