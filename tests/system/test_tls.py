"""Profiles reach an agent behind nginx, which speaks TLS with certificates of an authority of its own; and whoever has the wrong certificate
gets none, is named once with the cure, and disturbs nobody."""

import os
import shutil
import socket
import subprocess
import unittest

import agent
import harness

CA_CONFIG = """
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""

NGINX_CONFIG = """
daemon off;
pid nginx.pid;
error_log error.log;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  scgi_temp_path scgi;
  uwsgi_temp_path uwsgi;
  client_max_body_size 20m;
  %s
}
"""

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
SERVER = "server { listen 127.0.0.1:%d%s; location / { proxy_pass %s; } }"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Authority:
    """A CA in a folder, made by openssl."""

    def __init__(self, folder, name):
        self.folder, self.file = folder, os.path.join(folder, "ca.pem")
        os.makedirs(folder)
        for file, text in (("ca.conf", CA_CONFIG), ("index", "")):
            with open(os.path.join(folder, file), "w") as out:
                out.write(text)
        self.openssl("req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=" + name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def issue(self, name, start="20200101000000Z", end="20990101000000Z"):
        """A certificate for a host, and its key, as nginx wants to hear of them."""
        base = "%s-%s" % (name, end)
        self.openssl("req", *KEY, "-keyout", base + ".key", "-out", base + ".csr", "-subj", "/CN=" + name, "-addext",
                     "subjectAltName=DNS:" + name)
        self.openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", base + ".csr", "-out", base + ".pem",
                     "-startdate", start, "-enddate", end)
        path = os.path.join(self.folder, base)
        return " ssl; ssl_certificate %s.pem; ssl_certificate_key %s.key" % (path, path)


class Nginx:
    """In front of an agent, at a port for each listener: what follows the port in its configuration."""

    def __init__(self, test, receiver, listeners):
        self.ports = {name: free_port() for name in listeners}
        folder = test.path("nginx%d" % next(test.numbers))
        os.makedirs(folder)
        servers = "\n  ".join(SERVER % (self.ports[name], listener, receiver.url) for name, listener in listeners.items())
        with open(os.path.join(folder, "nginx.conf"), "w") as file:
            file.write(("user root;" if harness.IS_ROOT else "") + NGINX_CONFIG % servers)
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        self.process = subprocess.Popen([program, "-p", folder, "-c", "nginx.conf", "-e", "error.log"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        test.addCleanup(self.close)
        harness.wait_for(self.is_up, 20, "nginx")

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError("nginx ended with status %d" % self.process.returncode)
        try:
            for port in self.ports.values():
                socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def close(self):
        self.process.terminate()
        self.process.wait()


class Tls(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority = Authority(cls.path("authority"), "Shop Root")
        cls.stranger = Authority(cls.path("stranger"), "Stranger Root")

    def setUp(self):
        self.receiver = agent.Agent(self)

    def serve(self, **listeners):
        return Nginx(self, self.receiver, listeners)

    def profile(self, url, *options, seconds="0.3", **variables):
        result = self.ddprof("-U", url, "-u", "1", *options, self.puppet("split"), "1", seconds, env=dict(self.environment(), **variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        self.assertEqual(self.receiver.problems, [])
        return self.receiver.posts

    def test_profiles_arrive_through_nginx(self):
        url = "https://localhost:%d" % self.serve(good=self.authority.issue("localhost")).ports["good"]
        posts = self.profile(url, "--ca-file", self.authority.file, seconds="1.5")
        self.assertGreaterEqual(len(posts), 2)
        self.assertEqual([post.tags["profile_seq"] for post in posts], [str(i) for i in range(len(posts))])
        for post in posts:
            self.assertEqual((post.path, post.event["version"]), ("/profiling/v1/input", "4"))

    def test_the_authority_may_be_named_in_other_ways(self):
        url = "https://localhost:%d" % self.serve(good=self.authority.issue("localhost")).ports["good"]
        folder = self.path("hashed")
        os.makedirs(folder)
        shutil.copy(self.authority.file, folder)
        subprocess.run(["openssl", "rehash", folder], check=True)
        for name, value in (("DD_PROFILING_CA_FILE", self.authority.file), ("SSL_CERT_FILE", self.authority.file), ("SSL_CERT_DIR", folder)):
            with self.subTest(name):
                before = len(self.receiver.posts)
                self.assertGreater(len(self.profile(url, **{name: value})), before)
        before = len(self.receiver.posts)
        relative = os.path.relpath(self.authority.file, self.folder)
        self.assertGreater(len(self.profile(url, "--ca-file", relative)), before)

    def assert_refused(self, url, words, cure, *options):
        """The target and the file are as they would be; the trouble is said once, and nothing is sent."""
        recording = self.record([self.puppet("split"), "1", "1.5"], ["-u", "1", "-U", url, "--spool-dir", "none", *options], timeout=harness.PATIENCE)
        self.assertAlmostEqual(recording.cpu_ns() / 1.5e9, 1.0, delta=0.03)
        told, summary = ([line for line in recording.stderr.splitlines() if line.startswith(start)] for start in ("ddprof: post to", "  failed"))
        self.assertEqual((len(told), len(summary)), (1, 1), recording.stderr)
        self.assertIn(words, told[0])
        self.assertIn(cure, recording.stderr)
        self.assertNotRegex(recording.stderr, "error:[0-9A-F]{8}|routines|verify failed")
        self.assertEqual(self.receiver.requests, 0)

    def test_certificates_that_are_not_good(self):
        nginx = self.serve(good=self.authority.issue("localhost"), other=self.authority.issue("other.example"),
                           expired=self.authority.issue("localhost", "20200101000000Z", "20210203000000Z"),
                           future=self.authority.issue("localhost", "20980304000000Z", "20990101000000Z"))
        trusted = ("--ca-file", self.authority.file)
        for name, words, cure, *options in (
                ("good", "signed by Shop Root, whom this system does not trust", "try: --ca-file FILE"),
                ("good", "signed by Shop Root, who is not in " + self.stranger.file, "put that authority's certificate into", "--ca-file", self.stranger.file),
                ("other", "it is for other.example, not for localhost", "name the host as its certificate does", *trusted),
                ("expired", "that of localhost ended on 2021-02-03", "renew it", *trusted),
                ("future", "that of localhost only begins on 2098-03-04", "set the clock", *trusted)):
            with self.subTest(words):
                self.assert_refused("https://localhost:%d" % nginx.ports[name], words, cure, *options)

    def test_the_wrong_scheme(self):
        nginx = self.serve(tls=self.authority.issue("localhost"), plain="")
        self.assert_refused("https://localhost:%d" % nginx.ports["plain"], "TLS: the other side does not speak it", "http:// in place of https://")
        self.assert_refused("http://localhost:%d" % nginx.ports["tls"], "answered 400", "https:// in place of http://")

    def test_a_file_without_certificates(self):
        empty = self.path("empty.pem")
        open(empty, "w").close()
        for file, words in ((self.path("missing.pem"), "No such file"), (empty, "holds none")):
            result = self.ddprof("record", "--ca-file", file, "true")
            self.assertEqual(result.returncode, 2)
            self.assert_one_clear_line(result.stderr, "--ca-file", words, "try: .*PEM")
            result = self.ddprof("record", "-O", self.path("all_the_same.pb.gz"), "true", env=dict(self.environment(), DD_PROFILING_CA_FILE=file))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, "DD_PROFILING_CA_FILE: .*" + words)


if __name__ == "__main__":
    unittest.main()
