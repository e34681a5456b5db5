//! Notices that something installed, removed or changed a package.
//!
//! The kernel tells (inotify); nothing is looked at while nothing happens. Where it cannot tell everything,
//! that is said once, and packages are looked at from time to time instead.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, WatchDescriptor};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::host::{Host, Inner};
use crate::system::FileEvents;

/// How packages are watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchLimits {
    /// Nothing must have happened for so long before packages are looked at.
    pub quiet: Duration,
    /// But they are looked at no later than this after the first change.
    pub latest: Duration,
    /// How often they are looked at where the kernel cannot tell of every change.
    pub slow: Duration,
    /// Folders that are watched; one watch costs about a kilobyte of the kernel's memory.
    pub max_watches: usize,
}

impl Default for WatchLimits {
    fn default() -> Self {
        WatchLimits {
            quiet: Duration::from_millis(300),
            latest: Duration::from_secs(3),
            slow: Duration::from_secs(60),
            max_watches: 4_096,
        }
    }
}

/// Ends watching when it is dropped.
pub(super) struct Watching(AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Watches before it returns, so that whoever reads the packages then misses nothing.
pub(super) async fn start(host: &Host) -> Watching {
    let limits = host.0.settings.watch;
    let inotify = match FileEvents::new() {
        Ok(inotify) => Some(Arc::new(inotify)),
        Err(error) => {
            tracing::warn!(%error, "changes of plugins cannot be watched: they are looked for from time to time");
            None
        }
    };
    let mut watch = Watch {
        host: Arc::downgrade(&host.0),
        folders: host.0.settings.folders.clone(),
        limits,
        inotify,
        watched: Watched::default(),
        looked: host.0.looked.clone(),
        said: false,
    };
    watch.arm().await;
    Watching(tokio::spawn(watch.run()).abort_handle())
}

/// What is watched now.
#[derive(Default)]
struct Watched {
    /// What matters in each watched folder.
    folders: HashMap<WatchDescriptor, Matter>,
    /// Something is not watched, though it should be.
    incomplete: Option<&'static str>,
}

#[derive(Clone, Default)]
struct Matter {
    /// Everything, as it is a package's or holds packages.
    all: bool,
    /// Only what has these names: the next step to a folder that does not exist yet.
    names: Vec<OsString>,
}

struct Watch {
    host: Weak<Inner>,
    folders: Vec<PathBuf>,
    limits: WatchLimits,
    inotify: Option<Arc<AsyncFd<FileEvents>>>,
    watched: Watched,
    looked: Arc<Notify>,
    said: bool,
}

impl Watch {
    async fn run(mut self) {
        loop {
            let looked = self.looked.clone();
            tokio::select! {
                () = self.change() => {}
                () = looked.notified() => {
                    self.arm().await;
                    continue;
                }
            }
            self.arm().await;
            let Some(inner) = self.host.upgrade() else { return };
            let began = Instant::now();
            Host(inner).scan().await;
            // Something that changes all the time must not keep the machine busy.
            tokio::time::sleep((4 * began.elapsed()).min(self.limits.slow)).await;
        }
    }

    /// Returns when something changed and has calmed down, or when it is time to look without being told.
    async fn change(&mut self) {
        let slowly = self.inotify.is_none() || self.watched.incomplete.is_some();
        let timer = async {
            match slowly {
                true => tokio::time::sleep(self.limits.slow).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.event() => {}
            () = timer => return,
        }
        let latest = tokio::time::sleep(self.limits.latest);
        tokio::pin!(latest);
        loop {
            tokio::select! {
                () = self.event() => {}
                () = tokio::time::sleep(self.limits.quiet) => return,
                () = &mut latest => return,
            }
        }
    }

    /// Returns at the next event that matters.
    async fn event(&self) {
        let Some(inotify) = &self.inotify else { return std::future::pending().await };
        loop {
            let Ok(mut ready) = inotify.readable().await else { return std::future::pending().await };
            match inotify.get_ref().0.read_events() {
                Ok(events) => {
                    if events.iter().any(|event| self.matters(event.wd, event.mask, event.name.as_ref())) {
                        return;
                    }
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => {
                    tracing::warn!(%error, "changes of plugins cannot be read");
                    return std::future::pending().await;
                }
            }
        }
    }

    fn matters(&self, wd: WatchDescriptor, mask: AddWatchFlags, name: Option<&OsString>) -> bool {
        if mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            tracing::info!("so much changed among plugins at once that all of them are looked at");
            return true;
        }
        let Some(interest) = self.watched.folders.get(&wd) else { return false };
        let itself = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
        // What a watch that was taken away says at last.
        let gone = mask.contains(AddWatchFlags::IN_IGNORED);
        !gone
            && (interest.all
                || mask.intersects(itself)
                || name.is_some_and(|name| interest.names.contains(name)))
    }

    /// Watches what is there now, and no longer what is not.
    async fn arm(&mut self) {
        let Some(inotify) = self.inotify.clone() else { return };
        let (folders, limit) = (self.folders.clone(), self.limits.max_watches);
        let armed = tokio::task::spawn_blocking(move || {
            let mut arming = Arming { inotify: &inotify.get_ref().0, limit, watched: Watched::default() };
            folders.iter().for_each(|folder| arming.plugins_in(folder));
            arming.watched
        });
        let Ok(fresh) = armed.await else { return };
        if let Some(inotify) = &self.inotify {
            let old = self.watched.folders.keys().filter(|wd| !fresh.folders.contains_key(wd));
            // A folder that is gone took its watch along.
            old.for_each(|wd| {
                let _ = inotify.get_ref().0.rm_watch(*wd);
            });
        }
        self.watched = fresh;
        if let (Some(why), false) = (self.watched.incomplete, self.said) {
            self.said = true;
            let seconds = self.limits.slow.as_secs();
            tracing::warn!(
                why,
                "not every plugin can be watched for changes: they are looked at every {seconds} s, and by `segue plugin rescan`"
            );
        }
    }
}

struct Arming<'a> {
    inotify: &'a nix::sys::inotify::Inotify,
    limit: usize,
    watched: Watched,
}

impl Arming<'_> {
    /// A folder of packages with all that is below it, or else the nearest folder above that exists.
    fn plugins_in(&mut self, folder: &Path) {
        if self.watch(folder, true, Matter { all: true, names: Vec::new() }) {
            for package in subfolders(folder) {
                self.package(&package, 0);
            }
            return;
        }
        let mut missing = folder;
        while let Some(parent) = missing.parent() {
            let names = missing.file_name().map(|name| vec![name.to_owned()]).unwrap_or_default();
            if self.watch(parent, true, Matter { all: false, names }) {
                // It may have appeared in between.
                if missing.is_dir() && self.watched.incomplete.is_none() {
                    return self.plugins_in(folder);
                }
                return;
            }
            missing = parent;
        }
    }

    /// Watched before its folders are listed, so that one that appears meanwhile is told.
    fn package(&mut self, folder: &Path, depth: usize) {
        if depth > super::package::MAX_DEPTH || self.watched.incomplete.is_some() {
            return;
        }
        if self.watch(folder, false, Matter { all: true, names: Vec::new() }) {
            subfolders(folder).iter().for_each(|below| self.package(below, depth + 1));
        }
    }

    /// False when there is no such folder.
    fn watch(&mut self, folder: &Path, follow: bool, interest: Matter) -> bool {
        let mut flags = AddWatchFlags::IN_ONLYDIR
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF;
        if interest.all {
            flags |= AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ATTRIB;
        }
        if !follow {
            flags |= AddWatchFlags::IN_DONT_FOLLOW;
        }
        if self.watched.folders.len() >= self.limit {
            self.watched.incomplete = Some("there are more folders than are watched");
            return folder.is_dir();
        }
        match self.inotify.add_watch(folder, flags) {
            Ok(wd) => {
                let known = self.watched.folders.entry(wd).or_default();
                known.names.extend(interest.names);
                // The later call took the earlier one's events away.
                if known.all && !interest.all {
                    let all = flags | AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ATTRIB;
                    let _ = self.inotify.add_watch(folder, all);
                }
                known.all |= interest.all;
                true
            }
            Err(Errno::ENOENT | Errno::ENOTDIR) => false,
            Err(Errno::ENOSPC) => {
                self.watched.incomplete =
                    Some("the kernel gives no more watches (fs.inotify.max_user_watches)");
                true
            }
            Err(_) => {
                self.watched.incomplete = Some("a folder cannot be watched");
                true
            }
        }
    }
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}
