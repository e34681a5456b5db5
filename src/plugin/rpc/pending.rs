//! Calls that wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segue_protocol::messages::RawResult;
use segue_protocol::{ErrorCode, Fault};
use tokio::sync::oneshot;

type Answer = Result<RawResult, Fault>;

#[derive(Clone, Default)]
pub(super) struct Pending(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// Set when no reply can come any more.
    closed: Option<Fault>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a reply with this id go to whoever awaits what is returned.
    pub(super) fn expect(&self, id: u64) -> Result<oneshot::Receiver<Answer>, Fault> {
        let (caller, answer) = oneshot::channel();
        let mut calls = self.lock();
        if let Some(fault) = &calls.closed {
            return Err(fault.clone());
        }
        calls.waiting.insert(id, caller);
        Ok(answer)
    }

    /// Gives a reply to its caller; false when nobody waits for it.
    pub(super) fn answer(&self, id: u64, answer: Answer) -> bool {
        let caller = self.lock().waiting.remove(&id);
        caller.is_some_and(|caller| caller.send(answer).is_ok())
    }

    /// Fails what is in flight; further calls are welcome.
    pub(super) fn fail_all(&self, fault: &Fault) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for (_, caller) in waiting {
            let _ = caller.send(Err(fault.clone()));
        }
    }

    /// Fails what is in flight and whatever comes later. The first reason stays.
    pub(super) fn close(&self, fault: &Fault) {
        self.lock().closed.get_or_insert_with(|| fault.clone());
        self.fail_all(fault);
    }

    pub(super) fn why_closed(&self) -> Fault {
        let ended = || Fault::new(ErrorCode::PluginCrashed, "the process ended");
        self.lock().closed.clone().unwrap_or_else(ended)
    }
}

/// Forgets a call when its caller is gone.
pub(super) struct Forget<'a>(pub(super) &'a Pending, pub(super) u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting.remove(&self.1);
    }
}
