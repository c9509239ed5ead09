//! Writes and checks the page of the goals. Doesn't measure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::{Campaign, Goal, Measured, goals};

const PAGE: &str = "docs/explanation/reliability.md";
const BEGIN: &str = "<!-- campaign: cargo test --release --locked --features full --test campaign -- --full --write -->";
const END: &str = "<!-- end -->";

/// Replaces the rows of the measured goals, and keeps the figures of the others.
pub(crate) fn write(campaign: &Campaign, results: &[(&Goal, Measured)]) {
    let path = campaign.repository.join(PAGE);
    let old = fs::read_to_string(&path).expect("the page of the goals");
    let mut figures = read_rows(&old);
    for (goal, measured) in results {
        let row = match measured {
            Measured::Reached(figure) => ("yes", figure),
            Measured::Partly(figure) => ("in part", figure),
            Measured::Missed(figure) => ("**no**", figure),
            // A machine that can't measure a goal doesn't delete a figure that another one measured.
            Measured::Skipped(_) if figures.contains_key(goal.id) => continue,
            Measured::Skipped(reason) => ("not measured", reason),
        };
        figures.insert(
            goal.id.to_owned(),
            format!("{} | {} |", row.0, row.1.replace('|', "\\|")),
        );
    }
    let mut table =
        String::from("| goal | what dicta promises | reached | figure |\n|---|---|---|---|\n");
    for goal in goals::all() {
        let figure = figures
            .get(goal.id)
            .map_or("not measured | – |", String::as_str);
        writeln!(table, "| {} | {} | {figure}", goal.id, goal.promise).expect("a string");
    }
    let (before, rest) = old
        .split_once(BEGIN)
        .expect("the page has the generated block");
    let (_, after) = rest.split_once(END).expect("the generated block ends");
    fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}")).expect("the page is written");
}

/// An error unless the page has one row for every goal with today's promise, in the order of the table.
pub(crate) fn check(campaign: &Campaign) -> Result<(), String> {
    let page = fs::read_to_string(campaign.repository.join(PAGE))
        .map_err(|error| format!("{PAGE}: {error}"))?;
    // Further tables of the page are not about goals.
    let block = page
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END));
    let listed: Vec<String> = block
        .map_or("", |(block, _)| block)
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| goal "))
        .map(|line| line.split(" | ").take(2).collect::<Vec<_>>().join(" | "))
        .collect();
    let expected: Vec<String> = goals::all()
        .map(|goal| format!("| {} | {}", goal.id, goal.promise))
        .collect();
    if listed == expected {
        Ok(())
    } else {
        Err(format!(
            "{PAGE} doesn't list today's goals; run the campaign with `-- --write NONE` to list them"
        ))
    }
}

/// The last two columns of each row, by goal.
fn read_rows(page: &str) -> BTreeMap<String, String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|line| {
            let (id, rest) = line.split_once(" | ")?;
            let (_, figure) = rest.split_once(" | ")?;
            Some((id.to_owned(), figure.to_owned()))
        })
        .filter(|(id, _)| id != "goal")
        .collect()
}
