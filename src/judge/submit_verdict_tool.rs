//! The function `submit_verdict` as a tool of the judge.
//!
//! Responsible for checking its arguments like those of any other tool. The trace itself reads the verdict.

use super::verdict_format::VerdictFormat;
use super::verdict_parser;
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, RawJson, Rejection, SUBMIT_VERDICT, ToolDeclaration, ToolResponse};
use crate::tools::{SeenUrls, Tool, ValidatedCall};

/// The tool `submit_verdict`.
pub(super) struct SubmitVerdictTool {
    format: VerdictFormat,
    decl: ToolDeclaration,
}

impl SubmitVerdictTool {
    pub(super) fn new(format: VerdictFormat) -> Self {
        Self {
            format,
            decl: format.submit_tool_decl(),
        }
    }
}

impl Tool for SubmitVerdictTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.decl
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        // Only check here: the trace parses the verdict again from the raw arguments.
        match verdict_parser::parse_verdict_object(canonical.get(), &self.format) {
            Ok(_) => Ok(ValidatedCall::unchanged(SUBMIT_VERDICT, canonical)),
            Err(why) => Err(Rejection {
                rule: "verdict".to_owned(),
                text: format!("Error: {why}"),
            }),
        }
    }

    /// Confirms the call; the trace has read the verdict already.
    fn call<'a>(
        &'a self,
        _prepared: &'a ValidatedCall,
        _call: CallIx,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(std::future::ready(ToolResponse::ok(
            "The verdict was received.",
        )))
    }
}
