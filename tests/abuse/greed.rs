//! Plugins that take all they can get.

use serde_json::json;

use crate::case::{Expect, compiled, python};
use crate::stage;

#[tokio::test]
async fn a_plugin_that_takes_much_gives_it_back_when_it_is_disabled() {
    let cases = [
        compiled(
            "eats-memory",
            "static void abuse(long id, const char *words) {
                 for (int i = 0; i < 256; i++) memset(malloc(1 << 20), 1, 1 << 20);
                 answer(id, words);
             }",
        )
        .call("256 MiB", Expect::FoundOr(&[-1]))
        .well(),
        compiled(
            "maps-without-end",
            "#include <sys/mman.h>
             static void abuse(long id, const char *words) {
                 int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
                 while (mmap(NULL, 1UL << 30, PROT_READ, how, -1, 0) != MAP_FAILED);
                 answer(id, words);
             }",
        )
        .manifest(json!({"timeouts_ms": {"search": 30_000}}))
        .call("all addresses", Expect::FoundOr(&[-1])),
        compiled(
            "opens-ten-thousand",
            "static void abuse(long id, const char *words) {
                 int opened = 0;
                 while (opened < 10000 && dup(0) >= 0) opened++;
                 if (opened < 256) answer(id, words);
                 else fail(id, \"opened\", opened, 0);
             }",
        )
        .times(2, "descriptors", Expect::Found),
        compiled(
            "raises-its-limits",
            "static void abuse(long id, const char *words) {
                 struct rlimit more = {1 << 20, 1 << 20};
                 int raised = setrlimit(RLIMIT_NOFILE, &more) == 0;
                 if (!raised) answer(id, words);
                 else _exit(77);
             }",
        )
        .call("limits", Expect::FoundOr(&[-1])),
        compiled(
            "fills-tmp",
            "static void abuse(long id, const char *words) {
                 static char x[1 << 20];
                 char path[4096];
                 snprintf(path, sizeof path, \"%s/full\", getenv(\"TMPDIR\"));
                 int fd = open(path, O_CREAT | O_WRONLY, 0600);
                 for (int i = 0; i < 96; i++) if (write(fd, x, sizeof x) < 0) break;
                 close(fd);
                 answer(id, words);
             }",
        )
        .times(2, "with zeroes", Expect::Found)
        .well(),
        python(
            "many-threads",
            "
def abuse(id, words):
    try:
        for _ in range(1000): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    except RuntimeError:
        pass
    answer(id, words)
",
        )
        .call("a thousand threads", Expect::Found)
        .well(),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn what_provokes_the_daemon_again_and_again_costs_it_no_memory() {
    let cases = [
        python(
            "again-too-long",
            "
def abuse(id, words): put('x' * (10 * 1024 * 1024 + 1))
",
        )
        .again_and_again(10, "too long", Expect::Fails(-32_700)),
        python(
            "again-just-short-enough",
            "
def abuse(id, words): put(line(id=id, result=dict(found(words), x_pad='x' * 10_000_000)))
",
        )
        .again_and_again(5, "just short enough", Expect::Found),
        python(
            "again-strays",
            "
def abuse(id, words):
    raw((line(id=id - 1, result=found('x' * 1000)) + '\\n').encode() * 300)
    answer(id, words)
",
        )
        .times(50, "strays", Expect::Found),
        python(
            "again-late",
            "
late = []
def abuse(id, words): late.append(id)
",
        )
        .timeout_ms(50)
        .times(60, "late", Expect::Fails(-2)),
        python(
            "again-in-the-log",
            "
def abuse(id, words):
    raw(b'E! ' + b'x' * 3000 + b'\\n', 2)
    raw((b'x' * 2000 + b'\\n') * 1000, 2)
    answer(id, words)
",
        )
        .times(20, "log", Expect::Found),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn ten_thousand_children_end_with_their_plugin() {
    let cases = [compiled(
        "forks-ten-thousand",
        "static void abuse(long id, const char *words) {
                 int forked = 0;
                 for (int i = 0; i < 10000; i++) {
                     int pid = fork();
                     if (pid == 0) for (;;) pause();
                     if (pid < 0) break;
                     forked++;
                 }
                 fprintf(stderr, \"forked %d\\n\", forked);
                 answer(id, words);
             }",
    )
    .manifest(json!({"timeouts_ms": {"search": 30_000}}))
    .call("children", Expect::Found)
    .log("forked")];
    stage::play_alone(&cases).await;
}
