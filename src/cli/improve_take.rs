//! `dicta improve EVAL --take N`: writes a proposal of the last call into the rubric.
//!
//! Responsible for the refusals: a proposal that was not offered, or that was measured with another rubric, stays out. Asks
//! and measures nothing.

use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::variants::take_variant;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Digest, make_visible, quote_shell_word};
use crate::workspace::Workspace;
use crate::workspace::proposal_log::{proposals_file_path, read_last_call};
use crate::workspace::variant_file::{Variant, VariantFile};

/// Writes a proposal of the last call, if the rubric is still the one that was measured.
pub(super) fn take_proposal(
    number: u32,
    file: &VariantFile,
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let labels = workspace.labels_file_path();
    let eval = file.eval_name();
    let call = read_last_call(&labels, &eval).map_err(|error| {
        CommandError::usage(format!(
            "{}: {error}",
            proposals_file_path(&labels).display()
        ))
    })?;
    let Some(call) = call else {
        return Err(CommandError::usage(format!(
            "no proposals are recorded for {eval}; `dicta improve {} --judge NAME` asks for some",
            quote_shell_word(&eval)
        )));
    };
    let found = call.proposals.iter().find(|one| one.number == number);
    let Some(proposal) = found else {
        return Err(CommandError::usage(format!(
            "the last call made no proposal {number} for {eval}; it made {}",
            call.proposals.len()
        )));
    };
    if let Some(why) = &proposal.refused {
        return Err(CommandError::usage(format!(
            "proposal {number} is not offered: {}",
            make_visible(why, false)
        )));
    }
    if call.rubric_digest != Digest::hash_bytes(file.rubric.source.as_bytes()) {
        return Err(CommandError::usage(format!(
            "{} has changed since proposal {number} was measured, so its figures no longer hold; ask again",
            file.rubric.path.display()
        )));
    }
    let variant = Variant {
        name: format!("proposal {number}"),
        values: proposal.values.clone(),
    };
    take_variant(file, &variant, workspace, registry, cx)
}
