//! Fresh addresses: before the old one ends, or because it was refused.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep_until;
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
                if !matches!(error.kind, ResolveErrorKind::Later(_)) {
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
        self.shared.renewed(in_time);
        info!(track = self.shared.track, in_time, "the track has a fresh address");
    }

    /// Gets a fresh address now, because there is no other way to go on. When there is none for the moment,
    /// the old one is tried all the same: only that tells an outage from a refusal.
    pub(super) async fn resolve(&mut self) -> Result<(), StreamError> {
        if let Some(error) = self.unresolvable.take() {
            return Err(self.unresolved(error));
        }
        self.shared.waiting(WaitReason::Expired, "the address is no longer good; a fresh one is asked for");
        if self.renewal.is_none() {
            sleep_until(self.patience.resolve_not_before(Instant::now(), &self.settings).into()).await;
            self.renew();
        }
        match renewed(&mut self.renewal).await {
            Ok(fresh) => {
                self.renewal = None;
                self.replace(fresh);
                Ok(())
            }
            Err(error) => {
                self.renewal = None;
                let ResolveErrorKind::Later(pause) = error.kind else { return Err(self.unresolved(error)) };
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
        }
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
