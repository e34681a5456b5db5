//! The rules for packages, on the folder as it is.

use std::fs::File;
use std::io::Read;

use segue_protocol::manifest::{FILE_NAME, MAX_MANIFEST_BYTES, Manifest};

use super::super::package::{Package, PackageError, walk};
use super::Notes;
use super::bench::Place;

/// The package when it is in order.
pub(super) async fn check(place: &Place, notes: &mut Notes<'_>) -> Option<Package> {
    let at = place.clone();
    // Hashing 256 MiB takes its time.
    let looked = tokio::task::spawn_blocking(move || (manifest(&at), files(&at)));
    let Ok((manifest, files)) = looked.await else { return None };
    let good = manifest.is_ok();
    match manifest {
        Ok(manifest) => notes.pass("manifest", format!("{} {}", manifest.name, manifest.version)),
        Err(words) => {
            notes.fail("manifest", words, "correct plugin.json; its fields are in the protocol's page");
        }
    }
    match files {
        Ok(package) => {
            if let Some(package) = &package {
                let bytes: u64 = package.files.iter().map(|file| file.len).sum();
                notes.pass("package", format!("{} files, {bytes} bytes", package.files.len()));
            } else {
                notes.pass("package", "its files keep the rules");
            }
            package.filter(|_| good)
        }
        Err(error) => {
            let advice = match error {
                PackageError::Io { .. } => "make it readable",
                // These sentences say themselves what to do.
                _ => "put it right, and check again",
            };
            notes.fail("package", error.to_string(), advice);
            None
        }
    }
}

fn manifest(place: &Place) -> Result<Manifest, String> {
    let path = place.folder.join(FILE_NAME);
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_MANIFEST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("plugin.json cannot be read: {error}"))?;
    Manifest::parse(&bytes, &place.name).map_err(|error| error.to_string())
}

/// `None` when only the manifest is wrong.
fn files(place: &Place) -> Result<Option<Package>, PackageError> {
    match Package::read(&place.folder) {
        Ok(package) => Ok(Some(package)),
        Err(PackageError::Manifest(_)) => walk(&place.folder).map(|_| None),
        Err(error) => Err(error),
    }
}
