"""faults.py SEED MINUTES SPEED FOLDER LOG [SABOTAGE]: the web server that misbehaves as planned, and the plugin's mind.

Prints two ports, one for music and one for the plugin, then runs until the end of standard input. What it did is in
LOG, one JSON object a line. Music is at /<item>/<number of the address>/<hops left>; an address lives as long as the
plan says."""

import asyncio
import json
import os
import re
import socket
import struct
import sys
import time
from datetime import datetime, timedelta, timezone
from email.utils import formatdate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from soaking.mind import Mind  # noqa: E402
from soaking.plan import Plan  # noqa: E402

CHUNK = 16 * 1024
TYPES = {"flac": "audio/flac", "wav": "audio/wav", "mp3": "audio/mpeg"}
MODIFIED = formatdate(1_600_000_000, usegmt=True)
# Faults that end the request.
STATUS = {"429": 429, "503": 503, "500": 500, "403": 403, "404": 404}


class Kept:
    """What is remembered of an item over its connections."""

    def __init__(self, item, path):
        self.item = item
        self.path = path
        self.size = path.stat().st_size
        self.requests = 0
        # Each fault of a body happens once. None in the first bytes of a file: too early to be in mid-track.
        self.left = [(max(1, int(fault.at * self.size)), fault) for fault in item.body]
        self.gone = False
        self.open = 0


class Server:
    def __init__(self, seed, minutes, speed, folder, log, sabotage):
        self.sabotage = sabotage
        self.plan = Plan(seed, minutes)
        self.speed = speed
        self.folder = folder
        self.log_file = log
        self.kept = {}
        self.addresses = {}
        self.connections = set()
        self.music = None
        self.port = 0
        self.mind = Mind(self.plan, self.address)

    def log(self, what, **more):
        line = {"at": round(time.monotonic(), 4), "what": what, **more}
        self.log_file.write(json.dumps(line) + "\n")

    def keep(self, number):
        if number not in self.kept:
            item = self.plan.item(number)
            self.kept[number] = Kept(item, self.folder / item.track.file)
        return self.kept[number]

    def address(self, item):
        """A fresh URL, the time left to it, and how the plugin tells it."""
        nth = len(self.addresses) + 1
        self.addresses[nth] = time.monotonic() + item.life if item.life else None
        self.log("address", item=item.number, nth=nth, life=item.life)
        answer = {
            "url": f"http://127.0.0.1:{self.port}/{item.number}/{nth}/{item.redirects}?token={nth}",
            "content_type": TYPES[item.track.kind],
        }
        if item.tells == "in":
            answer["expires_in_ms"] = int(item.life * 1000)
        elif item.tells == "at":
            until = datetime.now(timezone.utc) + timedelta(seconds=item.life)
            answer["expires_at"] = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return answer

    async def listen(self):
        self.music = await asyncio.start_server(self.serve, "127.0.0.1", self.port, reuse_address=True, limit=65536)
        self.port = self.music.sockets[0].getsockname()[1]

    async def cut(self, seconds):
        """The network is gone for a while: nobody is heard, and nobody answers."""
        self.log("cut", seconds=seconds)
        self.music.close()
        for writer in list(self.connections):
            reset(writer)
        await asyncio.sleep(seconds)
        await self.listen()
        self.log("back")

    async def serve(self, reader, writer):
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * CHUNK)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.transport.set_write_buffer_limits(high=0)
        self.connections.add(writer)
        try:
            while await self.answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # The player has heard enough, or the connection was cut on purpose.
            pass
        finally:
            self.connections.discard(writer)
            writer.close()

    async def answer(self, reader, writer):
        """One request; false when the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        match = re.match(r"GET /(\d+)/(\d+)/(\d+)\?", head)
        if not match or int(match.group(2)) not in self.addresses:
            return await self.short_answer(writer, 404)
        number, nth, hops = map(int, match.groups())
        kept = self.keep(number)
        if hops:
            place = f"/{number}/{nth}/{hops - 1}?token={nth}"
            return await self.short_answer(writer, 302, [("Location", place)], kept.item.keep_alive)
        request, kept.requests = kept.requests, kept.requests + 1
        asked = re.search(r"(?im)^range: bytes=(\d+)-\r$", head)
        start = int(asked.group(1)) if asked else 0
        deadline = self.addresses[nth]
        note = {"item": number, "nth": nth, "request": request, "from": start if asked else None}
        if kept.gone or deadline and time.monotonic() >= deadline:
            self.log("refused", **note, gone=kept.gone)
            return await self.short_answer(writer, 404 if kept.gone else 403)
        fault = next((fault for fault in kept.item.answers if fault.at == request), None)
        if fault:
            self.log("fault", kind=fault.kind, **note)
        if fault and fault.kind in STATUS:
            pause = [("Retry-After", str(int(fault.value)))] if fault.kind in ("429", "503") else []
            return await self.short_answer(writer, STATUS[fault.kind], pause)
        if fault and fault.kind == "reset-head":
            return reset(writer)
        return await self.send(reader, writer, kept, asked and start, deadline, fault.kind if fault else "", note)

    async def short_answer(self, writer, status, headers=(), keep=False):
        lines = [f"HTTP/1.1 {status} As planned", f"Date: {formatdate(usegmt=True)}", "Content-Length: 0"]
        lines += [f"{name}: {value}" for name, value in headers] + ([] if keep else ["Connection: close"])
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await writer.drain()
        return keep

    async def send(self, reader, writer, kept, start, deadline, fault, note):
        item, size = kept.item, kept.size
        if start is not None and (start >= size or fault == "416"):
            return await self.short_answer(writer, 416, [("Content-Range", f"bytes */{size}")])
        part = start is not None and item.ranges and fault != "whole"
        begin = start if part else 0
        lines = [f"HTTP/1.1 {206 if part else 200} Fine", f"Date: {formatdate(usegmt=True)}"]
        lines.append(f"Content-Type: {TYPES[item.track.kind]}")
        if part:
            off = 1 if fault == "wrong-range" else 0
            total = size + 77 if fault == "wrong-total" else size
            lines.append(f"Content-Range: bytes {begin + off}-{size - 1}/{total}")
        if item.ranges:
            lines.append("Accept-Ranges: bytes")
        lines.append("Transfer-Encoding: chunked" if item.chunked else f"Content-Length: {size - begin}")
        if item.validator in ("etag", "both"):
            lines.append(f'ETag: "{item.track.number}-{size}"')
        if item.validator in ("date", "both"):
            lines.append(f"Last-Modified: {MODIFIED}")
        if not item.keep_alive:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if fault == "slow-head":
            writer.write(head[:20])
            await asyncio.sleep(1.5)
            head = head[20:]
        writer.write(head)
        kept.open += 1
        self.log("open", **note, status=206 if part else 200, together=kept.open)
        body = Body(self, reader, writer, kept, begin, deadline)
        try:
            return await body.send()
        finally:
            kept.open -= 1
            place = {"begin": begin, "bytes": body.at - begin, "began": body.began, "last": body.last}
            self.log("sent", **note, **place, why=body.why)


class Body:
    """One body on its way, from byte `at` to the file's end, with what befalls it."""

    def __init__(self, server, reader, writer, kept, begin, deadline):
        self.server = server
        self.reader = reader
        self.writer = writer
        self.kept = kept
        self.at = begin
        self.begin = begin
        self.deadline = deadline if kept.item.cuts else None
        self.why = "left by the player"
        self.slow_until = 0.0
        self.began = self.last = time.monotonic()

    async def send(self):
        item, size = self.kept.item, self.kept.size
        rate = item.pace * size / item.track.seconds * self.server.speed if item.pace else None
        due = time.monotonic()
        with self.kept.path.open("rb") as file:
            file.seek(self.at)
            while self.at < size:
                if self.deadline and time.monotonic() >= self.deadline:
                    return self.end("expired")
                place, fault = self.next_fault()
                step = min(CHUNK, size - self.at, max(512, int(rate * 0.01)) if rate else CHUNK)
                if fault:
                    step = min(step, place - self.at)
                slow = time.monotonic() < self.slow_until
                if slow:
                    step = min(step, 200)
                if step:
                    await self.write(self.falsified(file, step) if self.server.sabotage else file.read(step))
                    self.at += step
                if fault and self.at == place:
                    self.kept.left.remove((place, fault))
                    self.server.log("fault", kind=fault.kind, item=item.number, byte=place)
                    if await self.suffer(fault):
                        return self.end(fault.kind)
                    due = time.monotonic()
                if slow:
                    await asyncio.sleep(0.05)
                    due = time.monotonic()
                elif rate:
                    # After the player's own pause it goes on from now: catching up would be a burst.
                    due = max(due, time.monotonic() - 0.05) + step / rate
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
        if item.chunked:
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()
        self.why = "whole"
        return item.keep_alive

    def falsified(self, file, count):
        """The next bytes, wrong in every WAV from a place on as no player can notice: only for seeing that the soak does."""
        place = 44 + int(self.kept.size * 0.6) // 4 * 4
        if self.kept.item.track.kind != "wav" or self.at + count <= place:
            return file.read(count)
        if self.server.sabotage == "flip":
            data = bytearray(file.read(count))
            if self.at <= place:
                data[place - self.at] ^= 1
            return bytes(data)
        # Eight frames are left out, or come twice.
        away = 32 if self.server.sabotage == "skip" else -32
        true = max(0, place - self.at)
        head = file.read(true)
        file.seek(away, os.SEEK_CUR)
        data = head + file.read(count - true)
        file.seek(self.at + count)
        return data.ljust(count, b"\0")

    def next_fault(self):
        # The very first byte of a body passes nothing.
        ahead = [(place, fault) for place, fault in self.kept.left if place > self.begin and place >= self.at]
        return min(ahead, key=lambda one: one[0]) if ahead else (0, None)

    def is_left(self):
        """Whether the player has closed the connection: before the next write would tell."""
        return self.reader.at_eof() or self.writer.transport.is_closing()

    async def write(self, data):
        if self.is_left():
            raise ConnectionResetError
        if self.kept.item.chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self.writer.write(data)
        await self.writer.drain()
        self.last = time.monotonic()

    async def suffer(self, fault):
        """True when the body is over."""
        kind = fault.kind
        if kind == "trickle":
            self.slow_until = time.monotonic() + fault.value
            return False
        if kind == "stall":
            until = time.monotonic() + fault.value
            while time.monotonic() < until and not self.is_left():
                await asyncio.sleep(0.05)
            return False
        if kind == "cut":
            asyncio.get_running_loop().create_task(self.server.cut(fault.value))
        if kind == "gone":
            self.kept.gone = True
        if kind == "junk" and self.kept.item.chunked:
            # No chunk begins like this.
            self.writer.write(b"zz\r\n")
            await self.writer.drain()
        if kind in ("reset", "gone"):
            reset(self.writer)
        return True

    def end(self, why):
        self.why = why
        return False


def reset(writer):
    """Ends a connection as a crash of the other side would."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


async def main():
    seed, minutes, speed, folder, log, *sabotage = sys.argv[1:]
    loop = asyncio.get_running_loop()
    with open(log, "w", buffering=1, encoding="utf-8") as log_file:
        server = Server(seed, float(minutes), float(speed), Path(folder), log_file, "".join(sabotage))
        await server.listen()
        mind = await asyncio.start_server(server.mind.serve, "127.0.0.1", 0)
        server.mind.log = server.log
        print(server.port, mind.sockets[0].getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        # Connections may hang as planned; the end of the process is their end.
        log_file.flush()
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
