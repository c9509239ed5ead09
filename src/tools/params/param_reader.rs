//! The strict reader of a tool's parameters: every field, and every rule between them.

use serde_json::Value;

use super::escape::DelimiterEscape;
use super::number_literal::{
    NumericLimit, is_number_literal, parse_finite_float, parse_whole_number,
};
use super::re2_pattern::Re2Pattern;
use super::value_filter::{ValueFilter, ValueMatcher, format_go_quoted};
use super::value_spec::{ConversionCx, ScalarType, ValueSpec, ValueType};
use super::{ClaimRef, ParamsCx, TEMPLATE_PARAMETERS, ToolParam, ToolParams, cross_checks, lint};
use crate::diag::find_nearest;
use crate::diag::yaml::{MappingDecoder, describe_value};
use crate::tools::json::JsonNode;

/// The keys of the toolbox that dicta does not support, with the reasons.
const UNSUPPORTED_PARAM_KEYS: [(&str, &str); 4] = [
    ("embeddedBy", "there are no embedding models here"),
    ("embeddingModel", "there are no embedding models here"),
    (
        "secure",
        "nothing but a claim fills a hidden parameter here",
    ),
    ("scopesRequired", "scopes are not checked here"),
];

/// The values of `type`.
pub const TYPE_NAMES: [&str; 6] = ["string", "integer", "float", "boolean", "array", "map"];

/// Type names of other tools, with the toolbox's names, for suggestions.
const TYPE_ALIASES: [(&str, &str); 9] = [
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

/// Reads the parameters under each of these keys of a tool, in this order.
pub(super) fn read_tool_params(
    fields: &mut MappingDecoder<'_>,
    groups: &[&'static str],
    cx: &ParamsCx<'_>,
) -> ToolParams {
    // Each parameter with its place, since the checks across parameters report errors there.
    let mut read: Vec<(ToolParam, String)> = Vec::new();
    for group in groups {
        for (at, mut entry) in fields
            .mappings(group)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            let Some(param) = read_param(&mut entry, group, cx) else {
                continue;
            };
            entry.finish();
            read.push((param, format!("{group}/{at}")));
        }
    }
    let unchecked = fields.texts("allowUncheckedTemplates").unwrap_or_default();
    let unchecked: Vec<String> = unchecked.into_iter().map(|(name, _)| name).collect();
    cross_checks::refuse_duplicates(fields, &read);
    cross_checks::check_copies(fields, &read);
    cross_checks::check_templates(fields, &read, &unchecked, cx);
    let (template, bound) = read
        .into_iter()
        .map(|(param, _)| param)
        .partition(|param| param.group == TEMPLATE_PARAMETERS);
    ToolParams { bound, template }
}

fn read_param(
    fields: &mut MappingDecoder<'_>,
    group: &'static str,
    cx: &ParamsCx<'_>,
) -> Option<ToolParam> {
    if !fields.is_mapping() {
        return None;
    }
    // `text` reports an empty name as an error, so the presence of the keys is recorded first.
    let before = fields.has("name") && fields.has("description");
    let name = fields.text("name");
    if !fields.has("name") {
        fields.error_at_mapping("missing", "parameter is missing 'name' field");
    }
    let description = fields.text_or_empty("description");
    if !fields.has("description") {
        fields.error_at_mapping("missing", "parameter is missing 'description' field");
    }
    // The value: whether it is required, and where it comes from.
    let required = fields.boolean("required");
    let copied = fields.text("valueFromParam");
    let claims = read_claim_refs(fields, cx);
    refuse_unsupported(fields);
    let default = fields.value("default").and_then(yaml_to_node);
    // The type and its rules.
    let mut shape = read_value_spec(fields, group)?;
    shape.description = description.unwrap_or_default();
    if group == TEMPLATE_PARAMETERS && matches!(shape.of, ValueType::Map(_)) {
        let why = "a template parameter is a string, integer, float, boolean or array";
        fields.error("type", "value", why);
    }
    // A default that its own rules reject would fail every call without the argument.
    if let Some(default) = &default
        && let Err(why) = shape.check_and_convert(default, &mut ConversionCx::default())
    {
        fields.error(
            "default",
            "param-default",
            format!("unable to parse the default: {why}"),
        );
    }
    // A parameter has one source, so a copy of a claim would be ambiguous.
    if copied.is_some() && !claims.is_empty() {
        fields.error(
            "valueFromParam",
            "value",
            "a claim fills it already (authServices)",
        );
    }
    let name = name.filter(|_| before)?;
    // A warning only: the toolbox and some providers allow such names.
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        || name.len() > 64
    {
        let why =
            "some providers take only letters, digits, `_`, `.` and `-` in a name, 64 at most";
        fields.warning("name", "param-name", why);
    }
    Some(ToolParam {
        name,
        group,
        spec: shape,
        required: required.unwrap_or(true),
        default,
        claim_refs: claims,
        copied_from: copied,
    })
}

/// Converts a YAML value to a node; `None` for `null`.
fn yaml_to_node(value: &Value) -> Option<JsonNode> {
    if value.is_null() {
        return None;
    }
    JsonNode::parse(&value.to_string(), &mut Vec::new()).ok()
}

fn refuse_unsupported(fields: &mut MappingDecoder<'_>) {
    for (key, why) in UNSUPPORTED_PARAM_KEYS {
        if !fields.has(key) {
            continue;
        }
        let written = fields.value(key);
        // `false` asks for nothing, so it is accepted.
        if written != Some(&Value::Bool(false)) {
            fields.error_at_key(key, "unsupported", format!("{key} is not supported: {why}"));
        }
    }
}

fn read_claim_refs(fields: &mut MappingDecoder<'_>, cx: &ParamsCx<'_>) -> Vec<ClaimRef> {
    // The toolbox knows both words; the older one is still accepted.
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
                entry.error("name", "unknown", explain_unknown_service(name, cx.auth));
            }
            if let (Some(service), Some(field)) = (service, field) {
                read.push(ClaimRef { service, field });
            }
            entry.finish();
        }
    }
    read
}

fn explain_unknown_service(name: &str, known: &[&str]) -> String {
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

/// Reads the type and rules of a parameter or of list items.
fn read_value_spec(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<ValueSpec> {
    let of = read_value_type(fields, group);
    let is_number = matches!(of, Some(ValueType::Integer | ValueType::Float));
    let is_integer = matches!(of, Some(ValueType::Integer));
    // Read for every type, so that a misplaced key gets a message about its purpose.
    let [low, high] = ["minValue", "maxValue"].map(|key| {
        let written = fields.value(key)?;
        if of.is_some() && !is_number {
            check_key_fits_type(fields, key, "integer and float parameters", of.as_ref());
            return None;
        }
        read_limit(fields, key, written, is_integer)
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
    let escape = read_escape(fields, of.as_ref(), group);
    let anchored = fields.boolean("anchored").unwrap_or(false);
    // The lists come last, because their entries depend on the type and on `anchored`.
    let [allowed, excluded] = ["allowedValues", "excludedValues"]
        .map(|key| read_value_matchers(fields, key, of.as_ref(), anchored));
    let shape = ValueSpec {
        filter: ValueFilter { allowed, excluded },
        min: low,
        max: high,
        escape,
        ..ValueSpec::without_rules(of?)
    };
    for (at, what) in lint::find_overbroad_patterns(&shape) {
        fields.warning_at(&format!("allowedValues/{at}"), "unanchored", what);
    }
    Some(shape)
}

fn read_value_type(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<ValueType> {
    // Take these keys for every type: a misplaced one gets a message about its purpose instead of "unknown key".
    let (has_items, has_value_type) = (fields.has("items"), fields.has("valueType"));
    if !fields.has("type") {
        fields.error_at_mapping("missing", "parameter is missing 'type' field");
    }
    let of = match fields.text("type")?.as_str() {
        "string" => ValueType::Text,
        "integer" => ValueType::Integer,
        "float" => ValueType::Float,
        "boolean" => ValueType::Boolean,
        "array" => ValueType::Array(Box::new(read_items_spec(fields, group)?)),
        "map" => ValueType::Map(read_map_value_type(fields)?),
        other => {
            let alias = TYPE_ALIASES
                .iter()
                .find(|(word, _)| *word == other)
                .map(|(_, t)| *t);
            // A type of another language or schema gets its equivalent as a suggestion.
            let near = alias.or_else(|| find_nearest(other, TYPE_NAMES));
            let hint = near.map_or_else(
                || format!("; there are {}", TYPE_NAMES.join(", ")),
                |near| format!("; did you mean `{near}`?"),
            );
            let why = format!("{other:?} is not valid type for a parameter{hint}");
            fields.error("type", "value", why);
            return None;
        }
    };
    if has_items && !matches!(of, ValueType::Array(_)) {
        fields.value("items");
        check_key_fits_type(fields, "items", "array parameters", Some(&of));
    }
    if has_value_type && !matches!(of, ValueType::Map(_)) {
        fields.value("valueType");
        check_key_fits_type(fields, "valueType", "map parameters", Some(&of));
    }
    Some(of)
}

fn check_key_fits_type(fields: &MappingDecoder<'_>, key: &str, what: &str, of: Option<&ValueType>) {
    let word = of.map_or("another", ValueType::name);
    fields.error_at_key(
        key,
        "value",
        format!("{key} is for {what} (this one is {word})"),
    );
}

fn read_items_spec(fields: &mut MappingDecoder<'_>, group: &'static str) -> Option<ValueSpec> {
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
    // Not used, but read so that it is a known key.
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
    let read = read_value_spec(&mut inner, group);
    inner.finish();
    let mut read = read?;
    read.description = description.unwrap_or_default();
    if group == TEMPLATE_PARAMETERS && !matches!(read.of, ValueType::Text) {
        let why = "items of a template parameter are strings";
        fields.error("items", "value", why);
    }
    Some(read)
}

#[expect(
    clippy::option_option,
    reason = "wrong, absent and given are three things"
)]
fn read_map_value_type(fields: &mut MappingDecoder<'_>) -> Option<Option<ScalarType>> {
    if !fields.has("valueType") {
        fields.value("valueType");
        return Some(None);
    }
    let written = fields.text_or_empty("valueType")?;
    Some(Some(match written.as_str() {
        // The toolbox does not distinguish an absent and an empty value.
        "" => return Some(None),
        "string" => ScalarType::Text,
        "integer" => ScalarType::Integer,
        "float" => ScalarType::Float,
        "boolean" => ScalarType::Boolean,
        other => {
            let why = format!(
                "unsupported valueType {other:?} for map parameter: string, integer, float or boolean"
            );
            fields.error("valueType", "value", why);
            return None;
        }
    }))
}

fn read_limit(
    fields: &MappingDecoder<'_>,
    key: &str,
    written: &Value,
    is_integer: bool,
) -> Option<NumericLimit> {
    let text = written.to_string();
    let read = written
        .is_number()
        .then(|| NumericLimit::parse(&text))
        .flatten();
    match read {
        Some(NumericLimit::Whole(n)) => Some(NumericLimit::Whole(n)),
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

fn read_escape(
    fields: &mut MappingDecoder<'_>,
    of: Option<&ValueType>,
    group: &str,
) -> Option<DelimiterEscape> {
    if !fields.has("escape") {
        fields.value("escape");
        return None;
    }
    let escape = fields.choice("escape", &DelimiterEscape::NAMES)?;
    match of {
        Some(ValueType::Text) | None => {}
        // An array is never a text, but its items may be.
        Some(ValueType::Array(_)) => {
            fields.error_at_key(
                "escape",
                "value",
                "escape is for string parameters; put it under items",
            );
            return None;
        }
        other => {
            check_key_fits_type(fields, "escape", "string parameters", other);
            return None;
        }
    }
    if group != TEMPLATE_PARAMETERS {
        let why = "this parameter is bound, so the quotes become part of the data; escape is meant for templateParameters";
        fields.warning("escape", "bound-escape", why);
    }
    Some(escape)
}

fn read_value_matchers(
    fields: &mut MappingDecoder<'_>,
    key: &'static str,
    of: Option<&ValueType>,
    anchored: bool,
) -> Vec<ValueMatcher> {
    let mut read = Vec::new();
    for (at, (_, value)) in fields.list(key).unwrap_or_default().into_iter().enumerate() {
        let place = format!("{key}/{at}");
        let Some(of) = of else { continue };
        match read_value_matcher(value, of, anchored) {
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

/// Reads an entry of an allow or exclude list, or explains why it cannot match.
fn read_value_matcher(
    value: &Value,
    of: &ValueType,
    anchored: bool,
) -> Result<(ValueMatcher, Option<String>), String> {
    let never = |what: &str| {
        format!(
            "no {} value is equal to {} ({what})",
            of.name(),
            describe_value(value)
        )
    };
    let node = yaml_to_node(value).ok_or_else(|| never("an entry is a value"))?;
    match (&node, of) {
        (JsonNode::Text(_), ValueType::Array(_)) => Err(never(
            "an entry is a whole list here; put rules for the elements under items",
        )),
        (JsonNode::Text(_), ValueType::Map(_)) => Err(never("an entry is a whole map here")),
        (JsonNode::Text(text), of) => match Re2Pattern::parse(text, anchored) {
            Ok(pattern) => Ok((ValueMatcher::Pattern(pattern), None)),
            // The toolbox compares an invalid pattern as text. That is allowed here too, but with a warning: a typo
            // must not silently disable an exclusion.
            Err(why) if matches!(of, ValueType::Text) && !why.contains("look-around") => {
                let warning = format!(
                    "{} is not a pattern ({why}), so it is compared as plain text; to keep this without a warning, write `^{}$`",
                    format_go_quoted(&node),
                    regex::escape(text)
                );
                Ok((ValueMatcher::Equal(node), Some(warning)))
            }
            Err(why) => Err(format!(
                "{} does not compile: {why}",
                format_go_quoted(&node)
            )),
        },
        // YAML reads an unquoted `1` as a number, but a string parameter only has texts.
        (JsonNode::Literal(plain), ValueType::Text) => {
            let printed = super::value_filter::format_go_number(plain);
            let why = format!(
                "a string is never this value; it is compared as the text {printed:?}: write it in quotes"
            );
            Ok((ValueMatcher::Equal(JsonNode::Text(printed)), Some(why)))
        }
        (JsonNode::Literal(plain), ValueType::Integer) if is_number_literal(plain) => {
            // `2.0` in a list equals the integer 2.
            let is_whole = parse_whole_number(plain).is_some()
                || parse_finite_float(plain).is_some_and(|x| x.fract() == 0.0);
            if is_whole {
                Ok((ValueMatcher::Equal(node), None))
            } else {
                Err(never("it is not a whole number of 64 bits"))
            }
        }
        (JsonNode::Literal(plain), ValueType::Float) if is_number_literal(plain) => {
            Ok((ValueMatcher::Equal(node), None))
        }
        (JsonNode::Literal(plain), ValueType::Boolean) if !is_number_literal(plain) => {
            Ok((ValueMatcher::Equal(node), None))
        }
        (JsonNode::List(_), ValueType::Array(_)) | (JsonNode::Object(_), ValueType::Map(_)) => {
            Ok((ValueMatcher::Equal(node), None))
        }
        _ => Err(never("it is of another type")),
    }
}
