"""Profiles reach a Datadog agent, over TCP, TLS and a Unix socket; and an agent that does not behave disturbs nobody."""

import calendar
import os
import shutil
import subprocess
import time
import unittest
import uuid

import agent
import harness
import pprof

TAGGED = ["-S", "shop", "-E", "prod", "-V", "1.2", "-T", "team:a"]


def moment(text):
    """Unix time in nanoseconds, as the body writes it."""
    seconds, nanoseconds = agent.TIME.fullmatch(text).groups()
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(nanoseconds)


class Uploads(harness.SystemTest):
    def profile_split(self, receiver, *options, seconds=5, **run_options):
        """Wraps a puppet that spends so much CPU time. Returns its PID."""
        command = [self.binary, "-U", receiver.url, *options, self.puppet("split"), "1", str(seconds)]
        run_options.setdefault("env", self.environment())
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder, **run_options)
        _, stderr = process.communicate(timeout=harness.PATIENCE)
        self.assertEqual(process.returncode, 0, stderr)
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.problems, [])
        return process.pid

    def assert_arrives(self, receiver):
        pid = self.profile_split(receiver, *TAGGED, "-u", "2", seconds=5)
        posts = receiver.posts
        self.assertGreaterEqual(len(posts), 3)
        for post in posts:
            self.assertEqual(post.path, "/profiling/v1/input")
            self.assertEqual((post.event["version"], post.event["family"], post.event["attachments"]), ("4", "native", ["profile.pprof"]))
            wanted = {"service": "shop", "env": "prod", "version": "1.2", "team": "a", "language": "native", "process_id": str(pid)}
            self.assertEqual({key: post.tags.get(key) for key in wanted}, wanted)
            self.assertEqual(post.headers["DD-EVP-ORIGIN"], "ddprof")
            self.assertEqual(post.profile.types, [agent.CPU, agent.COUNT])
            self.assertEqual((post.profile.period_type, post.profile.default_type), (agent.CPU, "cpu-time"))
        self.assertEqual([post.tags["profile_seq"] for post in posts], [str(i) for i in range(len(posts))])
        self.assertEqual(len({uuid.UUID(post.tags["runtime-id"]) for post in posts}), 1)
        starts, ends = ([moment(post.event[key]) for post in posts] for key in ("start", "end"))
        self.assertEqual(starts[1:], ends[:-1], "each begins where the one before it ended")
        for post, start, end in zip(posts, starts, ends):
            self.assertEqual((post.profile.time_ns, post.profile.duration_ns), (start, end - start))
        for start, end in list(zip(starts, ends))[:-1]:
            self.assertGreaterEqual(end - start, 2e9)
        total = sum(pprof.total(post.profile, agent.CPU) for post in posts)
        self.assertAlmostEqual(total / 5e9, 1.0, delta=0.02)

    def test_samples_have_their_times_unless_they_are_not_wanted(self):
        def has_times(profile):
            return any("end_timestamp_ns" in sample.labels for sample in profile.samples)

        for options, are_there in (([], True), (["--no-timeline"], False)):
            receiver = agent.Agent(self)
            self.profile_split(receiver, *options, seconds=0.5)
            self.assertEqual([has_times(post.profile) for post in receiver.posts], [are_there])
            shown = self.ddprof("--show-config", "-U", receiver.url, *options, "true")
            self.assertRegex(shown.stdout + shown.stderr, r"(?m)^timeline +%s +" % str(are_there).lower())
            self.wait_until_profiler_ends()
        self.assertFalse(has_times(self.record([self.puppet("split"), "1", "0.5"]).profile))

    def test_profiles_arrive_over_tcp(self):
        self.assert_arrives(agent.Agent(self))

    def test_profiles_arrive_at_a_unix_socket(self):
        self.assert_arrives(agent.Agent(self, path=self.path("agent.sock")))

    def test_profiles_arrive_over_tls(self):
        pem = self.path("agent.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", pem, "-out", pem + ".crt", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, stderr=subprocess.DEVNULL)
        with open(pem, "a") as file:
            file.write(harness.read_text(pem + ".crt"))
        receiver = agent.Agent(self, certificate=pem)
        self.profile_split(receiver, seconds=0.5, env=dict(self.environment(), SSL_CERT_FILE=pem + ".crt"))
        self.assertEqual(len(receiver.posts), 1)
        self.profile_split(receiver, seconds=0.5)
        self.assertEqual(len(receiver.posts), 1, "a certificate that nobody trusts")

    def test_the_environment_names_the_agent(self):
        receiver = agent.Agent(self)
        host, port = receiver.url.split("//")[1].split(":")
        variables = dict(self.environment(), DD_AGENT_HOST=host, DD_TRACE_AGENT_PORT=port, DD_ENV="test", DD_TAGS="a:1 b:2", DD_VERSION="")
        self.ddprof(self.puppet("split"), "1", "0.3", env=variables)
        self.wait_until_profiler_ends()
        tags = receiver.wait_for_posts(1)[0].tags
        self.assertEqual((tags["service"], tags["env"], tags["a"], tags["b"]), ("split", "test", "1", "2"))
        self.assertNotIn("version", tags)

    def test_files_and_agent_get_the_same(self):
        receiver, folder = agent.Agent(self), self.path("both")
        os.makedirs(folder)
        self.profile_split(receiver, "-u", "1", "-O", folder + "/", seconds=2.5)
        files = [pprof.read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".pb.gz")]
        self.assertEqual([pprof.total(file, harness.CPU) for file in files], [pprof.total(post.profile, agent.CPU) for post in receiver.posts])
        self.assertEqual(receiver.posts[0].profile.samples[0].labels["process_id"], files[0].samples[0].labels[harness.PROCESS_ID])

    def test_nothing_is_sent_without_consent(self):
        receiver = agent.Agent(self)
        self.profile_split(receiver, "--do-export=false", seconds=0.3)
        self.assertEqual(receiver.requests, 0)

    def test_go_reads_what_is_sent(self):
        if not shutil.which("go"):
            self.skipTest("no go")
        receiver, path = agent.Agent(self), self.path("sent.pb")
        self.profile_split(receiver, seconds=1)
        with open(path, "wb") as file:
            file.write(agent.unpacked(receiver.posts[0].pprof))
        result = self.run_command(["go", "tool", "pprof", "-sample_index=cpu-time", "-top", path])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"Type: cpu-time(.*\n)+.* spend_70\n")


class Trouble(harness.SystemTest):
    def record_to(self, url, seconds=1.5):
        """A recording whose agent has trouble: the target and the file are as they would be. Nothing waits (test_answers has that)."""
        return self.record([self.puppet("split"), "1", str(seconds)], ["-u", "1", "-U", url, "--spool-dir", "none"], timeout=harness.PATIENCE)

    def assert_fails(self, url, *words):
        recording = self.record_to(url)
        self.assertAlmostEqual(recording.cpu_ns() / 1.5e9, 1.0, delta=0.03)
        failed = [line for line in recording.stderr.splitlines() if line.startswith("  failed")]
        self.assertEqual(len(failed), 1, recording.stderr)
        for word in (*words, recording.path + " has it"):
            self.assertIn(word, failed[0])
        self.assertIn("try: ", recording.stderr)

    def test_an_agent_that_is_down(self):
        gone = agent.SilentAgent(self)
        gone.close()
        self.assert_fails(gone.url, "Connection refused")
        self.assert_fails(self.path("nowhere.sock"), "No such file")

    def test_an_agent_that_hangs(self):
        self.assert_fails(agent.SilentAgent(self).url, "no answer")

    def test_the_profiler_beside_a_program_ends_although_its_agent_hangs(self):
        result = self.ddprof("-u", "1", "-U", agent.SilentAgent(self).url, self.puppet("split"), "1", "1.5")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends(20)

    def test_an_agent_that_fails_once(self):
        first = iter([True])
        receiver = agent.Agent(self, answer=lambda handler: next(first, False) and (handler.send_error(503) or True))
        recording = self.record_to(receiver.url)
        self.assertNotIn("failed", recording.stderr)
        self.assertEqual([post.tags["profile_seq"] for post in receiver.posts], [str(i) for i in range(len(receiver.posts))])

    def test_an_address_that_is_none(self):
        result = self.ddprof("record", "-U", "ftp://agent", "true")
        self.assertEqual(result.returncode, 2)
        self.assert_one_clear_line(result.stderr, "--url", "ftp://agent")
        result = self.ddprof("record", "-O", self.path("left_alone.pb.gz"), "true", env=dict(self.environment(), DD_TRACE_AGENT_URL="ftp://agent"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("DD_TRACE_AGENT_URL is left alone", result.stderr)

    def test_passwords_are_not_shown(self):
        result = self.ddprof("--show-config", env=dict(self.environment(), DD_TRACE_AGENT_URL="http://me:secret@agent:1", DD_API_KEY="0123456789abcdef" * 2))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("secret", result.stdout + result.stderr)
        self.assertNotIn("0123456789abcdef", result.stdout)


if __name__ == "__main__":
    unittest.main()
