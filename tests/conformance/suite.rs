//! Which files there are, by suite.

use std::fs;
use std::path::{Path, PathBuf};

/// What audio files are called, foreign formats included: those have to be refused.
const EXTENSIONS: &[&str] = &[
    "aac", "ac3", "aif", "aifc", "aiff", "ape", "bit", "caf", "dff", "dsf", "eac3", "flac", "m4a", "m4b",
    "mka", "mkv", "mp1", "mp2", "mp3", "mp4", "mpc", "oga", "ofr", "ogg", "opus", "spx", "tta", "wav",
    "webm", "wma", "wv",
];

/// What was published together.
pub struct Suite {
    /// Name of its folder.
    pub name: String,
    pub files: Vec<File>,
}

pub struct File {
    /// Suite and path in it, as the list of expectations has it.
    pub name: String,
    pub path: PathBuf,
}

impl File {
    /// In lower case.
    pub fn extension(&self) -> String {
        self.path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
    }
}

/// Each folder in each of `folders` is a suite; files in alphabetical order, so that a run can be repeated.
pub fn find(folders: &[PathBuf]) -> Vec<Suite> {
    let mut suites = Vec::new();
    for folder in folders.iter().flat_map(|folder| entries(folder)).filter(|folder| folder.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = Vec::new();
        walk(&folder, &name, &mut files);
        if !files.is_empty() {
            suites.push(Suite { name, files });
        }
    }
    suites
}

fn walk(folder: &Path, name: &str, files: &mut Vec<File>) {
    for path in entries(folder) {
        let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            walk(&path, &name, files);
            continue;
        }
        let file = File { name, path };
        if EXTENSIONS.contains(&file.extension().as_str()) {
            files.push(file);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<PathBuf> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found
}
