use serde_json::json;

use super::promptfoo::assertion;

#[test]
fn code_becomes_a_script_eval() {
    let converted = assertion("{type: not-javascript, value: 'output.length < 9', weight: 2}");
    let eval = &converted.evals[0];
    assert_eq!(
        (&eval["type"], &eval["not"], &eval["weight"]),
        (&json!("script"), &json!(true), &json!(2))
    );
    assert_eq!(eval["params"]["command"][0], json!("node"));
    assert_eq!(
        eval["params"]["params"],
        json!({"code": "output.length < 9"})
    );
    assert_eq!(converted.problems, Vec::<String>::new());
    let converted = assertion("{type: javascript, value: 'return output.length < 9'}");
    assert_eq!(converted.evals.len(), 1);
    assert_eq!(
        converted.problems,
        [
            "asserts.yaml:1:22: promptfoo fails every output: code of one line is an expression without `return`"
        ]
    );
    let converted = assertion(
        "{type: python, value: 'file://checks/a.py:grade', threshold: 0.5, config: {k: 1}}",
    );
    let params = &converted.evals[0]["params"];
    assert_eq!(
        (&params["command"][0], &params["command"][3]),
        (&json!("python3"), &json!("checks/a.py"))
    );
    assert_eq!(
        params["params"],
        json!({"function": "grade", "threshold": 0.5, "config": {"k": 1}})
    );
}
