//! Checks over the agent's tool calls, one by one: which were made, with which arguments, what they answered, how many.
//!
//! All look at the calls of messages `0..end`, so a type and its `_session` twin are one check under two names: the
//! trigger says how much they see. What counts as an error, and how long a tool took, is only what the result itself
//! says. Refuses whole lists of calls against each other: those are the trajectory's.

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
