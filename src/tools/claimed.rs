//! What the tokens of a judge's tools claim, and what a person is told where there is none.

use std::sync::Arc;

use super::auth::{self, Claims};
use super::toolbox::{Definition, Toolbox};
use crate::event::{CallCx, EventKind};
use crate::net::Resolver;

/// What verified tokens claim, of the services that these tools ask for.
pub(super) async fn claims(
    definitions: &[Arc<Definition>],
    toolbox: &Toolbox,
    resolver: &Arc<dyn Resolver>,
    cx: &CallCx,
) -> Claims {
    let mut services: Vec<&str> = Vec::new();
    for definition in definitions {
        for service in services_of(definition, toolbox) {
            if !services.contains(&service) {
                services.push(service);
            }
        }
    }
    let services = services
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), Arc::clone(toolbox.auth.get(name)?))))
        .collect();
    let (claims, mut problems) = auth::verify(&services, &cx.clock, resolver).await;
    if problems.is_empty() {
        let mut definitions = definitions.iter();
        problems.extend(definitions.find_map(|definition| unasked(definition, &claims, toolbox)));
    }
    for text in problems {
        // The model is told that authentication is missing, a person why.
        cx.out.send(EventKind::Note { cell: None, text }).await;
    }
    claims
}

/// That a tool's calls will all be rejected, because nobody gave a token; and how to give one.
fn unasked(definition: &Definition, claims: &Claims, toolbox: &Toolbox) -> Option<String> {
    let required = &definition.auth_required;
    if required.is_empty() || required.iter().any(|name| claims.of(name).is_some()) {
        return None;
    }
    let ways = required.iter().filter_map(|name| {
        let service = toolbox.auth.get(name)?;
        Some(format!("of `{name}`: {}", service.advice()))
    });
    Some(format!(
        "the tool `{}` needs a token {}",
        definition.decl.name,
        ways.collect::<Vec<_>>().join(", or ")
    ))
}

pub(super) fn services_of<'t>(
    definition: &'t Definition,
    toolbox: &'t Toolbox,
) -> impl Iterator<Item = &'t str> {
    let about = toolbox.about.get(&definition.decl.name);
    let of_params = about.into_iter().flat_map(|about| &about.services);
    definition
        .auth_required
        .iter()
        .chain(of_params)
        .map(String::as_str)
}
