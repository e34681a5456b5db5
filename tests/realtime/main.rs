//! The output thread, while it plays: it allocates nothing, takes no lock and logs nothing.
//!
//! One test at a time: the thread is found by its name.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../output/card.rs"]
#[allow(dead_code)]
mod card;
#[path = "../output/player.rs"]
#[allow(dead_code)]
mod player;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use card::Card;
use player::{Player, noise, settings};
use segue::output::{BeginState, Event, Settings, SourceFormat};

/// Counts what one thread allocates and frees.
struct Counting;

/// The thread that is watched; 0 is none.
static WATCHED: AtomicI32 = AtomicI32::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

fn count() {
    let watched = WATCHED.load(SeqCst);
    if watched != 0 && nix::unistd::gettid().as_raw() == watched {
        ALLOCATED.fetch_add(1, SeqCst);
    }
}

// SAFETY: everything is left to the system's allocator; counting allocates nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The output thread of this process.
fn output_thread() -> i32 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let name =
        |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    let found = tasks.filter(|task| name(task).trim() == "output").last();
    found.expect("an output thread").file_name().to_string_lossy().parse().unwrap()
}

/// Six seconds of sound, with all that may happen to it while it plays. `began` and `ends` are called around the part
/// in which the rules hold.
fn play(card: &Card, began: impl FnOnce(i32), ends: impl FnOnce()) {
    let source = |bits| SourceFormat { rate: 48_000, channels: 2, bits, lossy: false };
    let mut player = Player::start(settings(card));
    player.begin(source(16), 1);
    player.play(1, 1, &noise(48_000, 16, 1));
    player.until(|event| matches!(event, Event::Sounding { .. }));
    player.play_on(Duration::from_millis(100));
    began(output_thread());
    for track in 2..6 {
        // Joins, marks, another width in the format that runs.
        let bits = if track % 2 == 0 { 24 } else { 16 };
        while !matches!(player.writer.begin(source(bits), 1), BeginState::Ready(_)) {}
        player.play(track, 1, &noise(48_000, bits, track as u32));
        player.output.set_volume(0.1 * track as f32);
        player.until(|event| matches!(event, Event::Heard(mark) if mark.entry.0 == track));
        player.output.set_mute(track == 3);
        let _ = (player.output.playhead(), player.output.facts());
    }
    player.output.pause();
    player.play_on(Duration::from_millis(150));
    player.output.resume();
    player.play_on(Duration::from_millis(300));
    assert_eq!(player.output.facts().xruns, 0);
    ends();
    player.end(1);
    player.until(|event| matches!(event, Event::Finished { .. }));
}

#[test]
fn while_it_plays_it_allocates_nothing() {
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    let card = Card::new("");
    let watch = |thread| {
        ALLOCATED.store(0, SeqCst);
        WATCHED.store(thread, SeqCst);
    };
    play(&card, watch, || WATCHED.store(0, SeqCst));
    assert_eq!(ALLOCATED.load(SeqCst), 0, "allocations and frees of the output thread");
    // The detector sees what it is for.
    WATCHED.store(nix::unistd::gettid().as_raw(), SeqCst);
    drop(std::hint::black_box(vec![1]));
    WATCHED.store(0, SeqCst);
    assert_eq!(ALLOCATED.load(SeqCst), 2);
}

/// The system calls of a thread, by name, from now until the returned value is asked for them.
struct Trace {
    strace: std::process::Child,
    file: tempfile::NamedTempFile,
}

impl Trace {
    /// None where threads cannot be traced, which is said.
    fn begin(thread: i32) -> Option<Trace> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let strace = Command::new("strace")
            .args(["-q", "-p", &thread.to_string(), "-o"])
            .arg(file.path())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut strace) = strace else {
            eprintln!("SKIPPED: strace is not installed");
            return None;
        };
        // It is attached when the kernel says so.
        let tracer = || {
            let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
            status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
        };
        while !tracer() {
            if strace.try_wait().unwrap().is_some() {
                eprintln!("SKIPPED: this user may not trace threads");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Trace { strace, file })
    }

    fn end(mut self) -> BTreeMap<String, usize> {
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.strace.id() as i32),
            nix::sys::signal::Signal::SIGINT,
        )
        .unwrap();
        self.strace.wait().unwrap();
        let text = std::fs::read_to_string(self.file.path()).unwrap();
        let mut calls = BTreeMap::new();
        for name in text.lines().filter_map(|line| line.split_once('(')).map(|(name, _)| name) {
            *calls.entry(name.trim().to_owned()).or_default() += 1;
        }
        calls
    }
}

/// The thread's scheduling policy: 0 is that of ordinary ones, 1 is SCHED_FIFO.
fn policy(thread: i32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(38).unwrap().parse().unwrap()
}

#[test]
fn it_runs_above_ordinary_threads_for_a_card_where_it_may_and_never_for_what_is_always_ready() {
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    let card = Card::new("");
    let may = std::thread::spawn(|| segue::system::realtime::become_realtime(10).is_ok()).join().unwrap();
    for (device, above) in [(card.name.clone(), may), ("null".to_owned(), false)] {
        let settings = Settings { device: vec![device.clone()], ..settings(&card) };
        let mut player = Player::start(settings);
        let source = SourceFormat { rate: 48_000, channels: 2, bits: 16, lossy: false };
        player.begin(source, 1);
        let thread = output_thread();
        assert_eq!(policy(thread) == 1, above, "{device}, open");
        player.play(1, 1, &noise(24_000, 16, 1));
        player.until(|event| matches!(event, Event::Heard(_)));
        assert_eq!(policy(thread) == 1, above, "{device}, playing");
        player.end(1);
        player.until(|event| matches!(event, Event::Finished { .. }));
    }
    if !may {
        eprintln!("SKIPPED in part: this user may not run threads above others");
    }
}

#[test]
fn while_it_plays_it_calls_the_system_for_the_card_and_its_wake_ups_only() {
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    let card = Card::new("capture \"no\"");
    let (mut trace, mut calls) = (None, None);
    let traced = std::cell::RefCell::new(&mut trace);
    let begin = |thread| **traced.borrow_mut() = Trace::begin(thread);
    let end = || calls = traced.borrow_mut().take().map(Trace::end);
    play(&card, begin, end);
    let Some(calls) = calls else { return };
    eprintln!("{calls:?}");
    // Waiting; the virtual card's timer, its faults and its log; eventfds and the bell.
    const FINE: [&str; 19] = [
        "poll",
        "ppoll",
        "ioctl",
        "read",
        "write",
        "writev",
        "sendto",
        "timerfd_settime",
        "timerfd_gettime",
        "stat",
        "newfstatat",
        "fstat",
        "statx",
        "clock_gettime",
        "restart_syscall",
        "openat",
        "close",
        "pread64",
        // The card writes whose log it is.
        "getpid",
    ];
    let others: Vec<_> = calls.keys().filter(|name| !FINE.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?} among {calls:?}");
    assert!(calls["poll"] + calls.get("ppoll").copied().unwrap_or(0) > 10, "{calls:?}");
}
