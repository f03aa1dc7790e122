"""ddprof doctor: what it claims is compared with what happens when it is tried, with and without privileges."""

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
import unittest

import harness

KERNEL_HALF = 1 << 63
# Reading zeros is time in the kernel, for the most part.
KERNEL_HEAVY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=5000"]
SEES_ALL_PIDS = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
SETCAP = shutil.which("setcap") or shutil.which("setcap", path="/usr/sbin:/sbin")


def kernel_names(recording):
    """The names of the kernel's frames."""
    return [call.name for place in recording.profile.locations if place.address >= KERNEL_HALF for call in place.calls]


class Doctor(harness.SystemTest):
    def examine(self, *options, prefix=(), binary=None, status=None, **run_options):
        """What the doctor says, as (abilities, findings) by name."""
        result = self.run_command([*prefix, binary or self.binary, "doctor", "--json", *options], **run_options)
        self.assertEqual(result.stderr, "")
        diagnosis = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if diagnosis["can_profile"] else 1)
        if status is not None:
            self.assertEqual(result.returncode, status)
        self.findings = {finding["name"]: finding for finding in diagnosis["findings"]}
        self.abilities = {ability["name"]: ability for ability in diagnosis["abilities"]}
        for claim in diagnosis["findings"] + diagnosis["abilities"]:
            self.assertIn(claim["state"], ("ok", "limited", "missing"))
            self.assertTrue(claim["meaning"], claim)
            has_cure = bool(claim["cure"]["command"])
            if claim["state"] == "ok":
                self.assertFalse(has_cure, claim)
        return diagnosis

    def attempt(self, *arguments, prefix=(), binary=None):
        """A short recording: whether a profile came of it, and the recording."""
        path = self.path("%d.pb.gz" % next(self.numbers))
        result = self.run_command([*prefix, binary or self.binary, "record", "-O", path, *arguments])
        return os.path.exists(path), harness.Recording(result, path)

    def assert_claims_hold(self, prefix=(), binary=None):
        self.verify_own_programs(prefix, binary)
        self.verify_foreign_processes(prefix, binary)
        self.verify_whole_host(prefix, binary)
        self.verify_kernel(prefix, binary)
        self.verify_rings(prefix, binary)
        self.verify_hardware(prefix, binary)
        self.verify_tracepoints(prefix, binary)

    def state(self, name):
        return (self.abilities.get(name) or self.findings[name])["state"]

    def verify_own_programs(self, prefix, binary):
        worked, recording = self.attempt("--", self.puppet("split"), "1", "0.5", prefix=prefix, binary=binary)
        self.assertEqual(worked, self.state("own-programs") == "ok", recording.stderr)
        self.assertEqual(worked, self.state("perf-events") == "ok", recording.stderr)
        if worked:
            return self.assert_sampled(recording, 0.7 * 0.5 * 99, "spend_70")
        # The error is made of the same words.
        self.assertIn(self.findings["perf-events"]["fact"], recording.stderr)
        self.assertIn(self.findings["perf-events"]["cure"]["command"], recording.stderr)

    def verify_foreign_processes(self, prefix, binary):
        """The foreign process is one of root, or of nobody for root itself."""
        if not harness.IS_ROOT:
            return
        line = [self.puppet("many_threads"), "1"]
        target = subprocess.Popen(line if prefix else harness.unprivileged(line), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            target.stdout.readline()
            worked, recording = self.attempt("-p", str(target.pid), "-d", "1", prefix=prefix, binary=binary)
        finally:
            target.kill()
            target.communicate()
        self.assertEqual(worked, self.state("other-users") != "missing", recording.stderr)
        if worked:
            self.assert_sampled(recording, 99, "burn_forever" if self.state("other-users") == "ok" else None)

    def verify_whole_host(self, prefix, binary):
        target = subprocess.Popen([self.puppet("many_threads"), "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            target.stdout.readline()
            worked, recording = self.attempt("-g", "-d", "1", prefix=prefix, binary=binary)
        finally:
            target.kill()
            target.communicate()
        self.assertEqual(worked, self.state("whole-host") != "missing", recording.stderr)
        self.assertEqual(worked, self.state("all-processes") == "ok", recording.stderr)
        if self.state("whole-host") == "ok":
            self.assertGreater(recording.count("burn_forever"), 0)

    def verify_kernel(self, prefix, binary):
        worked, recording = self.attempt("--", *KERNEL_HEAVY, prefix=prefix, binary=binary)
        frames = kernel_names(recording) if worked else []
        self.assertEqual(bool(frames), self.state("kernel-frames") != "missing", recording.stderr)
        named = [name for name in frames if "+0x" not in name]
        if frames:
            self.assertEqual(bool(named), self.state("kernel-names") == "ok", frames[:5])
            self.assertEqual(bool(named), self.state("kernel-frames") == "ok", frames[:5])

    def verify_rings(self, prefix, binary):
        """A user's profilers share what may be locked, and one that ends gives its part back a little later."""
        if self.state("own-programs") != "ok":
            return

        def rings_are_as_said():
            self.examine(prefix=prefix, binary=binary)
            _, recording = self.attempt("--", "true", prefix=prefix, binary=binary)
            had = re.search(r"rings of (\d+) KiB", recording.stderr).group(1)
            said = re.search(r"(\d+) KiB per CPU", self.findings["locked-memory"]["meaning"]).group(1)
            return had == said and ("instead of" in recording.stderr) == (self.state("locked-memory") != "ok")

        harness.wait_for(rings_are_as_said, 20, "rings as the doctor says")

    def verify_hardware(self, prefix, binary):
        worked, recording = self.attempt("-e", "hCPU", "--", "true", prefix=prefix, binary=binary)
        self.assertEqual(worked, self.state("hardware") == "ok", recording.stderr)

    def verify_tracepoints(self, prefix, binary):
        worked, recording = self.attempt("-e", "sched:sched_switch", "--", "true", prefix=prefix, binary=binary)
        if self.state("tracefs") != "ok":
            self.assertFalse(worked)
        elif self.state("kernel-frames") != "missing":
            self.assertTrue(worked, recording.stderr)

    @harness.needs_root
    def test_claims_of_root_hold(self):
        self.examine(status=0)
        self.assertEqual(self.state("own-programs"), "ok")
        self.assert_claims_hold()

    def test_claims_of_an_ordinary_user_hold_at_each_level(self):
        for level in (2, 1, 0):
            with self.subTest(level=level), harness.paranoid(level):
                self.examine(prefix=harness.unprivileged([]), status=0)
                self.assertEqual(self.findings["paranoid"]["fact"], "kernel.perf_event_paranoid is %d" % level)
                self.assertEqual(self.state("capabilities"), "missing")
                self.assert_claims_hold(harness.unprivileged([]))

    def test_the_cures_of_an_ordinary_user_cure(self):
        """What the doctor says about the level is done, and the complaint is gone."""
        with harness.paranoid(2):
            self.examine(prefix=harness.unprivileged([]))
            levels = {}
            for name in ("kernel-frames", "whole-host"):
                self.assertEqual(self.state(name), "missing")
                command = self.abilities[name]["cure"]["command"]
                levels[name] = int(re.search(r"kernel\.perf_event_paranoid=(\d)", command).group(1))
        for name, level in levels.items():
            with harness.paranoid(level):
                self.examine(prefix=harness.unprivileged([]))
                self.assertNotEqual(self.state(name), "missing", name)

    @harness.needs_root
    def test_the_capabilities_that_it_names_are_enough(self):
        if not SETCAP:
            self.skipTest("no setcap (libcap2-bin)")
        binary = self.path("capable")
        shutil.copy2(self.binary, binary)
        with harness.paranoid(2):
            self.examine(prefix=harness.unprivileged([]), binary=binary)
            command = self.findings["capabilities"]["cure"]["command"].split()
            self.assertEqual(command[:2] + command[3:], ["sudo", "setcap", binary])
            done = self.run_command([SETCAP, command[2], binary])
            if done.returncode != 0:
                self.skipTest("this file system keeps no capabilities: " + done.stderr)
            self.examine(prefix=harness.unprivileged([]), binary=binary, status=0)
            self.assertEqual(self.state("capabilities"), "ok")
            for name in ("own-programs", "other-users", "kernel-frames"):
                self.assertEqual(self.state(name), "ok", self.abilities[name])
            self.assert_claims_hold(harness.unprivileged([]), binary)

    @harness.needs_root
    def test_monitoring_alone_is_told_from_reading_files(self):
        if not SETCAP:
            self.skipTest("no setcap (libcap2-bin)")
        binary = self.path("monitor")
        shutil.copy2(self.binary, binary)
        if self.run_command([SETCAP, "cap_perfmon+ep", binary]).returncode != 0:
            self.skipTest("this file system keeps no capabilities")
        with harness.paranoid(2):
            self.examine(prefix=harness.unprivileged([]), binary=binary, status=0)
            self.assertEqual(self.state("other-users"), "limited")
            self.assert_claims_hold(harness.unprivileged([]), binary)

    def test_a_filter_that_refuses_events_is_named(self):
        for prefix in ([self.puppet("deny_perf")], harness.unprivileged([self.puppet("deny_perf")])):
            with self.subTest(prefix=prefix[0]):
                self.examine(prefix=prefix, status=1)
                self.assertEqual(self.state("seccomp"), "missing")
                self.assertIn("--cap-add PERFMON", self.findings["seccomp"]["cure"]["docker"])
                self.assertEqual({ability["state"] for ability in self.abilities.values()}, {"missing"})
                self.assert_claims_hold(prefix)

    def test_without_locked_memory_nothing_works_and_it_says_so(self):
        path = "/proc/sys/kernel/perf_event_mlock_kb"
        before = harness.read_text(path)
        try:
            with open(path, "w") as file:
                file.write("0")
        except OSError as error:
            self.skipTest("kernel.perf_event_mlock_kb cannot be set: %s" % error)
        try:
            # Of a user who has just run something the kernel may count rings that are gone, until the last zombie is.
            prefix = harness.unprivileged([], user=100000 + os.getpid())
            no_memory = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
            self.examine(prefix=prefix, status=1, preexec_fn=no_memory)
            self.assertEqual(self.state("locked-memory"), "missing")
            self.assertEqual(self.state("perf-events"), "ok")
            with open(path, "w") as file:
                file.write("64")
            self.examine(prefix=prefix, status=0, preexec_fn=no_memory)
            self.assertEqual(self.state("locked-memory"), "limited")
            needed = re.search(r"sudo sysctl kernel.perf_event_mlock_kb=(\d+)", self.findings["locked-memory"]["cure"]["command"])
            with open(path, "w") as file:
                file.write(needed.group(1))
            self.examine(prefix=prefix, status=0, preexec_fn=no_memory)
            self.assertEqual(self.state("locked-memory"), "ok")
        finally:
            with open(path, "w") as file:
                file.write(before)

    @harness.needs_root
    def test_the_cure_for_tracefs_cures(self):
        self.examine()
        if self.state("tracefs") == "ok":
            self.skipTest("tracefs is mounted already")
        command = self.findings["tracefs"]["cure"]["command"].removeprefix("sudo ")
        # In a mount namespace of its own, which takes it along when it ends.
        prefix = ["unshare", "--mount", "sh", "-ec", command + '; exec "$@"', "sh"]
        if self.run_command([*prefix, "true"]).returncode != 0:
            self.skipTest("tracefs cannot be mounted here: " + command)
        self.examine(prefix=prefix, status=0)
        self.assertEqual(self.state("tracefs"), "ok")
        self.verify_tracepoints(prefix, None)

    @harness.needs_root
    def test_a_pid_namespace_is_noticed(self):
        prefix = ["unshare", "--fork", "--pid", "--mount-proc"]
        if self.run_command([*prefix, "true"]).returncode != 0:
            self.skipTest("no new PID namespace here")
        self.examine(prefix=prefix, status=0)
        self.assertEqual(self.state("pid-namespace"), "limited")
        self.assertEqual(self.state("whole-host"), "limited")
        self.examine()
        self.assertEqual(self.state("pid-namespace"), "ok" if SEES_ALL_PIDS else "limited")

    def test_capabilities_of_a_user_namespace_count_for_nothing(self):
        prefix = ["unshare", "--user", "--map-root-user"]
        with harness.paranoid(2):
            if self.run_command([*prefix, "true"]).returncode != 0:
                self.skipTest("no new user namespace here")
            self.examine(prefix=prefix, status=0)
            self.assertEqual(self.state("capabilities"), "missing")
            self.assertIn("user namespace", self.findings["capabilities"]["fact"])
            self.verify_kernel(prefix, None)
            self.verify_whole_host(prefix, None)

    def at_fake_level(self, level, command):
        """In a mount namespace where the sysctl reads as this level. The kernel goes by the real one, for which 3 is as 2."""
        path = self.path("level")
        with open(path, "w") as file:
            file.write("%d\n" % level)
        return ["unshare", "--mount", "sh", "-ec", 'mount --bind %s %s; exec "$@"' % (path, harness.PARANOID), "sh", *command]

    def hint(self, prefix, *arguments, binary=None):
        """What a recording that is refused gives as its hint."""
        worked, recording = self.attempt(*arguments, prefix=prefix, binary=binary)
        self.assertFalse(worked, recording.stderr)
        found = re.search(r"(?:^  |; )try: (.*)$", recording.stderr, re.M)
        self.assertTrue(found, recording.stderr)
        return found.group(1)

    def assert_works(self, prefix, *arguments, binary=None):
        worked, recording = self.attempt(*arguments, prefix=prefix, binary=binary)
        self.assertTrue(worked, recording.stderr)

    @harness.needs_root
    def test_at_level_3_the_hint_is_enough_for_what_was_asked(self):
        whole_host = ["-g", "-d", "1"]
        binary = self.path("gifted")
        shutil.copy2(self.binary, binary)
        with harness.paranoid(2):
            hint = self.hint(self.at_fake_level(3, harness.unprivileged([])), *whole_host, binary=binary)
            level, capability = re.fullmatch(r"sudo sysctl kernel.perf_event_paranoid=(\d), or sudo setcap (\S+) %s" % binary, hint).groups()
        with harness.paranoid(int(level)):
            self.assert_works(harness.unprivileged([]), *whole_host, binary=binary)
        if SETCAP and self.run_command([SETCAP, capability, binary]).returncode == 0:
            with harness.paranoid(2):
                self.assert_works(harness.unprivileged([]), *whole_host, binary=binary)
        self.examine(prefix=self.at_fake_level(3, harness.unprivileged([])))
        for name, wanted in (("kernel-frames", 1), ("whole-host", 0)):
            self.assertIn("kernel.perf_event_paranoid=%d" % wanted, self.abilities[name]["cure"]["command"])

    @harness.needs_root
    def test_root_of_a_user_namespace_is_not_told_to_be_root(self):
        prefix = ["unshare", "--user", "--map-root-user"]
        if self.run_command([*prefix, "true"]).returncode != 0:
            self.skipTest("no new user namespace here")
        with harness.paranoid(2):
            hint = self.hint(prefix, "-g", "-d", "1")
            self.assertEqual(hint, "sudo sysctl kernel.perf_event_paranoid=0 on the host, or run ddprof as root outside of this user namespace")
            self.assert_works([], "-g", "-d", "1")
            self.examine(prefix=prefix, status=0)
            for name in ("kernel-frames", "whole-host", "capabilities"):
                command = (self.abilities.get(name) or self.findings[name])["cure"]["command"]
                self.assertIn("outside of this user namespace", command)
                self.assertNotIn("setcap", command)
        with harness.paranoid(0):
            self.assert_works(prefix, "-g", "-d", "1")

    @harness.needs_root
    def test_root_without_the_capability_is_not_told_to_be_root(self):
        """As in a container, where no file can give what the container does not have."""
        prefix = ["setpriv", "--bounding-set", "-perfmon,-sys_admin", "--inh-caps", "-all", "--"]
        with harness.paranoid(2):
            hint = self.hint(prefix, "-g", "-d", "1")
            self.assertEqual(hint, "sudo sysctl kernel.perf_event_paranoid=0 on the host, or start this container or service with CAP_PERFMON")
            self.assert_works(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all", "--"], "-g", "-d", "1")
        with harness.paranoid(0):
            self.assert_works(prefix, "-g", "-d", "1")

    @harness.needs_root
    def test_a_filter_is_blamed_at_every_level(self):
        prefix = harness.unprivileged([self.puppet("deny_perf")])
        for level in (1, 3):
            self.examine(prefix=self.at_fake_level(level, prefix), status=1)
            for name in ("perf-events", "kernel-frames", "all-processes", "hardware"):
                self.assertIn("seccomp", self.findings[name]["fact"])
            self.assertEqual(self.findings["paranoid"]["cure"]["command"], "")
            self.assertEqual(self.state("seccomp"), "missing")
            for ability in self.abilities.values():
                self.assertIn("seccomp", ability["meaning"])
        # The filter is gone, and the rest of the hint is done.
        with harness.paranoid(2):
            hint = self.hint(prefix, "-g", "-d", "1")
            level = int(re.search(r"also sudo sysctl kernel.perf_event_paranoid=(\d) on the host", hint).group(1))
        with harness.paranoid(level):
            self.assert_works(harness.unprivileged([]), "-g", "-d", "1")

    def test_what_is_said_about_memory_of_others_is_true(self):
        """Reads a word of a process that is no child of the reader, of the same user and of another."""
        scope_path = "/proc/sys/kernel/yama/ptrace_scope"
        self.examine(prefix=harness.unprivileged([]))
        meaning = self.findings["ptrace"]["meaning"]
        says_own = self.state("ptrace") == "limited" and "own processes" in meaning
        holder = subprocess.Popen(
            harness.unprivileged(["/usr/bin/python3", "-c", "import ctypes, sys; b = ctypes.create_string_buffer(b'word'); "
                                  "print(ctypes.addressof(b), flush=True); sys.stdin.read()"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = int(holder.stdout.readline())
        reader = ("import ctypes, sys\n"
                  "class V(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]\n"
                  "b = ctypes.create_string_buffer(4)\n"
                  "n = ctypes.CDLL(None).process_vm_readv(%d, ctypes.byref(V(ctypes.addressof(b), 4)), 1, "
                  "ctypes.byref(V(%d, 4)), 1, 0)\n"
                  "print(b.raw.decode() if n == 4 else 'refused')" % (holder.pid, address))
        try:
            result = self.run_command(harness.unprivileged(["/usr/bin/python3", "-c", reader]))
        finally:
            holder.communicate()
        self.assertEqual(result.stdout.strip() == "word", says_own, (meaning, os.path.exists(scope_path)))

    def test_the_agent_is_asked(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            body = b'{"endpoints":["/profiling/v1/input"]}'
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

            def serve():
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            self.examine("-H", "127.0.0.1", "-P", str(server.getsockname()[1]))
            thread.join()
            self.assertEqual(self.state("agent"), "ok")
            address = "http://127.0.0.1:%d" % server.getsockname()[1]
        self.examine(env=dict(self.environment(), DD_TRACE_AGENT_URL=address))
        self.assertEqual(self.state("agent"), "missing")
        self.assertIn(address, self.findings["agent"]["fact"])

    def test_servers_that_hang_do_not_hold_it_up(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "http://127.0.0.1:%d" % silent.getsockname()[1]
            environment = dict(self.environment(), DD_TRACE_AGENT_URL=address, DEBUGINFOD_URLS=" ".join([address] * 5))
            start = time.monotonic()
            self.examine(env=environment)
            # At most 1 s for the agent and 2 s for debuginfod; the rest is what a busy machine may add.
            self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(self.state("agent"), "missing")
        self.assertEqual(self.state("debuginfod"), "missing")

    def test_the_text_says_the_same_in_columns(self):
        diagnosis = self.examine()
        text = self.ddprof("doctor").stdout
        rows = re.findall(r"^(ok|limited|missing) +(\S+) ", text, re.M)
        self.assertEqual([(f["state"], f["name"]) for f in diagnosis["findings"]], rows)
        answers = {"ok": "yes", "limited": "partly", "missing": "no"}
        verdict = re.findall(r"^  (yes|partly|no) ", text, re.M)
        self.assertEqual([answers[a["state"]] for a in diagnosis["abilities"]], verdict)
        prose = [line for line in text.splitlines() if not re.match(r" +(try|docker|kubernetes): ", line)]
        self.assertLessEqual(max(map(len, prose)), 120)

    def test_it_leaves_nothing_behind(self):
        before = sorted(os.listdir(self.folder))
        self.ddprof("doctor")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(harness.processes_of(self.binary), [])


if __name__ == "__main__":
    unittest.main()
