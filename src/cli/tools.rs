//! `dicta tools`: the tools judges can be given, as each provider would be told of them; whose they are, and what is wrong
//! with them.

mod argument_list;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use self::argument_list::format_arguments;
use super::args::{DialectArg, ListFormat, WorkspaceArgs};
use super::error::CommandError;
use super::tool_context::{ToolContext, build_redactor, open_source_tools, with_call_cx};
use super::{CommandCx, build_runtime};
use crate::diag::has_errors;
use crate::event::CallCx;
use crate::handlers::EvalTypeRegistry;
use crate::model::{JudgeConfig, JudgeTool, Millis, ProviderKind, ToolDeclaration};
use crate::provider::render_tool_declarations;
use crate::report::wrap_line;
use crate::tools::source::{SourceProvided, ToolDefinition};
use crate::tools::toolbox::{FileTool, Toolbox};
use crate::tools::{
    Tool, ToolDeps, ToolSet, VerifiedClaims, built_in_tool_decls, open_single_tool,
};
use crate::workspace::{self, Workspace};

/// The setting of a set's or a source's entry that names some of its tools.
const ALLOW_SETTING: &str = "allow";
/// The name under which a server stands in a judge's `tools:` itself.
const SERVER_ENTRY: &str = "mcp";
/// A source that takes longer to say what it has is left out of the list.
const OPEN_TIMEOUT: Millis = Millis::from_secs(20);

/// So many judges are named of those that have a tool.
const MAX_NAMED_JUDGES: usize = 8;

const ALL_DIALECTS: [DialectArg; 4] = [
    DialectArg::Openai,
    DialectArg::OpenaiResponses,
    DialectArg::Anthropic,
    DialectArg::Gemini,
];

/// A tool of the list.
struct ToolRow {
    decl: ToolDeclaration,
    /// `built in`, `file`, or the source that was asked.
    from: String,
    /// Names that a judge may list it under, besides its own.
    groups: Vec<String>,
    judges: Vec<String>,
    badge: Option<String>,
    broken: Vec<String>,
    lints: Vec<String>,
    /// Whether it changes nothing; `None` where that is not known.
    read_only: Option<bool>,
    after: Vec<String>,
    max_calls: Option<u32>,
    /// Whether identical calls of a trace are answered once.
    cached: bool,
    coerce: bool,
    auth: Vec<String>,
    /// Its source and that one's kind.
    source: Option<(String, String)>,
}

/// Lists them.
pub(super) fn list_tools(
    provider: Option<DialectArg>,
    format: ListFormat,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let found = ToolContext::load(place.workspace.as_deref(), &[], cx)?;
    let mut deps = found.deps;
    let workspace = load_workspace_if_valid(place, cx);
    if let Some(workspace) = &workspace {
        deps.toolbox = Arc::clone(&workspace.tools);
    }
    let toolbox = Arc::clone(&deps.toolbox);
    let judges: Vec<JudgeConfig> = workspace
        .iter()
        .flat_map(|workspace| workspace.judges.values().cloned())
        .collect();
    let runtime = build_runtime()?;
    let work = async |call_cx: &CallCx| collect_rows(&deps, &judges, call_cx).await;
    let ((rows, problems), _told) = runtime.block_on(with_call_cx(&toolbox, cx, work));
    runtime.shutdown_timeout(Millis(200).to_duration());
    let text = match format {
        ListFormat::Json => {
            let list: Vec<Value> = rows.iter().map(|row| row_to_json(row, provider)).collect();
            format!("{:#}\n", Value::from(list))
        }
        ListFormat::Human => rows
            .iter()
            .map(|row| format_row(row, provider, cx.streams.out.width))
            .collect(),
    };
    let redactor = build_redactor(&toolbox);
    cx.streams.print(&redactor.redact(&text).unwrap_or(text));
    for problem in problems {
        let clean = redactor.redact(&problem);
        cx.streams.print_stderr(&clean.unwrap_or(problem));
    }
    if has_errors(&found.problems) {
        // What is broken is in the list; what could not become a tool at all is only here.
        cx.streams.print_diagnostics(&found.problems);
    }
    Ok(0)
}

/// The workspace, if there is one and it loads: a list of tools must not fail for a rubric.
fn load_workspace_if_valid(place: &WorkspaceArgs, cx: &CommandCx) -> Option<Workspace> {
    let here = std::env::current_dir().ok();
    let root = workspace::find_workspace_root(place.workspace.as_deref().or(here.as_deref())?)?;
    let loaded = workspace::load(&root, &cx.env, &EvalTypeRegistry::builtin()).ok();
    if loaded.is_none() {
        cx.streams.print_stderr(
            "the workspace does not load (`dicta check` says why): judges are not listed",
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
        // All that is built in reads.
        row.read_only = Some(true);
        rows.push(row);
    }
    for (name, tool) in &toolbox.tools {
        let mut row = ToolRow::from_definition(name, tool, judges, toolbox);
        if tool.errors.is_empty() && tool.from_source != SourceProvided::default() {
            // Its source says what the file leaves to it.
            match with_timeout(open_single_tool(&plain_tool_use(name), deps, cx), cx).await {
                Ok(set) => {
                    if let Some(opened) = set.get(name) {
                        row.decl = opened.decl().clone();
                    }
                }
                Err(why) => problems.push(format!("tool `{name}`: {}", why.join("; "))),
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
            Err(why) => problems.push(format!(
                "source `{name}`: its tools are not listed: {}",
                why.join("; ")
            )),
        }
    }
    for judge in judges {
        for entry in judge
            .tools
            .iter()
            .filter(|entry| entry.name == SERVER_ENTRY)
        {
            match with_timeout(open_single_tool(entry, deps, cx), cx).await {
                Ok(set) => {
                    let from = format!("a server of judge {}", judge.name);
                    for tool in &set.tools {
                        let mut row = ToolRow::from_opened(&**tool, &from, &[], &[]);
                        row.judges.push(judge.name.clone());
                        rows.push(row);
                    }
                }
                Err(why) => problems.push(format!(
                    "judge `{}`: the tools of its server are not listed: {}",
                    judge.name,
                    why.join("; ")
                )),
            }
        }
    }
    (rows, problems)
}

async fn with_timeout(
    opening: impl Future<Output = Result<ToolSet, Vec<String>>>,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    tokio::select! {
        opened = opening => opened,
        () = cx.clock.sleep(OPEN_TIMEOUT) => Err(vec![format!("it said nothing within {OPEN_TIMEOUT}")]),
    }
}

/// An entry that only names a tool.
fn plain_tool_use(name: &str) -> JudgeTool {
    JudgeTool {
        name: name.to_owned(),
        settings: indexmap::IndexMap::new(),
    }
}

impl ToolRow {
    fn new(decl: ToolDeclaration, from: &str, judges: &[JudgeConfig], groups: &[String]) -> Self {
        let has = |judge: &&JudgeConfig| {
            let mut entries = judge.tools.iter();
            entries.any(|entry| entry_provides(entry, &decl.name, groups))
        };
        let judges = judges.iter().filter(has);
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

    /// As its file declares it; nobody is asked, and no token verified.
    fn from_definition(
        name: &str,
        tool: &Arc<ToolDefinition>,
        judges: &[JudgeConfig],
        toolbox: &Toolbox,
    ) -> Self {
        let about = toolbox.origins.get(name);
        let source = about.and_then(|about| {
            let source = toolbox.sources.get(&about.source)?;
            Some((about.source.clone(), source.kind().to_owned()))
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

    /// What calling it is bound to, in words.
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
            terms.push(format!("comes after {}", self.after.join(", ")));
        }
        match self.max_calls {
            Some(1) => terms.push("may be called once".to_owned()),
            Some(n) => terms.push(format!("may be called {n} times")),
            None => {}
        }
        if self.read_only == Some(true) && !self.cached {
            terms.push("asked anew each time".to_owned());
        }
        if self.coerce {
            terms.push("lenient typing".to_owned());
        }
        terms
    }
}

/// Whether an entry of a judge's `tools:` gives it this tool, which is in these sets and sources.
fn entry_provides(entry: &JudgeTool, tool: &str, groups: &[String]) -> bool {
    if entry.name == tool {
        return true;
    }
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

/// The declaration in a provider's own words.
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
        .filter(|one| provider.is_none_or(|wanted| wanted == *one))
        .map(|one| (dialect_name(one).to_owned(), declare_for(&row.decl, one)))
        .collect();
    json!({
        "name": row.decl.name,
        "description": row.decl.description,
        "schema": row.decl.schema,
        "from": row.from,
        "groups": row.groups,
        "judges": row.judges,
        "source": row.source.as_ref().map(|(name, _)| name),
        "kind": row.source.as_ref().map(|(_, kind)| kind),
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
    line(&row.decl.description);
    let mut facts = vec![match &row.source {
        Some((name, kind)) => format!("{}, {kind} source {name}", row.from),
        None => row.from.clone(),
    }];
    if !row.groups.is_empty() {
        facts.push(format!("in {}", row.groups.join(", ")));
    }
    facts.push(match row.judges.as_slice() {
        [] => "no judge has it".to_owned(),
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
    let shown = match provider {
        Some(provider) => format!("{:#}\n", declare_for(&row.decl, provider)),
        None => format_arguments(&row.decl.schema, width),
    };
    out + &shown + "\n"
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
    fn each_provider_is_told_in_its_own_words() {
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
    fn a_judge_has_a_tool_by_its_name_its_set_or_its_source_as_far_as_that_is_allowed() {
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
        assert!(text.contains("file · no judge has it"), "{text}");
        let json = row_to_json(&row, Some(DialectArg::Gemini));
        assert_eq!(json["broken"][0], "tools.yaml:3:5: no such source");
        assert_eq!(
            json["declared"].as_object().map(serde_json::Map::len),
            Some(1)
        );
    }
}
