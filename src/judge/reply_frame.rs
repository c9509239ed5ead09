//! The text of a reply that must be one object, without what models put around it.

/// Returns the reply without one leading block of thoughts and without its only code fence.
pub fn strip_reply_frame(reply: &str) -> &str {
    let mut text = reply.trim();
    if let Some(rest) = text.strip_prefix("<think>")
        && let Some((_, after)) = rest.split_once("</think>")
    {
        text = after.trim();
    }
    let Some(rest) = text.strip_prefix("```") else {
        return text;
    };
    let body = rest.split_once('\n').map_or("", |(_, body)| body);
    match body.trim_end().strip_suffix("```") {
        Some(inside) if !inside.contains("```") => inside.trim(),
        _ => text,
    }
}
