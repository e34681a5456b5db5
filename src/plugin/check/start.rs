//! Start, handshake and the first sign of life.

use segue_protocol::ErrorCode;
use segue_protocol::messages::{InitializeResult, PingResult};

use super::super::start::{check_identity, equal, known};
use super::run::Silence;
use super::seconds;
use super::session::{Session, Trouble};

/// Whether it can be talked to.
pub(super) async fn check(session: &mut Session<'_>) -> bool {
    match session.bench.start().await {
        Ok(run) => session.run = Some(run),
        Err(why) => {
            let advice = "is the interpreter in its first line installed? Is it built for this machine?";
            session.notes.fail("start", format!("it cannot be started: {why}"), advice);
            session.notes.skip_the_rest("it does not start");
            return false;
        }
    }
    let patience = session.bench.manifest.timeouts.initialize;
    let params = session.bench.initialize();
    let Some(run) = session.run.as_mut() else { return false };
    let confined = run.confinement();
    let answer = run.ask("initialize", Some(params), patience).await;
    let took = run.began.elapsed();
    let answer = match answer {
        Ok(answer) => answer,
        Err(silence) => {
            silent(session, silence, confined).await;
            return false;
        }
    };
    session.notes.pass("start", format!("the first answer came after {}", seconds(took)));
    confinement(session, confined);
    session.notes.pass("flush", "the answer came while standard input was open");
    let shaken = match answer {
        Ok(result) => result.parse::<InitializeResult>().and_then(|found| {
            let offered = check_identity(&session.bench.manifest, &session.bench.scopes(), found)?;
            known(&session.bench.manifest, offered)
        }),
        Err(fault) if fault.code == ErrorCode::MethodNotFound => {
            by_ping(session).await;
            return session.run.is_some();
        }
        Err(fault) => Err(fault),
    };
    match shaken {
        Ok(offered) => {
            session.notes.pass("handshake", "it is what its manifest says");
            session.capabilities = offered;
        }
        Err(fault) => {
            let trouble = Trouble::of(&fault);
            session.notes.fail("handshake", trouble.words, trouble.advice);
        }
    }
    ping(session, "ping").await;
    session.run.is_some()
}

fn confinement(session: &mut Session<'_>, confinement: Result<String, String>) {
    match confinement {
        Ok(words) => session.notes.pass("confinement", words),
        Err(words) => {
            let advice = "check it again where plugins are confined: it may miss something there";
            session.notes.skip("confinement", words, advice);
        }
    }
}

/// It takes no `initialize`: then its ping tells who it is.
async fn by_ping(session: &mut Session<'_>) {
    ping(session, "handshake").await;
    if session.run.is_some() {
        ping(session, "ping").await;
    }
}

async fn ping(session: &mut Session<'_>, check: &'static str) {
    let patience = session.bench.patience();
    let pong = session.ask("ping", None::<()>, patience).await;
    let checked = pong.and_then(|result| {
        let pong: PingResult = result.parse().map_err(|fault| Trouble::of(&fault))?;
        let manifest = &session.bench.manifest;
        let told = equal("version", &manifest.version, &pong.version)
            .and_then(|()| known(manifest, pong.capabilities.clone()));
        told.map_err(|fault| Trouble::of(&fault))?;
        Ok(pong)
    });
    match checked {
        Ok(pong) if pong.status == "ok" => {
            session.capabilities = pong.capabilities;
            session.notes.pass(check, "it is well");
        }
        Ok(pong) => {
            session.capabilities = pong.capabilities;
            let words = format!("it says of itself: {}", super::run::quoted(&pong.status));
            session.notes.fail(
                check,
                words,
                "give it what it needs with --config; a plugin that is well says ok",
            );
        }
        Err(trouble) => session.notes.fail(check, trouble.words, trouble.advice),
    }
}

/// No first answer: whose fault is it?
async fn silent(session: &mut Session<'_>, silence: Silence, confined: Result<String, String>) {
    let unflushed = silence == Silence::Unflushed;
    let ended = matches!(silence, Silence::Ended | Silence::Unread(_));
    let trouble = session.mourn(silence).await;
    if ended {
        let advice = "is the interpreter in its first line installed? Look at its standard error";
        session.notes.fail("start", trouble.words, advice);
        session.notes.skip_the_rest("it does not stay");
        return;
    }
    session.notes.pass("start", "it runs");
    confinement(session, confined);
    if unflushed {
        session.notes.fail("flush", trouble.words, trouble.advice);
        session.notes.skip_the_rest("without flushing it answers nothing");
    } else {
        session.notes.skip("flush", "nothing came that could have been flushed", "");
        session.notes.fail("handshake", trouble.words, trouble.advice);
        session.notes.skip_the_rest("there was no handshake");
    }
}
