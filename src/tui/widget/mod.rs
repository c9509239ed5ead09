//! The building blocks of panes: long scrollable texts, lists with a stable selection, fitted lines.
//!
//! Knows no domain types, only texts, roles and sizes. Replaces control, bidi and zero-width characters by visible
//! marks. Other modules must not write text into the buffer.

pub(crate) mod canvas;
pub(crate) mod flow;
mod frame;
mod glyph;
pub(crate) mod histogram;
pub(crate) mod line_input;
pub(crate) mod line_plot;
pub(crate) mod list;
pub(crate) mod styled_row;

#[cfg(test)]
mod tests;
