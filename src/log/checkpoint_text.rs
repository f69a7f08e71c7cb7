//! The text format of all of Kafka's checkpoint files: a version line, a line with the number of entries, one entry a line.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of a checkpoint: {reason}")]
pub struct TextError {
    pub line: usize,
    pub reason: String,
}

/// One entry line, with its number for the error text.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    number: usize,
    text: &'a str,
}

pub struct Lines;

impl Lines {
    /// The entry lines of a version 0 checkpoint.
    pub fn parse(text: &str) -> Result<Vec<Line<'_>>, TextError> {
        let mut lines = text.lines().enumerate().map(|(at, text)| Line { number: at + 1, text: text.trim() });
        let version = lines.next().unwrap_or(Line { number: 1, text: "" });
        if version.text != "0" {
            return Err(version.error("expected version 0"));
        }
        let count_line = lines.next().unwrap_or(Line { number: 2, text: "" });
        let count: usize = count_line.number(count_line.text)?;
        let entries: Vec<Line<'_>> = lines.filter(|line| !line.text.is_empty()).collect();
        if entries.len() != count {
            return Err(count_line.error(&format!("{count} entries announced, {} are there", entries.len())));
        }
        Ok(entries)
    }
}

impl<'a> Line<'a> {
    /// Exactly `N` fields parted by blanks.
    pub fn fields<const N: usize>(&self) -> Result<[&'a str; N], TextError> {
        let fields: Vec<&str> = self.text.split_whitespace().collect();
        fields.try_into().map_err(|fields: Vec<&str>| self.error(&format!("{} fields, expected {N}", fields.len())))
    }

    pub fn number<T: std::str::FromStr>(&self, field: &str) -> Result<T, TextError> {
        field.parse().map_err(|_| self.error(&format!("{field:?} is no number that fits")))
    }

    pub fn error(&self, reason: &str) -> TextError {
        TextError { line: self.number, reason: reason.to_owned() }
    }
}
