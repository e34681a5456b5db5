//! Damaged copies of each file: none may hang, panic to the outside, or take much memory.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use crate::judge::MEMORY;
use crate::run::{self, End, Want};
use crate::suite::{File, Suite};

/// Larger files are damaged less often, so that no suite takes all the time.
const LARGE: usize = 256 * 1024;

/// A small generator, so that a copy is known by its number. (splitmix64)
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Prints what is found and a table, and returns how many findings there are. Panics that were caught are listed, and
/// are none: they cost a damaged track.
pub fn report(suites: &[Suite], copies: usize) -> usize {
    // What the decoder catches need not be told hundreds of times; where it happened is.
    let (places, tell) = places();
    let mut findings = 0;
    let mut rows = String::new();
    for suite in suites {
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        let mut most = 0;
        for file in &suite.files {
            let bytes = fs::read(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.path.display()));
            let copies = if bytes.len() > LARGE { copies.div_ceil(8) } else { copies };
            for number in 0..copies {
                let (word, grown) = one(file, &bytes, number);
                *ends.entry(word).or_default() += 1;
                most = most.max(grown);
                if grown > MEMORY || matches!(word, "escaped" | "hang") {
                    println!("{word}: {}, copy {number}: {} MiB", file.name, grown / 1024);
                    findings += 1;
                }
            }
        }
        let ends: Vec<String> = ends.iter().map(|(word, count)| format!("{count} {word}")).collect();
        rows += &format!(
            "{:<18}{:>4} files  most memory {:>3} MiB  {}\n",
            suite.name,
            suite.files.len(),
            most / 1024,
            ends.join(", ")
        );
    }
    tell();
    let places = places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (place, count) in places.iter() {
        println!("caught inside the decoder, {count} times: {place}");
    }
    println!("\n{rows}");
    findings
}

type Places = Arc<std::sync::Mutex<BTreeMap<String, usize>>>;

/// Collects where threads panic, until the returned function is called.
fn places() -> (Places, impl FnOnce()) {
    let places = Places::default();
    let seen = places.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        // The crate and what follows; where it is kept on this machine says nothing.
        let place = place.rsplit_once("/src/").map_or(place.clone(), |(folder, rest)| {
            format!("{}/src/{rest}", folder.rsplit('/').next().unwrap_or_default())
        });
        let payload = info.payload();
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
        *seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .entry(format!("{place} ({message})"))
            .or_default() += 1;
    }));
    (places, move || std::panic::set_hook(before))
}

/// The copy with this number, decoded: how it ended, and what memory it took in KiB.
fn one(file: &File, bytes: &[u8], number: usize) -> (&'static str, u64) {
    let bytes: Arc<[u8]> = mangled(&file.name, bytes, number).into();
    let extension = file.extension();
    let (end, grown) = run::growth(|| run::watched(&bytes, &extension, Want::Beginning));
    let word = match end {
        End::Heard(heard) if heard.failure.is_some() => "given up",
        End::Heard(_) => "heard",
        End::Refused(_) => "refused",
        End::Panicked => "caught",
        End::Escaped => "escaped",
        End::Hangs => "hang",
        End::Long => "long",
    };
    (word, grown)
}

/// Bits turned, in the head or anywhere; bytes set to what counters and lengths are worst at; a piece cut out or
/// doubled; the end cut off.
fn mangled(name: &str, bytes: &[u8], number: usize) -> Vec<u8> {
    let seed =
        name.bytes().fold(number as u64, |seed, byte| seed.wrapping_mul(1_099_511_628_211) ^ u64::from(byte));
    let mut random = Random(seed);
    let mut bytes = bytes.to_vec();
    let reach = match random.below(2) {
        0 => bytes.len().min(512),
        _ => bytes.len(),
    };
    for _ in 0..=random.below(8) {
        let at = random.below(reach.min(bytes.len()));
        let Some(byte) = bytes.get_mut(at) else { break };
        match random.below(10) {
            0..=4 => *byte ^= 1 << random.below(8),
            5 => *byte = 0xff,
            6 => *byte = 0,
            7 => {
                let until = bytes.len().min(at + 1 + random.below(300));
                bytes.drain(at..until);
            }
            8 => {
                let until = bytes.len().min(at + 1 + random.below(300));
                bytes.extend_from_within(at..until);
                let piece = until - at;
                bytes[at..].rotate_right(piece);
            }
            _ => {
                let until = bytes.len().min(at + 4);
                bytes[at..until].copy_from_slice(&[0xff; 4][..until - at]);
            }
        }
    }
    if random.below(4) == 0 {
        let len = random.below(bytes.len());
        bytes.truncate(len);
    }
    bytes
}

#[test]
fn a_copy_is_known_by_its_number() {
    let bytes: Vec<u8> = (0..4096u32).map(|n| (n * 7) as u8).collect();
    assert_eq!(mangled("a", &bytes, 3), mangled("a", &bytes, 3));
    let others = (0..100).filter(|&number| mangled("a", &bytes, number) != bytes).count();
    assert!(others > 95, "{others}");
}
