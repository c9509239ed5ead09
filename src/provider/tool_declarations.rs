//! Tool declarations in a dialect's format, rendered once per judge and run.
//!
//! A dialect has one [`ToolDeclarationCache`] and takes the piece of each body from it. All bodies share the piece,
//! because every turn of every cell has the same text.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::ToolDeclaration;

/// The most lists that are cached: a judge has one for each verdict format of its evals.
const MAX_CACHED_LISTS: usize = 64;

/// A list of declarations and its JSON.
#[derive(Debug)]
struct RenderedDeclarations {
    declarations: Vec<ToolDeclaration>,
    json: Arc<str>,
}

/// The rendered lists of declarations.
#[derive(Debug, Default)]
pub(super) struct ToolDeclarationCache {
    rendered_lists: Mutex<Vec<RenderedDeclarations>>,
}

impl ToolDeclarationCache {
    /// Returns the JSON of these declarations, rendered on first use; `None` for an empty list, so that the body has
    /// no key for it.
    pub(super) fn get_or_render(
        &self,
        tools: &[ToolDeclaration],
        render: impl FnOnce(&[ToolDeclaration]) -> String,
    ) -> Option<Arc<str>> {
        if tools.is_empty() {
            return None;
        }
        let mut kept = self
            .rendered_lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(rendered) = kept.iter().find(|known| known.declarations == tools) {
            return Some(Arc::clone(&rendered.json));
        }
        let json: Arc<str> = render(tools).into();
        // A full cache keeps its entries: further lists are rendered each time.
        if kept.len() < MAX_CACHED_LISTS {
            kept.push(RenderedDeclarations {
                declarations: tools.to_vec(),
                json: Arc::clone(&json),
            });
        }
        Some(json)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::testing::decl;
    use super::*;

    #[test]
    fn each_tool_list_is_rendered_once_and_shared() {
        let (declared, rendered) = (ToolDeclarationCache::default(), Cell::new(0));
        let piece = |tools: &[ToolDeclaration]| {
            declared.get_or_render(tools, |tools| {
                rendered.set(rendered.get() + 1);
                tools[0].name.clone()
            })
        };
        let (a, b) = ([decl("a"), decl("submit_verdict")], [decl("b")]);
        let first = piece(&a).expect("declared");
        for _ in 0..100 {
            assert!(Arc::ptr_eq(&first, &piece(&a).expect("declared")));
        }
        assert_eq!(rendered.get(), 1);
        assert_eq!(piece(&b).as_deref(), Some("b"));
        assert_eq!(piece(&[]), None);
        assert_eq!(rendered.get(), 2);
    }
}
