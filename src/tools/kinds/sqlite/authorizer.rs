//! The rules for statements, which SQLite checks before it compiles one.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The PRAGMAs that only read. FTS5 itself needs `data_version`.
const READ_ONLY_PRAGMAS: &[&str] = &[
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "module_list",
    "page_count",
    "schema_version",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];
/// Those PRAGMAs whose argument is a name and sets nothing.
const NAME_ARGUMENT_PRAGMAS: &[&str] = &[
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// The description of the last refused action.
#[derive(Clone, Default)]
pub(super) struct LastRefusal(Arc<Mutex<Option<String>>>);

impl LastRefusal {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn record(&self, what: String) {
        let mut refusal = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The first refusal is the cause; SQLite may ask about more actions after it.
        refusal.get_or_insert(what);
    }
}

/// Builds the authorizer of a connection.
pub(super) fn build_authorizer(
    writable: bool,
    refused: LastRefusal,
) -> impl for<'c> FnMut(AuthContext<'c>) -> Authorization + Send + 'static {
    move |cx| match explain_refusal(&cx.action, writable) {
        None => Authorization::Allow,
        Some(what) => {
            refused.record(what);
            Authorization::Deny
        }
    }
}

/// Returns the reason why an action is refused; `None` if it is allowed.
fn explain_refusal(action: &AuthAction<'_>, writable: bool) -> Option<String> {
    let never = |what: &str| Some(format!("{what} is not allowed"));
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => None,
        // Functions that load code are refused even on a writable source.
        AuthAction::Function { function_name } => match *function_name {
            name if name.eq_ignore_ascii_case("load_extension") => never("load_extension()"),
            name if name.eq_ignore_ascii_case("fts3_tokenizer") => never("fts3_tokenizer()"),
            _ => None,
        },
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            // SQLite compares names of pragmas without case.
            let is_in = |list: &[&str]| list.iter().any(|p| p.eq_ignore_ascii_case(pragma_name));
            let tells = is_in(READ_ONLY_PRAGMAS)
                && (pragma_value.is_none() || is_in(NAME_ARGUMENT_PRAGMAS));
            (!tells).then(|| format!("PRAGMA {} is not allowed", truncate_name(pragma_name)))
        }
        AuthAction::Attach { .. } => never("ATTACH (or VACUUM)"),
        AuthAction::Detach { .. } => never("DETACH"),
        // Each call has its own connection, so a transaction could not outlive the statement.
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            never("BEGIN, COMMIT, ROLLBACK or SAVEPOINT")
        }
        // An action of a newer SQLite version is refused until someone has checked it.
        AuthAction::Unknown { .. } => never("what this statement does"),
        _ if writable => None,
        AuthAction::Insert { table_name } => Some(explain_refused_read(&explain_refused_change(
            "INSERT into",
            table_name,
        ))),
        AuthAction::Update { table_name, .. } => Some(explain_refused_read(
            &explain_refused_change("UPDATE of", table_name),
        )),
        AuthAction::Delete { table_name } => Some(explain_refused_read(&explain_refused_change(
            "DELETE from",
            table_name,
        ))),
        _ => Some(explain_refused_read("a change of the schema")),
    }
}

fn explain_refused_change(what: &str, table: &str) -> String {
    // The schema is a table inside SQLite, so a change of it appears as a change of that table.
    if table.starts_with("sqlite_") {
        return "a change of the schema".to_owned();
    }
    format!("{what} {}", truncate_name(table))
}

fn explain_refused_read(what: &str) -> String {
    format!("{what} is not allowed: the source is read-only (`writable: true` opens it)")
}

/// Cuts a name that the user or the model chose.
fn truncate_name(name: &str) -> String {
    name.chars().take(40).collect()
}
