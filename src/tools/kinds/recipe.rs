//! `calendar`: returns the day of the week of a date.

use std::sync::Arc;

use jiff::civil::Date;
use serde::Deserialize;

use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse};
use crate::tools::ProbeError;
use crate::tools::ValidatedCall;
use crate::tools::source::{SourceKind, ToolExecutor, ToolInput, ToolSource};

pub(in crate::tools) const CALENDAR: SourceKind = SourceKind {
    source: "calendar",
    tools: &["weekday"],
    feature: "",
    read: Some(|_keys, _cx| Some(Arc::new(Calendar))),
};

struct Calendar;

/// A tool on the source.
struct Weekday {
    short: bool,
}

/// The tool's parameters, which the tools file must declare with these names.
#[derive(Deserialize)]
struct WeekdayArgs {
    date: Date,
}

impl ToolSource for Calendar {
    fn kind(&self) -> &'static str {
        "calendar"
    }
    fn read_tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        let short = fields.boolean("short").unwrap_or(false);
        Some(Arc::new(Weekday { short }))
    }
    fn probe<'a>(&'a self, _cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(async { Ok("the Gregorian calendar".to_owned()) })
    }
}

impl ToolExecutor for Weekday {
    fn digest(&self) -> Digest {
        Digest::hash_bytes(format!("weekday, short: {}", self.short).as_bytes())
    }
    fn is_read_only(&self) -> bool {
        true
    }
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        let spelling = if self.short { "%a" } else { "%A" };
        Box::pin(async move {
            match serde_json::from_str::<WeekdayArgs>(prepared.values.get()) {
                Ok(arguments) => ToolResponse::ok(arguments.date.strftime(spelling).to_string()),
                Err(why) => ToolResponse::error(format!("date is not a date: {why}")),
            }
        })
    }
}
