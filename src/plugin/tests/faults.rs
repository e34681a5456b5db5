//! Thousands of calls while the plugin does everything wrong that it can.

use std::collections::BTreeMap;

use futures_util::StreamExt;

use super::*;

const CALLS: u32 = 10_000;

/// Does what each content id says: `<number>-<fault>`.
const FAULTY: &str = r#"
def later(seconds, what): threading.Timer(seconds, what).start()
def error(id, text): put(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": 3, "message": text}}))
before = []
def stream(id, p):
    content = p["content_id"]
    fault = content.split("-")[1]
    good = lambda: answer(id, url(content))
    if fault == "none": good()
    elif fault == "slow": later(0.02, good)
    elif fault == "late": later(1.2, good)
    elif fault == "swap":
        before.append(good)
        if len(before) > 1:
            for one in reversed(before): one()
            before.clear()
        else: later(0.05, lambda: before and before.pop()())
    elif fault == "error": error(id, content)
    elif fault == "twice": good(); good()
    elif fault == "stranger": answer(id + 1000000, url("wrong")); answer("x", url("wrong")); good()
    elif fault == "text": answer(str(id), url("wrong")); answer(id + 0.5, url("wrong")); good()
    elif fault == "call": put(json.dumps({"jsonrpc": "2.0", "id": id, "method": "stream"})); good()
    elif fault == "shape": answer(id, {"url": content})
    elif fault == "null": answer(id, None)
    elif fault == "neither": put(json.dumps({"jsonrpc": "2.0", "id": id}))
    elif fault == "junk": put("a stray print"); good()
    elif fault == "deep": put("[" * 100000); good()
    elif fault == "die": os._exit(3)
    elif fault == "half": sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "resu' % id); sys.stdout.flush(); os._exit(4)
"#;

/// How often each fault comes, of 1,000. What is late or slow would seldom live to see its answer among plugins
/// that die: it has a part of its own.
const WILD: [(&str, u32); 14] = [
    ("swap", 50),
    ("error", 100),
    ("twice", 50),
    ("stranger", 30),
    ("text", 30),
    ("call", 30),
    ("shape", 30),
    ("null", 20),
    ("neither", 20),
    ("junk", 5),
    ("deep", 3),
    ("die", 2),
    ("half", 2),
    ("none", 628),
];
const SLOW: [(&str, u32); 4] = [("slow", 300), ("late", 50), ("swap", 200), ("none", 450)];

/// xorshift: the same faults in each run.
fn next(seed: &mut u64) -> u32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 33) as u32
}

fn fault(faults: &[(&'static str, u32)], seed: &mut u64) -> &'static str {
    let mut at = next(seed) % 1_000;
    for (fault, share) in faults {
        if at < *share {
            return fault;
        }
        at -= share;
    }
    unreachable!("the shares are 1,000 in all")
}

/// Whether the outcome is the call's own. Never may it be another's.
fn judge(content: &str, fault: &str, outcome: &Result<crate::track::ResolvedStream, CallError>) -> bool {
    let error = match outcome {
        Ok(resolved) => {
            assert_eq!(resolved.url.path().trim_start_matches('/'), content);
            return !matches!(fault, "late" | "error" | "shape" | "null" | "neither" | "die" | "half");
        }
        Err(error) => error,
    };
    match (fault, error.code) {
        // What nobody can tell whose it was costs all calls in flight, and so does the process's end.
        (_, ErrorCode::ParseError | ErrorCode::PluginCrashed) => {
            matches!(fault, "junk" | "deep" | "die" | "half")
        }
        ("late", code) => code == ErrorCode::PluginTimeout,
        ("error", code) => {
            assert_eq!((code, error.message.as_str()), (ErrorCode::ContentNotFound, content));
            true
        }
        ("shape" | "null" | "neither", code) => code == ErrorCode::PluginProtocolError,
        (fault, code) => panic!("{fault} gave {code}: {error}"),
    }
}

async fn calls(host: &Host, count: u32, faults: &'static [(&'static str, u32)], seed: &mut u64) {
    let calls: Vec<_> = (0..count).map(|number| (number, fault(faults, seed))).collect();
    let outcomes = futures_util::stream::iter(calls)
        .map(|(number, fault)| async move {
            let content = format!("{number}-{fault}");
            let outcome = host.resolve(&track("demo", &content)).await;
            (content, fault, outcome)
        })
        .buffer_unordered(48)
        .collect::<Vec<_>>();
    let outcomes = tokio::time::timeout(10 * LONG, outcomes).await.expect("every call is answered");
    assert_eq!(outcomes.len(), count as usize);
    let mut own = BTreeMap::<&str, u32>::new();
    for (content, fault, outcome) in &outcomes {
        *own.entry(fault).or_default() += u32::from(judge(content, fault, outcome));
    }
    for (fault, share) in faults {
        let (own, sent) = (own.get(fault).copied().unwrap_or_default(), share * count / 1_000);
        assert!(own * 2 > sent, "{fault}: only {own} of about {sent} had their own outcome");
    }
}

#[tokio::test]
async fn each_of_ten_thousand_calls_gets_one_outcome_and_it_is_its_own() {
    let bench = Bench::new();
    bench.python("demo", FAULTY, json!({"timeouts_ms": {"stream": 1_000}}));
    let limits = Limits {
        backoff_first: Duration::from_millis(1),
        backoff_most: Duration::from_millis(1),
        fault_crashes: usize::MAX,
        ..bench.settings().limits
    };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let mut seed = 0x5e9e_2026;
    calls(&host, CALLS - 1_000, &WILD, &mut seed).await;
    calls(&host, 1_000, &SLOW, &mut seed).await;
    let counts = host.health("demo").unwrap().counts;
    assert!(counts.late_replies > 500 && counts.restarts > 10, "{counts:?}");
    assert_eq!(ask(&host, "demo", "last-none").await.unwrap(), "last-none");
    host.shutdown().await;
}
