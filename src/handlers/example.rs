//! An eval's own tests, where code decides it.

use super::{Compiled, Finding, Registry, Subject};
use crate::model::{Message, Part, Role, Transcript};
use crate::rubric::{Eval, Example, ExampleInput};

/// What an eval finds on one of its examples. One that a judge decides is a `check_error`: it needs a run.
pub fn run_example(registry: &Registry, eval: &Eval, example: &Example) -> Finding {
    let check = match registry.prepare(eval) {
        Ok(Compiled::Check(check)) => check,
        Ok(Compiled::Judged(_)) => return Finding::check_error("a judge decides this eval"),
        Err(why) => return Finding::check_error(why),
    };
    match &example.input {
        ExampleInput::Transcript(transcript) => check.check(&Subject::new(transcript)),
        ExampleInput::Text(text) => {
            let message = Message {
                role: Role::Assistant,
                parts: vec![Part::Text(text.as_str().into())],
                metadata: None,
            };
            let transcript = Transcript {
                id: "example".into(),
                messages: vec![message],
                ..Transcript::default()
            };
            check.check(&Subject::new(&transcript))
        }
    }
}
