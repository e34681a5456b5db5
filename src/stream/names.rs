//! Names to addresses, by the system, so that nsswitch, `/etc/hosts` and `.local` names work.
//!
//! The two families are asked for apart, each by one call of getaddrinfo: a single call for both waits for the
//! answer that a broken router swallows. A call cannot be ended, and takes up to half a minute when the name server
//! is dead. So each has a thread of its own, of which there are few, and whoever asks for the same while it runs
//! shares its answer; one that comes after its asker gave up is still there when they ask again.
//!
//! One thing is different from a single call: for glibc a name that the hosts file has in one family only is looked up
//! further for the other.
//!
//! Addresses that were found once may stand in for an hour where no name server answers, or not within a second:
//! then an outage of the name server alone is not heard. What a name server *says* is always believed, also that a
//! name is gone. Whether an address may be connected to is not decided here but at each use (`reach`).

use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dns_lookup::{AddrInfoHints, LookupErrorKind};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Shared, select};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tracing::{debug, info};

/// Calls of getaddrinfo under way at once: for each of two open tracks a host and one that it redirects to.
const THREADS: usize = 8;
/// In bytes. Modules of nsswitch run on it.
const STACK: usize = 512 * 1024;
/// Look-ups that wait for a thread or an answer.
const QUESTIONS: usize = 32;
/// Hosts whose addresses are remembered.
const HOSTS: usize = 16;

/// How long what is waited for, and believed.
struct Times {
    /// The second family, when the first has answered. Longer would only delay the start: when its answer comes later,
    /// the next connection knows it.
    other_family: Duration,
    /// An answer that takes longer is not waited for where an older one is known.
    slow: Duration,
    /// An answer serves for so long without asking again: connections that are tried again at once, and those whose
    /// time ran out while the name server was slow, find it.
    fresh: Duration,
    /// And for so long when no name server answers.
    kept: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            other_family: Duration::from_millis(300),
            slow: Duration::from_secs(1),
            fresh: Duration::from_secs(5),
            kept: Duration::from_secs(3600),
        }
    }
}

/// "There is no address of this family", which `libc` does not have: the same number in glibc and musl.
const EAI_ADDRFAMILY: i32 = -9;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    V4,
    V6,
}

/// Why there is no address. The texts follow the host's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAddress {
    /// A name server says so.
    #[error("there is no such name")]
    NoSuchName,
    /// Nobody says anything about it.
    #[error("its name cannot be looked up: {0}")]
    NoAnswer(String),
}

/// One look-up of one family, which blocks. The system's, or a test's.
pub(super) type LookUp = Arc<dyn Fn(&str, Family) -> Result<Vec<SocketAddr>, NoAddress> + Send + Sync>;

type Outcome = Result<Vec<SocketAddr>, NoAddress>;
type Asking = Shared<BoxFuture<'static, Outcome>>;

/// All look-ups of the program.
pub(super) struct Names {
    look_up: LookUp,
    times: Times,
    threads: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asking: HashMap<(String, Family), Asking>,
    /// The host that was found last comes first.
    found: VecDeque<Found>,
    /// When a name server, or a file of this machine, last said something about which name.
    answers: VecDeque<(String, Instant)>,
}

/// What is known of a host.
struct Found {
    name: String,
    v4: Option<(Vec<SocketAddr>, Instant)>,
    v6: Option<(Vec<SocketAddr>, Instant)>,
}

impl Found {
    fn family(&mut self, family: Family) -> &mut Option<(Vec<SocketAddr>, Instant)> {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    /// Addresses that were found no longer ago than this.
    fn since(&self, moment: Option<Instant>) -> Vec<SocketAddr> {
        let good = |family: &Option<(Vec<SocketAddr>, Instant)>| match family {
            Some((addresses, at)) if moment.is_none_or(|moment| *at >= moment) => addresses.clone(),
            _ => Vec::new(),
        };
        in_order(good(&self.v4), good(&self.v6))
    }
}

impl Names {
    pub fn new(look_up: LookUp) -> Arc<Names> {
        Names::with(look_up, Times::default())
    }

    fn with(look_up: LookUp, times: Times) -> Arc<Names> {
        Arc::new(Names { look_up, times, threads: Semaphore::new(THREADS), state: Mutex::default() })
    }

    /// Addresses of a name, with port 0, in the order in which they are to be tried. Must be called within a tokio
    /// runtime.
    pub async fn find(self: &Arc<Self>, name: &str) -> Outcome {
        let fresh = self.known(name, self.times.fresh);
        if !fresh.is_empty() {
            return Ok(fresh);
        }
        let mut asked = Box::pin(self.ask(name));
        let outcome = match timeout(self.times.slow, &mut asked).await {
            Ok(outcome) => outcome,
            Err(_) if self.known(name, self.times.kept).is_empty() => asked.await,
            Err(_) => Err(NoAddress::NoAnswer("no name server answers in time".to_owned())),
        };
        match outcome {
            Err(NoAddress::NoAnswer(why)) => match self.known(name, self.times.kept) {
                old if old.is_empty() => Err(NoAddress::NoAnswer(why)),
                old => {
                    info!(host = name, why, "going on with the addresses that were found before");
                    Ok(old)
                }
            },
            outcome => outcome,
        }
    }

    /// As [`Names::find`], but believes nothing that was found before: whether somebody answers *now*.
    pub async fn ask(self: &Arc<Self>, name: &str) -> Outcome {
        let (v4, v6) = (self.ask_for(name, Family::V4)?, self.ask_for(name, Family::V6)?);
        let (first, other) = match select(v4, v6).await {
            Either::Left((first, other)) | Either::Right((first, other)) => (first, other),
        };
        let second = match &first {
            Ok(_) => timeout(self.times.other_family, other).await.ok(),
            Err(_) => Some(other.await),
        };
        match (first, second) {
            (Ok(first), Some(Ok(second))) => {
                let (v4, v6) = first.into_iter().chain(second).partition(SocketAddr::is_ipv4);
                Ok(in_order(v4, v6))
            }
            (Ok(addresses), _) | (Err(_), Some(Ok(addresses))) => Ok(addresses),
            (Err(why @ NoAddress::NoAnswer(_)), _) | (_, Some(Err(why))) | (Err(why), None) => Err(why),
        }
    }

    /// Whether nothing is known of a name, and nobody says anything about it: then that it cannot be reached is not
    /// its host's fault, as long as nothing is said about other names either.
    pub fn is_unknown(&self, name: &str) -> bool {
        self.known(name, self.times.kept).is_empty()
    }

    /// Whether something was said about another name since then.
    pub fn another_answered(&self, name: &str, since: Instant) -> bool {
        self.state().answers.iter().any(|(other, at)| other != name && *at >= since)
    }

    fn known(&self, name: &str, age: Duration) -> Vec<SocketAddr> {
        let since = Instant::now().checked_sub(age);
        let state = self.state();
        let found = state.found.iter().find(|found| found.name == name);
        found.map_or_else(Vec::new, |found| found.since(since))
    }

    /// Begins to ask for one family, or joins who asks already.
    fn ask_for(self: &Arc<Self>, name: &str, family: Family) -> Result<Asking, NoAddress> {
        let mut state = self.state();
        let question = (name.to_owned(), family);
        if let Some(asking) = state.asking.get(&question) {
            return Ok(asking.clone());
        }
        if state.asking.len() >= QUESTIONS {
            return Err(NoAddress::NoAnswer("too many names are being looked up".to_owned()));
        }
        let (names, asked) = (Arc::clone(self), name.to_owned());
        // A task of its own, which goes on when nobody waits for it any more.
        let task = tokio::spawn(async move {
            let outcome = names.on_a_thread(&asked, family).await;
            names.keep(&asked, family, &outcome);
            outcome
        });
        let ended = |_| Err(NoAddress::NoAnswer("the look-up broke down".to_owned()));
        let asking = task.map(move |outcome| outcome.unwrap_or_else(ended)).boxed().shared();
        state.asking.insert(question, asking.clone());
        Ok(asking)
    }

    async fn on_a_thread(self: &Arc<Self>, name: &str, family: Family) -> Outcome {
        let broken = |why: String| NoAddress::NoAnswer(why);
        let permit = self.threads.acquire().await.map_err(|error| broken(error.to_string()))?;
        let (done, outcome) = oneshot::channel();
        let (look_up, name) = (Arc::clone(&self.look_up), name.to_owned());
        let thread = std::thread::Builder::new().name("name-lookup".to_owned()).stack_size(STACK);
        let look = move || {
            // Nobody waits any more when the runtime is on its way out.
            let _ = done.send(look_up(&name, family));
        };
        thread.spawn(look).map_err(|error| broken(error.to_string()))?;
        let outcome = outcome.await.unwrap_or_else(|_| Err(broken("the look-up broke down".to_owned())));
        drop(permit);
        outcome
    }

    /// Remembers what came of a look-up.
    fn keep(&self, name: &str, family: Family, outcome: &Outcome) {
        debug!(host = name, ?family, ?outcome, "a name was looked up");
        let now = Instant::now();
        let mut state = self.state();
        state.asking.remove(&(name.to_owned(), family));
        if matches!(outcome, Err(NoAddress::NoAnswer(_))) {
            return;
        }
        state.answers.retain(|(known, _)| known != name);
        state.answers.push_front((name.to_owned(), now));
        state.answers.truncate(HOSTS);
        let known = state.found.iter().position(|found| found.name == name);
        let found = known.and_then(|at| state.found.remove(at));
        let mut found = found.unwrap_or_else(|| Found { name: name.to_owned(), v4: None, v6: None });
        *found.family(family) = outcome.as_ref().ok().map(|addresses| (addresses.clone(), now));
        if found.v4.is_some() || found.v6.is_some() {
            state.found.push_front(found);
            state.found.truncate(HOSTS);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// IPv6 first where this machine has a way there. The connection tries the other family 0.3 s later.
fn in_order(v4: Vec<SocketAddr>, v6: Vec<SocketAddr>) -> Vec<SocketAddr> {
    match v6.first() {
        Some(first) if v4.is_empty() || has_way_to(*first) => v6.into_iter().chain(v4).collect(),
        _ => v4.into_iter().chain(v6).collect(),
    }
}

/// Whether the kernel knows a way there. No packet is sent: connecting a datagram socket only chooses a route.
fn has_way_to(address: SocketAddr) -> bool {
    let socket = UdpSocket::bind(("::", 0));
    let target = SocketAddr::new(address.ip(), 9);
    socket.is_ok_and(|socket| socket.connect(target).is_ok())
}

/// The system's own look-up.
pub(super) fn by_the_system() -> LookUp {
    Arc::new(|name, family| {
        let address = match family {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        // Without AI_ADDRCONFIG: on a machine that has only its loopback address yet, it would call each name unknown.
        let hints = AddrInfoHints { address, socktype: libc::SOCK_STREAM, ..AddrInfoHints::default() };
        match dns_lookup::getaddrinfo(Some(name), None, Some(hints)) {
            Ok(found) => {
                let addresses: Vec<_> = found.flatten().map(|found| found.sockaddr).collect();
                if addresses.is_empty() { Err(NoAddress::NoSuchName) } else { Ok(addresses) }
            }
            Err(error) => Err(match error.kind() {
                LookupErrorKind::NoName | LookupErrorKind::NoData => NoAddress::NoSuchName,
                _ if error.error_num() == EAI_ADDRFAMILY => NoAddress::NoSuchName,
                LookupErrorKind::Again => NoAddress::NoAnswer("no name server answers".to_owned()),
                // Their texts hold nothing but the C library's words.
                _ => NoAddress::NoAnswer(std::io::Error::from(error).to_string()),
            }),
        }
    })
}

#[cfg(test)]
mod tests;
