use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::scope::Scope;

use crate::PluginId;

/// The protocol's name in manifests and handshakes.
pub const PROTOCOL: &str = "segue.plugin/1";
/// The manifest's file name.
pub const FILE_NAME: &str = "plugin.json";
/// The longest manifest, in bytes.
pub const MAX_MANIFEST_BYTES: u64 = 64 * 1024;
/// No call may take longer, whatever the manifest says.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Scopes, capabilities and arguments in one manifest.
const MAX_SCOPES: usize = 16;
pub(crate) const MAX_CAPABILITIES: usize = 16;
const MAX_ARGUMENTS: usize = 32;
const MAX_ARGUMENT_BYTES: usize = 4_096;

/// What a plugin can be asked for; also the method's name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Capability {
    /// Find tracks, albums and artists.
    Search,
    /// Metadata of a track.
    GetTrack,
    /// An album with its tracks.
    GetAlbum,
    /// An artist.
    GetArtist,
    /// A track's URL.
    Stream,
}

impl Capability {
    /// The word in the manifest and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Search => "search",
            Capability::GetTrack => "get_track",
            Capability::GetAlbum => "get_album",
            Capability::GetArtist => "get_artist",
            Capability::Stream => "stream",
        }
    }
}

/// A scope and why the plugin wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRequest {
    /// The right.
    pub scope: Scope,
    /// In the author's words, for the person who reviews.
    pub reason: String,
}

/// How long each call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of the process to the end of the handshake.
    pub initialize: Duration,
    /// Liveness.
    pub ping: Duration,
    /// `search`.
    pub search: Duration,
    /// `get_track`.
    pub get_track: Duration,
    /// `get_album`.
    pub get_album: Duration,
    /// `get_artist`.
    pub get_artist: Duration,
    /// `stream`.
    pub stream: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts {
            initialize: seconds(15),
            ping: seconds(3),
            search: seconds(10),
            get_track: seconds(10),
            get_album: seconds(10),
            get_artist: seconds(10),
            stream: seconds(15),
        }
    }
}

impl Timeouts {
    /// The limit for one call.
    pub fn of(&self, method: Capability) -> Duration {
        match method {
            Capability::Search => self.search,
            Capability::GetTrack => self.get_track,
            Capability::GetAlbum => self.get_album,
            Capability::GetArtist => self.get_artist,
            Capability::Stream => self.stream,
        }
    }
}

/// When an unused plugin is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleStop {
    /// Never.
    Never,
    /// When this time has passed without a call; zero means after each call.
    After(Duration),
}

/// A checked manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Equal to the folder's name.
    pub id: PluginId,
    /// For people.
    pub name: String,
    /// The author's numbering; compared for equality only.
    pub version: String,
    /// Relative to the package, without `..`.
    pub executable: PathBuf,
    /// Passed as they are; no shell.
    pub arguments: Vec<String>,
    /// What it can be asked for.
    pub capabilities: Vec<Capability>,
    /// What it asks to be granted.
    pub scopes: Vec<ScopeRequest>,
    /// Defaults, with the manifest's own numbers put in.
    pub timeouts: Timeouts,
    /// When it is stopped.
    pub idle_stop: IdleStop,
}

/// `plugin.json` as it is written.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Manifest"))]
pub(crate) struct RawManifest {
    /// The number of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    schema: u32,
    /// The name of the package's folder.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[a-z][a-z0-9-]{0,63}$")))]
    id: String,
    /// For people.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 1, max = 200), regex(pattern = r"^[^\x00-\x1f\x7f]+$"))
    )]
    name: String,
    /// The author's numbering.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 1, max = 200), regex(pattern = r"^[^\x00-\x1f\x7f]+$"))
    )]
    version: String,
    /// The protocol's name and version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "segue.plugin/1")))]
    protocol: String,
    /// Relative path of a file in the package that may be run.
    #[cfg_attr(
        feature = "schema",
        schemars(
            length(max = 1_024),
            regex(pattern = r"^(?!\.{1,2}(/|$))(?!.*/\.{1,2}(/|$))[^/\x00]+(/[^/\x00]+)*$")
        )
    )]
    executable: String,
    /// Passed as they are; no shell.
    #[serde(default)]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 32), inner(length(max = 4_096), regex(pattern = r"^[^\x00]*$")))
    )]
    arguments: Vec<String>,
    /// What it can be asked for.
    #[cfg_attr(feature = "schema", schemars(length(max = 16), extend("uniqueItems" = true)))]
    capabilities: Vec<Capability>,
    /// What it asks to be granted.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 16)))]
    scopes: Vec<RawScope>,
    /// How long a call may take, by method, in milliseconds.
    #[serde(default)]
    timeouts_ms: RawTimeouts,
    /// The process is stopped after so many seconds without a call; 0: after each call; -1: never.
    #[serde(default = "default_idle_stop")]
    #[cfg_attr(feature = "schema", schemars(range(min = -1, max = 604_800)))]
    idle_stop_s: i64,
}

/// A scope and why it is wanted.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "ScopeRequest"))]
struct RawScope {
    /// `network`, `local-network`, `files.read:<folder>`, `files.read:*` or `secret:<name>`.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(
            pattern = r"^(network|local-network|files\.read:(\*|/(?!(.*/)?\.{1,2}(/|$))[^\x00-\x1f\x7f]*[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*)|secret:[A-Za-z0-9_.-]{1,64})$"
        ))
    )]
    scope: String,
    /// For the person who reviews.
    #[cfg_attr(feature = "schema", schemars(length(max = 1_000), regex(pattern = r"\S")))]
    reason: String,
}

/// Milliseconds, by method.
#[derive(Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Timeouts"))]
struct RawTimeouts {
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    initialize: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    ping: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    search: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    get_track: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    get_album: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    get_artist: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 30_000)))]
    stream: Option<u64>,
}

fn default_idle_stop() -> i64 {
    300
}

/// A manifest that breaks a rule; displays as the broken rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin.json: {0}")]
pub struct ManifestError(String);

fn ensure(holds: bool, rule: impl FnOnce() -> String) -> Result<(), ManifestError> {
    if holds { Ok(()) } else { Err(ManifestError(rule())) }
}

impl Manifest {
    /// Checks the bytes of a `plugin.json` that lies in a folder named `folder`.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn parse(bytes: &[u8], folder: &str) -> Result<Manifest, ManifestError> {
        ensure(bytes.len() as u64 <= MAX_MANIFEST_BYTES, || {
            format!("{} bytes, at most {MAX_MANIFEST_BYTES} are allowed", bytes.len())
        })?;
        let raw: RawManifest =
            serde_json::from_slice(bytes).map_err(|error| ManifestError(error.to_string()))?;
        ensure(raw.schema == 1, || format!("schema {} is not known; write 1", raw.schema))?;
        ensure(raw.protocol == PROTOCOL, || format!("protocol must be “{PROTOCOL}”"))?;
        let id: PluginId =
            raw.id.parse().map_err(|error: crate::PluginIdError| ManifestError(error.to_string()))?;
        ensure(id.as_str() == folder, || {
            format!("id “{id}” differs from the name of its folder, “{folder}”")
        })?;
        check_text("name", &raw.name)?;
        check_text("version", &raw.version)?;
        check_arguments(&raw.arguments)?;
        check_capabilities(&raw.capabilities)?;
        Ok(Manifest {
            id,
            name: raw.name,
            version: raw.version,
            executable: checked_executable(&raw.executable)?,
            arguments: raw.arguments,
            capabilities: raw.capabilities,
            scopes: checked_scopes(raw.scopes)?,
            timeouts: checked_timeouts(&raw.timeouts_ms)?,
            idle_stop: checked_idle_stop(raw.idle_stop_s)?,
        })
    }
}

fn check_text(field: &str, text: &str) -> Result<(), ManifestError> {
    ensure((1..=200).contains(&text.len()) && !text.contains(char::is_control), || {
        format!("{field} must have 1 to 200 bytes and no control characters")
    })
}

fn check_arguments(arguments: &[String]) -> Result<(), ManifestError> {
    ensure(arguments.len() <= MAX_ARGUMENTS, || format!("at most {MAX_ARGUMENTS} arguments are allowed"))?;
    ensure(arguments.iter().all(|a| a.len() <= MAX_ARGUMENT_BYTES && !a.contains('\0')), || {
        format!("an argument has at most {MAX_ARGUMENT_BYTES} bytes, none of them zero")
    })
}

fn check_capabilities(capabilities: &[Capability]) -> Result<(), ManifestError> {
    ensure(capabilities.len() <= MAX_CAPABILITIES, || {
        format!("at most {MAX_CAPABILITIES} capabilities are allowed")
    })?;
    let mut sorted = capabilities.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    ensure(sorted.len() == capabilities.len(), || "a capability is named twice".to_owned())
}

fn checked_executable(text: &str) -> Result<PathBuf, ManifestError> {
    let path = Path::new(text);
    let plain = !text.is_empty()
        && text.len() <= 1_024
        && !text.contains('\0')
        && path.components().all(|part| matches!(part, Component::Normal(_)))
        && !text.split('/').any(|part| part.is_empty() || part == ".");
    ensure(plain, || format!("executable “{text}” must be a relative path inside the package"))?;
    Ok(path.to_owned())
}

fn checked_scopes(raw: Vec<RawScope>) -> Result<Vec<ScopeRequest>, ManifestError> {
    ensure(raw.len() <= MAX_SCOPES, || format!("at most {MAX_SCOPES} scopes are allowed"))?;
    let mut scopes: Vec<ScopeRequest> = Vec::with_capacity(raw.len());
    for RawScope { scope, reason } in raw {
        let scope: Scope = scope.parse().map_err(ManifestError)?;
        ensure(!scopes.iter().any(|seen| seen.scope == scope), || format!("scope “{scope}” is named twice"))?;
        ensure(!reason.trim().is_empty() && reason.len() <= 1_000, || {
            format!("scope “{scope}” needs a reason of at most 1,000 bytes")
        })?;
        scopes.push(ScopeRequest { scope, reason });
    }
    Ok(scopes)
}

fn checked_timeouts(raw: &RawTimeouts) -> Result<Timeouts, ManifestError> {
    let mut timeouts = Timeouts::default();
    let limits = [
        (raw.initialize, &mut timeouts.initialize),
        (raw.ping, &mut timeouts.ping),
        (raw.search, &mut timeouts.search),
        (raw.get_track, &mut timeouts.get_track),
        (raw.get_album, &mut timeouts.get_album),
        (raw.get_artist, &mut timeouts.get_artist),
        (raw.stream, &mut timeouts.stream),
    ];
    for (wanted, limit) in limits {
        let Some(wanted) = wanted.map(Duration::from_millis) else { continue };
        ensure(!wanted.is_zero() && wanted <= MAX_TIMEOUT, || {
            "timeouts_ms must be between 1 and 30000".to_owned()
        })?;
        *limit = wanted;
    }
    Ok(timeouts)
}

fn checked_idle_stop(seconds: i64) -> Result<IdleStop, ManifestError> {
    match seconds {
        -1 => Ok(IdleStop::Never),
        0..=604_800 => Ok(IdleStop::After(Duration::from_secs(seconds.unsigned_abs()))),
        _ => Err(ManifestError("idle_stop_s must be −1 (never) or from 0 to 604800".to_owned())),
    }
}
