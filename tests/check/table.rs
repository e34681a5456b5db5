//! One plugin for each rule: what breaks a rule fails its line and no other.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use futures_util::StreamExt;
use segue::plugin::check::{CHECKS, CheckError, Options, Report, Verdict, check};
use serde_json::{Value, json};

use crate::workshop::{PATIENCE, Workshop, python, write};

/// Rows that are tried at the same time.
const AT_ONCE: usize = 4;

/// A plugin that breaks one rule.
struct Row {
    /// The line that fails; empty: none does.
    fails: &'static str,
    /// What the line says, among other things.
    words: &'static str,
    program: String,
    manifest: Value,
    /// Done to the package before it is checked.
    spoil: fn(&Path),
}

fn row(fails: &'static str, words: &'static str, hooks: &str) -> Row {
    Row { fails, words, program: python(hooks), manifest: json!({}), spoil: |_| () }
}

impl Row {
    fn manifest(self, manifest: Value) -> Row {
        Row { manifest, ..self }
    }

    fn program(self, program: &str) -> Row {
        Row { program: program.to_owned(), ..self }
    }

    fn spoil(self, spoil: fn(&Path)) -> Row {
        Row { spoil, ..self }
    }
}

/// Before anything runs.
fn packages() -> Vec<Row> {
    vec![
        row("manifest", "unknown field `homepage`", "").manifest(json!({"homepage": "https://example.org"})),
        row("manifest", "id “other” differs", "").manifest(json!({"id": "other"})),
        row("manifest", "plugin.json: expected", "")
            .spoil(|folder| write(&folder.join("plugin.json"), "no", 0o644)),
        row("package", "run is writable by others", "").spoil(|folder| mode(&folder.join("run"), 0o775)),
        row("package", "the package's folder is writable by others", "").spoil(|folder| mode(folder, 0o777)),
        row("package", "“run” may not be run", "").spoil(|folder| mode(&folder.join("run"), 0o644)),
        row("package", "lib is a symbolic link", "")
            .spoil(|folder| symlink("/usr/lib", folder.join("lib")).unwrap()),
        row("package", "“start” is not a file of the package", "").manifest(json!({"executable": "start"})),
    ]
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn starts() -> Vec<Row> {
    let soon = || json!({"timeouts_ms": {"initialize": 5_000}});
    vec![
        row("start", "", "").program("#!/no/such/interpreter\n"),
        row("start", "exit status: 3", "sys.stderr.write('no licence\\n'); sys.exit(3)"),
        row("start", "“no licence”", "sys.stderr.write('no licence\\n'); sys.exit(3)"),
        row("flush", "only when standard input was closed", "def put(text): sys.stdout.write(text + '\\n')")
            .manifest(soon()),
        row("handshake", "no answer within 1.0 s", "def initialize(id, p): pass")
            .manifest(json!({"timeouts_ms": {"initialize": 1_000}})),
        row("handshake", "its version is “2”, but “1” was trusted", "IDENTITY['version'] = '2'"),
        row("handshake", "its id is “other”", "IDENTITY['id'] = 'other'"),
        row("handshake", "its scopes is “”", "def initialize(id, p): answer(id, dict(IDENTITY, scopes=[]))")
            .manifest(json!({"scopes": [{"scope": "network", "reason": "talks"}]})),
        row("handshake", "unknown field “extra”", "IDENTITY['extra'] = 1"),
        row("handshake", "INTERNAL_ERROR: no", "def initialize(id, p): fail(id, 1)"),
        // Without `initialize` the ping is the handshake.
        row("", "", "def initialize(id, p): unknown(id)"),
        row(
            "ping",
            "it says of itself: “tired”",
            "def ping(id, p): answer(id, {'status': 'tired', 'version': '1', 'capabilities': OFFERS})",
        ),
        row(
            "ping",
            "unknown variant `get_lyrics`",
            "def ping(id, p): answer(id, {'status': 'ok', 'version': '1', 'capabilities': ['get_lyrics']})",
        ),
    ]
}

fn calls() -> Vec<Row> {
    vec![
        row(
            "search",
            "unknown field “results.0.sub_title”",
            "def search(id, p): answer(id, {'results': [{'kind': 'track', 'content_id': 't', 'title': 'T', 'sub_title': 'x'}]})",
        ),
        row(
            "search",
            "results, and 20 were the limit",
            "def search(id, p): answer(id, {'results': [{'kind': 'track', 'content_id': 't', 'title': 'T'}] * 21})",
        ),
        row("search", "may not send the error code -2", "def search(id, p): fail(id, -2)"),
        row("search", "no answer within 1.0 s", "def search(id, p): pass").manifest(json!({
            "capabilities": ["search"], "timeouts_ms": {"search": 1_000},
        })),
        row("search", "it gave no answer: it ended (exit status: 4)", "def search(id, p): os._exit(4)")
            .manifest(json!({"capabilities": ["search"]})),
        row("search", "does not offer it now", "OFFERS.remove('search')").manifest(json!({
            "capabilities": ["search"],
        })),
        row("get_track", "missing field `title`", "del TRACK['title']"),
        row("get_track", "date must be YYYY", "TRACK['date'] = 'May'"),
        row("get_track", "CONTENT_NOT_FOUND: gone", "def get_track(id, p): fail(id, 3, 'gone')"),
        row(
            "get_album",
            "missing field `tracks`",
            "def get_album(id, p): answer(id, {'album': {'content_id': 'a', 'title': 'A'}})",
        ),
        row(
            "get_artist",
            "either a result or an error",
            "def get_artist(id, p): put(json.dumps({'jsonrpc': '2.0', 'id': id}))",
        ),
        row("stream", "unknown field “expire_at”", "STREAM['expire_at'] = '2031-01-01T00:00:00Z'"),
        row("stream", "“Range” is the player's own", "STREAM['headers'] = {'Range': 'bytes=0-'}"),
        row("stream", "1 to 200 characters", "STREAM['content_type'] = ''"),
        row("url", "leads to this machine", "STREAM['url'] = 'http://127.0.0.1/x'"),
        row("url", "leads to this machine", "STREAM['alternatives'] = ['http://[fe80::1]/x']"),
        row("", "", "STREAM['url'] = 'http://127.0.0.1/x'").manifest(json!({
            "scopes": [{"scope": "local-network", "reason": "serves here"}],
        })),
        row("url", "begins with ftp", "STREAM['url'] = 'ftp://host/x'"),
        row("url", "not below a folder", "STREAM['url'] = 'file:///etc/passwd'"),
        row(
            "expiry",
            "which is past",
            "del STREAM['expires_in_ms']; STREAM['expires_at'] = '2020-01-01T00:00:00Z'",
        ),
        row("expiry", "which is no time", "STREAM['expires_at'] = 'tomorrow'"),
        row("expiry", "before it can be fetched", "STREAM['expires_in_ms'] = 0"),
        // An extension is ignored.
        row("", "", "STREAM['x_mine'] = {'any': 'thing'}"),
    ]
}

fn manners() -> Vec<Row> {
    vec![
        row("unknown_method", "which it cannot know", "def unknown(id): answer(id, {})"),
        row("unknown_method", "INTERNAL_ERROR", "def unknown(id): fail(id, 1)"),
        row(
            "unknown_method",
            "(exit status: 1)",
            "def unknown(id): answer(id, MISSING) if id < 9 else fail(id, -32601)",
        ),
        row("no_id", "it was answered", "def no_id(m): answer(None, {})"),
        row("no_id", "“KeyError: 'id'”", "def no_id(m): answer(m['id'], {})"),
        row("two_at_once", "the second of two calls: no answer within 2.5 s", FIRST_ONLY)
            .manifest(json!({"timeouts_ms": {"ping": 2_500}})),
        row("two_at_once", "mixed up", SWAPPED),
        row("junk", "(exit status: 1)", "def junk(line): json.loads(line)"),
        row("junk", "not answered within 2.5 s", "def junk(line): pass")
            .manifest(json!({"timeouts_ms": {"ping": 2_500}})),
        row("junk", "with the code -32600", "def junk(line): fail(None, -32600)"),
        row("junk", "id is not null", "def junk(line): fail(1, -32700)"),
        row("end_of_input", "still runs 2.0 s after", "def the_end(): time.sleep(600)"),
        row("stdout", "“Welcome!”", "print('Welcome!', flush=True)"),
        row(
            "stdout",
            "no JSON-RPC message: “searching”",
            "def search(id, p): print('searching'); answer(id, {'results': []})",
        ),
        row(
            "stdout",
            "nobody waits for",
            "def search(id, p): [answer(id, {'results': []}) for twice in range(2)]",
        ),
        row(
            "stdout",
            "the player takes none",
            "def ping(id, p, old=ping): put('{\"jsonrpc\": \"2.0\", \"method\": \"log\"}'); old(id, p)",
        ),
        row("stdout", "“bye”", "def the_end(): sys.stdout.write('bye')"),
        row("stdout", "not UTF-8", "os.write(1, b'\\xff\\n')"),
        row("stdout", "more than 10 MiB", "os.write(2, b'now\\n'); put('x' * 10485761)"),
    ]
}

/// Takes what it can get, and answers the first call in it only.
const FIRST_ONLY: &str = r#"
class Greedy:
    lines = []
    def readline(self):
        if not self.lines:
            got = os.read(0, 65536).decode().splitlines(True)
            more = [line for line in got if '"id"' in line][1:]
            self.lines = [line for line in got if line not in more]
        return self.lines.pop(0) if self.lines else ""
sys.stdin = Greedy()
"#;

/// Where a call follows a ping at once, it mixes up the two.
const SWAPPED: &str = r#"
import select
def ping(id, p, old=ping):
    if not select.select([0], [], [], 0.2)[0] or not (line := sys.stdin.readline()): return old(id, p)
    m = json.loads(line)
    if "id" not in m: return old(id, p)
    fail(id, -32601)
    old(m["id"], p)
class Unbuffered:
    def readline(self):
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(0, 1)
            if not byte: break
            line += byte
        return line.decode()
sys.stdin = Unbuffered()
"#;

/// What keeps the contract, however it looks.
fn good() -> Vec<Row> {
    vec![
        row("", "", ""),
        // Much on standard error is no fault.
        row("", "", "os.write(2, b'x' * 262144 + b'\\n')"),
        row("", "", "").program(SHELL).manifest(json!({"capabilities": ["search", "stream"]})),
        // Nothing is known to ask for: that is skipped.
        row("", "", "def search(id, p): answer(id, {'results': []})"),
        row("", "", "os.close(2)"),
    ]
}

const SHELL: &str = r#"#!/bin/sh
offers='"capabilities":["search","stream"]'
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$1" "$2"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    '{'*'"method":"initialize"'*)
        say "$id" '"result":{"protocol":"segue.plugin/1","id":"tried","version":"1",'"$offers"',"scopes":[]}' ;;
    '{'*'"id":'*'"method":"ping"'*) say "$id" '"result":{"status":"ok","version":"1",'"$offers"'}' ;;
    '{'*'"method":"search"'*) say "$id" '"result":{"results":[{"kind":"track","content_id":"t","title":"T"}]}' ;;
    '{'*'"method":"stream"'*) say "$id" '"result":{"url":"http://192.0.2.1/t","content_type":"audio/mpeg"}' ;;
    '{'*'"id":'*) say "$id" '"error":{"code":-32601,"message":"unknown"}' ;;
    '{'*) ;;
    *) say null '"error":{"code":-32700,"message":"not JSON"}' ;;
    esac
done
"#;

/// What the library and the program say, which must be the same.
async fn tried(row: &Row) -> Report {
    let workshop = Workshop::new();
    let folder = workshop.package(&row.program, row.manifest.clone());
    (row.spoil)(&folder);
    let mut told = Vec::new();
    let options = Options::new(&folder);
    let report = tokio::time::timeout(PATIENCE, check(&options, |finding| told.push(finding.clone())));
    let report = report.await.expect("the check does not end").unwrap();
    assert_eq!(told, report.findings, "each line is told once, as it comes");

    let (status, out, error) = workshop.run(&["plugin", "check", "tried", "--json"]).await;
    assert_eq!(status, i32::from(!report.passed()), "{error}");
    let out: Value = serde_json::from_str(&out).unwrap();
    let program: Vec<(String, String)> = out["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (text(&line["check"]), text(&line["verdict"])))
        .collect();
    let library: Vec<(String, String)> = report
        .findings
        .iter()
        .map(|line| (line.check.to_owned(), line.verdict.as_str().to_owned()))
        .collect();
    assert_eq!(program, library, "{out:#}");
    assert_eq!((&out["plugin"], &out["passed"]), (&json!("tried"), &json!(report.passed())));
    assert_eq!(workshop.left(), [] as [&Path; 0], "it left something behind");
    report
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn judge(row: &Row, report: &Report) -> Result<(), String> {
    let failed: Vec<_> = report.findings.iter().filter(|finding| finding.verdict == Verdict::Fail).collect();
    let names: Vec<&str> = failed.iter().map(|finding| finding.check).collect();
    let expected: &[&str] = if row.fails.is_empty() { &[] } else { &[row.fails] };
    let said = failed.first().map_or("", |finding| &finding.words);
    let advised = failed.iter().all(|finding| !finding.advice.is_empty());
    if names == expected && said.contains(row.words) && advised {
        return Ok(());
    }
    Err(format!("“{}” should fail with “{}”, and not {failed:#?}\n{:#?}", row.fails, row.words, report.log))
}

async fn all(rows: Vec<Row>) {
    let wrong: Vec<String> = futures_util::stream::iter(&rows)
        .map(async |row| judge(row, &tried(row).await))
        .buffer_unordered(AT_ONCE)
        .filter_map(async |judged| judged.err())
        .collect()
        .await;
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[tokio::test]
async fn a_broken_package_fails_before_anything_runs() {
    all(packages()).await;
}

#[tokio::test]
async fn a_bad_start_fails_its_own_line() {
    all(starts()).await;
}

#[tokio::test]
async fn a_bad_reply_fails_its_own_line() {
    all(calls()).await;
}

#[tokio::test]
async fn bad_manners_fail_their_own_line() {
    all(manners()).await;
}

#[tokio::test]
async fn what_keeps_the_contract_passes() {
    all(good()).await;
}

#[tokio::test]
async fn without_namespaces_a_keeper_holds_it_and_that_is_said() {
    let workshop = Workshop::new();
    let folder = workshop.package(&python(""), json!({}));
    let options = Options { bubblewrap: workshop.path("missing"), ..Options::new(&folder) };
    let report = check(&options, |_| ()).await.unwrap();
    assert!(report.passed(), "{report:#?}");
    let line = report.findings.iter().find(|finding| finding.check == "confinement").unwrap();
    assert_eq!(line.verdict, Verdict::Skip);
    assert!(line.words.starts_with("advisory (keeper"), "{line:?}");
}

#[tokio::test]
async fn without_the_runner_nothing_is_run_but_as_a_plain_program() {
    let workshop = Workshop::new();
    let folder = workshop.package(&python(""), json!({}));
    let options = Options { runner: workshop.path("missing"), ..Options::new(&folder) };
    let refused = check(&options, |_| ()).await.unwrap_err();
    assert!(matches!(refused, CheckError::NotConfined(_)), "{refused}");
    let report = check(&Options { sandbox: false, ..options }, |_| ()).await.unwrap();
    assert!(report.passed(), "{report:#?}");
}

#[tokio::test]
async fn a_flood_on_standard_output_is_not_listened_to_for_ever() {
    let workshop = Workshop::new();
    let hooks = "def search(id, p):\n    while True: put('x' * 1000)";
    let folder = workshop.package(&python(hooks), json!({"timeouts_ms": {"search": 1_000}}));
    let options = Options::new(&folder);
    let report = tokio::time::timeout(PATIENCE, check(&options, |_| ())).await.unwrap().unwrap();
    let failed: Vec<&str> =
        report.findings.iter().filter(|f| f.verdict == Verdict::Fail).map(|f| f.check).collect();
    assert_eq!(failed, ["search", "stdout"]);
}

#[test]
fn each_line_has_a_plugin_that_fails_it() {
    let rows: Vec<Row> = [packages(), starts(), calls(), manners()].into_iter().flatten().collect();
    for name in CHECKS.into_iter().filter(|name| *name != "confinement") {
        assert!(rows.iter().any(|row| row.fails == name), "nothing fails {name}");
    }
}
