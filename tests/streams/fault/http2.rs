//! HTTP/2 by the crate h2, with what can go wrong there.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{Request, Response};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_rustls::server::TlsStream;

use super::http1::proper_head;
use super::script::Act;
use super::server::{Door, Inner, Question, Task};

/// Answers requests on one connection.
pub(super) async fn converse(inner: Arc<Inner>, number: usize, stream: TlsStream<TcpStream>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let (tell, mut told) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            request = connection.accept() => {
                let Some(Ok((request, answer))) = request else { return };
                let question = question(&request);
                match inner.ask(Door::Http2, number, &question) {
                    Some(task) => {
                        let tell = tell.clone();
                        tokio::spawn(async move {
                            // A failure is the client's right to hang up.
                            let _ = play(answer, &question, &task, &tell).await;
                        });
                    }
                    None => drop(answer),
                }
            }
            Some(()) = told.recv() => connection.graceful_shutdown(),
        }
    }
}

fn question(request: &Request<h2::RecvStream>) -> Question {
    let headers = request.headers().iter();
    let headers: HashMap<String, String> = headers
        .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    Question::new(request.uri().path(), headers)
}

async fn play(
    mut answer: SendResponse<Bytes>,
    question: &Question,
    task: &Task,
    go_away: &mpsc::UnboundedSender<()>,
) -> Result<(), h2::Error> {
    let total = task.file.bytes.len();
    let mut at = question.from.unwrap_or(0).min(total);
    let mut body: Option<SendStream<Bytes>> = None;
    for act in &task.script.acts {
        match (act, &mut body) {
            (Act::Head(_), _) => {
                let (status, lines) = proper_head(question, task);
                let builder = lines
                    .into_iter()
                    .fold(Response::builder().status(status), |builder, line| builder.header(line.0, line.1));
                body = Some(answer.send_response(builder.body(()).unwrap(), false)?);
            }
            (Act::Body(count), Some(body)) => {
                let end = at.saturating_add(*count).min(total);
                send(body, &task.file.bytes[at..end]).await?;
                at = end;
            }
            (Act::Wait(time), _) => sleep(*time).await,
            (Act::Stall, Some(body)) => {
                let _ = poll_fn(|cx| body.poll_reset(cx)).await;
            }
            (Act::Stall, None) => {
                let _ = poll_fn(|cx| answer.poll_reset(cx)).await;
            }
            (Act::Reset, Some(body)) => {
                body.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            (Act::Reset, None) => {
                answer.send_reset(Reason::REFUSED_STREAM);
                return Ok(());
            }
            (Act::GoAway, _) => {
                let _ = go_away.send(());
            }
            (other, _) => panic!("{other:?} is not for HTTP/2"),
        }
    }
    if let Some(body) = &mut body {
        body.send_data(Bytes::new(), true)?;
    }
    Ok(())
}

/// Sends as fast as the client takes it.
async fn send(body: &mut SendStream<Bytes>, mut bytes: &[u8]) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len().min(16 * 1024));
        let granted = poll_fn(|cx| body.poll_capacity(cx)).await.unwrap_or(Ok(0))?;
        if granted == 0 {
            return Ok(());
        }
        let (now, later) = bytes.split_at(granted.min(bytes.len()));
        body.send_data(Bytes::copy_from_slice(now), false)?;
        bytes = later;
    }
    Ok(())
}
