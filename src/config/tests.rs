//! What makes a configuration good, and what is said about a bad one.

use std::path::Path;

use super::*;
use crate::player::Intent;

fn wrong(text: &str) -> String {
    Config::parse(text, Path::new("segue.toml")).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_a_good_one() {
    assert_eq!(Config::parse("", Path::new("x")).unwrap(), Config::default());
}

#[test]
fn a_mistake_is_shown_with_line_and_column() {
    assert!(wrong("[output]\ndevise = \"auto\"\n").starts_with("segue.toml:2:1: unknown field `devise`"));
    assert!(wrong("[output]\nbuffer_ms = \"long\"\n").starts_with("segue.toml:2:13: "));
    assert!(wrong("[stream]\nbuffer = \"6 Mb\"\n").contains("2:10: “6 Mb” is not a size"));
    assert!(wrong("[stream]\n\n  buffer = 5\n").starts_with("segue.toml:3:3: buffer: from"));
    assert!(wrong("[files]\nfolders = [\"music\"]\n").contains("music is not an absolute path"));
    assert!(
        wrong("[stream]\nbuffer = 3\n[output]\nbuffer_ms = 100\n").starts_with("segue.toml:2:1: buffer:")
    );
    assert!(wrong("[dbus]\nbus = \"sesion\"\n").starts_with("segue.toml:2:1: bus:"));
    assert!(wrong("[files]\nfolders = []\n[plugins]\nfolders = [\"x\"]\n").starts_with("segue.toml:4:1: "));
    assert!(wrong("output.buffer_ms = 1\n").starts_with("segue.toml:1:1: buffer_ms:"));
    assert!(wrong("[log]\nlevel = \"loud\"\n").starts_with("segue.toml:2:1: level: “loud”"));
    assert!(wrong("[stream]\nsilence_s = 0\n").starts_with("segue.toml:2:1: silence_s: from 1"));
    let years = format!("[output]\nrelease_after_s = {}\n", i64::MAX);
    assert!(wrong(&years).starts_with("segue.toml:2:1: release_after_s: at most"));
    assert!(wrong("[sound]\ncrossfade_ms = 12001\n").starts_with("segue.toml:2:1: crossfade_ms: at most"));
    assert!(wrong("[sound]\nmono = true\npreamp_db = nan\n").starts_with("segue.toml:3:1: preamp_db: from"));
    assert!(wrong("[sound]\nreplay_gain = \"loud\"\n").starts_with("segue.toml:2:15: "));
    assert!(wrong("[dbus\n").starts_with("segue.toml:1:"));
    assert!(wrong("[log]\nlevel = 3").starts_with("segue.toml:2:9: "));
}

#[test]
fn sizes_and_devices_are_read_as_people_write_them() {
    let text = "[stream]\nbuffer = \"8 MiB\"\n[output]\ndevice = [\"hw:CARD=DAC\", \"auto\"]\n";
    let config = Config::parse(text, Path::new("x")).unwrap();
    assert_eq!(config.stream.buffer, Size(8 << 20));
    assert_eq!(config.output.device.0, ["hw:CARD=DAC", "auto"]);
}

#[test]
fn each_configuration_in_the_documents_is_a_good_one() {
    let mut found = 0;
    for name in ["README.md", "docs/configuration.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            // Plugins' own files are shown too; those begin with their path.
            if !block.starts_with("# plugins/") {
                Config::parse(block, &path).unwrap_or_else(|error| panic!("{block}\n{error}"));
                found += 1;
            }
        }
    }
    assert!(found >= 2, "only {found} configurations found");
}

#[test]
fn after_a_crash_it_plays_on_and_after_a_boot_it_waits() {
    let (playing, paused, stopped) = (Intent::Playing, Intent::Paused, Intent::Stopped);
    assert_eq!(Resume::Pause.intent(playing, true), playing);
    assert_eq!(Resume::Pause.intent(playing, false), paused);
    assert_eq!(Resume::Play.intent(playing, false), playing);
    assert_eq!(Resume::Play.intent(paused, false), paused);
    assert_eq!(Resume::Stop.intent(playing, false), stopped);
    assert_eq!(Resume::Stop.intent(paused, true), paused);
    assert_eq!(Resume::Play.intent(stopped, true), stopped);
}

#[test]
fn the_example_holds_every_key_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/segue.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(Config::parse(&text, &path).unwrap(), Config::default());
    let page = std::fs::read_to_string(path.with_file_name("configuration.md")).unwrap();
    let mut keys = 0;
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let key = line.split('`').nth(1).unwrap();
        if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            assert!(
                text.contains(&format!("\n{key} = ")) || text.contains(&format!("\n# {key} = ")),
                "{key}"
            );
            keys += 1;
        }
    }
    assert!(keys >= 20, "only {keys} keys found on the page");
}
