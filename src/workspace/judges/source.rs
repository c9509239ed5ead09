//! `provider: source`: a judge that gives the verdicts which transcripts carry. It asks nobody, so that nothing of what
//! others are asked with means anything to it.

use super::{MODEL_KEYS, none_of};
use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, ProviderKind};

/// What it takes besides `provider`.
pub(in crate::workspace) const OWN: &[&str] = &["of", "scorer"];

/// Keys of other judges that it refuses, besides those of models.
pub(in crate::workspace) const NOT_TAKEN: &[&str] = &["tools", "max_turns", "timeout_s"];

const WHY: &str = "the verdicts are there, and nobody is asked";

/// Refuses what only others take.
pub(super) fn read(fields: &mut MappingDecoder<'_>) {
    none_of(fields, MODEL_KEYS, "source", WHY);
    none_of(fields, NOT_TAKEN, "source", WHY);
}

/// Its own keys; which no other judge takes.
pub(super) fn settle(
    fields: &mut MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    provider: Option<ProviderKind>,
) {
    if provider.is_none_or(|provider| provider == ProviderKind::Source) {
        judge.source = fields.text("of");
        judge.scorer = fields.text("scorer");
        return;
    }
    for key in OWN.iter().copied() {
        if fields.value(key).is_some() {
            fields.error(key, "value", format!("{key} is for `provider: source`"));
        }
    }
}
