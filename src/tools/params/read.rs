//! Reads a tool's parameters strictly: every field, and every rule between them, before a model sees any.

use serde_json::Value;

use super::escape::Escape;
use super::pattern::Pattern;
use super::rules::{Entry, Rules, shown};
use super::shape::{Limit, Scalar, Shape, Taking, Type, is_number, whole};
use super::{ClaimOf, Param, Params, ParamsCx, between, lint};
use crate::diag::find_nearest;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::tools::json::Node;

pub(super) const TEMPLATE: &str = "templateParameters";

/// What we know of the toolbox and do not do.
const UNSUPPORTED: [(&str, &str); 4] = [
    ("embeddedBy", "there are no embedding models here"),
    ("embeddingModel", "there are no embedding models here"),
    (
        "secure",
        "nothing but a claim fills a hidden parameter here",
    ),
    ("scopesRequired", "scopes are not checked here"),
];

const TYPES: [&str; 6] = ["string", "integer", "float", "boolean", "array", "map"];

/// Words of others for types.
const ALIASES: [(&str, &str); 9] = [
    ("text", "string"),
    ("str", "string"),
    ("int", "integer"),
    ("number", "float"),
    ("double", "float"),
    ("bool", "boolean"),
    ("list", "array"),
    ("object", "map"),
    ("dict", "map"),
];

/// Reads the parameters under each key of a tool, in this order.
pub(super) fn params(
    fields: &mut MappingDecoder<'_>,
    groups: &[&'static str],
    cx: &ParamsCx<'_>,
) -> Params {
    let mut read: Vec<(Param, String)> = Vec::new();
    for group in groups {
        for (at, mut entry) in fields
            .mappings(group)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            let Some(param) = param(&mut entry, group, cx) else {
                continue;
            };
            entry.finish();
            read.push((param, format!("{group}/{at}")));
        }
    }
    let unchecked = fields.texts("allowUncheckedTemplates").unwrap_or_default();
    let unchecked: Vec<String> = unchecked.into_iter().map(|(name, _)| name).collect();
    between::refuse_duplicates(fields, &read);
    between::check_copies(fields, &read);
    between::check_templates(fields, &read, &unchecked, cx);
    let (template, bound) = read
        .into_iter()
        .map(|(param, _)| param)
        .partition(|param| param.group == TEMPLATE);
    Params { bound, template }
}

fn param(fields: &mut MappingDecoder<'_>, group: &'static str, cx: &ParamsCx<'_>) -> Option<Param> {
    if !fields.is_mapping() {
        return None;
    }
    let before = fields.has("name") && fields.has("description");
    let name = fields.text("name");
    if !fields.has("name") {
        fields.error_at_mapping("missing", "parameter is missing 'name' field");
    }
    let description = fields.text_or_empty("description");
    if !fields.has("description") {
        fields.error_at_mapping("missing", "parameter is missing 'description' field");
    }
    let required = fields.boolean("required");
    let copied = fields.text("valueFromParam");
    let claims = claims(fields, cx);
    refuse_unsupported(fields);
    let default = fields.value("default").and_then(node);
    let mut shape = shape(fields, group)?;
    shape.description = description.unwrap_or_default();
    if group == TEMPLATE && matches!(shape.of, Type::Map(_)) {
        let why = "a template parameter is a string, integer, float, boolean or array";
        fields.error("type", "value", why);
    }
    if let Some(default) = &default
        && let Err(why) = shape.take(default, &mut Taking::default())
    {
        fields.error(
            "default",
            "param-default",
            format!("unable to parse the default: {why}"),
        );
    }
    if copied.is_some() && !claims.is_empty() {
        fields.error(
            "valueFromParam",
            "value",
            "a claim fills it already (authServices)",
        );
    }
    let name = name.filter(|_| before)?;
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        || name.len() > 64
    {
        let why =
            "some providers take only letters, digits, `_`, `.` and `-` in a name, 64 at most";
        fields.warning("name", "param-name", why);
    }
    Some(Param {
        name,
        group,
        shape,
        required: required.unwrap_or(true),
        default,
        claims,
        copied,
    })
}

/// A value of the file; nothing is no value.
fn node(value: &Value) -> Option<Node> {
    if value.is_null() {
        return None;
    }
    Node::parse(&value.to_string(), &mut Vec::new()).ok()
}

fn refuse_unsupported(fields: &mut MappingDecoder<'_>) {
    for (key, why) in UNSUPPORTED {
        if !fields.has(key) {
            continue;
        }
        let written = fields.value(key);
        if written != Some(&Value::Bool(false)) {
            fields.error_at_key(key, "unsupported", format!("{key} is not supported: {why}"));
        }
    }
}

fn claims(fields: &mut MappingDecoder<'_>, cx: &ParamsCx<'_>) -> Vec<ClaimOf> {
    if fields.has("authServices") && fields.has("authSources") {
        fields.error(
            "authSources",
            "value",
            "authSources is the older word for authServices: write one",
        );
    }
    let mut read = Vec::new();
    for key in ["authServices", "authSources"] {
        for mut entry in fields.mappings(key).unwrap_or_default() {
            let (service, field) = (entry.text("name"), entry.text("field"));
            for key in ["name", "field"] {
                if entry.is_mapping() && !entry.has(key) {
                    entry.error_at_mapping("missing", format!("{key} is missing"));
                }
            }
            if let Some(name) = &service
                && !cx.auth.contains(&name.as_str())
            {
                entry.error("name", "unknown", unknown_service(name, cx.auth));
            }
            if let (Some(service), Some(field)) = (service, field) {
                read.push(ClaimOf { service, field });
            }
            entry.finish();
        }
    }
    read
}

fn unknown_service(name: &str, known: &[&str]) -> String {
    match find_nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown auth service `{name}`; did you mean `{near}`?"),
        None if known.is_empty() => {
            format!("unknown auth service `{name}`: no authServices are declared")
        }
        None => format!(
            "unknown auth service `{name}`; there are {}",
            known.join(", ")
        ),
    }
}

/// The type with its rules, of a parameter or of items.
fn shape(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<Shape> {
    let of = type_of(fields, group);
    let is_number = matches!(of, Some(Type::Integer | Type::Float));
    let is_integer = matches!(of, Some(Type::Integer));
    let [low, high] = ["minValue", "maxValue"].map(|key| {
        let written = fields.value(key)?;
        if of.is_some() && !is_number {
            only_for(fields, key, "integer and float parameters", of.as_ref());
            return None;
        }
        limit(fields, key, written, is_integer)
    });
    if let (Some(low), Some(high)) = (low, high)
        && low.is_above(high)
    {
        fields.error(
            "minValue",
            "range",
            format!("minValue {low} is above maxValue {high}"),
        );
    }
    let escape = escape(fields, of.as_ref(), group);
    let anchored = fields.boolean("anchored").unwrap_or(false);
    let [allowed, excluded] =
        ["allowedValues", "excludedValues"].map(|key| entries(fields, key, of.as_ref(), anchored));
    let shape = Shape {
        rules: Rules { allowed, excluded },
        low,
        high,
        escape,
        ..Shape::bare(of?)
    };
    for (at, what) in lint::admits_more(&shape) {
        fields.warning_at(&format!("allowedValues/{at}"), "unanchored", what);
    }
    Some(shape)
}

fn type_of(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<Type> {
    // Known, whatever the type is: misplaced ones are told by what they are for.
    let (has_items, has_value_type) = (fields.has("items"), fields.has("valueType"));
    if !fields.has("type") {
        fields.error_at_mapping("missing", "parameter is missing 'type' field");
    }
    let of = match fields.text("type")?.as_str() {
        "string" => Type::Text,
        "integer" => Type::Integer,
        "float" => Type::Float,
        "boolean" => Type::Boolean,
        "array" => Type::Array(Box::new(items(fields, group)?)),
        "map" => Type::Map(value_type(fields)?),
        other => {
            let alias = ALIASES
                .iter()
                .find(|(word, _)| *word == other)
                .map(|(_, t)| *t);
            let near = alias.or_else(|| find_nearest(other, TYPES));
            let hint = near.map_or_else(
                || format!("; there are {}", TYPES.join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            let why = format!("{other:?} is not valid type for a parameter{hint}");
            fields.error("type", "value", why);
            return None;
        }
    };
    if has_items && !matches!(of, Type::Array(_)) {
        fields.value("items");
        only_for(fields, "items", "array parameters", Some(&of));
    }
    if has_value_type && !matches!(of, Type::Map(_)) {
        fields.value("valueType");
        only_for(fields, "valueType", "map parameters", Some(&of));
    }
    Some(of)
}

fn only_for(fields: &MappingDecoder<'_>, key: &str, what: &str, of: Option<&Type>) {
    let word = of.map_or("another", Type::word);
    fields.error_at_key(
        key,
        "value",
        format!("{key} is for {what} (this one is {word})"),
    );
}

fn items(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<Shape> {
    let Some(mut inner) = fields.mapping("items") else {
        fields.error_at_mapping(
            "missing",
            "unable to parse 'items' field: an array needs items, a parameter of its own",
        );
        return None;
    };
    if !inner.is_mapping() {
        return None;
    }
    inner.text("name");
    let description = inner.text_or_empty("description");
    for key in ["default", "required"] {
        if inner.value(key).is_some() {
            inner.warning(
                key,
                "items-ignored",
                format!("{key} inside items is ignored"),
            );
        }
    }
    for key in ["authServices", "authSources"] {
        if inner.value(key).is_some() {
            inner.error_at_key(key, "value", "nested items should not have auth services");
        }
    }
    if inner.value("valueFromParam").is_some() {
        inner.error_at_key(
            "valueFromParam",
            "value",
            "nested items cannot copy a parameter",
        );
    }
    refuse_unsupported(&mut inner);
    let read = shape(&mut inner, group);
    inner.finish();
    let mut read = read?;
    read.description = description.unwrap_or_default();
    if group == TEMPLATE && !matches!(read.of, Type::Text) {
        let why = "items of a template parameter are strings";
        fields.error("items", "value", why);
    }
    Some(read)
}

#[expect(
    clippy::option_option,
    reason = "wrong, absent and given are three things"
)]
fn value_type(fields: &mut MappingDecoder<'_>) -> Option<Option<Scalar>> {
    if !fields.has("valueType") {
        fields.value("valueType");
        return Some(None);
    }
    let written = fields.text_or_empty("valueType")?;
    Some(Some(match written.as_str() {
        // Absent and empty are the same to the toolbox.
        "" => return Some(None),
        "string" => Scalar::Text,
        "integer" => Scalar::Integer,
        "float" => Scalar::Float,
        "boolean" => Scalar::Boolean,
        other => {
            let why = format!(
                "unsupported valueType {other:?} for map parameter: string, integer, float or boolean"
            );
            fields.error("valueType", "value", why);
            return None;
        }
    }))
}

fn limit(
    fields: &MappingDecoder<'_>,
    key: &str,
    written: &Value,
    is_integer: bool,
) -> Option<Limit> {
    let text = written.to_string();
    let read = written.is_number().then(|| Limit::of(&text)).flatten();
    match read {
        Some(Limit::Whole(n)) => Some(Limit::Whole(n)),
        Some(limit) if !is_integer => Some(limit),
        _ => {
            let wanted = if is_integer {
                "a whole number of 64 bits"
            } else {
                "a number"
            };
            let got = describe_value(written);
            fields.error(key, "type", format!("{key} must be {wanted} (got {got})"));
            None
        }
    }
}

fn escape(fields: &mut MappingDecoder<'_>, of: Option<&Type>, group: &str) -> Option<Escape> {
    if !fields.has("escape") {
        fields.value("escape");
        return None;
    }
    let escape = fields.choice("escape", &Escape::NAMES)?;
    match of {
        Some(Type::Text) | None => {}
        Some(Type::Array(_)) => {
            fields.error_at_key(
                "escape",
                "value",
                "escape is for string parameters; put it under items",
            );
            return None;
        }
        other => {
            only_for(fields, "escape", "string parameters", other);
            return None;
        }
    }
    if group != TEMPLATE {
        let why = "this parameter is bound, so the quotes become part of the data; escape is meant for templateParameters";
        fields.warning("escape", "bound-escape", why);
    }
    Some(escape)
}

fn entries(
    fields: &mut MappingDecoder<'_>,
    key: &'static str,
    of: Option<&Type>,
    anchored: bool,
) -> Vec<Entry> {
    let mut read = Vec::new();
    for (at, (_, value)) in fields.list(key).unwrap_or_default().into_iter().enumerate() {
        let place = format!("{key}/{at}");
        let Some(of) = of else { continue };
        match entry(value, of, anchored) {
            Ok((entry, warning)) => {
                if let Some(why) = warning {
                    fields.warning_at(&place, "list-entry", why);
                }
                read.push(entry);
            }
            Err(why) => fields.error_at(&place, "list-entry", why),
        }
    }
    read
}

/// An entry of a list, or why it could match nothing.
fn entry(value: &Value, of: &Type, anchored: bool) -> Result<(Entry, Option<String>), String> {
    let never = |what: &str| {
        format!(
            "no {} value is equal to {} ({what})",
            of.word(),
            describe_value(value)
        )
    };
    let node = node(value).ok_or_else(|| never("an entry is a value"))?;
    match (&node, of) {
        (Node::Text(_), Type::Array(_)) => Err(never(
            "an entry is a whole list here; rules on each element stand under items",
        )),
        (Node::Text(_), Type::Map(_)) => Err(never("an entry is a whole map here")),
        (Node::Text(text), of) => match Pattern::read(text, anchored) {
            Ok(pattern) => Ok((Entry::Pattern(pattern), None)),
            // As in the toolbox; but a slip of the pen must not exclude nothing unseen.
            Err(why) if matches!(of, Type::Text) && !why.contains("look-around") => {
                let told = format!(
                    "{} is no pattern ({why}), and is compared as it stands; if that is meant, write `^{}$`",
                    shown(&node),
                    regex::escape(text)
                );
                Ok((Entry::Same(node), Some(told)))
            }
            Err(why) => Err(format!("{} does not compile: {why}", shown(&node))),
        },
        (Node::Plain(plain), Type::Text) => {
            let printed = super::rules::go_number(plain);
            let why = format!(
                "a string is never this value; it is compared as the text {printed:?}: write it in quotes"
            );
            Ok((Entry::Same(Node::Text(printed)), Some(why)))
        }
        (Node::Plain(plain), Type::Integer) if is_number(plain) => {
            let is_whole = whole(plain).is_some()
                || super::shape::float(plain).is_some_and(|x| x.fract() == 0.0);
            if is_whole {
                Ok((Entry::Same(node), None))
            } else {
                Err(never("it is not a whole number of 64 bits"))
            }
        }
        (Node::Plain(plain), Type::Float) if is_number(plain) => Ok((Entry::Same(node), None)),
        (Node::Plain(plain), Type::Boolean) if !is_number(plain) => Ok((Entry::Same(node), None)),
        (Node::List(_), Type::Array(_)) | (Node::Object(_), Type::Map(_)) => {
            Ok((Entry::Same(node), None))
        }
        _ => Err(never("it is of another type")),
    }
}
