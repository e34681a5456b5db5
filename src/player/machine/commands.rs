//! What is asked for, and what the player makes of it.

use std::time::Duration;

use super::notices::micros;
use super::slot::Slot;
use super::{Intent, Machine, Now};
use crate::control::{
    Answer, Command, CommandError, ListedEntry, MAX_URIS_PER_CALL, QueueChange, Reason, VolumeControl,
};
use crate::dsp;
use crate::player::effect::Effect;
use crate::player::queue::MAX_ENTRIES;
use crate::track::{EntryId, Kind, TrackUri};

/// The most entries that one `List` answers with.
const LIST_AT_MOST: u32 = 1_000;

/// After a longer pause a station is heard as it is now, not as it was.
const LIVE_PATIENCE: Duration = Duration::from_secs(30);

type Outcome = Result<Answer, CommandError>;

impl Machine {
    /// Carries out a command. On an error nothing was changed.
    pub fn command(&mut self, command: Command, now: Now) -> (Outcome, Vec<Effect>) {
        let mut effects = Vec::new();
        let answer = self.obey(command, now, &mut effects);
        self.plan(now, &mut effects);
        (answer, effects)
    }

    fn obey(&mut self, command: Command, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        match command {
            Command::Play => self.play(now, effects),
            Command::Pause => self.pause(now, effects),
            Command::PlayPause if self.intent == Intent::Playing => self.pause(now, effects),
            Command::PlayPause => self.play(now, effects),
            Command::Stop => self.stop(effects),
            Command::Next => self.step(true, effects),
            Command::Previous => self.step(false, effects),
            Command::SeekBy(micros) => self.seek_by(micros, now, effects),
            Command::SetPosition(entry, micros) => self.set_position(entry, micros, effects),
            Command::SetVolume(volume) => self.set_volume(volume, effects),
            Command::SetMute(mute) => {
                self.mute = mute;
                if self.volume_control != VolumeControl::Hardware {
                    self.software.1 = mute;
                }
                effects.extend([Effect::SetMute(mute), Effect::SaveState]);
                Ok(Answer::Done)
            }
            Command::SetRepeat(repeat) => {
                self.repeat = repeat;
                effects.push(Effect::SaveState);
                Ok(Answer::Done)
            }
            Command::SelectOutput(device) => {
                self.selected_output.clone_from(&device);
                effects.extend([Effect::SelectOutput(device), Effect::SaveState]);
                Ok(Answer::Done)
            }
            Command::SetReplayGain(mode) => {
                self.set_sound(dsp::Settings { replay_gain: mode, ..self.sound }, effects)
            }
            Command::SetMono(mono) => self.set_sound(dsp::Settings { mono, ..self.sound }, effects),
            Command::SetCrossfade(crossfade) => {
                self.set_sound(dsp::Settings { crossfade, ..self.sound }, effects)
            }
            Command::PlayUris(uris) => self.play_uris(uris, now, effects),
            Command::Add { uris, before } => self.add(uris, before, effects),
            Command::Remove(ids) => self.remove(&ids, effects),
            Command::Clear => self.clear(effects),
            Command::PlayEntry(entry) => self.play_entry(entry, now, effects),
            Command::List { from, count } => Ok(self.list(from, count)),
            Command::Position => {
                Ok(Answer::Position { micros: micros(self.position(now)), exact: self.exact })
            }
            // Answered before it comes here, by who knows the stream.
            Command::Buffer => Ok(Answer::Buffer(Default::default())),
            Command::ClearError => {
                self.last_error = None;
                Ok(Answer::Done)
            }
        }
    }

    fn play(&mut self, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        let entry = self.current.or(self.queue.first()).ok_or(CommandError::EmptyQueue)?;
        self.intent = Intent::Playing;
        self.failures = 0;
        self.wait_anew_for_the_device(now);
        let paused_for = self.paused_at.take().map(|since| now.at.saturating_duration_since(since));
        if self.slot == Slot::Empty {
            self.begin(entry, self.anchor, effects);
        } else if self.plays_live() && paused_for.is_some_and(|time| time > LIVE_PATIENCE) {
            // What is held of a station is old by now.
            self.begin(entry, Duration::ZERO, effects);
        } else {
            self.reason = Reason::None;
            effects.extend([Effect::Resume, Effect::SaveState]);
        }
        Ok(Answer::Done)
    }

    /// Music is asked for while the device is gone: the patience begins anew.
    fn wait_anew_for_the_device(&mut self, now: Now) {
        if let Some(since) = &mut self.device_gone_since {
            *since = now.at;
        }
    }

    fn pause(&mut self, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        if self.intent == Intent::Playing {
            self.intent = Intent::Paused;
            self.paused_at = Some(now.at);
            self.reason = Reason::User;
            effects.extend([Effect::Pause, Effect::SaveState]);
        }
        Ok(Answer::Done)
    }

    fn stop(&mut self, effects: &mut Vec<Effect>) -> Outcome {
        if self.intent != Intent::Stopped {
            self.halt(Reason::User, effects);
        }
        Ok(Answer::Done)
    }

    fn step(&mut self, forward: bool, effects: &mut Vec<Effect>) -> Outcome {
        let Some(current) = self.current else { return Ok(Answer::Done) };
        let wrap = self.wraps();
        let target =
            if forward { self.queue.following(current, wrap) } else { self.queue.preceding(current, wrap) };
        self.failures = 0;
        match target {
            Some(entry) => self.go_to(entry, effects),
            None if forward => return self.stop(effects),
            None => {
                self.go_to(current, effects);
                self.sought(Duration::ZERO, effects);
            }
        }
        Ok(Answer::Done)
    }

    /// To this entry; playing, paused and stopped stay what they are.
    fn go_to(&mut self, entry: EntryId, effects: &mut Vec<Effect>) {
        if self.intent == Intent::Stopped {
            self.current = Some(entry);
            self.anchor = Duration::ZERO;
            effects.push(Effect::SaveState);
        } else {
            self.begin(entry, Duration::ZERO, effects);
        }
    }

    fn seek_by(&mut self, micros: i64, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        let here = self.position(now);
        let offset = Duration::from_micros(micros.unsigned_abs());
        let target = if micros < 0 { here.saturating_sub(offset) } else { here.saturating_add(offset) };
        if self.duration().is_some_and(|duration| target >= duration) {
            return self.step(true, effects);
        }
        self.seek_to(target, effects)
    }

    fn set_position(&mut self, entry: EntryId, micros: i64, effects: &mut Vec<Effect>) -> Outcome {
        let target = u64::try_from(micros).map(Duration::from_micros);
        match target {
            Ok(target) if self.current == Some(entry) && self.duration().is_none_or(|end| target <= end) => {
                self.seek_to(target, effects)
            }
            // MPRIS: a position that is no longer meant is passed over in silence.
            _ => Ok(Answer::Done),
        }
    }

    fn seek_to(&mut self, target: Duration, effects: &mut Vec<Effect>) -> Outcome {
        if self.current.is_none() || self.intent == Intent::Stopped {
            return Ok(Answer::Done);
        }
        if let Some(why) = self.opened_track().and_then(|track| track.not_seekable.clone()) {
            return Err(CommandError::NotSeekable(why));
        }
        self.jump(target, effects);
        self.sought(target, effects);
        effects.push(Effect::SaveState);
        Ok(Answer::Done)
    }

    fn set_sound(&mut self, sound: dsp::Settings, effects: &mut Vec<Effect>) -> Outcome {
        if sound != self.sound {
            self.sound = sound;
            effects.extend([Effect::SetSound(sound), Effect::SaveState]);
        }
        Ok(Answer::Done)
    }

    fn set_volume(&mut self, volume: f64, effects: &mut Vec<Effect>) -> Outcome {
        if !volume.is_finite() {
            return Err(CommandError::BadArgument("the volume is a number from 0 to 1".to_owned()));
        }
        if self.volume_control == VolumeControl::Fixed {
            return Err(CommandError::FixedVolume);
        }
        self.volume = volume.clamp(0.0, 1.0);
        if self.volume_control == VolumeControl::Software {
            self.software.0 = self.volume;
        }
        effects.extend([Effect::SetVolume(self.volume), Effect::SaveState]);
        Ok(Answer::Done)
    }

    fn play_uris(&mut self, uris: Vec<String>, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        let before = self.current.and_then(|current| self.queue.following(current, false));
        let answer = self.add(uris, before, effects)?;
        if let Answer::Added(ids) = &answer
            && let Some(first) = ids.first()
        {
            self.play_entry(*first, now, effects)?;
        }
        Ok(answer)
    }

    fn play_entry(&mut self, entry: EntryId, now: Now, effects: &mut Vec<Effect>) -> Outcome {
        self.queue.get(entry).ok_or(CommandError::NoSuchEntry(entry))?;
        self.intent = Intent::Playing;
        self.failures = 0;
        // That the device is gone stays true, and is told only once.
        let is_gone = self.device_gone_since.is_some();
        self.last_error.take_if(|error| !is_gone || error.code != "device");
        self.wait_anew_for_the_device(now);
        let again = self.current == Some(entry);
        self.begin(entry, Duration::ZERO, effects);
        if again {
            self.sought(Duration::ZERO, effects);
        }
        Ok(Answer::Done)
    }

    fn add(&mut self, uris: Vec<String>, before: Option<EntryId>, effects: &mut Vec<Effect>) -> Outcome {
        if uris.len() > MAX_URIS_PER_CALL {
            return Err(CommandError::BadArgument(format!(
                "{} URIs in one call; at most {MAX_URIS_PER_CALL} are taken",
                uris.len()
            )));
        }
        if let Some(id) = before {
            self.queue.get(id).ok_or(CommandError::NoSuchEntry(id))?;
        }
        let uris = uris.iter().map(|uri| self.playable(uri)).collect::<Result<Vec<_>, _>>()?;
        let free = MAX_ENTRIES.saturating_sub(self.queue.len());
        if uris.len() > free {
            return Err(CommandError::QueueFull { cap: MAX_ENTRIES, free });
        }
        let ids = self.queue.add(uris, before);
        if !ids.is_empty() {
            self.current = self.current.or(self.queue.first());
            self.changed(QueueChange::Added { entries: ids.clone(), before }, effects);
        }
        Ok(Answer::Added(ids))
    }

    fn playable(&self, uri: &str) -> Result<TrackUri, CommandError> {
        let parsed = uri.parse::<TrackUri>()?;
        match &parsed {
            TrackUri::Plugin(Kind::Album | Kind::Artist, _) => Err(CommandError::NotATrack(uri.to_owned())),
            TrackUri::File(path) if !self.folders.iter().any(|folder| path.starts_with(folder)) => {
                Err(CommandError::FileNotAllowed(path.display().to_string()))
            }
            _ => Ok(parsed),
        }
    }

    fn remove(&mut self, ids: &[EntryId], effects: &mut Vec<Effect>) -> Outcome {
        if let Some(missing) = ids.iter().find(|id| self.queue.get(**id).is_none()) {
            return Err(CommandError::NoSuchEntry(*missing));
        }
        let stays = |id: &EntryId| !ids.contains(id);
        let after = self.current.and_then(|current| {
            let index = self.queue.index(current)?;
            self.queue.entries()[index..].iter().map(|entry| entry.id).find(stays)
        });
        let removed = self.queue.remove(ids);
        if removed.is_empty() {
            return Ok(Answer::Done);
        }
        self.changed(QueueChange::Removed(removed.clone()), effects);
        if self.current.is_some_and(|current| removed.contains(&current)) {
            match after {
                Some(entry) => self.go_to(entry, effects),
                None => {
                    self.halt(Reason::EndOfQueue, effects);
                    self.current = self.queue.first();
                }
            }
        }
        Ok(Answer::Done)
    }

    fn clear(&mut self, effects: &mut Vec<Effect>) -> Outcome {
        if !self.queue.is_empty() {
            self.queue.clear();
            self.halt(Reason::User, effects);
            self.current = None;
            self.changed(QueueChange::Cleared, effects);
        }
        Ok(Answer::Done)
    }

    fn list(&self, from: u32, count: u32) -> Answer {
        let listed = self.queue.entries().iter().skip(from as usize).take(count.min(LIST_AT_MOST) as usize);
        Answer::Entries(
            listed
                .map(|entry| ListedEntry {
                    entry: entry.id,
                    uri: entry.uri.to_string(),
                    info: entry.info.as_ref().clone(),
                })
                .collect(),
        )
    }
}
