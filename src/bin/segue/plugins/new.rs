//! A plugin to begin with, which keeps the contract as it is.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use segue::track::PluginId;

use crate::args::{Language, NewArgs};
use crate::failure::Failure;
use crate::out::{Out, clean};

/// A file to write: path, text, whether it may be run.
type Template = (&'static str, &'static str, bool);

macro_rules! template {
    ($file:literal) => {
        include_str!(concat!("../../../../plugins/sdk/", $file))
    };
}

const PYTHON: &[Template] = &[
    ("plugin.json", template!("templates/python/plugin.json"), false),
    ("plugin", template!("templates/python/plugin"), true),
    ("segue_plugin.py", template!("python/segue_plugin.py"), false),
    ("README.md", template!("templates/python/README.md"), false),
];
const SH: &[Template] = &[
    ("plugin.json", template!("templates/sh/plugin.json"), false),
    ("plugin", template!("templates/sh/plugin"), true),
    ("tracks.json", template!("templates/sh/tracks.json"), false),
    ("README.md", template!("templates/sh/README.md"), false),
];
const RUST: &[Template] = &[
    ("plugin.json", template!("templates/rust/plugin.json"), false),
    ("Cargo.toml", template!("templates/rust/Cargo.toml"), false),
    ("src/main.rs", template!("templates/rust/src/main.rs"), false),
    ("README.md", template!("templates/rust/README.md"), false),
    (".gitignore", template!("templates/rust/gitignore"), false),
];
pub fn run(out: &mut Out, args: &NewArgs) -> Result<(), Failure> {
    let (id, name) = names(&args.name)?;
    let folder = args.dir.join(id.as_str());
    let sdk = match &args.sdk {
        Some(path) => sdk_at(path)?,
        // By a version, the plugin would be built with whatever somebody publishes under that name.
        None if args.lang == Language::Rust => {
            let text = "name the SDK with --sdk: the folder plugins/sdk/rust of Segue's sources";
            return Err(Failure::Usage(text.to_owned()));
        }
        None => String::new(),
    };
    let templates = match args.lang {
        Language::Python => PYTHON,
        Language::Sh => SH,
        Language::Rust => RUST,
    };
    write_all(&folder, templates, |path, text| filled(path, text, &id, &name, &sdk)).map_err(|error| {
        let at = clean(&folder.display().to_string());
        Failure::Other(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{at} exists already, and nothing was changed; choose another name")
            }
            io::ErrorKind::NotFound => {
                format!("{at} cannot be made: the folder that it should be in is missing")
            }
            _ => format!("{at} cannot be written: {error}"),
        })
    })?;
    let at = clean(&folder.display().to_string());
    let files: Vec<&str> = templates.iter().map(|(path, ..)| *path).collect();
    out.line(&format!("{at}: {}", files.join(", ")))?;
    out.line("Next:")?;
    let package = if args.lang == Language::Rust {
        out.line(&format!("  build it as its README.md says: {at}/README.md"))?;
        format!("{at}/package/{id}")
    } else {
        at
    };
    out.line(&format!("  segue plugin check {package}"))?;
    out.line(&format!(
        "  mkdir -p ~/.local/share/segue/plugins && cp -r {package} ~/.local/share/segue/plugins/"
    ))?;
    out.line(&format!("  segue plugin rescan && segue plugin trust {id} && segue plugin enable {id} --all"))
}

/// What was typed may be an id, or a name of which one is made.
fn names(typed: &str) -> Result<(PluginId, String), Failure> {
    let typed = typed.trim();
    if typed.len() > 200 || typed.contains(char::is_control) {
        return Err(Failure::Usage(
            "a plugin's name has at most 200 bytes, none of them a control character".into(),
        ));
    }
    if let Ok(id) = typed.parse::<PluginId>() {
        let mut letters = typed.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let name = first.into_iter().chain(letters.map(|c| if c == '-' { ' ' } else { c })).collect();
        return Ok((id, name));
    }
    let mut id = String::new();
    for c in typed.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => id.push(c),
            _ if id.is_empty() || id.ends_with('-') => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_end_matches('-').parse();
    let id =
        id.map_err(|error| Failure::Usage(format!("no id can be made of “{}”: {error}", clean(typed))))?;
    Ok((id, typed.to_owned()))
}

/// As the right side of a dependency.
fn sdk_at(path: &Path) -> Result<String, Failure> {
    let folder = path.canonicalize().ok().filter(|folder| folder.join("Cargo.toml").is_file());
    let text = folder.as_ref().and_then(|folder| folder.to_str()).ok_or_else(|| {
        Failure::Usage(format!(
            "{} is no folder with the SDK's Cargo.toml",
            clean(&path.display().to_string())
        ))
    })?;
    Ok(format!("{{ path = {} }}", quoted(text)))
}

/// A string as JSON and TOML both write it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn filled(path: &str, text: &str, id: &PluginId, name: &str, sdk: &str) -> String {
    // Within its quotation marks.
    let in_json = quoted(name);
    let name = if path.ends_with(".json") { &in_json[1..in_json.len() - 1] } else { name };
    // The name comes last: it may look like a placeholder.
    text.replace("{{id}}", id.as_str()).replace("{{sdk}}", sdk).replace("{{name}}", name)
}

/// Writes all or nothing, with the modes that a package must have whatever the umask is.
fn write_all(folder: &Path, templates: &[Template], fill: impl Fn(&str, &str) -> String) -> io::Result<()> {
    fs::create_dir(folder)?;
    let written = set_mode(folder, 0o755).and_then(|()| {
        templates.iter().try_for_each(|(path, text, executable)| {
            let file = folder.join(path);
            if let Some(parent) = file.parent().filter(|parent| *parent != folder) {
                fs::create_dir_all(parent)?;
                set_mode(parent, 0o755)?;
            }
            File::create_new(&file)?.write_all(fill(path, text).as_bytes())?;
            set_mode(&file, if *executable { 0o755 } else { 0o644 })
        })
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(folder);
    }
    written
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_a_name_and_a_name_of_an_id() {
        let made = |typed| names(typed).map(|(id, name)| (id.to_string(), name)).ok();
        let both = |id: &str, name: &str| Some((id.to_owned(), name.to_owned()));
        assert_eq!(made("my-radio"), both("my-radio", "My radio"));
        assert_eq!(made(" Radio  Éire 2 "), both("radio-ire-2", "Radio  Éire 2"));
        assert_eq!(made("C.D."), both("c-d", "C.D."));
        for bad in ["", "2radio", "…", "a\nb", &"x".repeat(65)] {
            assert_eq!(made(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_cannot_break_out_of_its_place() {
        let (id, name) = names("Say \"{{id}}\" \\ twice").unwrap();
        let json = filled("plugin.json", PYTHON[0].1, &id, &name, "");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&read["id"], &read["name"]), (&id.as_str().into(), &name.as_str().into()));
    }
}
