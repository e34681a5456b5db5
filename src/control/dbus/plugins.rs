//! `org.segue.Plugins1`: what is installed, and what a person decided about it.
//!
//! Each call is a task of its own: hashing and handshakes take their time.

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, interface};

use super::caller::Callers;
use super::errors::Error;
use super::values::{Dict, check_text, text, texts};
use crate::plugin::{Host, HostError, PluginReview, PluginSummary};

/// No manifest asks for more scopes.
const MAX_SCOPES: usize = 256;

pub struct Plugins1 {
    pub(super) plugins: Host,
    pub(super) callers: Callers,
}

#[interface(name = "org.segue.Plugins1", introspection_docs = false)]
impl Plugins1 {
    #[zbus(out_args("plugins"))]
    async fn list(&self) -> Vec<Dict> {
        self.plugins.list().iter().map(summary).collect()
    }

    /// All that is needed to decide about a plugin.
    #[zbus(out_args("review"))]
    async fn inspect(&self, id: String) -> Result<Dict, Error> {
        check_text("id", &id)?;
        Ok(review(&self.plugins.inspect(&id)?))
    }

    /// Looks again at what is installed.
    async fn rescan(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        self.callers.may_decide(connection, &header).await?;
        self.plugins.rescan().await;
        Ok(())
    }

    /// Trusts exactly what was reviewed.
    async fn trust(
        &self,
        id: String,
        fingerprint: String,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        check_text("id", &id)?;
        check_text("fingerprint", &fingerprint)?;
        let who = self.callers.may_decide(connection, &header).await?;
        Ok(self.plugins.trust(&id, &fingerprint, &who).await?)
    }

    async fn enable(
        &self,
        id: String,
        scopes: Vec<String>,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        check_text("id", &id)?;
        if scopes.len() > MAX_SCOPES {
            return Err(Error::BadArgument(format!("grant at most {MAX_SCOPES} scopes")));
        }
        scopes.iter().try_for_each(|scope| check_text("scope", scope))?;
        let who = self.callers.may_decide(connection, &header).await?;
        Ok(self.plugins.enable(&id, &scopes, &who).await?)
    }

    async fn disable(
        &self,
        id: String,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        check_text("id", &id)?;
        let who = self.callers.may_decide(connection, &header).await?;
        Ok(self.plugins.disable(&id, &who).await?)
    }

    /// This plugin's entry in the list changed; empty: read the whole list again.
    #[zbus(signal)]
    pub async fn changed(emitter: &SignalEmitter<'_>, id: &str) -> zbus::Result<()>;
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        let sentence = text(&error.to_string());
        match error {
            HostError::NotInstalled(_) => Error::NoSuchPlugin(sentence),
            HostError::Stopping => Error::Stopping(sentence),
            _ => Error::Plugin(sentence),
        }
    }
}

fn summary(plugin: &PluginSummary) -> Dict {
    let capabilities: Vec<&str> = plugin.capabilities.iter().map(|capability| capability.as_str()).collect();
    Dict::from([
        ("id", text(&plugin.id).into()),
        ("name", text(&plugin.name).into()),
        ("version", text(&plugin.version).into()),
        ("state", plugin.state.as_str().into()),
        ("reason", text(&plugin.reason).into()),
        ("capabilities", capabilities.into()),
        ("scopes", texts(&plugin.requested).into()),
        ("granted", texts(&plugin.granted).into()),
        ("fingerprint", plugin.fingerprint.clone().into()),
        ("path", text(&plugin.path).into()),
        ("isolation", text(&plugin.isolation).into()),
        ("running", plugin.running.into()),
    ])
}

/// The list's entry, and what only a reviewer needs.
fn review(review: &PluginReview) -> Dict {
    let mut dict = summary(&review.summary);
    let reasons: Vec<String> = review.scopes.iter().map(|(_, reason)| text(reason)).collect();
    let files: Vec<(String, u64)> = review.files.iter().map(|(path, bytes)| (text(path), *bytes)).collect();
    let log: Vec<String> = review.log.iter().map(|line| text(&line.text)).collect();
    dict.insert("scope_reasons", reasons.into());
    dict.insert("files", files.into());
    dict.insert("protocol", text(&review.protocol).into());
    dict.insert("command", texts(&review.command).into());
    dict.insert("warning", text(&review.warning).into());
    dict.insert("log", log.into());
    dict
}
