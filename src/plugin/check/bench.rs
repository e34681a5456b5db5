//! What starting the plugin needs: a verified copy in a private folder, folders of its own, its configuration, and
//! all that it asks for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::{FsFlags, statvfs};
use segue_protocol::manifest::{FILE_NAME, Manifest, PROTOCOL, Scope};
use segue_protocol::messages::{Dirs, HostFacts, InitializeParams};
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::super::copies::CopyStore;
use super::super::grants;
use super::super::log::Log;
use super::super::package::{Fingerprint, Package};
use super::super::process::{Launch, Launcher, Means};
use super::super::redact::Redactor;
use super::super::start::{private_folder, read_config};
use super::plain::Plain;
use super::run::{Child, Run};
use super::{CheckError, Options};

/// The folder of a package, and its name, which should be the id.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

/// Finds the package, and what else was named: `.` has a name as well.
pub(super) fn place(options: &Options) -> Result<Place, CheckError> {
    let folder = &options.folder;
    if let Some(file) = options.config.as_ref().filter(|file| !file.is_file()) {
        return Err(CheckError::Config(format!("there is no file {}", file.display())));
    }
    let no_package = || CheckError::NoPackage(folder.clone());
    let folder = folder.canonicalize().map_err(|_| no_package())?;
    if folder.join(FILE_NAME).symlink_metadata().is_err() {
        return Err(no_package());
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Place { folder, name })
}

pub(super) fn scratch(what: impl Into<String>) -> impl FnOnce(io::Error) -> CheckError {
    let what = what.into();
    move |source| CheckError::Scratch { what, source }
}

/// Starts one package again and again. Everything that it made is removed with it.
pub(super) struct Bench {
    pub(super) manifest: Manifest,
    /// Granted: all that it asks for.
    pub(super) granted: Vec<Scope>,
    pub(super) log: Log,
    launcher: Launcher,
    sandbox: bool,
    launch: Launch,
    config: Map<String, Value>,
    secrets: BTreeMap<String, String>,
    redactor: Redactor,
    copies: CopyStore,
    _folder: TempDir,
}

impl Bench {
    pub(super) async fn new(
        place: Place,
        package: Package,
        options: &Options,
        launcher: Launcher,
    ) -> Result<Bench, CheckError> {
        if options.sandbox && launcher.isolation().means() == Means::Nothing {
            return Err(CheckError::NotConfined(launcher.isolation().to_string()));
        }
        let granted = granted(&package.manifest, &options.folders)?;
        let (config, secrets) = match &options.config {
            Some(file) => read_config(file, &granted).map_err(CheckError::Config)?,
            None => Default::default(),
        };
        let made = tokio::task::spawn_blocking({
            let (id, fingerprint) = (package.manifest.id.to_string(), package.fingerprint);
            move || prepare(&place, &id, fingerprint)
        });
        let made = made.await.map_err(|error| scratch("the copy")(io::Error::other(error)))?;
        let Prepared { folder, copies, copy, data, cache } = made?;
        let manifest = package.manifest;
        let launch = Launch {
            program: copy.join(&manifest.executable),
            arguments: manifest.arguments.clone(),
            package: copy,
            data,
            cache,
            network: granted.contains(&Scope::Network),
            folders: grants::present(&granted, &[]).map_err(CheckError::Config)?,
            require_sandbox: false,
        };
        Ok(Bench {
            redactor: Redactor::new(secrets.values().cloned()),
            manifest,
            granted,
            log: Log::default(),
            launcher,
            sandbox: options.sandbox,
            launch,
            config,
            secrets,
            copies,
            _folder: folder,
        })
    }

    pub(super) async fn start(&self) -> Result<Run, String> {
        let began = Instant::now();
        let (child, pipes) = if self.sandbox {
            let started = self.launcher.start(self.launch.clone()).await;
            let (process, pipes) = started.map_err(|error| error.to_string())?;
            (Child::Confined(process), pipes)
        } else {
            let (child, pipes) = Plain::start(&self.launch).map_err(|error| error.to_string())?;
            (Child::Plain(child), pipes)
        };
        let drain = self.log.clone().drain(self.manifest.id.clone(), pipes.stderr, self.redactor.clone());
        Ok(Run::new(child, pipes.stdin, pipes.stdout, tokio::spawn(drain), began))
    }

    pub(super) fn initialize(&self) -> InitializeParams {
        let told = |folder: &Path| folder.to_string_lossy().into_owned();
        InitializeParams {
            protocol: PROTOCOL.to_owned(),
            host: HostFacts { name: "segue".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            scopes: self.scopes(),
            dirs: Dirs { data: told(&self.launch.data), cache: told(&self.launch.cache) },
            config: self.config.clone(),
            secrets: self.secrets.clone(),
        }
    }

    pub(super) fn scopes(&self) -> Vec<String> {
        self.granted.iter().map(ToString::to_string).collect()
    }

    /// A text that people may see.
    pub(super) fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.secrets.values().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret.as_str(), "[redacted]");
        }
        text
    }

    pub(super) fn patience(&self) -> Duration {
        self.manifest.timeouts.ping
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Read-only folders keep a temporary folder from removing itself.
        self.copies.keep_only(&[]);
    }
}

struct Prepared {
    folder: TempDir,
    copies: CopyStore,
    copy: PathBuf,
    data: PathBuf,
    cache: PathBuf,
}

fn prepare(place: &Place, id: &str, fingerprint: Fingerprint) -> Result<Prepared, CheckError> {
    let folder =
        tempfile::Builder::new().prefix("segue-check-").tempdir().map_err(scratch("a new folder"))?;
    let at = |name: &str| folder.path().join(name);
    let (packages, data, cache) = (at("packages"), at("data").join(id), at("cache").join(id));
    for folder in [&packages, &data, &cache] {
        private_folder(folder).map_err(scratch(folder.display().to_string()))?;
    }
    let copies = CopyStore::new(packages);
    let made = copies.copy(&place.folder, id, fingerprint);
    let (copy, _) = made.map_err(|error| CheckError::Package(error.to_string()))?;
    if statvfs(&copy).is_ok_and(|facts| facts.flags().contains(FsFlags::ST_NOEXEC)) {
        let source = io::Error::other("it is mounted with noexec");
        return Err(scratch(copy.display().to_string())(source));
    }
    Ok(Prepared { folder, copies, copy, data, cache })
}

/// All that it asks for; where it asks for folders of the person's choice, these.
fn granted(manifest: &Manifest, folders: &[PathBuf]) -> Result<Vec<Scope>, CheckError> {
    let mut granted = Vec::new();
    for request in &manifest.scopes {
        match &request.scope {
            Scope::FilesReadAny => {
                for folder in folders {
                    let absolute = folder.canonicalize().ok().filter(|folder| folder.is_dir());
                    let scope =
                        absolute.and_then(|folder| format!("files.read:{}", folder.display()).parse().ok());
                    granted.push(scope.ok_or_else(|| {
                        CheckError::Config(format!("{} is no folder that can be granted", folder.display()))
                    })?);
                }
            }
            scope => granted.push(scope.clone()),
        }
    }
    Ok(granted)
}
