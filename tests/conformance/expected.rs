//! What is known beforehand about some files, each with its reason: expected.txt.

use std::collections::{HashMap, HashSet};

/// What has to come of a file that is not simply played right.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// It is refused, or given up, with these words in the message.
    Refused(String),
    /// It is refused with these words, or right.
    MayBeRefused(String),
    /// Something about its sound is known to differ: these words are in what is found.
    Differs(String),
    /// What it has to sound like is in this file of the suite (WAV, or `.raw`: mono floats at the file's rate).
    Like(String),
}

pub struct Expectations {
    by_name: HashMap<String, Expected>,
    met: HashSet<String>,
}

impl Expectations {
    pub fn listed() -> Expectations {
        Expectations { by_name: parse(include_str!("expected.txt")), met: HashSet::new() }
    }

    /// What is said of a file itself, else of the folders that it is in, the innermost first.
    pub fn of(&mut self, name: &str) -> Option<&Expected> {
        let folders = name.rmatch_indices('/').map(|(at, _)| format!("{}/*", &name[..at]));
        let key =
            std::iter::once(name.to_owned()).chain(folders).find(|key| self.by_name.contains_key(key))?;
        self.met.insert(key.clone());
        self.by_name.get(&key)
    }

    /// Lines about files of a suite that is here, but has them no longer.
    pub fn unmet(&self, suite: &str) -> Vec<&str> {
        let of_suite = |name: &&String| name.split('/').next() == Some(suite);
        let names = self.by_name.keys().filter(of_suite);
        names.filter(|name| !self.met.contains(*name)).map(String::as_str).collect()
    }
}

/// Lines of `file | outcome: words | reason`; `folder/*` for what is in a folder.
fn parse(text: &str) -> HashMap<String, Expected> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, outcome, reason] = fields[..] else { panic!("not three fields: {line}") };
        assert!(!reason.is_empty(), "no reason: {line}");
        let (kind, words) = outcome.split_once(':').unwrap_or_else(|| panic!("no outcome: {line}"));
        let words = words.trim().to_owned();
        assert!(!words.is_empty(), "no words: {line}");
        let expected = match kind {
            "refused" => Expected::Refused(words),
            "may be refused" => Expected::MayBeRefused(words),
            "differs" => Expected::Differs(words),
            "like" => Expected::Like(words),
            _ => panic!("unknown outcome: {line}"),
        };
        (name.to_owned(), expected)
    };
    lines.map(line).collect()
}

#[test]
fn each_listed_expectation_can_be_read_and_has_a_reason() {
    assert!(!Expectations::listed().by_name.is_empty());
}
