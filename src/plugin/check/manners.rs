//! What a plugin must bear: unknown calls, junk, several calls at once, the end.

use std::time::{Duration, Instant};

use segue_protocol::{ErrorCode, Line};
use serde_json::Value;

use super::run::{Heard, Silence, quoted};
use super::seconds;
use super::session::{Session, Trouble};

/// How long a plugin may take to end after its standard input was closed.
const END: Duration = Duration::from_secs(2);
/// A method that no version of the protocol will have.
const UNKNOWN: &str = "x_segue_check";

pub(super) async fn check(session: &mut Session<'_>) {
    let tried = unknown_method(session).await;
    // Where it cannot bear an unknown call, that is told once.
    let second = if tried.is_ok() { UNKNOWN } else { "ping" };
    note(session, "unknown_method", tried);
    let tried = no_id(session).await;
    note(session, "no_id", tried);
    let tried = two_at_once(session, second).await;
    note(session, "two_at_once", tried);
    let tried = junk(session).await;
    note(session, "junk", tried);
    let tried = end_of_input(session).await;
    note(session, "end_of_input", tried);
}

fn note(session: &mut Session<'_>, check: &'static str, tried: Result<String, Trouble>) {
    match tried {
        Ok(words) => session.notes.pass(check, words),
        Err(trouble) => session.notes.fail(check, trouble.words, trouble.advice),
    }
}

async fn unknown_method(session: &mut Session<'_>) -> Result<String, Trouble> {
    let patience = session.bench.patience();
    let advice = "answer methods that you do not know with the error -32601";
    match session.ask(UNKNOWN, None::<()>, patience).await {
        Ok(_) => Err(Trouble::new(format!("it answered {UNKNOWN}, which it cannot know"), advice)),
        Err(Trouble { code: Some(ErrorCode::MethodNotFound), .. }) => Ok("answered with -32601".to_owned()),
        Err(trouble) => Err(Trouble { advice: advice.to_owned(), ..trouble }),
    }
}

/// A message without an id is never answered.
async fn no_id(session: &mut Session<'_>) -> Result<String, Trouble> {
    let advice = "do not answer a message without an id, and live on";
    let run = session.running().await?;
    let strays = run.strays.len();
    let written = run.write("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n").await;
    written.map_err(|error| Trouble::new(error.to_string(), advice))?;
    let patience = session.bench.patience();
    let pong = session.ask("ping", None::<()>, patience).await;
    pong.map_err(|trouble| Trouble::new(format!("after it: {}", trouble.words), advice))?;
    let Some(run) = session.run.as_mut() else { return Ok("not answered".to_owned()) };
    match run.strays.iter().skip(strays).position(|stray| stray.is_reply) {
        None => Ok("not answered".to_owned()),
        Some(at) => {
            // Told here, and not a second time as stray output.
            let stray = run.strays.remove(strays + at);
            Err(Trouble::new(format!("it was answered: {}", session.bench.redacted(&stray.words)), advice))
        }
    }
}

/// Both in one write, so that a plugin which reads more than a line at a time has both.
async fn two_at_once(session: &mut Session<'_>, method: &str) -> Result<String, Trouble> {
    let advice = "answer each call with its own id, also when several lines come at once";
    let patience = session.bench.patience();
    let run = session.running().await?;
    let wrong = |error: std::io::Error| Trouble::new(error.to_string(), advice);
    let (first, ping) = run.request("ping", None::<()>).map_err(wrong)?;
    let (second, other) = run.request(method, None::<()>).map_err(wrong)?;
    run.write(&(ping + &other)).await.map_err(wrong)?;
    let found = run.answers(&[first, second], Instant::now() + patience).await;
    let [ping, unknown] = &found.replies[..] else { return Err(Trouble::new("no answers", advice)) };
    match (ping, unknown) {
        (Some(ping), Some(_)) => {
            if ping.as_ref().is_err_and(|fault| fault.code == ErrorCode::MethodNotFound) {
                return Err(Trouble::new("the answers are mixed up: ping got the other one's", advice));
            }
            Ok("both were answered".to_owned())
        }
        _ => {
            let missing = if ping.is_none() { "the first" } else { "the second" };
            let silence = if found.ended { Silence::Ended } else { Silence::Late(patience) };
            let trouble = session.mourn(silence).await;
            Err(Trouble::new(format!("{missing} of two calls: {}", trouble.words), advice))
        }
    }
}

async fn junk(session: &mut Session<'_>) -> Result<String, Trouble> {
    let advice = "answer what is no JSON with {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,…}}, and live on";
    let patience = session.bench.patience();
    let run = session.running().await?;
    run.write("this is no JSON\n").await.map_err(|error| Trouble::new(error.to_string(), advice))?;
    let answer = match run.hear(Instant::now() + patience).await {
        Heard::Line(Line::Text(line)) => judge(&line).map_err(|words| Trouble::new(words, advice)),
        Heard::Line(_) => Err(Trouble::new("it was answered with a line that cannot be read", advice)),
        Heard::End => {
            let trouble = session.mourn(Silence::Ended).await;
            return Err(Trouble::new(trouble.words, advice));
        }
        Heard::Nothing => Err(Trouble::new(format!("not answered within {}", seconds(patience)), advice)),
    };
    answer?;
    let pong = session.ask("ping", None::<()>, patience).await;
    pong.map_err(|trouble| Trouble::new(format!("after it: {}", trouble.words), advice))?;
    Ok("answered with -32700 and the id null".to_owned())
}

fn judge(line: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(line).map_err(|_| format!("it printed {}", quoted(line)))?;
    let code = value.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
    match (value.get("id"), code) {
        (Some(Value::Null), Some(-32700)) => Ok(()),
        (Some(Value::Null), Some(code)) => Err(format!("it was answered with the code {code}")),
        (_, Some(-32700)) => Err("the answer's id is not null".to_owned()),
        _ => Err(format!("it was answered with {}", quoted(line))),
    }
}

async fn end_of_input(session: &mut Session<'_>) -> Result<String, Trouble> {
    let run = session.running().await?;
    run.close_input();
    let began = Instant::now();
    if run.ends_within(END).await {
        return Ok(format!("it ended {} after its standard input was closed", seconds(began.elapsed())));
    }
    session.finish().await;
    Err(Trouble::new(
        format!("it still runs {} after its standard input was closed", seconds(END)),
        "end when there is nothing more to read: threads and children as well",
    ))
}
