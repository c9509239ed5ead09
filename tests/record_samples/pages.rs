//! The demo's pages, as `sample-runs/demo/pages/index.yaml` lists them.

use std::path::Path;

use serde::Deserialize;
use url::Url;

/// The response of one URL.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) host: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) status: u16,
    /// The target of a redirect.
    pub(crate) location: Option<String>,
    pub(crate) body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    pages: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Url,
    #[serde(default = "ok")]
    status: u16,
    file: Option<String>,
    redirect: Option<String>,
}

const fn ok() -> u16 {
    200
}

/// Reads the index and the files it names.
pub(crate) fn load(folder: &Path) -> Vec<Page> {
    let index = std::fs::read_to_string(folder.join("index.yaml"))
        .expect("the demo has an index of its pages");
    let index: Index = serde_yaml::from_str(&index).expect("the index is valid");
    let page = |entry: Entry| Page {
        host: entry
            .url
            .host_str()
            .expect("every page has a host")
            .to_owned(),
        path: entry.url[url::Position::BeforePath..url::Position::AfterQuery].to_owned(),
        content_type: match &entry.file {
            Some(file)
                if std::path::Path::new(file)
                    .extension()
                    .is_some_and(|end| end == "json") =>
            {
                "application/json"
            }
            _ => "text/html; charset=utf-8",
        },
        status: entry.status,
        location: entry.redirect,
        body: match entry.file {
            Some(file) => std::fs::read_to_string(folder.join(file))
                .expect("the index names files that exist"),
            None => "<!doctype html><p>Nothing here. Written for the demo of dicta.</p>".to_owned(),
        },
    };
    index.pages.into_iter().map(page).collect()
}

/// Every host once, in order.
pub(crate) fn hosts(pages: &[Page]) -> Vec<String> {
    let mut hosts: Vec<String> = pages.iter().map(|page| page.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
