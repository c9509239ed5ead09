//! The files of certificates and keys that decide whom the judges and tools of a workspace trust.
//!
//! Responsible for the list of them. Does not read the files: that is the work of the sources and providers.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::model::JudgeConfig;
use crate::tools::toolbox::Toolbox;

/// Returns the files of certificates and keys that decide whom the tools of a workspace trust.
pub(super) fn list_authority_files(
    toolbox: &Toolbox,
    judges: &IndexMap<String, JudgeConfig>,
) -> Vec<PathBuf> {
    let sources = toolbox.sources.values();
    let servers = toolbox.inline_servers.values();
    let of_sources = sources
        .chain(servers)
        .flat_map(|source| source.authority_files());
    let services = toolbox.auth.values();
    let of_services = services.filter_map(|service| service.key_file().map(Path::to_owned));
    of_sources
        .chain(of_services)
        .chain(list_setting_files(judges))
        .collect()
}

/// Returns the files that settings of judges' tools name, such as `ca_file` of `fetch_url`. The loader made the paths
/// absolute.
pub(super) fn list_setting_files(judges: &IndexMap<String, JudgeConfig>) -> Vec<PathBuf> {
    let tools = judges.values().flat_map(|judge| &judge.tools);
    let settings = tools.flat_map(|tool| &tool.settings);
    let named = settings.filter(|(key, _)| key.ends_with("_file"));
    let paths = named.filter_map(|(_, path)| path.as_str().map(PathBuf::from));
    paths.collect()
}
