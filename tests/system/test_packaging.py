"""What packaging/ promises: the files are well-formed, and the privileges that they name are enough, and not more than that."""

import os
import shutil
import subprocess
import tempfile
import unittest

import yaml

import harness

PACKAGING = os.path.join(harness.REPOSITORY, "packaging")
KERNEL_HALF = 1 << 63


def unit_settings():
    """The unit's settings; systemd allows a name more than once, which configparser does not."""
    lines = harness.read_text(os.path.join(PACKAGING, "ddprof.service")).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def manifest(name):
    return yaml.safe_load(harness.read_text(os.path.join(PACKAGING, "kubernetes", name)))


def pod_of(document):
    return document["spec"]["template"]["spec"] if document["kind"] == "DaemonSet" else document["spec"]


def profiler_of(document):
    return next(c for c in pod_of(document)["containers"] if c["name"] == "ddprof")


def with_capabilities(names, user):
    """A command prefix: this user with exactly these capabilities, and no way to more."""
    names = [name.lower().removeprefix("cap_") for name in names]
    added = "-all" + "".join(",+" + name for name in names)
    # Root has what the bounding set leaves, as in a container; others need ambient ones, as a service of systemd has.
    ambient = [] if user == 0 else ["--ambient-caps=" + added]
    identity = [] if user == 0 else ["--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
    return ["setpriv", "--no-new-privs", "--bounding-set=" + added, "--inh-caps=" + added, *ambient, *identity, "--"]


class Files(unittest.TestCase):
    def test_no_manifest_asks_for_everything(self):
        for name in os.listdir(os.path.join(PACKAGING, "kubernetes")):
            with self.subTest(name):
                context = profiler_of(manifest(name))["securityContext"]
                self.assertFalse(context["privileged"])
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                self.assertNotIn("SYS_ADMIN", context["capabilities"]["add"])
                self.assertIn("memory", profiler_of(manifest(name))["resources"]["limits"])

    def test_the_daemon_set_sees_the_processes_of_the_node(self):
        self.assertTrue(pod_of(manifest("daemonset.yaml"))["hostPID"])
        self.assertNotIn("hostPID", pod_of(manifest("sidecar.yaml")))
        self.assertTrue(pod_of(manifest("sidecar.yaml"))["shareProcessNamespace"])

    def test_the_units_capabilities_are_bounded_by_what_it_is_given(self):
        settings = unit_settings()
        self.assertEqual(settings["AmbientCapabilities"], settings["CapabilityBoundingSet"])
        self.assertNotIn("CAP_SYS_ADMIN", settings["CapabilityBoundingSet"].split())

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
    def test_systemd_understands_the_unit(self):
        text = harness.read_text(os.path.join(PACKAGING, "ddprof.service")).replace("/usr/local/bin/ddprof", "/bin/true")
        folder = tempfile.mkdtemp(prefix="ddprof_unit_")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "ddprof.service")
        with open(path, "w") as file:
            file.write(text)
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


@unittest.skipUnless(harness.IS_ROOT, "needs root, to give some of its capabilities to others")
class Privileges(harness.SystemTest):
    """A program of another user that ran before the profiler came, as nobody or as root, with what packaging/ gives."""

    def setUp(self):
        self.target = subprocess.Popen([self.puppet("many_threads"), "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env=dict(os.environ, DD_SERVICE="shop"))
        self.addCleanup(self.target.communicate)
        self.addCleanup(self.target.kill)
        self.target.stdout.readline()

    def profile(self, capabilities, user, *options):
        path = self.path("%d.pb.gz" % next(self.numbers))
        with harness.paranoid(2):
            result = self.run_command(with_capabilities(capabilities, user) + [self.binary, *options, "-d", "2", "-O", path])
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def of_target(self, recording):
        return [s for s in recording.samples() if s.labels.get(harness.PROCESS_ID) == self.target.pid]

    def assert_sees_the_target(self, recording):
        samples = self.of_target(recording)
        self.assertTrue(samples, recording.stderr)
        named = [s for s in samples if recording.has(s, "burn_forever")]
        self.assertGreater(len(named), 0.8 * len(samples), recording.stderr)
        return samples

    def test_the_units_are_enough_for_nobody(self):
        recording = self.profile(unit_settings()["CapabilityBoundingSet"].split(), harness.NOBODY, "-g")
        samples = self.assert_sees_the_target(recording)
        self.assertEqual({s.labels.get("service") for s in samples}, {"shop"})
        self.assertTrue(any(a >= KERNEL_HALF for s in recording.samples() for a in s.addresses))
        names = {name for s in recording.samples() for name, a in zip(s.stack, s.addresses) if a >= KERNEL_HALF}
        self.assertTrue(any(not name.startswith("[kernel]+") for name in names), names)

    def test_the_daemon_sets_are_enough_for_a_root_without_powers(self):
        capabilities = profiler_of(manifest("daemonset.yaml"))["securityContext"]["capabilities"]["add"]
        samples = self.assert_sees_the_target(self.profile(capabilities, 0, "-g"))
        self.assertEqual({s.labels.get("service") for s in samples}, {"shop"})

    def test_the_sidecars_are_enough_to_attach(self):
        capabilities = profiler_of(manifest("sidecar.yaml"))["securityContext"]["capabilities"]["add"]
        self.assert_sees_the_target(self.profile(capabilities, 0, "-p", str(self.target.pid)))

    def test_perf_events_alone_count_everything_but_tell_no_services(self):
        """Whether they tell stacks of what ran before depends on the kernel: newer ones show mappings to who has CAP_PERFMON."""
        recording = self.profile(["CAP_PERFMON"], harness.NOBODY, "-g")
        self.assertTrue(self.of_target(recording), recording.stderr)
        self.assertNotIn("shop", recording.labels("service"))


if __name__ == "__main__":
    unittest.main()
