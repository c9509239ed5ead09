//! From the text a model wrote to JSON, with everything that was changed on the way.
//!
//! Today only strict JSON passes; the repair of what models really write takes its place in [`repair`], whose callers
//! already record its changes.

use super::json::Node;
use crate::model::Change;

/// A text as JSON, and what had to be changed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repaired {
    pub(super) node: Node,
    pub(super) changes: Vec<Change>,
}

/// Reads `raw`, or says in a few words why not.
pub(super) fn repair(raw: &str) -> Result<Repaired, String> {
    let mut changes = Vec::new();
    let node = Node::parse(raw, &mut changes)?;
    Ok(Repaired { node, changes })
}
