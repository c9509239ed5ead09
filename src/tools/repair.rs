//! From the text a model wrote to JSON, with everything that was changed on the way.
//!
//! Today only strict JSON passes, and nothing is mended: no quote, bracket or comma is added or taken. The one change
//! there can be is a key that stands twice, which JSON allows and readers settle silently; here its last value is kept
//! and that is told. Repair of what models really write is to take its place in [`repair`]; its callers record changes
//! already.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_get_wrong_is_refused_and_not_guessed() {
        for broken in [
            "{'url': 'x'}",
            "{url: \"x\"}",
            r#"{"url": "x",}"#,
            r#"{"url": "x""#,
            "```json\n{\"url\": \"x\"}\n```",
            r#"{"url": None}"#,
            r#"{"url": "x"} // done"#,
            "{\"url\": \"a\nb\"}",
            "{\u{201c}url\u{201d}: 1}",
            r#"{"n": NaN}"#,
        ] {
            assert!(repair(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_valid_is_left_alone_but_for_keys_that_stand_twice() {
        let plain = repair(r#"{"b":1.0,"a":[null,"x"]}"#).unwrap();
        assert_eq!(plain.node.compact(), r#"{"b":1.0,"a":[null,"x"]}"#);
        assert_eq!(plain.changes, []);
        let twice = repair(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(twice.node.compact(), r#"{"a":2}"#);
        let told: Vec<&str> = twice.changes.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(told, ["/a"]);
    }
}
