//! HLS: playlists that are followed, and segments as one run of bytes.

mod addresses;
mod forms;
mod live;
mod recordings;
mod soundless;

use super::*;

/// AAC frames of pseudo-random bytes, different for each seed.
fn frames(seed: u64, count: usize) -> Vec<u8> {
    let noise = data(count * 200 + seed as usize * 7);
    let noise = &noise[seed as usize * 7..];
    noise
        .chunks(200)
        .take(count)
        .flat_map(|body| {
            let length = body.len() + 7;
            let (high, low) = ((length >> 3) as u8, (length << 5) as u8 | 0x1f);
            [&[0xff, 0xf1, 0x50, 0x80, high, low, 0xfc], body].concat()
        })
        .collect()
}

/// What a server serves by path: the whole of it, or the range that is asked for.
fn serve(request: &Request, reply: &mut Reply, content_type: &str, body: &[u8]) {
    let (from, total) = (request.from.unwrap_or(0) as usize, body.len());
    let to = request.to.map_or(total, |to| (to as usize).min(total));
    let length = (to - from).to_string();
    if request.from.is_some() {
        let range = format!("bytes {from}-{}/{total}", to - 1);
        reply.head(
            206,
            &[("Content-Type", content_type), ("Content-Range", &range), ("Content-Length", &length)],
        );
    } else {
        reply.head(200, &[("Content-Type", content_type), ("Content-Length", &length)]);
    }
    reply.body(&body[from..to]);
}

fn playlist(request: &Request, reply: &mut Reply, text: &str) {
    serve(request, reply, "application/vnd.apple.mpegurl", text.as_bytes());
}

fn open_list(server: &Server, resolver: &Arc<Resolver>) -> (Reader, StreamHandle) {
    open_with(settings(), ResolvedStream::plain(server.url("/list.m3u8?key=secret")), resolver)
}

fn number(request: &Request) -> u64 {
    request.path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

fn paths(server: &Server) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

const RECORDING: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.aac\n#EXTINF:4,\n1.aac\n#EXTINF:4,\n2.aac\n\
    #EXT-X-ENDLIST\n";

fn all(numbers: std::ops::Range<u64>) -> Vec<u8> {
    numbers.flat_map(|number| frames(number, 100)).collect()
}

/// Reads on through all recordings, with their types.
async fn read_stretches(mut reader: Reader) -> Vec<(Option<String>, Vec<u8>)> {
    spawn_blocking(move || {
        let mut stretches = vec![(reader.content_type(), Vec::new())];
        loop {
            reader.read_to_end(&mut stretches.last_mut().unwrap().1).unwrap();
            let Some(content_type) = reader.next_stretch() else { return stretches };
            stretches.push((content_type, Vec::new()));
        }
    })
    .await
    .unwrap()
}

/// A playlist of so many segments before `end`.
fn window(end: u64, count: u64, target: f32) -> String {
    let first = end - count;
    let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    for number in first..end {
        text += &format!("#EXTINF:{target},\n{number}.aac\n");
    }
    text
}

/// The last of them: nothing follows.
fn last_window(end: u64, count: u64, target: f32) -> String {
    window(end, count, target) + "#EXT-X-ENDLIST\n"
}

/// Answers with the frames of that number.
fn segment(request: &Request, reply: &mut Reply) {
    serve(request, reply, "audio/aac", &frames(number(request), 100));
}

/// Serves what `list` says as playlist number n, counted from 0; `rest` answers whatever else is asked for.
fn listing(
    list: impl Fn(usize) -> String + Send + Sync + 'static,
    rest: impl Fn(&Request, &mut Reply) + Send + Sync + 'static,
) -> Server {
    let lists = AtomicUsize::new(0);
    Server::start(move |_, request, reply| {
        if request.path.contains("/list.m3u8") {
            playlist(request, reply, &list(lists.fetch_add(1, Ordering::SeqCst)));
        } else {
            rest(request, reply);
        }
    })
}

/// The same with [`RECORDING`].
fn recording(rest: impl Fn(&Request, &mut Reply) + Send + Sync + 'static) -> Server {
    listing(|_| RECORDING.to_owned(), rest)
}
