//! The files of a package: the rules for them and their fingerprint.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use segue_protocol::manifest::{FILE_NAME, MAX_MANIFEST_BYTES, Manifest};

/// The whole package, in bytes.
pub const MAX_PACKAGE_BYTES: u64 = 256 * 1024 * 1024;
/// Files in a package; as many folders are allowed.
pub const MAX_PACKAGE_FILES: usize = 4_096;
/// The program, in bytes.
pub const MAX_EXECUTABLE_BYTES: u64 = 128 * 1024 * 1024;
/// Folders within folders.
pub(super) const MAX_DEPTH: usize = 32;

/// SHA-256 over the whole package: paths, executable bits, lengths and contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = PackageError;

    fn from_str(text: &str) -> Result<Fingerprint, PackageError> {
        let wrong = || PackageError::rule("a fingerprint is 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Fingerprint(bytes))
    }
}

/// A package that breaks a rule or cannot be read; displays as the reason.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A folder that is being installed or removed, or none of a plugin's.
    #[error("there is no plugin.json")]
    NoManifest,
    /// A rule for packages.
    #[error("{0}")]
    Rule(String),
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] segue_protocol::manifest::ManifestError),
    /// Reading, or writing the copy.
    #[error("{path}: {source}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PackageError {
    pub(super) fn rule(text: impl Into<String>) -> PackageError {
        PackageError::Rule(text.into())
    }

    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> PackageError + use<> {
        let path = path.to_owned();
        move |source| PackageError::Io { path, source }
    }
}

/// One regular file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFile {
    /// Relative to the package.
    pub path: PathBuf,
    /// Whether its owner may run it.
    pub executable: bool,
    /// In bytes.
    pub len: u64,
    stamp: Stamp,
}

/// What changes whenever a file is written, moved or replaced. The kernel sets the change time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A package whose files keep the rules.
#[derive(Clone, Debug)]
pub struct Package {
    /// Checked.
    pub manifest: Manifest,
    /// Over everything in it.
    pub fingerprint: Fingerprint,
    /// In byte order of their paths.
    pub files: Vec<PackageFile>,
    /// Every file and folder is root's.
    pub root_owned: bool,
    /// All of it was older than the clock's grain when it was read, so that equal times mean equal bytes.
    settled: bool,
}

impl Package {
    /// Reads the package in `folder`: rules, manifest and fingerprint. Runs nothing.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn read(folder: &Path) -> Result<Package, PackageError> {
        Self::read_into(folder, None)
    }

    /// As [`Package::read`], but hashes nothing where no file was touched since `known` was read.
    pub(super) fn read_again(folder: &Path, known: &Package) -> Result<Package, PackageError> {
        match walk(folder)? {
            (files, root_owned)
                if known.settled && files == known.files && root_owned == known.root_owned =>
            {
                Ok(known.clone())
            }
            _ => Package::read(folder),
        }
    }

    /// As [`Package::read`], writing each byte that is hashed below `copy` too, which must not exist.
    pub(super) fn read_into(folder: &Path, copy: Option<&Path>) -> Result<Package, PackageError> {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Self::read_named(folder, &name, copy)
    }

    fn read_named(folder: &Path, name: &str, copy: Option<&Path>) -> Result<Package, PackageError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (files, root_owned) = walk(folder)?;
        let settled =
            files.iter().all(|file| file.stamp.changed.0.saturating_add(2) < now.as_secs().cast_signed());
        let manifest_file =
            files.iter().find(|file| file.path == Path::new(FILE_NAME)).ok_or(PackageError::NoManifest)?;
        if manifest_file.len > MAX_MANIFEST_BYTES {
            return Err(PackageError::rule(format!("plugin.json: more than {MAX_MANIFEST_BYTES} bytes")));
        }
        let mut manifest_bytes = Vec::new();
        let fingerprint = hash_files(folder, &files, copy, &mut manifest_bytes)?;
        let manifest = Manifest::parse(&manifest_bytes, name)?;
        check_executable(&manifest, &files)?;
        Ok(Package { manifest, fingerprint, files, root_owned, settled })
    }
}

fn check_executable(manifest: &Manifest, files: &[PackageFile]) -> Result<(), PackageError> {
    let shown = manifest.executable.display();
    let Some(file) = files.iter().find(|file| file.path == manifest.executable) else {
        return Err(PackageError::rule(format!("the executable “{shown}” is not a file of the package")));
    };
    if !file.executable {
        return Err(PackageError::rule(format!("“{shown}” may not be run: chmod 755 it")));
    }
    if file.len > MAX_EXECUTABLE_BYTES {
        return Err(PackageError::rule(format!("“{shown}” has more than {MAX_EXECUTABLE_BYTES} bytes")));
    }
    Ok(())
}

/// The regular files below `folder` in byte order of their relative paths, and whether all is root's.
/// Files that were touched since an earlier walk differ in it.
///
/// # Errors
/// The first broken rule.
pub fn walk(folder: &Path) -> Result<(Vec<PackageFile>, bool), PackageError> {
    let mut walk = Walk { root: folder, files: Vec::new(), folders: 0, bytes: 0, root_owned: true };
    walk.folder(folder, 0)?;
    walk.files.sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
    Ok((walk.files, walk.root_owned))
}

struct Walk<'a> {
    root: &'a Path,
    files: Vec<PackageFile>,
    folders: usize,
    bytes: u64,
    root_owned: bool,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), PackageError> {
        let facts = fs::symlink_metadata(folder).map_err(PackageError::at(folder))?;
        self.check_common(folder, &facts)?;
        if !facts.is_dir() {
            return Err(PackageError::rule(format!("{} is not a folder", folder.display())));
        }
        self.folders += 1;
        if depth > MAX_DEPTH || self.folders > MAX_PACKAGE_FILES {
            return Err(PackageError::rule("too many folders"));
        }
        for entry in fs::read_dir(folder).map_err(PackageError::at(folder))? {
            let path = entry.map_err(PackageError::at(folder))?.path();
            let facts = fs::symlink_metadata(&path).map_err(PackageError::at(&path))?;
            if facts.is_dir() { self.folder(&path, depth + 1)? } else { self.file(&path, &facts)? }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, facts: &fs::Metadata) -> Result<(), PackageError> {
        self.check_common(path, facts)?;
        let shown = self.shown(path);
        if !facts.is_file() {
            return Err(PackageError::rule(format!("“{shown}” is neither a file nor a folder")));
        }
        let relative = path.strip_prefix(self.root).unwrap_or(path).to_owned();
        self.bytes += facts.len();
        self.files.push(PackageFile {
            path: relative,
            executable: facts.mode() & 0o100 != 0,
            len: facts.len(),
            stamp: Stamp {
                inode: (facts.dev(), facts.ino()),
                mode: facts.mode(),
                modified: (facts.mtime(), facts.mtime_nsec()),
                changed: (facts.ctime(), facts.ctime_nsec()),
            },
        });
        if self.files.len() > MAX_PACKAGE_FILES {
            return Err(PackageError::rule(format!("more than {MAX_PACKAGE_FILES} files")));
        }
        if self.bytes > MAX_PACKAGE_BYTES {
            return Err(PackageError::rule(format!("more than {MAX_PACKAGE_BYTES} bytes")));
        }
        Ok(())
    }

    fn check_common(&mut self, path: &Path, facts: &fs::Metadata) -> Result<(), PackageError> {
        let shown = self.shown(path);
        if facts.file_type().is_symlink() {
            return Err(PackageError::rule(format!(
                "{shown} is a symbolic link; put the file itself into the package"
            )));
        }
        check_owner_and_mode(&shown, facts)?;
        self.root_owned &= facts.uid() == 0;
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(self.root) {
            Ok(relative) if relative.as_os_str().is_empty() => "the package's folder".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// Nobody but root and the daemon's user may be able to change it.
pub(super) fn check_owner_and_mode(shown: &str, facts: &fs::Metadata) -> Result<(), PackageError> {
    if facts.mode() & 0o022 != 0 {
        return Err(PackageError::rule(format!("{shown} is writable by others: chmod go-w it")));
    }
    if facts.uid() != 0 && facts.uid() != nix::unistd::geteuid().as_raw() {
        return Err(PackageError::rule(format!(
            "{shown} belongs to user {}; it must be root's or the daemon's",
            facts.uid()
        )));
    }
    Ok(())
}

fn hash_files(
    folder: &Path,
    files: &[PackageFile],
    copy: Option<&Path>,
    manifest: &mut Vec<u8>,
) -> Result<Fingerprint, PackageError> {
    let mut hash = Sha256::new();
    if let Some(copy) = copy {
        fs::create_dir(copy).map_err(PackageError::at(copy))?;
    }
    for file in files {
        hash_field(&mut hash, file.path.as_os_str().as_bytes());
        hash_field(&mut hash, &[u8::from(file.executable)]);
        hash_field(&mut hash, &file.len.to_be_bytes());
        hash.update(file.len.to_be_bytes());
        // Made durable as a whole by whoever wanted the copy.
        let mut target = copy.map(|copy| create_copy(copy, file)).transpose()?;
        let keep = file.path == Path::new(FILE_NAME);
        read_exactly(&folder.join(&file.path), file, |piece| {
            hash.update(piece);
            if keep {
                manifest.extend_from_slice(piece);
            }
            target.as_mut().map_or(Ok(()), |target| target.write_all(piece))
        })?;
    }
    Ok(Fingerprint(hash.finalize().into()))
}

fn hash_field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// Gives the file's bytes in pieces; more or fewer bytes than the walk saw are an error.
fn read_exactly(
    path: &Path,
    file: &PackageFile,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), PackageError> {
    let changed = || PackageError::rule(format!("{} changed while it was read", file.path.display()));
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut source =
        OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(PackageError::at(path))?;
    let facts = source.metadata().map_err(PackageError::at(path))?;
    if !facts.is_file() || (facts.dev(), facts.ino()) != file.stamp.inode {
        return Err(changed());
    }
    let mut left = file.len;
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = source.read(&mut piece).map_err(PackageError::at(path))?;
        if read == 0 {
            return if left == 0 { Ok(()) } else { Err(changed()) };
        }
        left = left.checked_sub(read as u64).ok_or_else(changed)?;
        take(&piece[..read]).map_err(PackageError::at(path))?;
    }
}

fn create_copy(copy: &Path, file: &PackageFile) -> Result<File, PackageError> {
    let path = copy.join(&file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(PackageError::at(parent))?;
    }
    let mode = if file.executable { 0o555 } else { 0o444 };
    let target = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
    let target = target.map_err(PackageError::at(&path))?;
    // The umask must not decide what the plugin can read.
    target.set_permissions(Permissions::from_mode(mode)).map_err(PackageError::at(&path))?;
    Ok(target)
}
