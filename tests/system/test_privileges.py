"""Rights are given up when asked for, for good, and nothing is run with more than that."""

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import unittest

import harness

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
MODES = ([], ["record", "-q"], ["--enable=false"])


def status(pid):
    return dict(line.split(":\t", 1) for line in harness.read_text("/proc/%s/status" % pid).splitlines() if ":\t" in line)


def capabilities(fields):
    return {name: int(fields[name], 16) for name in SETS}


NONE = dict.fromkeys(SETS, 0)


@unittest.skipUnless(harness.IS_ROOT, "needs root, to have privileges that can be given up")
class Privileges(harness.SystemTest):
    def report(self, *command, **options):
        result = self.run_command([*command, self.puppet("checker")], **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(re.sub(r"(pipe|socket):\[\d+\]", r"\1", result.stdout))
        return {key: value for key, value in report.items() if key not in ("pid", "ppid")}

    def assert_same_as(self, judge, *options):
        """As setpriv, of util-linux, would have run it."""
        expected = self.report("setpriv", *judge, "--")
        for mode in MODES:
            with self.subTest(mode):
                output = [] if mode == MODES[2] else ["-O", self.path("%d.folded" % next(self.numbers))]
                self.assertEqual(self.report(self.binary, *mode, *output, *options), expected)
        self.wait_until_profiler_ends()

    def test_drop_caps_runs_the_target_without_capabilities(self):
        self.assert_same_as(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"], "--drop-caps")

    def test_switch_user_runs_the_target_as_another(self):
        self.assert_same_as(["--reuid=nobody", "--regid=nogroup", "--init-groups"], "--switch-user", "nobody")
        self.assert_same_as(["--reuid=nobody", "--regid=nogroup", "--init-groups"], "--switch-user", str(harness.NOBODY))
        self.assert_same_as(["--reuid=4321", "--regid=1234", "--groups=1234"], "--switch-user", "4321:1234")

    def test_both(self):
        self.assert_same_as(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--reuid=nobody", "--regid=nogroup", "--init-groups"],
                            "--drop-caps", "--switch-user=nobody")

    def profiled(self, *options):
        """A wrapped run with a look at the capabilities of target and profiler while both are at work."""
        path = self.path("%d.pb.gz" % next(self.numbers))
        target = subprocess.Popen([self.binary, *options, "-q", "-F", "499", "-O", path, self.puppet("split"), "1", "2"], cwd=self.folder, env=self.environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(target.kill)
        harness.wait_for(lambda: os.readlink("/proc/%d/exe" % target.pid) == self.puppet("split"), 20, "the target to run")
        def find_profilers():  # when the worker has begun to work, which is in its sandbox
            with contextlib.suppress(OSError):
                found = [status(pid) for pid in harness.processes_of(self.binary)]
                return found if any(fields["Seccomp"] == "2" for fields in found) else None
        seen = status(target.pid), harness.wait_for(find_profilers, 20, "a profiler at work")
        _, stderr = target.communicate(timeout=harness.PATIENCE)
        self.assertEqual((target.returncode, stderr), (0, ""))
        self.wait_until_profiler_ends()
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        self.assert_sampled(recording, 2 * 0.7 * 499, "spend_70")
        return seen

    def test_profiling_goes_on_without_capabilities(self):
        target, profilers = self.profiled("--drop-caps")
        for fields in (target, *profilers):
            self.assertEqual(capabilities(fields), NONE)

    def test_profiling_goes_on_of_another_user(self):
        target, profilers = self.profiled("--switch-user=nobody")
        self.assertEqual(target["Uid"].split(), [str(harness.NOBODY)] * 4)
        self.assertEqual(profilers[0]["Uid"].split(), ["0"] * 4)

    def test_profiling_goes_on_with_both(self):
        target, profilers = self.profiled("--drop-caps", "--switch-user=nobody")
        for fields in (target, *profilers):
            self.assertEqual((fields["Uid"].split(), capabilities(fields)), ([str(harness.NOBODY)] * 4, NONE))

    def test_what_is_lost_without_capabilities_is_said(self):
        with harness.paranoid(2):
            result = self.ddprof("record", "--drop-caps", "-O", self.path("lost.folded"), "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=5000")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kernel functions have no names", result.stderr)

    def attach(self, *prefix):
        target = subprocess.Popen([*prefix, self.puppet("split"), "1", "20"], stdout=subprocess.DEVNULL)
        self.addCleanup(target.communicate)
        self.addCleanup(target.kill)
        harness.wait_for(lambda: os.readlink("/proc/%d/exe" % target.pid) == self.puppet("split"), 20, "the target to run")
        path = self.path("%d.pb.gz" % next(self.numbers))
        result = self.ddprof("-p", str(target.pid), "--drop-caps", "-d", "1", "-F", "499", "-O", path)
        return harness.Recording(result, path)

    def test_attaching_goes_on_without_capabilities(self):
        recording = self.attach("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--")
        self.assertEqual(recording.status, 0, recording.stderr)
        self.assert_sampled(recording, 0.7 * 499 * recording.cpu_ns() / 1e9, "spend_70")

    def test_attaching_to_a_process_with_more_rights_is_refused(self):
        recording = self.attach()
        self.assertEqual(recording.status, 1)
        self.assert_one_clear_line(recording.stderr, "--drop-caps: look at process", "permission denied")

    def test_the_profiler_beside_is_in_its_sandbox(self):
        _, profilers = self.profiled()
        self.assertIn(("1", "2"), [(fields["NoNewPrivs"], fields["Seccomp"]) for fields in profilers])

    def test_what_cannot_be_given_up_is_said_and_nothing_runs(self):
        for mode in MODES:
            for options, words in ((["--drop-caps"], "drop capabilities.*not permitted"), (["--switch-user=root"], "switch to user root.*not permitted"),
                                   (["--switch-user=no-such-user"], "no such user")):
                with self.subTest((mode, options)):
                    result = self.run_command(harness.unprivileged([self.binary, *mode, *options, "-O", self.path("refused.pb.gz"), "touch", self.path("ran")]))
                    self.assertEqual(result.returncode, 126, result.stderr)
                    self.assert_one_clear_line(result.stderr, "cannot run touch: ", words)
                    self.assertEqual(len(re.findall("^ddprof:", result.stderr, re.MULTILINE)), 1, result.stderr)
                    self.assertFalse(os.path.exists(self.path("ran")))

    def test_profiles_are_for_their_owner(self):
        for mode, output in (([], "own.pb.gz"), (["record", "-q"], "own.folded")):
            self.assertEqual(self.ddprof(*mode, "-O", self.path(output), "true", umask=0).returncode, 0)
            harness.wait_for(lambda: os.path.exists(self.path(output)), 20, "the profile")
            self.assertEqual(stat.S_IMODE(os.stat(self.path(output)).st_mode), 0o600)

    def test_a_user_without_a_place_for_profiles(self):
        folder = self.path("of_root")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        result = self.ddprof("--drop-caps", "--switch-user=nobody", "-O", os.path.join(folder, "x.pb.gz"), self.puppet("cold_exit"), "code", "7")
        self.assertEqual(result.returncode, 7)
        self.assert_one_clear_line(result.stderr, "running without profiling: write .*Permission denied")

    def test_a_binary_that_lends_its_owners_rights_refuses(self):
        path = self.path("lending")
        for bit in (stat.S_ISUID, stat.S_ISGID):
            shutil.copy2(self.binary, path)
            os.chmod(path, 0o755 | bit)
            for arguments in (["--version"], ["touch", self.path("ran")]):
                result = self.run_command(harness.unprivileged([path, *arguments]))
                self.assertEqual((result.returncode, result.stdout), (126, ""))
                self.assert_one_clear_line(result.stderr, "set-user-ID")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_binary_with_capabilities_keeps_them_to_itself(self):
        """As docs/permissions.md recommends. The profiler has them; the target does not."""
        if shutil.which("setcap") is None:
            self.skipTest("no setcap here")
        path = self.path("capable")
        shutil.copy2(self.binary, path)
        subprocess.run(["setcap", "cap_perfmon,cap_sys_ptrace,cap_ipc_lock+ep", path], check=True)
        expected = self.report(*harness.unprivileged([]))
        self.assertEqual(self.report(*harness.unprivileged([path, "-O", self.path("capable.pb.gz")])), expected)


class Usage(harness.SystemTest):
    def test_drop_caps_is_not_for_the_whole_machine(self):
        result = self.ddprof("-g", "--drop-caps")
        self.assertEqual(result.returncode, 2)
        self.assert_one_clear_line(result.stderr, "--drop-caps")

    def test_switch_user_is_for_programs_that_are_started(self):
        result = self.ddprof("-p", "1", "--switch-user", "nobody")
        self.assertEqual(result.returncode, 2)
        self.assert_one_clear_line(result.stderr, "--switch-user")


if __name__ == "__main__":
    unittest.main()
