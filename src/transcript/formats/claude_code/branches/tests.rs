use proptest::prelude::*;

use super::*;

fn node<'a>(uuid: &'a str, parent: NodeParent<'a>) -> LineNode<'a> {
    LineNode {
        uuid: Some(uuid),
        parent,
        is_conversational: true,
        reply: None,
        calls: Vec::new(),
        answers: Vec::new(),
    }
}

#[test]
fn branches_above_the_limit_are_counted() {
    let names: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let mut nodes: Vec<LineNode<'_>> = vec![node("root", NodeParent::None)];
    nodes.extend(
        names
            .iter()
            .map(|name| node(name, NodeParent::Named("root"))),
    );
    let found = Branches::from_nodes(&nodes);
    assert_eq!(
        (found.paths.len(), found.dropped_count),
        (MAX_BRANCHES, 200 - MAX_BRANCHES)
    );
    assert_eq!(found.paths[0], [0, 200]);
    assert_eq!(found.paths[MAX_BRANCHES - 1], [0, 199]);
}

proptest! {
    /// For any parents, every line with content is in a path or counted, and paths rise.
    #[test]
    fn every_text_is_kept(
        parents in prop::collection::vec((0_usize..60, 0_u8..4, any::<bool>(), 0_u8..4), 1..60),
    ) {
        let names: Vec<String> = (0..60).map(|n| n.to_string()).collect();
        let nodes: Vec<LineNode<'_>> = parents.iter().enumerate().map(|(at, (parent, kind, speaks, id))| {
            let mut one = node(&names[at], match kind {
                0 => NodeParent::None,
                1 => NodeParent::Before,
                _ => NodeParent::Named(&names[*parent]),
            });
            one.is_conversational = *speaks;
            match id {
                0 => one.answers = vec![SourceText::from(names[*parent].as_str())],
                1 => one.reply = Some(SourceText::from(names[*parent / 4].as_str())),
                2 => one.calls = vec![SourceText::from(names[*parent].as_str())],
                _ => {}
            }
            one
        }).collect();
        let found = Branches::from_nodes(&nodes);
        let mut in_a_way = vec![false; nodes.len()];
        for way in &found.paths {
            prop_assert!(way.is_sorted());
            for at in way {
                in_a_way[*at] = true;
            }
        }
        let lost = (0..nodes.len()).filter(|at| nodes[*at].is_conversational && !in_a_way[*at]).count();
        prop_assert_eq!(lost, found.dropped_count);
    }
}
