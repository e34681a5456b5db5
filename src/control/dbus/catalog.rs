//! `org.segue.Catalog1`: what the plugins know.
//!
//! Each call is a task of its own: it waits for plugins, and nothing waits for it.

use std::collections::HashMap;

use zbus::{OwnedVariant, interface};

use super::errors::Error;
use super::slots::Slots;
use super::values::{Dict, put, put_list, text};
use crate::plugin::{Host, Search, SearchHit};
use crate::track::Kind;

/// The longest query, in bytes.
const MAX_QUERY_BYTES: usize = 1_000;
/// How many results a plugin is asked for when the caller does not say.
const USUAL_LIMIT: u32 = 50;

pub struct Catalog1 {
    plugins: Host,
    searches: Slots,
}

impl Catalog1 {
    pub fn new(plugins: Host) -> Catalog1 {
        Catalog1 { plugins, searches: Slots::default() }
    }
}

#[interface(name = "org.segue.Catalog1", introspection_docs = false)]
impl Catalog1 {
    /// Asks the enabled plugins. Options: `limit` (u, of each plugin), `plugin` (s, only this one), `kinds` (as, some of
    /// track, album and artist).
    #[zbus(out_args("results", "errors"))]
    async fn search(
        &self,
        words: String,
        options: HashMap<String, OwnedVariant>,
    ) -> Result<(Vec<Dict>, HashMap<String, (i32, String)>), Error> {
        if words.trim().is_empty() || words.len() > MAX_QUERY_BYTES {
            return Err(Error::BadArgument(format!("search for 1 to {MAX_QUERY_BYTES} bytes of text")));
        }
        let search = read(words, options)?;
        let Some(_running) = self.searches.take(search.plugin.as_ref()) else {
            return Err(Error::Busy(
                "too many searches are running; try again when they are done".to_owned(),
            ));
        };
        let outcome = self.plugins.search(&search).await;
        let results = outcome.results.iter().map(hit).collect();
        let errors = outcome.errors.into_iter().map(|(plugin, error)| {
            let code = i32::try_from(error.code.number()).unwrap_or(0);
            (plugin.to_string(), (code, text(&error.to_string())))
        });
        Ok((results, errors.collect()))
    }
}

fn read(query: String, options: HashMap<String, OwnedVariant>) -> Result<Search, Error> {
    let mut search = Search { query, limit: USUAL_LIMIT, kinds: Vec::new(), plugin: None };
    for (name, value) in options {
        let wrong = |what: &str| Error::BadArgument(format!("the option {name} must be {what}"));
        match name.as_str() {
            "limit" => search.limit = value.try_into().map_err(|_| wrong("a number (u)"))?,
            "plugin" => {
                let id: String = value.try_into().map_err(|_| wrong("a text (s)"))?;
                search.plugin = Some(id.parse().map_err(|_| wrong("the id of a plugin"))?);
            }
            "kinds" => {
                let words: Vec<String> = value.try_into().map_err(|_| wrong("a list of texts (as)"))?;
                let kinds = words.iter().map(|word| Kind::from_word(word)).collect::<Option<_>>();
                search.kinds = kinds.ok_or_else(|| wrong("some of track, album and artist"))?;
            }
            _ => (), // of a later version
        }
    }
    Ok(search)
}

/// Without the picture: its address may carry credentials.
fn hit(hit: &SearchHit) -> Dict {
    let mut dict = Dict::from([
        ("uri", text(&hit.uri.to_string()).into()),
        ("kind", hit.kind.as_str().into()),
        ("title", text(&hit.title).into()),
        ("explicit", hit.explicit.into()),
    ]);
    put_list(&mut dict, "artists", &hit.artists);
    put(&mut dict, "album", hit.album.as_deref().map(text));
    put(&mut dict, "duration_us", hit.duration.map(super::values::micros));
    dict
}
