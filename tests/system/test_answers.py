"""Whatever a peer answers, or does instead, has its consequence for the profile and for nothing else; and nothing hangs."""

import contextlib
import re
import socket
import threading
import time
import unittest

import harness
import test_outage


class RawAgent:
    """Accepts, reads a request, and does with the connection what it is told to."""

    def __init__(self, test, serve, reads_body=True):
        self.serve, self.reads_body, self.requests = serve, reads_body, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        test.addCleanup(self.socket.close)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.socket.accept()[0]
                threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        with connection, contextlib.suppress(OSError):
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(1024)
            head, body = received.split(b"\r\n\r\n", 1)
            self.requests += 1
            left = int(re.search(rb"Content-Length: (\d+)", head).group(1)) - len(body)
            while self.reads_body and left > 0:
                left -= len(connection.recv(left))
            self.serve(connection)


def status(number, *headers):
    lines = ["HTTP/1.1 %d Some Reason" % number, "Content-Length: 0", *headers, "", ""]
    return lambda connection: connection.sendall("\r\n".join(lines).encode())


def hang(connection):
    connection.recv(1)  # until it is closed


def dribble(connection):
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        connection.sendall(bytes([byte]))
        time.sleep(1)


def close_at_once(_):
    pass


def cut_answer(connection):
    connection.sendall(b"HTTP/1.1 500 Some Reason\r\nContent-Length: 1000\r\n\r\nfull of sor")


WAITS, LOST, ARRIVES = "waits", "lost", "arrives"
ONCE_A_PERIOD, AGAIN, NEVER_MORE = "once a period", "again in the period", "once"
# What a peer does; what becomes of the profile; how often it is asked; what is said.
ANSWERS = {
    "500": (status(500), WAITS, AGAIN, "answered 500"),
    "500, cut": (cut_answer, WAITS, AGAIN, "answered 500: full of sor"),
    "503": (status(503), WAITS, AGAIN, "answered 503"),
    "408": (status(408), WAITS, AGAIN, "answered 408"),
    "429": (status(429), WAITS, AGAIN, "answered 429"),
    "429, seconds": (status(429, "Retry-After: 3600"), WAITS, NEVER_MORE, "answered 429"),
    "429, date": (status(429, "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"), WAITS, NEVER_MORE, "answered 429"),
    "413": (status(413), LOST, ONCE_A_PERIOD, "answered 413"),
    "400": (status(400), LOST, ONCE_A_PERIOD, "answered 400"),
    "403": (status(403), WAITS, ONCE_A_PERIOD, "answered 403"),
    "404": (status(404), WAITS, ONCE_A_PERIOD, "answered 404"),
    "307": (status(307, "Location: http://elsewhere/?key=1"), WAITS, ONCE_A_PERIOD, "answered 307, redirected to http://elsewhere/;"),
    "garbage": (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), WAITS, AGAIN, "not an HTTP answer"),
    "closes": (close_at_once, WAITS, AGAIN, "(ends too early|reset by peer|Broken pipe)"),
    "hangs": (hang, WAITS, ONCE_A_PERIOD, "no answer"),
    "dribbles": (dribble, WAITS, ONCE_A_PERIOD, "no answer"),
    "202": (status(202), ARRIVES, ONCE_A_PERIOD, None),
}


class Answers(harness.SystemTest):
    def test_every_answer_has_its_consequence(self):
        """All at the same time: two periods and a rest each, beside a program that sleeps."""
        peers = {name: RawAgent(self, serve, reads_body=name != "closes") for name, (serve, *_) in ANSWERS.items()}
        runs = {name: test_outage.Run(self, peer.port, "--exit-timeout", "1", program=["sleep", "2.2"]) for name, peer in peers.items()}
        for name, run in runs.items():
            self.assertNotIn("ddprof", run.wait(), name)
            self.assertEqual(run.process.returncode, 0, name)
        self.wait_until_profiler_ends(30)
        for name, (_, fate, asked, words) in ANSWERS.items():
            with self.subTest(name):
                run, requests = runs[name], peers[name].requests
                self.assertEqual(len(run.said()), 1 if words else 0, run.said())
                if words:
                    self.assertRegex(run.said()[0], words + r".*; try: ")
                    self.assertEqual("; profiles wait in " in run.said()[0], fate == WAITS)
                periods = len(run.parcels()) if fate == WAITS else 3
                self.assertEqual(len(run.parcels()) >= 2, fate == WAITS, run.parcels())
                low, high = {NEVER_MORE: (1, 1), ONCE_A_PERIOD: (1, periods), AGAIN: (periods + 1, 3 * periods)}[asked]
                self.assertTrue(low <= requests <= high, "%d requests in %d periods" % (requests, periods))


if __name__ == "__main__":
    unittest.main()
