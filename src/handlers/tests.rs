//! Tests of the eval types together: whole evals, properties of every type, hostile inputs, differences from PromptKit.

mod eval_type_properties;
mod evals;
mod hostile_inputs;
mod problem_locations;
mod promptkit_differences;
