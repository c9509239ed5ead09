//! The one reader of YAML.
