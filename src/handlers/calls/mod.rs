//! Checks over single tool calls of the agent: their names, arguments, results and number.
//!
//! All read the calls of messages `0..end`, so a type and its `_session` twin are one check with two names; the
//! trigger decides how much they see. Errors and durations count only if the result itself records them. Does not
//! compare whole lists of calls: `trajectory` does.

mod agents;
mod call_matching;
mod counts;
mod no_tool_errors;
pub(super) mod result_conditions;
mod tool_args;
mod tool_args_excluded;
mod tool_call_latency;
mod tool_calls_with_args;
mod tool_efficiency;
mod tool_no_repeat;
mod tool_results;
mod tools_called;
mod tools_not_called;

pub(super) use agents::{AgentInvoked, AgentNotInvoked, AgentResponseContains};
pub(super) use counts::{AgentSteps, ToolCallCount, TurnCount};
pub(super) use no_tool_errors::NoToolErrors;
pub(super) use tool_args::{ToolArgsEval, ToolArgsSession};
pub(super) use tool_args_excluded::ToolArgsExcludedSession;
pub(super) use tool_call_latency::ToolCallLatency;
pub(super) use tool_calls_with_args::ToolCallsWithArgs;
pub(super) use tool_efficiency::ToolEfficiency;
pub(super) use tool_no_repeat::ToolNoRepeat;
pub(super) use tool_results::{ToolResultIncludes, ToolResultMatches};
pub(super) use tools_called::{ToolsCalled, ToolsCalledSession};
pub(super) use tools_not_called::{ToolsNotCalled, ToolsNotCalledSession};

#[cfg(test)]
mod records;
#[cfg(test)]
mod tests;
