"""Profiles reach an OpenTelemetry collector and a Pyroscope server, beside a Datadog agent, and none of them minds the others."""

import base64
import collections
import glob
import gzip
import os
import re
import shutil
import subprocess
import unittest
import urllib.parse

import agent
import harness
import judges
import otlp
import pprof

TAGGED = ["-S", "shop", "-E", "prod", "-V", "1.2", "-T", "team:a b,x-y:1"]
# What Pyroscope's own parser of `name` lets through, and its labels after that.
PYROSCOPE_NAME = re.compile(r"([-a-zA-Z0-9_./]+)\{((?:[a-zA-Z_][a-zA-Z0-9_]*=[^{},=]+,?)*)\}")

OtlpPost = collections.namedtuple("OtlpPost", "path headers request resources")
PyroscopePost = collections.namedtuple("PyroscopePost", "path headers query application labels profile raw")


class Collector(agent.Agent):
    """Takes OTLP profiles; protoc reads them."""

    def __init__(self, test, **options):
        def read(path, headers, body):
            file = test.path("%d.otlp" % next(test.numbers))
            with open(file, "wb") as out:
                out.write(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)
            request = otlp.Reader(file)
            resources = [otlp.key_values(resource["resource"][0]["attributes"]) for resource in request.top["resource_profiles"]]
            return OtlpPost(path, dict(headers), request, resources)
        super().__init__(test, parse=read, **options)

    def sums(self):
        return [sum(sample.value for sample in post.request.samples if sample.column == harness.CPU) for post in self.posts]


class Pyroscope(agent.Agent):
    """Takes what POST /ingest takes, with the server's own rules for names."""

    def __init__(self, test, **options):
        def read(path, headers, body):
            place, _, query = path.partition("?")
            fields = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
            application, labels = PYROSCOPE_NAME.fullmatch(fields["name"]).groups()
            pairs = dict(label.split("=") for label in labels.split(",") if label)
            return PyroscopePost(place, dict(headers), fields, application, pairs, pprof.decode(gzip.decompress(body)), body)
        super().__init__(test, parse=read, **options)

    def sums(self):
        return [pprof.total(post.profile, harness.CPU) for post in self.posts]


def agent_sums(receiver):
    return [pprof.total(post.profile, agent.CPU) for post in receiver.posts]


def closed_port(test):
    gone = agent.SilentAgent(test)
    gone.close()
    return gone.port


class Collectors(harness.SystemTest):
    def profile_split(self, *options, seconds=2.5, **variables):
        """Wraps a puppet that spends so much CPU time, and waits for the end of its profiler. Returns its PID."""
        process = subprocess.Popen([self.binary, *options, self.puppet("split"), "1", str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder, env=dict(self.environment(), **variables))
        _, stderr = process.communicate(timeout=harness.PATIENCE)
        self.assertEqual(process.returncode, 0, stderr)
        self.wait_until_profiler_ends()
        return process.pid

    def run_of_three(self):
        """One run with all three, for several tests."""
        if not hasattr(Collectors, "three"):
            three = agent.Agent(self), Collector(self), Pyroscope(self)
            pid = self.profile_split(*TAGGED, "--timeline", "-u", "1", "-U", three[0].url, "--otlp-endpoint", three[1].url, "--pyroscope-url", three[2].url)
            self.assertEqual([receiver.problems for receiver in three], [[], [], []])
            Collectors.three = pid, *three
        return Collectors.three

    def test_all_three_get_the_same(self):
        _, datadog, collector, pyroscope = self.run_of_three()
        sums = [value for value in agent_sums(datadog) if value]
        self.assertGreaterEqual(len(sums), 2)
        self.assertEqual(collector.sums(), sums)
        self.assertEqual(pyroscope.sums(), sums)
        self.assertAlmostEqual(sum(sums) / 2.5e9, 1.0, delta=0.02)

    def test_what_a_collector_gets(self):
        pid, datadog, collector, _ = self.run_of_three()
        for post in collector.posts:
            self.assertEqual(post.path, "/v1development/profiles")
            self.assertEqual((post.headers["Content-Type"], post.headers["Content-Encoding"]), ("application/x-protobuf", "gzip"))
            self.assertEqual(post.request.check_rules(), [])
            self.assertTrue(any("spend_70" in sample.stack for sample in post.request.samples))
            self.assertTrue(any(sample.time for sample in post.request.samples), "no times although --timeline")
            for resource in post.resources:
                wanted = {"service.name": "shop", "service.version": "1.2", "deployment.environment.name": "prod", "host.name": os.uname().nodename,
                          "service.instance.id": datadog.posts[0].tags["runtime-id"], "process.pid": pid, "team": "a b", "x-y": "1"}
                self.assertEqual({key: resource.get(key) for key in wanted}, wanted)

    def test_what_a_pyroscope_server_gets(self):
        _, _, _, pyroscope = self.run_of_three()
        for post in pyroscope.posts:
            self.assertEqual((post.path, post.headers["Content-Type"]), ("/ingest", "application/octet-stream"))
            self.assertEqual((post.query["spyName"], post.query["format"]), ("ddprof", "pprof"))
            self.assertEqual((post.application, post.labels), ("shop", {"env": "prod", "version": "1.2", "host": os.uname().nodename, "team": "a b", "x_y": "1"}))
            # By the number of digits the server knows that they are nanoseconds.
            self.assertEqual([len(post.query[key]) for key in ("from", "until")], [19, 19])
            self.assertEqual(int(post.query["from"]), post.profile.time_ns)
            self.assertEqual(int(post.query["until"]), post.profile.time_ns + post.profile.duration_ns)
            self.assertEqual(post.profile.types, [harness.COUNT, harness.CPU])
            self.assertNotIn("Authorization", post.headers)
            for sample in post.profile.samples:
                for key, value in sample.labels.items():
                    self.assertRegex(key, "^[a-z_]+$")
                    self.assertIsInstance(value, str)
            identities = [(tuple(sample.stack), tuple(sample.addresses), tuple(sorted(sample.labels.items()))) for sample in post.profile.samples]
            self.assertEqual(len(set(identities)), len(identities), "samples that differ in nothing but their time")

    def test_go_and_npm_read_what_a_pyroscope_server_gets(self):
        post, path = self.run_of_three()[3].posts[0], self.path("pyroscope.pb.gz")
        with open(path, "wb") as file:
            file.write(post.raw)
        with open(path[:-3], "wb") as file:
            file.write(gzip.decompress(post.raw))
        total = pprof.total(post.profile, harness.CPU)
        if not shutil.which("go"):
            self.skipTest("no go")
        raw = self.run_command(["go", "tool", "pprof", "-raw", path])
        self.assertEqual(raw.returncode, 0, raw.stderr)
        self.assertIn("samples/count cpu/nanoseconds", raw.stdout)
        values = re.findall(r"^ +(\d+) +(\d+): ", raw.stdout, re.MULTILINE)
        self.assertEqual(sum(int(value) for _, value in values), total)
        self.assertEqual(sum(int(sample["values"][1]) for sample in judges.read_pprof(path[:-3])["samples"]), total)

    def test_one_that_is_down_disturbs_nobody_and_gets_its_own_later(self):
        datadog, pyroscope, port, spool = agent.Agent(self), Pyroscope(self), closed_port(self), self.path("spool")
        options = [*TAGGED, "-u", "1", "--spool-dir", spool, "-U", datadog.url, "--otlp-endpoint", "http://127.0.0.1:%d" % port,
                   "--pyroscope-url", pyroscope.url]
        self.profile_split(*options, OTEL_EXPORTER_OTLP_HEADERS="api-key=verysecret")
        sums = [value for value in agent_sums(datadog) if value]
        self.assertEqual(pyroscope.sums(), sums)
        self.assertAlmostEqual(sum(sums) / 2.5e9, 1.0, delta=0.02)
        waiting = [path for path in glob.glob(os.path.join(spool, "*", "*")) if os.path.getsize(path) > 0]
        self.assertEqual(len(waiting), len(sums))
        for path in waiting:
            self.assertIn("127.0.0.1_%d_v1development" % port, path)
            with open(path, "rb") as file:
                self.assertNotIn(b"verysecret", file.read())
        collector = Collector(self, port=port)
        self.profile_split(*options, "--exit-timeout", "60", seconds=0.5, OTEL_EXPORTER_OTLP_HEADERS="api-key=verysecret")
        self.assertEqual(collector.problems, [])
        self.assertEqual(collector.sums(), [value for value in agent_sums(datadog) if value])
        self.assertEqual({post.headers["api-key"] for post in collector.posts}, {"verysecret"})

    def test_one_that_hangs_does_not_hold_up_the_others(self):
        datadog, spool = agent.Agent(self), self.path("spool_of_hanging")
        self.profile_split("-u", "1", "--exit-timeout", "1", "--spool-dir", spool, "-U", datadog.url, "--otlp-endpoint", agent.SilentAgent(self).url)
        sums = [value for value in agent_sums(datadog) if value]
        self.assertAlmostEqual(sum(sums) / 2.5e9, 1.0, delta=0.02)
        self.assertEqual([post.tags["profile_seq"] for post in datadog.posts], [str(i) for i in range(len(datadog.posts))])

    def test_what_a_collector_rejects_is_said_once_and_not_sent_again(self):
        def reject(handler):
            body = b"\x0a\x0c\x08\x03\x12\x08too deep"
            handler.send_response(200)
            handler.send_header("Content-Type", "application/x-protobuf")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return True
        collector = Collector(self, answer=reject)
        recording = self.record([self.puppet("split"), "1", "2.5"], ["-u", "1", "--otlp-endpoint", collector.url])
        self.assertEqual(recording.stderr.count("rejects 3 of the profiles: too deep"), 1, recording.stderr)
        seconds = float(re.search(r"of CPU in ([\d.]+) s", recording.stderr).group(1))
        self.assertTrue(2 <= collector.requests <= seconds + 1, (collector.requests, seconds))
        self.assertNotIn("failed", recording.stderr)

    def test_the_environment_names_both(self):
        collector, pyroscope = Collector(self), Pyroscope(self)
        self.profile_split(seconds=0.3, OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=collector.url + "/own/path", OTEL_EXPORTER_OTLP_COMPRESSION="none",
                           OTEL_EXPORTER_OTLP_HEADERS="api-key=a%20b", PYROSCOPE_SERVER_ADDRESS=pyroscope.url, PYROSCOPE_TENANT_ID="one",
                           PYROSCOPE_BASIC_AUTH_USER="me", PYROSCOPE_BASIC_AUTH_PASSWORD="verysecret")
        sent = collector.posts[0]
        self.assertEqual((sent.path, sent.headers["api-key"], sent.headers.get("Content-Encoding")), ("/own/path", "a b", None))
        headers = pyroscope.posts[0].headers
        self.assertEqual((headers["Authorization"], headers["X-Scope-OrgID"]), ("Basic " + base64.b64encode(b"me:verysecret").decode(), "one"))
        self.assertEqual(sent.resources[0]["service.name"], "split")

    def test_an_address_that_is_none(self):
        for option in ("--otlp-endpoint", "--otlp-profiles-endpoint", "--pyroscope-url"):
            result = self.ddprof("record", option, "collector:4317", "true")
            self.assertEqual(result.returncode, 2)
            self.assert_one_clear_line(result.stderr, option, "collector:4317")
        result = self.ddprof("record", "-O", self.path("left_alone.pb.gz"), "true",
                             env=dict(self.environment(), OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4317", OTEL_EXPORTER_OTLP_PROTOCOL="grpc"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("OTLP over grpc is not spoken, only http/protobuf", result.stderr)

    def test_secrets_are_not_shown(self):
        result = self.ddprof("--show-config", env=dict(
            self.environment(), OTEL_EXPORTER_OTLP_ENDPOINT="http://me:verysecret@collector", OTEL_EXPORTER_OTLP_HEADERS="api-key=verysecret",
            OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT="http://collector/p?token=verysecret", PYROSCOPE_SERVER_ADDRESS="http://me:verysecret@pyroscope",
            PYROSCOPE_BASIC_AUTH_PASSWORD="verysecret"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("verysecret", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
