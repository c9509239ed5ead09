//! Names, values and calls in explanations: short, and harmless to a terminal whatever a transcript holds.

use std::fmt;
use std::io;

use serde_json::{Map, Value};

use crate::handlers::Subject;
use crate::handlers::explain::Quoted;
use crate::model::visible;

/// How many arguments of a call are shown.
const ARGS: usize = 4;
/// How many bytes of a value are written before it is cut: never all of a large one.
const WRITTEN: usize = 192;
/// How many characters of it are shown.
const SHOWN: usize = 40;

/// A name as it is where it is plain, else in quotes.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !self.0.is_empty() && self.0.len() <= 60 && self.0.chars().all(plain) {
            f.write_str(self.0)
        } else {
            Quoted(self.0).fmt(f)
        }
    }
}

/// A JSON value.
pub(super) struct Shown<'a>(pub(super) &'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Value::String(text) = self.0 {
            return Quoted(text).fmt(f);
        }
        let mut head = Head(Vec::new());
        // It fails where the head is full; what is there is shown.
        let whole = serde_json::to_writer(&mut head, self.0).is_ok();
        let text = String::from_utf8_lossy(&head.0);
        let seen = visible(&text, false);
        match seen.char_indices().nth(SHOWN) {
            Some((at, _)) => write!(f, "{}…", &seen[..at]),
            None if whole => f.write_str(&seen),
            None => write!(f, "{seen}…"),
        }
    }
}

/// Takes the first bytes and refuses the rest.
struct Head(Vec<u8>);

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = WRITTEN - self.0.len();
        if room == 0 {
            return Err(io::Error::other("enough"));
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A call with what it was called with: `get_order(id=7)`.
pub(super) fn call(name: &str, args: Result<&Map<String, Value>, &str>) -> String {
    match args {
        Ok(args) => {
            let all = args.iter();
            let told = all.map(|(arg, value)| format!("{}={}", Name(arg), Shown(value)));
            with_args(name, told)
        }
        Err(_) => format!("{}(unreadable arguments)", Name(name)),
    }
}

/// A name and the first of its arguments, told already.
pub(super) fn with_args(name: &str, told: impl Iterator<Item = String>) -> String {
    let mut first: Vec<String> = told.take(ARGS + 1).collect();
    if first.len() > ARGS {
        "…".clone_into(&mut first[ARGS]);
    }
    format!("{}({})", Name(name), first.join(", "))
}

/// `subject.calls()[ix]` with what it was called with.
pub(super) fn call_of(subject: &Subject<'_>, ix: usize) -> String {
    call(&subject.calls()[ix].call.name, subject.arguments(ix))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_transcript_holds_is_shown_short_and_harmless() {
        assert_eq!(Name("shop__get-order.v2").to_string(), "shop__get-order.v2");
        assert_eq!(Name("a\n- b").to_string(), r#""a\n- b""#);
        assert_eq!(Name("").to_string(), r#""""#);
        assert_eq!(
            Shown(&json!({"a": "x\u{1b}"})).to_string(),
            r#"{"a":"x\u001b"}"#
        );
        let long = json!((0..1000).collect::<Vec<_>>());
        assert_eq!(Shown(&long).to_string().chars().count(), SHOWN + 1);
        let args = json!({"a": 1, "b": "x", "c": null, "d": 2.5, "e": 5, "f": 6});
        assert_eq!(
            call("t", args.as_object().ok_or("no object")),
            r#"t(a=1, b="x", c=null, d=2.5, …)"#
        );
        assert_eq!(call("t", Err("no JSON")), "t(unreadable arguments)");
    }
}
