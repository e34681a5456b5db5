//! One bad plugin, as data: its program, what it is asked, and what must come of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// What a call must bring.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// One result, whose title is what was asked for: the call's own answer.
    Found,
    /// The code of the failure.
    Fails(i32),
    /// The code of the failure, and words of its sentence.
    Says(i32, &'static str),
    /// Its own answer or one of these codes: where limits of the machine decide.
    FoundOr(&'static [i32]),
    /// One of these codes, whichever deadline is noticed first.
    OneOf(&'static [i32]),
    /// One result with this title.
    Title(&'static str),
}

/// What is done with the plugin, one after the other.
#[derive(Clone, Debug)]
pub enum Step {
    /// Searches for these words.
    Call(String, Expect),
    /// Searches for all of these at once.
    Together(Vec<(String, Expect)>),
    /// Waits until its process is gone.
    Stopped,
    /// Waits until a line of its log has these words.
    Log(&'static str),
    /// Waits until its log has so many lines, and looks at the first and the last of them.
    LogIs(usize, &'static str, &'static str),
    /// Searches for this until it brings something else than that; then it must be the second.
    Until(&'static str, Expect, Expect),
    /// Has a person enable it again.
    EnabledAgain,
    /// Adds a line to a file of its package, moves it away or whatever; then everything is looked at again.
    Edited(fn(&Path)),
    /// Disables it, or does this to its package, while this search is under way, which must bring that. The plugin
    /// writes into its log what it is asked for.
    During(&'static str, Expect, Option<fn(&Path)>),
}

/// In which language it is written. Each has a frame that behaves well, into which the case's part is put.
#[derive(Clone, Debug)]
pub enum Program {
    /// Defines `abuse(id, words)`, and may define anything else of the frame's anew.
    Python(&'static str),
    /// Defines the function `abuse`, called with the id and the words.
    Shell(&'static str),
    /// Defines `static void abuse(long id, const char *words)`.
    C(&'static str),
}

/// A bad plugin.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its id, which says what it does.
    pub id: &'static str,
    pub program: Program,
    /// Put into its manifest.
    pub manifest: Value,
    /// Words of the sentence with which enabling it is refused.
    pub refused: Option<&'static str>,
    pub steps: Vec<Step>,
}

/// A plugin in Python.
pub fn python(id: &'static str, part: &'static str) -> Case {
    Case::new(id, Program::Python(part))
}

/// A plugin for the shell.
pub fn shell(id: &'static str, part: &'static str) -> Case {
    Case::new(id, Program::Shell(part))
}

/// A plugin in C.
pub fn compiled(id: &'static str, part: &'static str) -> Case {
    Case::new(id, Program::C(part))
}

impl Case {
    fn new(id: &'static str, program: Program) -> Case {
        Case { id, program, manifest: json!({}), refused: None, steps: Vec::new() }
    }

    /// With these fields in the manifest.
    pub fn manifest(mut self, fields: Value) -> Case {
        self.manifest = fields;
        self
    }

    /// With this time-out of `search`.
    pub fn timeout_ms(self, search: u64) -> Case {
        self.manifest(json!({"timeouts_ms": {"search": search}}))
    }

    /// With a time-out of `search` after which it answers no ping either, so that nobody need wait long for one.
    pub fn deaf(self) -> Case {
        self.manifest(json!({"timeouts_ms": {"search": 1_000, "ping": 330}}))
    }

    /// Enabling it must be refused with these words.
    pub fn refused(mut self, words: &'static str) -> Case {
        self.refused = Some(words);
        self
    }

    /// Asked for this, it must bring that.
    pub fn call(mut self, words: &str, expect: Expect) -> Case {
        self.steps.push(Step::Call(words.to_owned(), expect));
        self
    }

    /// Asked for something that it does not misbehave at, it answers.
    pub fn well(self) -> Case {
        self.call("well", Expect::Found)
    }

    /// Asked for all this at once.
    pub fn together(mut self, calls: &[(&str, Expect)]) -> Case {
        let calls = calls.iter().map(|(words, expect)| ((*words).to_owned(), *expect));
        self.steps.push(Step::Together(calls.collect()));
        self
    }

    /// Then its process ends.
    pub fn stopped(mut self) -> Case {
        self.steps.push(Step::Stopped);
        self
    }

    /// Then this is in its log.
    pub fn log(mut self, words: &'static str) -> Case {
        self.steps.push(Step::Log(words));
        self
    }

    /// Then its log has so many lines, of which these are the first and the last.
    pub fn log_is(mut self, count: usize, first: &'static str, last: &'static str) -> Case {
        self.steps.push(Step::LogIs(count, first, last));
        self
    }

    /// Asked for this so often, it must bring that each time.
    pub fn times(mut self, count: usize, words: &str, expect: Expect) -> Case {
        for _ in 0..count {
            self = self.call(words, expect);
        }
        self
    }

    /// Asked for this twice and then for something that it answers, over and over.
    pub fn again_and_again(mut self, count: usize, words: &str, expect: Expect) -> Case {
        for _ in 0..count {
            self = self.times(2, words, expect).well();
        }
        self
    }

    /// Asked for this again and again, it brings the first for a while and then the second.
    pub fn until(mut self, words: &'static str, first: Expect, then: Expect) -> Case {
        self.steps.push(Step::Until(words, first, then));
        self
    }

    /// Then a person enables it again.
    pub fn enabled_again(mut self) -> Case {
        self.steps.push(Step::EnabledAgain);
        self
    }

    /// Then somebody does this to its package, which is looked at again.
    pub fn edited(mut self, how: fn(&Path)) -> Case {
        self.steps.push(Step::Edited(how));
        self
    }

    /// Then it is disabled while it is asked for this.
    pub fn disabled_during(mut self, words: &'static str, expect: Expect) -> Case {
        self.steps.push(Step::During(words, expect, None));
        self
    }

    /// Then somebody does this to its package while it is asked for this.
    pub fn edited_during(mut self, words: &'static str, expect: Expect, how: fn(&Path)) -> Case {
        self.steps.push(Step::During(words, expect, Some(how)));
        self
    }

    /// Writes the package below a folder. `mark` becomes an argument of the program and so of all that it forks.
    pub fn install(&self, folder: &Path, mark: &str, bus: &str) {
        let package = folder.join(self.id);
        fs::create_dir_all(&package).unwrap();
        let mut manifest = json!({
            "schema": 1, "id": self.id, "name": self.id, "version": "1", "protocol": "segue.plugin/1",
            "executable": "run", "arguments": [mark, self.id, bus], "capabilities": ["search"],
        });
        for (name, value) in self.manifest.as_object().unwrap() {
            manifest[name] = value.clone();
        }
        fs::write(package.join("plugin.json"), manifest.to_string()).unwrap();
        self.program.write(&package.join("run"));
        for (path, mode) in
            [(package.clone(), 0o755), (package.join("run"), 0o755), (package.join("plugin.json"), 0o644)]
        {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }
}

impl Program {
    fn write(&self, to: &Path) {
        match self {
            Program::Python(part) => fs::write(to, include_str!("frame.py").replace("#ABUSE", part)).unwrap(),
            Program::Shell(part) => fs::write(to, include_str!("frame.sh").replace("#ABUSE", part)).unwrap(),
            Program::C(part) => {
                let folder = tempfile::tempdir().unwrap();
                let source = folder.path().join("plugin.c");
                fs::write(&source, include_str!("frame.c").replace("/*ABUSE*/", part)).unwrap();
                let built = Command::new("gcc")
                    .args(["-O1", "-w", "-pthread", "-o"])
                    .args([to, &source])
                    .output()
                    .expect("these tests need gcc");
                assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            }
        }
    }
}
