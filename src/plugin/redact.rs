//! Takes secrets out of what a plugin says: those that it was given, and what looks like one.

use std::sync::Arc;

use segue_protocol::Fault;

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";
/// Replacing shorter secrets would garble every line.
const MIN_SECRET_BYTES: usize = 4;
/// What follows these words is secret up to the end of the quoted text, or of the line.
const HEADERS: [&str; 4] = ["authorization", "set-cookie", "cookie", "x-api-key"];

/// Knows one plugin's secrets.
#[derive(Clone, Default)]
pub(super) struct Redactor(Arc<[String]>);

impl Redactor {
    /// Of these secrets, the longest first, since one may be a part of another.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Redactor {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Redactor(secrets.into())
    }

    /// The same failure, fit for logs and screens: its words may be the plugin's.
    pub(super) fn clean_fault(&self, fault: Fault) -> Fault {
        Fault {
            message: self.clean(&fault.message),
            reason: fault.reason.map(|reason| self.clean(&reason)),
            ..fault
        }
    }

    /// The same text without given secrets, credentials in headers, users in URLs and values in queries.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.0.iter() {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        without_queries(&without_users(&without_headers(&text)))
    }
}

/// `Authorization: Bearer x` → `Authorization: [redacted]`; also as a quoted or assigned value.
fn without_headers(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((begin, name)) = first_of(&lower[at..], &HEADERS) {
        let after_name = at + begin + name.len();
        let value = lower[after_name..].trim_start_matches(['"', '\'', ' ']);
        let Some(value) = value.strip_prefix([':', '=']) else {
            clean.push_str(&text[at..after_name]);
            at = after_name;
            continue;
        };
        let value = value.trim_start_matches(' ');
        let start = text.len() - value.len();
        let end = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(text.len(), |len| start + 1 + len),
            _ => text.len(),
        };
        let quoted = usize::from(value.starts_with(['"', '\'']));
        clean.push_str(&text[at..start + quoted]);
        clean.push_str(REDACTED);
        at = end;
    }
    clean.push_str(&text[at..]);
    clean
}

fn first_of(text: &str, words: &[&'static str]) -> Option<(usize, &'static str)> {
    words.iter().filter_map(|word| Some((text.find(word)?, *word))).min_by_key(|(at, _)| *at)
}

/// `https://user:password@host/` → `https://[redacted]@host/`.
fn without_users(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let end = after.find(|c: char| is_end(c) || matches!(c, '/' | '?' | '#')).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(user) => {
                clean.push_str(REDACTED);
                &after[user..]
            }
            None => after,
        };
    }
    clean.push_str(rest);
    clean
}

/// `/x?user=me&token=abc` → `/x?user=[redacted]&token=[redacted]`.
fn without_queries(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('?') {
        let (before, query) = rest.split_at(at + 1);
        clean.push_str(before);
        let end = query.find(|c: char| is_end(c) || c == '#').unwrap_or(query.len());
        let (query, after) = query.split_at(end);
        rest = after;
        if !query.contains('=') {
            // A question, or a query that is one value.
            let in_url = before.split(is_end).next_back().is_some_and(|word| word.contains("://"));
            clean.push_str(if in_url && !query.is_empty() { REDACTED } else { query });
            continue;
        }
        for (index, pair) in query.split('&').enumerate() {
            let joint = if index > 0 { "&" } else { "" };
            match pair.split_once('=') {
                Some((name, _)) => clean.extend([joint, name, "=", REDACTED]),
                None => clean.extend([joint, REDACTED]),
            }
        }
    }
    clean.push_str(rest);
    clean
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_headers_users_and_query_values_are_taken_out() {
        let redactor = Redactor::new(["hunter2".to_owned(), "hunter2-longer".to_owned(), "abc".to_owned()]);
        for (text, clean) in [
            ("login hunter2-longer, then hunter2", "login [redacted], then [redacted]"),
            ("abc is too short", "abc is too short"),
            ("Authorization: Bearer xyz==", "Authorization: [redacted]"),
            (
                "{\"authorization\": \"Basic eA==\", \"a\": 1}",
                "{\"authorization\": \"[redacted]\", \"a\": 1}",
            ),
            (
                "headers={'Cookie': 'a=b; c=d', 'Accept': '*'}",
                "headers={'Cookie': '[redacted]', 'Accept': '*'}",
            ),
            ("authorization failed", "authorization failed"),
            (
                "GET https://me:pw@host:1/x?u=me&p=pw#f ok",
                "GET https://[redacted]@host:1/x?u=[redacted]&p=[redacted]#f ok",
            ),
            ("GET /rest/ping?t=1&flag HTTP/1.1", "GET /rest/ping?t=[redacted]&[redacted] HTTP/1.1"),
            ("\"https://host/x?token\"", "\"https://host/x?[redacted]\""),
            ("what? nothing = nothing", "what? nothing = nothing"),
            ("mail me@host", "mail me@host"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(authorization|:|=|\"|'|://|\\?|@|é| |[a-z]){0,40}") {
            Redactor::default().clean(&text);
        }
    }
}
