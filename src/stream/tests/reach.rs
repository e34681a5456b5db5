//! Where addresses, redirects and paths may lead.

use super::*;

#[tokio::test]
async fn headers_stay_with_their_origin_through_redirects() {
    let data = data(50_000);
    let source = Arc::clone(&data);
    let other = Server::start(move |_, request, reply| reply.range(request, &source));
    let target = other.url("/b").to_string();
    let server = Server::start(move |number, _, reply| match number {
        0 => reply.status(302, &[("Location", "/same")]),
        _ => reply.status(307, &[("Location", &target)]),
    });
    let resolved = ResolvedStream {
        headers: vec![("X-Key".to_owned(), "secret".to_owned())],
        ..ResolvedStream::plain(server.url("/a"))
    };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert!(server.requests().iter().all(|request| request.headers["x-key"] == "secret"));
    assert!(other.requests().iter().all(|request| !request.headers.contains_key("x-key")));
}

#[tokio::test]
async fn more_than_ten_redirects_are_too_many() {
    let server = Server::start(|number, _, reply| reply.status(302, &[("Location", &format!("/{number}"))]));
    let (reader, _handle) = open(&server, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert_eq!(server.ranges().len(), 11);
}

#[tokio::test]
async fn a_plugin_without_the_local_network_cannot_reach_this_machine() {
    let server = Server::start(|_, _, reply| reply.status(200, &[]));
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"] {
        let url = Url::parse(&format!("http://{host}:{}/a?key=secret", server.address.port())).unwrap();
        let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
        let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
        assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }), "{host}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_this_machine_is_out_of_reach() {
    // Needs an address that is not loopback; `redirects_stay_secure_and_within_reach` covers a machine without.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let Some(own) = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok().map(|own| own.ip())
    else {
        return;
    };
    let hidden = Server::start(|_, _, reply| reply.status(200, &[]));
    let target = hidden.url("/").to_string();
    let server = Server::bind("0.0.0.0:0", move |_, _, reply| reply.status(302, &[("Location", &target)]));
    let url = Url::parse(&format!("http://{own}:{}/", server.address.port())).unwrap();
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert_eq!(server.requests().len(), 1);
    assert!(hidden.requests().is_empty());
}

#[test]
fn files_are_read_below_allowed_folders_only() {
    let folder = tempfile::tempdir().unwrap();
    let (music, secret) = (folder.path().join("music"), folder.path().join("secret"));
    std::fs::create_dir(&music).unwrap();
    std::fs::write(&secret, "secret").unwrap();
    std::fs::write(music.join("a.flac"), "0123456789").unwrap();
    std::os::unix::fs::symlink(&secret, music.join("link")).unwrap();
    std::os::unix::fs::symlink("a.flac", music.join("inside")).unwrap();
    nix::unistd::mkfifo(&music.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let streams = Streams::new(settings()).unwrap();
    let folders = UserFolders::new(vec![music.clone()]);

    let (mut reader, handle) = streams.open_file(&music.join("a.flac"), &folders).unwrap();
    assert_eq!((reader.byte_len(), reader.is_seekable()), (Some(10), true));
    reader.seek(SeekFrom::End(-3)).unwrap();
    let mut tail = String::new();
    reader.read_to_string(&mut tail).unwrap();
    assert_eq!(tail, "789");
    assert!(handle.status().complete && handle.status().position == 10);
    handle.abort();
    assert!(reader.read(&mut [0; 1]).is_err());

    assert!(streams.open_file(&music.join("inside"), &folders).is_ok());
    for path in ["link", "../secret", "fifo", ".", "missing"] {
        let error = streams.open_file(&music.join(path), &folders).map(|_| ()).unwrap_err();
        assert!(matches!(error, StreamError::File { .. }), "{path}");
    }
    assert!(streams.open_file(&secret, &folders).is_err());
}
