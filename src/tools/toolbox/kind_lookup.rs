//! The lookup of a kind by name: kinds of this build, kinds that this build lacks, and kinds that only the MCP
//! toolbox has.

use crate::diag::find_nearest;
use crate::tools::kinds::SOURCE_KINDS;
use crate::tools::source::SourceKind;

/// Families of kinds that the MCP toolbox has and dicta lacks.
const UNSUPPORTED_FAMILIES: &[&str] = &[
    "alloydb",
    "arcadedb",
    "bigquery",
    "bigtable",
    "cassandra",
    "clickhouse",
    "cloud-gda",
    "cloud-healthcare",
    "cloud-logging",
    "cloud-monitoring",
    "cloud-sql",
    "cloud-storage",
    "cockroachdb",
    "conversational-analytics",
    "couchbase",
    "dataform",
    "dataplex",
    "dataproc",
    "datalineage",
    "dgraph",
    "elasticsearch",
    "firebird",
    "firestore",
    "gemini-data-analytics",
    "looker",
    "mariadb",
    "mindsdb",
    "mongodb",
    "mssql",
    "mysql",
    "neo4j",
    "oceanbase",
    "oracle",
    "postgres",
    "redis",
    "scylladb",
    "serverless-spark",
    "singlestore",
    "snowflake",
    "spanner",
    "sqlite",
    "tidb",
    "trino",
    "valkey",
    "wait",
    "yugabytedb",
];

#[cfg(not(test))]
const MORE: &[SourceKind] = &[];
#[cfg(test)]
const MORE: &[SourceKind] = &[
    super::echo::ECHO,
    super::echo::LEFT_OUT,
    crate::tools::kinds::recipe::CALENDAR,
];

fn kinds() -> impl Iterator<Item = &'static SourceKind> + Clone {
    SOURCE_KINDS.iter().chain(MORE)
}

/// Finds the kind of a source. The error is a sentence.
pub(super) fn find_source_kind(written: &str) -> Result<&'static SourceKind, String> {
    let names = kinds().map(|kind| kind.source);
    find_kind(
        written,
        "source",
        |kind| kind.source == written,
        names.collect(),
    )
}

/// Finds the kind of a tool. The error is a sentence.
pub(super) fn find_tool_kind(written: &str) -> Result<&'static SourceKind, String> {
    let names = kinds().flat_map(|kind| kind.tools.iter().copied());
    find_kind(
        written,
        "tool",
        |kind| kind.tools.contains(&written),
        names.collect(),
    )
}

fn find_kind(
    written: &str,
    what: &str,
    is: impl Fn(&SourceKind) -> bool,
    names: Vec<&str>,
) -> Result<&'static SourceKind, String> {
    if let Some(kind) = kinds().find(|kind| is(kind)) {
        return match (kind.read, kind.feature) {
            (Some(_), _) => Ok(kind),
            (None, "") => Err(format!(
                "the kind `{written}` is not in this version of dicta"
            )),
            (None, feature) => Err(format!(
                "the kind `{written}` is left out of this build of dicta: build it with `--features {feature}`"
            )),
        };
    }
    let listed = names.join(", ");
    if let Some(near) = find_nearest(written, names) {
        return Err(format!(
            "unknown kind of {what} `{written}`; did you mean `{near}`?"
        ));
    }
    let is_elsewhere = UNSUPPORTED_FAMILIES.iter().any(|family| {
        let rest = written.strip_prefix(family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    if is_elsewhere {
        return Err(format!(
            "`{written}` is a kind of the MCP toolbox that is not supported by dicta; kinds of {what} here: {listed}"
        ));
    }
    Err(format!(
        "unknown kind of {what} `{written}`; known: {listed}"
    ))
}
