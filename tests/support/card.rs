//! The virtual sound card of `tests/soundcard`, as a value.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;

use super::audio::Recording;
use super::until;

/// The card's PCM in its `asound.conf`.
pub const PCM: &str = "dac";

/// How the card consumes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    /// Whatever is written, at once; never underruns. For exactness.
    Demand,
    /// In real time.
    Real,
    /// So many times faster than real time.
    Times(f64),
}

/// What can be wrong with a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not there.
    Unplug,
    /// Another program has it.
    Busy,
    /// Runs dry, once.
    Xrun,
    /// Consumes nothing.
    Freeze,
}

/// How to make a card.
pub struct CardBuilder {
    clock: Clock,
    settings: Vec<(&'static str, String)>,
    fault: Option<Fault>,
    mixer: Option<String>,
    pcm: String,
    beside: Option<Arc<TempDir>>,
}

/// A card. Everything that it was given to play can be read back.
pub struct Card {
    folder: Arc<TempDir>,
    pcm: String,
}

/// From one setting of rate and format to the next.
#[derive(Clone, Debug)]
pub struct Session {
    /// ALSA's name of the format.
    pub format: String,
    /// Frames of a period.
    pub period: usize,
    /// Each frame that was consumed.
    pub heard: Recording,
}

/// A line of the card's log.
#[derive(Clone, Debug)]
pub struct CardEvent {
    /// Monotonic, when it was written.
    pub ns: u64,
    /// `open`, `params`, `start`, …
    pub kind: String,
    /// The rest.
    pub values: HashMap<String, String>,
}

impl CardEvent {
    /// A number of the line.
    pub fn number(&self, key: &str) -> u64 {
        let value = self.values.get(key).unwrap_or_else(|| panic!("{self:?} has no {key}"));
        value.parse().unwrap_or_else(|_| panic!("{key} of {self:?} is no number"))
    }
}

impl CardBuilder {
    /// The pace.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The sample formats that it takes.
    pub fn formats(mut self, formats: &[&str]) -> Self {
        self.settings.push(("formats", formats.join(",")));
        self
    }

    /// The rates that it takes.
    pub fn rates(mut self, rates: &[u32]) -> Self {
        self.settings.push(("rates", rates.map_join()));
        self
    }

    /// The numbers of channels that it takes.
    pub fn channels(mut self, channels: &[u32]) -> Self {
        self.settings.push(("channels", channels.map_join()));
        self
    }

    /// It holds at most so many bytes.
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.settings.push(("buffer_max", bytes.to_string()));
        self
    }

    /// With a volume control of its own, whose mixer has the card's name. `settings` as in its README.
    pub fn mixer(mut self, settings: &str) -> Self {
        self.mixer = Some(settings.to_owned());
        self
    }

    /// Which of its channels is which loudspeaker, in ALSA's names.
    pub fn places(mut self, names: &str) -> Self {
        self.settings.push(("chmap", names.to_owned()));
        self
    }

    /// A second card of the same machine, under this name.
    pub fn beside(mut self, first: &Card, name: &str) -> Self {
        self.beside = Some(Arc::clone(&first.folder));
        self.pcm = name.to_owned();
        self
    }

    /// Wrong from the start on.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Makes it.
    pub fn plug(self) -> Card {
        let common = format!(
            "</usr/share/alsa/alsa.conf>\npcm_type.vcard {{ lib \"{lib}\" }}\nctl_type.vctl {{ lib \"{lib}\" }}\n",
            lib = library().display()
        );
        let fresh = || Arc::new(TempDir::with_prefix("segue-card-").unwrap());
        let card = Card { folder: self.beside.unwrap_or_else(fresh), pcm: self.pcm };
        let (pcm, folder) = (&card.pcm, card.folder.path().join(&card.pcm));
        fs::create_dir(&folder).unwrap();
        let mut definition = format!("dir \"{}\"", folder.display());
        match self.clock {
            Clock::Demand => definition.push_str(" clock \"demand\""),
            Clock::Real => {}
            Clock::Times(speed) => definition.push_str(&format!(" speed {speed:?}")),
        }
        for (key, value) in &self.settings {
            definition.push_str(&format!(" {key} \"{value}\""));
        }
        let mixer = self.mixer.map_or_else(String::new, |settings| {
            let dir = folder.display();
            format!("ctl.{pcm} {{ type vctl dir \"{dir}\" {settings} }}\n")
        });
        let before = fs::read_to_string(card.alsa_config()).unwrap_or(common);
        let configuration = format!("{before}pcm.{pcm} {{ type vcard {definition} }}\n{mixer}");
        fs::write(card.alsa_config(), configuration).unwrap();
        if let Some(fault) = self.fault {
            card.fault(fault);
        }
        card
    }
}

trait MapJoin {
    fn map_join(&self) -> String;
}

impl MapJoin for [u32] {
    fn map_join(&self) -> String {
        self.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Card {
    /// On demand, with all formats, unless told otherwise. [`CardBuilder::plug`] makes it.
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> CardBuilder {
        CardBuilder {
            clock: Clock::Demand,
            settings: Vec::new(),
            fault: None,
            mixer: None,
            pcm: PCM.to_owned(),
            beside: None,
        }
    }

    /// For `ALSA_CONFIG_PATH`.
    pub fn alsa_config(&self) -> PathBuf {
        self.folder.path().join("asound.conf")
    }

    /// The name of its PCM.
    pub fn name(&self) -> &str {
        &self.pcm
    }

    /// Where it keeps its files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join(&self.pcm)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn write_fault(&self, word: &str) {
        let new = self.file("fault.new");
        fs::write(&new, word).unwrap();
        fs::rename(new, self.file("fault")).unwrap();
    }

    /// What its volume control stands at: the step, and whether it is on.
    pub fn mixer(&self) -> Option<(i64, bool)> {
        let text = fs::read_to_string(self.file("mixer")).ok()?;
        let mut numbers = text.split_whitespace().filter_map(|number| number.parse::<i64>().ok());
        Some((numbers.next()?, numbers.next()? != 0))
    }

    /// Somebody turns the knob at the card.
    pub fn turn_knob(&self, step: i64, on: bool) {
        let new = self.file("mixer.knob");
        fs::write(&new, format!("{step} {}\n", i64::from(on))).unwrap();
        fs::rename(new, self.file("mixer")).unwrap();
    }

    /// How often the control was set by a program.
    pub fn mixer_writes(&self) -> usize {
        fs::read_to_string(self.file("mixer.log")).unwrap_or_default().lines().count()
    }

    /// When it was set by a program, as in the card's log.
    pub fn mixer_writes_ns(&self) -> Vec<u64> {
        let log = fs::read_to_string(self.file("mixer.log")).unwrap_or_default();
        log.lines().map(|line| parse_event(line).ns).collect()
    }

    /// Breaks it.
    pub fn fault(&self, fault: Fault) {
        self.write_fault(match fault {
            Fault::Unplug => "unplug",
            Fault::Busy => "busy",
            Fault::Xrun => "xrun",
            Fault::Freeze => "freeze",
        });
    }

    /// Makes it well again.
    pub fn heal(&self) {
        self.write_fault("");
    }

    /// Its log.
    pub fn events(&self) -> Vec<CardEvent> {
        let log = fs::read_to_string(self.file("events.log")).unwrap_or_default();
        log.lines().map(parse_event).collect()
    }

    /// The lines of one kind.
    pub fn events_of(&self, kind: &str) -> Vec<CardEvent> {
        self.events().into_iter().filter(|event| event.kind == kind).collect()
    }

    /// Waits until the log looks so.
    pub async fn wait_for(&self, what: &str, holds: impl Fn(&[CardEvent]) -> bool) {
        let mut last = Vec::new();
        let log = || self.events();
        until(&format!("the card: {what}"), || {
            last = log();
            holds(&last)
        })
        .await;
    }

    /// All that was heard, by settings of rate and format. Settings of which nothing was heard are left out.
    pub fn sessions(&self) -> Vec<Session> {
        let params = self.events_of("params");
        params.iter().map(|event| self.session(event)).filter(|session| session.heard.frames() > 0).collect()
    }

    fn session(&self, params: &CardEvent) -> Session {
        let format = params.values["format"].clone();
        let bytes = fs::read(self.file(&params.values["capture"])).unwrap();
        let (rate, channels) = (params.number("rate") as u32, params.number("channels") as usize);
        let samples = decode(&format, &bytes);
        let whole = samples.len() / channels * channels;
        let samples = samples[..whole].to_vec();
        Session {
            format,
            period: params.number("period") as usize,
            heard: Recording { rate, channels, bits: 32, samples },
        }
    }

    /// All that was heard in one go, without silence around it. For cards that were set once to what sounds.
    #[track_caller]
    pub fn music(&self) -> Recording {
        let mut sessions = self.sessions().into_iter().map(|session| session.heard);
        let first = sessions.next().expect("nothing was heard");
        sessions.fold(first, |all, next| all.trimmed().then(&next.trimmed())).trimmed()
    }

    /// Frames heard so far, over all sessions. Behind by up to 20 ms while the card runs.
    pub fn frames_heard(&self) -> usize {
        self.sessions().iter().map(|session| session.heard.frames()).sum()
    }
}

fn parse_event(line: &str) -> CardEvent {
    let mut words = line.split_whitespace();
    let ns = words.next().and_then(|ns| ns.parse().ok()).unwrap_or_default();
    let kind = words.next().unwrap_or_default().to_owned();
    let values =
        words.filter_map(|word| word.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    CardEvent { ns, kind, values }
}

/// Little-endian samples of an ALSA format, left-justified.
fn decode(format: &str, bytes: &[u8]) -> Vec<i32> {
    let each = |size: usize, read: fn(&[u8]) -> i32| bytes.chunks_exact(size).map(read).collect();
    match format {
        "S16_LE" => each(2, |b| i32::from_le_bytes([0, 0, b[0], b[1]])),
        "S24_3LE" => each(3, |b| i32::from_le_bytes([0, b[0], b[1], b[2]])),
        "S24_LE" => each(4, |b| i32::from_le_bytes([0, b[0], b[1], b[2]])),
        "S32_LE" => each(4, |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        other => panic!("a capture in {other}"),
    }
}

/// Built once in each run of the tests, by the card's own script.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soundcard/build.sh");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soundcard");
        let built = Command::new("sh").arg(script).arg(folder).output().unwrap();
        assert!(built.status.success(), "the virtual card: {}", String::from_utf8_lossy(&built.stderr));
        PathBuf::from(String::from_utf8(built.stdout).unwrap().trim())
    })
}
