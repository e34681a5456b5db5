//! Text whose character set nobody announces.

/// What is kept of a text, in characters.
const MOST: usize = 1_024;

/// The characters of the bytes 80 to 9F in Windows-1252. Five are not assigned; they stay control characters.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// UTF-8 where it is valid, else Windows-1252, of which Latin-1 is a part.
pub(in crate::stream) fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(error) => {
            let (valid, _) = bytes.split_at(error.valid_up_to());
            match std::str::from_utf8(valid) {
                // Cut in the middle of its last character: what stands before it shows that it is UTF-8.
                Ok(text) if error.error_len().is_none() && !text.is_ascii() => text.to_owned(),
                _ => bytes.iter().copied().map(windows_1252).collect(),
            }
        }
    }
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Text as it may be shown: decoded, without control characters and outer spaces, at most 1,024 characters.
pub(in crate::stream) fn shown(bytes: &[u8]) -> String {
    tidy(&decode(bytes))
}

/// What `shown` does to text that is decoded already.
pub(in crate::stream) fn tidy(text: &str) -> String {
    // Marks that turn the direction of writing would turn what stands behind the title, too.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let kept: String =
        text.chars().filter(|&character| !character.is_control() && !turns(character)).collect();
    kept.trim().chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_character_set_is_found_out() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            ("Sigur Rós – ágætis".as_bytes(), "Sigur Rós – ágætis"),
            (b"Sigur R\xf3s", "Sigur Rós"),
            (b"Caf\xe9", "Café"),
            (b"\x93quoted\x94 \x96 \x80", "“quoted” – €"),
            (b"a\x00b\x1b[31m\r\nc\x9d", "ab[31mc"),
            (b"  spaces\t", "spaces"),
            ("a\u{202e}b\u{2066}c".as_bytes(), "abc"),
            // Cut in mid-character after one that was whole.
            (b"\xc3\xa9t\xc3", "ét"),
            (b"", ""),
        ] {
            assert_eq!(shown(bytes), text);
        }
        assert_eq!(shown(&[0xe9; 5_000]).chars().count(), MOST);
    }
}
