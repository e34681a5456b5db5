//! What all parts agree on about a track: its name, what is known about it, and where its bytes are.

mod format;
mod granted;
mod info;
mod resolved;
mod uri;

pub use format::SourceFormat;
pub use granted::{FileRefusal, GrantedFolders, GrantedPath, overlap};
pub use info::{EntryId, TrackInfo};
pub use resolved::{Expiry, Reach, Resolve, ResolveError, ResolveErrorKind, ResolvedStream, Resolving};
pub use uri::{Kind, MAX_URI_BYTES, PluginId, PluginIdError, TrackRef, TrackUri, UriError};
