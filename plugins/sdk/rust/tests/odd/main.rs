//! A plugin that prints, panics, dawdles and talks too much.

#![allow(clippy::print_stdout)]

use std::process::{Command, ExitCode};
use std::sync::{Condvar, Mutex};

use segue_plugin::{
    Capability, Context, Error, Plugin, Reason, SearchParams, SearchResult, StreamInfo, log, run,
};

const MANIFEST: &str = r#"{"schema": 1, "id": "odd", "name": "Odd", "version": "1", "protocol": "segue.plugin/1",
    "executable": "odd", "capabilities": ["search", "stream"]}"#;

#[derive(Default)]
struct Odd {
    released: Mutex<bool>,
    release: Condvar,
}

impl Plugin for Odd {
    fn start(&self, context: &Context) -> Result<(), Error> {
        log::info(format_args!("greeting is {}", context.config["greeting"]));
        Ok(())
    }

    /// One less than offered, and one that nobody offered.
    fn capabilities(&self, _: &[Capability]) -> Vec<Capability> {
        vec![Capability::Stream, Capability::GetAlbum]
    }

    fn search(&self, search: &SearchParams) -> Result<Vec<SearchResult>, Error> {
        Err(Error::rate_limited(&search.query, std::time::Duration::from_secs(2)))
    }

    fn stream(&self, content_id: &str) -> Result<StreamInfo, Error> {
        match content_id {
            "print" => {
                println!("a stray print");
                Command::new("/bin/echo").arg("a child's print").status()?;
            }
            "panic" => panic!("as asked"),
            "hold" => {
                let released = self.released.lock().map_err(|error| Error::internal(error.to_string()))?;
                let wait = self.release.wait_while(released, |released| !*released);
                drop(wait.map_err(|error| Error::internal(error.to_string()))?);
            }
            "release" => {
                *self.released.lock().map_err(|error| Error::internal(error.to_string()))? = true;
                self.release.notify_all();
            }
            "eat" => {
                let read = Command::new("/bin/cat").status()?;
                println!("a child that reads: {read}");
            }
            "long" => return stream(&"x".repeat(11 * 1024 * 1024)),
            "big" => return stream(&"x".repeat(1024 * 1024)),
            "wordy" => return Err(Error::content_not_found("x".repeat(11 * 1024 * 1024))),
            "region" => return Err(Error::content_unavailable("not here", Reason::Region)),
            _ => {}
        }
        stream(content_id)
    }
}

fn stream(path: &str) -> Result<StreamInfo, Error> {
    let url = format!("https://example.org/{path}");
    Ok(StreamInfo { url, content_type: "audio/flac".to_owned(), ..StreamInfo::default() })
}

fn main() -> ExitCode {
    run(MANIFEST, Odd::default())
}
