//! `dicta tools`: lists the available tools, the judges that use them, their declarations for each provider, and
//! their problems.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{DialectArg, WorkspaceArgs};
use super::error::CommandError;
use super::format::{Format, format_list};
use super::tool_context::{
    ToolContext, build_redactor, confirm_tool_sends, list_own_tool_sources, open_source_tools,
    with_call_cx,
};
use super::workspace::load_if_valid;
use super::{CommandCx, build_runtime};
use crate::diag::has_errors;
use crate::event::CallCx;
use crate::model::{JudgeConfig, JudgeTool, Millis, ProviderKind, ToolDeclaration};
use crate::provider::render_tool_declarations;
use crate::report::wrap_line;
use crate::tools::source::{SourceProvided, ToolDefinition};
use crate::tools::toolbox::{FileTool, INLINE_SERVER, Toolbox};
use crate::tools::{
    Tool, ToolDeps, ToolErrors, ToolSet, VerifiedClaims, built_in_tool_decls, open_single_tool,
};
use crate::workspace::{self, Workspace};

/// The setting of a tool set or source entry that selects some of its tools.
const ALLOW_SETTING: &str = "allow";
/// The time limit for opening a source. A slower source is missing from the list.
const OPEN_TIMEOUT: Millis = Millis::from_secs(20);

/// The largest number of judges that a row names.
const MAX_NAMED_JUDGES: usize = 8;

const ALL_DIALECTS: [DialectArg; 4] = [
    DialectArg::Openai,
    DialectArg::OpenaiResponses,
    DialectArg::Anthropic,
    DialectArg::Gemini,
];

/// A tool in the list.
struct ToolRow {
    decl: ToolDeclaration,
    /// `built in`, `file`, or the name of the source.
    from: String,
    /// The sets and sources under which a judge may list the tool.
    groups: Vec<String>,
    judges: Vec<String>,
    badge: Option<String>,
    broken: Vec<String>,
    lints: Vec<String>,
    /// True if the tool changes nothing, or None if unknown.
    read_only: Option<bool>,
    after: Vec<String>,
    max_calls: Option<u32>,
    /// True if identical calls in one judge trace share one response.
    cached: bool,
    coerce: bool,
    auth: Vec<String>,
    source: Option<ToolRowSource>,
}

/// The tool source of a tool in the list.
struct ToolRowSource {
    /// Its name in `sources:`.
    name: String,
    /// Its tool kind, such as `mcp`.
    kind: String,
}

/// Prints the tools.
pub(super) fn list_tools(
    provider: Option<DialectArg>,
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let found = ToolContext::load(place.workspace.as_deref(), &[], cx)?;
    let mut deps = found.deps;
    // With an invalid workspace, the tools files alone still give a list.
    let workspace = load_workspace_if_valid(place, cx);
    if let Some(workspace) = &workspace {
        deps.toolbox = Arc::clone(&workspace.tools);
    }
    let toolbox = Arc::clone(&deps.toolbox);
    let judges: Vec<JudgeConfig> = workspace
        .iter()
        .flat_map(|workspace| workspace.judges.values().cloned())
        .collect();
    // Listing asks the servers that have their own tools, so it may send their variables.
    let mut asked = list_own_tool_sources(&toolbox);
    let servers = judges.iter().flat_map(|judge| &judge.tools);
    asked.extend(servers.filter(|entry| entry.name == INLINE_SERVER).cloned());
    confirm_tool_sends(found.root.as_deref(), &toolbox, &asked, cx)?;
    let runtime = build_runtime()?;
    let work = async |call_cx: &CallCx| collect_rows(&deps, &judges, call_cx).await;
    let ((rows, problems), _log) = runtime.block_on(with_call_cx(&toolbox, cx, work));
    // A tool source may still hold a thread. It ends with the process, so don't wait for it.
    drop(runtime);
    let text = format_list(
        format,
        || rows.iter().map(|row| row_to_json(row, provider)).collect(),
        || {
            let rows = rows.iter();
            rows.map(|row| format_row(row, provider, cx.streams.out.width))
                .collect()
        },
    );
    // A description or a failure of a source may contain a secret.
    let redactor = build_redactor(&toolbox);
    let text = redactor.redact(&text).unwrap_or(text);
    cx.streams.print_format_lines(format, &text);
    for problem in problems {
        let clean = redactor.redact(&problem);
        cx.streams.print_stderr(&clean.unwrap_or(problem));
    }
    if has_errors(&found.problems) {
        // The list shows broken tools. Entries that could not become a tool appear only in these diagnostics.
        cx.streams.print_diagnostics(&found.problems);
    }
    Ok(0)
}

/// Loads the workspace if it is valid. An invalid rubric must not prevent the list of tools.
fn load_workspace_if_valid(place: &WorkspaceArgs, cx: &CommandCx) -> Option<Workspace> {
    let here = std::env::current_dir().ok();
    let root = workspace::find_workspace_root(place.workspace.as_deref().or(here.as_deref())?)?;
    let loaded = load_if_valid(&root, cx);
    if loaded.is_none() {
        cx.streams.print_stderr(
            "the workspace has errors (`dicta check` lists them), so the list omits judges",
        );
    }
    loaded
}

async fn collect_rows(
    deps: &ToolDeps,
    judges: &[JudgeConfig],
    cx: &CallCx,
) -> (Vec<ToolRow>, Vec<String>) {
    let toolbox = &deps.toolbox;
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for decl in built_in_tool_decls() {
        let mut row = ToolRow::new(decl, "built in", judges, &[]);
        // All built-in tools only read.
        row.read_only = Some(true);
        rows.push(row);
    }
    for (name, tool) in &toolbox.tools {
        let mut row = ToolRow::from_definition(name, tool, judges, toolbox);
        if tool.errors.is_empty() && tool.from_source != SourceProvided::default() {
            // The source provides the parts of the declaration that the file omits.
            match with_timeout(open_single_tool(&plain_tool_use(name), deps, cx), cx).await {
                Ok(set) => {
                    if let Some(opened) = set.get(name) {
                        row.decl = opened.decl().clone();
                    }
                }
                Err(why) => problems.push(format!("tool `{name}`: {why}")),
            }
        }
        rows.push(row);
    }
    for (name, source) in &toolbox.sources {
        if !source.has_own_tools() {
            continue;
        }
        match with_timeout(open_source_tools(name, deps, cx), cx).await {
            Ok(set) => {
                let groups = [name.clone()];
                for tool in &set.tools {
                    rows.push(ToolRow::from_opened(&**tool, name, judges, &groups));
                }
            }
            Err(why) => problems.push(format!("can't list the tools of source `{name}`: {why}")),
        }
    }
    for judge in judges {
        for entry in judge
            .tools
            .iter()
            .filter(|entry| entry.name == INLINE_SERVER)
        {
            match with_timeout(open_single_tool(entry, deps, cx), cx).await {
                Ok(set) => {
                    let from = format!("a server of judge {}", judge.name);
                    for tool in &set.tools {
                        // Only this judge has the tools of the server.
                        let mut row = ToolRow::from_opened(&**tool, &from, &[], &[]);
                        row.judges.push(judge.name.clone());
                        rows.push(row);
                    }
                }
                Err(why) => problems.push(format!(
                    "can't list the server tools of judge `{}`: {}",
                    judge.name, why
                )),
            }
        }
    }
    (rows, problems)
}

async fn with_timeout(
    opening: impl Future<Output = Result<ToolSet, ToolErrors>>,
    cx: &CallCx,
) -> Result<ToolSet, String> {
    tokio::select! {
        opened = opening => opened.map_err(|errors| errors.to_string()),
        () = cx.clock.sleep(OPEN_TIMEOUT) => Err(format!("no response within {OPEN_TIMEOUT}")),
    }
}

/// Returns an entry that only names a tool, without settings.
fn plain_tool_use(name: &str) -> JudgeTool {
    JudgeTool {
        name: name.to_owned(),
        settings: indexmap::IndexMap::new(),
    }
}

impl ToolRow {
    fn new(decl: ToolDeclaration, from: &str, judges: &[JudgeConfig], groups: &[String]) -> Self {
        let provides = |judge: &&JudgeConfig| {
            let mut entries = judge.tools.iter();
            entries.any(|entry| entry_provides(entry, &decl.name, groups))
        };
        let judges = judges.iter().filter(provides);
        let judges = judges.map(|judge| judge.name.clone()).collect();
        Self {
            decl,
            from: from.to_owned(),
            groups: groups.to_vec(),
            judges,
            badge: None,
            broken: Vec::new(),
            lints: Vec::new(),
            read_only: None,
            after: Vec::new(),
            max_calls: None,
            cached: true,
            coerce: false,
            auth: Vec::new(),
            source: None,
        }
    }

    /// Returns the row of a tool as its file declares it, without calling its source or verifying tokens.
    fn from_definition(
        name: &str,
        tool: &Arc<ToolDefinition>,
        judges: &[JudgeConfig],
        toolbox: &Toolbox,
    ) -> Self {
        let about = toolbox.origins.get(name);
        let source = about.and_then(|about| {
            let source = toolbox.sources.get(&about.source)?;
            Some(ToolRowSource {
                name: about.source.clone(),
                kind: source.kind().to_owned(),
            })
        });
        let badge = about.and_then(|about| toolbox.sources.get(&about.source)?.badge());
        let from = FileTool::new(Arc::clone(tool), VerifiedClaims::default(), badge);
        Self {
            broken: tool.errors.clone(),
            lints: about.map(|about| about.lints.clone()).unwrap_or_default(),
            coerce: tool.coerce,
            auth: tool.auth_required.clone(),
            source,
            read_only: tool.executor.as_ref().map(|work| work.is_read_only()),
            ..Self::from_opened(&from, "file", judges, &sets_with_tool(name, toolbox))
        }
    }

    fn from_opened(tool: &dyn Tool, from: &str, judges: &[JudgeConfig], groups: &[String]) -> Self {
        Self {
            badge: tool.badge(),
            read_only: Some(tool.is_read_only()),
            after: tool.prerequisites().to_vec(),
            max_calls: tool.max_calls(),
            cached: tool.is_cached(),
            ..Self::new(tool.decl().clone(), from, judges, groups)
        }
    }

    /// Describes the conditions of a call.
    fn describe_limits(&self) -> Vec<String> {
        let mut terms = Vec::new();
        match self.read_only {
            Some(true) => terms.push("reads only".to_owned()),
            Some(false) => terms.push("may change something".to_owned()),
            None => {}
        }
        if !self.auth.is_empty() {
            terms.push(format!("needs a token of {}", self.auth.join(" or ")));
        }
        if !self.after.is_empty() {
            terms.push(format!("only after {}", self.after.join(", ")));
        }
        match self.max_calls {
            Some(1) => terms.push("may be called once".to_owned()),
            Some(n) => terms.push(format!("may be called {n} times")),
            None => {}
        }
        if self.read_only == Some(true) && !self.cached {
            terms.push("called again each time".to_owned());
        }
        if self.coerce {
            terms.push("lenient typing".to_owned());
        }
        terms
    }
}

/// Returns true if an entry of a judge's `tools:` provides the tool, which belongs to `groups`.
fn entry_provides(entry: &JudgeTool, tool: &str, groups: &[String]) -> bool {
    if entry.name == tool {
        return true;
    }
    // Without `allow`, an entry of a set or source provides all of its tools.
    let allowed = match entry.settings.get(ALLOW_SETTING).and_then(Value::as_array) {
        None => true,
        Some(names) => names.iter().any(|name| name.as_str() == Some(tool)),
    };
    allowed && groups.contains(&entry.name)
}

fn sets_with_tool(tool: &str, toolbox: &Toolbox) -> Vec<String> {
    let sets = toolbox.sets.iter();
    let sets = sets.filter(|(_, tools)| tools.iter().any(|name| name == tool));
    sets.map(|(name, _)| name.clone()).collect()
}

/// Returns the declaration in a provider's dialect.
fn declare_for(decl: &ToolDeclaration, provider: DialectArg) -> Value {
    let kind = match provider {
        DialectArg::Openai => ProviderKind::Openai,
        DialectArg::OpenaiResponses => ProviderKind::OpenaiResponses,
        DialectArg::Anthropic => ProviderKind::Anthropic,
        DialectArg::Gemini => ProviderKind::Gemini,
    };
    let text = render_tool_declarations(kind, std::slice::from_ref(decl)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn dialect_name(provider: DialectArg) -> &'static str {
    match provider {
        DialectArg::Openai => "openai",
        DialectArg::OpenaiResponses => "openai-responses",
        DialectArg::Anthropic => "anthropic",
        DialectArg::Gemini => "gemini",
    }
}

fn row_to_json(row: &ToolRow, provider: Option<DialectArg>) -> Value {
    let declared: serde_json::Map<String, Value> = ALL_DIALECTS
        .into_iter()
        .filter(|one| provider.is_none_or(|requested| requested == *one))
        .map(|one| (dialect_name(one).to_owned(), declare_for(&row.decl, one)))
        .collect();
    json!({
        "name": row.decl.name,
        "description": row.decl.description,
        "schema": row.decl.schema,
        "from": row.from,
        "groups": row.groups,
        "judges": row.judges,
        "source": row.source.as_ref().map(|source| &source.name),
        "kind": row.source.as_ref().map(|source| &source.kind),
        "read_only": row.read_only,
        "auth": row.auth,
        "after": row.after,
        "max_calls": row.max_calls,
        "cached": row.cached,
        "coerce": row.coerce,
        "badge": row.badge,
        "lints": row.lints,
        "broken": row.broken,
        "declared": declared,
    })
}

fn format_row(row: &ToolRow, provider: Option<DialectArg>, width: usize) -> String {
    let mut out = format!("{}\n", row.decl.name);
    let mut line = |text: &str| {
        let _infallible = writeln!(out, "    {}", wrap_line(text, 4, 4, width));
    };
    // The first lines are text; the facts follow.
    line(&row.decl.description);
    let mut facts = vec![match &row.source {
        Some(source) => format!("{}, {} source {}", row.from, source.kind, source.name),
        None => row.from.clone(),
    }];
    if !row.groups.is_empty() {
        facts.push(format!("in {}", row.groups.join(", ")));
    }
    facts.push(match row.judges.as_slice() {
        [] => "no judge uses it".to_owned(),
        // One more name takes no more room than "and 1 more".
        judges if judges.len() <= MAX_NAMED_JUDGES + 1 => format!("judges: {}", judges.join(", ")),
        judges => format!(
            "judges: {} and {} more",
            judges[..MAX_NAMED_JUDGES].join(", "),
            judges.len() - MAX_NAMED_JUDGES
        ),
    });
    line(&facts.join(" · "));
    let terms = row.describe_limits();
    if !terms.is_empty() {
        line(&terms.join(" · "));
    }
    if let Some(badge) = &row.badge {
        line(&format!("! {badge}"));
    }
    for why in &row.broken {
        line(&format!("✗ broken: {why}"));
    }
    for why in &row.lints {
        line(&format!("! {why}"));
    }
    let details = match provider {
        Some(provider) => format!("{:#}\n", declare_for(&row.decl, provider)),
        None => format_arguments(&row.decl.schema, width),
    };
    out + &details + "\n"
}

/// The widest name column, in characters; a longer name moves its own line out of the column.
const MAX_NAME_WIDTH: usize = 24;

/// Returns the parameters of a tool's JSON Schema for people: one indented line for each, wrapped at `width`.
fn format_arguments(schema: &Value, width: usize) -> String {
    let properties = schema["properties"].as_object();
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        // A schema with a type but no properties accepts any object.
        let is_closed = schema.get("properties").is_some() || schema.get("type").is_none();
        let text = if is_closed {
            "no parameters"
        } else {
            "any object"
        };
        return format!("      {text}\n");
    };
    let names = properties.keys().map(|name| name.chars().count());
    let widest = names.max().unwrap_or_default().min(MAX_NAME_WIDTH);
    let required = |name: &str| {
        let list = schema["required"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == name))
    };
    let mut out = String::new();
    for (name, param) in properties {
        let text = format!(
            "{name:<widest$}  {}",
            describe_argument(param, required(name))
        );
        let _infallible = writeln!(out, "      {}", wrap_line(&text, 6, 8 + widest, width));
    }
    out
}

fn describe_argument(param: &Value, is_required: bool) -> String {
    let mut text = describe_type(param);
    match param.get("default") {
        Some(default) => {
            let _infallible = write!(text, ", default {default}");
        }
        None if is_required => text.push_str(", required"),
        None => text.push_str(", optional"),
    }
    for rule in describe_rules(param) {
        let _infallible = write!(text, ", {rule}");
    }
    if let Some(description) = param["description"].as_str() {
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let _infallible = write!(text, ": {description}");
    }
    text
}

fn describe_type(param: &Value) -> String {
    let word = match &param["type"] {
        Value::String(word) => word.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(" or ")
        }
        _ => "any value".to_owned(),
    };
    // Describe the elements of a list and the values of a map, too.
    let inner = match word.as_str() {
        "array" => param.get("items"),
        "object" => param.get("additionalProperties"),
        _ => None,
    };
    match inner.filter(|inner| inner.is_object()) {
        Some(inner) => {
            let rules = describe_rules(inner).join(", ");
            let rules = if rules.is_empty() {
                rules
            } else {
                format!(" ({rules})")
            };
            format!("{word} of {}{rules}", describe_type(inner))
        }
        None => word,
    }
}

fn describe_rules(param: &Value) -> Vec<String> {
    let mut rules = Vec::new();
    if let Some(values) = param["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        rules.push(format!("one of {}", values.join(" ")));
    }
    if let Some(pattern) = param["pattern"].as_str() {
        rules.push(format!("matching /{pattern}/"));
    }
    match (param.get("minimum"), param.get("maximum")) {
        (Some(low), Some(high)) => rules.push(format!("{low} to {high}")),
        (Some(low), None) => rules.push(format!("at least {low}")),
        (None, Some(high)) => rules.push(format!("at most {high}")),
        (None, None) => {}
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decl() -> ToolDeclaration {
        ToolDeclaration {
            name: "find".into(),
            description: "finds".into(),
            schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        }
    }

    #[test]
    fn tools_are_declared_in_each_dialect() {
        let schema = decl().schema;
        for (provider, at) in [
            (DialectArg::Openai, "/0/function/parameters"),
            (DialectArg::OpenaiResponses, "/0/parameters"),
            (DialectArg::Anthropic, "/0/input_schema"),
            (
                DialectArg::Gemini,
                "/0/functionDeclarations/0/parametersJsonSchema",
            ),
        ] {
            assert_eq!(declare_for(&decl(), provider).pointer(at), Some(&schema));
        }
    }

    #[test]
    fn judge_has_a_tool_by_name_or_by_an_allowing_set() {
        let judge = |name: &str, entry: &str, allow: Option<Value>| {
            let mut config = JudgeConfig::new(name, ProviderKind::Openai);
            let mut entry = plain_tool_use(entry);
            entry
                .settings
                .extend(allow.map(|allow| (ALLOW_SETTING.to_owned(), allow)));
            config.tools.push(entry);
            config
        };
        let judges = [
            judge("by-name", "find", None),
            judge("by-set", "shop", None),
            judge("some", "shop", Some(json!(["find"]))),
            judge("others", "shop", Some(json!(["count"]))),
            judge("none", "fetch_url", None),
        ];
        let row = ToolRow::new(decl(), "file", &judges, &["shop".to_owned()]);
        assert_eq!(row.judges, ["by-name", "by-set", "some"]);
    }

    #[test]
    fn a_broken_tool_is_listed_with_its_reason() {
        let row = ToolRow {
            broken: vec!["tools.yaml:3:5: no such source".into()],
            ..ToolRow::new(decl(), "file", &[], &[])
        };
        let text = format_row(&row, None, 0);
        assert!(
            text.contains("✗ broken: tools.yaml:3:5: no such source"),
            "{text}"
        );
        assert!(text.contains("file · no judge uses it"), "{text}");
        let json = row_to_json(&row, Some(DialectArg::Gemini));
        assert_eq!(json["broken"][0], "tools.yaml:3:5: no such source");
        assert_eq!(
            json["declared"].as_object().map(serde_json::Map::len),
            Some(1)
        );
    }

    #[test]
    fn each_argument_is_listed_with_its_type_default_rules_and_description() {
        let schema = json!({"type": "object", "required": ["q", "ids"], "properties": {
            "q": {"type": "string", "description": "what to\n look for", "enum": ["a", "b"]},
            "count": {"type": "integer", "default": 3, "minimum": 0, "maximum": 5},
            "ids": {"type": "array", "items": {"type": "string", "pattern": "^x"}},
            "any": true,
        }});
        assert_eq!(
            format_arguments(&schema, 0),
            "      q      string, required, one of \"a\" \"b\": what to look for\n\
             \x20     count  integer, default 3, 0 to 5\n\
             \x20     ids    array of string (matching /^x/), required\n\
             \x20     any    any value, optional\n"
        );
    }

    #[test]
    fn empty_and_open_schemas_are_distinguished() {
        let none = json!({"type": "object", "properties": {}});
        assert!(format_arguments(&none, 0).contains("no parameters"));
        assert!(format_arguments(&json!({"type": "object"}), 0).contains("any object"));
    }
}
