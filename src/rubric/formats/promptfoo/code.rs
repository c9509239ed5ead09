//! Assertions that are code: `javascript` and `python` become `script` evals.
//!
//! Responsible for the small programs that give the author's code promptfoo's arguments (`output`, `context`) and turn
//! its result into the answer of a script. dicta runs them only if the workspace has `allow_scripts: true`.

use serde_json::{Map, Value, json};

use super::super::conversion::{ConversionError, ConvertedEval};
use super::super::doc_location::DocLocation;

/// The program for JavaScript, which Node.js runs. Its first argument is the file with the code, if there is one.
const JAVASCRIPT: &str = concat!(include_str!("code/prelude.js"), include_str!("code/run.js"));
/// The program for an assertion whose output a `transform` changes first. Arguments as in [`JAVASCRIPT`].
const TRANSFORMED: &str = concat!(
    include_str!("code/prelude.js"),
    include_str!("code/transformed.js")
);
/// The types that [`TRANSFORMED`] checks itself, without `not-`.
const TRANSFORMED_TYPES: &[&str] = &[
    "equals",
    "contains",
    "contains-all",
    "contains-any",
    "icontains",
    "icontains-all",
    "icontains-any",
    "starts-with",
    "regex",
    "is-json",
];
/// The program for Python. Its first argument is the file with the code, if there is one.
const PYTHON: &str = include_str!("code/assertion.py");

/// The file and the function of a `file://` value.
#[derive(Debug, PartialEq, Eq)]
struct CodeFile<'v> {
    path: &'v str,
    function: Option<&'v str>,
}

/// Returns true if the type is code that dicta can run.
pub(super) fn is_code(base: &str) -> bool {
    matches!(base, "javascript" | "python")
}

/// Converts an assertion about an output that `transforms` change, one after the other. `value` has its variables filled.
pub(super) fn convert_transformed(
    at: &DocLocation,
    base: &str,
    inverse: bool,
    value: &Value,
    code: &AssertionCode<'_>,
) -> Result<ConvertedEval, ConversionError> {
    if base == "javascript" {
        return convert_code(at, base, inverse, value, code);
    }
    // dicta has the schema check in Rust alone, so only JSON as such is checked after a transform.
    let is_known = TRANSFORMED_TYPES.contains(&base) && (base != "is-json" || value.is_null());
    if !is_known {
        return Err(ConversionError::new(
            "a `transform` changes its output first, which dicta supports for comparisons of texts and `javascript` alone",
            "check the output as the agent gave it",
        ));
    }
    if value.is_null() && base != "is-json" {
        return Err(ConversionError::new(
            "it has no `value`",
            "give it a `value`",
        ));
    }
    let mut params = Map::new();
    params.insert("check".to_owned(), json!({"type": base, "value": value}));
    let command = ["node", "-e", TRANSFORMED].map(str::to_owned).to_vec();
    Ok(finish_script(at, base, inverse, &command, params, code))
}

/// The code around an assertion.
pub(super) struct AssertionCode<'c> {
    /// The programs that change the output, in order.
    pub(super) transforms: Vec<String>,
    /// The variables of the test.
    pub(super) vars: Option<&'c Map<String, Value>>,
}

/// Returns the script eval with the params that all programs read.
fn finish_script(
    at: &DocLocation,
    base: &str,
    inverse: bool,
    command: &[String],
    mut params: Map<String, Value>,
    code: &AssertionCode<'_>,
) -> ConvertedEval {
    let place = at.child("value");
    if !code.transforms.is_empty() {
        params.insert("transforms".to_owned(), json!(code.transforms));
    }
    if let Some(vars) = code.vars {
        params.insert("vars".to_owned(), Value::Object(vars.clone()));
    }
    for key in ["threshold", "config"] {
        if let Some(found) = at.get(key) {
            params.insert(key.to_owned(), found.value().clone());
        }
    }
    let kind = at.text("type").unwrap_or(base);
    let eval = ConvertedEval::new(kind, "script", at)
        .with_param("command", json!(command), &place)
        .with_param("params", Value::Object(params), &place);
    eval.negated_if(inverse)
}

/// Converts an assertion with code; `value` is as written.
pub(super) fn convert_code(
    at: &DocLocation,
    base: &str,
    inverse: bool,
    value: &Value,
    around: &AssertionCode<'_>,
) -> Result<ConvertedEval, ConversionError> {
    let Some(code) = value.as_str().filter(|code| !code.trim().is_empty()) else {
        return Err(ConversionError::new(
            "its value must be code as text",
            "give it a `value`",
        ));
    };
    let (interpreter, flag, program) = match (base, around.transforms.is_empty()) {
        ("python", true) => ("python3", "-c", PYTHON),
        ("python", false) => {
            return Err(ConversionError::new(
                "its `transform` is JavaScript, and the assertion is Python",
                "change the output in the Python code",
            ));
        }
        (_, true) => ("node", "-e", JAVASCRIPT),
        (_, false) => ("node", "-e", TRANSFORMED),
    };
    let mut command = vec![interpreter.to_owned(), flag.to_owned(), program.to_owned()];
    let mut params = Map::new();
    match parse_code_file(code) {
        Some(file) => {
            if file.path.contains("{{") || file.path.contains("${") {
                return Err(ConversionError::new(
                    "its path contains a variable, which only promptfoo fills in",
                    "write the path itself",
                ));
            }
            // An argument and not a param, so that a change of the file changes the eval.
            command.push(file.path.to_owned());
            if let Some(function) = file.function {
                params.insert("function".to_owned(), function.into());
            }
        }
        None if code.contains("{{") || code.contains("{%") => {
            return Err(ConversionError::new(
                "its code contains a template that promptfoo fills in",
                "read the variable in the code: `context.vars.NAME`",
            ));
        }
        None => {
            params.insert("code".to_owned(), code.into());
        }
    }
    Ok(finish_script(at, base, inverse, &command, params, around))
}

/// Returns why promptfoo fails every output with this code, although dicta may run it; `None` if nothing is known.
pub(super) fn explain_failing_code(base: &str, code: &str) -> Option<&'static str> {
    if parse_code_file(code).is_some() {
        return None;
    }
    let is_python = base == "python";
    // promptfoo cuts the line break off the end of JavaScript alone.
    let lines = if is_python { code } else { code.trim_end() };
    let mut words = code
        .trim_start()
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')));
    let begins_with_return = words.next() == Some("return");
    let has_return = begins_with_return || words.any(|word| word == "return");
    match (lines.contains('\n'), has_return) {
        (true, false) if is_python && !code.trim().contains('\n') => Some(
            "promptfoo fails every output: a line break at the end of the code, as `|` in YAML writes it, makes it the body of a function, which needs `return`",
        ),
        (true, false) => Some(
            "promptfoo fails every output: code of several lines is the body of a function, which needs `return`",
        ),
        (false, _) if begins_with_return => {
            Some("promptfoo fails every output: code of one line is an expression without `return`")
        }
        (true, true) | (false, _) => None,
    }
}

/// Returns the file of a value such as `file://check.py:grade`.
fn parse_code_file(value: &str) -> Option<CodeFile<'_>> {
    let written = value.trim().strip_prefix("file://")?;
    let split = written.rsplit_once(':');
    // A drive letter of Windows is not a function.
    Some(match split.filter(|(path, _)| path.contains('.')) {
        Some((path, function)) => CodeFile {
            path,
            function: Some(function),
        },
        None => CodeFile {
            path: written,
            function: None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_promptfoo_always_fails_is_known() {
        for (base, code, part) in [
            ("javascript", "output > 3", None),
            ("javascript", "output > 3\n", None),
            ("javascript", "returned > 3", None),
            ("javascript", "(() => { return true })()", None),
            (
                "javascript",
                " return output > 3;",
                Some("code of one line"),
            ),
            ("javascript", "return(true)\n", Some("code of one line")),
            ("javascript", "const a = 1;\nreturn a > 0", None),
            ("javascript", "const a = 1;\na > 0", Some("several lines")),
            ("python", "len(output) > 3", None),
            (
                "python",
                "len(output) > 3\n",
                Some("a line break at the end"),
            ),
            ("python", "x = 1\nx > 0", Some("several lines")),
            ("python", "x = 1\nreturn x > 0\n", None),
            ("python", "return True", Some("code of one line")),
            ("python", "file://a.py\n", None),
        ] {
            let why = explain_failing_code(base, code);
            assert_eq!(why.is_some(), part.is_some(), "{code}");
            let why = why.unwrap_or_default();
            assert!(part.is_none_or(|part| why.contains(part)), "{code}: {why}");
        }
    }

    #[test]
    fn function_follows_the_path() {
        let file = |path, function| Some(CodeFile { path, function });
        assert_eq!(
            parse_code_file("file://a.py:grade"),
            file("a.py", Some("grade"))
        );
        assert_eq!(parse_code_file("file://../b/a.js"), file("../b/a.js", None));
        assert_eq!(parse_code_file("output > 3"), None);
    }
}
