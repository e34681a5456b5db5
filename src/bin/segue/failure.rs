//! What goes wrong, as a sentence and an exit status.

use std::process::ExitCode;

use zbus::DBusError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No bus, or no segued on it.
    #[error("{0}")]
    NoDaemon(String),
    /// Wrong use that the command line's grammar cannot tell.
    #[error("{0}")]
    Usage(String),
    /// All else.
    #[error("{0}")]
    Other(String),
    /// Whoever read our output is gone, as in `segue queue | head`.
    #[error("nobody reads the output")]
    NobodyReads,
}

const START_IT: &str = "start it by running `segued`; with --bus you say where it is";

impl Failure {
    /// No segued on the bus that was asked.
    pub fn not_running() -> Failure {
        Failure::NoDaemon(format!("segued is not running: {START_IT}"))
    }

    /// No bus to look for segued on.
    pub fn no_bus(error: &zbus::Error) -> Failure {
        Failure::NoDaemon(format!("there is no bus to reach segued on ({error}): {START_IT}"))
    }

    /// For the shell.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::NobodyReads => 0,
            Failure::Other(_) => 1,
            Failure::Usage(_) => 2,
            Failure::NoDaemon(_) => 3,
        })
    }
}

impl From<zbus::Error> for Failure {
    fn from(error: zbus::Error) -> Failure {
        match error {
            zbus::Error::MethodError(name, None, _) => Failure::Other(name.to_string()),
            zbus::Error::MethodError(_, Some(sentence), _) => Failure::Other(sentence),
            zbus::Error::FDO(error) => (*error).into(),
            zbus::Error::InputOutput(error) => {
                Failure::NoDaemon(format!("the connection to the bus broke ({error}); try again"))
            }
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<zbus::fdo::Error> for Failure {
    fn from(error: zbus::fdo::Error) -> Failure {
        use zbus::fdo::Error;
        match error {
            Error::ServiceUnknown(_) | Error::NameHasNoOwner(_) => Failure::not_running(),
            Error::NoReply(_) | Error::Disconnected(_) => {
                Failure::NoDaemon("segued went away before it answered; look at `journalctl -u segue`".into())
            }
            Error::AccessDenied(_) => Failure::Other(
                "the bus does not let you do this: playback is for the group audio, plugins are for the group \
                 segue-admin, and root may do both; use sudo or join the group"
                    .into(),
            ),
            Error::ZBus(error) => error.into(),
            other => {
                let sentence = other.description().map(str::to_owned);
                Failure::Other(sentence.unwrap_or_else(|| other.to_string()))
            }
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => Failure::Other(error.to_string()),
        }
    }
}
