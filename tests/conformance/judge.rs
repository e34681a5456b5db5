//! Each file once: what it sounded like, against what it should.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::{Nearness, compare};
use crate::expected::{Expectations, Expected};
use crate::pcm::{FlacSum, Pcm};
use crate::run::{self, End, Heard, Want};
use crate::suite::{File, Suite};

/// So much memory may the decoding of one file take, in KiB, whatever is in it.
pub const MEMORY: u64 = 64 * 1024;

/// What came of a file, as a column of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Exact,
    Full,
    Limited,
    Refused,
    Differs,
    Unjudged,
    Wrong,
}

const COLUMNS: [(Column, &str); 7] = [
    (Column::Exact, "exact"),
    (Column::Full, "full"),
    (Column::Limited, "limited"),
    (Column::Refused, "refused"),
    (Column::Differs, "differs"),
    (Column::Unjudged, "unjudged"),
    (Column::Wrong, "wrong"),
];

/// Prints a line for each file and a table for all, and returns how many are wrong.
pub fn report(suites: &[Suite]) -> usize {
    let mut expectations = Expectations::listed();
    let mut table = String::new();
    let (mut findings, mut totals, mut count) = (0, BTreeMap::new(), 0);
    for suite in suites {
        let mut columns = BTreeMap::new();
        for file in &suite.files {
            let (column, by) = judge(file, expectations.of(&file.name));
            let word = COLUMNS.iter().find(|(c, _)| *c == column).map_or("", |(_, word)| word);
            println!("{word:<9}{}: {by}", file.name);
            *columns.entry(column).or_insert(0) += 1;
            *totals.entry(column).or_insert(0) += 1;
            count += 1;
        }
        for name in expectations.unmet(&suite.name) {
            println!("wrong    {name}: is listed in expected.txt, and not there");
            findings += 1;
        }
        table += &row(&suite.name, suite.files.len(), &columns);
    }
    println!("\n{:<18}{:>7}{}", "suite", "files", COLUMNS.map(|(_, word)| format!("{word:>10}")).concat());
    println!("{table}{}", row("all", count, &totals));
    println!(
        "full, limited: accuracy by ISO/IEC 11172-4 and 14496-4. refused, differs: as expected.txt says, with reasons."
    );
    findings + totals.get(&Column::Wrong).copied().unwrap_or(0)
}

fn row(name: &str, files: usize, columns: &BTreeMap<Column, usize>) -> String {
    let cell = |(column, _)| match columns.get(&column) {
        Some(count) => format!("{count:>10}"),
        None => format!("{:>10}", "–"),
    };
    format!("{name:<18}{files:>7}{}\n", COLUMNS.map(cell).concat())
}

fn judge(file: &File, expected: Option<&Expected>) -> (Column, String) {
    let bytes: Arc<[u8]> =
        fs::read(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.path.display())).into();
    let extension = file.extension();
    let (end, grown) = run::growth(|| run::watched(&bytes, &extension, Want::End));
    if grown > MEMORY {
        return (Column::Wrong, format!("takes {} MiB of memory", grown / 1024));
    }
    let found = match end {
        End::Heard(heard) => match heard.failure {
            // What comes before a failure is not judged: damaged files have no right sound.
            Some(failure) => Err((true, format!("{failure} (after {} frames)", heard.frames))),
            None => judge_sound(file, &bytes, expected).map_err(|told| (false, told)),
        },
        End::Refused(told) => Err((true, told)),
        End::Panicked => Err((true, "the decoder broke down".to_owned())),
        End::Escaped => return (Column::Wrong, "A PANIC ESCAPES".to_owned()),
        End::Hangs => return (Column::Wrong, format!("HANGS: nothing after {:?}", run::PATIENCE)),
        End::Long => return (Column::Wrong, "GIVES SOUND WITHOUT END".to_owned()),
    };
    match (found, expected) {
        (Err((true, told)), Some(Expected::Refused(words) | Expected::MayBeRefused(words)))
            if told.contains(words) =>
        {
            (Column::Refused, told)
        }
        (Err((false, told)), Some(Expected::Differs(words))) if told.contains(words) => {
            (Column::Differs, told)
        }
        (Ok((_, by)), Some(expected @ (Expected::Refused(_) | Expected::Differs(_)))) => {
            (Column::Wrong, format!("right ({by}), and {expected:?} was expected: that line can go"))
        }
        (Ok((column, by)), _) => (column, by),
        (Err((_, told)), _) => (Column::Wrong, told),
    }
}

fn judge_sound(
    file: &File,
    bytes: &Arc<[u8]>,
    expected: Option<&Expected>,
) -> Result<(Column, String), String> {
    let End::Heard(heard) = run::watched(bytes, &file.extension(), Want::Sound) else {
        return Err("sounded once, and did not the second time".to_owned());
    };
    if let Some(jump) = &heard.jump {
        return Err(jump.clone());
    }
    if let Some(told) = heard.told.filter(|&told| told != heard.frames) {
        return Err(format!("{} frames, and {told} were told", heard.frames));
    }
    let what = format!(
        "{} {} Hz, {} channels, {} frames",
        heard.codec, heard.format.rate, heard.format.channels, heard.frames
    );
    if heard.lost_packets > 0 {
        return Err(format!("{what}: {} packets could not be decoded", heard.lost_packets));
    }
    let (nearness, by) = compare_with_best(file, bytes, expected, &heard)?;
    let column = match nearness {
        Some(Nearness::Exact) => Column::Exact,
        Some(Nearness::Full) => Column::Full,
        Some(Nearness::Limited) => Column::Limited,
        None => Column::Unjudged,
    };
    Ok((column, format!("{what}; {by}")))
}

/// By what the suite says itself, if it does; else by another decoder.
fn compare_with_best(
    file: &File,
    bytes: &[u8],
    expected: Option<&Expected>,
    heard: &Heard,
) -> Result<(Option<Nearness>, &'static str), String> {
    if let Some(Expected::Like(name)) = expected {
        let path = file.path.with_file_name(name);
        let pcm = match path.extension().is_some_and(|e| e == "raw") {
            true => Pcm::floats(&path),
            false => Pcm::wav(&fs::read(&path).map_err(|e| e.to_string())?)
                .ok_or("its reference is no WAV file")?,
        };
        return Ok((Some(compare(heard, &pcm)?), "by published samples"));
    }
    if let Some(path) = beside(file).filter(|path| path.exists()) {
        let pcm = Pcm::raw16(&path);
        if pcm.len() > 0 {
            return Ok((Some(compare(heard, &pcm)?), "by published samples"));
        }
    }
    if let Some(sum) = FlacSum::of(bytes).filter(|_| heard.codec == "FLAC" && !heard.changed) {
        return match sum.fits(&heard.samples) {
            true => Ok((Some(Nearness::Exact), "by the file's own MD5")),
            false => Err(format!("the MD5 of {} frames is not the file's own", heard.frames)),
        };
    }
    match Pcm::by_ffmpeg(&file.path, heard) {
        Some(pcm) => {
            Ok((Some(compare(heard, &pcm).map_err(|told| format!("{told} (by ffmpeg)"))?), "by ffmpeg"))
        }
        None => Ok((None, "ffmpeg makes nothing of it")),
    }
}

/// The MPEG suites have NAME.pcm beside NAME.bit.
fn beside(file: &File) -> Option<PathBuf> {
    (file.extension() == "bit").then(|| file.path.with_extension("pcm"))
}
