//! Answers that are errors, and answers that are none.

use crate::case::{Case, Expect, python, shell};
use crate::stage::{self, Stage};
use crate::support::prelude::*;

/// What was asked for is the rest of the reply behind the id.
const REST: &str = r#"def abuse(id, words): put('{"jsonrpc":"2.0","id":%d,%s}' % (id, words))"#;

fn table(id: &'static str, rows: &[(String, Expect)]) -> Case {
    let case = python(id, REST);
    rows.iter().fold(case, |case, (rest, expect)| case.call(rest, *expect)).well()
}

fn error(code: &str) -> String {
    format!(r#""error":{{"code":{code},"message":"so it is"}}"#)
}

const WRONG: Expect = Expect::Fails(-3);

#[tokio::test]
async fn an_error_fails_its_call_with_its_code_and_nothing_else() {
    let own = [1, 2, 3, 4, 5, 6, 7, 8, -32_700, -32_600, -32_601, -32_602, -32_603];
    let own = own.map(|code| (error(&code.to_string()), Expect::Says(code, "so it is")));
    let hosts = [-1, -2, -3, -4, -5, -6, -7, -8].map(|code| (error(&code.to_string()), WRONG));
    let strange = [
        "0",
        "9",
        "-9",
        "99",
        "-32000",
        "1.0",
        "1.5",
        "1e3",
        "\"1\"",
        "null",
        "true",
        "[1]",
        "{}",
        "9223372036854775808",
    ];
    let strange = strange.map(|code| (error(code), WRONG));
    let misshapen = [
        r#""error":{"code":1}"#,
        r#""error":{"message":"no code"}"#,
        r#""error":{"code":1,"message":null}"#,
        r#""error":{"code":1,"message":7}"#,
        r#""error":{"code":1,"message":"x","extra":1}"#,
        r#""error":"no""#,
        r#""error":null"#,
        r#""error":[]"#,
        r#""error":{}"#,
    ];
    let misshapen = misshapen.map(|rest| (rest.to_owned(), WRONG));
    let kept = [
        (
            r#""error":{"code":5,"message":"so it is","data":{"retry_after_ms":1500}}"#.to_owned(),
            Expect::Says(5, "so it is"),
        ),
        (
            r#""error":{"code":6,"message":"so it is","data":{"reason":"region"}}"#.to_owned(),
            Expect::Says(6, "so it is"),
        ),
        (r#""error":{"code":1,"message":"so it is","data":[1,2,3]}"#.to_owned(), Expect::Says(1, "so it is")),
        (r#""error":{"code":1,"message":"so it is","data":null}"#.to_owned(), Expect::Says(1, "so it is")),
        (r#""error":{"code":5,"message":"so it is","data":{"retry_after_ms":-1}}"#.to_owned(), WRONG),
    ];
    let cases = [
        table("every-code", &own),
        table("codes-of-the-host", &hosts),
        table("codes-of-nobody", &strange),
        table("misshapen-errors", &misshapen),
        table("errors-with-data", &kept),
        python("long-message", "def abuse(id, words): fail(id, {'code': 1, 'message': 'no\\n' * 1000000})")
            .times(2, "be long", Expect::Fails(1))
            .well(),
        shell("fails-in-shell", "abuse() { fail \"$1\" 7 down; }")
            .times(3, "is it down?", Expect::Says(7, "down"))
            .well(),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_result_of_the_wrong_shape_fails_its_call_and_nothing_else() {
    let results = [
        r#""result":null"#,
        r#""x_result":1"#,
        r#""result":{"results":[]},"error":{"code":1,"message":"both"}"#,
        r#""result":null,"error":null"#,
        r#""result":[]"#,
        r#""result":"none""#,
        r#""result":{}"#,
        r#""result":{"results":null}"#,
        r#""result":{"results":{}}"#,
        r#""result":{"results":[null]}"#,
        r#""result":{"results":[{}]}"#,
        r#""result":{"results":[[]]}"#,
    ];
    let hits = [
        r#"{"kind":"song","content_id":"1","title":"x"}"#,
        r#"{"kind":"track","content_id":1,"title":"x"}"#,
        r#"{"kind":"track","content_id":"1","title":null}"#,
        r#"{"kind":"track","content_id":"1"}"#,
        r#"{"kind":"track","title":"x"}"#,
        r#"{"kind":"track","content_id":"","title":"x"}"#,
        r#"{"kind":"track","content_id":"1","title":"x","duration_ms":-1}"#,
        r#"{"kind":"track","content_id":"1","title":"x","duration_ms":"1"}"#,
        r#"{"kind":"track","content_id":"1","title":"x","artists":"y"}"#,
        r#"{"kind":"track","content_id":"1","title":"x","artists":[{"nome":"y"}]}"#,
        r#"{"kind":"track","content_id":"1","title":"x","expire_at":1}"#,
        r#"{"kind":"track","kind":"album","content_id":"1","title":"x"}"#,
    ];
    let within = |hit: &str| format!(r#""result":{{"results":[{hit}]}}"#);
    let wrong = results.iter().map(|rest| (*rest).to_owned()).chain(hits.iter().map(|hit| within(hit)));
    let wrong: Vec<_> = wrong.map(|rest| (rest, WRONG)).collect();
    let unknown = [
        (r#""result":{"results":[]},"reslut":1"#.to_owned(), WRONG),
        (r#""result":{"results":[],"total":9}"#.to_owned(), WRONG),
    ];
    let good = r#"{"kind":"track","content_id":"1","title":"kept"}"#;
    let extensions = [
        format!(r#""x_took":12,"result":{{"results":[{good}]}}"#),
        format!(r#""result":{{"results":[{good}],"x_total":[[[]]]}}"#),
        within(&good.replace('}', r#","x_score":{"a":null}}"#)),
    ];
    let extensions = extensions.map(|rest| (rest, Expect::Title("kept")));
    let cases = [
        table("wrong-shapes", &wrong),
        table("unknown-fields", &unknown),
        table("extensions", &extensions),
        python(
            "nested",
            "
def abuse(id, words):
    put('{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}' % (id, '[' * 100000 + ']' * 100000))
",
        )
        .times(2, "be deep", Expect::OneOf(&[-3, -32_700]))
        .well(),
        python(
            "nested-extension",
            "
def abuse(id, words):
    deep = '{\"a\":' * 100000 + '1' + '}' * 100000
    rest = json.dumps(found(words))
    put('{\"jsonrpc\":\"2.0\",\"id\":%d,\"x_deep\":%s,\"result\":%s}' % (id, deep, rest))
",
        )
        .times(2, "be deep where nobody looks", Expect::Found)
        .well(),
        python(
            "nested-error",
            "
def abuse(id, words):
    deep = '[' * 100000 + ']' * 100000
    put('{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":1,\"message\":\"x\",\"data\":%s}}' % (id, deep))
",
        )
        .times(2, "be deep where nobody looks", Expect::Fails(1))
        .well(),
        python(
            "too-many-results",
            "
def abuse(id, words): reply(id, {'results': found(words)['results'] * 501})
",
        )
        .times(2, "be many", WRONG)
        .well(),
        python(
            "a-hundred-thousand-results",
            "
def abuse(id, words): reply(id, {'results': found(words)['results'] * 100000})
",
        )
        .times(2, "be many", WRONG)
        .well(),
        python(
            "title-of-a-megabyte",
            "
def abuse(id, words): reply(id, found('x' * 1000000))
",
        )
        .times(2, "be long", WRONG)
        .well(),
        python(
            "only-escapes",
            r"
def abuse(id, words): reply(id, found('\x00\x1b[2J\u202e'))
",
        )
        // NUL cannot be sent over the bus; the rest is for whoever shows it.
        .times(2, "be invisible", Expect::Title("\u{fffd}\u{1b}[2J\u{202e}"))
        .well(),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_plugin_that_cares_for_neither_kinds_nor_limit_is_cut_to_them() {
    let part = "
def abuse(id, words):
    kinds = ['album', 'track', 'artist'] * 100
    reply(id, {'results': [{'kind': kind, 'content_id': str(n), 'title': kind} for n, kind in enumerate(kinds)]})
";
    let cases = [python("does-not-care", part)];
    let stage = Stage::open(&cases).await;
    stage.enable("does-not-care").await.unwrap();
    let options = std::collections::HashMap::from([
        ("plugin", zbus::Variant::from("does-not-care")),
        ("kinds", zbus::Variant::from(vec!["artist"])),
        ("limit", zbus::Variant::from(7_u32)),
    ]);
    type Answer = (Vec<Dict>, std::collections::HashMap<String, (i32, String)>);
    let (results, errors): Answer = stage.daemon.catalog.call("Search", &("all", options)).await.unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(results.iter().map(|hit| get::<String>(hit, "kind")).collect::<Vec<_>>(), ["artist"; 7]);
    stage.music_plays().await.unwrap();
}
