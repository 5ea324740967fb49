"""Stand-ins for servers that no package has: they speak the documented protocol, and note what they are asked."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[str, str, dict[str, list[str]], Any], Any]
"""Takes the method, the path, the parameters and the body; gives what is answered, or a status and that."""


@contextmanager
def serving_json(answer: Answer, key: tuple[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve JSON at a free port; yield the address, and the list of what was asked (``GET /path``).

    Args:
        answer: what is answered.
        key: a header and its value, without which everything is refused.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            asked.append(f"{self.command} {parts.path}")
            if key and self.headers.get(key[0]) != key[1]:
                status, value = 401, {"error": "unauthorized"}
            else:
                made = answer(self.command, parts.path, parse_qs(parts.query, keep_blank_values=True), body)
                status, value = made if isinstance(made, tuple) else (200, made)
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.send_header("retry-after", "0")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving_redis(answer: Callable[[list[bytes]], Any]) -> Iterator[tuple[str, list[list[bytes]]]]:
    """Serve the protocol of Redis (RESP 2) at a free port; yield the address, and the list of commands."""
    asked: list[list[bytes]] = []

    def encode(value: Any) -> bytes:
        if isinstance(value, Exception):
            return b"-" + str(value).encode() + b"\r\n"
        if value is None:
            return b"$-1\r\n"
        if isinstance(value, int):
            return b":%d\r\n" % value
        if isinstance(value, list):
            return b"*%d\r\n" % len(value) + b"".join(map(encode, value))
        content = value if isinstance(value, bytes) else str(value).encode()
        return b"$%d\r\n%b\r\n" % (len(content), content)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                command = []
                for _ in range(int(line[1:])):
                    size = int(self.rfile.readline()[1:])
                    command.append(self.rfile.read(size + 2)[:-2])
                name = command[0].upper()
                if name in (b"CLIENT", b"PING", b"SELECT"):
                    self.wfile.write(b"+OK\r\n")
                    continue
                asked.append(command)
                self.wfile.write(encode(answer([name, *command[1:]])))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"redis://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
