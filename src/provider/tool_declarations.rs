//! Tool declarations as a dialect spells them, rendered once a judge and run.
//!
//! A dialect keeps one [`Declared`] and asks it for the piece of each body. The piece is shared: every turn of every
//! cell holds the same text.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::ToolDeclaration;

/// Most different lists that are kept: a judge has one for each form of verdict its evals ask for.
const MAX_CACHED_LISTS: usize = 64;

/// The lists of declarations that were asked for so far.
#[derive(Debug, Default)]
pub(super) struct ToolDeclarationCache {
    rendered_lists: Mutex<Vec<(Vec<ToolDeclaration>, Arc<str>)>>,
}

impl ToolDeclarationCache {
    /// The JSON of these declarations: what `render` made of them the first time. `None` where there are none, so that
    /// no body gets an empty list.
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
        if let Some((_, piece)) = kept.iter().find(|(known, _)| known == tools) {
            return Some(Arc::clone(piece));
        }
        let piece: Arc<str> = render(tools).into();
        if kept.len() < MAX_CACHED_LISTS {
            kept.push((tools.to_vec(), Arc::clone(&piece)));
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::testing::decl;
    use super::*;

    #[test]
    fn each_list_is_rendered_once_and_shared() {
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
