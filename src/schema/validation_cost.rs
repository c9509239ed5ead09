//! How often a schema may look at a value: references and combinations can make it exponentially often, in the number of
//! definitions or in the depth of the value. What is worked out here is never less than it is.

use std::collections::HashMap;

use serde_json::Value;

/// More looks than these, some tenths of a second, are too many.
const MAX_COST: f64 = 10_000_000.0;
/// Deeper values are not told apart: the reader of JSON refuses them.
const MAX_VALUE_DEPTH: usize = 128;

/// Keywords whose schemas, one or a list of them, look at the same value; then those with a map of them.
const SAME_VALUE_KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const SAME_VALUE_MAP_KEYWORDS: &[&str] = &["dependentSchemas", "dependencies"];
/// Those that look at the values within, whichever they are; likewise.
const CHILD_VALUE_KEYWORDS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
];
const REFERENCE_KEYWORDS: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// By the depth of a value: how many looks it may take. Empty: a schema without references takes no more than it is long.
#[derive(Debug, Clone, Default)]
pub(super) struct ValidationCost(Vec<f64>);

#[derive(Default)]
struct SchemaNode {
    same: Vec<usize>,
    within: Vec<usize>,
    by_name: Vec<usize>,
}

/// A schema as a graph: its parts by their address, and those still to be read.
struct SchemaGraph<'s> {
    root: &'s Value,
    named_parts: HashMap<&'s str, &'s Value>,
    known: HashMap<usize, usize>,
    nodes: Vec<SchemaNode>,
    pending: Vec<(usize, &'s Value)>,
}

impl ValidationCost {
    /// The error is a sentence: even a plain value would take too many.
    pub(super) fn estimate(schema: &Value) -> Result<Self, String> {
        let names = collect_named_parts(schema);
        let Some(names) = names else {
            return Ok(Self::default());
        };
        let mut graph = SchemaGraph {
            root: schema,
            named_parts: names,
            known: HashMap::new(),
            nodes: Vec::new(),
            pending: Vec::new(),
        };
        graph.add_node(schema);
        while let Some((at, part)) = graph.pending.pop() {
            graph.nodes[at] = graph.read_node(part);
        }
        let order = topological_order(&graph.nodes);
        let mut below = vec![0.0; graph.nodes.len()];
        let mut of_depth = Vec::new();
        for _ in 0..=MAX_VALUE_DEPTH {
            let mut now = vec![0.0; graph.nodes.len()];
            for at in &order {
                let node = &graph.nodes[*at];
                // What leads back to itself without a step into the value counts once: the validator ends it.
                let same: f64 = node.same.iter().map(|to| now[*to]).sum();
                let within: f64 = node.within.iter().map(|to| below[*to]).sum();
                let by_name = node.by_name.iter().map(|to| below[*to]);
                now[*at] = 1.0 + same + within + by_name.fold(0.0, f64::max);
            }
            of_depth.push(now[0]);
            below = now;
        }
        if of_depth[0] > MAX_COST {
            return Err(
                "its references and combinations would look at one value millions of times"
                    .to_owned(),
            );
        }
        Ok(Self(of_depth))
    }

    /// The error is a sentence: the value lies too deep for this schema.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        let depth = value_depth(value).min(MAX_VALUE_DEPTH);
        if self.0[depth] <= MAX_COST {
            return Ok(());
        }
        Err(format!(
            "nested {depth} levels deep, too deep for a schema that refers to itself in several ways at once"
        ))
    }
}

impl<'s> SchemaGraph<'s> {
    fn add_node(&mut self, part: &'s Value) -> usize {
        let next = self.nodes.len();
        let at = *self
            .known
            .entry(std::ptr::from_ref(part).addr())
            .or_insert(next);
        if at == next {
            self.nodes.push(SchemaNode::default());
            self.pending.push((at, part));
        }
        at
    }

    fn read_node(&mut self, part: &'s Value) -> SchemaNode {
        let mut node = SchemaNode::default();
        let Value::Object(part) = part else {
            return node;
        };
        for (keyword, value) in part {
            let keyword = keyword.as_str();
            if SAME_VALUE_KEYWORDS.contains(&keyword) {
                node.same.extend(self.add_list(value));
            } else if CHILD_VALUE_KEYWORDS.contains(&keyword) {
                node.within.extend(self.add_list(value));
            } else if SAME_VALUE_MAP_KEYWORDS.contains(&keyword) {
                node.same.extend(self.add_map(value));
            } else if keyword == "patternProperties" {
                node.within.extend(self.add_map(value));
            } else if keyword == "properties" {
                node.by_name.extend(self.add_map(value));
            } else if REFERENCE_KEYWORDS.contains(&keyword)
                && let Some(to) = value.as_str().and_then(|to| self.resolve_reference(to))
            {
                let to = self.add_node(to);
                node.same.push(to);
            }
        }
        node
    }

    fn add_list(&mut self, value: &'s Value) -> Vec<usize> {
        match value {
            Value::Array(all) => all.iter().map(|part| self.add_node(part)).collect(),
            part => vec![self.add_node(part)],
        }
    }

    fn add_map(&mut self, value: &'s Value) -> Vec<usize> {
        let all = value.as_object().into_iter().flat_map(|map| map.values());
        all.map(|part| self.add_node(part)).collect()
    }

    fn resolve_reference(&self, to: &str) -> Option<&'s Value> {
        let (document, place) = to.split_once('#').unwrap_or((to, ""));
        let document = match document {
            "" => self.root,
            named => self.named_parts.get(named)?,
        };
        if place.is_empty() || place.starts_with('/') {
            document.pointer(place)
        } else {
            self.named_parts.get(place).copied()
        }
    }
}

/// What parts of a schema call themselves. `None`: nothing in it refers to anything.
fn collect_named_parts(schema: &Value) -> Option<HashMap<&str, &Value>> {
    let mut names = HashMap::new();
    let mut refers = false;
    let mut open = vec![schema];
    while let Some(part) = open.pop() {
        match part {
            Value::Object(map) => {
                refers |= REFERENCE_KEYWORDS
                    .iter()
                    .any(|keyword| map.contains_key(*keyword));
                for name in ["$id", "$anchor", "$dynamicAnchor"] {
                    if let Some(name) = map.get(name).and_then(Value::as_str) {
                        names.insert(name.trim_end_matches('#'), part);
                    }
                }
                open.extend(map.values());
            }
            Value::Array(all) => open.extend(all),
            _ => {}
        }
    }
    refers.then_some(names)
}

/// All nodes, each after those that look at the same value for it; circles are cut.
fn topological_order(nodes: &[SchemaNode]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut seen = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        let mut path = vec![(start, 0)];
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        while let Some((at, next)) = path.last_mut() {
            let Some(to) = nodes[*at].same.get(*next) else {
                order.push(*at);
                path.pop();
                continue;
            };
            *next += 1;
            if !std::mem::replace(&mut seen[*to], true) {
                path.push((*to, 0));
            }
        }
    }
    order
}

fn value_depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, at)) = open.pop() {
        deepest = deepest.max(at);
        match value {
            Value::Object(map) => open.extend(map.values().map(|value| (value, at + 1))),
            Value::Array(all) => open.extend(all.iter().map(|value| (value, at + 1))),
            _ => {}
        }
    }
    deepest
}
