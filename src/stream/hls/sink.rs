//! What comes out of segments.

/// Sound, and where in it another recording begins.
#[derive(Debug, Default)]
pub(super) struct Sink {
    bytes: Vec<u8>,
    breaks: Vec<usize>,
}

impl Sink {
    /// Goes on with these bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What comes next does not continue what was there.
    pub fn cut(&mut self) {
        self.breaks.push(self.bytes.len());
    }

    /// All that came, as runs of which each but the first begins another recording.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let mut rest = std::mem::take(&mut self.bytes);
        let mut runs = Vec::with_capacity(self.breaks.len() + 1);
        for at in self.breaks.drain(..).rev() {
            runs.push(rest.split_off(at));
        }
        runs.push(rest);
        runs.reverse();
        runs
    }
}
