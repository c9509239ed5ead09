//! The workbench: edit a rubric, watch the judge think, see which verdicts moved.
//!
//! ```text
//!  keys, mouse, signals ─┐                                        ┌─► view(&Model) ─► buffer + Hits
//!  files, runs, reads ───┴─► Msg ─► update(&mut Model, Msg) ──────┤
//!                             ▲                                   └─► Effect ─► runtime ─┐
//!                             └──────────────────────────────────────────────────────────┘
//! ```
//!
//! - [`model`] is the whole state as data; [`update`] the only thing that changes it; [`view`] draws it and says what a
//!   click would hit. None of the three does I/O or knows the time but from `model.now`.
//! - [`command`] is the one table of what a user can do; [`keymap`] makes keys into commands.
//! - [`content`] makes the texts of panes from the model; [`widget`] scrolls and draws any text.
//! - [`app`] is the loop: drain what is pending, then draw at most once in 16 ms, only if something changed.
//!   [`runtime`] carries effects out; [`term`] takes the terminal and always gives it back.
//!
//! Refuses to decide anything: verdicts come from `run`, and replay is the live path with another source.

pub(crate) mod app;
pub(crate) mod at_hand;
pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod effect;
pub(crate) mod keymap;
pub(crate) mod listing;
pub(crate) mod model;
pub(crate) mod msg;
pub(crate) mod runtime;
pub(crate) mod term;
pub(crate) mod update;
pub(crate) mod view;
pub(crate) mod widget;
