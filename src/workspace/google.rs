//! Google credentials, and the project and location of a judge on Vertex AI.
//!
//! Responsible for finding credentials in the order of Google's own libraries. Does not parse them;
//! [`crate::provider`] does.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::files::{self, TextFileError};
use super::{Env, variables};
use crate::model::{ApiKeySource, JudgeConfig};
use crate::provider::google_auth::{GoogleCredentials, GoogleCredentialsError};

/// The maximum size of a credentials file, in bytes.
const MAX_CREDENTIALS_BYTES: u64 = 64 << 10;

/// The variables that name a project: first Google's, then evalbench's.
const PROJECT_VARIABLES: [&str; 2] = [
    variables::GOOGLE_CLOUD_PROJECT,
    variables::EVAL_GCP_PROJECT_ID,
];
/// The variables that name a location.
const LOCATION_VARIABLES: [&str; 3] = [
    variables::GOOGLE_CLOUD_LOCATION,
    variables::GOOGLE_CLOUD_REGION,
    variables::EVAL_GCP_PROJECT_REGION,
];

/// The reason why a judge has no usable Google credentials.
#[derive(Debug, Error)]
pub enum CredentialsLoadError {
    /// dicta cannot read the credentials file.
    #[error("judge `{judge}`: the Google credentials {from}: the file {source}")]
    File {
        /// The name of the judge.
        judge: String,
        /// The file, and the setting that names it.
        from: String,
        /// The problem.
        source: TextFileError,
    },
    /// dicta cannot use the content of the credentials file.
    #[error("judge `{judge}`: {source}")]
    Content {
        /// The name of the judge.
        judge: String,
        /// The problem.
        source: GoogleCredentialsError,
    },
    /// Neither the judge nor its credentials name a project.
    #[error(
        "judge `{judge}`: Vertex AI needs a project: set `project`, or {}",
        PROJECT_VARIABLES.join(" or ")
    )]
    NoProject {
        /// The name of the judge.
        judge: String,
    },
    /// The judge has no location.
    #[error("judge `{judge}`: {}", explain_missing_location())]
    NoLocation {
        /// The name of the judge.
        judge: String,
    },
}

/// The project that the environment names.
pub(super) fn find_project(env: &Env) -> Option<String> {
    PROJECT_VARIABLES
        .iter()
        .find_map(|name| env.get(name))
        .map(str::to_owned)
}

/// Returns the location that the environment names.
pub(super) fn find_location(env: &Env) -> Option<String> {
    LOCATION_VARIABLES
        .iter()
        .find_map(|name| env.get(name))
        .map(str::to_owned)
}

/// Returns the Google credentials of a judge; `None` if the judge uses another kind of key. Reads files and makes no
/// request. A missing metadata server shows only when the judge requests a token.
pub fn load_google_credentials(
    judge: &JudgeConfig,
    env: &Env,
) -> Result<Option<GoogleCredentials>, CredentialsLoadError> {
    let ApiKeySource::Google(named) = &judge.key else {
        return Ok(None);
    };
    let name = || judge.name.clone();
    // The order is that of Google's libraries: a named file, gcloud's file, the metadata server.
    let found = match find_credentials_file(named.as_deref(), env) {
        None => GoogleCredentials::from_metadata_server(env.get(variables::GCE_METADATA_HOST)),
        Some((path, from)) => {
            let from = format!("{} ({from})", path.display());
            match files::read_text(&path, MAX_CREDENTIALS_BYTES) {
                Ok(text) => GoogleCredentials::parse(&text, &from).map_err(|source| {
                    CredentialsLoadError::Content {
                        judge: name(),
                        source,
                    }
                })?,
                Err(source) => {
                    return Err(CredentialsLoadError::File {
                        judge: name(),
                        from,
                        source,
                    });
                }
            }
        }
    };
    // Google's libraries also take the project to charge from this variable.
    let credentials = found.with_quota_project(env.get(variables::GOOGLE_CLOUD_QUOTA_PROJECT));
    // A service account file names its project, so this check needs the credentials.
    if judge.project.is_none() && credentials.project().is_none() {
        return Err(CredentialsLoadError::NoProject { judge: name() });
    }
    if judge.location.is_none() {
        return Err(CredentialsLoadError::NoLocation { judge: name() });
    }
    Ok(Some(credentials))
}

/// Returns the error for a judge without a location.
pub(super) fn explain_missing_location() -> String {
    format!(
        "Vertex AI needs a location: set `location` (a region, `global`, `us` or `eu`), or {}",
        LOCATION_VARIABLES.join(" or ")
    )
}

/// The source of a judge's Google credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialsSource {
    /// A short description of the source.
    pub description: String,
    /// The warning about the file, if other users can read it.
    pub warning: Option<String>,
}

/// Returns the source of a judge's Google credentials; `None` if the judge uses another kind of key.
pub fn find_google_credentials_source(judge: &JudgeConfig, env: &Env) -> Option<CredentialsSource> {
    let ApiKeySource::Google(named) = &judge.key else {
        return None;
    };
    Some(match find_credentials_file(named.as_deref(), env) {
        None => CredentialsSource {
            description: "the metadata server, if this machine has one".to_owned(),
            warning: None,
        },
        Some((path, from)) => CredentialsSource {
            description: format!("{} ({from})", path.display()),
            warning: explain_open_permissions(&path),
        },
    })
}

/// Returns the credentials file and the source that names it. A file that is named counts even if it does not exist;
/// gcloud's own file counts only if it exists.
pub(super) fn find_credentials_file(
    named: Option<&Path>,
    env: &Env,
) -> Option<(PathBuf, &'static str)> {
    const VARIABLE: &str = variables::GOOGLE_APPLICATION_CREDENTIALS;
    if let Some(path) = named {
        return Some((path.to_owned(), "credentials_file"));
    }
    // Google's libraries fail if this variable names a missing file, so dicta does not search on either.
    if let Some(path) = env.get(VARIABLE) {
        return Some((PathBuf::from(path), VARIABLE));
    }
    let folder = match (
        env.get(variables::CLOUDSDK_CONFIG),
        env.get(variables::HOME),
    ) {
        // gcloud itself uses this variable to move its folder.
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(".config/gcloud"),
        (None, None) => return None,
    };
    let path = folder.join("application_default_credentials.json");
    path.exists().then_some((path, "gcloud's"))
}

/// Returns a warning if other users can read the file. It is not an error, because some tools write credentials with
/// open permissions.
pub(super) fn explain_open_permissions(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!(
            "the Google credentials {} can be read by others (mode {mode:03o}): chmod 600 them",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn judge(file: Option<PathBuf>) -> JudgeConfig {
        JudgeConfig {
            key: ApiKeySource::Google(file),
            location: Some("global".to_owned()),
            ..JudgeConfig::new("v", ProviderKind::Vertex)
        }
    }

    fn env(pairs: &[(&str, &str)]) -> Env {
        let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        Env(pairs.iter().map(own).collect())
    }

    /// Writes a user's credentials file. The client's name distinguishes the files.
    fn write(path: &Path, project: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let text = format!(
            r#"{{"type":"authorized_user","client_id":"c","client_secret":"client-secret","refresh_token":"refresh-token","project_id":"{project}","quota_project_id":"q"}}"#
        );
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("mode");
    }

    fn found(judge: &JudgeConfig, env: &Env) -> String {
        match load_google_credentials(judge, env) {
            Ok(credentials) => credentials
                .and_then(|c| c.project().map(str::to_owned))
                .unwrap_or_default(),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn credentials_are_found_where_googles_libraries_find_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        let adc = "application_default_credentials.json";
        write(&at("named.json"), "of-key");
        write(&at("variable.json"), "of-variable");
        write(&at("sdk").join(adc), "of-sdk");
        write(&at("home/.config/gcloud").join(adc), "of-home");
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let (variable, sdk, home) = (text(at("variable.json")), text(at("sdk")), text(at("home")));
        let all = [
            ("GOOGLE_APPLICATION_CREDENTIALS", variable.as_str()),
            ("CLOUDSDK_CONFIG", sdk.as_str()),
            ("HOME", home.as_str()),
        ];
        let named = judge(Some(at("named.json")));
        assert_eq!(found(&named, &env(&all)), "of-key");
        assert_eq!(found(&judge(None), &env(&all)), "of-variable");
        assert_eq!(found(&judge(None), &env(&all[1..])), "of-sdk");
        assert_eq!(found(&judge(None), &env(&all[2..])), "of-home");
        let mut placed = judge(None);
        placed.project = Some("p".to_owned());
        let machine = load_google_credentials(&placed, &env(&[("GCE_METADATA_HOST", "h:1")]));
        assert!(format!("{machine:?}").contains("the metadata server h:1"));
        let none =
            load_google_credentials(&JudgeConfig::new("g", ProviderKind::Gemini), &env(&all));
        assert!(matches!(none, Ok(None)));
        let billed =
            load_google_credentials(&named, &env(&[("GOOGLE_CLOUD_QUOTA_PROJECT", "other")]));
        assert_eq!(
            billed.expect("good").expect("some").quota_project(),
            Some("other")
        );
    }

    #[test]
    fn missing_google_settings_are_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key.json");
        let gone = found(&judge(Some(path.clone())), &Env::default());
        assert!(
            gone.ends_with("(credentials_file): the file does not exist"),
            "{gone}"
        );
        assert_eq!(
            found(&judge(None), &Env::default()),
            "judge `v`: Vertex AI needs a project: set `project`, or GOOGLE_CLOUD_PROJECT or EVAL_GCP_PROJECT_ID"
        );
        write(&path, "p");
        let mut nowhere = judge(Some(path.clone()));
        nowhere.location = None;
        assert!(found(&nowhere, &Env::default()).contains("needs a location"));
        assert_eq!(
            find_google_credentials_source(&judge(Some(path.clone())), &Env::default())
                .and_then(|source| source.warning),
            None
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
        let open = find_google_credentials_source(&judge(Some(path)), &Env::default())
            .and_then(|source| source.warning);
        assert!(open.is_some_and(|why| why.ends_with("(mode 644): chmod 600 them")));
    }
}
