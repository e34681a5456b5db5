//! Plugins that say that they are something else than what was trusted.

use serde_json::json;

use crate::case::{Case, Expect, python};
use crate::stage;

const MISMATCH: &str = "PLUGIN_IDENTITY_MISMATCH";
const WRONG: &str = "PLUGIN_PROTOCOL_ERROR";

/// Answers `initialize` with these fields set to other values.
fn says(id: &'static str, fields: &'static str) -> Case {
    let part = format!("def initialize(id, params): reply(id, dict(hello(params), {fields}))");
    python(id, Box::leak(part.into_boxed_str()))
}

/// Answers `initialize` so.
fn first(id: &'static str, part: &'static str) -> Case {
    let part = format!("def initialize(id, params): {part}");
    python(id, Box::leak(part.into_boxed_str()))
}

#[tokio::test]
async fn a_plugin_that_is_not_what_was_trusted_is_not_enabled() {
    let cases = [
        says("other-id", "id='music'").refused(MISMATCH),
        says("other-version", "version='2'").refused(MISMATCH),
        says("other-protocol", "protocol='segue.plugin/2'").refused(MISMATCH),
        says("more-capabilities", "capabilities=['search', 'stream']").refused(MISMATCH),
        says("unknown-capability", "capabilities=['search', 'enable']").refused(WRONG),
        says("more-scopes", "scopes=['network']").refused(MISMATCH),
        says("fewer-scopes", "scopes=[]")
            .manifest(json!({"scopes": [{"scope": "network", "reason": "to call home"}]}))
            .refused(MISMATCH),
        says("unknown-field", "capabilites=[]").refused(WRONG),
        says("extension", "x_author='me'").well(),
        says("no-capabilities", "capabilities=[]").call("well?", Expect::Fails(-7)),
        first("null", "reply(id, None)").refused(WRONG),
        first("list", "reply(id, [])").refused(WRONG),
        first("empty", "reply(id, {})").refused(WRONG),
        first("text", "reply(id, 'ok')").refused(WRONG),
        first("refuses", "fail(id, {'code': 4, 'message': 'who are you?'})").refused("who are you?"),
        first("never", "pass").manifest(json!({"timeouts_ms": {"initialize": 700}})).refused("PLUGIN_TIMEOUT"),
        first("twice", "reply(id, hello(params)), reply(id, hello(params))").well(),
        first("twice-and-different", "reply(id, hello(params)), reply(id, dict(hello(params), id='music'))").well(),
        first("to-another-id", "reply(id + 1, hello(params))")
            .manifest(json!({"timeouts_ms": {"initialize": 700}}))
            .refused("PLUGIN_TIMEOUT"),
        first("knows-no-initialize", "fail(id, {'code': -32601, 'message': 'what?'})").well(),
        python("knows-neither", "initialize = ping = None").refused("METHOD_NOT_FOUND"),
        python("ping-of-another-version", "
initialize = None
def ping(id, params): reply(id, {'status': 'ok', 'version': '3', 'capabilities': []})
")
        .refused(MISMATCH),
        python("another-one-after-a-crash", "
def initialize(id, params):
    been = params['dirs']['data'] + '/been'
    again = os.path.exists(been)
    open(been, 'w').close()
    reply(id, dict(hello(params), id='neighbour') if again else hello(params))
def abuse(id, words): os._exit(1)
")
        .well()
        .call("end", Expect::Fails(-1))
        .call("well?", Expect::Says(-4, "neighbour"))
        .call("well?", Expect::OneOf(&[-4, -6])),
        python("more-capabilities-in-a-ping", "
def ping(id, params): reply(id, {'status': 'ok', 'version': '1', 'capabilities': ['search', 'stream', 'get_track']})
def abuse(id, words): pass
")
        .timeout_ms(1_000)
        .call("be late", Expect::Fails(-2))
        .well(),
        python("wrong-pings", "
def ping(id, params): reply(id, ['ok'])
def abuse(id, words): pass
")
        .timeout_ms(1_000)
        .call("be late", Expect::Fails(-2))
        .well(),
    ];
    stage::play(&cases).await;
}
