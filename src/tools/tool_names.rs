//! The names that a judge's `tools:` may contain, and the error text for unknown names.

use super::built_in_tool_decls;
use super::toolbox::Toolbox;
use crate::diag::find_nearest;

/// Returns one sentence about all unknown names, with the known ones.
pub(super) fn explain_unknown_tools(unknown: &[&str], toolbox: &Toolbox) -> String {
    let names = list_tool_names(toolbox);
    let listed: Vec<String> = unknown
        .iter()
        .map(
            |name| match find_nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("`{name}` (did you mean `{near}`?)"),
                None => format!("`{name}`"),
            },
        )
        .collect();
    format!(
        "unknown tools: {}; available: {}",
        listed.join(", "),
        names.join(", ")
    )
}

/// Lists the names that a judge's `tools:` may contain, sorted.
pub fn list_tool_names(toolbox: &Toolbox) -> Vec<String> {
    let mut names: Vec<String> = built_in_tool_decls()
        .into_iter()
        .map(|decl| decl.name)
        .collect();
    names.extend(toolbox.tools.keys().cloned());
    names.extend(toolbox.sets.keys().cloned());
    let discovers = toolbox
        .sources
        .iter()
        .filter(|(_, source)| source.has_own_tools());
    names.extend(discovers.map(|(name, _)| name.clone()));
    // Sorted for the message; a source and a toolset may have the same name.
    names.sort();
    names.dedup();
    names
}
