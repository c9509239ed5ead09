//! What panes are made of: long texts that scroll, lists that keep their selection, lines that fit.
//!
//! Knows no domain type: texts, roles, sizes. Everything drawn here has control, bidi and zero-width characters replaced
//! by visible marks; nobody else writes text into the buffer.

pub(crate) mod canvas;
pub(crate) mod flow;
mod frame;
mod glyph;
pub(crate) mod line_input;
pub(crate) mod list;
pub(crate) mod styled_row;

#[cfg(test)]
mod tests;
