//! Types that judge the agent's calls: `llm_judge_tool_calls` with the author's criteria, `parameter_analysis` with
//! its own.

use std::fmt::Write as _;

use super::parts_spec::{VerdictPartsSpec, format_numbered_list};
use super::{BOUND_PARAMS, SCORING_GUIDE_ALIASES, check_not_empty, judged_params, scale_problem};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::format_list;
use crate::handlers::wrap::ParamsCompleter;
use crate::handlers::{
    CompiledEval, Finding, JudgedEval, JudgedParams, LocatedToolResult, PromptBlock, ScoreScale,
    Subject,
};
use crate::rubric::ParamProblem;

/// The name of the block with the calls.
pub(crate) const CALLS_BLOCK: &str = "tool calls";

/// The largest number of calls that are judged one by one.
const MAX_CALLS: usize = 200;

const TOOL_CALLS_TASK: &str =
    "Judge the agent's calls in the block `tool calls` above. The conversation is their context.";

const PARAMETER_CRITERIA: &str = "\
The agent's calls have the right parameters. Judge each call of the block `tool calls` by itself, with what the conversation \
held when it was made.
A call has an issue if a parameter is missing that the request or an earlier result gives, if a value contradicts the request \
or a result, if a value was made up, if it has the wrong type, unit or format (a result that reports an error over it shows \
that), or if a parameter narrows or widens what was asked for. Names that differ only in style are no issue, nor is a default \
left out.
Name the parameter and quote its value for every issue.";

judged_params! {
    /// Params of `llm_judge_tool_calls`.
    struct LlmJudgeToolCalls {
        /// The criteria for the calls, in plain words.
        #[schemars(length(min = 1))]
        criteria: String,
        /// The scoring guide: the meaning of each score.
        #[serde(default)]
        scoring_guide: Option<String>,
        /// Only calls of these tools. Without it, all calls.
        #[serde(default)]
        #[schemars(length(min = 1), inner(length(min = 1)))]
        tools: Option<Vec<String>>,
        /// The lowest and the highest score that the judge may give, such as [1, 5]. Default: 0 to 1.
        #[serde(default)]
        scale: Option<[f64; 2]>,
    }
}

impl EvalType for LlmJudgeToolCalls {
    const NAME: &'static str = "llm_judge_tool_calls";
    const SUMMARY: &'static str = "A judge decides whether the agent's tool calls meet the criteria. Not applicable without a call.";
    const EXAMPLE: &'static str =
        "criteria: Every search is as narrow as the request allows\ntools: [search]";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = SCORING_GUIDE_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        check_not_empty("criteria", Some(&self.criteria), &mut problems);
        problems.extend(scale_problem(self.scale));
        tool_problems(self.tools.as_deref(), &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let known = JudgedParams {
            criteria: self.criteria,
            guide: self.scoring_guide.unwrap_or_default(),
            // serde reads a list of two numbers; `scale_problem` has checked the order.
            scale: self.scale.map(ScoreScale::from),
            ..known
        };
        let calls = ToolCallListAdder {
            tools: self.tools,
            judge_each: false,
        };
        Ok(CompiledEval::Judged(JudgedEval::with_completer(
            known, calls,
        )))
    }
}

judged_params! {
    /// Params of `parameter_analysis`.
    struct ParameterAnalysis {
        /// Only calls of these tools. Without it, all calls.
        #[serde(default)]
        #[schemars(length(min = 1), inner(length(min = 1)))]
        tools: Option<Vec<String>>,
    }
}

impl EvalType for ParameterAnalysis {
    const NAME: &'static str = "parameter_analysis";
    const SUMMARY: &'static str = "A judge looks for issues in the parameters of each tool call. Passes if it finds none. \
                                   The score is the share of calls without an issue. Not applicable without a call.";
    const EXAMPLE: &'static str = "tools: [book_flight]";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let (known, mut problems) = self.common();
        tool_problems(self.tools.as_deref(), &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let known = JudgedParams {
            criteria: PARAMETER_CRITERIA.to_owned(),
            ..known
        };
        let calls = ToolCallListAdder {
            tools: self.tools,
            judge_each: true,
        };
        Ok(CompiledEval::Judged(JudgedEval::with_completer(
            known, calls,
        )))
    }
}

fn tool_problems(tools: Option<&[String]>, problems: &mut Vec<ParamProblem>) {
    let Some(tools) = tools else { return };
    if tools.is_empty() {
        problems.push(param_problem("/tools", "needs at least one tool"));
    }
    for (at, _) in tools.iter().enumerate().filter(|(_, t)| t.is_empty()) {
        problems.push(param_problem(format!("/tools/{at}"), "is empty"));
    }
}

/// Completes the params with a block that lists the calls.
#[derive(Debug)]
struct ToolCallListAdder {
    tools: Option<Vec<String>>,
    /// `true` if each call gets its own verdict.
    judge_each: bool,
}

impl ParamsCompleter for ToolCallListAdder {
    fn complete(
        &self,
        subject: &Subject<'_>,
        known: JudgedParams,
    ) -> Result<JudgedParams, Finding> {
        let wanted = |name: &str| {
            let tools = self.tools.as_deref();
            tools.is_none_or(|tools| tools.iter().any(|tool| tool == name))
        };
        let calls = subject.calls().iter().enumerate();
        let calls: Vec<usize> = calls
            .filter(|(_, call)| wanted(&call.call.name))
            .map(|(at, _)| at)
            .collect();
        // No call is not a fail: the criteria say how calls must be, not that there must be some.
        if calls.is_empty() {
            let no_tools = match &self.tools {
                None => "no tool".to_owned(),
                Some(tools) => format!("none of {}", format_list(tools)),
            };
            return Err(Finding::not_applicable(format!(
                "the agent called {no_tools}, so the judge has nothing to judge"
            )));
        }
        // Each call gets its own verdict or text in one prompt, so the number must stay small.
        if calls.len() > MAX_CALLS {
            let n = calls.len();
            return Err(Finding::check_error(format!(
                "there are {n} calls to judge, more than {MAX_CALLS}: name `tools`"
            )));
        }
        let listed: Vec<String> = calls.iter().map(|at| describe_call(subject, *at)).collect();
        let parts = if self.judge_each {
            let name = |at: &usize| {
                let call = &subject.calls()[*at];
                format!("{} in message {}", &*call.call.name, call.message)
            };
            // The names appear next to each verdict part, in the order of the block.
            VerdictPartsSpec::Calls(calls.iter().map(name).collect())
        } else {
            VerdictPartsSpec::SingleVerdict
        };
        Ok(JudgedParams {
            parts_spec: parts,
            prompt_blocks: vec![PromptBlock {
                label: CALLS_BLOCK.to_owned(),
                text: format_numbered_list(&listed),
            }],
            task: Some(TOOL_CALLS_TASK),
            session: true,
            ..known
        })
    }
}

/// Writes a call with its arguments and its result. The judge reads this text.
fn describe_call(subject: &Subject<'_>, at: usize) -> String {
    let call = &subject.calls()[at];
    let mut text = format!(
        "message {}: {}\nArguments: {}\n",
        call.message, &*call.call.name, &*call.call.arguments
    );
    // Writing to a String cannot fail.
    let _ok = match subject.result(at) {
        None => write!(text, "Result: none in the transcript"),
        Some(LocatedToolResult { message, result }) => {
            let what = match result.is_error {
                Some(true) => "Error",
                _ => "Result",
            };
            write!(text, "{what} (message {message}): {}", &*result.content)
        }
    };
    text
}
