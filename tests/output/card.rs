//! One virtual card in a folder of its own.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime};

use segue::output::SampleFormat;

/// All cards of this process. alsa-lib reads the configuration again when the file has changed.
struct Cards {
    dir: tempfile::TempDir,
    configuration: Mutex<(String, usize)>,
}

static CARDS: LazyLock<Cards> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a folder for the cards");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soundcard/build.sh");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soundcard");
    let built = Command::new(build).arg(&out).output().expect("the virtual card's build script runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let library = String::from_utf8(built.stdout).expect("a path").trim().to_owned();
    name_configuration(&dir.path().join("asound.conf"));
    let text = format!("</usr/share/alsa/alsa.conf>\npcm_type.vcard {{ lib \"{library}\" }}\n");
    Cards { dir, configuration: Mutex::new((text, 0)) }
});

/// Points alsa-lib at the cards.
#[allow(unsafe_code)]
fn name_configuration(path: &Path) {
    // SAFETY: every test makes its card first, and making one waits for this. So alsa-lib, which reads the environment
    // behind the back of std's lock, is not called before; std's own readers are kept away by that lock.
    unsafe { std::env::set_var("ALSA_CONFIG_PATH", path) };
}

pub struct Card {
    pub name: String,
    dir: PathBuf,
    settings: RefCell<String>,
}

impl Card {
    /// A card with these settings (see tests/soundcard/README.md).
    pub fn new(settings: &str) -> Card {
        let mut configuration = CARDS.configuration.lock().unwrap_or_else(|e| e.into_inner());
        configuration.1 += 1;
        let name = format!("card{}", configuration.1);
        drop(configuration);
        let dir = CARDS.dir.path().join(&name);
        std::fs::create_dir(&dir).expect("a folder for the card");
        let card = Card { name, dir, settings: RefCell::default() };
        card.configure(settings);
        card
    }

    /// Changes the settings for the next opening.
    pub fn configure(&self, settings: &str) {
        self.settings.replace(settings.to_owned());
        self.define(&format!("type vcard dir \"{}\" {settings}", self.dir.display()));
    }

    /// Makes it another kind of device: what is written lands in this file.
    pub fn become_file(&self) -> PathBuf {
        let file = self.dir.join("file.raw");
        self.define(&format!("type file slave.pcm null format raw file \"{}\"", file.display()));
        file
    }

    /// It can be opened under this name, too.
    pub fn also_known_as(&self, name: &str) {
        let text = format!("pcm.!{name} {{ type vcard dir \"{}\" }}\n", self.dir.display());
        self.append(&text);
    }

    /// Puts ALSA's converting plugin in front of the card.
    pub fn become_plug(&self) {
        let card = format!("type vcard dir \"{}\" {}", self.dir.display(), self.settings.borrow());
        self.define(&format!("type plug slave.pcm {{ {card} }}"));
    }

    fn define(&self, definition: &str) {
        self.append(&format!("pcm.!{} {{ {definition} }}\n", self.name));
    }

    fn append(&self, more: &str) {
        let mut configuration = CARDS.configuration.lock().unwrap_or_else(|e| e.into_inner());
        let text = &mut configuration.0;
        text.push_str(more);
        let path = CARDS.dir.path().join("asound.conf");
        let mut file = std::fs::File::create(path.with_extension("new")).expect("a new configuration");
        file.write_all(text.as_bytes()).expect("the configuration is written");
        // alsa-lib knows a file by its inode, which is soon used again, and by the second of its change: this is the only
        // version with so many bytes, and with this second.
        let change = SystemTime::now() + Duration::from_secs(text.len() as u64);
        file.set_modified(change).expect("the configuration has a time of its own");
        std::fs::rename(path.with_extension("new"), &path).expect("and put in place");
    }

    /// Sets a fault; empty for a healthy card.
    pub fn fault(&self, word: &str) {
        let path = self.dir.join("fault");
        std::fs::write(path.with_extension("new"), word).expect("the fault is written");
        std::fs::rename(path.with_extension("new"), path).expect("and put in place");
    }

    /// The card's own log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("events.log")).unwrap_or_default()
    }

    fn count(&self, event: &str) -> usize {
        self.log().lines().filter(|l| l.split(' ').nth(1) == Some(event)).count()
    }

    /// Waits for one more of these events than there are, or takes one that came in the last 20 ms;
    /// returns its `consumed`.
    pub fn wait_for(&self, event: &str) -> u64 {
        static SEEN: Mutex<Vec<(PathBuf, String, usize)>> = Mutex::new(Vec::new());
        let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
        let same = |(dir, name, _): &&(PathBuf, String, usize)| *dir == self.dir && name == event;
        let before = seen.iter().filter(same).map(|(_, _, n)| *n).max().unwrap_or(0);
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.count(event) <= before {
            assert!(Instant::now() < deadline, "no {event} in\n{}", self.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        seen.push((self.dir.clone(), event.to_owned(), before + 1));
        let log = self.log();
        let line =
            log.lines().filter(|l| l.split(' ').nth(1) == Some(event)).nth(before).expect("it is there");
        let consumed = line.split(' ').find_map(|p| p.strip_prefix("consumed=")).expect("it has a count");
        consumed.parse().expect("a number")
    }

    /// The bytes that the card consumed in its session of this number, from 0.
    pub fn capture(&self, session: usize) -> Vec<u8> {
        self.captures().swap_remove(session)
    }

    /// The same for all sessions, in order.
    pub fn captures(&self) -> Vec<Vec<u8>> {
        let mut captures: Vec<PathBuf> = std::fs::read_dir(&self.dir)
            .expect("the card's folder")
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "raw"))
            .collect();
        captures.sort();
        captures.iter().map(|capture| std::fs::read(capture).expect("a capture")).collect()
    }

    pub fn assert_begins_with(&self, session: usize, sample: SampleFormat, sound: &[i32]) {
        let heard = frames_of(&self.capture(session), sample);
        assert!(
            heard.len() >= sound.len(),
            "{} of {} samples, log\n{}",
            heard.len(),
            sound.len(),
            self.log()
        );
        if let Some(i) = (0..sound.len()).find(|i| heard[*i] != sound[*i]) {
            panic!("sample {i} of {} is {:#x}, not {:#x}\n{}", sound.len(), heard[i], sound[i], self.log());
        }
        assert!(heard[sound.len()..].iter().all(|s| *s == 0), "only silence may follow");
    }
}

/// Samples of a capture, left-justified.
pub fn frames_of(bytes: &[u8], sample: SampleFormat) -> Vec<i32> {
    bytes
        .chunks_exact(sample.bytes())
        .map(|b| {
            let mut le = [0; 4];
            le[..b.len()].copy_from_slice(b);
            i32::from_le_bytes(le) << (32 - sample.bits())
        })
        .collect()
}
