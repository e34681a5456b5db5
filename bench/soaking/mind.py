"""The plugin's mind: the package itself only passes on what it is asked, so that its faults follow the plan too."""

import asyncio
import json
import re

from .plan import PLUGIN

CAPABILITIES = ["get_track", "stream"]
SCOPES = ("network", "local-network")
CONTENT_NOT_FOUND, RATE_LIMITED, UPSTREAM_UNAVAILABLE = 3, 5, 7

RELAY = """#!/usr/bin/python3
import http.client, json, os, signal, sys, threading, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
out = threading.Lock()

def pass_on(line):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    connection.request("POST", "/", body=line)
    orders = json.loads(connection.getresponse().read())
    connection.close()
    time.sleep(orders["late"])
    if orders["crash"]:
        os.write(2, b"E! crashing as planned\\n")
        os._exit(3)
    with out:
        os.write(1, orders["print"].encode())

for line in sys.stdin.buffer:
    threading.Thread(target=pass_on, args=(line,), daemon=True).start()
os._exit(0)
"""


def install(folder, port):
    """Writes the package into a folder of packages, with the modes that one needs."""
    package = folder / PLUGIN
    package.mkdir(parents=True)
    manifest = {
        "schema": 1, "id": PLUGIN, "name": "Soak", "version": "1.0.0", "protocol": "segue.plugin/1",
        "executable": "relay", "arguments": [str(port)], "capabilities": CAPABILITIES,
        "scopes": [{"scope": scope, "reason": "asks the soak what to do"} for scope in SCOPES],
    }  # fmt: skip
    (package / "plugin.json").write_text(json.dumps(manifest))
    (package / "relay").write_text(RELAY)
    for path, mode in ((package, 0o755), (package / "relay", 0o755), (package / "plugin.json", 0o644)):
        path.chmod(mode)


class Mind:
    def __init__(self, plan, address):
        self.plan = plan
        self.address = address
        self.calls = {}
        self.log = lambda what, **more: None

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = int(re.search(r"(?i)content-length: (\d+)", head).group(1))
            orders = json.dumps(self.orders(json.loads(await reader.readexactly(length)))).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(orders), orders))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            # The daemon ended the plugin meanwhile.
            pass
        finally:
            writer.close()

    def orders(self, request):
        orders = {"late": 0.0, "crash": False}
        reply = {"jsonrpc": "2.0", "id": request.get("id")}
        method, params = request.get("method"), request.get("params") or {}
        if method == "initialize":
            reply["result"] = {
                "protocol": "segue.plugin/1", "id": PLUGIN, "version": "1.0.0",
                "capabilities": CAPABILITIES, "scopes": params["scopes"],
            }  # fmt: skip
        elif method == "ping":
            reply["result"] = {"status": "ok", "version": "1.0.0", "capabilities": CAPABILITIES}
        elif method in ("get_track", "stream"):
            match = re.fullmatch(r"item-(\d+)", params.get("content_id", ""))
            if not match:
                reply["error"] = {"code": CONTENT_NOT_FOUND, "message": "no such item"}
            else:
                self.about(method, self.plan.item(int(match.group(1))), reply, orders)
        else:
            reply["error"] = {"code": -32601, "message": "unknown method"}
        orders["print"] = json.dumps(reply) + "\n"
        return orders

    def about(self, method, item, reply, orders):
        if method == "get_track":
            track = {"content_id": item.content_id, "title": item.content_id, "artists": [{"name": "The soak"}]}
            reply["result"] = {"track": {**track, "duration_ms": int(item.track.seconds * 1000)}}
            return
        call = self.calls[item.number] = self.calls.get(item.number, -1) + 1
        fault = next((fault for fault in item.calls if fault.at == call), None)
        if fault:
            self.log("fault", kind=f"plugin-{fault.kind}", item=item.number, call=call)
        kind = fault.kind if fault else ""
        orders["crash"] = kind == "crash"
        orders["late"] = fault.value if kind == "late" else 0.0
        if kind == "unavailable":
            reply["error"] = {"code": UPSTREAM_UNAVAILABLE, "message": "its service is down"}
        elif kind == "limited":
            pause = {"retry_after_ms": int(fault.value * 1000)}
            reply["error"] = {"code": RATE_LIMITED, "message": "asked too often", "data": pause}
        else:
            reply["result"] = self.address(item)
