//! The settings of an MCP server, read strictly from a source of tools.yaml (with places) or from a judge's own
//! entry.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;
use url::Url;

use super::super::go_duration::parse_go_duration;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::event::Redactor;
use crate::model::{Digest, Millis};
use crate::tools::source::ProgramAddress;

/// The default time limit of a call.
const DEFAULT_TIMEOUT: Millis = Millis::from_secs(30);
/// The default time limit of starting the server and its handshake. `npx` may have to download the server.
const DEFAULT_START_TIMEOUT: Millis = Millis::from_secs(60);
/// The upper limit of both, in seconds.
const MAX_TIMEOUT_S: f64 = 3600.0;

/// The headers that the transport or the connection sets.
const RESERVED_HEADERS: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The settings of a server.
#[derive(Debug)]
pub(super) struct McpConfig {
    pub(super) address: McpAddress,
    /// The time limit of a call.
    pub(super) timeout: Millis,
    /// The time limit of starting the server, of the handshake, and of a list of tools.
    pub(super) start_timeout: Millis,
    /// The only tools to use, by the server's names.
    pub(super) allow: Option<Vec<String>>,
    /// The prefix of its tools' names.
    pub(super) name_prefix: String,
    /// The texts that recorded digests omit, whatever the names of their keys are.
    pub(super) env_secrets: Redactor,
}

/// The address of a server.
#[derive(Debug)]
pub(super) enum McpAddress {
    Program(McpProgram),
    Endpoint(McpEndpoint),
}

/// A program that speaks MCP over its standard input and output.
#[derive(Debug)]
pub(super) struct McpProgram {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: IndexMap<String, String>,
    pub(super) cwd: PathBuf,
    /// The value of `cwd`; empty if it is absent. It is part of digests, so that they are equal on every machine.
    pub(super) cwd_as_written: String,
}

/// A server that speaks MCP over streamable HTTP.
pub(super) struct McpEndpoint {
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) allow_private: bool,
}

impl McpProgram {
    /// Returns the program for a question to the user; `command` is the command line without secrets.
    pub(super) fn describe(&self, mut command: String) -> ProgramAddress {
        // The program gets these variables, so the user sees their names.
        if !self.env.is_empty() {
            let names: Vec<&str> = self.env.keys().map(String::as_str).collect();
            let _infallible = write!(command, ", with {}", names.join(", "));
        }
        let _infallible = write!(command, ", in {}", self.cwd.display());
        let words = std::iter::once(&self.command).chain(&self.args);
        let named = words.map(|word| self.cwd.join(word));
        ProgramAddress {
            command,
            digest: Digest::hash_bytes(format!("{self:?}").as_bytes()),
            files: named.filter(|path| path.is_file()).collect(),
        }
    }
}

/// The keys of a server's mapping, with their problems.
pub(super) struct ConfigKeys<'a, 'd> {
    pub(super) fields: &'a mut MappingDecoder<'d>,
    /// True if a problem was reported.
    pub(super) failed: bool,
}

impl ConfigKeys<'_, '_> {
    fn value(&mut self, key: &'static str) -> Option<Value> {
        self.fields.value(key).cloned()
    }

    fn report_problem(&mut self, key: &str, why: String) {
        self.failed = true;
        if self.fields.has(key) {
            self.fields.error(key, "source", why);
        } else {
            self.fields.error_at_mapping("source", why);
        }
    }
}

/// Reads all settings; the caller must discard them if a problem was reported. Relative paths start at `folder`.
pub(super) fn read_mcp_config(keys: &mut ConfigKeys<'_, '_>, folder: &Path) -> Option<McpConfig> {
    // The address decides which other keys are allowed, so it comes first.
    let command = keys.value("command");
    let url = keys.value("url");
    let place = match (command, url) {
        (Some(_), Some(_)) => {
            keys.report_problem(
                "url",
                "a server has a `command` or a `url`, not both".to_owned(),
            );
            None
        }
        (None, None) => {
            keys.report_problem(
                "command",
                "an MCP server needs a `command` (a program) or a `url`".to_owned(),
            );
            None
        }
        (Some(command), None) => {
            refuse_misplaced_keys(keys, &["headers", "allowPrivate"], "url");
            read_program(keys, &command, folder).map(McpAddress::Program)
        }
        (None, Some(url)) => {
            refuse_misplaced_keys(keys, &["args", "env", "cwd"], "command");
            read_endpoint(keys, &url).map(McpAddress::Endpoint)
        }
    };
    // The settings that both kinds of server have.
    let timeout = read_duration(keys, "timeout", DEFAULT_TIMEOUT);
    let start = read_duration(keys, "startTimeout", DEFAULT_START_TIMEOUT);
    let allow = keys.value("allow").map(|list| {
        let names = read_text_list(keys, "allow", &list);
        if names.is_empty() {
            keys.report_problem("allow", "allow names at least one tool".to_owned());
        }
        names
    });
    let prefix = match keys.value("prefix") {
        None => String::new(),
        Some(Value::String(prefix)) if is_valid_prefix(&prefix) => prefix,
        Some(other) => {
            let got = describe_value(&other);
            keys.report_problem("prefix", format!("prefix must begin with a letter or `_` and hold letters, digits, `_` and `-` alone, at most 32 (got {got})"));
            String::new()
        }
    };
    Some(McpConfig {
        address: place?,
        timeout,
        start_timeout: start,
        allow,
        name_prefix: prefix,
        env_secrets: Redactor::default(),
    })
}

fn is_valid_prefix(text: &str) -> bool {
    // A prefix becomes part of tool names, which providers limit to 64 characters.
    text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn refuse_misplaced_keys(keys: &mut ConfigKeys<'_, '_>, names: &[&'static str], with: &str) {
    for name in names {
        if keys.value(name).is_some() {
            keys.report_problem(name, format!("`{name}` goes with `{with}`"));
        }
    }
}

fn read_program(
    keys: &mut ConfigKeys<'_, '_>,
    command: &Value,
    folder: &Path,
) -> Option<McpProgram> {
    let args = keys
        .value("args")
        .map(|list| read_text_list(keys, "args", &list));
    let mut words = match command {
        // `npx -y @scope/server`: split into words if there is no `args`. Quotes would need a shell.
        Value::String(text) if args.is_none() && !folder.join(text).is_file() => {
            // Characters that only a shell interprets; the program would receive them as plain text.
            if text.contains(['"', '\'', '\\', '$', '|', '>', '<', ';', '&']) {
                keys.report_problem("command", "command is run without a shell: write the program alone, and its arguments as the list `args`".to_owned());
                return None;
            }
            text.split_whitespace().map(str::to_owned).collect()
        }
        Value::String(text) => vec![text.trim().to_owned()],
        Value::Array(_) => read_text_list(keys, "command", command),
        other => {
            let got = describe_value(other);
            keys.report_problem("command", format!("command must be a program (got {got})"));
            return None;
        }
    };
    if words.first().is_none_or(String::is_empty) {
        keys.report_problem("command", "command must not be empty".to_owned());
        return None;
    }
    let mut command = words.remove(0);
    if command.contains('/') {
        // A path starts at the folder of the file that names it, whatever folder the program runs in.
        command = folder.join(&command).display().to_string();
    }
    words.extend(args.unwrap_or_default());
    let cwd_as_written = match keys.value("cwd") {
        None => String::new(),
        Some(Value::String(path)) if !path.trim().is_empty() => path,
        Some(other) => {
            let got = describe_value(&other);
            keys.report_problem("cwd", format!("cwd must be a folder (got {got})"));
            String::new()
        }
    };
    let cwd = if cwd_as_written.is_empty() {
        folder.to_owned()
    } else {
        folder.join(&cwd_as_written)
    };
    let env = read_text_map(keys, "env");
    for name in env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            keys.report_problem("env", format!("`{name}` is not a valid variable name"));
        }
    }
    // The system cannot start a program with a NUL in its arguments.
    let holds_nul = |text: &String| text.contains('\0');
    if words.iter().chain(env.values()).any(holds_nul) || command.contains('\0') {
        keys.report_problem(
            "command",
            "a program's arguments and variables hold no NUL".to_owned(),
        );
        return None;
    }
    Some(McpProgram {
        command,
        args: words,
        env: env.into_iter().collect(),
        cwd,
        cwd_as_written,
    })
}

fn read_endpoint(keys: &mut ConfigKeys<'_, '_>, url: &Value) -> Option<McpEndpoint> {
    let allow_private = match keys.value("allowPrivate") {
        None => false,
        Some(Value::Bool(yes)) => yes,
        Some(other) => {
            let got = describe_value(&other);
            keys.report_problem(
                "allowPrivate",
                format!("allowPrivate must be true or false (got {got})"),
            );
            false
        }
    };
    let headers: Vec<(String, String)> = read_text_map(keys, "headers").into_iter().collect();
    for (name, value) in &headers {
        // The transport sets these headers itself, and a second value would be ambiguous.
        if RESERVED_HEADERS
            .iter()
            .any(|n| n.eq_ignore_ascii_case(name))
        {
            keys.report_problem(
                "headers",
                format!("the header `{name}` is the transport's to set"),
            );
        } else if hyper::http::HeaderName::from_bytes(name.as_bytes()).is_err()
            || hyper::http::HeaderValue::from_str(value).is_err()
        {
            keys.report_problem(
                "headers",
                format!("`{name}` is not a valid header, or its value is not valid in one"),
            );
        }
    }
    let parsed = match url {
        Value::String(text) => Url::parse(text).map_err(|error| error.to_string()),
        other => Err(format!("got {}", describe_value(other))),
    };
    let url = match parsed {
        Ok(url) => url,
        Err(why) => {
            keys.report_problem(
                "url",
                format!("url must be the address of an MCP server ({why})"),
            );
            return None;
        }
    };
    // A password in the URL would appear in the recorded address of the source.
    if !url.username().is_empty() || url.password().is_some() {
        keys.report_problem(
            "url",
            "user names and passwords in URLs are refused: use `headers`".to_owned(),
        );
        return None;
    }
    match url.scheme() {
        "https" => {}
        // The setting names the risk, so it also covers unencrypted connections.
        "http" if allow_private => {}
        "http" => {
            keys.report_problem("url", "only https is dialled; `allowPrivate: true` admits http, any port and private addresses for this server".to_owned());
            return None;
        }
        other => {
            keys.report_problem(
                "url",
                format!("url must begin with https:// (got {other}:)"),
            );
            return None;
        }
    }
    Some(McpEndpoint {
        url,
        headers,
        allow_private,
    })
}

/// Reads a duration: a number of seconds, or `30s`, `500ms`, `2m`.
fn read_duration(keys: &mut ConfigKeys<'_, '_>, key: &'static str, usual: Millis) -> Millis {
    let Some(value) = keys.value(key) else {
        return usual;
    };
    let seconds = match &value {
        Value::Number(n) => n.as_f64(),
        Value::String(text) => {
            // YAML reads `30` as a number and `"30"` as text; both mean seconds.
            let seconds = text.trim().parse().ok();
            seconds.or_else(|| parse_go_duration(text).map(|millis| millis.0 as f64 / 1000.0))
        }
        _ => None,
    };
    if let Some(seconds) = seconds.filter(|s| *s > 0.0 && *s <= MAX_TIMEOUT_S) {
        return Millis::from_secs_f64(seconds).max(Millis(1));
    }
    let got = describe_value(&value);
    keys.report_problem(
        key,
        format!("{key} must be a time like 30s, 500ms or 2m, at most 1h (got {got})"),
    );
    usual
}

fn read_text_list(keys: &mut ConfigKeys<'_, '_>, key: &'static str, list: &Value) -> Vec<String> {
    let Value::Array(items) = list else {
        let got = describe_value(list);
        keys.report_problem(key, format!("{key} must be a list of texts (got {got})"));
        return Vec::new();
    };
    let mut read = Vec::with_capacity(items.len());
    for item in items {
        if let Some(text) = scalar_to_text(item) {
            read.push(text);
        } else {
            let got = describe_value(item);
            keys.report_problem(key, format!("{key} must hold texts (got {got})"));
        }
    }
    read
}

fn read_text_map(keys: &mut ConfigKeys<'_, '_>, key: &'static str) -> IndexMap<String, String> {
    let mut read = IndexMap::new();
    match keys.value(key) {
        None => {}
        Some(Value::Object(map)) => {
            for (name, value) in map {
                // The value may be a secret, so the message names only its key.
                match scalar_to_text(&value) {
                    Some(text) => drop(read.insert(name, text)),
                    None => keys.report_problem(key, format!("{key}: `{name}` must be text")),
                }
            }
        }
        Some(other) => {
            let got = describe_value(&other);
            keys.report_problem(
                key,
                format!("{key} must be names with their values (got {got})"),
            );
        }
    }
    read
}

/// Converts a scalar to text.
fn scalar_to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}
