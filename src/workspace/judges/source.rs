//! `provider: source`: a judge that gives the verdicts which transcripts carry. It asks nobody, so that nothing of what
//! others are asked with means anything to it.

use super::keys::{KeyScope, keys_in_scopes};
use super::refuse_keys;
use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, ProviderKind};

const UNSUPPORTED_REASON: &str = "the verdicts are there, and nobody is asked";

/// Refuses what only others take.
pub(super) fn refuse_other_keys(fields: &mut MappingDecoder<'_>) {
    let others = keys_in_scopes(&[KeyScope::Model, KeyScope::Vertex, KeyScope::Calling]);
    refuse_keys(fields, &others, "source", UNSUPPORTED_REASON);
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
    for key in keys_in_scopes(&[KeyScope::Source]) {
        if fields.value(key).is_some() {
            fields.error(key, "value", format!("{key} is for `provider: source`"));
        }
    }
}
