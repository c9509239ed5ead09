//! The claims of the tokens that a judge's tools need, and the notes about missing tokens.

use std::sync::Arc;

use super::auth::{self, VerifiedClaims};
use super::source::ToolDefinition;
use super::toolbox::Toolbox;
use crate::event::{CallCx, EventKind};
use crate::net::Resolver;

/// Verifies the tokens of the auth services that these tools need, and returns their claims.
pub(super) async fn verify_tool_claims(
    definitions: &[Arc<ToolDefinition>],
    toolbox: &Toolbox,
    resolver: &Arc<dyn Resolver>,
    cx: &CallCx,
) -> VerifiedClaims {
    // A service is verified once, even if several tools need it.
    let mut services: Vec<&str> = Vec::new();
    for definition in definitions {
        for service in required_services(definition, toolbox) {
            if !services.contains(&service) {
                services.push(service);
            }
        }
    }
    let services = services
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), Arc::clone(toolbox.auth.get(name)?))))
        .collect();
    let (claims, mut problems) = auth::verify_auth_services(&services, &cx.clock, resolver).await;
    // One note is enough: the same token is usually missing for all tools.
    if problems.is_empty() {
        let mut definitions = definitions.iter();
        problems.extend(
            definitions.find_map(|definition| explain_missing_token(definition, &claims, toolbox)),
        );
    }
    for text in problems {
        // The language model learns only that authentication is missing; the reason is for the user.
        cx.out.send(EventKind::Note { cell: None, text }).await;
    }
    claims
}

/// Returns the note that all calls of a tool will be rejected for lack of a token, and how to supply one.
fn explain_missing_token(
    definition: &ToolDefinition,
    claims: &VerifiedClaims,
    toolbox: &Toolbox,
) -> Option<String> {
    let required = &definition.auth_required;
    if required.is_empty() || required.iter().any(|name| claims.get(name).is_some()) {
        return None;
    }
    let ways = required.iter().filter_map(|name| {
        let service = toolbox.auth.get(name)?;
        Some(format!("of `{name}`: {}", service.explain_token_setup()))
    });
    Some(format!(
        "the tool `{}` needs a token {}",
        definition.decl.name,
        ways.collect::<Vec<_>>().join(", or ")
    ))
}

pub(super) fn required_services<'t>(
    definition: &'t ToolDefinition,
    toolbox: &'t Toolbox,
) -> impl Iterator<Item = &'t str> {
    let about = toolbox.origins.get(&definition.decl.name);
    let of_params = about.into_iter().flat_map(|about| &about.services);
    definition
        .auth_required
        .iter()
        .chain(of_params)
        .map(String::as_str)
}
