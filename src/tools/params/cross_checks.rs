//! Rules between the parameters of a tool: duplicate names, copies, and the content of templates.

use super::{ParamsCx, TEMPLATE_PARAMETERS, ToolParam, lint};
use crate::diag::find_nearest;
use crate::diag::yaml::MappingDecoder;

pub(super) fn refuse_duplicates(fields: &MappingDecoder<'_>, read: &[(ToolParam, String)]) {
    for (at, (param, place)) in read.iter().enumerate() {
        if read[..at]
            .iter()
            .any(|(earlier, _)| earlier.name == param.name)
        {
            let why = format!("duplicate parameter name: {}", param.name);
            fields.error_at(&format!("{place}/name"), "duplicate", why);
        }
    }
}

pub(super) fn check_copies(fields: &MappingDecoder<'_>, read: &[(ToolParam, String)]) {
    let by_name = |name: &str| read.iter().map(|(p, _)| p).find(|p| p.name == name);
    for (param, place) in read {
        let Some(first) = &param.copied_from else {
            continue;
        };
        let place = format!("{place}/valueFromParam");
        let mut next = Some(first);
        // Only a cycle takes more steps than there are parameters.
        for _ in 0..=read.len() {
            let Some(name) = next else { break };
            let Some(source) = by_name(name) else {
                // An unknown name later in the chain is reported at the parameter that copies it.
                if name == first {
                    let names = read.iter().map(|(p, _)| p.name.as_str());
                    let hint = find_nearest(name, names)
                        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                    let why = format!("unknown parameter `{name}`{hint}");
                    fields.error_at(&place, "unknown", why);
                }
                next = None;
                break;
            };
            next = source.copied_from.as_ref();
        }
        if next.is_some() {
            let why = format!("`{}` copies itself, over {first}", param.name);
            fields.error_at(&place, "cycle", why);
        }
    }
}

pub(super) fn check_templates(
    fields: &MappingDecoder<'_>,
    read: &[(ToolParam, String)],
    allowed: &[String],
    cx: &ParamsCx<'_>,
) {
    for (at, name) in allowed.iter().enumerate() {
        let is_template =
            |(p, _): &(ToolParam, String)| p.group == TEMPLATE_PARAMETERS && p.name == *name;
        if !read.iter().any(is_template) {
            let place = format!("allowUncheckedTemplates/{at}");
            fields.error_at(
                &place,
                "unknown",
                format!("`{name}` is not a template parameter of this tool"),
            );
        }
    }
    for (param, place) in read.iter().filter(|(p, _)| p.group == TEMPLATE_PARAMETERS) {
        if !lint::accepts_anything(&param.spec) || allowed.contains(&param.name) {
            continue;
        }
        let why = format!(
            "template parameter `{}` takes anything, and is written into the statement as it is: give it allowedValues, \
             escape, or bounds",
            param.name
        );
        // On a writable source, inserted text may change data, so the author must allow it by name.
        if cx.writable {
            let why = format!(
                "{why}; on a writable source this is an error unless `allowUncheckedTemplates: [{}]` allows it",
                param.name
            );
            fields.error_at(place, "unchecked-template", why);
        } else {
            fields.warning_at(place, "unchecked-template", why);
        }
    }
}
