//! One call by hand: the reply on standard output as it came, all else on standard error.

use std::io::{Write, stderr};
use std::time::Duration;

use segue::plugin::check::{ByHand, CallFailure, Seen, call};

use super::check::options;
use crate::args::CallArgs;
use crate::failure::Failure;
use crate::out::{Out, clean};

impl From<CallFailure> for Failure {
    fn from(failure: CallFailure) -> Failure {
        match failure {
            CallFailure::Check(error) => error.into(),
            CallFailure::Plugin(why) => Failure::Other(clean(&why)),
        }
    }
}

pub async fn run(out: &mut Out, args: CallArgs) -> Result<(), Failure> {
    let params = args.params.as_deref().map(serde_json::from_str).transpose();
    let params = params.map_err(|error| Failure::Usage(format!("PARAMS is no JSON: {error}")))?;
    let patience = args.timeout.map(|seconds| Duration::from_secs(seconds.into()));
    let by_hand = ByHand { method: args.method, params, patience };
    let options = options(args.run);
    let called = call(&options, &by_hand, |seen| {
        // Nobody reads it: that is no reason to fail.
        let _ = match seen {
            Seen::Sent(line) => writeln!(stderr(), "> {}", clean(line)),
            Seen::Received(line) => writeln!(stderr(), "< {}", clean(line)),
            Seen::Log(line) => writeln!(stderr(), "{:<5} {}", line.level.as_str(), clean(&line.text)),
        };
    });
    let reply = tokio::select! {
        reply = called => reply?,
        _ = tokio::signal::ctrl_c() => return Err(Failure::Other("interrupted; the plugin was ended".into())),
    };
    // As it came, so that it can be piped; a terminal is spared what would steer it.
    out.line(&if out.terminal { clean(&reply.line) } else { reply.line })?;
    match reply.fault {
        None => Ok(()),
        Some(fault) => Err(Failure::Other(format!("{}: {}", fault.code, clean(&fault.message)))),
    }
}
