//! Lines without end, and of the greatest length.

use serde_json::json;

use crate::case::{Case, Expect, compiled, python};
use crate::stage;

const PARSE_ERROR: Expect = Expect::Fails(-32_700);

/// Writes a reply that is padded to a length in pieces of a size: the query is `PIECE LENGTH`.
const PADDED: &str = r#"
static void abuse(long id, const char *words) {
    size_t piece = atol(words), length = atol(strchr(words, ' ') + 1);
    char *line = malloc(length + 1);
    int head = sprintf(line, "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"results\":[{\"kind\":\"track\","
        "\"content_id\":\"1\",\"title\":\"%s\"}],\"x_pad\":\"", id, words);
    memset(line + head, 'x', length - head);
    memcpy(line + length - 3, "\"}}\n", 4);
    write_all(1, line, length + 1, piece);
    free(line);
}
"#;

fn long(id: &'static str, piece: usize) -> Case {
    const MOST: usize = 10 * 1024 * 1024;
    compiled(id, PADDED)
        .manifest(json!({"timeouts_ms": {"search": 30_000}}))
        .call(&format!("{piece} {MOST}"), Expect::Found)
        .call(&format!("{piece} {}", MOST + 1), PARSE_ERROR)
        .well()
}

#[tokio::test]
async fn ten_mib_are_a_line_and_one_byte_more_is_none_however_they_are_written() {
    let cases =
        [long("pieces-of-four-kib", 4_096), long("in-one-piece", usize::MAX >> 1), long("single-bytes", 1)];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_line_without_end_costs_its_own_plugin_and_no_memory() {
    let cases = [
        compiled(
            "endless-stdout",
            "static void abuse(long id, const char *words) {
                 static char x[65536];
                 memset(x, 'x', sizeof x);
                 for (;;) write_all(1, x, sizeof x, sizeof x);
             }",
        )
        .deaf()
        .call("begin", Expect::Fails(-2))
        .stopped()
        .well(),
        compiled(
            "endless-stdout-beside-replies",
            "static void *flood(void *_) {
                 static char x[1048576];
                 memset(x, 'x', sizeof x);
                 for (int i = 0; i < 32; i++) write_all(1, x, sizeof x, 4096);
                 write_all(1, \"\\n\", 1, 1);
                 return NULL;
             }
             static void abuse(long id, const char *words) {
                 flood(NULL);
                 answer(id, words);
             }",
        )
        .times(3, "a line of 32 MiB first", PARSE_ERROR)
        .well(),
        compiled(
            "endless-stderr",
            "static void *flood(void *_) {
                 static char x[65536];
                 memset(x, 'x', sizeof x);
                 for (;;) write_all(2, x, sizeof x, sizeof x);
             }
             static void abuse(long id, const char *words) {
                 pthread_t thread;
                 pthread_create(&thread, NULL, flood, NULL);
                 usleep(500000);
                 answer(id, words);
             }",
        )
        .call("begin", Expect::Found)
        .well()
        .well(),
        python(
            "much-on-stderr",
            "
def abuse(id, words):
    raw(b''.join(b'line %04d %s\\n' % (number, b'x' * 121) for number in range(2048)), 2)
    log('the last line')
    answer(id, words)
",
        )
        .call("write 256 KiB first", Expect::Found)
        .log_is(1_000, "line 1049", "the last line")
        .times(3, "again", Expect::Found),
        python(
            "binary-on-stderr",
            "
def abuse(id, words):
    raw(bytes(range(256)) * 2048 + b'\\nE! after it\\n', 2)
    answer(id, words)
",
        )
        .call("write bytes of all values", Expect::Found)
        .log("after it"),
    ];
    stage::play(&cases).await;
}
