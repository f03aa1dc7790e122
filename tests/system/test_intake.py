"""Where Datadog's profiles go, and in which form: the intake without an agent, the older forms, the agent that nobody named, and
whose container they name."""

import base64
import contextlib
import gzip
import io
import os
import re
import secrets
import signal
import socket
import subprocess
import threading
import unittest

import agent
import harness
import pprof

KEY = "0123456789abcdef" * 2
CGROUPS = "/sys/fs/cgroup"
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class ConnectProxy:
    """A forward proxy that leads every tunnel to one port of this machine, for who knows the password."""

    def __init__(self, test, port, authorization):
        self.port, self.authorization, self.asked = port, authorization, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://me:secret@127.0.0.1:%d" % self.socket.getsockname()[1]
        test.addCleanup(self.socket.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()

    def serve(self, client):
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1)
            self.asked.append(head.split(b"\r\n")[0].decode())
            if b"Proxy-Authorization: " + self.authorization + b"\r\n" not in head:
                return client.sendall(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self.port)) as server:
                client.sendall(b"HTTP/1.1 200 Here you are\r\n\r\n")
                back = threading.Thread(target=relay, args=(server, client), daemon=True)
                back.start()
                relay(client, server)
                back.join()


def relay(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class IntakeTest(harness.SystemTest):
    """A server with a certificate of its own stands for the intake."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority, cls.certificate = cls.path("intake.crt"), cls.path("intake.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", cls.certificate, "-out", cls.authority, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:intake.test"], check=True, stderr=subprocess.DEVNULL)
        with open(cls.certificate, "a") as file:
            file.write(harness.read_text(cls.authority))

    def intake(self, **options):
        return agent.Agent(self, certificate=self.certificate, **options)

    def agentless(self, receiver, *options):
        return ["--agentless", "-U", receiver.url, "--ca-file", self.authority, "-u", "1", *options]

    def split(self, seconds):
        return [self.puppet("split"), "1", str(seconds)]


class Intake(IntakeTest):
    def test_profiles_arrive_with_their_key(self):
        receiver = self.intake()
        result = self.ddprof(*self.agentless(receiver, "-S", "shop"), *self.split(1.5), env=dict(self.environment(), DD_API_KEY=KEY))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.problems, [])
        self.assertGreaterEqual(len(receiver.posts), 2)
        for post in receiver.posts:
            self.assertEqual((post.path, post.headers["DD-API-KEY"]), ("/api/v2/profile", KEY))
            self.assertEqual((post.event["version"], post.tags["service"]), ("4", "shop"))
        total = sum(pprof.total(post.profile, agent.CPU) for post in receiver.posts)
        self.assertAlmostEqual(total / 1.5e9, 1.0, delta=0.05)

    def test_a_key_that_is_refused(self):
        """Said once, with its cure; profiles wait until the key is taken, and go first."""
        refusals = iter([True, True])
        receiver = self.intake(answer=lambda handler: next(refusals, False) and (handler.send_error(403) or True))
        state = self.path("refused")
        recording = self.record(self.split(3.5), self.agentless(receiver), env=dict(self.environment(), DD_API_KEY=KEY, XDG_STATE_HOME=state), timeout=harness.PATIENCE)
        self.assertAlmostEqual(recording.cpu_ns() / 3.5e9, 1.0, delta=0.03)
        self.assertEqual(recording.stderr.count("answered 403"), 1, recording.stderr)
        self.assertIn("DD_API_KEY", recording.stderr)
        self.assertEqual([post.tags["profile_seq"] for post in receiver.posts], [str(i) for i in range(len(receiver.posts))])
        self.assertGreaterEqual(len(receiver.posts), 3)
        self.assertNotIn(KEY, recording.stderr)

    def profile_by_proxy(self, authorization):
        receiver = self.intake()
        proxy = ConnectProxy(self, int(receiver.url.rsplit(":", 1)[1]), authorization)
        recording = self.record(self.split(0.5), ["--agentless", "-U", "https://intake.test", "--ca-file", self.authority, "--spool-dir", "none"],
                                env=dict(self.environment(), DD_API_KEY=KEY, HTTPS_PROXY=proxy.url, NO_PROXY=""))
        self.assertEqual(set(proxy.asked), {"CONNECT intake.test:443 HTTP/1.1"})
        self.assertNotIn("secret", recording.stderr)
        return receiver, recording

    def test_profiles_arrive_through_a_proxy(self):
        receiver, recording = self.profile_by_proxy(b"Basic " + base64.b64encode(b"me:secret"))
        self.assertEqual(len(receiver.posts), 1, recording.stderr)
        self.assertEqual(receiver.posts[0].headers["DD-API-KEY"], KEY)

    def test_a_proxy_that_refuses(self):
        receiver, recording = self.profile_by_proxy(b"Basic other")
        self.assertEqual(receiver.posts, [])
        self.assertRegex(recording.stderr, r"failed .*proxy .*407")

    def test_a_key_that_waits_nowhere(self):
        receiver = self.intake(answer=lambda handler: handler.send_error(403) or True)
        state = self.path("kept")
        self.ddprof(*self.agentless(receiver), *self.split(0.3), env=dict(self.environment(), DD_API_KEY=KEY, XDG_STATE_HOME=state))
        self.wait_until_profiler_ends()
        files = [os.path.join(folder, name) for folder, _, names in os.walk(state) for name in names]
        self.assertTrue(files, "the profile waits")
        for path in files:
            self.assertNotIn(KEY, path)
            with open(path, "rb") as file:
                self.assertNotIn(KEY.encode(), file.read(), path)

    def test_without_a_key_nothing_is_profiled(self):
        for options in ([], ["--api-key", "tooshort"]):
            self.assertEqual(self.ddprof("record", "--agentless", *options, "/bin/true").returncode, 2)
            result = self.ddprof("--agentless", *options, self.puppet("cold_exit"), "code", "7")
            self.assertEqual(result.returncode, 7)
            self.assert_one_clear_line(result.stderr, "API key", "DD_API_KEY")
            self.assertNotIn("tooshort", result.stderr)

    def test_a_cluster_without_a_key_disturbs_no_program(self):
        recording = self.record(["true"], env=dict(self.environment(), DD_PROFILING_AGENTLESS="true"))
        self.assertIn("DD_PROFILING_AGENTLESS is left alone", recording.stderr)

    def test_other_users_do_not_see_the_key(self):
        receiver = self.intake()
        for command in ([], ["record", "-O", self.path("secret.pb.gz")]):
            line = [self.binary, *command, *self.agentless(receiver, "--api-key", KEY), *self.split(60)]
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
            try:
                before = len(receiver.posts)
                harness.wait_for(lambda: len(receiver.posts) > before, 30, "a profile at the intake")
                shown = [self.arguments_of(pid) for pid in harness.processes_of(self.binary)]
                self.assertTrue(any(b"--api-key" in text for text in shown), shown)
                for text in shown:
                    self.assertNotIn(KEY.encode(), text)
            finally:
                for pid in {process.pid, *harness.processes_of(self.puppet("split"))}:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
                process.wait()
            self.wait_until_profiler_ends()
            self.assertEqual(receiver.posts[-1].headers["DD-API-KEY"], KEY)

    @staticmethod
    def arguments_of(pid):
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
        return b""


def parse_form(path, headers, body):
    """A form as werkzeug reads it: fields, each with all its values, and files."""
    from werkzeug.formparser import parse_form_data
    _, fields, files = parse_form_data({"REQUEST_METHOD": "POST", "CONTENT_TYPE": headers["Content-Type"], "CONTENT_LENGTH": str(len(body)),
                                        "wsgi.input": io.BytesIO(body)}, silent=False)
    contents = {}
    for name, file in files.items():
        with contextlib.closing(file):
            contents[name] = (file.filename, file.read())
    return path, dict(headers), dict(fields.lists()), contents


class Forms(IntakeTest):
    def setUp(self):
        try:
            import werkzeug.formparser  # noqa: F401
        except ImportError:
            self.skipTest("no werkzeug to read forms with")

    def sent(self, form, *options):
        receiver = agent.Agent(self, parse=parse_form)
        result = self.ddprof("-U", receiver.url, "-S", "shop", "-T", "team:a", "--intake-format", form, *options, *self.split(0.5))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.problems, [])
        path, headers, fields, files = receiver.posts[0]
        self.assertEqual(path, "/profiling/v1/input")
        tags = fields.pop("tags[]")
        for tag in ("service:shop", "team:a", "language:native", "profile_seq:0"):
            self.assertIn(tag, tags)
        return fields, files

    def assert_is_profile(self, file):
        name, raw = file
        self.assertEqual((name, raw[:2]), ("pprof-data", b"\x1f\x8b"))
        profile = pprof.decode(gzip.decompress(raw))
        self.assertAlmostEqual(pprof.total(profile, agent.CPU) / 0.5e9, 1.0, delta=0.4)  # totals: test_accounting

    def test_the_first_one(self):
        fields, files = self.sent("form")
        for name in ("recording-start", "recording-end"):
            self.assertRegex(fields.pop(name)[0], SECONDS)
        self.assertEqual(fields, {"format": ["pprof"], "runtime": ["native"], "types[0]": ["cpu-time,cpu-samples"]})
        self.assertEqual(list(files), ["data[0]"])
        self.assert_is_profile(files["data[0]"])

    def test_the_one_after_it(self):
        fields, files = self.sent("v3")
        for name in ("start", "end"):
            self.assertRegex(fields.pop(name)[0], SECONDS)
        self.assertEqual(fields, {"version": ["3"], "family": ["native"]})
        self.assertEqual(list(files), ["data[cpu.pprof]"])
        self.assert_is_profile(files["data[cpu.pprof]"])

    def test_the_intake_takes_them_at_their_old_path(self):
        receiver = self.intake(parse=parse_form)
        self.ddprof(*self.agentless(receiver, "--intake-format", "form"), *self.split(0.3), env=dict(self.environment(), DD_API_KEY=KEY))
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.posts[0][0], "/v1/input")


class AgentThatNobodyNamed(IntakeTest):
    def searching(self):
        environment = self.environment()
        del environment["DD_PROFILING_FIND_AGENT"]
        for name in ("DD_TRACE_AGENT_URL", "DD_AGENT_HOST", "DD_TRACE_AGENT_PORT"):
            environment[name] = ""  # as good as unset
        return environment

    def agent_at_the_usual_port(self):
        if os.path.exists("/var/run/datadog/apm.socket"):
            self.skipTest("an agent of this machine has its socket here")
        try:
            return agent.Agent(self, port=8126)
        except OSError as error:
            self.skipTest("port 8126: %s" % error)

    def test_is_found_at_its_port(self):
        receiver = self.agent_at_the_usual_port()
        for options in ([], ["--do-export=false"], ["-O", self.path("own.pb.gz")]):
            self.ddprof(*options, *self.split(0.3), env=self.searching())
            self.wait_until_profiler_ends()
        self.record(self.split(0.3), env=self.searching())
        self.assertEqual((len(receiver.posts), receiver.problems), (1, []))
        self.assertEqual(receiver.posts[0].tags["service"], "split")

    def test_is_found_at_its_socket(self):
        receiver = agent.Agent(self, path=self.path("usual.sock"))
        # /var/run is a link to /run on every system that has a Datadog agent.
        script = 'mount -t tmpfs none /run && mkdir /run/datadog && ln -s "$0" /run/datadog/apm.socket && exec "$@"'
        inside = ["unshare", "--mount", "sh", "-c", script, self.path("usual.sock")]
        if self.run_command([*inside, "true"]).returncode != 0:
            self.skipTest("no mount namespace to put a socket in")
        result = self.run_command([*inside, self.binary, *self.split(0.3)], env=self.searching())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^ddprof: version .*; a profile every 59 s goes to unix:///var/run/datadog/apm.socket, an agent that was found on this machine\n$")
        self.wait_until_profiler_ends()
        self.assertEqual((len(receiver.posts), receiver.problems), (1, []))

    def test_a_service_that_has_no_agent_is_told_so_at_every_start(self):
        environment = dict(self.environment(), XDG_STATE_HOME=self.path("told"))
        for _ in range(2):
            said = self.ddprof(self.puppet("split"), "1", "0.3", env=environment).stderr
            self.wait_until_profiler_ends()
            self.assertRegex(said, r"^ddprof: version [\d.]+, profiling \S+split \(PID \d+\); no agent: profiles are kept in %s/ddprof/split-\S+-\*\.pb\.gz, every 59 s\n(ddprof: the end, .*\n)?$" % self.path("told"))

    def test_without_one_profiles_stay_here(self):
        """One line says how to look at them, and is right."""
        target = subprocess.Popen(self.split(60), stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        result = self.ddprof("-p", str(target.pid), "-d", "1", env=dict(self.environment(), XDG_STATE_HOME=self.path("state")))
        self.assertEqual(result.returncode, 0, result.stderr)
        commands = re.findall(r"no agent: .*; ddprof (report \S+)\n", result.stderr)
        self.assertEqual(len(commands), 1, result.stderr)
        report = self.ddprof(*commands[0].split())
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("spend_70", report.stdout)


class Containers(IntakeTest):
    @contextlib.contextmanager
    def target_in(self, hierarchy, name, *prefix):
        """A busy process in a control group of this name."""
        folder = os.path.join(hierarchy, name)
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest("cannot make a control group: %s" % error)
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        target = subprocess.Popen(["sh", "-c", enter, folder, *prefix, *self.split(60)], stdout=subprocess.DEVNULL)
        try:
            harness.wait_for(lambda: target.poll() is not None or os.readlink("/proc/%d/exe" % target.pid) == self.puppet("split"), 10, "the target")
            if target.poll() is not None:
                self.skipTest("cannot enter a control group")
            yield target.pid, folder
        finally:
            target.kill()
            target.wait()
            harness.wait_for(lambda: self.removed(folder), 10, "an empty control group")

    @staticmethod
    def removed(folder):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
            return True
        return False

    @staticmethod
    def hierarchy(*names):
        """The first of these that is mounted, or the only one."""
        return next((path for path in (os.path.join(CGROUPS, name) for name in names) if os.path.ismount(path)), CGROUPS)

    def headers_for(self, pid):
        receiver = agent.Agent(self)
        result = self.ddprof("-p", str(pid), "-d", "1", "-U", receiver.url)
        self.assertEqual(result.returncode, 0, result.stderr)
        return receiver.wait_for_posts(1)[0]

    @harness.needs_root
    def test_each_upload_names_the_container_of_its_target(self):
        first, second = (secrets.token_hex(32) for _ in range(2))
        hierarchy = self.hierarchy("pids", "unified")
        with self.target_in(hierarchy, first) as (one, _), self.target_in(hierarchy, second) as (two, _):
            for pid, container in ((one, first), (two, second)):
                post = self.headers_for(pid)
                self.assertEqual((post.headers["Datadog-Container-ID"], post.headers["Datadog-Entity-ID"]), (container, "ci-" + container))
                self.assertEqual(post.tags["process_id"], str(pid))
                self.assertEqual({sample.labels.get("container_id") for sample in post.profile.samples}, {container})
                self.assertIn("ddprof.custom_ctx:container_id", post.event["tags_profiler"].split(","))

    @harness.needs_root
    def test_a_container_without_a_name_has_a_number(self):
        with self.target_in(self.hierarchy("memory"), "ddprof_test_%d" % os.getpid(), "unshare", "--cgroup") as (pid, folder):
            headers = self.headers_for(pid).headers
            self.assertEqual(headers["Datadog-Entity-ID"], "in-%d" % os.stat(folder).st_ino)
            self.assertNotIn("Datadog-Container-ID", headers)

    def test_what_the_orchestrator_says_of_a_process_goes_with_it(self):
        receiver, external = agent.Agent(self), "it-false,cn-shop,pu-1"
        labelled = dict(self.environment(), DD_EXTERNAL_ENV=external)
        self.ddprof("-U", receiver.url, *self.split(0.3), env=labelled)
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.wait_for_posts(1)[0].headers["Datadog-External-Env"], external)
        target = subprocess.Popen(self.split(60), stdout=subprocess.DEVNULL, env=labelled)
        try:
            self.assertEqual(self.headers_for(target.pid).headers["Datadog-External-Env"], external)
        finally:
            target.kill()
            target.wait()

    def test_tags_describe_machine_and_profiler(self):
        receiver = agent.Agent(self)
        self.ddprof("-U", receiver.url, *self.split(0.3))
        self.wait_until_profiler_ends()
        tags = receiver.wait_for_posts(1)[0].tags
        self.assertEqual(tags["number_hw_concurent_threads"], str(os.sysconf("SC_NPROCESSORS_ONLN")))
        self.assertEqual(tags["runtime_platform"], os.uname().machine + "-unknown-linux-gnu")
        self.assertEqual(tags["include_kernel"] == "true", harness.IS_ROOT or int(harness.read_text(harness.PARANOID)) < 2)


if __name__ == "__main__":
    unittest.main()
