//! Who calls, and whether they may decide about plugins or read what those wrote.
//!
//! The bus policy is the first door; this is the second, for buses without a policy and for the audit. On the
//! system bus the daemon's own user may do neither: plugins run as that user, and none may enable itself or read
//! what another one wrote.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::message::Header;
use zbus::proxy::CacheProperties;

use super::errors::Error;
use crate::plugin::Who;

/// What not everybody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Trust, enable, disable, look again.
    Decide,
    /// Plugins' logs: secrets that we know are taken out of them, and a plugin may write others.
    ReadLogs,
}

impl Right {
    /// Who has it, besides root.
    fn group(self) -> &'static str {
        match self {
            Right::Decide => "segue-admin",
            Right::ReadLogs => "audio",
        }
    }

    fn refusal(self) -> String {
        let what = match self {
            Right::Decide => "deciding about plugins",
            Right::ReadLogs => "reading plugins' logs",
        };
        format!("{what} is for root and the group {}; use sudo", self.group())
    }

    fn refusal_of_own(self) -> &'static str {
        match self {
            Right::Decide => {
                "segued's own user may not decide about plugins, since plugins run as that user; use sudo"
            }
            Right::ReadLogs => {
                "segued's own user may not read plugins' logs, since plugins run as that user; use sudo"
            }
        }
    }
}

/// How callers are judged on this bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Many users share the bus.
    Shared,
    /// The bus itself lets in nobody but its owner.
    Private,
}

impl Callers {
    /// Says who the caller is, for the audit, or why they may not decide.
    pub async fn may_decide(self, connection: &Connection, header: &Header<'_>) -> Result<Who, Error> {
        self.may(Right::Decide, connection, header).await
    }

    /// Says why the caller may not read what plugins wrote.
    pub async fn may_read_logs(self, connection: &Connection, header: &Header<'_>) -> Result<(), Error> {
        if self == Callers::Private {
            return Ok(());
        }
        self.may(Right::ReadLogs, connection, header).await.map(|_| ())
    }

    async fn may(self, right: Right, connection: &Connection, header: &Header<'_>) -> Result<Who, Error> {
        let unknown = || Error::NotAllowed("the bus does not tell who you are; use sudo".into());
        let sender = header.sender().ok_or_else(unknown)?.clone();
        let bus: DBusProxy<'_> =
            DBusProxy::builder(connection).cache_properties(CacheProperties::No).build().await?;
        let credentials = bus.get_connection_credentials(sender.into()).await.map_err(zbus::Error::from)?;
        let uid = credentials.unix_user_id();
        if self == Callers::Shared {
            let groups = credentials.unix_group_ids().cloned();
            // Names of users and groups may come from the network.
            let judged = tokio::task::spawn_blocking(move || {
                judge(right, uid, Uid::effective().as_raw(), |uid| is_member(right.group(), uid, groups))
            });
            judged.await.map_err(|_| unknown())??;
        }
        Ok(Who { uid, via: "D-Bus".to_owned() })
    }
}

fn judge(right: Right, uid: Option<u32>, own: u32, is_member: impl FnOnce(u32) -> bool) -> Result<(), Error> {
    let refusal = match uid {
        Some(0) => return Ok(()),
        None => "the bus does not tell who you are; use sudo".to_owned(),
        Some(uid) if uid == own => right.refusal_of_own().to_owned(),
        Some(uid) if is_member(uid) => return Ok(()),
        Some(_) => right.refusal(),
    };
    Err(Error::NotAllowed(refusal))
}

fn is_member(group: &str, uid: u32, groups: Option<Vec<u32>>) -> bool {
    let Ok(Some(group)) = Group::from_name(group) else { return false };
    match groups {
        Some(groups) => groups.contains(&group.gid.as_raw()),
        None => groups_of(uid).contains(&group.gid),
    }
}

/// For buses too old to tell the groups.
fn groups_of(uid: u32) -> Vec<Gid> {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else { return Vec::new() };
    CString::new(user.name).ok().and_then(|name| getgrouplist(&name, user.gid).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_group_may_and_never_the_daemons_own_user() {
        let (daemon, member, guest) = (990, 1000, 1001);
        for right in [Right::Decide, Right::ReadLogs] {
            let may = |uid| judge(right, uid, daemon, |uid| uid == member || uid == daemon).is_ok();
            assert!(may(Some(0)));
            assert!(may(Some(member)));
            assert!(!may(Some(guest)));
            assert!(!may(Some(daemon)), "a plugin could enable itself, or read another's log");
            assert!(!may(None));
            assert!(judge(right, Some(0), 0, |_| false).is_ok(), "root runs the daemon by hand");
        }
    }
}
