//! A decoder that runs away cannot be stopped: its thread is left to itself, below everything else, and the track is lost.
//!
//! Whether it runs away is told by the time that its thread has computed for, within one call of the decoder: who waits
//! for bytes does not compute. A second one is too much: the program ends, to be started anew with what it has kept.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::unistd::{Pid, gettid};
use tokio::sync::oneshot;

use crate::decode::DecodeError;
use crate::system::realtime;

/// No call of a decoder takes so long, on the slowest machine: ten minutes of FLAC take less.
const LIMIT: Duration = Duration::from_secs(10);
/// So often a thread that opens a track is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// So many threads are left to themselves; they take memory and what the machine has to spare.
const MOST: u32 = 1;

/// How many decoders have run away.
#[derive(Clone, Default)]
pub(super) struct Runaways(Arc<AtomicU32>);

impl Runaways {
    /// Leaves this thread to itself.
    pub(super) fn leave(&self, thread: Pid) {
        let count = self.0.fetch_add(1, SeqCst) + 1;
        tracing::error!(
            thread = thread.as_raw(),
            count,
            "a decoder does not come to an end, and is left alone"
        );
        if let Err(error) = realtime::make_idle(thread) {
            tracing::warn!(%error, "it goes on at normal priority");
        }
    }

    /// Whether the program had better be started anew.
    pub(super) fn are_too_many(&self) -> bool {
        self.0.load(SeqCst) > MOST
    }
}

/// What a thread lays down while it calls a decoder, so that another thread can go on with it.
pub(super) struct Desk<T> {
    thread: OnceLock<Pid>,
    /// With the number of the call.
    laid_down: Mutex<(u64, Option<T>)>,
}

impl<T> Desk<T> {
    pub(super) fn new() -> Desk<T> {
        Desk { thread: OnceLock::new(), laid_down: Mutex::new((0, None)) }
    }

    /// For the thread whose desk it is: before each call of a decoder.
    pub(super) fn lay_down(&self, what: T) {
        self.thread.get_or_init(gettid);
        let mut laid_down = self.laid_down.lock().unwrap_or_else(PoisonError::into_inner);
        *laid_down = (laid_down.0 + 1, Some(what));
    }

    /// After the call. `None` if it took too long and somebody else goes on with it.
    pub(super) fn take_up(&self) -> Option<T> {
        self.laid_down.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }

    /// The number of the call that the thread is in.
    fn call(&self) -> Option<u64> {
        let laid_down = self.laid_down.lock().unwrap_or_else(PoisonError::into_inner);
        laid_down.1.as_ref().map(|_| laid_down.0)
    }
}

/// What is known about the call that a thread is in.
pub(super) struct Watch {
    limit: Duration,
    call: Option<(u64, Duration)>,
}

/// How a thread was found.
pub(super) enum Found<T> {
    /// In no call of a decoder.
    Outside,
    /// In one, and that is all right.
    Inside,
    /// In one for too long: here is what it had laid down.
    RanAway(T, Pid),
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { limit: LIMIT, call: None }
    }
}

impl Watch {
    /// Looks at a thread. To be called every few seconds.
    pub(super) fn look<T>(&mut self, desk: &Desk<T>) -> Found<T> {
        let call = desk.call().zip(desk.thread.get().copied());
        let Some((call, thread)) = call else {
            self.call = None;
            return Found::Outside;
        };
        let Some(computed) = realtime::cpu_time(thread) else { return Found::Inside };
        let (_, since) = *self.call.take_if(|(same, _)| *same == call).get_or_insert((call, computed));
        self.call = Some((call, since));
        if computed.saturating_sub(since) < self.limit {
            return Found::Inside;
        }
        // It may have come back this very moment.
        match desk.take_up() {
            Some(laid_down) => Found::RanAway(laid_down, thread),
            None => Found::Outside,
        }
    }
}

/// Runs what calls a decoder once on a thread that lives as long as that takes, whether or not the outcome is waited for.
pub(super) async fn on_a_thread<T: Send + 'static>(
    runaways: &Runaways,
    work: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
) -> Result<T, DecodeError> {
    let (done, outcome) = oneshot::channel();
    let (begins, thread) = oneshot::channel();
    let (ends, ended) = oneshot::channel::<()>();
    let spawned = std::thread::Builder::new().name("decode-open".to_owned()).spawn(move || {
        let _ends = ends;
        let _ = begins.send(gettid());
        // Nobody waits any more when the opening was abandoned.
        let _ = done.send(work());
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start a thread to open a track");
        return Err(DecodeError::Panicked);
    }
    let (gave_up, given_up) = oneshot::channel();
    let runaways = runaways.clone();
    // Watched also when the opening is abandoned.
    tokio::spawn(async move {
        let Ok(thread) = thread.await else { return };
        if runs_away(thread, ended).await {
            runaways.leave(thread);
            let _ = gave_up.send(());
        }
    });
    tokio::select! {
        biased;
        outcome = outcome => outcome.unwrap_or(Err(DecodeError::Panicked)),
        Ok(()) = given_up => Err(DecodeError::RanAway),
    }
}

async fn runs_away(thread: Pid, mut ended: oneshot::Receiver<()>) -> bool {
    loop {
        if tokio::time::timeout(LOOK, &mut ended).await.is_ok() {
            return false;
        }
        if realtime::cpu_time(thread).is_some_and(|computed| computed >= LIMIT) {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computes_in_one_call_is_found_and_one_that_waits_is_not() {
        let desk = Arc::new(Desk::new());
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let (over, is_over) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let desk = Arc::clone(&desk);
            move || {
                desk.lay_down("first");
                waits.recv().unwrap();
                let back = desk.take_up();
                desk.lay_down("second");
                over.send(back).unwrap();
                let mut n = 0u64;
                while desk.call().is_some() {
                    n = std::hint::black_box(n + 1);
                }
                desk.take_up()
            }
        });
        let mut watch = Watch { limit: Duration::from_millis(200), ..Watch::default() };
        while desk.call().is_none() {
            std::thread::yield_now();
        }
        assert!((0..3).all(|_| matches!(watch.look(&desk), Found::Inside)));
        go_on.send(()).unwrap();
        assert_eq!(is_over.recv().unwrap(), Some("first"));
        let found = loop {
            std::thread::sleep(Duration::from_millis(50));
            if let Found::RanAway(what, _) = watch.look(&desk) {
                break what;
            }
        };
        assert_eq!(found, "second");
        assert_eq!(thread.join().unwrap(), None, "it has nothing any more");
        assert!(matches!(watch.look(&desk), Found::Outside));
    }
}
