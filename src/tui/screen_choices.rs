//! The choices on the screen that dicta remembers for the next start: theme, splits, the order in each workspace, the end
//! of the tour, and whether a label goes on to the next decision.
//!
//! Owns the file `screen.json` in the data directory, which only the user can read. Each value is read on its own, so a
//! damaged file loses only the damaged values. A write changes only the values that the user changed, so two open
//! workbenches do not undo each other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::state::cells::RowSort;
use super::state::pane::PaneSplits;
use crate::storage::{self, FileLock};
use crate::workspace::{Env, data_dir};

/// The file in the data directory.
pub(crate) const FILE: &str = "screen.json";
/// The file that writers lock, because the file itself is replaced.
pub(crate) const LOCK: &str = "screen.lock";
/// The maximum size of the file. dicta writes much less.
const MAX_BYTES: u64 = 64 << 10;
/// The maximum number of workspaces whose order is remembered. The oldest choice is forgotten first.
const MAX_ORDERS: usize = 100;

/// The remembered choices; `None` where the user chose nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScreenChoices {
    /// The name of a bundled theme.
    pub(crate) theme: Option<String>,
    /// The order of the cells, by the folder of the workspace.
    pub(crate) orders: BTreeMap<String, RowSort>,
    pub(crate) splits: Option<PaneSplits>,
    /// True if the user finished or hid the tour.
    pub(crate) tour_ended: Option<bool>,
    /// False if a label does not go to the next decision of the queue.
    pub(crate) advance: Option<bool>,
}

impl ScreenChoices {
    /// Returns the order that the user chose in a workspace.
    pub(crate) fn order_in(&self, root: &Path) -> Option<RowSort> {
        self.orders.get(&order_key(root)).copied()
    }

    /// Remembers the order in a workspace.
    pub(crate) fn set_order(&mut self, root: &Path, order: RowSort) {
        self.orders.insert(order_key(root), order);
    }

    /// Reads the choices. A missing, unsafe or damaged file gives no choices.
    pub(crate) fn read(env: &Env) -> Self {
        let Ok(dir) = data_dir(env) else {
            return Self::default();
        };
        Self::from_values(&read_values(&dir.join(FILE)))
    }

    fn from_values(values: &Map<String, Value>) -> Self {
        let text = |key: &str| values.get(key)?.as_str();
        Self {
            theme: text("theme").map(str::to_owned),
            orders: values
                .get("orders")
                .and_then(Value::as_object)
                .map(orders_from_values)
                .unwrap_or_default(),
            splits: values
                .get("splits")
                .and_then(Value::as_object)
                .map(splits_from_values),
            tour_ended: values.get("tour_ended").and_then(Value::as_bool),
            advance: values.get("advance").and_then(Value::as_bool),
        }
    }

    /// Returns the values that differ from `before`.
    pub(crate) fn changes_since(&self, before: &Self) -> Option<Self> {
        fn changed<T: Clone + PartialEq>(now: Option<&T>, before: Option<&T>) -> Option<T> {
            now.filter(|_| now != before).cloned()
        }
        let changes = Self {
            theme: changed(self.theme.as_ref(), before.theme.as_ref()),
            orders: self
                .orders
                .iter()
                .filter(|(root, order)| before.orders.get(*root) != Some(*order))
                .map(|(root, order)| (root.clone(), *order))
                .collect(),
            splits: changed(self.splits.as_ref(), before.splits.as_ref()),
            tour_ended: changed(self.tour_ended.as_ref(), before.tour_ended.as_ref()),
            advance: changed(self.advance.as_ref(), before.advance.as_ref()),
        };
        (changes != Self::default()).then_some(changes)
    }

    /// Adds newer choices.
    pub(crate) fn merge(&mut self, newer: Self) {
        self.theme = newer.theme.or(self.theme.take());
        self.orders.extend(newer.orders);
        self.splits = newer.splits.or(self.splits);
        self.tour_ended = newer.tour_ended.or(self.tour_ended);
        self.advance = newer.advance.or(self.advance);
    }

    /// Writes these choices to the file and keeps the others in it.
    pub(crate) fn write(&self, env: &Env) -> io::Result<()> {
        let dir = data_dir(env).map_err(io::Error::other)?;
        storage::create_private_folder(&dir)?;
        // Held until the new file is in place.
        let _held = FileLock::acquire(&dir.join(LOCK))?;
        let path = dir.join(FILE);
        let mut values = read_values(&path);
        self.put_into(&mut values);
        let mut text = serde_json::to_string_pretty(&values)?;
        text.push('\n');
        // The old file may have readers other than the user, and a replaced file keeps its mode.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        storage::create_private_file(&path, text.as_bytes())
    }

    fn put_into(&self, values: &mut Map<String, Value>) {
        if let Some(theme) = &self.theme {
            values.insert("theme".to_owned(), theme.as_str().into());
        }
        if !self.orders.is_empty() {
            put_orders(&self.orders, values);
        }
        if let Some(splits) = &self.splits {
            values.insert("splits".to_owned(), splits_to_values(splits));
        }
        if let Some(ended) = self.tour_ended {
            values.insert("tour_ended".to_owned(), ended.into());
        }
        if let Some(advance) = self.advance {
            values.insert("advance".to_owned(), advance.into());
        }
    }
}

/// Returns the values of the file; empty if it is missing, unsafe or no JSON object.
fn read_values(path: &Path) -> Map<String, Value> {
    let bytes = storage::read_private_file(path, MAX_BYTES).unwrap_or_default();
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(values)) => values,
        _ => Map::new(),
    }
}

fn order_key(root: &Path) -> String {
    root.display().to_string()
}

/// Reads the orders; a damaged one is left out.
fn orders_from_values(values: &Map<String, Value>) -> BTreeMap<String, RowSort> {
    let orders = values.iter().filter_map(|(root, order)| {
        let order = RowSort::from_id(order.as_str()?)?;
        Some((root.clone(), order))
    });
    orders.collect()
}

/// Adds the orders to those in the file, the newest last.
fn put_orders(orders: &BTreeMap<String, RowSort>, values: &mut Map<String, Value>) {
    let mut known = match values.get("orders") {
        Some(Value::Object(known)) => known.clone(),
        _ => Map::new(),
    };
    for (root, order) in orders {
        known.shift_remove(root);
        known.insert(root.clone(), order.id().into());
    }
    let forgotten = known.len().saturating_sub(MAX_ORDERS);
    let kept: Map<String, Value> = known.into_iter().skip(forgotten).collect();
    values.insert("orders".to_owned(), Value::Object(kept));
}

/// Reads the splits; a damaged value keeps its default.
fn splits_from_values(values: &Map<String, Value>) -> PaneSplits {
    let mut splits = PaneSplits::default();
    for (name, part) in splits.named_parts_mut() {
        let value = values.get(name).and_then(Value::as_u64);
        // The same limits as those of a dragged border.
        let value = value.and_then(|value| u16::try_from(value).ok());
        if let Some(value) = value.filter(|value| PaneSplits::LIMITS.contains(value)) {
            *part = value;
        }
    }
    splits
}

fn splits_to_values(splits: &PaneSplits) -> Value {
    let mut splits = *splits;
    let parts = splits.named_parts_mut();
    let parts = parts.map(|(name, part)| (name.to_owned(), Value::from(*part)));
    Value::Object(parts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(dir: &Path) -> Env {
        let dir = dir.join("data").display().to_string();
        Env([("DICTA_DATA_DIR".to_owned(), dir)].into())
    }

    fn all() -> ScreenChoices {
        ScreenChoices {
            theme: Some("light".to_owned()),
            orders: BTreeMap::from([("/w".to_owned(), RowSort::Unlabelled)]),
            splits: Some(PaneSplits {
                main: 250,
                ..PaneSplits::default()
            }),
            tour_ended: Some(true),
            advance: Some(false),
        }
    }

    #[test]
    fn choices_survive_in_a_private_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let env = env(dir.path());
        assert_eq!(ScreenChoices::read(&env), ScreenChoices::default());
        all().write(&env).expect("written");
        assert_eq!(ScreenChoices::read(&env), all());
        let path = dir.path().join("data").join(FILE);
        let mode = path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        // A file that others can read is not used, and the next write makes it private.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
        assert_eq!(ScreenChoices::read(&env), ScreenChoices::default());
        all().write(&env).expect("written");
        assert_eq!(ScreenChoices::read(&env), all());
    }

    #[test]
    fn each_write_keeps_the_choices_of_other_workbenches() {
        let dir = tempfile::tempdir().expect("a folder");
        let env = env(dir.path());
        all().write(&env).expect("written");
        let mut order = ScreenChoices::default();
        order.set_order(Path::new("/other"), RowSort::FileOrder);
        order.write(&env).expect("written");
        let mut expected = all();
        expected.set_order(Path::new("/other"), RowSort::FileOrder);
        assert_eq!(ScreenChoices::read(&env), expected);
        assert_eq!(expected.changes_since(&all()), Some(order));
        assert_eq!(all().changes_since(&all()), None);
    }

    #[test]
    fn order_of_one_workspace_is_not_that_of_another() {
        let choices = all();
        assert_eq!(choices.order_in(Path::new("/w")), Some(RowSort::Unlabelled));
        assert_eq!(choices.order_in(Path::new("/other")), None);
    }

    #[test]
    fn order_of_the_oldest_choice_is_forgotten_first() {
        let dir = tempfile::tempdir().expect("a folder");
        let env = env(dir.path());
        for number in 0..=MAX_ORDERS {
            let mut choices = ScreenChoices::default();
            let root = format!("/{number}");
            choices.set_order(Path::new(&root), RowSort::FileOrder);
            choices.write(&env).expect("written");
        }
        let read = ScreenChoices::read(&env);
        assert_eq!(read.orders.len(), MAX_ORDERS);
        assert_eq!(read.order_in(Path::new("/0")), None);
        assert_eq!(read.order_in(Path::new("/1")), Some(RowSort::FileOrder));
    }

    #[test]
    fn damaged_file_loses_only_the_damaged_values() {
        let dir = tempfile::tempdir().expect("a folder");
        let env = env(dir.path());
        all().write(&env).expect("written");
        let path = dir.path().join("data").join(FILE);
        for (text, expected) in [
            ("", ScreenChoices::default()),
            ("[1]", ScreenChoices::default()),
            ("{\"theme\": \"light\"", ScreenChoices::default()),
            (
                r#"{"theme": 7, "orders": {"/w": "sideways"}, "splits": {"main": 5000, "changes": 700}, "tour_ended": true, "advance": "no", "later": 1}"#,
                ScreenChoices {
                    splits: Some(PaneSplits {
                        changes: 700,
                        ..PaneSplits::default()
                    }),
                    tour_ended: Some(true),
                    ..ScreenChoices::default()
                },
            ),
        ] {
            fs::write(&path, text).expect("written");
            assert_eq!(ScreenChoices::read(&env), expected, "{text}");
        }
        // A value of a later version stays.
        all().write(&env).expect("written");
        let text = fs::read_to_string(&path).expect("there");
        assert!(text.contains("\"later\": 1"), "{text}");
    }
}
