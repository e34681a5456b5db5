//! Look-ups by a name server that the test plays.

use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the name server says about each family; `None`: nothing, until it is told something else.
#[derive(Default)]
struct Server {
    says: Mutex<HashMap<Family, Option<Outcome>>>,
    said: Condvar,
    asked: AtomicUsize,
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

impl Server {
    fn new(v4: Option<Outcome>, v6: Option<Outcome>) -> Arc<Server> {
        let server = Arc::new(Server::default());
        server.say(Family::V4, v4);
        server.say(Family::V6, v6);
        server
    }

    fn say(&self, family: Family, outcome: Option<Outcome>) {
        self.says.lock().unwrap().insert(family, outcome);
        self.said.notify_all();
    }

    fn look_up(self: &Arc<Self>) -> LookUp {
        let server = Arc::clone(self);
        Arc::new(move |_, family| {
            server.asked.fetch_add(1, Ordering::SeqCst);
            server.busiest.fetch_max(server.busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let says = server.says.lock().unwrap();
            let says = server.said.wait_while(says, |says| says[&family].is_none()).unwrap();
            server.busy.fetch_sub(1, Ordering::SeqCst);
            says[&family].clone().unwrap()
        })
    }
}

fn at(texts: &[&str]) -> Outcome {
    Ok(texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect())
}

fn silence() -> Outcome {
    Err(NoAddress::NoAnswer("no name server answers".to_owned()))
}

/// Asks again each time, and takes a second for slow after 50 ms.
fn hasty() -> Times {
    let short = Duration::from_millis(50);
    Times { other_family: short, slow: short, fresh: Duration::ZERO, ..Times::default() }
}

async fn found(names: &Arc<Names>, name: &str) -> Outcome {
    timeout(PATIENCE, names.find(name)).await.expect("the look-up hangs")
}

#[tokio::test]
async fn an_answer_that_never_comes_does_not_hold_up_the_other_family() {
    for (v4, v6, expected) in [
        (Some(at(&["192.0.2.1"])), None, at(&["192.0.2.1"])),
        (None, Some(at(&["2001:db8::1"])), at(&["2001:db8::1"])),
    ] {
        let server = Server::new(v4, v6);
        let names = Names::new(server.look_up());
        assert_eq!(found(&names, "music.example").await, expected);
        assert_eq!(server.busy.load(Ordering::SeqCst), 1, "the other one is still under way");
        for family in [Family::V4, Family::V6] {
            server.say(family, Some(silence()));
        }
    }
}

#[tokio::test]
async fn both_families_are_used_when_both_answer() {
    let server = Server::new(Some(at(&["192.0.2.1", "192.0.2.2"])), Some(at(&["2001:db8::1"])));
    let names = Names::new(server.look_up());
    let mut both = found(&names, "music.example").await.unwrap();
    both.sort();
    assert_eq!(both, at(&["192.0.2.1", "192.0.2.2", "2001:db8::1"]).unwrap());
}

#[tokio::test]
async fn a_host_of_one_family_is_found_by_that() {
    let none = || Some(Err(NoAddress::NoSuchName));
    let names = Names::new(Server::new(none(), Some(at(&["2001:db8::1"]))).look_up());
    assert_eq!(found(&names, "six.example").await, at(&["2001:db8::1"]));
    let names = Names::new(Server::new(Some(at(&["192.0.2.1"])), none()).look_up());
    assert_eq!(found(&names, "four.example").await, at(&["192.0.2.1"]));
    let names = Names::new(Server::new(none(), none()).look_up());
    assert_eq!(found(&names, "no.example").await, Err(NoAddress::NoSuchName));
    let names = Names::new(Server::new(none(), Some(silence())).look_up());
    assert_eq!(found(&names, "half.example").await, silence());
}

#[tokio::test]
async fn a_look_up_that_hangs_is_shared_and_its_answer_is_there_for_who_asks_again() {
    let server = Server::new(None, None);
    let names = Names::new(server.look_up());
    for _ in 0..5 {
        assert!(timeout(Duration::from_millis(20), names.find("slow.example")).await.is_err());
    }
    let waiting = tokio::spawn({
        let names = Arc::clone(&names);
        async move { found(&names, "slow.example").await }
    });
    server.say(Family::V6, Some(Err(NoAddress::NoSuchName)));
    server.say(Family::V4, Some(at(&["192.0.2.1"])));
    assert_eq!(waiting.await.unwrap(), at(&["192.0.2.1"]));
    assert_eq!(found(&names, "slow.example").await, at(&["192.0.2.1"]));
    assert_eq!(server.asked.load(Ordering::SeqCst), 2, "once for each family");
}

#[tokio::test]
async fn names_that_hang_take_a_few_threads_and_no_more() {
    let server = Server::new(None, None);
    let names = Names::new(server.look_up());
    let asking: Vec<_> = (0..2 * THREADS)
        .map(|number| {
            let names = Arc::clone(&names);
            tokio::spawn(async move { found(&names, &format!("{number}.example")).await })
        })
        .collect();
    while server.busy.load(Ordering::SeqCst) < THREADS {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = names.find("one.too.many.example").await.unwrap_err();
    assert!(matches!(&error, NoAddress::NoAnswer(why) if why.contains("too many")), "{error}");
    server.say(Family::V4, Some(at(&["192.0.2.1"])));
    server.say(Family::V6, Some(at(&["2001:db8::1"])));
    for asked in asking {
        assert!(asked.await.unwrap().is_ok());
    }
    assert_eq!(server.busiest.load(Ordering::SeqCst), THREADS);
}

#[tokio::test]
async fn what_was_found_before_serves_while_no_name_server_answers() {
    let server = Server::new(Some(at(&["192.0.2.1"])), Some(Err(NoAddress::NoSuchName)));
    let names = Names::with(server.look_up(), hasty());
    assert_eq!(found(&names, "music.example").await, at(&["192.0.2.1"]));
    // It says that it cannot tell, then nothing at all.
    for family in [Family::V4, Family::V6] {
        server.say(family, Some(silence()));
    }
    assert_eq!(found(&names, "music.example").await, at(&["192.0.2.1"]));
    assert_eq!(found(&names, "other.example").await, silence());
    for family in [Family::V4, Family::V6] {
        server.say(family, None);
    }
    assert_eq!(found(&names, "music.example").await, at(&["192.0.2.1"]));
    // It is back, and knows better.
    server.say(Family::V4, Some(at(&["192.0.2.9"])));
    server.say(Family::V6, Some(Err(NoAddress::NoSuchName)));
    while found(&names, "music.example").await != at(&["192.0.2.9"]) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.say(Family::V4, Some(Err(NoAddress::NoSuchName)));
    while found(&names, "music.example").await != Err(NoAddress::NoSuchName) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(names.is_unknown("music.example"));
}

#[tokio::test]
async fn what_was_found_long_ago_does_not_serve() {
    let server = Server::new(Some(at(&["192.0.2.1"])), Some(silence()));
    let times = Times { kept: Duration::ZERO, ..hasty() };
    let names = Names::with(server.look_up(), times);
    assert!(found(&names, "music.example").await.is_ok());
    server.say(Family::V4, Some(silence()));
    assert_eq!(found(&names, "music.example").await, silence());
}

#[tokio::test]
async fn addresses_of_the_last_sixteen_hosts_are_kept() {
    let server = Server::new(Some(at(&["192.0.2.1"])), Some(Err(NoAddress::NoSuchName)));
    let names = Names::new(server.look_up());
    for number in 0..=HOSTS {
        found(&names, &format!("{number}.example")).await.unwrap();
    }
    assert!(names.is_unknown("0.example"));
    assert!((1..=HOSTS).all(|number| !names.is_unknown(&format!("{number}.example"))));
}

#[tokio::test]
async fn only_an_answer_about_another_name_shows_that_a_name_server_is_there() {
    let server = Server::new(Some(silence()), Some(silence()));
    let names = Names::new(server.look_up());
    let since = Instant::now();
    found(&names, "a.example").await.unwrap_err();
    assert!(!names.another_answered("b.example", since));
    for family in [Family::V4, Family::V6] {
        server.say(family, Some(Err(NoAddress::NoSuchName)));
    }
    found(&names, "a.example").await.unwrap_err();
    assert!(names.another_answered("b.example", since));
    assert!(!names.another_answered("a.example", since));
    assert!(!names.another_answered("b.example", Instant::now()));
}

#[tokio::test]
async fn the_system_finds_this_machine() {
    let names = Names::new(by_the_system());
    let here = found(&names, "localhost").await.unwrap();
    assert!(here.iter().all(|address| address.ip().is_loopback()), "{here:?}");
}
