"""Servers on loopback that do what no server should. Each answers a completion request of 4 tokens in its own way."""
import contextlib
import itertools
import socket
import struct
import threading
import time

TOKENS = 4
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TOKEN = b'data: {"choices":[{"text":"a"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4}}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = TOKEN * TOKENS + USAGE + DONE
END = b"0\r\n\r\n"
FULL = b"HTTP/1.1 429 Full\r\n"
MANY_BYTES = 1 << 30
PIECE = b"x" * (1 << 16)


class Server:
    """Listens until it is closed; `act` is called with each connection, in a thread of its own."""

    def __init__(self, act):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=0 if act is never_accepts else 128)
        self.port, self.act = self.listener.getsockname()[1], act
        if act is not never_accepts:
            threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self.listener.accept()[:1], daemon=True).start()

    def _serve(self, connection):
        # Whoever hangs up ends it.
        with contextlib.suppress(OSError), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.act(connection)

    def close(self):
        # Wakes up whoever waits for a connection, which closing alone does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def request(connection):
    """Reads one request; false at the end of the connection."""
    kept = b""
    while b"\r\n\r\n" not in kept:
        piece = connection.recv(1 << 16)
        if not piece:
            return False
        kept += piece
    head, body = kept.split(b"\r\n\r\n", 1)
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < lengths[0]:
        body += connection.recv(1 << 16)
    return True


def each(answer):
    """Answers every request of a connection alike, in one piece."""
    def act(connection):
        while request(connection):
            connection.sendall(answer)
    return act


def first(answer):
    """Answers the first request of a connection, and nothing more; the connection stays open."""
    def act(connection):
        request(connection)
        connection.sendall(answer)
        hold(connection)
    return act


def without_end(head, piece, pause_s=0.0):
    """Sends the same for ever, or for a GiB."""
    def act(connection):
        request(connection)
        connection.sendall(head)
        for _ in range(MANY_BYTES // len(piece)):
            connection.sendall(piece)
            time.sleep(pause_s)
    return act


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def sized(length, body):
    return HEAD + b"Content-Length: %s\r\n\r\n" % length + body


def hold(connection):
    while connection.recv(1 << 16):
        pass


def reset(connection):
    """Closes it so that the other side is told of an error."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def never_accepts(_connection):
    """The system makes the connections, and nobody ever sees them."""


def resets_at_once(connection):
    reset(connection)


def resets_in_the_middle(connection):
    request(connection)
    connection.sendall(CHUNKED + chunk(TOKEN))
    time.sleep(0.05)
    reset(connection)


def slow(connection):
    request(connection)
    for byte in CHUNKED + chunk(BODY) + END:
        connection.sendall(bytes([byte]))
        time.sleep(1)


def now_and_then(connection):
    """Answers one request of two, and resets the connection of the other."""
    for number in itertools.count():
        if not request(connection):
            return
        if number % 2 == 1:
            return reset(connection)
        connection.sendall(CHUNKED + chunk(BODY) + END)


# What it is called, what it does, and whether requests complete.
SERVERS = {
    "never accepts a connection": (never_accepts, False),
    "half open: reads, never answers": (hold, False),
    "resets every connection": (resets_at_once, False),
    "resets in the middle of an answer": (resets_in_the_middle, False),
    "resets every second request": (now_and_then, True),
    "silent after the first token": (first(CHUNKED + chunk(TOKEN)), False),
    "closes after the first token": (each(CHUNKED + chunk(TOKEN) + END), False),
    "a byte a second": (slow, False),
    "tokens without end": (without_end(CHUNKED, chunk(TOKEN)), False),
    "comments without end": (without_end(CHUNKED, chunk(b": ping\n\n"), 0.001), False),
    "empty events without end": (without_end(CHUNKED, chunk(b'data: {"choices":[{"text":""}]}\n\n')), False),
    "goes on behind [DONE]": (without_end(CHUNKED + chunk(BODY), chunk(b"\n"), 0.1), True),
    "one event of 1 GiB": (without_end(CHUNKED + chunk(b"data: "), chunk(PIECE)), False),
    "a header of 1 GiB": (without_end(b"HTTP/1.1 200 OK\r\nX: ", PIECE), False),
    "headers without end": (without_end(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100), False),
    "100 Continue without end": (without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001), False),
    "429 for ever": (each(FULL + b"Retry-After: 0\r\nContent-Length: 0\r\n\r\n"), False),
    "429 for ever, to be asked again in an hour": (each(FULL + b"Retry-After: 3600\r\nContent-Length: 0\r\n\r\n"), False),
    "429 with a text of 1 GiB": (without_end(FULL + b"Content-Length: 1073741824\r\n\r\n", PIECE), False),
    "Content-Length too long, answer whole": (first(sized(b"%d" % (len(BODY) + 1000), BODY)), True),
    "Content-Length too long, answer cut": (first(sized(b"%d" % (len(BODY) + 1000), TOKEN)), False),
    "Content-Length too short": (each(sized(b"%d" % (len(BODY) - 200), BODY)), False),
    "Content-Length of 2^64": (first(sized(b"18446744073709551616", BODY)), False),
    "two Content-Lengths": (first(sized(b"5\r\nContent-Length: 6", BODY)), False),
    "chunk longer than it is": (first(CHUNKED + b"ffff\r\n" + TOKEN), False),
    "chunk shorter than it is": (first(CHUNKED + b"2\r\n" + BODY + b"\r\n" + END), False),
    "chunk of 2^64 bytes": (first(CHUNKED + b"10000000000000000\r\n" + BODY), False),
    "chunk extension of 1 GiB": (without_end(CHUNKED + b"5;x=", PIECE), False),
    "no HTTP": (first(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"), False),
}
