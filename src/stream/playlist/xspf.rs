//! XSPF.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use super::{MOST_ENTRIES, Raw};

/// What is kept of one element's text, in bytes.
const TEXT: usize = 16 * 1024;

/// Which text is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Location,
    Title,
    Creator,
    Duration,
}

impl Field {
    fn of(name: &str) -> Option<Field> {
        match name {
            "location" => Some(Field::Location),
            "title" => Some(Field::Title),
            "creator" => Some(Field::Creator),
            "duration" => Some(Field::Duration),
            _ => None,
        }
    }
}

/// A track under way.
#[derive(Default)]
struct Track {
    location: String,
    title: String,
    creator: String,
    duration: String,
}

impl Track {
    /// The first of several counts.
    fn set(&mut self, field: Field, text: &str) {
        let slot = match field {
            Field::Location => &mut self.location,
            Field::Title => &mut self.title,
            Field::Creator => &mut self.creator,
            Field::Duration => &mut self.duration,
        };
        if slot.is_empty() {
            text.trim().clone_into(slot);
        }
    }

    fn finish(self) -> Raw {
        let title = match (self.creator.as_str(), self.title.as_str()) {
            ("", title) => title.to_owned(),
            (creator, "") => creator.to_owned(),
            (creator, title) => format!("{creator} - {title}"),
        };
        // In milliseconds.
        let seconds = self.duration.parse().ok().map(|millis: u64| millis as f64 / 1_000.0);
        Raw { link: self.location, title, seconds }
    }
}

/// None where it is no XML. What came before a break is not used, since the whole is small.
pub(super) fn parse(text: &str) -> Option<Vec<Raw>> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let (mut entries, mut track, mut field) = (Vec::new(), None::<Track>, None);
    let mut held = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => match start.local_name().into_inner() {
                "track" => track = Some(Track::default()),
                name => {
                    field = Field::of(name);
                    held.clear();
                }
            },
            Event::End(end) => match end.local_name().into_inner() {
                "track" => {
                    entries.extend(track.take().map(Track::finish));
                    if entries.len() == MOST_ENTRIES {
                        break;
                    }
                }
                _ => {
                    if let (Some(track), Some(field)) = (&mut track, field.take()) {
                        track.set(field, &held);
                    }
                }
            },
            Event::Text(text) => hold(&mut held, field, &text),
            Event::CData(text) => hold(&mut held, field, &text),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => hold(&mut held, field, character.encode_utf8(&mut [0; 4])),
                Ok(None) => match resolve_predefined_entity(&reference) {
                    Some(text) => hold(&mut held, field, text),
                    // Whoever wrote a link did not escape it.
                    None => hold(&mut held, field, &format!("&{};", &*reference)),
                },
                Err(_) => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    Some(entries)
}

fn hold(held: &mut String, field: Option<Field>, text: &str) {
    if field.is_some() && held.len() + text.len() <= TEXT {
        held.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::tests::entries;
    use super::*;

    #[test]
    fn tracks_are_read_with_who_made_them_and_how_long_they_are() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <!-- a comment -->
            <playlist version="1" xmlns="http://xspf.org/ns/0/"><title>All</title><location>http://no/</location>
            <trackList>
              <track><location>http://a/b?c=1&amp;d=2</location><title>T &lt;&#233;&gt;</title><creator>C</creator>
                <duration>1500</duration><extension application="x"><y>z</y></extension></track>
              <track><title><![CDATA[<one> & two]]></title><location> rel.ogg </location><location>http://second/</location></track>
              <track><title>no link</title></track>
            </trackList></playlist>"#;
        let expected = [
            ("http://a/b?c=1&d=2".to_owned(), Some("C - T <é>".to_owned()), Some(1_500)),
            ("https://radio.example/lists/rel.ogg".to_owned(), Some("<one> & two".to_owned()), None),
        ];
        assert_eq!(entries(Kind::Xspf, text.as_bytes()), expected);
    }

    #[test]
    fn names_may_have_a_prefix_and_links_a_bare_ampersand() {
        let text = "<x:playlist xmlns:x='u'><x:track><x:location>http://a/b?c&d=1</x:location></x:track></x:playlist>";
        assert_eq!(entries(Kind::Xspf, text.as_bytes())[0].0, "http://a/b?c&d=1");
    }

    #[test]
    fn latin_1_is_read_whatever_the_declaration_says() {
        let text = b"<?xml version='1.0' encoding='ISO-8859-1'?><playlist><track><location>http://a/</location><title>Caf\xe9</title></track></playlist>";
        assert_eq!(entries(Kind::Xspf, text)[0].1.as_deref(), Some("Café"));
    }

    #[test]
    fn entities_of_a_document_never_expand() {
        let text = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>
            <playlist><track><location>http://a/</location><title>&b;</title></track></playlist>";
        assert_eq!(entries(Kind::Xspf, text.as_bytes())[0].1.as_deref(), Some("&b;"));
        let text = "<!DOCTYPE x SYSTEM 'file:///etc/passwd' [<!ENTITY c SYSTEM 'file:///etc/passwd'>]>
            <playlist><track><location>http://a/&c;</location></track></playlist>";
        assert_eq!(entries(Kind::Xspf, text.as_bytes())[0].0, "http://a/&c;");
    }

    #[test]
    fn broken_xml_is_none_and_a_megabyte_of_it_takes_no_time() {
        assert!(parse("<playlist><track></playlist>").is_none());
        for piece in ["<a>", "<track>", "a='' ", "&", "&#1;", "<!--", "<![CDATA["] {
            let text = format!("<playlist {}", piece.repeat(super::super::TEXT_CAP / piece.len()));
            let began = std::time::Instant::now();
            let _ = parse(&text);
            assert!(began.elapsed().as_secs() < 5, "{piece}: {:?}", began.elapsed());
        }
    }
}
