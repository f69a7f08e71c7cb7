//! Values of settings: reading Kafka's notation of each type, and writing it as Kafka shows it.

use std::fmt;

use super::key::Kind;

/// A value that has been read. Strings, classes and passwords are text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Double(value) => f.write_str(&show_double(*value)),
            Value::Text(value) => f.write_str(value),
            Value::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// Reads `text` as a value of `kind`.
///
/// # Errors
/// Why it is none.
pub fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    let text = text.trim();
    match kind {
        Kind::Boolean => parse_boolean(text),
        Kind::Int => parse_integer(kind, text, i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Short => parse_integer(kind, text, i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Long => parse_integer(kind, text, i64::MIN, i64::MAX),
        Kind::Double => text.parse().map(Value::Double).map_err(|_| not_a_number(kind)),
        Kind::List => Ok(Value::List(split_list(text))),
        Kind::String | Kind::Class | Kind::Password => Ok(Value::Text(text.to_owned())),
    }
}

fn parse_boolean(text: &str) -> Result<Value, String> {
    if text.eq_ignore_ascii_case("true") {
        Ok(Value::Boolean(true))
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Value::Boolean(false))
    } else {
        Err("Expected value to be either true or false".to_owned())
    }
}

fn parse_integer(kind: Kind, text: &str, min: i64, max: i64) -> Result<Value, String> {
    match text.parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(Value::Integer(number)),
        _ => Err(not_a_number(kind)),
    }
}

fn not_a_number(kind: Kind) -> String {
    format!("Not a number of type {}", kind.name())
}

/// The items between commas, without blanks around them; nothing at all is the empty list.
pub fn split_list(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.is_empty() { Vec::new() } else { text.split(',').map(|item| item.trim().to_owned()).collect() }
}

/// As Java prints a double, which is how clients have always seen these values.
fn show_double(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => scientific,
    }
}

/// `host:port`, where an IPv6 host may stand in brackets.
pub fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    let host = if bracketed { host.get(1..host.len() - 1)? } else { host };
    if host.is_empty() || (!bracketed && host.contains([':', '[', ']', '/'])) {
        return None;
    }
    Some((host, port.parse().ok()?))
}

/// `id@host:port` of one controller.
pub fn voter(text: &str) -> Option<(i32, &str, u16)> {
    let (id, address) = text.split_once('@')?;
    let (host, port) = host_and_port(address)?;
    Some((id.parse().ok()?, host, port))
}

/// Where a share group begins to read (KIP-932).
pub fn check_offset_reset(text: &str) -> Result<(), String> {
    let duration =
        text.get(..12).filter(|start| start.eq_ignore_ascii_case("by_duration:")).and_then(|_| text.get(12..));
    match duration {
        Some(duration) if parse_duration_ms(duration).is_some() => Ok(()),
        _ if text.eq_ignore_ascii_case("latest") || text.eq_ignore_ascii_case("earliest") => Ok(()),
        _ => {
            Err("The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
                .to_owned())
        }
    }
}

/// Milliseconds of an ISO 8601 duration of days, hours, minutes and seconds (`P1DT2H3M4.5S`); negative ones are refused.
pub fn parse_duration_ms(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let text = text.strip_prefix('P')?;
    let (days, time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (text, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let day_part = sum_units(days, &[('D', 86_400_000)])?;
    day_part.checked_add(sum_units(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)])?)
}

fn sum_units(mut text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut sum = 0i64;
    for (unit, size_ms) in units {
        let Some((number, rest)) = text.split_once(*unit) else { continue };
        let part = match number.split_once('.') {
            Some((whole, fraction)) if *unit == 'S' => {
                let thousandths = format!("{fraction:0<3}");
                let thousandths: i64 = thousandths.get(..3)?.parse().ok()?;
                whole.parse::<u32>().ok().map(i64::from)?.checked_mul(*size_ms)?.checked_add(thousandths)?
            }
            _ => number.parse::<u32>().ok().map(i64::from)?.checked_mul(*size_ms)?,
        };
        sum = sum.checked_add(part)?;
        text = rest;
    }
    text.is_empty().then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_type() {
        assert_eq!(parse(Kind::Int, " 10 "), Ok(Value::Integer(10)));
        assert_eq!(parse(Kind::Int, "+5"), Ok(Value::Integer(5)));
        assert_eq!(parse(Kind::Int, "5000000000"), Err("Not a number of type INT".to_owned()));
        assert_eq!(parse(Kind::Short, "40000"), Err("Not a number of type SHORT".to_owned()));
        assert_eq!(parse(Kind::Long, ""), Err("Not a number of type LONG".to_owned()));
    }

    #[test]
    fn booleans_ignore_case_and_take_nothing_else() {
        assert_eq!(parse(Kind::Boolean, "TRUE"), Ok(Value::Boolean(true)));
        assert!(parse(Kind::Boolean, "yes").is_err());
        assert!(parse(Kind::Boolean, "1").is_err());
    }

    #[test]
    fn doubles_are_shown_as_java_shows_them() {
        for (value, shown) in
            [(0.5, "0.5"), (1.0, "1.0"), (f64::MAX, "1.7976931348623157E308"), (1e7, "1.0E7"), (0.0001, "1.0E-4")]
        {
            assert_eq!(Value::Double(value).to_string(), shown);
        }
    }

    #[test]
    fn lists_lose_blanks_and_keep_gaps() {
        assert_eq!(split_list(" a , b,,c "), ["a", "b", "", "c"]);
        assert!(split_list(" ").is_empty());
    }

    #[test]
    fn addresses_and_voters_are_recognised() {
        assert_eq!(host_and_port("[::1]:9092"), Some(("::1", 9092)));
        assert_eq!(host_and_port("a:9092"), Some(("a", 9092)));
        for bad in ["a", ":1", "a:x", "::1:9092", "a:70000"] {
            assert_eq!(host_and_port(bad), None, "{bad}");
        }
        assert_eq!(voter("1@a:9093"), Some((1, "a", 9093)));
        assert_eq!(voter("a:9093"), None);
    }

    #[test]
    fn durations_are_iso_8601() {
        assert_eq!(parse_duration_ms("PT1H"), Some(3_600_000));
        assert_eq!(parse_duration_ms("P1DT2H3M4.5S"), Some(93_784_500));
        for bad in ["", "P", "PT", "1H", "PT1", "P1H", "PT-1H", "PT1X"] {
            assert_eq!(parse_duration_ms(bad), None, "{bad}");
        }
    }
}
