//! Carries effects out and tells what came of them as [`super::msg::Msg`]s. Owns tasks and cancel tokens; refuses to decide.
