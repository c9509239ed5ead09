//! An upper bound for the number of times that a schema visits a value.
//!
//! References and combinations can make this number exponential, in the number of definitions or in the depth of the
//! value.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;

/// The largest allowed number of visits; they take some tenths of a second.
const MAX_COST: f64 = 10_000_000.0;
/// Deeper values count as this deep, because the JSON parser refuses them.
const MAX_VALUE_DEPTH: usize = 128;

/// Keywords whose schemas, one or a list, apply to the same value.
const SAME_VALUE_KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with a map of schemas that apply to the same value.
const SAME_VALUE_MAP_KEYWORDS: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords whose schemas apply to any of the child values.
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
/// Keywords that refer to another schema.
const REFERENCE_KEYWORDS: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// The number of visits by the depth of the value. Empty if the schema has no references: it then visits a value at
/// most as often as the schema is long.
#[derive(Debug, Clone, Default)]
pub(super) struct ValidationCost(Vec<f64>);

/// A schema, by the indexes of the schemas that it applies.
#[derive(Default)]
struct SchemaNode {
    /// Schemas that apply to the same value.
    same: Vec<usize>,
    /// Schemas that apply to every child value.
    within: Vec<usize>,
    /// Schemas of `properties`: at most one applies to a child value.
    by_name: Vec<usize>,
}

/// A schema as a graph: its parts by their address in memory, and the parts that are not read yet.
struct SchemaGraph<'s> {
    root: &'s Value,
    named_parts: HashMap<&'s str, &'s Value>,
    known: HashMap<usize, usize>,
    nodes: Vec<SchemaNode>,
    pending: Vec<(usize, &'s Value)>,
}

impl ValidationCost {
    /// Estimates the cost of a schema. It is an error if even a scalar would need too many visits.
    pub(super) fn estimate(schema: &Value) -> Result<Self, SchemaError> {
        let names = collect_named_parts(schema);
        // Without references a schema visits each value a bounded number of times.
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
        // An explicit stack, because a schema can be nested too deep for recursion.
        while let Some((at, part)) = graph.pending.pop() {
            graph.nodes[at] = graph.read_node(part);
        }
        let order = topological_order(&graph.nodes);
        let mut below = vec![0.0; graph.nodes.len()];
        let mut of_depth = Vec::new();
        // From scalars upwards: the cost at a depth needs the costs one level below.
        for _ in 0..=MAX_VALUE_DEPTH {
            let mut now = vec![0.0; graph.nodes.len()];
            for at in &order {
                let node = &graph.nodes[*at];
                // A cycle that does not step into the value counts once, because the validator ends it.
                let same: f64 = node.same.iter().map(|to| now[*to]).sum();
                let within: f64 = node.within.iter().map(|to| below[*to]).sum();
                let by_name = node.by_name.iter().map(|to| below[*to]);
                now[*at] = 1.0 + same + within + by_name.fold(0.0, f64::max);
                // The root is node 0.
            }
            of_depth.push(now[0]);
            below = now;
        }
        // Depth 0: even a scalar would take too long.
        if of_depth[0] > MAX_COST {
            return Err(SchemaError::TooCostly);
        }
        Ok(Self(of_depth))
    }

    /// Checks a value. It is an error if the value is nested too deep for this schema.
    pub(super) fn check(&self, value: &Value) -> Result<(), SchemaError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let depth = value_depth(value).min(MAX_VALUE_DEPTH);
        if self.0[depth] <= MAX_COST {
            return Ok(());
        }
        Err(SchemaError::ValueTooDeep { depth })
    }
}

impl<'s> SchemaGraph<'s> {
    fn add_node(&mut self, part: &'s Value) -> usize {
        let next = self.nodes.len();
        // By address: a part that is referred to twice is one node.
        let at = *self
            .known
            .entry(std::ptr::from_ref(part).addr())
            .or_insert(next);
        if at == next {
            // The node is added first and read later, so that cycles end.
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
                // Several patterns can apply to one property, so all of them count.
                node.within.extend(self.add_map(value));
            } else if keyword == "properties" {
                // At most one of `properties` applies to each value, so only the largest counts.
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
        // A reference without `#` names a document by its `$id`.
        let (document, place) = to.split_once('#').unwrap_or((to, ""));
        let document = match document {
            "" => self.root,
            named => self.named_parts.get(named)?,
        };
        // A JSON pointer into the document, otherwise an anchor.
        if place.is_empty() || place.starts_with('/') {
            document.pointer(place)
        } else {
            self.named_parts.get(place).copied()
        }
    }
}

/// Returns the named parts of a schema by `$id` and anchor, or `None` if the schema contains no reference.
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
                        // Some drafts allow a trailing `#` in an `$id`.
                        names.insert(name.trim_end_matches('#'), part);
                    }
                }
                open.extend(map.values());
            }
            // All lists and objects are searched, also those that are not schemas: a few names too many do no
            // harm.
            Value::Array(all) => open.extend(all),
            _ => {}
        }
    }
    refers.then_some(names)
}

/// Returns all nodes, each after the nodes that it applies to the same value. Cycles are cut.
fn topological_order(nodes: &[SchemaNode]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut seen = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        // Each entry has the node and the position of its next child, in place of recursion.
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
