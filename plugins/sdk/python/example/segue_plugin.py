"""What a Segue plugin in Python needs: one file, standard library only, Python 3.9 or newer.

Copy this file into your package, beside plugin.json:

    #!/usr/bin/env python3
    import sys
    sys.dont_write_bytecode = True  # a __pycache__ would change the package
    from segue_plugin import ContentNotFound, Plugin, StreamInfo

    class Radio(Plugin):
        def stream(self, content_id):
            if content_id != "one":
                raise ContentNotFound("no station %s" % content_id)
            return StreamInfo("https://radio.example/one.mp3", "audio/mpeg", live=True)

    if __name__ == "__main__":
        Radio().run()

The file speaks the protocol `segue.plugin/1`; you write the methods that plugin.json lists as capabilities, raise one
of the errors below when something is wrong, and print and log as you like: only replies reach standard output.

Licence: MIT OR Apache-2.0, copyright the Segue developers.
"""

import dataclasses
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import (Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union,
                    get_args, get_origin, get_type_hints)

PROTOCOL = "segue.plugin/1"
#: What a plugin can be asked for: names of methods, on the wire and in Plugin.
CAPABILITIES = ("search", "get_track", "get_album", "get_artist", "stream")
KINDS = ("track", "album", "artist")
#: The longest line either way, in bytes, without its newline.
MAX_LINE = 10 * 1024 * 1024
#: Calls that are read ahead. The host has up to 16 in flight; a file that is piped in may hold more.
MAX_WAITING = 64
#: The host wants the process gone 2 s after it closed standard input; what is answered before that is not lost.
GRACE_S = 1.5
#: By hand (no `initialize`), a call may take as long as the host would let it.
GRACE_BY_HAND_S = 30.0

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


# --- errors ---------------------------------------------------------------------------------------------------

class PluginError(Exception):
    """A call that fails, with a sentence for the person who listens. Raise one of the kinds below."""

    code = 1  # INTERNAL_ERROR
    default = "the plugin failed"

    def __init__(self, message: Optional[str] = None, **data: Any) -> None:
        super().__init__(message or self.default)
        self.data = {name: value for name, value in data.items() if value is not None}


class InvalidQuery(PluginError):
    """The request cannot be understood: bad search syntax, an id that is none of yours by its form."""
    code, default = 2, "the request cannot be understood"


class ContentNotFound(PluginError):
    """There is no such track, album or artist."""
    code, default = 3, "no such content"


class AuthRequired(PluginError):
    """A person must log in again, or give a secret."""
    code, default = 4, "a login is needed"


class RateLimited(PluginError):
    """Your service asks for patience. The host does not ask again for `retry_after_ms`."""
    code, default = 5, "asked too often"

    def __init__(self, retry_after_ms: Optional[int] = None, message: Optional[str] = None) -> None:
        _check_type(retry_after_ms, Optional[int], "RateLimited.retry_after_ms")
        super().__init__(message, retry_after_ms=retry_after_ms)


class ContentUnavailable(PluginError):
    """It exists and may not be played; `reason` is "region", "subscription" or "removed"."""
    code, default = 6, "it cannot be played"

    def __init__(self, reason: str, message: Optional[str] = None) -> None:
        if reason not in ("region", "subscription", "removed"):
            raise ValueError('ContentUnavailable: reason must be "region", "subscription" or "removed"')
        super().__init__(message or "%s (%s)" % (self.default, reason), reason=reason)


class UpstreamUnavailable(PluginError):
    """Your service is down or does not answer."""
    code, default = 7, "the service does not answer"


class NotSupported(PluginError):
    """Understood, and not done by this plugin."""
    code, default = 8, "not supported"


class _RpcError(PluginError):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# --- models: times in milliseconds; what is None or empty is left out on the wire --------------------------------

def _check_type(value: Any, hint: Any, where: str) -> None:
    """Refuses what the host would refuse, here, where the traceback shows the author's line."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Union:  # Optional
        if value is not None:
            _check_type(value, inner[0], where)
    elif hint is str:
        _expect(isinstance(value, str), where, "a str", value)
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("%s is not valid Unicode: %r" % (where, value[:100])) from None
    elif hint is int:
        _expect(type(value) is int, where, "an int", value)
        if not 0 <= value < 2 ** 64:
            raise ValueError("%s must not be negative or huge: %d" % (where, value))
    elif hint is bool:
        _expect(type(value) is bool, where, "a bool", value)
    elif hint is float:
        _expect(type(value) in (int, float), where, "a number", value)
        if not math.isfinite(value):
            raise ValueError("%s must be finite" % where)
    elif hint in _MODELS:
        _expect(type(value) is hint, where, "a " + hint.__name__, value)
        value.check()
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        _expect(isinstance(value, Mapping), where, "a dict", value)
        for name, text in value.items():
            _check_type(name, str, where + ": a name")
            _check_type(text, str, "%s[%r]" % (where, name))
    else:  # Sequence
        _expect(isinstance(value, (list, tuple)), where, "a list", value)
        for index, item in enumerate(value):
            _check_type(item, inner[0], "%s[%d]" % (where, index))


def _expect(good: bool, where: str, wanted: str, value: Any) -> None:
    if not good:
        raise TypeError("%s must be %s, not %s" % (where, wanted, type(value).__name__))


_MODELS: List[type] = []
#: The host's own: which bytes are wanted, and of which host, is for it to say.
_HOST_HEADERS = {"host", "range", "if-range", "content-length", "transfer-encoding", "connection", "icy-metadata"}


def _is_url(text: str, schemes: str = "https?://[^/]|file:///") -> bool:
    return re.match(schemes, text) is not None and not re.search(r"[\s\x00-\x20\x7f]", text) and len(text) <= 8192


def _headers_good(headers: Mapping[str, str]) -> bool:
    return len(headers) <= 32 and all(
        re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) and name.lower() not in _HOST_HEADERS
        and not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) for name, value in headers.items())


#: Rules beyond the type, by the name of the field, which means the same in each model.
_RULES: Dict[str, Tuple[Callable[[Any], Any], str]] = {
    "content_id": (lambda v: 0 < len(v.encode()) <= 2000, "must have 1 to 2000 bytes"),
    "kind": (lambda v: v in KINDS, "must be one of: " + ", ".join(KINDS)),
    "album_type": (lambda v: v in ("album", "single", "ep", "compilation", "unknown"),
                   "must be album, single, ep, compilation or unknown"),
    "date": (lambda v: re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?", v, re.ASCII),
             "must be YYYY or YYYY-MM-DD"),
    "expires_at": (lambda v: re.fullmatch(
        r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", v, re.ASCII),
        "must be a time by RFC 3339, as 2026-01-31T12:00:00Z (or use expires_in_ms)"),
    "url": (_is_url, "must be an http or https URL (or file: below a granted folder)"),
    "alternatives": (lambda v: len(v) <= 16 and all(map(_is_url, v)), "must be at most 16 URLs like url"),
    "content_type": (lambda v: 1 <= len(v.encode()) <= 200, "must have 1 to 200 bytes, as audio/flac"),
    "headers": (_headers_good, "must be at most 32 plain HTTP headers, none of them the host's own (Host, Range, …)"),
    **dict.fromkeys(("track_no", "disc_no", "width", "height"), (lambda v: v < 2 ** 32, "is too large")),
}


@dataclass(frozen=True)
class Model:
    """Base of the models: checked when made, and once more when sent. `dataclasses.replace` makes a changed copy."""

    def __init_subclass__(cls) -> None:
        _MODELS.append(cls)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raises TypeError or ValueError for what the host would refuse, naming the field."""
        for name, hint in _hints(type(self)).items():
            value, where = getattr(self, name), "%s.%s" % (type(self).__name__, name)
            _check_type(value, hint, where)
            if name in _RULES and value is not None and not _RULES[name][0](value):
                raise ValueError("%s %s: %.200r" % (where, _RULES[name][1], value) if name != "headers"
                                 else "%s %s" % (where, _RULES[name][1]))

    def to_wire(self) -> Dict[str, Any]:
        """As it is sent: JSON's types, without what is None or left at its empty default."""
        wire = {}
        for described in dataclasses.fields(self):
            value = getattr(self, described.name)
            if value is not None and not (described.default == () and not value):
                wire[described.name] = _wire(value)
        return wire


def _wire(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_wire()
    if isinstance(value, (list, tuple)):
        return [_wire(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


_HINTS: Dict[type, Dict[str, Any]] = {}


def _hints(model: type) -> Dict[str, Any]:
    if model not in _HINTS:
        _HINTS[model] = get_type_hints(model)
    return _HINTS[model]


@dataclass(frozen=True)
class ArtistRef(Model):
    name: str
    content_id: Optional[str] = None


@dataclass(frozen=True)
class AlbumRef(Model):
    title: str
    content_id: Optional[str] = None


@dataclass(frozen=True)
class Image(Model):
    url: str
    width: Optional[int] = None
    height: Optional[int] = None


@dataclass(frozen=True)
class SearchResult(Model):
    kind: str  # "track", "album" or "artist"
    content_id: str
    title: str
    artists: Sequence[ArtistRef] = ()
    album: Optional[AlbumRef] = None
    duration_ms: Optional[int] = None
    artwork: Sequence[Image] = ()
    explicit: Optional[bool] = None


@dataclass(frozen=True)
class TrackStub(Model):
    content_id: str
    title: str
    artists: Sequence[ArtistRef] = ()
    track_no: Optional[int] = None
    disc_no: Optional[int] = None
    duration_ms: Optional[int] = None


@dataclass(frozen=True)
class Gain(Model):
    """ReplayGain: decibels, and peaks where 1.0 is full scale."""
    track_db: Optional[float] = None
    track_peak: Optional[float] = None
    album_db: Optional[float] = None
    album_peak: Optional[float] = None


@dataclass(frozen=True)
class Track(TrackStub):
    album: Optional[AlbumRef] = None
    date: Optional[str] = None  # YYYY or YYYY-MM-DD
    genres: Sequence[str] = ()
    isrc: Optional[str] = None
    musicbrainz_id: Optional[str] = None
    explicit: Optional[bool] = None
    artwork: Sequence[Image] = ()
    gain: Optional[Gain] = None

    def stub(self) -> TrackStub:
        """The part that stands in an album's or an artist's list."""
        return TrackStub(self.content_id, self.title, self.artists, self.track_no, self.disc_no, self.duration_ms)


@dataclass(frozen=True)
class Album(Model):
    content_id: str
    title: str
    tracks: Sequence[TrackStub]  # in playing order
    artists: Sequence[ArtistRef] = ()
    album_type: Optional[str] = None  # album, single, ep, compilation or unknown
    date: Optional[str] = None
    artwork: Sequence[Image] = ()


@dataclass(frozen=True)
class Artist(Model):
    content_id: str
    name: str
    biography: Optional[str] = None
    genres: Sequence[str] = ()
    albums: Sequence[AlbumRef] = ()
    top_tracks: Sequence[TrackStub] = ()
    artwork: Sequence[Image] = ()


@dataclass(frozen=True)
class StreamInfo(Model):
    """Where a track's bytes are. `url` and `headers` may hold credentials: the host never logs them."""
    url: str
    content_type: str
    duration_ms: Optional[int] = None
    file_size_bytes: Optional[int] = None
    expires_at: Optional[str] = None  # RFC 3339
    expires_in_ms: Optional[int] = None  # wins over expires_at, and survives a wrong clock
    headers: Optional[Mapping[str, str]] = None  # sent with every request for this URL
    seekable: Optional[bool] = None
    live: Optional[bool] = None
    alternatives: Sequence[str] = ()  # other URLs of the same bytes, tried in order


# --- logging --------------------------------------------------------------------------------------------------

class Log:
    """Lines on standard error with the marks that the host reads levels from. Any thread may write."""

    def debug(self, message: object, *args: object) -> None:
        self._write("D", message, args)

    def info(self, message: object, *args: object) -> None:
        self._write("I", message, args)

    def warn(self, message: object, *args: object) -> None:
        self._write("W", message, args)

    def error(self, message: object, *args: object) -> None:
        self._write("E", message, args)

    def exception(self, message: object, *args: object) -> None:
        """At ERROR, with the traceback of the exception that is being handled."""
        self._write("E", "%s\n%s" % (str(message) % args if args else message, traceback.format_exc()), ())

    @staticmethod
    def _write(mark: str, message: object, args: Tuple[object, ...]) -> None:
        text = str(message) % args if args else str(message)
        lines = "".join("%s! %s\n" % (mark, line) for line in text.splitlines() or [""])
        data = lines.encode("utf-8", "backslashreplace")
        try:
            # One write for each message, so that those of several threads do not mix.
            while data:
                data = data[os.write(2, data):]
        except OSError:
            pass  # nobody reads it


log = Log()


# --- the plugin -----------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Host:
    name: str = ""
    version: str = ""


@dataclass(frozen=True)
class Dirs:
    """The plugin's own writable folders, kept over updates; together at most 256 MiB."""
    data: Path
    cache: Path


@dataclass(frozen=True)
class Context:
    """What the host said at `initialize`."""
    scopes: Tuple[str, ...]
    dirs: Dirs
    config: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    host: Host = Host()

    def has(self, *scopes: str) -> bool:
        """Whether all of these were granted."""
        return all(scope in self.scopes for scope in scopes)


class Plugin:
    """Write a subclass with a method for each capability in your plugin.json, and call its `run`.

    Several calls run at the same time, in `threads` threads. With `threads = 1` your code, `start` included, only ever
    runs in one thread, one call after the other.
    """

    threads = 4
    #: Set before `start`.
    context: Context
    _withdrawn: Dict[str, str]

    def __new__(cls, *_args: Any, **_named: Any) -> "Plugin":
        plugin = super().__new__(cls)  # here and not in __init__, which a subclass may forget to call
        plugin._withdrawn = {}
        return plugin

    def start(self, context: Context) -> None:
        """Called once before the first call, with the configuration and the secrets. What it raises fails the start."""

    def search(self, query: str, limit: int, kinds: Sequence[str]) -> Iterable[SearchResult]:
        """What fits, best first. What exceeds `limit`, or is of a kind that was not asked for, is left out for you."""
        raise NotSupported()

    def get_track(self, content_id: str) -> Track:
        raise NotSupported()

    def get_album(self, content_id: str) -> Album:
        raise NotSupported()

    def get_artist(self, content_id: str) -> Artist:
        raise NotSupported()

    def stream(self, content_id: str) -> StreamInfo:
        """A fresh URL. Called again when it expires."""
        raise NotSupported()

    def withdraw(self, capability: str, why: str) -> None:
        """Offers a capability of plugin.json no more, for instance because a scope was not granted."""
        if capability not in CAPABILITIES:
            raise ValueError("%r is not a capability" % capability)
        self._withdrawn[capability] = why
        log.warn("%s does not work: %s", capability, why)

    def offer(self, capability: str) -> None:
        """Takes `withdraw` back."""
        self._withdrawn.pop(capability, None)

    def run(self) -> None:
        """Talks to the host until it closes standard input. Does not return."""
        try:
            conversation = _Conversation(self)
        except (OSError, ValueError) as error:
            log.error("%s", error)
            sys.exit(1)
        conversation.run()


class _Manifest:
    """The package's own plugin.json, so that nothing is said twice."""

    def __init__(self, plugin: Plugin) -> None:
        module = sys.modules[type(plugin).__module__]
        folder = Path(os.path.abspath(getattr(module, "__file__", None) or sys.argv[0])).parent
        path = next((f / "plugin.json" for f in (folder, folder.parent) if (f / "plugin.json").is_file()), None)
        if path is None:
            raise ValueError("there is no plugin.json in %s" % folder)
        try:
            manifest = json.loads(path.read_bytes())
            self.id: str = manifest["id"]
            self.version: str = manifest["version"]
            self.capabilities: List[str] = list(manifest["capabilities"])
            self.scopes = tuple(scope["scope"] for scope in manifest.get("scopes", []))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError("%s: %s: %s" % (path, type(error).__name__, error)) from None
        for name in self.capabilities:
            if name not in CAPABILITIES:
                raise ValueError("%s: %r is not a capability" % (path, name))
            if getattr(type(plugin), name) is getattr(Plugin, name):
                raise ValueError("%s lists %s, but the class %s has no such method"
                                 % (path, name, type(plugin).__name__))


class _Conversation:
    """The wire: reads requests in the main thread, answers them in a pool, writes each reply whole."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.manifest = _Manifest(plugin)
        self.pool = ThreadPoolExecutor(max(1, int(plugin.threads)), "call")
        self.writing = threading.Lock()
        self.unanswered = 0
        self.answered = threading.Condition()
        self.started: Optional["Future[Any]"] = None
        self.by_hand = True
        self.made: List[str] = []
        self.source, self.sink = _take_standard_streams()

    def run(self) -> None:
        self._obey_signals()
        try:
            for line in _lines(self.source):
                self._take(line)
        except OSError as error:
            log.warn("stopping: %s", error)
        with self.answered:
            self.answered.wait_for(lambda: self.unanswered == 0, GRACE_BY_HAND_S if self.by_hand else GRACE_S)
        self._end(0)

    def _obey_signals(self) -> None:
        # A handler, because the first process of a pid namespace ignores the default. A thread, because Python's
        # own handlers wait for the main thread, which may be stuck in somebody's C library.
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

        def watch() -> None:
            while True:
                number = os.read(reader, 1)[0]
                if number in (signal.SIGTERM, signal.SIGINT):
                    self._end(0 if number == signal.SIGTERM else 130)
        threading.Thread(target=watch, daemon=True).start()

    def _end(self, status: int) -> None:
        """Ends at once, whatever threads still do."""
        for folder in self.made:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)

    def _take(self, line: Optional[bytes]) -> None:
        """One line of the host's."""
        if line is None:
            return self._fail(None, PARSE_ERROR, "a line has more than %d bytes" % MAX_LINE)
        try:
            message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            log.warn("a line that is not JSON: %s", error)
            return self._fail(None, PARSE_ERROR, "not JSON")
        if not isinstance(message, dict):
            return self._fail(None, PARSE_ERROR, "a message is one JSON object; there are no batches")
        method = message.get("method")
        if "id" not in message or ("method" not in message and ("result" in message or "error" in message)):
            return None  # a notification, or a reply to what nobody asked
        call_id, params = message["id"], message.get("params", {})
        if type(call_id) not in (int, str):
            return self._fail(None, INVALID_REQUEST, "id must be a whole number or a string")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            return self._fail(call_id, INVALID_REQUEST, 'jsonrpc must be "2.0" and method a string')
        if method not in ("initialize", "ping") and method not in self.manifest.capabilities:
            return self._fail(call_id, METHOD_NOT_FOUND, "no method %s" % method[:100])
        if not isinstance(params, dict):
            return self._fail(call_id, INVALID_PARAMS, "params must be an object")
        if method == "ping":  # at once, also when every thread is busy
            return self._reply(call_id, {"status": "ok", "version": self.manifest.version,
                                         "capabilities": self._capabilities()})
        self._enqueue(call_id, method, params)

    def _enqueue(self, call_id: Union[int, str], method: str, params: Dict[str, Any]) -> None:
        with self.answered:
            self.answered.wait_for(lambda: self.unanswered < MAX_WAITING)
            self.unanswered += 1
        if method == "initialize":
            self.by_hand = False
            before = self.started
            self.started = self.pool.submit(self._answer, call_id, method, lambda: self._initialize(params, before))
            return
        if self.started is None:  # by hand: what initialize would have brought is made up
            self.started = self.pool.submit(lambda: self._start(self._context({"scopes": self.manifest.scopes})))
        started = self.started
        self.pool.submit(self._answer, call_id, method, lambda: self._call(method, params, started))

    def _answer(self, call_id: Union[int, str], method: str, call: Callable[[], Dict[str, Any]]) -> None:
        """Runs one call; whatever happens, it is answered, and only once.

        What `initialize` raises is raised again, for the calls that wait for it.
        """
        try:
            self._reply(call_id, call())
        except PluginError as error:
            self._fail(call_id, error.code, str(error), error.data)
            if method == "initialize":
                raise
        except BaseException as error:
            log.exception("%s failed", method)
            self._fail(call_id, PluginError.code, "%s: %s" % (type(error).__name__, error))
            if method == "initialize":
                raise
        finally:
            with self.answered:
                self.unanswered -= 1
                self.answered.notify_all()

    def _initialize(self, params: Dict[str, Any], before: Optional["Future[Any]"]) -> Dict[str, Any]:
        if before is not None and before.exception() is None:
            raise _RpcError(INVALID_REQUEST, "initialize comes once, before the first call")
        if params.get("protocol") != PROTOCOL:
            raise _RpcError(INVALID_PARAMS, "this plugin speaks %s, the host asked for %.100s"
                            % (PROTOCOL, json.dumps(params.get("protocol"))))
        context = self._context(params)
        self._start(context)
        return {"protocol": PROTOCOL, "id": self.manifest.id, "version": self.manifest.version,
                "capabilities": self._capabilities(), "scopes": list(context.scopes)}

    def _context(self, params: Dict[str, Any]) -> Context:
        scopes = _param(params, "scopes", (list, tuple), [])
        if not all(isinstance(scope, str) for scope in scopes):
            raise _RpcError(INVALID_PARAMS, "scopes must be a list of strings")
        dirs, host = _param(params, "dirs", dict, {}), _param(params, "host", dict, {})
        return Context(tuple(scopes), Dirs(self._folder(dirs, "data"), self._folder(dirs, "cache")),
                       _param(params, "config", dict, {}), _param(params, "secrets", dict, {}),
                       Host(str(host.get("name", "")), str(host.get("version", ""))))

    def _folder(self, dirs: Dict[str, Any], name: str) -> Path:
        """The host's folder; by hand a temporary one, which ends with the process."""
        folder = _param(dirs, name, str, "")
        if not folder and type(self.plugin).start is not Plugin.start:
            folder = tempfile.mkdtemp(prefix="segue-%s-%s-" % (self.manifest.id, name))
            self.made.append(folder)
        return Path(folder)

    def _start(self, context: Context) -> None:
        self.plugin.context = context
        self.plugin.start(context)

    def _call(self, method: str, params: Dict[str, Any], started: "Future[Any]") -> Dict[str, Any]:
        started.result()  # was queued before this call, so it does run
        if method in self.plugin._withdrawn:
            raise NotSupported("%s does not work now: %s" % (method, self.plugin._withdrawn[method]))
        if method == "search":
            return self._search(params)
        value = getattr(self.plugin, method)(_param(params, "content_id", str))
        wanted = {"get_track": Track, "get_album": Album, "get_artist": Artist, "stream": StreamInfo}[method]
        _check_type(value, wanted, "what %s returns" % method)
        return value.to_wire() if method == "stream" else {method[len("get_"):]: value.to_wire()}

    def _search(self, params: Dict[str, Any]) -> Dict[str, Any]:
        limit, kinds = params.get("limit", 50), params.get("kinds")
        kinds = list(KINDS) if kinds is None else kinds
        if type(limit) is not int or not 1 <= limit <= 500:
            raise _RpcError(INVALID_PARAMS, "limit must be a whole number from 1 to 500")
        if not isinstance(kinds, list) or not all(kind in KINDS for kind in kinds):
            raise _RpcError(INVALID_PARAMS, "kinds must be a list of: " + ", ".join(KINDS))
        results = self.plugin.search(_param(params, "query", str), limit, kinds)
        _expect(isinstance(results, Iterable), "what search returns", "a list of SearchResult", results)
        return {"results": [found.to_wire() for found in islice(_wanted(results, kinds), limit)]}

    def _capabilities(self) -> List[str]:
        return [name for name in self.manifest.capabilities if name not in self.plugin._withdrawn]

    def _reply(self, call_id: Union[int, str], result: Dict[str, Any]) -> None:
        self._write({"jsonrpc": "2.0", "id": call_id, "result": result})

    def _fail(self, call_id: Union[int, str, None], code: int, message: str,
              data: Optional[Dict[str, Any]] = None) -> None:
        error: Dict[str, Any] = {"code": code, "message": message[:2000]}
        if data:
            error["data"] = data
        self._write({"jsonrpc": "2.0", "id": call_id, "error": error})

    def _write(self, reply: Dict[str, Any]) -> None:
        text = json.dumps(reply, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        line = memoryview(text.encode("utf-8", "replace") + b"\n")
        if len(line) - 1 > MAX_LINE:
            raise ValueError("the reply has %d bytes, more than the %d of a line: return less"
                             % (len(line) - 1, MAX_LINE))
        with self.writing:
            try:
                while line:
                    line = line[os.write(self.sink, line):]
            except OSError:  # the host is gone
                self._end(0)


def _wanted(results: Iterable[SearchResult], kinds: Sequence[str]) -> Iterator[SearchResult]:
    for index, found in enumerate(results):
        _check_type(found, SearchResult, "search's result %d" % index)
        if found.kind in kinds:
            yield found


_REQUIRED = object()


def _param(params: Mapping[str, Any], name: str, kind: Any, default: Any = _REQUIRED) -> Any:
    value = params.get(name)
    value = default if value is None else value
    if not isinstance(value, kind):
        names = {str: "a string", dict: "an object"}
        raise _RpcError(INVALID_PARAMS, "%s must be %s" % (name, names.get(kind, "a list")))
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError("%s is not JSON" % name)


def _take_standard_streams() -> Tuple[BinaryIO, int]:
    """Keeps the two pipes for the protocol alone.

    What is printed from now on, by this program, by a C library or by a child process, goes to standard error, and
    no child reads the host's requests. What an import printed before is still in a buffer, and goes the same way.
    """
    source, sink = os.fdopen(os.dup(0), "rb", 64 * 1024), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")
    return source, sink


def _lines(source: BinaryIO) -> Iterator[Optional[bytes]]:
    """Lines without their newline; None for one that is too long, which is read past without being kept."""
    while True:
        line = source.readline(MAX_LINE + 2)  # room for \r\n
        if not line:
            return
        ended = line.endswith(b"\n")
        body = line[:-1] if ended else line
        body = body[:-1] if body.endswith(b"\r") else body
        if len(body) > MAX_LINE or (not ended and len(line) > MAX_LINE):
            while not ended:
                rest = source.readline(64 * 1024)
                ended = not rest or rest.endswith(b"\n")
            yield None
        else:
            yield body
