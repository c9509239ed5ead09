//! `provider: source`: a judge that gives the verdicts which transcripts carry. It asks nobody, so that nothing of what
//! others are asked with means anything to it.

use super::{MODEL_KEYS, refuse_keys};
use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, ProviderKind};

/// What it takes besides `provider`.
pub(in crate::workspace) const SOURCE_KEYS: &[&str] = &["of", "scorer"];

/// Keys of other judges that it refuses, besides those of models.
pub(in crate::workspace) const UNSUPPORTED_KEYS: &[&str] = &["tools", "max_turns", "timeout_s"];

const UNSUPPORTED_REASON: &str = "the verdicts are there, and nobody is asked";

/// Refuses what only others take.
pub(super) fn refuse_other_keys(fields: &mut MappingDecoder<'_>) {
    refuse_keys(fields, MODEL_KEYS, "source", UNSUPPORTED_REASON);
    refuse_keys(fields, UNSUPPORTED_KEYS, "source", UNSUPPORTED_REASON);
}

/// Its own keys; which no other judge takes.
pub(super) fn read_source_keys(
    fields: &mut MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    provider: Option<ProviderKind>,
) {
    if provider.is_none_or(|provider| provider == ProviderKind::Source) {
        judge.source = fields.text("of");
        judge.scorer = fields.text("scorer");
        return;
    }
    for key in SOURCE_KEYS.iter().copied() {
        if fields.value(key).is_some() {
            fields.error(key, "value", format!("{key} is for `provider: source`"));
        }
    }
}
