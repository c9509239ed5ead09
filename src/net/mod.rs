//! The only builder of HTTP clients, and the guard on every address that a model or a page names.
