//! PLS: `[playlist]`, then `File1=`, `Title1=`, `Length1=`, in any order.

use std::collections::BTreeMap;

use super::{MOST_ENTRIES, Raw, lines};

pub(super) fn parse(text: &str) -> Vec<Raw> {
    let mut entries: BTreeMap<u32, Raw> = BTreeMap::new();
    for line in lines(text) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        let digits = key.trim_start_matches(|character: char| !character.is_ascii_digit());
        let Ok(number) = digits.parse() else { continue };
        if entries.len() == MOST_ENTRIES && !entries.contains_key(&number) {
            continue;
        }
        let (name, value) = (&key[..key.len() - digits.len()], value.trim());
        match name {
            "file" => value.clone_into(&mut entries.entry(number).or_default().link),
            "title" => value.clone_into(&mut entries.entry(number).or_default().title),
            "length" => {
                let seconds = value.parse().ok().filter(|seconds: &f64| seconds.is_finite());
                entries.entry(number).or_default().seconds = seconds;
            }
            _ => {}
        }
    }
    entries.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::tests::entries;
    use super::*;

    #[test]
    fn entries_come_in_the_order_of_their_numbers() {
        let text =
            b"[playlist]\r\nNumberOfEntries=2\r\nTitle10=Ten\r\nfile10 = http://a/ten\r\nFile2=two\r\n\
            Length2=-1\r\nLENGTH10=61\r\nTitle3=without a link\r\nFilex=no\r\nVersion=2\r\n";
        let expected = [
            ("https://radio.example/lists/two".to_owned(), None, None),
            ("http://a/ten".to_owned(), Some("Ten".to_owned()), Some(61_000)),
        ];
        assert_eq!(entries(Kind::Pls, text), expected);
    }

    #[test]
    fn links_may_hold_the_sign_that_divides() {
        let found = entries(Kind::Pls, b"File1=http://a/b?c=d&e=f");
        assert_eq!(found[0].0, "http://a/b?c=d&e=f");
    }

    #[test]
    fn a_thousand_entries_are_kept() {
        let text: String = (0..5_000).map(|number| format!("File{number}=http://a/{number}\n")).collect();
        assert_eq!(entries(Kind::Pls, text.as_bytes()).len(), MOST_ENTRIES);
    }
}
