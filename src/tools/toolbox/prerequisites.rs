//! The checks of `after:`: unknown names and cycles.

use std::collections::HashMap;

use super::ToolDefinition;
use super::definition_reader::explain_unknown_name;
use super::file_formats::ToolboxEntry;
use crate::diag::Diagnostic;

/// Refuses unknown names and cycles. If a source declares tools itself, an unknown name may be one of them; it is
/// then checked when a judge's tools are assembled.
pub(super) fn check_prerequisites(
    definitions: &mut [(&ToolboxEntry, ToolDefinition)],
    discovers: bool,
    problems: &mut Vec<Diagnostic>,
) {
    let names: Vec<String> = definitions
        .iter()
        .map(|(entry, _)| entry.name.clone())
        .collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let after: HashMap<&str, Vec<String>> = definitions
        .iter()
        .zip(&known)
        .map(|((_, definition), name)| (*name, definition.prerequisites.clone()))
        .collect();
    for ((entry, definition), name) in definitions.iter_mut().zip(&known) {
        let mut found = Vec::new();
        for (index, before) in definition.prerequisites.iter().enumerate() {
            let is_known =
                known.contains(&before.as_str()) || crate::tools::is_built_in_tool(before);
            // A source that declares its own tools may have the missing one.
            if !is_known && !discovers {
                found.push((
                    format!("/after/{index}"),
                    explain_unknown_name("tool", before, &known),
                ));
            }
        }
        if let Some(circle) = find_cycle(name, &after) {
            found.push((
                "/after".to_owned(),
                format!("`after` goes round: {}", circle.join(" → ")),
            ));
        }
        for (at, message) in found {
            let problem = entry.doc.error(&at, "after", message);
            definition.errors.push(problem.to_string());
            problems.push(problem);
        }
    }
}

/// Returns the path from a tool back to itself, if there is one.
fn find_cycle<'n>(start: &'n str, after: &'n HashMap<&str, Vec<String>>) -> Option<Vec<&'n str>> {
    let mut seen: Vec<&str> = Vec::new();
    // A search over all paths; each tool is entered once, so it ends.
    let mut ways = vec![vec![start]];
    while let Some(way) = ways.pop() {
        let last = way.last().copied().unwrap_or(start);
        for next in after.get(last).into_iter().flatten() {
            let mut way = way.clone();
            way.push(next);
            if next == start {
                return Some(way);
            }
            if !seen.contains(&next.as_str()) {
                seen.push(next);
                ways.push(way);
            }
        }
    }
    None
}
