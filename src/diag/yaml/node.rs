//! The conversion of text to a tree with places, and of that tree to a JSON value with a table of places.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{
    DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned,
};

use super::mapping::DiagnosticCollector;
use super::{EntrySpans, MAX_DEPTH, scalar};
use crate::diag::SourceSpan;
use crate::model::escape_pointer_step;

/// The maximum size of all pointers of a document together, in bytes.
const MAX_POINTER_BYTES: usize = 32 << 20;

/// A parsed value. Its place is in the [`Spanned`] that contains it.
pub(super) enum YamlNode {
    /// Text: quoted, a block, or a plain word that the parser did not read as a number.
    Text(String),
    /// A plain word that the parser read as a number, boolean or null. dicta reads its meaning from the source.
    Plain,
    List(Vec<Spanned<YamlNode>>),
    Map(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

/// Parses a text. Keeps duplicate keys for [`resolve_tree`] to report.
pub(super) fn parse_nodes(
    text: &str,
    many: bool,
    refuse_duplicates: bool,
    max_nodes: usize,
) -> Result<Vec<Spanned<YamlNode>>, Error> {
    let options = || {
        serde_saphyr::options! {
            // Only `true` and `false` are booleans. In YAML 1.1 also `yes`, `no` and `on` are, which
            // surprises authors.
            strict_booleans: true,
            reject_unsupported_tags: true,
            // dicta renders its own snippets.
            with_snippet: false,
            // dicta reports all duplicates itself, because the parser would stop at the first one.
            duplicate_keys: if refuse_duplicates { DuplicateKeyPolicy::Error } else { DuplicateKeyPolicy::LastWins },
            // dicta merges `<<` itself, because it needs the places of merged values.
            merge_keys: MergeKeyPolicy::AsOrdinary,
            // `resolve_scalar` refuses these numbers with a message of its own.
            non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
            // Aliases can make a small file expand to billions of values, so the expansion is limited.
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: max_nodes,
            },
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                flow_nesting_limit: MAX_DEPTH,
                max_nodes: max_nodes,
                max_events: 4 * max_nodes,
                max_recorded_anchor_events: 4 * max_nodes,
                max_recorded_anchor_bytes: 16 << 20,
                max_aliases: 1_000,
                max_anchors: 1_000,
                // The limits above suffice; a shared anchor with many aliases is legitimate.
                enforce_alias_anchor_ratio: false,
            },
        }
    };
    if many {
        serde_saphyr::from_multiple_with_options(text, options())
    } else {
        serde_saphyr::from_str_with_options::<Option<Spanned<YamlNode>>>(text, options())
            .map(|root| root.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NodeVisitor;
        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = YamlNode;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, _: bool) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_i64<E>(self, _: i64) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_u64<E>(self, _: u64) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_f64<E>(self, _: f64) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_unit<E>(self) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_none<E>(self) -> Result<YamlNode, E> {
                Ok(YamlNode::Plain)
            }
            fn visit_str<E>(self, v: &str) -> Result<YamlNode, E> {
                Ok(YamlNode::Text(v.to_owned()))
            }
            fn visit_string<E>(self, v: String) -> Result<YamlNode, E> {
                Ok(YamlNode::Text(v))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlNode, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(YamlNode::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(YamlNode::Map(entries))
            }
        }
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Returns true if a mapping has a key that could be a number.
pub(super) fn has_number_keys(node: &YamlNode) -> bool {
    match node {
        YamlNode::Text(_) | YamlNode::Plain => false,
        YamlNode::List(items) => items.iter().any(|item| has_number_keys(&item.value)),
        YamlNode::Map(entries) => entries.iter().any(|(key, value)| {
            key.value
                .starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
                || has_number_keys(&value.value)
        }),
    }
}

/// Builds the value and the places of a tree. Reports duplicate keys, numbers out of range and exceeded limits.
pub(super) fn resolve_tree(
    root: &Spanned<YamlNode>,
    source: &str,
    problems: &mut DiagnosticCollector,
    max_nodes: usize,
) -> (Value, HashMap<String, EntrySpans>) {
    let mut walk = TreeResolver {
        source,
        problems,
        spans: HashMap::new(),
        max_nodes,
        nodes_left: max_nodes,
        pointer_bytes: MAX_POINTER_BYTES.max(max_nodes.saturating_mul(200)),
    };
    let value = walk.resolve_node(root, &mut String::new(), None);
    (value, walk.spans)
}

struct TreeResolver<'s> {
    source: &'s str,
    problems: &'s mut DiagnosticCollector,
    spans: HashMap<String, EntrySpans>,
    max_nodes: usize,
    nodes_left: usize,
    pointer_bytes: usize,
}

impl TreeResolver<'_> {
    fn resolve_node(
        &mut self,
        node: &Spanned<YamlNode>,
        pointer: &mut String,
        key: Option<SourceSpan>,
    ) -> Value {
        let span = to_span(node.defined);
        if self.nodes_left == 0 {
            return Value::Null;
        }
        self.nodes_left -= 1;
        // Long keys at every level make pointers that are far larger than the file.
        match self.pointer_bytes.checked_sub(pointer.len()) {
            Some(left) => self.pointer_bytes = left,
            // Reusing the other limit ends the walk at one place.
            None => self.nodes_left = 0,
        }
        if self.nodes_left == 0 {
            self.problems.error(
                span.clone(),
                "too-large",
                format!(
                    "more than {} values, with aliases expanded, or too long keys",
                    self.max_nodes
                ),
            );
        }
        let value = match &node.value {
            YamlNode::Text(text) => text.clone().into(),
            YamlNode::Plain => self.resolve_plain(&span),
            YamlNode::List(items) => {
                let depth = pointer.len();
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                    list.push(self.resolve_node(item, pointer, None));
                    pointer.truncate(depth);
                }
                Value::Array(list)
            }
            YamlNode::Map(entries) => {
                let mut map = Map::new();
                self.resolve_entries(entries, pointer, &mut map, false);
                Value::Object(map)
            }
        };
        self.spans
            .insert(pointer.clone(), EntrySpans { key, value: span });
        value
    }

    /// Reads a plain word's value from the source, because the parser changes `014` and numbers out of range.
    fn resolve_plain(&self, span: &SourceSpan) -> Value {
        let word = self.source.get(span.bytes.clone()).unwrap_or("").trim();
        let refused = match scalar::resolve_scalar(word) {
            scalar::PlainScalar::Value(value) => return value,
            scalar::PlainScalar::Text if word.starts_with(['"', '\'', '!', '|', '>']) => {
                "tags are not read here".to_owned()
            }
            scalar::PlainScalar::Text => return word.into(),
            scalar::PlainScalar::Refused(why) => why,
        };
        self.problems.error(span.clone(), "number", refused);
        Value::Null
    }

    fn resolve_entries(
        &mut self,
        entries: &[(Spanned<String>, Spanned<YamlNode>)],
        pointer: &mut String,
        map: &mut Map<String, Value>,
        merged: bool,
    ) {
        let depth = pointer.len();
        for (key, node) in entries {
            let key_span = to_span(key.defined);
            // Merge keys follow in the second loop.
            if key.value == "<<" {
                continue;
            }
            if map.contains_key(&key.value) {
                // A merged key that exists already is not an error: the existing one takes precedence.
                if !merged {
                    self.problems.error(
                        key_span,
                        "duplicate-key",
                        format!("the key `{}` is here twice", key.value),
                    );
                }
                continue;
            }
            pointer.push('/');
            pointer.push_str(&escape_pointer_step(&key.value));
            let value = self.resolve_node(node, pointer, Some(key_span));
            pointer.truncate(depth);
            map.insert(key.value.clone(), value);
        }
        // Own keys take precedence over merged keys, wherever `<<` is. Of several merged mappings, the first one
        // takes precedence.
        let mut seen = 0;
        for (key, node) in entries.iter().filter(|(key, _)| key.value == "<<") {
            seen += 1;
            if seen > 1 {
                self.problems.error(
                    to_span(key.defined),
                    "duplicate-key",
                    "the key `<<` is here twice".to_owned(),
                );
            }
            match &node.value {
                YamlNode::Map(inner) => self.resolve_entries(inner, pointer, map, true),
                YamlNode::List(items) => {
                    for item in items {
                        match &item.value {
                            YamlNode::Map(inner) => self.resolve_entries(inner, pointer, map, true),
                            _ => self.report_merge_not_mapping(to_span(item.defined)),
                        }
                    }
                }
                _ => self.report_merge_not_mapping(to_span(node.defined)),
            }
        }
    }

    fn report_merge_not_mapping(&mut self, span: SourceSpan) {
        let why = "`<<` merges a mapping, or a list of mappings".to_owned();
        self.problems.error(span, "syntax", why);
    }
}

/// Converts a place of the parser. An unknown place becomes the start of the file.
pub(super) fn to_span(at: Location) -> SourceSpan {
    if at == Location::UNKNOWN {
        return super::start_span();
    }
    let offset = at.span().byte_offset().unwrap_or(0);
    let len = at.span().byte_len().unwrap_or(0);
    let offset = usize::try_from(offset).unwrap_or(0);
    let len = usize::try_from(len).unwrap_or(0);
    SourceSpan {
        bytes: offset..offset + len,
        line: u32::try_from(at.line()).unwrap_or(u32::MAX),
        column: u32::try_from(at.column()).unwrap_or(u32::MAX),
    }
}
