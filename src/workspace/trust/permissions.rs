//! The things that a workspace may do on this machine: run scripts and programs, and send variables to servers.
//!
//! Responsible for finding them in a loaded workspace and for describing them. Does not decide about them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::model_config::list_prompt_variables;
use super::super::scripts::SCRIPT_TYPE;
use super::super::{Env, Workspace};
use crate::model::{ApiKeySource, Digest, JudgeConfig};
use crate::provider::{find_foreign_origin, find_origin};
use crate::tools::toolbox::Toolbox;

/// The permission to send a secret to an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendPermission {
    /// The environment variable, or a description of another secret: `the key file /home/ann/key`.
    pub secret: String,
    /// The address, such as `http://127.0.0.1:8080`.
    pub address: String,
}

impl fmt::Display for SendPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "send {} to {}", self.secret, self.address)
    }
}

/// A thing that a workspace may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Evals of type `script` run their programs.
    Scripts,
    /// A program runs.
    Command {
        /// The eval or the tool source that runs it.
        owner: String,
        /// The command line, for people.
        command: String,
        /// The digest of everything that determines the command.
        digest: Digest,
    },
    /// A secret goes to an address.
    Send(SendPermission),
    /// A secret goes to the own address of its provider. Runs need no consent for it; a changed workspace does.
    SendToProvider {
        /// The secret, as in [`SendPermission`].
        secret: String,
        /// The provider.
        provider: &'static str,
    },
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scripts => f.write_str("run the programs of script evals (allow_scripts: true)"),
            Self::Command { owner, command, .. } => write!(f, "run, for {owner}: {command}"),
            Self::Send(send) => send.fmt(f),
            Self::SendToProvider { secret, provider } => {
                write!(f, "send {secret} to the address of the provider {provider}")
            }
        }
    }
}

impl Permission {
    /// Returns true if one of these permissions includes this one.
    fn is_covered_by(&self, allowed: &BTreeSet<Self>) -> bool {
        match self {
            // The same command may run for another eval.
            Self::Command { digest, .. } => allowed.iter().any(
                |other| matches!(other, Self::Command { digest: known, .. } if known == digest),
            ),
            other => allowed.contains(other),
        }
    }
}

/// Returns the permissions that none of the allowed ones includes, in the order for people.
pub fn find_new_permissions(
    wanted: &BTreeSet<Permission>,
    allowed: &BTreeSet<Permission>,
) -> Vec<Permission> {
    let new = wanted.iter().filter(|one| !one.is_covered_by(allowed));
    new.cloned().collect()
}

/// Returns the secret of a judge; `None` if it sends none.
fn judge_secret(judge: &JudgeConfig) -> Option<String> {
    if !judge.provider.is_model() {
        return None;
    }
    match &judge.key {
        ApiKeySource::None => None,
        ApiKeySource::Env(name) | ApiKeySource::EnvIfSet(name) => Some(name.clone()),
        ApiKeySource::File(path) => Some(format!("the key file {}", resolve_links(path).display())),
        ApiKeySource::Google(None) => Some("Google credentials".to_owned()),
        ApiKeySource::Google(Some(path)) => Some(format!(
            "the Google credentials {}",
            resolve_links(path).display()
        )),
    }
}

/// Returns the path of the file behind the links of a path.
///
/// Security: a link in the workspace may lead to another secret of the user, and a later version of the workspace may
/// change its target.
fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the secret that a judge sends to an address other than its provider's own.
fn judge_send(judge: &JudgeConfig) -> Option<SendPermission> {
    Some(SendPermission {
        secret: judge_secret(judge)?,
        address: find_foreign_origin(judge)?,
    })
}

/// Returns true if a judge's variable is set; other secrets always count as set.
fn has_secret(judge: &JudgeConfig, env: &Env) -> bool {
    match &judge.key {
        ApiKeySource::Env(name) | ApiKeySource::EnvIfSet(name) => env.get(name).is_some(),
        _ => true,
    }
}

/// Returns what these judges would send to addresses other than their providers' own.
pub fn list_judge_sends<'j>(
    judges: impl IntoIterator<Item = &'j JudgeConfig>,
    env: &Env,
) -> BTreeSet<SendPermission> {
    let judges = judges.into_iter();
    judges
        .filter(|judge| has_secret(judge, env))
        .filter_map(judge_send)
        .collect()
}

/// Returns what the sources of a toolbox would send. `used` limits the sources; `None` means all.
pub fn list_tool_sends(
    toolbox: &Toolbox,
    used: Option<&BTreeSet<String>>,
) -> BTreeSet<SendPermission> {
    let sent = toolbox.sent_variables.iter();
    sent.filter(|sent| used.is_none_or(|used| used.contains(&sent.source)))
        .map(|sent| SendPermission {
            secret: sent.variable.clone(),
            address: sent.address.clone(),
        })
        .collect()
}

/// Returns the variables in what these judges read of their tools, with the judges' addresses. The address may be the
/// provider's own: the variable is not the provider's key.
pub fn list_shown_variables<'j>(
    judges: impl IntoIterator<Item = &'j JudgeConfig>,
    toolbox: &Toolbox,
) -> BTreeSet<SendPermission> {
    let mut found = BTreeSet::new();
    for judge in judges {
        let Some(address) = find_origin(judge) else {
            continue;
        };
        let used = toolbox.source_names(&judge.tools);
        let shown = toolbox.shown_variables.iter();
        found.extend(
            shown
                .filter(|shown| used.contains(&shown.source))
                .map(|shown| SendPermission {
                    secret: shown.variable.clone(),
                    address: address.clone(),
                }),
        );
    }
    found
}

/// Returns the variables in the `base_prompt` of these judges, with the judges' addresses.
pub fn list_prompt_sends<'j>(
    judges: impl IntoIterator<Item = &'j JudgeConfig>,
    workspace: &Workspace,
    env: &Env,
) -> BTreeSet<SendPermission> {
    let variables = list_prompt_variables(workspace, env);
    let mut found = BTreeSet::new();
    for judge in judges {
        let Some(address) = find_origin(judge) else {
            continue;
        };
        let of_judge = variables.iter().filter(|(name, _)| *name == judge.name);
        found.extend(of_judge.map(|(_, variable)| SendPermission {
            secret: variable.clone(),
            address: address.clone(),
        }));
    }
    found
}

/// Returns what a whole workspace could send to addresses other than its providers' own, also for variables that are
/// not set now.
pub fn list_workspace_sends(workspace: &Workspace, env: &Env) -> BTreeSet<SendPermission> {
    let judges = workspace.judges.values();
    let mut sends: BTreeSet<SendPermission> = judges.filter_map(judge_send).collect();
    sends.extend(list_variable_sends(workspace, env));
    sends
}

/// Returns the variables that the tools and prompts of a workspace could send, with their addresses.
fn list_variable_sends(workspace: &Workspace, env: &Env) -> BTreeSet<SendPermission> {
    let mut sends = list_tool_sends(&workspace.tools, None);
    sends.extend(list_shown_variables(
        workspace.judges.values(),
        &workspace.tools,
    ));
    sends.extend(list_prompt_sends(workspace.judges.values(), workspace, env));
    sends
}

/// Returns everything that a workspace may do, for the comparison of two versions of it.
pub(in crate::workspace) fn list_permissions(
    workspace: &Workspace,
    env: &Env,
) -> BTreeSet<Permission> {
    let mut found = BTreeSet::new();
    if workspace.allow_scripts {
        found.insert(Permission::Scripts);
        found.extend(list_script_commands(workspace));
    }
    for program in &workspace.tools.programs {
        found.insert(Permission::Command {
            owner: "a tool source".to_owned(),
            command: program.command.clone(),
            digest: program.digest.clone(),
        });
    }
    let judges = workspace.judges.values();
    for judge in judges.filter(|judge| has_secret(judge, env)) {
        let sent = match (judge_send(judge), judge_secret(judge)) {
            (Some(send), _) => Permission::Send(send),
            (None, Some(secret)) => Permission::SendToProvider {
                secret,
                provider: judge.provider.as_str(),
            },
            (None, None) => continue,
        };
        found.insert(sent);
    }
    let sends = list_variable_sends(workspace, env);
    found.extend(sends.into_iter().map(Permission::Send));
    found
}

fn list_script_commands(workspace: &Workspace) -> Vec<Permission> {
    let mut found = Vec::new();
    for rubric in &workspace.rubrics {
        let scripts = rubric.evals.iter().filter(|e| e.eval_type == SCRIPT_TYPE);
        for eval in scripts {
            let words = eval.params.get("command").and_then(Value::as_array);
            let words: Vec<String> = words
                .into_iter()
                .flatten()
                .map(|word| word.as_str().map_or_else(|| word.to_string(), quote_word))
                .collect();
            let command = words.join(" ");
            // A program with a slash is relative to the rubric's folder.
            let folder = rubric.path.parent().unwrap_or(&rubric.path).display();
            found.push(Permission::Command {
                owner: format!("the eval {}/{}", rubric.id, eval.id),
                digest: Digest::hash_bytes(format!("{folder}\0{command}").as_bytes()),
                command,
            });
        }
    }
    found
}

/// Quotes a word of a command line if its limits would otherwise be unclear.
fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
