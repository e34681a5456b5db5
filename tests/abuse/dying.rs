//! Plugins that end, in all the ways in which a process can, and what they leave behind.

use crate::case::{Case, Expect, compiled, python, shell};
use crate::stage;

const CRASHED: Expect = Expect::Fails(-1);

#[tokio::test]
async fn a_plugin_that_ends_costs_the_calls_in_flight_and_starts_again() {
    let crash = |case: Case| case.call("end", CRASHED).stopped().well();
    let cases = [
        crash(python("exits", "def abuse(id, words): os._exit(3)")),
        crash(python("exits-well", "def abuse(id, words): os._exit(0)")),
        crash(shell("exits-in-shell", "abuse() { exit 1; }")),
        crash(compiled(
            "segfaults",
            "static void abuse(long id, const char *words) { *(volatile int *)8 = 1; }",
        )),
        crash(compiled("aborts", "static void abuse(long id, const char *words) { abort(); }")),
        crash(compiled(
            "kills-itself",
            "static void abuse(long id, const char *words) { kill(getpid(), SIGKILL); pause(); }",
        )),
        crash(compiled(
            "kills-its-group",
            "static void abuse(long id, const char *words) { kill(0, SIGTERM); pause(); }",
        )),
        crash(compiled("traps", "static void abuse(long id, const char *words) { __builtin_trap(); }")),
        crash(python("raises", "def abuse(id, words): raise RuntimeError('E! of no use')"))
            .log("RuntimeError"),
        crash(python(
            "in-mid-line",
            "def abuse(id, words): raw(line(id=id, result=found(words))[:40].encode()), os._exit(0)",
        )),
        crash(compiled(
            "overflows-its-stack",
            "static int deeper(volatile char *room) {
                 char more[4096];
                 more[0] = *room;
                 return deeper(more) + more[0];
             }
             static void abuse(long id, const char *words) { char room[1] = {1}; _exit(deeper(room)); }",
        )),
        python(
            "after-two-seconds",
            "
def abuse(id, words):
    threading.Timer(2, os._exit, (3,)).start()
",
        )
        .together(&[("one", CRASHED), ("two", CRASHED), ("three", CRASHED)])
        .stopped()
        .well(),
        python(
            "without-a-line-end",
            "def abuse(id, words): raw(line(id=id, result=found(words)).encode()), os._exit(0)",
        )
        .call("the last words", Expect::FoundOr(&[-1])),
        python("answers-and-ends", "def abuse(id, words): answer(id, words), os._exit(0)")
            .call("the last words", Expect::Found)
            .stopped()
            .call("the last words", Expect::Found)
            .stopped(),
        python(
            "exec-of-another-program",
            "def abuse(id, words): os.execv('/bin/sh', ['sh', '-c', 'sleep 60; exit 1', MARK])",
        )
        .deaf()
        .call("become another program", Expect::Fails(-2))
        .stopped()
        .well(),
        python("at-once", "sys.exit(3)").refused("exit status: 3"),
        python("at-once-with-words", "sys.exit('no module named nothing')")
            .refused("no module named nothing"),
        shell("no-interpreter", "exec /nonexistent/interpreter").refused("at its start"),
        compiled(
            "segfaults-at-once",
            "__attribute__((constructor)) static void begin(void) { *(volatile int *)8 = 1; }
                  static void abuse(long id, const char *words) {}",
        )
        .refused("at its start"),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn what_a_plugin_leaves_behind_ends_with_it_and_keeps_no_call_waiting() {
    /// The child keeps the plugin's arguments, and so its mark, and holds all its pipes.
    const STUBBORN: &str = "
def stubborn():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)
def fork(setsid, twice=False):
    if os.fork() == 0:
        if setsid:
            os.setsid()
        if not twice or os.fork() == 0:
            stubborn()
        os._exit(0)
    time.sleep(0.05)
";
    let part = |rest: &str| -> &'static str { Box::leak(format!("{STUBBORN}{rest}").into_boxed_str()) };
    let dies = |id, how: &str| {
        let case = python(id, part(&format!("def abuse(id, words): {how}, os._exit(1)")));
        case.call("leave a child", CRASHED).well()
    };
    let lives = |id, how: &str| {
        let case = python(id, part(&format!("def abuse(id, words): {how}, answer(id, words)")));
        case.times(3, "leave a child", Expect::Found)
    };
    let cases = [
        dies("child-holds-stdout", "fork(False)"),
        dies("child-in-a-session", "fork(True)"),
        dies("grandchild-in-a-session", "fork(True, True)"),
        dies("grandchild-of-the-group", "fork(False, True)"),
        lives("children-stay", "fork(False)"),
        lives("children-in-sessions-stay", "fork(True)"),
        lives("grandchildren-stay", "fork(True, True)"),
        python(
            "ignores-sigterm",
            part(
                "
def abuse(id, words):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer(id, words)
    stubborn()
",
            ),
        )
        .call("and is stubborn", Expect::Found),
        shell(
            "in-the-background",
            "
abuse() {
    (trap '' TERM; exec sh -c 'while :; do sleep 1; done' \"$MARK\") &
    answer \"$1\" \"$2\"
}
",
        )
        .times(2, "in the background", Expect::Found),
        python(
            "zombies-of-its-own",
            "
def abuse(id, words):
    for _ in range(50):
        if os.fork() == 0: os._exit(0)
    answer(id, words)
",
        )
        .times(2, "leave fifty", Expect::Found),
        python(
            "children-at-once",
            part(
                "
if os.fork() == 0:
    os.setsid()
    stubborn()
sys.exit(4)
",
            ),
        )
        .refused("at its start"),
    ];
    stage::play(&cases).await;
}

#[tokio::test]
async fn a_plugin_that_crashes_again_and_again_is_given_a_rest_and_never_runs_twice() {
    /// Holds a lock as long as it lives: a second process of the same plugin would tell.
    const ALONE: &str = "
def initialize(id, params):
    global lock_file
    lock_file = open(params['dirs']['data'] + '/lock', 'w')
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        open(params['dirs']['data'] + '/twice', 'w').close()
    GIVEN.update(params)
    reply(id, hello(params))
def abuse(id, words):
    if words == 'end':
        os._exit(1)
    if os.path.exists(GIVEN['dirs']['data'] + '/twice'):
        return fail(id, {'code': 1, 'message': 'there were two'})
    answer(id, words)
";
    let rest = Expect::Says(-6, "rest");
    let cases = [
        python("crashes-always", ALONE)
            .times(4, "end", CRASHED)
            .call("end", rest)
            .until("end", rest, CRASHED)
            .call("end", Expect::Says(-6, "too often"))
            .call("well, is it there?", Expect::Says(-6, "too often"))
            .enabled_again()
            .call("alone?", Expect::Found),
        python("crashes-for-many", ALONE).together(&[("end", CRASHED); 8]).stopped().together(&[
            ("alone?", Expect::Found),
            ("still alone?", Expect::Found),
            ("quite alone?", Expect::Found),
        ]),
        python("enabled-again-and-again", ALONE)
            .enabled_again()
            .enabled_again()
            .enabled_again()
            .call("alone?", Expect::Found),
    ];
    stage::play(&cases).await;
}
