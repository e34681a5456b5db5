//! What is wrong with TLS, and whose fault it is.

use std::io;

use super::http::{Missing, NoAnswer};

/// While the clock is not set, dates of certificates say nothing: it is waited for, as a network is. Once it is, they
/// are the server's fault.
pub(super) fn tls_failure(name: &str, error: &rustls::Error, clock_can_judge: bool) -> NoAnswer {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match error {
        rustls::Error::InvalidCertificate(
            NotValidYet | NotValidYetContext { .. } | Expired | ExpiredContext { .. },
        ) if !clock_can_judge => {
            let text = format!(
                "the certificate of {name} is not valid today by the clock of this machine, but that clock is not set \
                 yet; waiting for it (a time server sets it: see `timedatectl`)"
            );
            NoAnswer::Unreachable(Missing::Time, text)
        }
        rustls::Error::InvalidCertificate(problem) => {
            NoAnswer::Insecure { host: name.to_owned(), why: certificate_problem(problem) }
        }
        rustls::Error::InvalidMessage(_) => NoAnswer::Failing(format!(
            "{name} answers https with something else; perhaps its address begins with http:"
        )),
        rustls::Error::PeerIncompatible(_) => NoAnswer::Failing(format!(
            "{name} knows no TLS version that is still secure (1.2 or 1.3): {error}"
        )),
        rustls::Error::AlertReceived(alert) => {
            NoAnswer::Failing(format!("{name} refuses the TLS connection ({alert:?})"))
        }
        error => NoAnswer::Failing(format!("{name}: {error}")),
    }
}

/// An I/O error may be wrapped in others, as the TLS connector does, and `source` leaves those out.
pub(super) fn innermost(mut error: &io::Error) -> &io::Error {
    while let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
        error = inner;
    }
    error
}

/// What is wrong with a certificate, and what to do about it.
fn certificate_problem(problem: &rustls::CertificateError) -> String {
    use rustls::CertificateError as Problem;
    match problem {
        Problem::Expired => {
            "its certificate has expired; if that cannot be, see to the clock of this machine".to_owned()
        }
        Problem::ExpiredContext { time, not_after } => format!(
            "its certificate was good until {}, and here it is {}; if that is not the day, see to the clock of this machine",
            day(*not_after),
            day(*time)
        ),
        Problem::NotValidYet => {
            "its certificate is not valid yet; if that cannot be, see to the clock of this machine".to_owned()
        }
        Problem::NotValidYetContext { time, not_before } => format!(
            "its certificate is good from {} on, and here it is {}; if that is not the day, see to the clock of this machine",
            day(*not_before),
            day(*time)
        ),
        Problem::UnknownIssuer => "its certificate is signed by nobody whom this machine knows; \
            if the server is to be trusted, add its authority's certificate to those of this machine \
            (ca-certificates), else something between here and there listens in"
            .to_owned(),
        Problem::NotValidForName => "its certificate is for another host; check the address".to_owned(),
        Problem::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().take(3).map(String::as_str).collect();
            format!("its certificate is for another host ({}); check the address", names.join(", "))
        }
        Problem::Revoked => "its certificate was revoked; do not trust it".to_owned(),
        other => format!("its certificate is not good ({other}); tell who runs the server"),
    }
}

/// As people write it: 2026-12-01.
fn day(time: rustls::pki_types::UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| "a day out of reach".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}
