//! Who calls, and whether they may decide about plugins.
//!
//! The bus policy is the first door; this is the second, for buses without a policy and for the audit. On the
//! system bus the daemon's own user may not decide: plugins run as that user, and none may enable itself.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::message::Header;
use zbus::proxy::CacheProperties;

use super::errors::Error;
use crate::plugin::Who;

/// The group that decides about plugins.
const ADMIN_GROUP: &str = "segue-admin";

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
                judge(uid, Uid::effective().as_raw(), |uid| is_admin(uid, groups))
            });
            judged.await.map_err(|_| unknown())??;
        }
        Ok(Who { uid, via: "D-Bus".to_owned() })
    }
}

fn judge(uid: Option<u32>, own: u32, is_admin: impl FnOnce(u32) -> bool) -> Result<(), Error> {
    let refusal = match uid {
        Some(0) => return Ok(()),
        None => "the bus does not tell who you are; use sudo".to_owned(),
        Some(uid) if uid == own => {
            "segued's own user may not decide about plugins, since plugins run as that user; use sudo"
                .to_owned()
        }
        Some(uid) if is_admin(uid) => return Ok(()),
        Some(_) => format!("deciding about plugins is for root and the group {ADMIN_GROUP}; use sudo"),
    };
    Err(Error::NotAllowed(refusal))
}

fn is_admin(uid: u32, groups: Option<Vec<u32>>) -> bool {
    let Ok(Some(admin)) = Group::from_name(ADMIN_GROUP) else { return false };
    match groups {
        Some(groups) => groups.contains(&admin.gid.as_raw()),
        None => groups_of(uid).contains(&admin.gid),
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
    fn only_root_and_admins_decide_and_never_the_daemons_own_user() {
        let (daemon, admin, guest) = (990, 1000, 1001);
        let may = |uid| judge(uid, daemon, |uid| uid == admin || uid == daemon).is_ok();
        assert!(may(Some(0)));
        assert!(may(Some(admin)));
        assert!(!may(Some(guest)));
        assert!(!may(Some(daemon)), "a plugin could enable itself");
        assert!(!may(None));
        assert!(judge(Some(0), 0, |_| false).is_ok(), "root runs the daemon by hand");
    }
}
