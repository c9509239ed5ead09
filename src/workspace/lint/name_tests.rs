use std::path::Path;
use std::sync::Arc;

use crate::handlers::EvalTypeRegistry;

#[test]
fn names_that_are_no_lints_are_refused_with_the_nearest() {
    let registry = EvalTypeRegistry::builtin();
    let problems = |text: &str| {
        let (_, found) = crate::rubric::load(Arc::from(text), Path::new("r.yaml"), &registry);
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        messages
    };
    assert_eq!(
        problems(
            "allow: canot-fail\nevals:\n  - {id: a, type: json_valid, allow: [empty-match, empty-mach]}\n"
        ),
        [
            "r.yaml:1:8: unknown lint `canot-fail`; did you mean `cannot-fail`?",
            "r.yaml:3:52: unknown lint `empty-mach`; did you mean `empty-match`?",
        ]
    );
}
