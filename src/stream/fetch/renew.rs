//! Fresh addresses: before the old one ends, or because it was refused.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};
use tracing::{info, warn};

use super::{Fetch, MAX_USELESS_RESOLVES, Renewal};
use crate::stream::source::Source;
use crate::stream::{StreamError, WaitReason};
use crate::track::{ResolveError, ResolveErrorKind, ResolvedStream};

/// Addresses that live shorter are not renewed more often: a plugin is not to be asked in a loop.
const SHORTEST_LIFE: Duration = Duration::from_millis(500);

impl Fetch {
    /// When to ask for a fresh address while the old one serves.
    pub(super) fn renew_at(&self) -> Option<Instant> {
        if self.renewal.is_some() || self.unresolvable.is_some() {
            return None;
        }
        let due = self.source.deadline?.renew_at();
        Some(self.resolve_not_before.map_or(due, |not_before| due.max(not_before)))
    }

    pub(super) fn renew(&mut self) {
        self.shared.renewing();
        self.renewal = Some(Mutex::new(self.resolver.resolve()));
    }

    pub(super) fn renewed(&mut self, result: Result<ResolvedStream, ResolveError>) {
        self.renewal = None;
        match result {
            Ok(fresh) => self.replace(fresh),
            Err(error) => {
                self.resolve_not_before = Some(Instant::now() + self.settings.resolve_pause);
                warn!(track = self.shared.track, %error, "no fresh address yet; the present one serves on");
                if !error.kind.may_pass() {
                    self.unresolvable = Some(error);
                }
            }
        }
    }

    fn replace(&mut self, fresh: ResolvedStream) {
        let in_time = !self.must_resolve && !self.source.expired(Instant::now());
        let mut fresh = Source::new(fresh, self.source.clock, &self.shared.track);
        fresh.fresh = true;
        if self.source.resolved.live {
            fresh.resolved.live = true;
            fresh.ranges = false;
        }
        fresh.same_as_before = fresh.is_same(&self.source);
        self.source = fresh;
        self.must_resolve = false;
        self.resolve_not_before = Some(Instant::now() + SHORTEST_LIFE);
        self.shared.set_deadline(self.source.deadline.map(|deadline| deadline.at));
        if self.source.same_as_before {
            // A plain URL can only be itself.
            return;
        }
        self.list_due = true;
        self.shared.renewed(in_time);
        info!(track = self.shared.track, in_time, "the track has a fresh address");
    }

    /// Gets a fresh address now, because there is no other way to go on. When there is none for the moment,
    /// the old one is tried all the same: only that tells an outage from a refusal.
    pub(super) async fn resolve(&mut self) -> Result<(), StreamError> {
        if let Some(error) = self.unresolvable.take() {
            return Err(self.unresolved(error));
        }
        if !self.outage {
            self.shared
                .waiting(WaitReason::Expired, "the address is no longer good; a fresh one is asked for");
        }
        loop {
            if self.renewal.is_none() {
                sleep_until(self.patience.resolve_not_before(Instant::now(), &self.settings).into()).await;
                self.renew();
            }
            let result = renewed(&mut self.renewal).await;
            self.renewal = None;
            let error = match result {
                Ok(fresh) => {
                    self.replace(fresh);
                    return Ok(());
                }
                Err(error) => error,
            };
            let reach = self.source.resolved.reach;
            let unreachable = matches!(error.kind, ResolveErrorKind::Unreachable(_));
            if unreachable && self.web.network_is_away(reach).await {
                // Neither the plugin's fault nor the server's: asked again, however long it lasts.
                self.outage = true;
                self.shared.waiting(WaitReason::Network, &format!("the network is away ({})", error.message));
                self.patience.useless_resolve(Instant::now(), false);
                self.patience.unreachable(Instant::now(), false);
                sleep(self.patience.pause(&self.settings, self.is_heard_live())).await;
                if self.must_resolve {
                    continue;
                }
                return Ok(());
            }
            return self.bear_no_address(error);
        }
    }

    /// The plugin has no fresh address for now, or none at all.
    fn bear_no_address(&mut self, error: ResolveError) -> Result<(), StreamError> {
        let (ResolveErrorKind::Later(pause) | ResolveErrorKind::Unreachable(pause)) = error.kind else {
            return Err(self.unresolved(error));
        };
        let now = Instant::now();
        let failed = self.patience.useless_resolve(now, !self.outage);
        if failed >= MAX_USELESS_RESOLVES && !self.outage && !self.is_heard_live() {
            return Err(self.unresolved(error));
        }
        if let Some(pause) = pause {
            self.patience.hold_resolves(now + pause.min(self.settings.give_up));
        }
        Ok(())
    }

    fn unresolved(&self, error: ResolveError) -> StreamError {
        StreamError::Unresolved { track: self.shared.track.clone(), message: error.message, kind: error.kind }
    }
}

/// The renewal that is under way; never, when there is none.
pub(super) async fn renewed(renewal: &mut Option<Renewal>) -> Result<ResolvedStream, ResolveError> {
    match renewal {
        Some(renewal) => renewal.get_mut().unwrap_or_else(PoisonError::into_inner).await,
        None => std::future::pending().await,
    }
}
