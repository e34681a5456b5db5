//! How the bytes of the current track stand, in the outside's words.

use std::time::Duration;

use crate::control::Buffer;
use crate::output::Facts;
use crate::stream::Status;

/// Bytes from the stream's status; time by the average bit rate, plus what is decoded already.
pub(super) fn view(
    status: Option<Status>,
    output: &Facts,
    position: Duration,
    duration: Option<Duration>,
) -> Buffer {
    let decoded = output.buffered + output.delay;
    let Some(status) = status else { return Buffer { delay: output.delay, ..Buffer::default() } };
    let per_byte = match (status.total, duration) {
        (Some(total), Some(duration)) if total > 0 => duration.as_secs_f64() / total as f64,
        _ => 0.0,
    };
    let end = duration.unwrap_or(Duration::MAX);
    let ahead = decoded.as_secs_f64() + status.received as f64 * per_byte;
    let ahead = ahead.min(end.saturating_sub(position).as_secs_f64());
    let fetched = if status.complete {
        duration.unwrap_or(position + decoded)
    } else {
        position + Duration::try_from_secs_f64(ahead).unwrap_or(Duration::ZERO)
    };
    Buffer {
        bytes: status.received,
        cap: status.cap,
        seconds_ahead: ahead,
        fetched_micros: i64::try_from(fetched.as_micros()).unwrap_or(i64::MAX),
        delay: output.delay,
        complete: status.complete,
        url_expires_in: status.expires_in,
        re_resolved: status.re_resolved,
    }
}
