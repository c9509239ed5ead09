//! The keys of judges with `provider: source`, which return the verdicts in the transcripts.
//!
//! Such a judge calls nothing, so the settings of calls do not apply to it.

use super::keys::{KeyScope, keys_in_scopes};
use super::refuse_keys;
use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, ProviderKind};

const UNSUPPORTED_REASON: &str = "it returns source verdicts and calls nothing";

/// Refuses the keys that only other providers take.
pub(super) fn refuse_other_keys(fields: &mut MappingDecoder<'_>) {
    let others = keys_in_scopes(&[KeyScope::Model, KeyScope::Vertex, KeyScope::Calling]);
    refuse_keys(fields, &others, "source", UNSUPPORTED_REASON);
}

/// Reads the keys that only this provider takes.
pub(super) fn read_source_keys(
    fields: &mut MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    provider: Option<ProviderKind>,
) {
    // If the provider is broken, its keys are read without an error of their own.
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
