//! The frames that the card may not have played yet.

/// The last frames taken from the ring, before volume, so that they can be given to the card once more.
///
/// Positions are counted in frames since the output started ("play count").
pub(super) struct History {
    samples: Box<[i32]>,
    channels: usize,
    /// Frames that fit.
    capacity: u64,
    /// Play count of the oldest frame that is kept.
    start: u64,
    /// Play count after the newest.
    end: u64,
}

impl History {
    pub fn new(frames: usize, channels: usize, at: u64) -> History {
        let channels = channels.max(1);
        let samples = vec![0; frames * channels].into_boxed_slice();
        History { samples, channels, capacity: frames as u64, start: at, end: at }
    }

    /// The oldest frame that can still be given again.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Makes room for at least so many frames; what is kept stays.
    pub fn keep(&mut self, frames: usize) {
        if frames as u64 <= self.capacity {
            return;
        }
        let mut larger = History::new(frames, self.channels, self.start);
        let mut kept = vec![0; (self.end - self.start) as usize * self.channels];
        self.read(self.start, &mut kept);
        larger.push(&kept);
        *self = larger;
    }

    /// Forgets everything and goes on at `at`.
    pub fn restart(&mut self, at: u64) {
        self.start = at;
        self.end = at;
    }

    /// Forgets the frames from `at` on.
    pub fn truncate(&mut self, at: u64) {
        self.end = self.end.min(at).max(self.start);
    }

    /// Keeps whole frames; the oldest make room.
    pub fn push(&mut self, samples: &[i32]) {
        if self.capacity == 0 {
            return;
        }
        let frames = samples.len() / self.channels;
        // What would be overwritten in this very call need not be written.
        let lost = frames.saturating_sub(self.capacity as usize);
        self.end += lost as u64;
        let mut rest = &samples[lost * self.channels..frames * self.channels];
        while !rest.is_empty() {
            let slot = self.slot(self.end);
            let (run, wrapped) = rest.split_at(rest.len().min(self.samples.len() - slot));
            self.samples[slot..slot + run.len()].copy_from_slice(run);
            self.end += (run.len() / self.channels) as u64;
            rest = wrapped;
        }
        self.start = self.start.max(self.end.saturating_sub(self.capacity));
    }

    /// Copies frames from `from` on into `out`; returns how many frames.
    pub fn read(&self, from: u64, out: &mut [i32]) -> usize {
        if from < self.start || from >= self.end {
            return 0;
        }
        let frames = ((self.end - from) as usize).min(out.len() / self.channels);
        let mut done = 0;
        while done < frames * self.channels {
            let slot = self.slot(from + (done / self.channels) as u64);
            let run = (frames * self.channels - done).min(self.samples.len() - slot);
            out[done..done + run].copy_from_slice(&self.samples[slot..slot + run]);
            done += run;
        }
        frames
    }

    /// Where the frame of this play count lies.
    fn slot(&self, at: u64) -> usize {
        (at % self.capacity) as usize * self.channels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back_and_the_oldest_makes_room() {
        let mut history = History::new(4, 2, 10);
        history.push(&[1, -1, 2, -2, 3, -3, 4, -4, 5, -5]);
        assert_eq!(history.start(), 11);
        let mut out = [0; 6];
        assert_eq!(history.read(12, &mut out), 3);
        assert_eq!(out, [3, -3, 4, -4, 5, -5]);
        assert_eq!(history.read(10, &mut out), 0);
        history.truncate(13);
        assert_eq!(history.read(12, &mut out), 1);
        history.push(&[9, -9]);
        assert_eq!(history.read(13, &mut out), 1);
        assert_eq!(out[..2], [9, -9]);
    }
}
