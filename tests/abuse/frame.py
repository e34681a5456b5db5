#!/usr/bin/python3
import ctypes, fcntl, json, os, signal, socket, subprocess, sys, threading, time

MARK, ME, BUS = sys.argv[1:4]
GIVEN = {}
CAPABILITIES = ["search"]
lock = threading.Lock()


def raw(data, fd=1):
    with lock:
        while data:
            data = data[os.write(fd, data):]


def put(text):
    raw(text.encode() + b"\n")


def log(text):
    raw(text.encode() + b"\n", 2)


def line(**fields):
    return json.dumps(dict({"jsonrpc": "2.0"}, **fields))


def found(words):
    return {"results": [{"kind": "track", "content_id": "1", "title": words}]}


def answer(id, words):
    put(line(id=id, result=found(words)))


def reply(id, result):
    put(line(id=id, result=result))


def fail(id, error):
    put(line(id=id, error=error))


def hello(params):
    return {"protocol": "segue.plugin/1", "id": ME, "version": "1", "capabilities": CAPABILITIES,
            "scopes": params["scopes"]}


def initialize(id, params):
    reply(id, hello(params))


def ping(id, params):
    reply(id, {"status": "ok", "version": "1", "capabilities": CAPABILITIES})


def abuse(id, words):
    answer(id, words)


def search(id, params):
    words = params["query"]
    answer(id, words) if words.startswith("well") else abuse(id, words)


#ABUSE

while True:
    request = sys.stdin.buffer.readline()
    if not request:
        break
    request = json.loads(request)
    params = request.get("params") or {}
    if request["method"] == "initialize":
        GIVEN.update(params)
    method = globals().get(request["method"])
    if method:
        method(request["id"], params)
    else:
        fail(request["id"], {"code": -32601, "message": "no such method"})
