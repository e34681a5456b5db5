//! Where the URLs of a `stream` reply lead, and how long they last.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use segue_protocol::manifest::Scope;
use segue_protocol::models::StreamInfo;
use url::{Host, Url};

use super::session::{Session, Trouble};
use crate::stream::out_of_reach;

/// How long resolving a name may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// A URL that lasts shorter than this is hardly fetched before it is gone.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) async fn check(session: &mut Session<'_>, info: &StreamInfo) {
    let mut verdict = Ok(String::new());
    for url in std::iter::once(&info.url).chain(&info.alternatives) {
        verdict = match (verdict, allowed(url, &session.bench.granted).await) {
            // The first is the one that is played.
            (Ok(words), Ok(_)) if !words.is_empty() => Ok(words),
            (Ok(_), now) => now,
            (Err(trouble), _) => Err(trouble),
        };
    }
    match verdict {
        Ok(words) => session.notes.pass("url", words),
        Err(trouble) => session.notes.fail("url", trouble.words, trouble.advice),
    }
    match expiry(info, Timestamp::now()) {
        Ok(Some(words)) => session.notes.pass("expiry", words),
        Ok(None) => session.notes.skip("expiry", "it says nothing about how long its URLs last", ""),
        Err(trouble) => session.notes.fail("expiry", trouble.words, trouble.advice),
    }
}

/// URLs are not shown: they may hold credentials.
async fn allowed(text: &str, granted: &[Scope]) -> Result<String, Trouble> {
    let shape = "give a complete http, https or file URL";
    let url =
        Url::parse(text).map_err(|error| Trouble::new(format!("a URL cannot be read: {error}"), shape))?;
    if url.scheme() == "file" {
        return file(&url, granted);
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Trouble::new(format!("a URL begins with {}:", url.scheme()), shape));
    }
    if text.len() > crate::track::MAX_URI_BYTES {
        return Err(Trouble::new(format!("a URL has {} bytes", text.len()), "keep it below 8 KiB"));
    }
    let Some(host) = url.host() else { return Err(Trouble::new("a URL has no host", shape)) };
    let local = granted.contains(&Scope::LocalNetwork);
    let near = match host {
        Host::Ipv4(v4) => out_of_reach(IpAddr::V4(v4)),
        Host::Ipv6(v6) => out_of_reach(IpAddr::V6(v6)),
        Host::Domain(name) => match resolved(name).await {
            // Without the network nobody can tell; the daemon looks again.
            None => return Ok(format!("{}; its host's name cannot be resolved here", url.scheme())),
            Some(found) if found.iter().all(|address| out_of_reach(*address).is_some()) => {
                found.first().and_then(|address| out_of_reach(*address))
            }
            Some(_) => None,
        },
    };
    match near {
        Some(_) if !local => Err(Trouble::new(
            "a URL leads to this machine or to a link-local address",
            "ask for the scope “local-network” in plugin.json, or give another URL",
        )),
        Some(_) => Ok(format!("{}, to this machine, by the scope “local-network”", url.scheme())),
        None => Ok(url.scheme().to_owned()),
    }
}

async fn resolved(name: &str) -> Option<Vec<IpAddr>> {
    let found = tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
    let found: Vec<IpAddr> = found.ok()?.ok()?.map(|address| address.ip()).collect();
    (!found.is_empty()).then_some(found)
}

fn file(url: &Url, granted: &[Scope]) -> Result<String, Trouble> {
    let path = url.to_file_path();
    let path =
        path.map_err(|()| Trouble::new("a file URL has a host", "write file:/// and an absolute path"))?;
    let below = |folder: &Path| path.starts_with(folder);
    if granted.iter().any(|scope| matches!(scope, Scope::FilesRead(folder) if below(folder))) {
        return match path.is_file() {
            true => Ok("file, below a folder that it may read".to_owned()),
            false => Err(Trouble::new("a file URL names no file", "name a file that is there")),
        };
    }
    Err(Trouble::new(
        "a file URL is not below a folder that it may read",
        "ask for the scope “files.read:…” in plugin.json, and for “files.read:*” name the folder with --folder",
    ))
}

fn expiry(info: &StreamInfo, now: Timestamp) -> Result<Option<String>, Trouble> {
    let shown = |left: Duration| format!("it lasts {} s", left.as_secs());
    let in_ms = info.expires_in_ms.map(Duration::from_millis);
    if let Some(left) = in_ms
        && left < SHORTEST
    {
        let words = format!("expires_in_ms is {}: it is gone before it can be fetched", left.as_millis());
        return Err(Trouble::new(words, "count from now, in milliseconds"));
    }
    let Some(text) = &info.expires_at else { return Ok(in_ms.map(shown)) };
    let at: Timestamp = text.parse().map_err(|_| {
        let words = format!("expires_at is {}, which is no time", super::run::quoted(text));
        Trouble::new(words, "write it by RFC 3339, such as 2031-05-04T12:00:00Z")
    })?;
    match Duration::try_from(at.duration_since(now)) {
        Ok(left) if left >= SHORTEST => Ok(Some(in_ms.map_or_else(|| shown(left), shown))),
        _ => Err(Trouble::new(
            format!("expires_at is {}, which is past", super::run::quoted(text)),
            "give a time in the future, with its zone; or expires_in_ms, which needs no clock",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_url_lasts_is_judged_by_both_fields() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let check = |at: Option<&str>, in_ms: Option<u64>| {
            let info = StreamInfo {
                expires_at: at.map(str::to_owned),
                expires_in_ms: in_ms,
                ..StreamInfo::default()
            };
            expiry(&info, now).map_err(|trouble| trouble.words)
        };
        assert_eq!(check(None, None), Ok(None));
        assert_eq!(check(None, Some(60_000)), Ok(Some("it lasts 60 s".to_owned())));
        assert_eq!(check(Some("2030-01-01T01:00:00+00:30"), None), Ok(Some("it lasts 1800 s".to_owned())));
        assert_eq!(check(Some("2030-01-01T00:01:00Z"), Some(30_000)), Ok(Some("it lasts 30 s".to_owned())));
        for (at, in_ms) in [
            (Some("2029-12-31T23:59:59Z"), None),
            (Some("2030-01-01T00:30:00+01:00"), None),
            (Some("tomorrow"), Some(60_000)),
            (Some("2030-01-01T00:01:00"), None),
            (None, Some(0)),
        ] {
            assert!(check(at, in_ms).is_err(), "{at:?} {in_ms:?}");
        }
    }
}
