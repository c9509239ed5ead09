//! The environment variables that dicta reads.
//!
//! Responsible for their names and meanings. Does not read them; [`super::Env`] does. Variables with a name that the user
//! chooses (`api_key_env`, `${NAME}`), and those of providers ([`crate::model::ProviderKind`]), are not in this list.

/// The data directory.
pub const DICTA_DATA_DIR: &str = "DICTA_DATA_DIR";
/// The XDG data directory.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// The XDG configuration directory.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The home directory.
pub const HOME: &str = "HOME";
/// Programs on the command line.
pub const PATH: &str = "PATH";
/// The first editor.
pub const VISUAL: &str = "VISUAL";
/// The second editor.
pub const EDITOR: &str = "EDITOR";
/// Switches colors off.
pub const NO_COLOR: &str = "NO_COLOR";
/// The colors of the terminal.
pub const COLORTERM: &str = "COLORTERM";
/// The type of the terminal.
pub const TERM: &str = "TERM";
/// The name of the user.
pub const USER: &str = "USER";
/// The name of the user, on systems without [`USER`].
pub const LOGNAME: &str = "LOGNAME";
/// git's configuration of the user.
pub const GIT_CONFIG_GLOBAL: &str = "GIT_CONFIG_GLOBAL";
/// A key of the Gemini API.
pub const GOOGLE_API_KEY: &str = "GOOGLE_API_KEY";
/// A key of `OpenRouter`.
pub const OPENROUTER_API_KEY: &str = "OPENROUTER_API_KEY";
/// A credentials file.
pub const GOOGLE_APPLICATION_CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// gcloud's folder.
pub const CLOUDSDK_CONFIG: &str = "CLOUDSDK_CONFIG";
/// The metadata server of Google's cloud.
pub const GCE_METADATA_HOST: &str = "GCE_METADATA_HOST";
/// A project.
pub const GOOGLE_CLOUD_PROJECT: &str = "GOOGLE_CLOUD_PROJECT";
/// The project that pays.
pub const GOOGLE_CLOUD_QUOTA_PROJECT: &str = "GOOGLE_CLOUD_QUOTA_PROJECT";
/// A location.
pub const GOOGLE_CLOUD_LOCATION: &str = "GOOGLE_CLOUD_LOCATION";
/// A region.
pub const GOOGLE_CLOUD_REGION: &str = "GOOGLE_CLOUD_REGION";
/// evalbench's project.
pub const EVAL_GCP_PROJECT_ID: &str = "EVAL_GCP_PROJECT_ID";
/// evalbench's region.
pub const EVAL_GCP_PROJECT_REGION: &str = "EVAL_GCP_PROJECT_REGION";
/// Set by the runner of a GitHub workflow.
pub const GITHUB_ACTIONS: &str = "GITHUB_ACTIONS";
/// The root of the repository in a GitHub workflow.
pub const GITHUB_WORKSPACE: &str = "GITHUB_WORKSPACE";
/// The folder of temporary files.
pub const TMPDIR: &str = "TMPDIR";
/// Rust's switch for backtraces.
pub const RUST_BACKTRACE: &str = "RUST_BACKTRACE";

/// Every variable with its meaning, in the order of the documentation.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        DICTA_DATA_DIR,
        "The data directory: runs, the demo, the installation's secret and the trusted workspaces.",
    ),
    (
        XDG_DATA_HOME,
        "Without `DICTA_DATA_DIR`, the data directory is `dicta` in this folder; an absolute path. Without both, it is the \
         system's folder: `~/.local/share/dicta` on Linux, `~/Library/Application Support/dicta` on macOS.",
    ),
    (
        HOME,
        "The folder of `~/` in paths, of git's configuration and of gcloud's.",
    ),
    (
        VISUAL,
        "The editor that `e` opens, with arguments if necessary.",
    ),
    (EDITOR, "The editor if `VISUAL` is not set."),
    (
        PATH,
        "The folders of an installed editor if neither is set, and of scripts and MCP servers.",
    ),
    (
        NO_COLOR,
        "With any value, no colors on the command line and in the workbench.",
    ),
    (
        COLORTERM,
        "`truecolor` or `24bit`: the terminal shows all colors.",
    ),
    (
        TERM,
        "The type of the terminal, which limits colors. `dumb`: no colors, and the workbench does not open.",
    ),
    (
        GITHUB_ACTIONS,
        "With any value, text for people contains no command that the log of a GitHub workflow executes.",
    ),
    (
        GITHUB_WORKSPACE,
        "The root of the repository, for the paths of `--format github`.",
    ),
    (USER, "The author of new labels, if git has no `user.name`."),
    (LOGNAME, "The author if `USER` is not set."),
    (
        GIT_CONFIG_GLOBAL,
        "The file with git's `user.name`, in place of the usual files.",
    ),
    (
        XDG_CONFIG_HOME,
        "The folder of git's second configuration file.",
    ),
    (
        GOOGLE_API_KEY,
        "A key of the Gemini API, for second opinions (`J`) alone.",
    ),
    (
        OPENROUTER_API_KEY,
        "With a value, `J` explains how to add a judge of OpenRouter.",
    ),
    (
        GOOGLE_APPLICATION_CREDENTIALS,
        "The credentials file of judges on Vertex AI.",
    ),
    (
        CLOUDSDK_CONFIG,
        "The folder with the credentials of gcloud.",
    ),
    (
        GCE_METADATA_HOST,
        "The metadata server that gives credentials on machines of Google's cloud.",
    ),
    (
        GOOGLE_CLOUD_PROJECT,
        "The project of judges on Vertex AI without `project`.",
    ),
    (
        EVAL_GCP_PROJECT_ID,
        "The project if `GOOGLE_CLOUD_PROJECT` is not set, as in evalbench.",
    ),
    (
        GOOGLE_CLOUD_QUOTA_PROJECT,
        "The project that Vertex AI bills.",
    ),
    (
        GOOGLE_CLOUD_LOCATION,
        "The location of judges on Vertex AI without `location`.",
    ),
    (
        GOOGLE_CLOUD_REGION,
        "The location if `GOOGLE_CLOUD_LOCATION` is not set.",
    ),
    (
        EVAL_GCP_PROJECT_REGION,
        "The location if neither is set, as in evalbench.",
    ),
    (
        TMPDIR,
        "The folder of temporary files, such as the rows of a Parquet file; `/tmp` without it.",
    ),
    (
        RUST_BACKTRACE,
        "With a value, a defect of dicta prints its backtrace.",
    ),
];
