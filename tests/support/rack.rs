//! A machine that has cards, for who asks alsa-lib which there are. See `tests/soundcard/rack.c`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::card::{Card, Fault};
use super::daemon::Setup;

/// The machine. Its cards can be pulled out and pushed in.
pub struct Rack {
    folder: PathBuf,
    cards: Vec<String>,
}

impl Rack {
    /// With these cards, which share a configuration, each with its driver's name. ALSA calls them `hw:CARD=` and the
    /// card's name.
    pub fn of(cards: &[(&Card, &str)]) -> Rack {
        let config = cards[0].0.alsa_config();
        let folder = config.with_file_name("rack");
        fs::create_dir(&folder).unwrap();
        let mut text = fs::OpenOptions::new().append(true).open(&config).unwrap();
        for (number, (card, driver)) in cards.iter().enumerate() {
            let (name, dir) = (card.name(), card.folder());
            let dir = dir.display();
            writeln!(text, "ctl.{number} {{ type vctl dir \"{dir}\" id \"{name}\" driver \"{driver}\" }}")
                .unwrap();
            fs::write(folder.join(number.to_string()), "").unwrap();
        }
        let by_name = "@args [ CARD ] @args.CARD { type string }";
        let pcm = "type empty slave.pcm { @func concat strings [ \"\" $CARD ] }";
        let ctl = "@func refer name { @func concat strings [ \"ctl.\" $CARD ] }";
        writeln!(text, "pcm.!hw {{ {by_name} {pcm} }}\nctl.!hw {{ {by_name} {ctl} }}").unwrap();
        Rack { folder, cards: cards.iter().map(|(card, _)| card.name().to_owned()).collect() }
    }

    /// A daemon in this machine, which looks for cards itself.
    pub fn daemon(&self, setup: Setup) -> Setup {
        setup.devices(&["auto"]).env("RACK", &self.folder).env("LD_PRELOAD", &library())
    }

    /// Pulls the card out.
    pub fn unplug(&self, card: &Card) {
        fs::remove_file(self.place(card)).unwrap();
        card.fault(Fault::Unplug);
    }

    /// Pushes it in again.
    pub fn plug(&self, card: &Card) {
        card.heal();
        fs::write(self.place(card), "").unwrap();
    }

    fn place(&self, card: &Card) -> PathBuf {
        let number = self.cards.iter().position(|name| name == card.name()).expect("a card of this machine");
        self.folder.join(number.to_string())
    }
}

/// Built along with the virtual card.
fn library() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("soundcard/librack.so")
}
