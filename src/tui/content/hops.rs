//! The requests of a fetch: URL, address, decision of the address guard, result.

use super::styled_line;
use crate::model::Hop;
use crate::net::find_closed_range;
use crate::theme::{Glyphs, Role};
use crate::tui::widget::flow::TextBlock;

/// Returns one line per request, numbered if there are several. Control characters in addresses appear as marks.
pub(super) fn hop_blocks<'a>(hops: &'a [Hop], glyphs: &Glyphs) -> Vec<TextBlock<'a>> {
    let several = hops.len() > 1;
    let line = |(hop, number): (&'a Hop, usize)| {
        let line = hop_block(hop, glyphs);
        if several {
            let lead = format!("{number} ");
            // The indent is the width of the number and a blank.
            let indent = if number < 10 { 2 } else { 3 };
            return TextBlock {
                indent,
                lead: lead.into(),
                ..line
            };
        }
        line
    };
    hops.iter().zip(1..).map(line).collect()
}

fn hop_block<'a>(hop: &'a Hop, glyphs: &Glyphs) -> TextBlock<'a> {
    let address = hop.address.map(|address| format!(" at {address}"));
    let (mark, verdict, role) = match &hop.refused {
        Some(why) => (
            glyphs.fail,
            format!(" refused by the address guard: {why}"),
            Role::Error,
        ),
        None => (
            glyphs.pass,
            " allowed by the address guard".to_owned(),
            Role::Pass,
        ),
    };
    let (end, ended) = match (hop.status, &hop.refused) {
        (Some(status), _) if status >= 400 => (format!(" · {status}"), Role::Error),
        (Some(status), _) => (format!(" · {status}"), Role::Pass),
        // The address guard refused the request, so it has no status.
        (None, Some(_)) => (String::new(), Role::Muted),
        (None, None) => (" · no reply".to_owned(), Role::Error),
    };
    let exemption = describe_exemption(hop);
    styled_line([
        (hop.url.as_str(), Role::CodeLink),
        (address.as_deref().unwrap_or_default(), Role::Muted),
        (format!(" · {mark}").as_str(), role),
        (
            verdict.as_str(),
            if hop.refused.is_some() {
                role
            } else {
                Role::Muted
            },
        ),
        (end.as_str(), ended),
        (exemption.as_str(), Role::Badge),
    ])
}

/// Returns the settings that allowed a connection, such as `allow_hosts`, or an empty text.
fn describe_exemption(hop: &Hop) -> String {
    // A refused request used no exemption.
    if hop.refused.is_some() {
        return String::new();
    }
    let closed = hop.address.and_then(find_closed_range);
    // A connection without TLS needs a setting.
    let plain = hop
        .url
        .starts_with("http:")
        .then(|| "not encrypted".to_owned());
    let all: Vec<String> = closed.into_iter().chain(plain).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!(" [allowed by settings: {}]", all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_hops(hops: &[Hop]) -> Vec<String> {
        let blocks = hop_blocks(hops, &Glyphs::UNICODE);
        let text = |block: &TextBlock<'_>| format!("{}{}", block.lead, block.text);
        blocks.iter().map(text).collect()
    }

    fn hop(url: &str, address: Option<[u8; 4]>, status: Option<u16>, refused: Option<&str>) -> Hop {
        Hop {
            url: url.to_owned(),
            address: address.map(Into::into),
            status,
            refused: refused.map(str::to_owned),
        }
    }

    #[test]
    fn hop_line_shows_url_guard_decision_and_status() {
        let public = Some([93, 184, 216, 34]);
        assert_eq!(
            render_hops(&[
                hop("https://a.example/", public, Some(302), None),
                hop(
                    "https://10.0.0.1/",
                    None,
                    None,
                    Some("not a public address")
                ),
            ]),
            [
                "1 https://a.example/ at 93.184.216.34 · ✓ allowed by the address guard · 302",
                "2 https://10.0.0.1/ · ✗ refused by the address guard: not a public address",
            ]
        );
        assert_eq!(
            render_hops(&[hop("https://a.example/", public, None, None)]),
            ["https://a.example/ at 93.184.216.34 · ✓ allowed by the address guard · no reply"]
        );
    }

    #[test]
    fn exempted_hop_has_badge_and_refused_hop_has_none() {
        let line = |hop| render_hops(&[hop]).remove(0);
        let local = hop(
            "http://127.0.0.1:8080/x",
            Some([127, 0, 0, 1]),
            Some(200),
            None,
        );
        let badge = " [allowed by settings: loopback (127.0.0.0/8), not encrypted]";
        assert!(line(local.clone()).ends_with(badge), "{}", line(local));
        let refused = hop(
            "http://a.example/",
            Some([10, 0, 0, 1]),
            None,
            Some("private"),
        );
        assert!(!line(refused).contains("setting"));
    }
}
