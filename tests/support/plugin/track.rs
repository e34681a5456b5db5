//! The tracks that the plugin has, and where their URLs come from.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::server::Server;

/// Makes a URL, and says how long it is good.
#[derive(Clone)]
struct Maker(Arc<dyn Fn() -> (String, Duration) + Send + Sync>);

impl std::fmt::Debug for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function")
    }
}

/// Where a track's URL comes from.
#[derive(Clone, Debug)]
enum Source {
    Fixed(String),
    /// The next one at each call; the last for all further ones.
    InTurn(Vec<String>),
    /// Made at each call: URL, and how long it is good.
    Made(Maker),
    /// A fresh one at each call, with lives of these lengths; the last is for all further ones.
    Fresh {
        path: String,
        lives: Vec<Duration>,
        tell_expiry: bool,
        /// Where all but the first lead, if elsewhere.
        then_at: Option<String>,
    },
}

/// A track that the plugin has.
#[derive(Clone, Debug)]
pub struct Track {
    source: Source,
    content_type: &'static str,
    pub(super) title: String,
    pub(super) duration: Option<Duration>,
    alternatives: Vec<String>,
    headers: HashMap<String, String>,
    asked: usize,
}

impl Track {
    /// A track with one URL.
    pub fn at(url: impl Into<String>, content_type: &'static str) -> Track {
        Track::from_source(Source::Fixed(url.into()), content_type)
    }

    /// A track whose URL is another one at each call; the last one is for all further calls.
    pub fn in_turn(urls: Vec<String>, content_type: &'static str) -> Track {
        Track::from_source(Source::InTurn(urls), content_type)
    }

    /// A track whose URL is made at each call, and is good for as long as the function says.
    pub fn made(
        make: impl Fn() -> (String, Duration) + Send + Sync + 'static,
        content_type: &'static str,
    ) -> Track {
        Track::from_source(Source::Made(Maker(Arc::new(make))), content_type)
    }

    /// With other addresses of the same file.
    pub fn or_at(mut self, urls: Vec<String>) -> Track {
        self.alternatives = urls;
        self
    }

    /// With a header for its requests.
    pub fn with_header(mut self, name: &str, value: &str) -> Track {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A track of the test's server whose URLs run out after these times: the first one after the first, and so on.
    /// The plugin says nothing about it: only 403 tells.
    pub fn expiring(path: &str, content_type: &'static str, lives: &[Duration]) -> Track {
        let lives = lives.to_vec();
        Track::from_source(
            Source::Fresh { path: path.to_owned(), lives, tell_expiry: false, then_at: None },
            content_type,
        )
    }

    /// The plugin tells when the URLs run out.
    pub fn and_says_so(mut self) -> Track {
        if let Source::Fresh { tell_expiry, .. } = &mut self.source {
            *tell_expiry = true;
        }
        self
    }

    /// All URLs but the first lead to this path of the server.
    pub fn then_at(mut self, path: &str) -> Track {
        if let Source::Fresh { then_at, .. } = &mut self.source {
            *then_at = Some(path.to_owned());
        }
        self
    }

    /// With this title.
    pub fn titled(mut self, title: &str) -> Track {
        self.title = title.to_owned();
        self
    }

    /// With this length in its metadata.
    pub fn lasting(mut self, duration: Duration) -> Track {
        self.duration = Some(duration);
        self
    }

    fn from_source(source: Source, content_type: &'static str) -> Track {
        Track {
            source,
            content_type,
            title: String::new(),
            duration: None,
            alternatives: Vec::new(),
            headers: HashMap::new(),
            asked: 0,
        }
    }

    /// The result of the next `stream`.
    pub(super) fn stream(&mut self, server: &Server) -> Value {
        let content_type = self.content_type;
        let nth = self.asked;
        self.asked += 1;
        let mut info = match &self.source {
            Source::Fixed(url) => json!({"url": url, "content_type": content_type}),
            Source::InTurn(urls) => {
                json!({"url": urls[nth.min(urls.len() - 1)], "content_type": content_type})
            }
            Source::Made(make) => {
                let (url, life) = (make.0)();
                let life = life.as_millis() as u64;
                json!({"url": url, "content_type": content_type, "expires_in_ms": life})
            }
            Source::Fresh { path, lives, tell_expiry, then_at } => {
                let path = then_at.as_ref().filter(|_| nth > 0).unwrap_or(path);
                let life = lives[nth.min(lives.len() - 1)];
                let mut info = json!({"url": server.fresh_url(path, life), "content_type": content_type});
                if *tell_expiry {
                    info["expires_in_ms"] = json!(life.as_millis() as u64);
                }
                info
            }
        };
        if !self.alternatives.is_empty() {
            info["alternatives"] = json!(self.alternatives);
        }
        if !self.headers.is_empty() {
            info["headers"] = json!(self.headers);
        }
        info
    }
}
