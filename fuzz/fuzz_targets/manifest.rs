//! What passes for a manifest keeps every rule.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use segue_protocol::manifest::{Manifest, Scope};

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::parse(bytes, "demo") else { return };
    assert_eq!(manifest.id.as_str(), "demo");
    assert!(manifest.executable.is_relative());
    assert!(manifest.executable.components().all(|part| matches!(part, std::path::Component::Normal(_))));
    assert!(manifest.capabilities.len() <= 16 && manifest.scopes.len() <= 16 && manifest.arguments.len() <= 32);
    let limits = [manifest.timeouts.initialize, manifest.timeouts.ping, manifest.timeouts.stream];
    assert!(limits.iter().all(|limit| *limit <= Duration::from_secs(30) && !limit.is_zero()));
    for request in &manifest.scopes {
        let text = request.scope.to_string();
        assert_eq!(text.parse::<Scope>().as_ref(), Ok(&request.scope));
        if let Scope::FilesRead(folder) = &request.scope {
            assert!(folder.is_absolute() && folder.parent().is_some());
        }
    }
});
