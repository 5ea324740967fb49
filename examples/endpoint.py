"""Serves an encoder on this machine as OpenAI's embeddings endpoint is served: for trying `unembed adapt` on one.

python examples/endpoint.py bge-small-en-v1.5 --port 8123
unembed adapt http://127.0.0.1:8123/v1#bge-small-en-v1.5 --output work/endpoint
"""

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from unembed import Encoder, load_encoder


def make_server(encoder: Encoder, port: int) -> ThreadingHTTPServer:
    """Return a server that answers `POST /v1/embeddings`, one request after the other; port 0 takes a free one."""
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                with one_at_a_time:
                    vectors = encoder.encode(question["input"])
            except Exception as error:
                self._answer(500, {"error": {"message": str(error)}})
                return
            rows = [{"index": place, "embedding": vector.tolist()} for place, vector in enumerate(vectors)]
            self._answer(200, {"data": rows, "model": question["model"]})

        def _answer(self, status: int, body: dict[str, object]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing: there are hundreds of requests."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    """Load an encoder and serve it until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", help="a name that unembed encoders lists, a folder, or a hub id")
    parser.add_argument("--port", type=int, default=8123)
    arguments = parser.parse_args()

    server = make_server(load_encoder(arguments.encoder), arguments.port)
    sys.stderr.write(f"Serving http://127.0.0.1:{server.server_port}/v1#{arguments.encoder}\n")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
