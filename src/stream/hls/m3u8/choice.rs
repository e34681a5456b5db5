//! Which of several forms of the same recording to play.

use std::cmp::Reverse;

use m3u8_rs::{AlternativeMedia, AlternativeMediaType, VariantStream};
use url::Url;

use super::{LONGEST_LINE, attributes, link};

/// Variants and renditions that are looked at.
const MOST_VARIANTS: usize = 100;

/// How well a form suits; the smaller the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suits {
    /// A rendition of sound alone beside the pictures.
    Rendition,
    /// Sound alone.
    Sound,
    /// With pictures, which are thrown away.
    Pictures,
}

/// What is played of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Decodes {
    /// All of it.
    Whole,
    /// HE-AAC, of which the half that every decoder knows can be heard.
    Core,
}

/// Addresses of media playlists, the best first.
pub(super) fn parse(lines: &[&str], base: &Url) -> Result<Vec<Url>, &'static str> {
    let (variants, renditions) = read(lines);
    if variants.is_empty() {
        return Err("it lists nothing that can be played");
    }
    let mut forms = Vec::new();
    for variant in &variants {
        let Some(decodes) = decodes(variant.codecs.as_deref()) else { continue };
        let group = renditions.iter().filter(|media| {
            media.media_type == AlternativeMediaType::Audio && variant.audio.as_ref() == Some(&media.group_id)
        });
        for media in group {
            let Some(url) = media.uri.as_deref().and_then(|uri| link(base, uri)) else { continue };
            // Within a group what is meant to be heard counts more than anything else.
            let meant = (!media.default, !media.autoselect);
            forms.push((decodes, Suits::Rendition, meant, Reverse(variant.bandwidth), url));
        }
        let Some(url) = link(base, &variant.uri) else { continue };
        let pictures = has_pictures(variant);
        let suits = if pictures { Suits::Pictures } else { Suits::Sound };
        // Of what is thrown away, the less the better.
        let rate = if pictures { u64::MAX - variant.bandwidth } else { variant.bandwidth };
        forms.push((decodes, suits, (false, false), Reverse(rate), url));
    }
    if forms.is_empty() {
        return Err("its sound is in a codec that cannot be played");
    }
    forms.sort();
    let mut urls: Vec<Url> = Vec::new();
    for (.., url) in forms {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls.truncate(MOST_VARIANTS);
    Ok(urls)
}

fn read(lines: &[&str]) -> (Vec<VariantStream>, Vec<AlternativeMedia>) {
    let (mut variants, mut renditions) = (Vec::new(), Vec::new());
    let mut lines = lines.iter().filter(|line| line.len() <= LONGEST_LINE).peekable();
    while let Some(line) = lines.next() {
        if variants.len() == MOST_VARIANTS || renditions.len() == MOST_VARIANTS {
            break;
        }
        let is_variant = line.starts_with("#EXT-X-STREAM-INF:");
        if !is_variant && !line.starts_with("#EXT-X-MEDIA:") {
            continue;
        }
        let (name, list) = line.split_once(':').unwrap_or((line, ""));
        let mut text = format!("#EXTM3U\n{name}:{}\n", attributes(list));
        if is_variant {
            // Comments may stand between.
            while lines.next_if(|next| next.starts_with('#') && !next.starts_with("#EXT-X-")).is_some() {}
            let Some(uri) = lines.next_if(|next| !next.starts_with('#')) else { continue };
            text = format!("{text}{uri}\n");
        }
        if let Ok((_, read)) = m3u8_rs::parse_master_playlist(text.as_bytes()) {
            variants.extend(read.variants.into_iter().filter(|variant| !variant.uri.is_empty()));
            renditions.extend(read.alternatives);
        }
    }
    (variants, renditions)
}

fn codecs(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(|codec| codec.trim().to_ascii_lowercase()).filter(|codec| !codec.is_empty())
}

fn has_pictures(variant: &VariantStream) -> bool {
    const VIDEO: [&str; 10] =
        ["avc1", "avc3", "hvc1", "hev1", "dvh1", "dvhe", "vp08", "vp09", "av01", "mp4v"];
    match variant.codecs.as_deref() {
        Some(list) if codecs(list).any(|codec| VIDEO.iter().any(|video| codec.starts_with(video))) => true,
        _ => variant.resolution.is_some() || variant.frame_rate.is_some(),
    }
}

/// What can be heard of these codecs; None for nothing. Where none is told, it may be anything.
fn decodes(list: Option<&str>) -> Option<Decodes> {
    const SOUND: [&str; 9] = ["mp4a", "ac-3", "ec-3", "ac-4", "mp3", "opus", "flac", "alac", "dts"];
    let Some(list) = list else { return Some(Decodes::Whole) };
    let mut sound =
        codecs(list).filter(|codec| SOUND.iter().any(|sound| codec.starts_with(sound))).peekable();
    if sound.peek().is_none() {
        return Some(Decodes::Whole);
    }
    sound
        .filter_map(|codec| match codec.as_str() {
            "mp4a.40.2" | "mp4a.40.02" | "mp4a.67" | "mp4a.40.34" | "mp4a.69" | "mp4a.6b" | "mp3"
            | "opus" | "flac" | "alac" | "mp4a" | "mp4a.40" => Some(Decodes::Whole),
            "mp4a.40.5" | "mp4a.40.05" | "mp4a.40.29" => Some(Decodes::Core),
            _ => None,
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::super::tests::base;
    use super::super::{Playlist, parse};

    fn chosen(text: &str) -> Result<Vec<String>, &'static str> {
        let Playlist::Master(urls) = parse(text, &base())? else { panic!("taken for a media playlist") };
        Ok(urls.iter().map(|url| url.path().rsplit('/').next().unwrap().to_owned()).collect())
    }

    #[test]
    fn sound_alone_is_preferred_and_the_best_of_it() {
        let order = chosen(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000000,CODECS=\"avc1.4d,mp4a.40.2\",RESOLUTION=640x360\nmid.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\nlow.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS=\"avc1.4d,mp4a.40.2\"\nsmall.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=256000,CODECS=\"mp4a.40.5\"\nhe.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS=\"mp4a.40.2\"\n# a comment\nhigh.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=384000,CODECS=\"ec-3\"\nsurround.m3u8\n",
        );
        assert_eq!(order.unwrap(), ["high.m3u8", "low.m3u8", "small.m3u8", "mid.m3u8", "he.m3u8"]);
    }

    #[test]
    fn a_rendition_that_is_meant_to_be_heard_comes_first() {
        let order = chosen(
            "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"Deutsch\",URI=\"de.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"English\",DEFAULT=YES,AUTOSELECT=YES,URI=\"en.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"dolby\",NAME=\"English\",DEFAULT=YES,URI=\"dolby.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"aac\",NAME=\"x\",DEFAULT=YES,URI=\"text.m3u8\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"avc1.4d,mp4a.40.2\",AUDIO=\"aac\"\nvideo.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=3,CODECS=\"avc1.4d,ec-3\",AUDIO=\"dolby\"\nvideo2.m3u8\n",
        );
        assert_eq!(order.unwrap(), ["en.m3u8", "de.m3u8", "video.m3u8"]);
    }

    #[test]
    fn what_is_broken_spoils_only_itself() {
        let order = chosen(
            "#EXTM3U\n#EXT-X-STREAM-INF:CODECS=\"mp4a.40.2\"\nwithout-bandwidth.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=5\n\
             #EXT-X-STREAM-INF:BANDWIDTH=6,FOO\nodd.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=7\nhttp://radio.example/plain.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=4\ngood.m3u8\n",
        );
        assert_eq!(order.unwrap(), ["odd.m3u8", "good.m3u8"]);
    }

    #[test]
    fn codecs_that_cannot_be_played_are_named() {
        let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"ec-3\"\na.m3u8\n";
        assert_eq!(chosen(text), Err("its sound is in a codec that cannot be played"));
    }
}
