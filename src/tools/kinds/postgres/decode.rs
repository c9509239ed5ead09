//! The conversion of PostgreSQL's binary values to JSON: exact numbers, times in ISO 8601, unknown types as bytes.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::{SignedDuration, civil};
use tokio_postgres::types::{Kind, Type};

use super::super::sql::{MAX_ROWS_BYTES, SqlCell};

/// The nesting limit of lists and rows.
const MAX_NESTING: usize = 16;
/// The distance from Greenwich that PostgreSQL does not accept anymore, in seconds.
const MAX_ZONE_SECONDS: i32 = 16 * 3600;
/// The origin of PostgreSQL's times.
const POSTGRES_EPOCH: civil::DateTime = civil::DateTime::constant(2000, 1, 1, 0, 0, 0, 0);

/// Writes a value as JSON; `None` is null.
pub(super) fn write_value_as_json(ty: &Type, bytes: Option<&[u8]>, out: &mut String) {
    write_nested_value(ty, bytes, out, 0);
}

fn write_nested_value(ty: &Type, bytes: Option<&[u8]>, out: &mut String, depth: usize) {
    let Some(bytes) = bytes else {
        return out.push_str("null");
    };
    let before = out.len();
    // An unknown or damaged value becomes hex with a hint, so that one column does not fail the whole row.
    if depth > MAX_NESTING || write_known_type(ty, bytes, out, depth).is_none() {
        out.truncate(before);
        let mut hex = String::new();
        SqlCell::Bytes(bytes).write(&mut hex);
        let hex = hex.trim_matches('"');
        let name = ty.name();
        SqlCell::Text(&format!(
            "{hex} (of type {name}: cast it to text in the statement)"
        ))
        .write(out);
    }
}

/// Writes a value of a known type. Returns `None` if the bytes do not fit the type; `out` may then have partial
/// output.
fn write_known_type(ty: &Type, bytes: &[u8], out: &mut String, depth: usize) -> Option<()> {
    // The binary format of the protocol; each type has its own layout.
    match ty.kind() {
        Kind::Domain(base) => return write_known_type(base, bytes, out, depth),
        Kind::Array(of) => return write_array(of, bytes, out, depth),
        Kind::Enum(_) => return write_json_text(bytes, out),
        Kind::Range(of) => return write_range(of, bytes, out, depth),
        Kind::Composite(fields) => {
            let names: Vec<&str> = fields
                .iter()
                .map(tokio_postgres::types::Field::name)
                .collect();
            let types: Vec<&Type> = fields
                .iter()
                .map(tokio_postgres::types::Field::type_)
                .collect();
            return write_record(&names, &types, bytes, out, depth);
        }
        _ => {}
    }
    match *ty {
        Type::BOOL => out.push_str(if *bytes.first()? == 0 {
            "false"
        } else {
            "true"
        }),
        Type::INT2 => write_json_number(&i16::from_be_bytes(bytes.try_into().ok()?), out),
        Type::INT4 => write_json_number(&i32::from_be_bytes(bytes.try_into().ok()?), out),
        Type::INT8 => write_json_number(&i64::from_be_bytes(bytes.try_into().ok()?), out),
        Type::OID | Type::XID | Type::CID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC => {
            write_json_number(&u32::from_be_bytes(bytes.try_into().ok()?), out);
        }
        Type::FLOAT4 => {
            // `{:?}` prints the fewest digits that identify the number, and keeps `.0`.
            let x = f32::from_be_bytes(bytes.try_into().ok()?);
            write_json_float(f64::from(x), &format!("{x:?}"), out);
        }
        Type::FLOAT8 => {
            let x = f64::from_be_bytes(bytes.try_into().ok()?);
            write_json_float(x, &format!("{x:?}"), out);
        }
        Type::NUMERIC => match format_numeric(bytes)? {
            // `NaN` and infinities are not JSON numbers.
            number if number.ends_with(|c: char| c.is_ascii_digit()) => out.push_str(&number),
            special => SqlCell::Text(&special).write(out),
        },
        Type::JSON => write_json_column(bytes, out)?,
        // A version byte precedes the JSON.
        Type::JSONB => write_json_column(bytes.strip_prefix(&[1])?, out)?,
        Type::BYTEA => SqlCell::Bytes(bytes).write(out),
        Type::UUID => SqlCell::Text(&format_uuid(bytes)?).write(out),
        Type::DATE => SqlCell::Text(&format_date(bytes)?).write(out),
        Type::TIME => {
            SqlCell::Text(&format_time(i64::from_be_bytes(bytes.try_into().ok()?))?).write(out);
        }
        Type::TIMETZ => SqlCell::Text(&format_time_with_zone(bytes)?).write(out),
        Type::TIMESTAMP => SqlCell::Text(&format_timestamp(bytes, "")?).write(out),
        Type::TIMESTAMPTZ => SqlCell::Text(&format_timestamp(bytes, "Z")?).write(out),
        Type::INTERVAL => SqlCell::Text(&format_interval(bytes)?).write(out),
        Type::INET | Type::CIDR => SqlCell::Text(&format_inet(bytes)?).write(out),
        Type::MACADDR | Type::MACADDR8 => {
            let parts: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            SqlCell::Text(&parts.join(":")).write(out);
        }
        Type::BIT | Type::VARBIT => SqlCell::Text(&format_bits(bytes)?).write(out),
        Type::VOID => out.push_str("null"),
        Type::RECORD => write_record(&[], &[], bytes, out, depth)?,
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::CHAR
        | Type::UNKNOWN
        | Type::XML
        | Type::CSTRING => write_json_text(bytes, out)?,
        // The types of extensions have no fixed id.
        _ if ty.name() == "citext" => write_json_text(bytes, out)?,
        _ => return None,
    }
    Some(())
}

fn write_json_text(bytes: &[u8], out: &mut String) -> Option<()> {
    SqlCell::Text(std::str::from_utf8(bytes).ok()?).write(out);
    Some(())
}

fn write_json_number(number: &dyn std::fmt::Display, out: &mut String) {
    let _infallible = write!(out, "{number}");
}

fn write_json_float(x: f64, shown: &str, out: &mut String) {
    if x.is_finite() {
        out.push_str(shown);
    } else {
        let word = if x.is_nan() {
            "NaN"
        } else if x > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        SqlCell::Text(word).write(out);
    }
}

fn write_json_column(bytes: &[u8], out: &mut String) -> Option<()> {
    SqlCell::Json(std::str::from_utf8(bytes).ok()?).write(out);
    Some(())
}

/// The value has fewer bytes than it announces.
struct TooFewBytes;

/// A reader of bytes from the front of a slice.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a value after its length; `Ok(None)` is null.
    fn read_value(&mut self) -> Result<Option<&'a [u8]>, TooFewBytes> {
        match self.i32().ok_or(TooFewBytes)? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| TooFewBytes)?;
                self.take(length).map(Some).ok_or(TooFewBytes)
            }
        }
    }
}

/// Formats groups of four digits, with as many decimals as the scale requires.
fn format_numeric(bytes: &[u8]) -> Option<String> {
    // A numeric value is a list of groups of four decimal digits.
    let mut reader = ByteReader(bytes);
    let count = reader.i16()?;
    let weight = i32::from(reader.i16()?);
    let sign = reader.i16()?.cast_unsigned();
    let scale = usize::try_from(reader.i16()?).ok()?;
    let groups: Vec<i16> = (0..count).map(|_| reader.i16()).collect::<Option<_>>()?;
    // PostgreSQL omits zero groups at the end.
    let group = |at: i32| {
        let at = usize::try_from(at).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    // The sign field also encodes the special values.
    let mut out = match sign {
        0 => String::new(),
        0x4000 => String::from("-"),
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    if weight < 0 {
        out.push('0');
    }
    for at in 0..=weight {
        let _infallible = match at {
            0 => write!(out, "{}", group(0)),
            _ => write!(out, "{:04}", group(at)),
        };
    }
    if scale > 0 {
        let mut fraction = String::new();
        let mut at = weight + 1;
        // Omitted groups are zero.
        while fraction.len() < scale {
            let _infallible = write!(fraction, "{:04}", if at < 0 { 0 } else { group(at) });
            at += 1;
        }
        out.push('.');
        out.push_str(&fraction[..scale]);
    }
    Some(out)
}

fn format_uuid(bytes: &[u8]) -> Option<String> {
    if bytes.len() != 16 {
        return None;
    }
    let mut out = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            out.push('-');
        }
        let _infallible = write!(out, "{byte:02x}");
    }
    Some(out)
}

fn format_date(bytes: &[u8]) -> Option<String> {
    let days = ByteReader(bytes).i32()?;
    // The extreme values encode infinity.
    match days {
        i32::MAX => return Some("infinity".to_owned()),
        i32::MIN => return Some("-infinity".to_owned()),
        _ => {}
    }
    let after = SignedDuration::from_hours(i64::from(days) * 24);
    Some(POSTGRES_EPOCH.checked_add(after).ok()?.date().to_string())
}

fn format_timestamp(bytes: &[u8], zone: &str) -> Option<String> {
    let micros = ByteReader(bytes).i64()?;
    match micros {
        i64::MAX => return Some("infinity".to_owned()),
        i64::MIN => return Some("-infinity".to_owned()),
        _ => {}
    }
    let at = POSTGRES_EPOCH
        .checked_add(SignedDuration::from_micros(micros))
        .ok()?;
    Some(format!("{at}{zone}"))
}

fn format_time(micros: i64) -> Option<String> {
    // PostgreSQL has the time 24:00:00, which the time type of jiff lacks.
    if micros == 86_400_000_000 {
        return Some("24:00:00".to_owned());
    }
    let at = civil::Time::midnight().checked_add(SignedDuration::from_micros(micros));
    Some(at.ok()?.to_string())
}

fn format_time_with_zone(bytes: &[u8]) -> Option<String> {
    let mut reader = ByteReader(bytes);
    let time = format_time(reader.i64()?)?;
    // PostgreSQL stores seconds west of Greenwich. It accepts less than 16 hours, so other numbers are damaged.
    let east = reader
        .i32()?
        .checked_neg()
        .filter(|east| east.abs() < MAX_ZONE_SECONDS)?;
    let sign = if east < 0 { '-' } else { '+' };
    let (hours, minutes) = (east.abs() / 3600, east.abs() / 60 % 60);
    Some(format!("{time}{sign}{hours:02}:{minutes:02}"))
}

/// Formats an interval as `P1Y2M3DT4H5M6.7S`; each part has its own sign.
fn format_interval(bytes: &[u8]) -> Option<String> {
    let mut reader = ByteReader(bytes);
    let (micros, days, months) = (reader.i64()?, reader.i32()?, reader.i32()?);
    // PostgreSQL allows parts with different signs, so each part keeps its own.
    let mut out = String::from("P");
    let part = |value: i64, unit: char, out: &mut String| {
        if value != 0 {
            let _infallible = write!(out, "{value}{unit}");
        }
    };
    part(i64::from(months / 12), 'Y', &mut out);
    part(i64::from(months % 12), 'M', &mut out);
    part(i64::from(days), 'D', &mut out);
    if micros != 0 {
        out.push('T');
        let seconds = micros / 1_000_000;
        part(seconds / 3600, 'H', &mut out);
        part(seconds / 60 % 60, 'M', &mut out);
        let (rest, fraction) = (seconds % 60, (micros % 1_000_000).abs());
        if fraction != 0 {
            let sign = if micros < 0 { "-" } else { "" };
            let digits = format!("{fraction:06}");
            let _infallible = write!(
                out,
                "{sign}{}.{}S",
                rest.abs(),
                digits.trim_end_matches('0')
            );
        } else {
            part(rest, 'S', &mut out);
        }
    }
    if out == "P" {
        out.push_str("T0S");
    }
    Some(out)
}

fn format_inet(bytes: &[u8]) -> Option<String> {
    // The server writes the family, prefix length, a flag and the address length before the address.
    let [_family, bits, is_cidr, _length, address @ ..] = bytes else {
        return None;
    };
    let address: IpAddr = match address.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into(),
        _ => return None,
    };
    let full_length = if address.is_ipv4() { 32 } else { 128 };
    // A host address without a prefix length, as PostgreSQL prints it.
    if *is_cidr == 0 && *bits == full_length {
        return Some(address.to_string());
    }
    Some(format!("{address}/{bits}"))
}

fn format_bits(bytes: &[u8]) -> Option<String> {
    // The number of bits comes first, because the last byte may be partly used.
    let mut reader = ByteReader(bytes);
    let count = usize::try_from(reader.i32()?).ok()?;
    let all = reader
        .0
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    Some(
        all.take(count)
            .map(|bit| if bit == 1 { '1' } else { '0' })
            .collect(),
    )
}

/// Writes an array, with nested lists for further dimensions.
fn write_array(of: &Type, bytes: &[u8], out: &mut String, depth: usize) -> Option<()> {
    let mut reader = ByteReader(bytes);
    let dimensions = usize::try_from(reader.i32()?).ok()?;
    // The header repeats what the type already says.
    let _has_nulls = reader.i32()?;
    let _oid = reader.i32()?;
    let mut lengths = Vec::new();
    // PostgreSQL allows six dimensions; the limit protects the stack from a hostile server.
    for _ in 0..dimensions.min(MAX_NESTING) {
        lengths.push(usize::try_from(reader.i32()?).ok()?);
        let _lower_bound = reader.i32()?;
    }
    if lengths.is_empty() {
        out.push_str("[]");
        return Some(());
    }
    write_array_dimension(of, &lengths, &mut reader, out, depth + 1)
}

fn write_array_dimension(
    of: &Type,
    lengths: &[usize],
    reader: &mut ByteReader<'_>,
    out: &mut String,
    depth: usize,
) -> Option<()> {
    let (length, inner) = lengths.split_first()?;
    out.push('[');
    for at in 0..*length {
        // The response is cut here anyway.
        if out.len() > MAX_ROWS_BYTES {
            break;
        }
        if at > 0 {
            out.push_str(", ");
        }
        if inner.is_empty() {
            write_nested_value(of, reader.read_value().ok()?, out, depth);
        } else {
            write_array_dimension(of, inner, reader, out, depth)?;
        }
    }
    out.push(']');
    Some(())
}

/// Writes a nested row: an object if its columns have names, otherwise a list.
fn write_record(
    names: &[&str],
    types: &[&Type],
    bytes: &[u8],
    out: &mut String,
    depth: usize,
) -> Option<()> {
    let mut reader = ByteReader(bytes);
    let count = usize::try_from(reader.i32()?).ok()?;
    out.push(if names.is_empty() { '[' } else { '{' });
    for at in 0..count {
        if out.len() > MAX_ROWS_BYTES {
            break;
        }
        if at > 0 {
            out.push_str(", ");
        }
        if let Some(name) = names.get(at) {
            SqlCell::Text(name).write(out);
            out.push_str(": ");
        }
        let oid = reader.i32()?.cast_unsigned();
        let known = Type::from_oid(oid);
        let ty = types
            .get(at)
            .copied()
            .or(known.as_ref())
            .unwrap_or(&Type::ANY);
        write_nested_value(ty, reader.read_value().ok()?, out, depth + 1);
    }
    out.push(if names.is_empty() { ']' } else { '}' });
    Some(())
}

/// Writes a range as PostgreSQL does: `[1,10)`.
fn write_range(of: &Type, bytes: &[u8], out: &mut String, depth: usize) -> Option<()> {
    let (flags, rest) = bytes.split_first()?;
    let is = |bit: u8| flags & bit != 0;
    if is(1) {
        SqlCell::Text("empty").write(out);
        return Some(());
    }
    let mut reader = ByteReader(rest);
    let mut end = |infinite: bool| {
        let mut written = String::new();
        if !infinite {
            write_nested_value(of, reader.read_value().ok()?, &mut written, depth + 1);
        }
        Some(written.trim_matches('"').to_owned())
    };
    let (low, high) = (end(is(8))?, end(is(16))?);
    let open = if is(2) { '[' } else { '(' };
    let close = if is(4) { ']' } else { ')' };
    SqlCell::Text(&format!("{open}{low},{high}{close}")).write(out);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_an_impossible_zone_becomes_bytes_with_a_hint() {
        let write = |west: i32| {
            let micros: i64 = 3_600_000_000;
            let bytes = [&micros.to_be_bytes()[..], &west.to_be_bytes()].concat();
            let mut out = String::new();
            write_value_as_json(&Type::TIMETZ, Some(&bytes), &mut out);
            out
        };
        assert_eq!(write(0), r#""01:00:00+00:00""#);
        assert_eq!(write(-19_800), r#""01:00:00+05:30""#);
        assert_eq!(write(57_540), r#""01:00:00-15:59""#);
        for damaged in [i32::MIN, i32::MAX, 57_600, -57_600] {
            let written = write(damaged);
            assert!(written.contains("cast it to text"), "{damaged}: {written}");
        }
    }
}
