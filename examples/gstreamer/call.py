#!/usr/bin/env python3
"""Connects a sender to a browser: call.py ADDRESS:PORT SENDER...

Runs the command SENDER with a folder as its last argument, and serves page.html. The sender writes
its offer into the folder as offer.sdp. The page's answer goes to answer.sdp. Every second this
prints what the browser has received. It ends when the sender ends.
"""

import http.server
import json
import pathlib
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent


def write(path, content):
    """Writes a file that is complete from the moment at which it exists."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.rename(path)


class Server(http.server.ThreadingHTTPServer):
    """The base class looks up the name of its host, which takes seconds on a host without DNS."""

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)


def handler(folder, start):
    """The class that answers the page's requests."""
    received = 0

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = HERE / "page.html" if self.path == "/" else folder / "offer.sdp"
            if not page.exists():
                self.send_error(404)
                return
            self.reply(page.read_bytes())

        def do_POST(self):
            nonlocal received
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/answer":
                write(folder / "answer.sdp", body)
            else:
                stats = json.loads(body)
                kbps = (stats["bytesReceived"] - received) * 8 / 1000
                received = stats["bytesReceived"]
                print(
                    f"time_s {time.monotonic() - start:.0f} received_kbps {kbps:.0f}"
                    f" frames_decoded {stats.get('framesDecoded', 0)} packets_lost {stats['packetsLost']}",
                    flush=True,
                )
            self.reply(b"")

        def reply(self, content):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Requests are not worth a line."""

    return Handler


def main():
    if len(sys.argv) < 3:
        sys.exit("write: call.py ADDRESS:PORT SENDER...")
    address, port = sys.argv[1].rsplit(":", 1)
    with tempfile.TemporaryDirectory() as folder:
        pages = handler(pathlib.Path(folder), time.monotonic())
        server = Server((address, int(port)), pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.exit(subprocess.run([*sys.argv[2:], folder], check=False).returncode)


if __name__ == "__main__":
    main()
