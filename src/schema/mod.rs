//! JSON Schema: compiled once, remote and file references refused, drafts by `$schema` (else 2020-12), formats asserted.
//!
//! The only importer of the `jsonschema` crate.
