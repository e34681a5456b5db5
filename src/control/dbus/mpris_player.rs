//! `org.mpris.MediaPlayer2.Player`: the remote control that every desktop and home automation knows.

use zbus::object_server::SignalEmitter;
use zbus::{ObjectPath, interface};

use super::errors::Error;
use super::values::{
    Dict, check_uris, check_volume, entry_of_path, loop_status, micros, mpris_metadata, playback_status,
};
use super::{Player, signals};
use crate::control::{Command, CommandError, Repeat, State};

/// Times are signed microseconds.
pub struct MprisPlayer {
    pub(super) player: Player,
}

impl MprisPlayer {
    /// What is impossible just now "has no effect" by the specification, so it is no error either.
    async fn tell_if_possible(&self, command: Command) -> Result<(), Error> {
        match self.player.controller.ask(command).await {
            Ok(_) | Err(CommandError::EmptyQueue | CommandError::NotSeekable(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[interface(name = "org.mpris.MediaPlayer2.Player", spawn = false, introspection_docs = false)]
impl MprisPlayer {
    async fn next(&self) -> Result<(), Error> {
        self.tell_if_possible(Command::Next).await
    }

    async fn previous(&self) -> Result<(), Error> {
        self.tell_if_possible(Command::Previous).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.tell_if_possible(Command::Pause).await
    }

    /// The one method of which the specification wants an error when it cannot be done.
    async fn play_pause(&self) -> Result<(), Error> {
        self.player.tell(Command::PlayPause).await
    }

    async fn stop(&self) -> Result<(), Error> {
        self.tell_if_possible(Command::Stop).await
    }

    async fn play(&self) -> Result<(), Error> {
        self.tell_if_possible(Command::Play).await
    }

    async fn seek(&self, offset: i64) -> Result<(), Error> {
        self.tell_if_possible(Command::SeekBy(offset)).await
    }

    /// Outside of the track, or with a track id that is not the current one, it does nothing: the caller looked
    /// at something else.
    async fn set_position(&self, track_id: ObjectPath<'_>, position: i64) -> Result<(), Error> {
        let Some(entry) = entry_of_path(track_id.as_str()) else { return Ok(()) };
        let wanted = self.player.now().current.as_ref().is_some_and(|current| {
            let length = current.info.duration.map_or(i64::MAX, micros);
            current.entry == entry && (0..=length).contains(&position)
        });
        if !wanted {
            return Ok(());
        }
        match self.tell_if_possible(Command::SetPosition(entry, position)).await {
            Err(Error::NoSuchEntry(_)) => Ok(()),
            other => other,
        }
    }

    async fn open_uri(&self, uri: String) -> Result<(), Error> {
        let uris = vec![uri];
        check_uris(&uris)?;
        self.player.tell(Command::PlayUris(uris)).await
    }

    /// The position jumped, or disagrees with what Rate and the clock would give.
    #[zbus(signal)]
    pub async fn seeked(emitter: &SignalEmitter<'_>, position: i64) -> zbus::Result<()>;

    #[zbus(property)]
    fn playback_status(&self) -> &'static str {
        playback_status(self.player.now().status)
    }

    #[zbus(property)]
    fn loop_status(&self) -> &'static str {
        loop_status(self.player.now().queue.repeat)
    }

    #[zbus(property)]
    async fn set_loop_status(&self, mode: String) -> Result<(), Error> {
        let repeat = match mode.as_str() {
            "None" => Repeat::Off,
            "Track" => Repeat::Track,
            "Playlist" => Repeat::Queue,
            _ => return Err(Error::BadArgument("LoopStatus is one of None, Track and Playlist".into())),
        };
        let note = |told: &mut State, now: &State| told.queue.repeat = now.queue.repeat;
        self.player.set(Command::SetRepeat(repeat), note).await
    }

    #[zbus(property)]
    fn rate(&self) -> f64 {
        1.0
    }

    /// 0 means Pause; all else is outside of MinimumRate and MaximumRate and changes nothing.
    #[zbus(property)]
    async fn set_rate(&self, rate: f64) -> Result<(), Error> {
        if rate == 0.0 { self.tell_if_possible(Command::Pause).await } else { Ok(()) }
    }

    #[zbus(property)]
    fn shuffle(&self) -> bool {
        false
    }

    #[zbus(property)]
    fn set_shuffle(&self, wanted: bool) -> Result<(), Error> {
        match wanted {
            false => Ok(()),
            true => Err(Error::NotSupported("Segue does not shuffle yet".into())),
        }
    }

    #[zbus(property)]
    fn metadata(&self) -> Dict {
        mpris_metadata(self.player.now().current.as_ref())
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

    #[zbus(property(emits_changed_signal = "false"))]
    async fn position(&self) -> i64 {
        self.player.position().await.0
    }

    #[zbus(property)]
    fn minimum_rate(&self) -> f64 {
        1.0
    }

    #[zbus(property)]
    fn maximum_rate(&self) -> f64 {
        1.0
    }

    #[zbus(property)]
    fn can_go_next(&self) -> bool {
        self.player.now().can.next
    }

    #[zbus(property)]
    fn can_go_previous(&self) -> bool {
        self.player.now().can.previous
    }

    #[zbus(property)]
    fn can_play(&self) -> bool {
        self.player.now().can.play
    }

    #[zbus(property)]
    fn can_pause(&self) -> bool {
        self.player.now().can.pause
    }

    #[zbus(property)]
    fn can_seek(&self) -> bool {
        self.player.now().can.seek
    }

    /// By the specification this one never changes.
    #[zbus(property(emits_changed_signal = "const"))]
    fn can_control(&self) -> bool {
        true
    }
}

/// What to announce when `old` became `new`. Status and metadata always go together, so that nobody shows the
/// title of one track with the state of another.
pub fn changes(old: &State, new: &State) -> Dict {
    let mut changes = signals::Changes::between(old, new);
    let status = |state: &State| playback_status(state.status);
    if status(old) != status(new) || old.current != new.current {
        changes.put("PlaybackStatus", status(new));
        changes.put("Metadata", mpris_metadata(new.current.as_ref()));
    }
    changes.compare("LoopStatus", |state| loop_status(state.queue.repeat));
    changes.compare("Volume", |state| state.volume);
    changes.compare("CanGoNext", |state| state.can.next);
    changes.compare("CanGoPrevious", |state| state.can.previous);
    changes.compare("CanPlay", |state| state.can.play);
    changes.compare("CanPause", |state| state.can.pause);
    changes.compare("CanSeek", |state| state.can.seek);
    changes.into_dict()
}
