//! `org.segue.Plugins1`: what is installed, and what a person decided about it.
//!
//! Each call is a task of its own: hashing and handshakes take their time.
//!
//! Logs are read, not announced: a signal would reach whoever listens on the bus, and would pile up there for one
//! who does not read. Who follows a log asks for what came after the last line that they have, and waits for the
//! answer; while nobody asks, nothing is done.

use std::time::Duration;

use tokio::sync::Semaphore;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, interface};

use super::caller::Callers;
use super::errors::Error;
use super::values::{Dict, check_text, micros, put, text, texts};
use crate::plugin::{
    Host, HostError, LogLine, MAX_GRANTED, PluginHealth, PluginReview, PluginState, PluginSummary,
};

/// Lines of a log in one answer; no more are kept.
const MAX_LOG_LINES: u32 = 1_000;
/// How long a follower may wait for a line. Below the 25 s after which clients usually give up.
const MAX_LOG_WAIT: Duration = Duration::from_secs(20);
/// Followers that wait at a time; who comes then is told to try again.
const MAX_FOLLOWERS: usize = 32;

pub struct Plugins1 {
    plugins: Host,
    callers: Callers,
    followers: Semaphore,
}

impl Plugins1 {
    pub fn new(plugins: Host, callers: Callers) -> Plugins1 {
        Plugins1 { plugins, callers, followers: Semaphore::new(MAX_FOLLOWERS) }
    }
}

#[interface(name = "org.segue.Plugins1", introspection_docs = false)]
impl Plugins1 {
    #[zbus(out_args("plugins"))]
    async fn list(&self) -> Vec<Dict> {
        self.plugins.list().iter().map(|plugin| self.summary(plugin)).collect()
    }

    /// All that is needed to decide about a plugin.
    #[zbus(out_args("review"))]
    async fn inspect(&self, id: String) -> Result<Dict, Error> {
        check_text("id", &id)?;
        Ok(self.review(&self.plugins.inspect(&id)?))
    }

    /// How a plugin is, and what was counted since the daemon's start.
    #[zbus(out_args("health"))]
    async fn health(&self, id: String) -> Result<Dict, Error> {
        check_text("id", &id)?;
        Ok(health(&self.plugins.health(&id)?))
    }

    /// The newest lines that a plugin wrote on standard error, oldest first: level and text.
    #[zbus(out_args("lines"))]
    async fn logs(
        &self,
        id: String,
        count: u32,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<(String, String)>, Error> {
        check_text("id", &id)?;
        self.callers.may_read_logs(connection, &header).await?;
        Ok(lines(&self.plugins.logs(&id, count.min(MAX_LOG_LINES) as usize)?))
    }

    /// The lines of a plugin's log whose numbers are higher than `after`, and the newest line's number. Waits for
    /// one, for so many milliseconds at the most.
    #[zbus(out_args("newest", "lines"))]
    async fn read_log(
        &self,
        id: String,
        after: u64,
        wait_ms: u32,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(u64, Vec<(String, String)>), Error> {
        check_text("id", &id)?;
        self.callers.may_read_logs(connection, &header).await?;
        let Ok(_waiting) = self.followers.try_acquire() else {
            return Err(Error::Busy(format!(
                "{MAX_FOLLOWERS} others follow logs; try again when one has ended"
            )));
        };
        let wait = Duration::from_millis(wait_ms.into()).min(MAX_LOG_WAIT);
        let (newest, fresh) = self.plugins.log_after(&id, after, wait).await?;
        Ok((newest, lines(&fresh)))
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
        if scopes.len() > MAX_GRANTED {
            return Err(Error::BadArgument(format!("grant at most {MAX_GRANTED} scopes")));
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

impl Plugins1 {
    fn summary(&self, plugin: &PluginSummary) -> Dict {
        let capabilities: Vec<&str> =
            plugin.capabilities.iter().map(|capability| capability.as_str()).collect();
        // What shadows it has the same id; only that one ever runs.
        let own = plugin.state != PluginState::Shadowed;
        let (health, why) = match self.plugins.health(&plugin.id) {
            Ok(health) if own => (health.health.as_str(), health.reason),
            _ => ("unknown", String::new()),
        };
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
            ("health", health.into()),
            ("health_reason", text(&why).into()),
        ])
    }

    /// The list's entry, and what only a reviewer needs. Its log is for those who may read logs.
    fn review(&self, review: &PluginReview) -> Dict {
        let mut dict = self.summary(&review.summary);
        let reasons: Vec<String> = review.scopes.iter().map(|(_, reason)| text(reason)).collect();
        let files: Vec<(String, u64)> =
            review.files.iter().map(|(path, bytes)| (text(path), *bytes)).collect();
        dict.insert("scope_reasons", reasons.into());
        dict.insert("files", files.into());
        dict.insert("command", texts(&review.command).into());
        dict.insert("warning", text(&review.warning).into());
        if !review.command.is_empty() {
            dict.insert("protocol", text(&review.protocol).into());
        }
        dict
    }
}

fn health(health: &PluginHealth) -> Dict {
    let counts = &health.counts;
    let mut dict = Dict::from([
        ("health", health.health.as_str().into()),
        ("reason", text(&health.reason).into()),
        ("running", health.running.into()),
        ("isolation", text(&health.isolation).into()),
        ("calls", counts.calls.into()),
        ("errors", counts.errors.into()),
        ("timeouts", counts.timeouts.into()),
        ("restarts", counts.restarts.into()),
        ("late_replies", counts.late_replies.into()),
        ("bytes_received", counts.bytes_received.into()),
        ("bytes_sent", counts.bytes_sent.into()),
    ]);
    put(&mut dict, "p50_us", counts.p50.map(micros));
    put(&mut dict, "p99_us", counts.p99.map(micros));
    dict
}

fn lines(log: &[LogLine]) -> Vec<(String, String)> {
    log.iter().map(|line| (line.level.as_str().to_owned(), text(&line.text))).collect()
}
