//! Plugins that look for what is not theirs.

use crate::case::{Case, Expect, compiled, python};
use crate::stage;

/// Answers well only if what is tried fails.
fn tries(id: &'static str, attempt: &str) -> Case {
    let part = format!(
        "
def attempt():
    {attempt}
def abuse(id, words):
    try:
        got = attempt()
    except Exception:
        return answer(id, words)
    fail(id, {{'code': 1, 'message': 'it worked: %r' % (got,)}})
"
    );
    python(id, Box::leak(part.into_boxed_str())).call("try", Expect::Found).well()
}

#[tokio::test]
async fn a_plugin_finds_in_its_environment_what_is_documented_and_no_more() {
    let cases = [
        python(
            "environment",
            "
def abuse(id, words):
    expected = ['LANG', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'SEGUE_PLUGIN_PROTOCOL', 'TMPDIR']
    if sorted(os.environ) == expected and os.environ['SEGUE_PLUGIN_PROTOCOL'] == '1':
        return answer(id, words)
    fail(id, {'code': 1, 'message': repr(sorted(os.environ))})
",
        )
        .call("what is there?", Expect::Found),
        compiled(
            "environment-compiled",
            "extern char **environ;
             static void abuse(long id, const char *words) {
                 int count = 0, open = 0;
                 for (char **one = environ; *one; one++) count++;
                 for (int fd = 0; fd < 4096; fd++) open += fcntl(fd, F_GETFD) >= 0;
                 if (count == 5 && open == 3) answer(id, words);
                 else fail(id, \"variables and descriptors\", count, open);
             }",
        )
        .call("what is there?", Expect::Found),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_plugin_that_signals_its_parents_ends_nobody_but_itself() {
    let cases = [
        compiled(
            "kills-its-parent",
            "static void abuse(long id, const char *words) {
                 kill(getppid(), SIGKILL);
                 usleep(100000);
                 answer(id, words);
             }",
        )
        .call("kill", Expect::FoundOr(&[-1]))
        .well(),
        compiled(
            "stops-its-parent",
            "static void abuse(long id, const char *words) {
                 kill(getppid(), SIGSTOP);
                 answer(id, words);
             }",
        )
        .call("stop", Expect::FoundOr(&[-1]))
        .well(),
        compiled(
            "terminates-its-parent",
            "static void abuse(long id, const char *words) {
                 for (int number = 1; number < 65; number++)
                     if (number != SIGSTOP && number != SIGKILL) kill(getppid(), number);
                 answer(id, words);
             }",
        )
        .call("terminate", Expect::FoundOr(&[-1]))
        .well(),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_plugin_reaches_neither_bus_nor_files_nor_network() {
    let bus = "s = socket.socket(socket.AF_UNIX); s.connect(BUS.split('=', 1)[1]); return 'the bus'";
    let cases = [
        tries("the-bus", bus),
        tries("the-network", "return socket.create_connection(('127.0.0.1', 1), 1)"),
        tries("netlink", "return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
        tries("packets", "return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)"),
        tries("passwords", "return open('/etc/shadow').read()"),
        tries("its-own-copy", "return open(sys.argv[0], 'a')"),
        tries("beside-its-copy", "return open(os.path.dirname(sys.argv[0]) + '/more', 'w')"),
        tries(
            "the-neighbours-data",
            "d = GIVEN['dirs']['data']; return os.listdir(os.path.dirname(d) + '/neighbour')",
        ),
        tries("the-bus-folder", "return os.listdir(os.path.dirname(BUS.split('=', 1)[1]))"),
        tries("the-cards", "return os.listdir('/dev/snd')"),
    ];
    stage::play_confined(&cases).await;
}
