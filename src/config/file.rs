//! config.toml: TOML whose keys are Kafka's names. `log.retention.ms = 5`, a table `[log]` with `retention.ms`, and arrays for lists
//! all work; a name may be the beginning of another one (`log.dir`, `log.dir.failure.timeout.ms`), which plain TOML would refuse.

use std::path::Path;

use toml::Value;

use crate::host::Disk;
use crate::host::disk::read_file;

/// The file's settings by name, or what is wrong with it.
pub fn read(path: &Path, disk: &dyn Disk) -> Result<Vec<(String, String)>, String> {
    let bytes = read_file(disk, path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let quoted = quote_names(text);
    let table: toml::Table = quoted.parse().map_err(|error: toml::de::Error| told(text, &quoted, &error))?;
    let mut values = Vec::new();
    for (name, value) in table {
        flatten(name, value, &mut values)?;
    }
    Ok(values)
}

/// The mistake with the line as its writer knows it, not as it was handed on.
fn told(text: &str, quoted: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let before = error.span().and_then(|span| quoted.get(..span.start));
    let Some(number) = before.map(|before| before.matches('\n').count()) else { return message.to_owned() };
    let line = text.lines().nth(number).unwrap_or_default();
    let hint = if is_property(line) {
        "\nthis looks like Java properties; config.toml is TOML: quote the values, as in listeners = \"PLAINTEXT://:9092\""
    } else {
        ""
    };
    format!("line {}: {message}\n{line}{hint}", number + 1)
}

/// `name=value` with a text that is not in quotes.
fn is_property(line: &str) -> bool {
    let value = name_before_equals(line).map(|(_, _, rest)| rest.trim_start().trim_start_matches('=').trim());
    let is_toml = |value: &str| value.starts_with(['"', '\'', '[', '{']);
    value.is_some_and(|value| !is_toml(value))
}

/// Puts bare dotted names before `=` in quotes, so that each is one key for TOML.
fn quote_names(text: &str) -> String {
    let mut in_text = false;
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        match name_before_equals(line).filter(|_| !in_text) {
            Some((indent, name, rest)) => {
                out.push_str(indent);
                out.push('"');
                out.push_str(name);
                out.push('"');
                out.push_str(rest);
            }
            None => out.push_str(line),
        }
        let fences = line.matches("\"\"\"").count() + line.matches("'''").count();
        in_text ^= fences % 2 == 1;
    }
    out
}

fn name_before_equals(line: &str) -> Option<(&str, &str, &str)> {
    let trimmed = line.trim_start();
    let (indent, _) = line.split_at(line.len() - trimmed.len());
    let end = trimmed.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-'))?;
    let (name, rest) = trimmed.split_at(end);
    (!name.is_empty() && rest.trim_start().starts_with('=')).then_some((indent, name, rest))
}

fn flatten(name: String, value: Value, into: &mut Vec<(String, String)>) -> Result<(), String> {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(format!("{name}.{key}"), value, into)?;
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| scalar(&name, item)).collect::<Result<_, _>>()?;
            into.push((name, items.join(",")));
        }
        value => {
            let text = scalar(&name, &value)?;
            into.push((name, text));
        }
    }
    Ok(())
}

fn scalar(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => {
            Err(format!("{name}: expected a text, a number, true, false or a list of these, got {}", other.type_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).expect("good")
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn dotted_names_tables_and_lists_are_settings() {
        let text = "num.partitions = 3\n[log]\nretention.ms = 7\ndirs = [\"/a\", \"/b\"]\n\n[auto.create]\ntopics.enable = false\n";
        let expected = [
            pair("auto.create.topics.enable", "false"),
            pair("log.dirs", "/a,/b"),
            pair("log.retention.ms", "7"),
            pair("num.partitions", "3"),
        ];
        let mut found = pairs(text);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_may_begin_another_name() {
        let found = pairs("log.dir = \"/d\"\n  log.dir.failure.timeout.ms=5 # why\n");
        assert_eq!(found, [pair("log.dir", "/d"), pair("log.dir.failure.timeout.ms", "5")]);
    }

    #[test]
    fn long_texts_are_left_alone() {
        assert_eq!(pairs("sasl.jaas.config = \"\"\"\na.b = c\n\"\"\"\n"), [pair("sasl.jaas.config", "a.b = c\n")]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_settings_or_a_mistake(text in "([a-z.]{1,8} = ([0-9]|\"\"\"|'|\\[|\\PC){0,6}\n|\\PC{0,20}\n){0,6}") {
            let _ = parse(&text);
        }

        #[test]
        fn quoting_changes_nothing_but_quotes(text in "(\\PC{0,20}\n){0,6}") {
            let without = |text: &str| text.replace('"', "");
            proptest::prop_assert_eq!(without(&quote_names(&text)), without(&text));
        }
    }

    #[test]
    fn java_properties_are_recognised() {
        let told = parse("# Kafka's\nnum.partitions=3\nlisteners=PLAINTEXT://:9092\n").expect_err("no TOML");
        assert!(told.starts_with("line 3: ") && told.contains("\nlisteners=PLAINTEXT://:9092\n"), "{told}");
        assert!(told.contains("looks like Java properties") && told.contains("quote the values"), "{told}");
        let other = parse("listeners = [\"a\"\n[b\n").expect_err("no TOML");
        assert!(!other.contains("Java"), "{other}");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse("num.partitions = 1\nnum.partitions = 2\n").is_err_and(|why| why.contains("duplicate key")));
        assert!(parse("a = 2020-01-01\n").is_err_and(|why| why.contains("got datetime")));
        assert!(parse("num.partitions 3\n").is_err());
    }
}
