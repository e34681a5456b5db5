//! Lines that are not what they should be, and ids that are nobody's.

use serde_json::json;

use crate::case::{Case, Expect, python, shell};
use crate::stage;

const PARSE_ERROR: Expect = Expect::Fails(-32_700);

/// Prints this instead of an answer, which costs the call and leaves the plugin usable.
fn junk(id: &'static str, part: &'static str) -> Case {
    python(id, part).call("junk", PARSE_ERROR).well().call("junk", PARSE_ERROR).well()
}

/// Prints this before the answer, and the answer is found.
fn dropped(id: &'static str, part: &'static str) -> Case {
    python(id, part).times(2, "look again", Expect::Found).well()
}

#[tokio::test]
async fn a_line_that_is_no_message_costs_the_calls_in_flight_and_no_more() {
    let cases = [
        junk("batch", "def abuse(id, words): put('[' + line(id=id, result=found(words)) + ']')"),
        junk("empty-batch", "def abuse(id, words): put('[]')"),
        junk(
            "not-utf8",
            "
def abuse(id, words): raw(line(id=id, result=found('~')).encode().replace(b'~', b'\\xff\\xfe') + b'\\n')
",
        ),
        junk("half-a-surrogate-in-utf8", "def abuse(id, words): raw(b'\"\\xed\\xa0\\x80\"\\n')"),
        junk(
            "nul",
            "def abuse(id, words): raw(line(id=id, result=found('~')).encode().replace(b'~', b'\\0') + b'\\n')",
        ),
        junk(
            "nul-before",
            "def abuse(id, words): raw(b'\\0' + line(id=id, result=found(words)).encode() + b'\\n')",
        ),
        junk("byte-order-mark", "def abuse(id, words): put('\\ufeff' + line(id=id, result=found(words)))"),
        junk("empty-line", "def abuse(id, words): put('')"),
        junk("only-crlf", "def abuse(id, words): put('\\r')"),
        junk("no-json", "def abuse(id, words): print('DEBUG: searching for', words, flush=True)"),
        junk("cut-json", "def abuse(id, words): put(line(id=id, result=found(words))[:-1])"),
        junk("two-in-one-line", "def abuse(id, words): put(line(id=id, result=found(words)) * 2)"),
        junk("json-over-several-lines", "def abuse(id, words): put('{\"jsonrpc\": \"2.0\",')"),
        junk("number", "def abuse(id, words): put('42')"),
        junk("no-version", "def abuse(id, words): put(json.dumps({'id': id, 'result': found(words)}))"),
        junk(
            "old-version",
            "def abuse(id, words): put(line(id=id, result=found(words)).replace('2.0', '1.0'))",
        ),
        junk("no-id", "def abuse(id, words): put(line(result=found(words)))"),
        junk("nested-line", "def abuse(id, words): put('[' * 100000 + ']' * 100000)"),
        junk("open-line", "def abuse(id, words): put('{\"a\":' * 100000)"),
        junk(
            "id-twice",
            "def abuse(id, words): put(line(id=id, result=found(words)).replace('{', '{\"id\": 1, ', 1))",
        ),
        shell("three-in-a-row", "abuse() { echo 1; echo 2; echo 3; sleep 60; }")
            .call("three lines of junk", Expect::OneOf(&[-32_700, -1]))
            .stopped()
            .well(),
        shell("always-three", "abuse() { echo Searching...; answer \"$1\" \"$2\"; }")
            .times(5, "a stray print", PARSE_ERROR)
            .well(),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_reply_that_nobody_waits_for_is_dropped() {
    let cases = [
        dropped("duplicate", "def abuse(id, words): answer(id, words), answer(id, 'again')"),
        dropped("string-id", "def abuse(id, words): answer(str(id), 'x'), answer(id, words)"),
        dropped("float-id", "def abuse(id, words): answer(float(id), 'x'), answer(id, words)"),
        dropped("negative-id", "def abuse(id, words): answer(-id, 'x'), answer(id, words)"),
        dropped(
            "null-id",
            "
def abuse(id, words):
    answer(None, 'x')
    fail(None, {'code': -32700, 'message': 'x'})
    answer(id, words)
",
        ),
        dropped(
            "object-id",
            "
def abuse(id, words):
    for other in ({'id': id}, [id], True, ''):
        answer(other, 'x')
    answer(id, words)
",
        ),
        dropped("unknown-id", "def abuse(id, words): answer(id + 1000000, 'x'), answer(id, words)"),
        dropped(
            "huge-id",
            "def abuse(id, words): answer(2 ** 64 + id, 'x'), answer(10 ** 400, 'x'), answer(id, words)",
        ),
        dropped(
            "earlier-ids",
            "def abuse(id, words): [answer(old, 'x') for old in range(id)], answer(id, words)",
        ),
        python("string-id-only", "def abuse(id, words): answer(str(id), words)")
            .timeout_ms(1_000)
            .times(2, "with a string", Expect::Fails(-2))
            .well(),
        python(
            "next-ids",
            "def abuse(id, words): [answer(next, 'x') for next in range(id + 1, id + 9)], answer(id, words)",
        )
        .call("answered before it is asked", Expect::Found)
        .well(),
        python(
            "calls-the-host",
            "
def abuse(id, words):
    put(line(method='log', params={'text': 'hello'}))
    put(line(id=id, method='search', params={'query': words}))
    put(line(id=id, method='org.segue.Plugins1.Enable', params=[ME, []], result=found('x')))
    put(line(id=None, method='ping'))
    answer(id, words)
",
        )
        .times(3, "with a callback", Expect::Found),
        python(
            "calls-the-host-without-end",
            "
def abuse(id, words):
    raw((line(id=id, method='log', params='x' * 100) + '\\n').encode() * 20000)
    answer(id, words)
",
        )
        .call("after 20,000 requests", Expect::Found)
        .well(),
        python(
            "strays-without-end",
            "
def abuse(id, words):
    raw((line(id=4096, result=found('x')) + '\\n').encode() * 20000)
    answer(id, words)
",
        )
        .call("after 20,000 strays", Expect::Found)
        .well(),
        python(
            "crlf",
            "
def put(text):
    raw(text.encode() + b'\\r\\n')
",
        )
        .times(2, "with crlf", Expect::Found),
        python(
            "answers-in-any-order",
            "
waiting = []
def abuse(id, words):
    waiting.append((id, words))
    if len(waiting) == 6:
        while waiting:
            answer(*waiting.pop())
",
        )
        .together(&["a", "b", "c", "d", "e", "f"].map(|words| (words, Expect::Found))),
        python(
            "in-single-bytes",
            "
def put(text):
    for byte in text.encode() + b'\\n':
        os.write(1, bytes([byte]))
",
        )
        .times(2, "byte by byte", Expect::Found),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_banner_before_the_first_reply_fails_the_handshake() {
    let refused = "PARSE_ERROR";
    let cases = [
        python(
            "banner",
            "
def initialize(id, params):
    put('Welcome to my plugin 1.0!')
    reply(id, hello(params))
",
        )
        .refused(refused),
        shell("banner-in-shell", "echo hello").refused(refused),
        python(
            "banner-of-a-library",
            "
def initialize(id, params):
    subprocess.call(['/bin/echo', 'DeprecationWarning'])
    reply(id, hello(params))
",
        )
        .refused(refused)
        .manifest(json!({"timeouts_ms": {"initialize": 15_000}})),
    ];
    stage::play(&cases).await;
}
