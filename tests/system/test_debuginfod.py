"""Names from a debuginfod server: Debian's own on loopback, and servers that are down, silent or lying."""

import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

import harness

SOURCE = """
#include <time.h>
static volatile unsigned long sink;
static inline void inlined_far_away(void) { for (int i = 0; i < 100000; ++i) sink += i * 2654435761UL; }
__attribute__((noinline)) static void work_far_away(void) { inlined_far_away(); __asm__ volatile(""); }
int main(void) { while ((double)clock() / CLOCKS_PER_SEC < 0.5) work_far_away(); }
"""


class Servers(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.served = cls.path("served")
        os.makedirs(cls.served)
        source, cls.program = cls.path("far.c"), cls.path("far")
        with open(source, "w") as file:
            file.write(SOURCE)
        subprocess.run(["gcc", "-O2", "-g", "-Wl,--build-id", "-o", cls.program, source], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", cls.program, os.path.join(cls.served, "far.debug")], check=True)
        subprocess.run(["objcopy", "--strip-all", cls.program], check=True)
        notes = subprocess.run(["readelf", "-n", cls.program], stdout=subprocess.PIPE, text=True, check=True).stdout
        cls.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)

    def profile(self, url, cache):
        """The recording, and how long the profiler was at work after the target's half second."""
        path = self.path("%d.pb.gz" % next(self.numbers))
        environment = dict(self.environment(), DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=self.path(cache), XDG_CACHE_HOME=self.path("kept_" + cache))
        begin = time.monotonic()
        result = self.ddprof("record", "-F", "499", "-O", path, "--", self.program, env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path), time.monotonic() - begin

    def answering(self, answer):
        """A server that calls answer(handler) for each request."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                answer(self)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "http://127.0.0.1:%d" % server.server_port

    def assert_without_names(self, recording):
        self.assert_sampled(recording, 0.5 * 499)
        self.assertEqual(recording.count("work_far_away"), 0)

    def test_a_real_server_names_a_stripped_program(self):
        if not shutil.which("debuginfod"):
            self.skipTest("debuginfod is not installed")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen(["debuginfod", "-d", ":memory:", "-p", str(port), "-F", self.served], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = "http://127.0.0.1:%d" % port

        def serves():
            try:
                with urllib.request.urlopen("%s/buildid/%s/debuginfo" % (url, self.build_id), timeout=5) as answer:
                    return answer.status == 200
            except OSError:
                return False

        harness.wait_for(serves, 60, "debuginfod to know the program")
        recording, _ = self.profile(url, "real")
        self.assert_sampled(recording, 0.5 * 499, "work_far_away")
        self.assert_sampled(recording, 0.5 * 499, "inlined_far_away")
        self.assertTrue(os.path.exists(os.path.join(self.path("real"), self.build_id, "debuginfo")))

    def test_a_server_that_is_down(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % probe.getsockname()[1]
            recording, _ = self.profile(url, "down")
        self.assert_without_names(recording)

    def test_a_server_that_does_not_answer(self):
        """The profile leaves without the names, and says so. How long is waited for them is bounded, not measured here."""
        released = threading.Event()
        self.addCleanup(released.set)
        recording, seconds = self.profile(self.answering(lambda _: released.wait(120)), "silent")
        self.assert_without_names(recording)
        self.assertIn("too late", recording.stderr)
        self.assertLess(seconds, 60)

    def test_a_server_that_lies(self):
        """An ELF file of another build: refused."""
        with open(self.binary, "rb") as file:
            other = file.read(1 << 20)

        def lie(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(other)))
            handler.end_headers()
            handler.wfile.write(other)

        recording, _ = self.profile(self.answering(lie), "lying")
        self.assert_without_names(recording)


if __name__ == "__main__":
    unittest.main()
