//! The report of a review as one HTML page.

use std::io::{self, Write};

use super::report::{HEADINGS, ReportNote, ReviewReport, columns, describe_together};
use crate::report::html::{HtmlWriter, open_main, open_page};

/// Writes the page.
pub fn render_html(out: &mut dyn Write, report: &ReviewReport) -> io::Result<()> {
    let mut html = HtmlWriter::new(out);
    let title = format!("Review of {}", report.name);
    open_page(&mut html, &title)?;
    open_main(&mut html, &title, &[])?;
    html.open("ul", &[])?;
    for fact in report.facts() {
        html.element("li", &[], &fact)?;
    }
    html.close()?;
    html.element("h2", &[], "Modes")?;
    if report.modes.is_empty() {
        html.element("p", &[], "No mode yet: m in dicta review groups notes.")?;
    } else {
        write_table(&mut html, report)?;
        write_definitions(&mut html, report)?;
    }
    if !report.disagreements.is_empty() {
        html.element("h2", &[], "Disagreements")?;
        html.open("ul", &[])?;
        for one in &report.disagreements {
            let text = format!(
                "{} in {}: yes {}; no {}",
                one.mode,
                one.transcript,
                one.yes.join(", "),
                one.no.join(", ")
            );
            html.element("li", &[], &text)?;
        }
        html.close()?;
    }
    html.element("h2", &[], "Notes")?;
    html.open("ul", &[])?;
    for note in &report.notes {
        html.open("li", &[])?;
        write_note(&mut html, note)?;
        html.close()?;
    }
    html.close()?;
    if !report.messages.is_empty() {
        html.element("h2", &[], "Messages")?;
        for message in &report.messages {
            let place = format!(
                "{}, message {} ({})",
                message.transcript, message.message, message.role
            );
            html.element("h3", &[("id", &message.anchor)], &place)?;
            html.element("pre", &[], &message.text)?;
        }
    }
    html.finish()
}

fn write_table(html: &mut HtmlWriter<'_>, report: &ReviewReport) -> io::Result<()> {
    html.open("table", &[])?;
    html.open("tr", &[])?;
    for heading in HEADINGS {
        html.element("th", &[], heading)?;
    }
    html.close()?;
    for (mode, counts) in &report.modes {
        html.open("tr", &[])?;
        html.element("td", &[], &mode.name)?;
        for column in columns(counts) {
            html.element("td", &[], &column)?;
        }
        html.element("td", &[], &describe_together(report, counts))?;
        html.close()?;
    }
    html.close()
}

fn write_definitions(html: &mut HtmlWriter<'_>, report: &ReviewReport) -> io::Result<()> {
    html.element("h2", &[], "Definitions")?;
    for (mode, counts) in &report.modes {
        html.element("h3", &[], &format!("{} ({})", mode.name, mode.id))?;
        let definition = if mode.definition.is_empty() {
            "no definition yet"
        } else {
            &mode.definition
        };
        html.element("p", &[], definition)?;
        html.open("ul", &[])?;
        for former in &mode.formerly {
            let text = format!("contains the former mode {} ({})", former.name, former.id);
            html.element("li", &[], &text)?;
        }
        for example in &counts.examples {
            if let Some(note) = report.notes.iter().find(|one| one.note.id == *example) {
                html.open("li", &[])?;
                write_note(html, note)?;
                html.close()?;
            }
        }
        html.close()?;
    }
    Ok(())
}

fn write_note(html: &mut HtmlWriter<'_>, one: &ReportNote) -> io::Result<()> {
    let note = &one.note;
    html.text(note.text().unwrap_or_default())?;
    html.text(" — ")?;
    match (&one.anchor, note.message) {
        (Some(anchor), Some(message)) => {
            let place = format!("{}, message {message}", note.transcript);
            html.element("a", &[("href", &format!("#{anchor}"))], &place)?;
        }
        _ => html.text(&note.transcript)?,
    }
    if let Some(by) = &note.by {
        html.text(&format!(", {by}"))?;
    }
    if one.is_stale {
        html.text(" (the transcript changed since)")?;
    }
    Ok(())
}
