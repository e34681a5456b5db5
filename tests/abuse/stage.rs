//! A real daemon that plays music, a good neighbour, and the bad plugins of one test beside them.

mod remains;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tokio::sync::{RwLock, RwLockReadGuard, Semaphore};

use self::remains::{processes_with, settles};
use crate::case::{Case, Expect, Step};
use crate::support::prelude::*;

/// The daemon takes eight searches at a time over the bus; one is kept for the neighbour.
const SEARCHES: usize = 7;
/// What a search brought: titles, or code and sentence.
pub type Found = Result<Vec<String>, (i32, String)>;

/// Held for writing by the test that leaves no processor time to the others.
static CALM: RwLock<()> = RwLock::const_new(());

/// The daemon and all that is good.
pub struct Stage {
    pub daemon: Daemon,
    pub card: Card,
    _server: Server,
    neighbour: Plugin,
    mark: String,
    turns: Semaphore,
    calm: Option<RwLockReadGuard<'static, ()>>,
    /// The neighbour's slowest answer of late, in milliseconds.
    slowest: AtomicU64,
}

/// Puts the cases beside the music, one after the other, and tells all that went wrong.
pub async fn play(cases: &[Case]) {
    let stage = Stage::open(cases).await;
    stage.play(cases).await;
}

/// As [`play`], with nothing else beside it: the cases take all processor time that they can get.
pub async fn play_alone(cases: &[Case]) {
    let _storm = CALM.write().await;
    let stage = Stage::set_up(cases).await;
    stage.play(cases).await;
}

/// As [`play`], where plugins are confined; elsewhere nothing of it holds, and the daemon says so.
pub async fn play_confined(cases: &[Case]) {
    let stage = Stage::open(cases).await;
    if stage.confined().await {
        stage.play(cases).await;
    } else {
        eprintln!("plugins are not confined on this machine: {}", stage.isolation().await);
    }
}

impl Stage {
    /// Runs the cases one after the other and tells all that went wrong.
    async fn play(&self, cases: &[Case]) {
        let memory = self.memory();
        let mut wrong = Vec::new();
        for case in cases {
            let began = Instant::now();
            if let Err(what) = self.run(case).await {
                wrong.push(format!("{}: {what}", case.id));
            }
            let (took, slowest) = (began.elapsed().as_millis(), self.slowest.swap(0, Ordering::Relaxed));
            eprintln!("{took:>6} ms {}, while the neighbour took {slowest} ms at most", case.id);
        }
        eprintln!("memory went from {} KiB to {} KiB", memory >> 10, self.memory() >> 10);
        if let Err(what) = settles(|| self.memory_within(memory)).await {
            wrong.push(format!("all together: {what}"));
        }
        assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    }

    /// Starts everything, with the packages of these cases installed, and waits until music is heard.
    pub async fn open(cases: &[Case]) -> Stage {
        let calm = CALM.read().await;
        Stage { calm: Some(calm), ..Stage::set_up(cases).await }
    }

    async fn set_up(cases: &[Case]) -> Stage {
        let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
        let (music, neighbour) = (Plugin::new(&server, "music"), Plugin::new(&server, "neighbour"));
        let source = Recording::music(90, 44_100, 16, 12.0);
        let url = server.serve("/music.flac", source.encode(Codec::Flac));
        let uri = music.add("endless", Track::at(url, "audio/flac").titled("Endless"));
        neighbour.add("1", Track::at(server.url("/nothing"), "audio/flac").titled("Good neighbour"));
        let daemon = Daemon::new()
            .card(&card)
            .plugin(&music)
            .plugin(&neighbour)
            .more_plugins()
            .log_level("info")
            .start()
            .await;
        let mark = daemon.home().file_name().unwrap().to_string_lossy().replace("segue-home-", "abuse-");
        for case in cases {
            let mark = format!("{mark}-{}", case.id);
            case.install(&daemon.home().join("plugins"), &mark, &daemon.bus().address());
        }
        daemon.plugins.call_method("Rescan", &()).await.unwrap();
        daemon.queue.set_property("Repeat", "queue").await.unwrap();
        daemon.play_uris(&[uri]).await;
        daemon.wait_position(300_000).await;
        let stage = Stage {
            daemon,
            card,
            _server: server,
            neighbour,
            mark,
            turns: Semaphore::new(SEARCHES),
            calm: None,
            slowest: AtomicU64::new(0),
        };
        stage.neighbour_answers().await.unwrap();
        stage
    }

    /// One case from its enabling to what it left behind.
    pub async fn run(&self, case: &Case) -> Result<(), String> {
        let (before, memory) = (self.footprint(), self.memory());
        let neighbour_is_well = async {
            loop {
                if let Err(what) = self.neighbour_answers().await.and_then(|()| self.peak_within(memory)) {
                    return what;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let acted = tokio::select! {
            acted = self.act(case) => acted,
            what = neighbour_is_well => Err(what),
        };
        self.disable(case.id).await?;
        let left = self.nothing_is_left(case.id, &before, memory).await;
        acted.and(left)
    }

    async fn act(&self, case: &Case) -> Result<(), String> {
        let enabled = self.enable(case.id).await;
        match (case.refused, enabled) {
            (None, enabled) => enabled.map_err(|error| format!("not enabled: {error}"))?,
            (Some(words), Ok(())) => return Err(format!("enabled, not refused with “{words}”")),
            (Some(words), Err(error)) if !error.to_string().contains(words) => {
                return Err(format!("refused, not with “{words}” but: {error}"));
            }
            (Some(_), Err(_)) => return Ok(()),
        }
        // What is looked for afterwards can be seen now, unless it has ended.
        let mark = self.mark_of(case.id);
        let seen = async {
            while processes_with(&mark).is_empty() && self.is_running(case.id).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.map_err(|_| "its process cannot be seen".to_owned())?;
        for step in &case.steps {
            let step_done = tokio::time::timeout(PATIENCE, self.step(case.id, step)).await;
            step_done
                .unwrap_or_else(|_| Err("it takes for ever".to_owned()))
                .map_err(|what| format!("{step:?}: {what}"))?;
        }
        Ok(())
    }

    async fn step(&self, id: &str, step: &Step) -> Result<(), String> {
        match step {
            Step::Call(words, expect) => fits(expect, words, &self.search(id, words).await),
            Step::Together(calls) => {
                let calls = calls.iter().map(async |(words, expect)| {
                    let _turn = self.turns.acquire().await.map_err(|error| error.to_string())?;
                    fits(expect, words, &self.search(id, words).await)
                });
                join_all(calls).await.into_iter().collect()
            }
            Step::Stopped => {
                while self.is_running(id).await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok(())
            }
            Step::Log(words) => {
                while !self.log(id).await.iter().any(|line| line.contains(words)) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok(())
            }
            Step::LogIs(count, first, last) => loop {
                let log = self.log(id).await;
                let ends = log.last().is_some_and(|line| line == last);
                if ends && log.len() != *count || !log[0].starts_with(first) {
                    return Err(format!("the log has {} lines from {:?}", log.len(), log[0]));
                } else if ends {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            },
            Step::Until(words, first, then) => loop {
                let found = self.search(id, words).await;
                if fits(first, words, &found).is_err() {
                    return fits(then, words, &found);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            },
            Step::EnabledAgain => self.enable(id).await.map_err(|error| error.to_string()),
            Step::Edited(how) => self.edit(id, how).await,
            Step::During(words, expect, how) => {
                let search = async { self.search(id, words).await };
                let meanwhile = async {
                    // The plugin tells in its log that it has got the call.
                    while !self.log(id).await.iter().any(|line| line == words) {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    match how {
                        None => self.disable(id).await,
                        Some(how) => self.edit(id, how).await,
                    }
                };
                let (found, done) = tokio::join!(search, meanwhile);
                done?;
                fits(expect, words, &found)
            }
        }
    }

    /// An argument of this plugin's, and so of all that it forks.
    fn mark_of(&self, id: &str) -> String {
        format!("{}-{id}", self.mark)
    }

    async fn disable(&self, id: &str) -> Result<(), String> {
        match self.daemon.plugins.call::<_, _, ()>("Disable", &id).await {
            Err(zbus::Error::MethodError(name, ..)) if name.ends_with("NoSuchPlugin") => Ok(()),
            other => other.map_err(|error| format!("Disable: {error}")),
        }
    }

    async fn edit(&self, id: &str, how: &fn(&Path)) -> Result<(), String> {
        how(&self.daemon.home().join("plugins").join(id));
        let rescanned = self.daemon.plugins.call::<_, _, ()>("Rescan", &()).await;
        rescanned.map_err(|error| error.to_string())
    }

    async fn is_running(&self, id: &str) -> bool {
        let review: zbus::Result<Dict> = self.daemon.plugins.call("Inspect", &id).await;
        review.is_ok_and(|review| get::<bool>(&review, "running"))
    }

    /// What `segue plugin inspect` shows.
    pub async fn inspect(&self, id: &str) -> Dict {
        self.daemon.plugins.call("Inspect", &id).await.unwrap()
    }

    /// All lines that are kept of its log.
    async fn log(&self, id: &str) -> Vec<String> {
        let lines: Vec<(String, String)> = self.daemon.plugins.call("Logs", &(id, u32::MAX)).await.unwrap();
        lines.into_iter().map(|(_, text)| text).collect()
    }

    /// Trusts it as it is and enables it with all that it asks for.
    pub async fn enable(&self, id: &str) -> zbus::Result<()> {
        let review: Dict = self.daemon.plugins.call("Inspect", &id).await?;
        let (fingerprint, scopes) =
            (get::<String>(&review, "fingerprint"), get::<Vec<String>>(&review, "scopes"));
        let _: () = self.daemon.plugins.call("Trust", &(id, fingerprint)).await?;
        self.daemon.plugins.call("Enable", &(id, scopes)).await
    }

    /// Asks one plugin over the bus.
    pub async fn search(&self, id: &str, words: &str) -> Found {
        let options = std::collections::HashMap::from([("plugin", zbus::Variant::from(id))]);
        type Answer = (Vec<Dict>, std::collections::HashMap<String, (i32, String)>);
        let answer: zbus::Result<Answer> = self.daemon.catalog.call("Search", &(words, options)).await;
        let (results, mut errors) = answer.map_err(|error| (0, error.to_string()))?;
        match errors.remove(id) {
            Some(error) => Err(error),
            None => Ok(results.iter().map(|hit| get(hit, "title")).collect()),
        }
    }

    /// Whether plugins are confined on this machine.
    async fn confined(&self) -> bool {
        self.isolation().await.starts_with("enforced")
    }

    /// How they are, in the daemon's words.
    async fn isolation(&self) -> String {
        get(&self.inspect(self.neighbour.id()).await, "isolation")
    }
}

/// Whether a call brought what it must.
pub fn fits(expect: &Expect, words: &str, found: &Found) -> Result<(), String> {
    let own = |titles: &Vec<String>| *titles == [words];
    let right = match (expect, found) {
        (Expect::Found | Expect::FoundOr(_), Ok(titles)) => own(titles),
        (Expect::Fails(code), Err((found, _))) => found == code,
        (Expect::Says(code, part), Err((found, sentence))) => found == code && sentence.contains(part),
        (Expect::FoundOr(codes) | Expect::OneOf(codes), Err((found, _))) => codes.contains(found),
        (Expect::Title(title), Ok(titles)) => titles == &[*title],
        _ => false,
    };
    if right { Ok(()) } else { Err(format!("it brought {found:?}")) }
}
