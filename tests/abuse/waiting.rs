//! Answers that come late or never, and pipes that nobody reads.

use serde_json::json;

use crate::case::{Expect, compiled, python};
use crate::stage;

const LATE: Expect = Expect::Fails(-2);

#[tokio::test]
async fn a_silent_plugin_costs_its_call_its_time_out_and_is_ended_when_it_is_deaf_too() {
    let cases = [
        python(
            "late",
            "
late = []
def abuse(id, words):
    if words == 'late':
        late.append(id)
        return
    for old in late:
        answer(old, 'late')
    answer(id, words)
",
        )
        .timeout_ms(1_500)
        .call("late", LATE)
        .call("another", Expect::Found)
        .call("late", LATE)
        .together(&[("one", Expect::Found), ("two", Expect::Found), ("three", Expect::Found)]),
        python(
            "late-beside-another",
            "
def abuse(id, words):
    if words == 'late':
        threading.Timer(2.6, answer, (id, words)).start()
    else:
        threading.Timer(0.8, answer, (id, words)).start()
",
        )
        .timeout_ms(2_000)
        .together(&[("late", LATE), ("another", Expect::Found), ("a third", Expect::Found)])
        .call("not off by one", Expect::Found)
        .call("not at all", Expect::Found),
        python("deaf", "def abuse(id, words): time.sleep(600)")
            .deaf()
            .call("wait for ever", LATE)
            .stopped()
            .well(),
        python("mute-but-alive", "def abuse(id, words): pass")
            .timeout_ms(1_000)
            .call("wait for ever", LATE)
            .call("wait for ever", LATE)
            .well(),
        python("stops-itself", "def abuse(id, words): os.kill(os.getpid(), signal.SIGSTOP)")
            .deaf()
            .call("stop", LATE)
            .stopped()
            .well(),
        python(
            "busy",
            "
def abuse(id, words):
    while True: pass
",
        )
        .deaf()
        .call("spin", LATE)
        .stopped()
        .well(),
        python("closes-stdout", "def abuse(id, words): os.close(1), time.sleep(600)")
            .deaf()
            .call("close", Expect::OneOf(&[-1, -2]))
            .stopped()
            .well(),
        python("closes-stdin", "def abuse(id, words): os.close(0), answer(id, words), time.sleep(600)")
            .deaf()
            .call("close", Expect::Found)
            .call("is anybody there?", Expect::OneOf(&[-1, -2]))
            .stopped()
            .well(),
        python("closes-stderr", "def abuse(id, words): os.close(2), answer(id, words)")
            .times(2, "close", Expect::FoundOr(&[-1]))
            .well(),
        python(
            "stops-reading",
            "
def abuse(id, words):
    fcntl.fcntl(0, 1031, 4096)
    answer(id, words)
    time.sleep(600)
",
        )
        .manifest(json!({"timeouts_ms": {"search": 20_000}}))
        .call("a small pipe", Expect::Found)
        .together(&unread())
        .stopped()
        .well(),
        python("never-reads", "time.sleep(600)")
            .manifest(json!({"timeouts_ms": {"initialize": 700}}))
            .refused("PLUGIN_TIMEOUT"),
        compiled(
            "never-reads-compiled",
            "__attribute__((constructor)) static void begin(void) { sleep(600); }
                  static void abuse(long id, const char *words) {}",
        )
        .manifest(json!({"timeouts_ms": {"initialize": 700}}))
        .refused("PLUGIN_TIMEOUT"),
        python("disabled-in-flight", "def abuse(id, words): log(words)")
            .disabled_during("take your time", Expect::Fails(-5)),
        python(
            "disabled-in-flight-and-stubborn",
            "
def abuse(id, words):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log(words)
    time.sleep(600)
",
        )
        .disabled_during("take your time", Expect::Fails(-5)),
        python(
            "stops-after-each-call",
            "
starts = 0
def abuse(id, words): answer(id, words)
",
        )
        .manifest(json!({"idle_stop_s": 0}))
        .call("one", Expect::Found)
        .stopped()
        .call("two", Expect::Found)
        .stopped(),
    ];
    stage::play(&cases).await;
}

/// More than a small pipe holds.
fn unread() -> Vec<(&'static str, Expect)> {
    let words: &'static str = Box::leak("nobody reads this ".repeat(50).into_boxed_str());
    vec![(words.trim_end(), Expect::Fails(-1)); 7]
}

#[tokio::test]
async fn a_hundred_calls_that_wait_for_a_slow_plugin_are_all_answered_and_nobody_else_waits() {
    let words: Vec<&'static str> =
        (0..100).map(|n| &*Box::leak(format!("call {n}").into_boxed_str())).collect();
    let all = |expect: Expect| words.iter().map(|words| (*words, expect)).collect::<Vec<_>>();
    let cases = [
        python("slow", "def abuse(id, words): time.sleep(0.02), answer(id, words)")
            .together(&all(Expect::Found)),
        python(
            "out-of-order",
            "
def abuse(id, words):
    threading.Timer(0.05 * (id % 4), answer, (id, words)).start()
",
        )
        .together(&all(Expect::Found)),
        python("answers-none-of-them", "def abuse(id, words): pass")
            .timeout_ms(300)
            .together(&all(LATE))
            .well(),
        python("deaf-to-all", "def abuse(id, words): time.sleep(600)")
            .deaf()
            .together(&all(Expect::OneOf(&[-1, -2, -6]))[..28])
            .stopped()
            .enabled_again()
            .well(),
    ];
    stage::play(&cases).await;
}
