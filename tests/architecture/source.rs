//! Source files as the architecture test sees them: code without comments and strings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub struct SourceFile {
    /// Below `src`, with `/`.
    pub path: String,
    pub lines: usize,
    head: bool,
    code: String,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let head = text.starts_with("//!");
        SourceFile { path: path.to_owned(), lines: text.lines().count(), head, code: code_of(text) }
    }

    /// The floor's folder; empty for `lib.rs` and `main.rs`.
    pub fn folder(&self) -> &str {
        self.path.split_once('/').map_or("", |(folder, _)| folder)
    }

    pub fn has_head(&self) -> bool {
        self.head
    }

    /// Nothing but tests.
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    pub fn says(&self, word: &str) -> bool {
        says(&self.code, word)
    }

    pub fn says_outside_tests(&self, word: &str) -> bool {
        says(self.code_outside_tests(), word)
    }

    pub fn count_outside_tests(&self, text: &str) -> usize {
        self.code_outside_tests().matches(text).count()
    }

    /// Whether code that is no test says `field`, which may begin with the dot behind whatever has it.
    pub fn says_field(&self, field: &str) -> bool {
        let code = self.code_outside_tests();
        let is_name = |character: char| character.is_alphanumeric() || character == '_';
        let ends = |at: usize| !code[at + field.len()..].chars().next().is_some_and(is_name);
        code.match_indices(field).any(|(at, _)| ends(at))
    }

    fn code_outside_tests(&self) -> &str {
        if self.is_test() {
            return "";
        }
        self.code.split("#[cfg(test)]").next().unwrap_or_default()
    }

    /// The folders behind `crate::`, in groups too.
    pub fn imported_folders(&self) -> BTreeSet<String> {
        let mut folders = BTreeSet::new();
        for (at, _) in self.code.match_indices("crate::") {
            let behind = &self.code[at + "crate::".len()..];
            match behind.strip_prefix('{') {
                Some(group) => folders.extend(top_words_of_group(group)),
                None => folders.extend(first_word(behind)),
            }
        }
        folders
    }

    /// Unindented `use super::` lines whose supers lead out of the floor.
    pub fn climbs_to_the_root(&self) -> impl Iterator<Item = &str> {
        let parts = self.path.split('/').count();
        let depth = if self.path.ends_with("/mod.rs") { parts - 1 } else { parts };
        let supers = |line: &str| {
            line.trim_start_matches("pub ").strip_prefix("use ").map_or(0, |path| path.matches("super::").count())
        };
        self.code.lines().filter(move |line| self.path.contains('/') && supers(line) >= depth)
    }
}

/// Every file below `src`.
pub fn all() -> Vec<SourceFile> {
    let src = repository().join("src");
    let mut files = Vec::new();
    collect(&src, &src, &mut files);
    assert!(files.len() > 20, "found no sources in {}", src.display());
    files
}

/// A file of the repository.
pub fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn repository() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

fn collect(src: &Path, dir: &Path, files: &mut Vec<SourceFile>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let below = path.strip_prefix(src).unwrap().to_str().unwrap().replace('\\', "/");
            files.push(SourceFile::new(&below, &fs::read_to_string(&path).unwrap()));
        }
    }
}

fn says(code: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

fn first_word(code: &str) -> Option<String> {
    let word: String = code.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    // Macros and items at the root of the crate begin otherwise than folders; keywords as in `pub(in crate::self)` do not occur.
    (!word.is_empty()).then_some(word)
}

/// First words at the outermost level of `{a::b, c::{d, e}}`, given what is behind the opening brace.
fn top_words_of_group(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut start = 0;
    let mut words = Vec::new();
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                words.extend(first_word(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                words.extend(first_word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    words
}

/// The text with comments and the contents of literals blanked out.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skip = match character {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            'r' if !ends_in_name(&code) => raw_string(rest).unwrap_or(0),
            '"' => string(rest),
            '\'' => char_literal(rest),
            _ => 0,
        };
        if skip == 0 {
            code.push(character);
            rest = &rest[character.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skip..];
        }
    }
    code
}

fn ends_in_name(code: &str) -> bool {
    // `br"..."` is raw too.
    let code = code.strip_suffix('b').unwrap_or(code);
    code.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    let body = 1 + hashes;
    if !rest[body..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[body + 1..].find(&end).map_or(rest.len(), |at| body + 1 + at + end.len()))
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal, 0 for a lifetime.
fn char_literal(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            characters.next();
            characters.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}
