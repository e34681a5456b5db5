//! What was decoded on its way into the ring, with the marks that say what begins where.

use super::{Feed, Step};
use crate::decode::DecodeError;
use crate::output::BeginState;
use crate::track::SourceFormat;

impl Feed {
    /// Brings what was decoded to the card's rate and channels, once these are known.
    pub(super) fn convert(&mut self) -> Step {
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let from = work.track.decoder.format();
        let BeginState::Ready(to) = self.writer.begin(from, self.generation) else {
            return Step::WaitForRoom;
        };
        if let Err(error) = work.process(from, to, &self.sound) {
            work.pcm.clear();
            let codec = work.track.decoder.codec().to_owned();
            let reached = from.time_of(work.track.decoder.position());
            self.failed(DecodeError::Unsupported { codec, reason: error.to_string() }, reached);
        }
        self.forget_done_fade();
        Step::Again
    }

    /// Gives the ring so many samples, if it has room for them.
    pub(super) fn write(&mut self, most: usize) -> Step {
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let format = work.conversion.as_ref().map_or(work.track.decoder.format(), |made| made.from);
        let BeginState::Ready(card) = self.writer.begin(format, self.generation) else {
            return Step::WaitForRoom;
        };
        if work.before_mark == 0 && !self.mark(format) || !self.mark_end_of_fade(format) {
            return Step::WaitForRoom;
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let channels = usize::from(card.channels);
        let mark = work.unmarked.map(|_| work.before_mark);
        let frames =
            mark.into_iter().chain(work.fade_end.map(|(before, _)| before)).min().unwrap_or(u64::MAX);
        let most = most.min(usize::try_from(frames).unwrap_or(usize::MAX).saturating_mul(channels));
        let ready = work.front(channels);
        let frames = self.writer.write(&ready[..most.min(ready.len())]);
        if frames == 0 {
            return Step::WaitForRoom;
        }
        work.gave(frames * channels, channels);
        Step::Again
    }

    /// Sets the mark that is due; false if too many wait.
    pub(super) fn mark(&mut self, format: SourceFormat) -> bool {
        let Some(work) = &mut self.current else { return true };
        let Some(frame) = work.unmarked else { return true };
        let set = self.writer.mark(work.mark(frame, format, self.generation, &self.sound));
        work.unmarked = work.unmarked.filter(|_| !set);
        set
    }

    /// Sets the mark that the track is alone from here, if it is due; false if too many wait.
    fn mark_end_of_fade(&mut self, format: SourceFormat) -> bool {
        let Some(work) = &mut self.current else { return true };
        let Some((_, frame)) = work.fade_end.take_if(|(before, _)| *before == 0) else { return true };
        let set = self.writer.mark(work.mark(frame, format, self.generation, &self.sound));
        work.fade_end = Some((0, frame)).filter(|_| !set);
        set
    }
}
