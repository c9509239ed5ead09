//! `dicta evals`, `judges`, `tools`, `schema`: what exists here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Cx;
use super::args::{ListFormat, Place, SchemaOf};
use super::trouble::Trouble;
use super::workspace::open;
use crate::diag::nearest;
use crate::handlers::Registry;
use crate::model::KeySource;
use crate::report::wrap;
use crate::rubric::{self, Catalog as _, KindSpec};
use crate::tools::available;
use crate::workspace;

/// Lists eval types, or one with its schema.
pub(super) fn evals(kind: Option<&str>, format: ListFormat, cx: &Cx) -> Result<u8, Trouble> {
    let registry = Registry::builtin();
    let kinds: Vec<&KindSpec> = match kind {
        None => registry.kinds(),
        Some(name) => vec![registry.kind(name).ok_or_else(|| {
            let near = nearest(name, registry.kinds().iter().map(|k| k.name));
            let near = near
                .map(|n| format!("; did you mean `{n}`?"))
                .unwrap_or_default();
            Trouble::usage(format!("there is no eval type `{name}`{near}"))
        })?],
    };
    if format == ListFormat::Json {
        let list: Vec<Value> = kinds
            .iter()
            .map(|k| {
                json!({"type": k.name, "summary": k.summary, "judged": k.judged, "scored": k.scored,
                       "decides": k.decides, "example": k.example, "schema": k.schema,
                       "aliases": k.aliases.iter().map(|alias| alias.name).collect::<Vec<_>>(),
                       "param_aliases": k.param_aliases.iter().copied().collect::<BTreeMap<_, _>>()})
            })
            .collect();
        cx.streams.print(&format!("{:#}\n", Value::from(list)));
        return Ok(0);
    }
    let mut out = String::new();
    for spec in &kinds {
        let judged = if spec.judged { "  (asks a judge)" } else { "" };
        let width = cx.streams.out.width;
        let summary = wrap(spec.summary, 4, 4, width);
        let aliases: Vec<&str> = spec.aliases.iter().map(|alias| alias.name).collect();
        let also = match aliases.as_slice() {
            [] => String::new(),
            names => format!("  (also {})", names.join(", ")),
        };
        let _infallible = writeln!(out, "{}{judged}{also}\n    {summary}", spec.name);
        let empty = serde_json::Map::new();
        let properties = spec
            .schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        for (name, schema) in properties {
            let required = spec.schema["required"]
                .as_array()
                .is_some_and(|r| r.iter().any(|v| v == name));
            let about = schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or("");
            let mark = if required { "*" } else { " " };
            let mut aliases = spec.param_aliases.iter().filter(|(_, own)| own == name);
            let also = aliases.next().map_or_else(String::new, |(other, _)| {
                let more = aliases.map(|(other, _)| format!(", `{other}`"));
                format!(" Also `{other}`{}.", more.collect::<String>())
            });
            let line = format!("{mark} {name}: {}{also}", about.replace('\n', " "));
            let _infallible = writeln!(out, "   {}", wrap(&line, 3, 9, width));
            // A text that is written for the author, such as the criteria of a canned judge, is there to be read.
            let written = schema.get("default").and_then(Value::as_str);
            for line in written
                .filter(|_| kind.is_some())
                .into_iter()
                .flat_map(str::lines)
            {
                let _infallible = writeln!(out, "         | {}", wrap(line, 11, 11, width));
            }
        }
        for line in spec.example.lines() {
            let _infallible = writeln!(out, "        {line}");
        }
        out.push('\n');
    }
    if kind.is_some() {
        for spec in &kinds {
            let _infallible = writeln!(out, "{:#}", spec.schema);
        }
    } else {
        out.push_str("* required. `dicta evals TYPE` adds the JSON Schema of its params.\n");
    }
    cx.streams.print(&out);
    Ok(0)
}

/// Lists the workspace's judges.
pub(super) fn judges(place: &Place, cx: &Cx) -> Result<u8, Trouble> {
    let workspace = open(place.workspace.as_deref(), cx)?.workspace;
    let mut out = String::new();
    for (name, judge) in &workspace.judges {
        let default = if workspace.judge.as_deref() == Some(name) {
            "  (default)"
        } else {
            ""
        };
        let provider = serde_json::to_value(judge.provider).ok();
        let provider = provider.as_ref().and_then(Value::as_str).unwrap_or("?");
        let what = format!("{provider} {}", judge.model);
        let _infallible = writeln!(out, "{name}{default}\n    {}", what.trim_end());
        if let Some(url) = &judge.base_url {
            let _infallible = writeln!(out, "    at {url}");
        }
        let key = match &judge.key {
            KeySource::None => "no key".to_owned(),
            KeySource::Env(var) if cx.env.get(var).is_some() => {
                format!("key from {var}, which is set")
            }
            KeySource::Env(var) => format!("key from {var}, which is NOT set"),
            KeySource::EnvIfSet(var) => format!("key from {var} if it is set"),
            KeySource::File(path) => format!("key from {}", path.display()),
        };
        let tools: Vec<&str> = judge.tools.iter().map(|t| t.name.as_str()).collect();
        let tools = if tools.is_empty() {
            "no tools".to_owned()
        } else {
            format!("tools {}", tools.join(", "))
        };
        let price = if judge.is_free() {
            "free"
        } else if judge.prices.is_some() {
            "priced"
        } else {
            "price unknown"
        };
        let _infallible = writeln!(
            out,
            "    {key} · {tools} · at most {} turns · {price}\n",
            judge.max_turns
        );
    }
    cx.streams.print(&out);
    Ok(0)
}

/// Lists the tools judges can be given.
pub(super) fn tools(format: ListFormat, cx: &Cx) -> Result<u8, Trouble> {
    let decls = available();
    if format == ListFormat::Json {
        let json =
            serde_json::to_value(&decls).map_err(|error| Trouble::usage(error.to_string()))?;
        cx.streams.print(&format!("{json:#}\n"));
        return Ok(0);
    }
    let mut out = String::new();
    for decl in decls {
        let about = wrap(&decl.description, 4, 4, cx.streams.out.width);
        let _infallible = writeln!(out, "{}\n    {about}\n{:#}\n", decl.name, decl.schema);
    }
    cx.streams.print(&out);
    Ok(0)
}

/// Prints a JSON Schema.
pub(super) fn schema(of: SchemaOf, cx: &Cx) -> u8 {
    let schema = match of {
        SchemaOf::Rubric => rubric::json_schema(&Registry::builtin()),
        SchemaOf::Workspace => workspace::json_schema(),
        SchemaOf::Transcript => workspace::transcript_schema(),
        SchemaOf::Event => workspace::event_schema(),
    };
    cx.streams.print(&format!("{schema:#}\n"));
    0
}
