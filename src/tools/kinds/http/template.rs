//! The part of Go's text/template that paths and bodies of requests use: `{{.name}}` and `{{json .name}}`. The rest is
//! refused when the file is read.

/// A text with places for values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// As written.
    Text(String),
    /// A value, by name.
    Value { name: String, how: How },
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// A text as it is, anything else as JSON.
    Plain,
    /// As JSON.
    Json,
}

impl Template {
    /// Reads a template. The error says what of it is not understood.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut trim = false;
        loop {
            let (plain, action) = match rest.split_once("{{") {
                Some((plain, after)) => (plain, Some(after)),
                None => (rest, None),
            };
            let mut plain = if trim { plain.trim_start() } else { plain };
            let Some(after) = action else {
                push(&mut pieces, plain);
                return Ok(Self { pieces });
            };
            let (action, tail) = after
                .split_once("}}")
                .ok_or_else(|| format!("`{{{{{}` is never closed", shorten(after)))?;
            let mut inner = action;
            if let Some(stripped) = inner.strip_prefix("- ") {
                inner = stripped;
                plain = plain.trim_end();
            }
            trim = false;
            if let Some(stripped) = inner.strip_suffix(" -") {
                inner = stripped;
                trim = true;
            }
            push(&mut pieces, plain);
            pieces.push(value(inner.trim()).ok_or_else(|| {
                format!(
                    "`{{{{{}}}}}` is not supported: only {{{{.name}}}} and {{{{json .name}}}} are",
                    shorten(action)
                )
            })?);
            rest = tail;
        }
    }

    /// Its parts, in order.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Names of its values, in order, each as often as it stands there.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value { name, .. } => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text as written, without its values.
    pub(super) fn literal(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            // What a value may be, but never a dot or slash.
            Piece::Value { .. } => "x",
        });
        texts.collect()
    }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

fn value(action: &str) -> Option<Piece> {
    let words: Vec<&str> = action.split_whitespace().collect();
    let (field, how) = match words[..] {
        [field] => (field, How::Plain),
        ["json", field] | [field, "|", "json"] => (field, How::Json),
        _ => return None,
    };
    let name = field.strip_prefix('.')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| Piece::Value {
        name: name.to_owned(),
        how,
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_what_surrounds_them_stays() {
        let read = Template::parse("/a/{{.id}}/z{{ .id | json }}").unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["id", "id"]);
    }

    #[test]
    fn trimming_takes_the_blanks_on_its_side() {
        let read = Template::parse("a {{- .x }} b {{ .y -}} c").unwrap();
        assert_eq!(read.literal(), "ax b xc");
        assert_eq!(Template::parse("plain").unwrap().literal(), "plain");
    }

    #[test]
    fn everything_else_of_go_is_refused_by_name() {
        for bad in [
            "{{if .x}}a{{end}}",
            "{{range .x}}",
            "{{.x.y}}",
            "{{printf \"%s\" .x}}",
            "{{}}",
            "{{.}}",
            "{{ .x",
            "{{$x}}",
            "{{/* c */}}",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        let why = Template::parse("{{if .x}}").unwrap_err();
        assert!(why.starts_with("`{{if .x}}` is not supported"), "{why}");
    }
}
