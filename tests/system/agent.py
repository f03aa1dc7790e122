"""A test agent: takes profiles as a Datadog agent does, over TCP or a Unix socket, and answers as a test wants. Bodies are parsed by
Python's own parser of MIME."""

import collections
import email
import gzip
import http.server
import json
import os
import re
import socket
import socketserver
import ssl
import subprocess
import threading

import harness
import pprof

Post = collections.namedtuple("Post", "path headers event tags profile pprof")

CPU, COUNT = "cpu-time/nanoseconds", "cpu-samples/count"
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z")


def unpacked(raw):
    """An attachment as pprof; the first bytes tell how it was compressed, as they do at the intake."""
    if raw.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(["zstd", "-dc"], input=raw, stdout=subprocess.PIPE, check=True).stdout
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw


def parse(path, headers, body):
    """The two files of a body of version 4, and what they say."""
    message = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
    if message.get_content_type() != "multipart/form-data" or message.defects:
        raise ValueError("%s %s" % (headers["Content-Type"], message.defects))
    files = {}
    for part in message.get_payload():
        name = part.get_param("name", header="content-disposition")
        files[name] = (part.get_filename(), part.get_content_type(), part.get_payload(decode=True))
    if files["event"][:2] != ("event.json", "application/json"):
        raise ValueError(files["event"][:2])
    event = json.loads(files["event"][2])
    if {file[0] for name, file in files.items() if name != "event"} != set(event["attachments"]):
        raise ValueError("%s %s" % (list(files), event["attachments"]))
    raw = files["profile.pprof"][2]
    tags = dict(tag.split(":", 1) for tag in event["tags_profiler"].split(","))
    return Post(path, dict(headers), event, tags, pprof.decode(unpacked(raw)), raw)


def read_body(handler):
    """Of a length that is told before, or in chunks."""
    if "Content-Length" in handler.headers:
        return handler.rfile.read(int(handler.headers["Content-Length"]))
    chunks = []
    while size := int(handler.rfile.readline(), 16):
        chunks.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(chunks)


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Agent:
    """Listens at a port of loopback, a given one or any, or at the path of a socket. `answer(handler)` may answer in place of the
    agent when it returns True; `handler.body` is what came. It answers at once: a client has no patience with a busy machine that parses first."""

    def __init__(self, test, port=0, path=None, answer=lambda handler: False, certificate=None, parse=parse):
        agent, self.requests, self.parse = self, 0, parse
        self.received, self.parsed, self.errors, self.lock = [], [], [], threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.body = read_body(self)
                agent.requests += 1
                if answer(self):
                    return
                agent.received.append((self.path, self.headers, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def address_string(self):
                return "client"

            def log_message(self, *_):
                pass

        if path:
            self.server, self.url = UnixServer(path, Handler), "unix://" + path
            os.chmod(path, 0o777)
        else:
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
            self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = self.url.replace("http://127.0.0.1", "https://localhost")
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        test.addCleanup(self.close)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def parse_received(self):
        with self.lock:
            for request in self.received[len(self.parsed) + len(self.errors):]:
                try:
                    self.parsed.append(self.parse(*request))
                except Exception as error:
                    self.errors.append(error)

    @property
    def posts(self):
        self.parse_received()
        return self.parsed

    @property
    def problems(self):
        self.parse_received()
        return self.errors

    def wait_for_posts(self, count):
        harness.wait_for(lambda: len(self.received) >= count, 30, "%d profiles at the agent" % count)
        return self.posts


class SilentAgent:
    """Accepts, reads nothing, and never answers."""

    def __init__(self, test):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.connections, self.is_closed = [], False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()
        test.addCleanup(self.close)

    def accept(self):
        while True:
            try:
                self.connections.append(self.socket.accept()[0])
            except OSError:
                return

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()
        for connection in self.connections:
            connection.close()
