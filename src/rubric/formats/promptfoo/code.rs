//! Assertions that are code: `javascript` and `python` become `script` evals.
//!
//! Responsible for the small programs that give the author's code promptfoo's arguments (`output`, `context`) and turn
//! its result into the answer of a script. dicta runs them only if the workspace has `allow_scripts: true`.

use serde_json::{Map, Value, json};

use super::super::conversion::{ConversionError, ConvertedEval};
use super::super::doc_location::DocLocation;

/// The program for JavaScript, which Node.js runs. Its first argument is the file with the code, if there is one.
const JAVASCRIPT: &str = include_str!("code/assertion.js");
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

/// Converts an assertion with code; `value` is as written.
pub(super) fn convert_code(
    at: &DocLocation,
    base: &str,
    inverse: bool,
    value: &Value,
    vars: Option<&Map<String, Value>>,
) -> Result<ConvertedEval, ConversionError> {
    let Some(code) = value.as_str().filter(|code| !code.trim().is_empty()) else {
        return Err(ConversionError::new(
            "its value must be code as text",
            "give it a `value`",
        ));
    };
    let place = at.child("value");
    let (interpreter, flag, program) = match base {
        "python" => ("python3", "-c", PYTHON),
        _ => ("node", "-e", JAVASCRIPT),
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
    if let Some(vars) = vars {
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
    Ok(eval.negated_if(inverse))
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
