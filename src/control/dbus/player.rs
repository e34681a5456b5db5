//! `org.segue.Player1`: playback with all that MPRIS has no word for.

use std::time::Duration;

use zbus::interface;
use zbus::object_server::SignalEmitter;

use super::errors::Error;
use super::values::{Dict, buffer, check_uris, check_volume, entry_number, last_error, micros, output, text};
use super::{Player, signals};
use crate::control::{Answer, Command, State};
use crate::dsp::{LONGEST_CROSSFADE, ReplayGain};

/// Times are signed microseconds; entry 0 is no entry.
pub struct Player1 {
    pub(super) player: Player,
}

#[interface(name = "org.segue.Player1", spawn = false, introspection_docs = false)]
impl Player1 {
    async fn play_uri(&self, uri: String) -> Result<(), Error> {
        self.play_uris(vec![uri]).await
    }

    /// Replaces the queue and plays.
    async fn play_uris(&self, uris: Vec<String>) -> Result<(), Error> {
        check_uris(&uris)?;
        self.player.tell(Command::PlayUris(uris)).await
    }

    async fn play(&self) -> Result<(), Error> {
        self.player.tell(Command::Play).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.player.tell(Command::Pause).await
    }

    async fn play_pause(&self) -> Result<(), Error> {
        self.player.tell(Command::PlayPause).await
    }

    async fn next(&self) -> Result<(), Error> {
        self.player.tell(Command::Next).await
    }

    async fn previous(&self) -> Result<(), Error> {
        self.player.tell(Command::Previous).await
    }

    async fn stop(&self) -> Result<(), Error> {
        self.player.tell(Command::Stop).await
    }

    async fn seek_by(&self, offset: i64) -> Result<(), Error> {
        self.player.tell(Command::SeekBy(offset)).await
    }

    async fn clear_error(&self) -> Result<(), Error> {
        self.player.tell(Command::ClearError).await
    }

    /// Something went wrong.
    #[zbus(signal)]
    pub async fn error(emitter: &SignalEmitter<'_>, code: &str, message: &str) -> zbus::Result<()>;

    /// Something that a person who watches wants to see.
    #[zbus(signal)]
    pub async fn event(emitter: &SignalEmitter<'_>, kind: &str, entry: u64, text: &str) -> zbus::Result<()>;

    #[zbus(property)]
    fn state(&self) -> &'static str {
        self.player.now().status.as_str()
    }

    #[zbus(property)]
    fn state_reason(&self) -> &'static str {
        self.player.now().reason.as_str()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn position(&self) -> i64 {
        self.player.position().await.0
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn position_exact(&self) -> bool {
        self.player.position().await.1
    }

    #[zbus(property)]
    fn volume(&self) -> f64 {
        self.player.now().volume
    }

    #[zbus(property)]
    async fn set_volume(&self, volume: f64) -> Result<(), Error> {
        let volume = check_volume(volume)?;
        self.player.set(Command::SetVolume(volume), |told, now| told.volume = now.volume).await
    }

    #[zbus(property)]
    fn volume_control(&self) -> &'static str {
        self.player.now().volume_control.as_str()
    }

    #[zbus(property)]
    fn mute(&self) -> bool {
        self.player.now().mute
    }

    #[zbus(property)]
    async fn set_mute(&self, mute: bool) -> Result<(), Error> {
        self.player.set(Command::SetMute(mute), |told, now| told.mute = now.mute).await
    }

    #[zbus(property)]
    fn replay_gain(&self) -> &'static str {
        self.player.now().sound.replay_gain.as_str()
    }

    #[zbus(property)]
    async fn set_replay_gain(&self, mode: String) -> Result<(), Error> {
        let known = ReplayGain::ALL.into_iter().find(|known| known.as_str() == mode);
        let mode = known
            .ok_or_else(|| Error::BadArgument("ReplayGain is one of off, track, album and auto".into()))?;
        self.set_sound(Command::SetReplayGain(mode)).await
    }

    #[zbus(property)]
    fn mono(&self) -> bool {
        self.player.now().sound.mono
    }

    #[zbus(property)]
    async fn set_mono(&self, mono: bool) -> Result<(), Error> {
        self.set_sound(Command::SetMono(mono)).await
    }

    #[zbus(property)]
    fn crossfade_ms(&self) -> u32 {
        crossfade_ms(&self.player.now())
    }

    #[zbus(property)]
    async fn set_crossfade_ms(&self, length: u32) -> Result<(), Error> {
        let length = Duration::from_millis(u64::from(length));
        if length > LONGEST_CROSSFADE {
            let longest = LONGEST_CROSSFADE.as_millis();
            return Err(Error::BadArgument(format!("CrossfadeMs is at most {longest}")));
        }
        self.set_sound(Command::SetCrossfade(length)).await
    }

    #[zbus(property)]
    fn device(&self) -> String {
        text(&self.player.now().output.device)
    }

    #[zbus(property)]
    async fn output(&self) -> Dict {
        let mut dict = output(&self.player.now().output);
        if let Ok(Answer::Buffer(state)) = self.player.ask(Command::Buffer).await {
            dict.insert("delay_us", micros(state.delay).into());
        }
        dict
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn buffer(&self) -> Result<Dict, Error> {
        match self.player.ask(Command::Buffer).await? {
            Answer::Buffer(state) => Ok(buffer(&state)),
            _ => Ok(Dict::new()),
        }
    }

    #[zbus(property)]
    fn last_error(&self) -> (String, String) {
        last_error(self.player.now().last_error.as_ref())
    }

    #[zbus(property)]
    fn current(&self) -> u64 {
        current(&self.player.now())
    }
}

impl Player1 {
    async fn set_sound(&self, command: Command) -> Result<(), Error> {
        self.player.set(command, |told, now| told.sound = now.sound).await
    }
}

fn crossfade_ms(state: &State) -> u32 {
    u32::try_from(state.sound.crossfade.as_millis()).unwrap_or(u32::MAX)
}

fn current(state: &State) -> u64 {
    entry_number(state.current.as_ref().map(|current| current.entry))
}

/// What to announce when `old` became `new`. The card's delay changes all the time: it is read, not announced.
pub fn changes(old: &State, new: &State) -> Dict {
    let mut changes = signals::Changes::between(old, new);
    changes.compare("State", |state| state.status.as_str());
    changes.compare("StateReason", |state| state.reason.as_str());
    changes.compare("Volume", |state| state.volume);
    changes.compare("VolumeControl", |state| state.volume_control.as_str());
    changes.compare("Mute", |state| state.mute);
    changes.compare("ReplayGain", |state| state.sound.replay_gain.as_str());
    changes.compare("Mono", |state| state.sound.mono);
    changes.compare("CrossfadeMs", crossfade_ms);
    changes.compare("Device", |state| text(&state.output.device));
    changes.compare("LastError", |state| last_error(state.last_error.as_ref()));
    changes.compare("Current", current);
    changes.compare("Output", |state| output(&state.output));
    changes.into_dict()
}
