"""delay.py PORT: a line with a round trip, in front of the server at PORT of this machine.

It takes orders on standard input, one a line, and answers each with one line:

- `open MS`: the port of a fresh line with this round trip. Lines that were opened before lead on.
- `count NS`: how many bytes the newest line had brought to the player up to this moment (CLOCK_MONOTONIC), and in all.

The model: each direction takes half of the round trip. A connection is set up in one round trip: the kernel answers
the player at once, so that what it sends first is held for that time. A connection begins with ten segments and sends
twice as much with each round trip, up to 4 MiB at a time (TCP's slow start without loss). Nothing limits the rate
otherwise, and nothing is lost."""

import asyncio
import os
import socket
import sys
import time

SEGMENTS = 10 * 1460
MOST = 4 << 20
PIECE = 64 * 1024


class Line:
    """All connections through one port."""

    def __init__(self, server_port, round_trip_s):
        self.server_port = server_port
        self.round_trip_s = round_trip_s
        self.brought = []
        self.tasks = set()

    async def open(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0, limit=PIECE)
        return server.sockets[0].getsockname()[1]

    def count(self, until_ns):
        return sum(size for at, size in self.brought if at <= until_ns), sum(size for _, size in self.brought)

    async def accept(self, reader, writer):
        began = time.monotonic()
        # The kernel on the player's side keeps what it is given; this side shall not keep much more.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.transport.set_write_buffer_limits(high=0)
        there, back = await asyncio.open_connection("127.0.0.1", self.server_port, limit=PIECE)
        up = asyncio.ensure_future(self.carry(reader, back, began + self.round_trip_s, None, None))
        down = asyncio.ensure_future(self.carry(there, writer, 0, self.window(), self.brought))
        await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        # Whoever closed first: what is on its way still arrives, then the other side learns of it.
        if up.done():
            down.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        for side in (writer, back):
            side.close()

    async def carry(self, reader, writer, not_before, window, brought):
        """One direction. What was read at t arrives at t plus half of the round trip."""
        way = asyncio.Queue()
        room = asyncio.Semaphore(MOST // PIECE)

        async def arrive():
            while True:
                due, piece = await way.get()
                if piece is None:
                    return
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                writer.write(piece)
                await writer.drain()
                room.release()
                if brought is not None:
                    brought.append((time.monotonic_ns(), len(piece)))

        arriving = asyncio.ensure_future(arrive())
        try:
            while piece := await reader.read(PIECE):
                while piece:
                    part = piece[: await window(len(piece))] if window else piece
                    piece = piece[len(part) :]
                    await room.acquire()
                    if arriving.done():
                        return
                    way.put_nowait((max(time.monotonic(), not_before) + self.round_trip_s / 2, part))
            way.put_nowait((0, None))
            await arriving
        except OSError:
            # One side is gone, and the other learns of it by the end of both directions.
            pass
        finally:
            arriving.cancel()

    def window(self):
        """Says how many bytes of so many may be sent now, once any may."""
        if not self.round_trip_s:
            return None
        size, sent, began = SEGMENTS, 0, None

        async def allowed(wanted):
            nonlocal size, sent, began
            began = began or time.monotonic()
            if sent >= size:
                await asyncio.sleep(max(0.0, began + self.round_trip_s - time.monotonic()))
                size, sent, began = min(MOST, size * 2), 0, time.monotonic()
            part = min(wanted, size - sent)
            sent += part
            return part

        return allowed


async def main():
    server_port = int(sys.argv[1])
    loop = asyncio.get_running_loop()
    line = None
    while order := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        if order[0] == "open":
            line = Line(server_port, float(order[1]) / 1000)
            print(await line.open(), flush=True)
        else:
            print(*line.count(int(order[1])), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
