//! What it means that no answer came.

use std::error::Error;
use std::io;

use url::Url;

use super::{Web, host};
use crate::stream::names::NoAddress;
use crate::stream::reach::OutOfReach;
use crate::stream::tls::{innermost, tls_failure};

/// Why no usable answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stream) enum NoAnswer {
    /// No host was reached: no route, no name, no connection in time.
    Unreachable(Missing, String),
    /// The host was reached, but gave no answer.
    Failing(String),
    /// The host cannot prove who it is.
    Insecure {
        /// The host in question.
        host: String,
        /// What is wrong with its certificate and what to do.
        why: String,
    },
    /// The address is against the rules.
    Forbidden {
        /// The host in question.
        host: String,
        /// The rule.
        why: String,
    },
}

/// What was missing when no host was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stream) enum Missing {
    /// An answer about this name.
    Name(String),
    /// A way to this host; with its port where that is not the usual one.
    Host(String),
    /// The time: nobody can say yet whether a certificate is valid.
    Time,
}

impl Web {
    /// Finds out from the chain of causes what kind of failure it was.
    pub(super) fn failure(&self, url: &Url, error: reqwest::Error) -> NoAnswer {
        let (timeout, connect) = (error.is_timeout(), error.is_connect());
        let name = host(url);
        let error = error.without_url();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        let mut last = String::new();
        while let Some(this) = cause {
            last = this.to_string();
            if let Some(out) = this.downcast_ref::<OutOfReach>() {
                return forbidden(url, out.0);
            }
            if let Some(none) = this.downcast_ref::<NoAddress>() {
                return self.no_address(url, none);
            }
            if let Some(io) = this.downcast_ref::<io::Error>().map(innermost) {
                if let Some(found) = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                    return tls_failure(&name, found, self.clock_can_judge());
                }
                if io.kind() == io::ErrorKind::UnexpectedEof && connect {
                    self.answered(url);
                    return NoAnswer::Failing(format!("{name} hung up while TLS was being set up"));
                }
                if matches!(io.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset) {
                    self.answered(url);
                    return NoAnswer::Failing(format!("{name}: {io}"));
                }
            }
            cause = this.source();
        }
        let text = if timeout { format!("{name} did not answer in time") } else { format!("{name}: {last}") };
        if !connect {
            return NoAnswer::Failing(text);
        }
        let missing = match url.domain() {
            // The time for connecting includes that for the name.
            Some(domain) if self.names.is_unknown(domain) => Missing::Name(domain.to_owned()),
            _ => Missing::Host(name),
        };
        NoAnswer::Unreachable(missing, text)
    }

    /// What a failed look-up means.
    fn no_address(&self, url: &Url, none: &NoAddress) -> NoAnswer {
        let (host, domain) = (host(url), url.domain().unwrap_or_default().to_owned());
        match none {
            // A network that is half up calls each name unknown.
            NoAddress::NoSuchName if (self.surroundings.routes)() => NoAnswer::Failing(format!(
                "there is no host {domain}; check its name, and that this network leads to the internet"
            )),
            why => NoAnswer::Unreachable(Missing::Name(domain), format!("{host}: {why}")),
        }
    }
}

/// Whether the connection ended before an answer came, which was not for want of a connection or of time.
pub(super) fn hung_up(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

pub(super) fn forbidden(url: &Url, why: &str) -> NoAnswer {
    NoAnswer::Forbidden { host: host(url), why: why.to_owned() }
}
