//! `calendar`: which day of the week a date is.

use std::sync::Arc;

use jiff::civil::Date;
use serde::Deserialize;

use super::{Kind, Source, Work};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse};
use crate::tools::Prepared;
use crate::tools::toolbox::Input;

pub(in crate::tools) const CALENDAR: Kind = Kind {
    source: "calendar",
    tools: &["weekday"],
    feature: "",
    read: Some(|_keys, _cx| Some(Arc::new(Calendar))),
};

struct Calendar;

/// What one tool on it does.
struct Weekday {
    short: bool,
}

/// What its parameters are, where the file declares them so.
#[derive(Deserialize)]
struct Asked {
    date: Date,
}

impl Source for Calendar {
    fn kind(&self) -> &'static str {
        "calendar"
    }
    fn tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &Input,
    ) -> Option<Arc<dyn Work>> {
        let short = fields.boolean("short").unwrap_or(false);
        Some(Arc::new(Weekday { short }))
    }
    fn probe<'a>(&'a self, _cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async { Ok("the Gregorian calendar".to_owned()) })
    }
}

impl Work for Weekday {
    fn digest(&self) -> Digest {
        Digest::hash_bytes(format!("weekday, short: {}", self.short).as_bytes())
    }
    fn read_only(&self) -> bool {
        true
    }
    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        let spelling = if self.short { "%a" } else { "%A" };
        Box::pin(async move {
            match serde_json::from_str::<Asked>(prepared.values.get()) {
                Ok(asked) => ToolResponse::ok(asked.date.strftime(spelling).to_string()),
                Err(why) => ToolResponse::error(format!("date is not a date: {why}")),
            }
        })
    }
}
