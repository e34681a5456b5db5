//! [6] PCM to sound.
