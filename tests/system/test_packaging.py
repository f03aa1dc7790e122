"""What packaging/ promises: the files are well-formed, and the privileges that they name are enough, and not more than that."""

import ctypes
import errno
import mmap
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import unittest

import yaml

import agent
import harness
import test_thread_context

PACKAGING = os.path.join(harness.REPOSITORY, "packaging")
KERNEL_HALF = 1 << 63


def unit_settings():
    """The unit's settings; systemd allows a name more than once, which configparser does not."""
    lines = harness.read_text(os.path.join(PACKAGING, "ddprof.service")).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def system_calls(words):
    """Names of system calls that a SystemCallFilter= allows, groups expanded as systemd expands them."""
    names, waiting = set(), list(words)
    while waiting:
        word = waiting.pop()
        if not word.startswith("@"):
            names.add(word)
            continue
        text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", word], stdout=subprocess.PIPE, text=True, check=True).stdout
        waiting += [line.strip() for line in text.splitlines() if line.startswith("    ") and not line.strip().startswith("#")]
    return names


class UnitFilter:
    """What systemd makes of SystemCallFilter=, RestrictAddressFamilies= and MemoryDenyWriteExecute= in a unit, by the same library."""

    ALLOW, DENY = 0x7FFF0000, 0x00050000 | errno.EPERM
    EQUAL, MASKED_EQUAL = 4, 7

    class Comparison(ctypes.Structure):
        _fields_ = [("argument", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]

    def __init__(self, settings):
        self.library = ctypes.CDLL("libseccomp.so.2")
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(self.DENY)))
        conditions = {}
        if "RestrictAddressFamilies" in settings:
            families = [getattr(socket, name) for name in settings["RestrictAddressFamilies"].split()]
            conditions["socket"] = [self.Comparison(0, self.EQUAL, family) for family in families]
        if settings.get("MemoryDenyWriteExecute") == "yes":
            conditions["mprotect"] = [self.Comparison(2, self.MASKED_EQUAL, mmap.PROT_EXEC, 0)]
            conditions["mmap"] = [self.Comparison(2, self.MASKED_EQUAL, bit, 0) for bit in (mmap.PROT_EXEC, mmap.PROT_WRITE)]
        for name in system_calls(settings["SystemCallFilter"].split()):
            number = self.library.seccomp_syscall_resolve_name(name.encode())
            if number < 0:  # of other processors, or newer than the library
                continue
            for condition in conditions.get(name, [None]):
                array = (self.Comparison * 1)(condition) if condition else None
                status = self.library.seccomp_rule_add_array(self.context, ctypes.c_uint32(self.ALLOW), number, 1 if condition else 0, array)
                if status != 0:
                    raise OSError(-status, "seccomp rule for " + name)

    def load(self):
        """For the process that is about to become the command: no_new_privs is set by the library."""
        if self.library.seccomp_load(self.context) != 0:
            os._exit(125)


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

    def test_finding_an_agent_is_not_switched_off(self):
        """An output that is named takes the profiles, and no agent is looked for."""
        self.assertNotIn("-output", unit_settings()["ExecStart"])
        self.assertEqual(unit_settings()["EnvironmentFile"], "-/etc/default/ddprof")
        for name in os.listdir(os.path.join(PACKAGING, "kubernetes")):
            self.assertNotIn("--output", str(profiler_of(manifest(name))))

    def test_the_image_can_be_built_and_knows_certificates(self):
        """The images of Debian have neither make nor /etc/ssl/certs. tools/bare_root.sh image takes the steps."""
        lines = harness.read_text(os.path.join(PACKAGING, "Dockerfile")).split("\nFROM ")
        build, last = lines[1], lines[2]
        self.assertRegex(build, r"RUN .*install .*\bmake\b[^&]*\n(.*\n)*RUN make build")
        self.assertRegex(last, r"RUN .*install .*\bca-certificates\b")

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


@unittest.skipUnless(harness.IS_ROOT, "needs root, to give some of its capabilities to others")
@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
class Unit(harness.SystemTest):
    """The unit's command with the unit's capabilities under the unit's system call filter, as nobody, in an environment of systemd."""

    def setUp(self):
        self.target = subprocess.Popen([self.puppet("traced"), "60"])
        self.addCleanup(self.target.wait)
        self.addCleanup(self.target.kill)
        self.state = self.path("unit-%d/ddprof" % next(self.numbers))
        os.makedirs(self.state, 0o700)
        os.chmod(os.path.dirname(self.state), 0o755)
        os.chown(self.state, harness.NOBODY, harness.NOBODY)

    def run_unit(self, *options, words=None, environment=()):
        settings = unit_settings()
        settings["SystemCallFilter"] = words or settings["SystemCallFilter"]
        command = shlex.split(settings["ExecStart"])
        # The home of a dynamic user is /.
        environment = dict({"HOME": "/", "STATE_DIRECTORY": self.state, "PATH": os.environ["PATH"], "DD_PROFILING_FIND_AGENT": "false"}, **dict(environment))
        prefix = with_capabilities(settings["CapabilityBoundingSet"].split(), harness.NOBODY)
        load = UnitFilter(settings).load
        with harness.paranoid(2):
            result = self.run_command([*prefix, self.binary, *command[1:], "-d", "2", "-F", "499", "--include", "name:traced", *options],
                                      env=environment, preexec_fn=load)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def profiles(self):
        paths = [os.path.join(self.state, name) for name in os.listdir(self.state) if name.endswith(".pb.gz")]
        self.assertTrue(paths, os.listdir(self.state))
        return [harness.pprof.read(path) for path in paths]

    def test_samples_and_their_traces_are_in_the_units_folder(self):
        result = self.run_unit()
        counts = test_thread_context.Counts(*self.profiles())
        self.assertEqual(counts.wrong, 0, counts)
        self.assertGreater(counts.right, counts.missing, "%s %s" % (counts, result.stderr))

    def test_without_bpf_there_would_be_no_traces(self):
        """That the filter is one: the same run, with the call taken out of it."""
        words = unit_settings()["SystemCallFilter"].replace(" bpf ", " ")
        self.run_unit(words=words)
        counts = test_thread_context.Counts(*self.profiles())
        self.assertEqual(counts.right, 0, counts)
        self.assertGreater(counts.missing, 0, counts)

    def test_an_agent_that_a_variable_names_gets_the_profiles(self):
        """As a line of /etc/default/ddprof would; by name, so that the C library asks the system for addresses."""
        receiver = agent.Agent(self)
        self.run_unit(environment={"DD_TRACE_AGENT_URL": receiver.url.replace("127.0.0.1", "localhost")})
        self.assertTrue(receiver.posts)
        self.assertEqual([name for name in os.listdir(self.state) if name.endswith(".pb.gz")], [])


class Installation(unittest.TestCase):
    """tools/install.sh, which `make install` and `make uninstall` call: it writes what the program prints, and removes just that."""

    # A program with the three options that the installation asks for.
    STAND_IN = """#!/bin/sh
case "$*" in
  --help-commands) printf 'record\\nreport\\n' ;;
  --help-man | "record --help-man" | "report --help-man") echo ".TH $1" ;;
  "completion bash" | "completion zsh" | "completion fish") echo "# $2" ;;
  *) exit 2 ;;
esac
"""
    PAGES = "share/man/man1/"
    LIBRARY = ["lib/libddprof.so", "include/ddprof.h", "include/ddprof.hpp", "lib/pkgconfig/ddprof.pc", "lib/cmake/ddprof/ddprof-config.cmake",
               "lib/cmake/ddprof/ddprof-config-version.cmake"]
    COMPLETIONS = {"bash": "share/bash-completion/completions/ddprof", "zsh": "share/zsh/site-functions/_ddprof",
                   "fish": "share/fish/vendor_completions.d/ddprof.fish"}

    def setUp(self):
        self.tree = tempfile.mkdtemp(prefix="ddprof_install_")
        self.addCleanup(shutil.rmtree, self.tree)
        self.prefix = os.path.join(self.tree, "stage dir/usr")
        for folder in ("tools", "build/release"):
            os.makedirs(os.path.join(self.tree, folder))
        shutil.copy2(os.path.join(harness.REPOSITORY, "tools", "install.sh"), os.path.join(self.tree, "tools"))
        self.program = os.path.join(self.tree, "build/release/ddprof")
        for folder in ("include", "packaging"):
            os.symlink(os.path.join(harness.REPOSITORY, folder), os.path.join(self.tree, folder))
        shutil.copy2(os.path.join(os.path.dirname(harness.PUPPETS), "libddprof.so"), os.path.dirname(self.program))

    def run_script(self, action):
        return subprocess.run([os.path.join(self.tree, "tools/install.sh"), action, self.prefix], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def files(self):
        return {os.path.relpath(os.path.join(folder, name), self.prefix) for folder, _, names in os.walk(self.prefix) for name in names}

    def text(self, path):
        return harness.read_text(os.path.join(self.prefix, path))

    def write_stand_in(self, text=STAND_IN):
        with open(self.program, "w") as file:
            file.write(text)
        os.chmod(self.program, 0o755)

    def assert_removed_but_for(self, others):
        result = self.run_script("uninstall")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(self.files(), others)

    def test_what_was_installed_is_removed_and_nothing_else(self):
        self.write_stand_in()
        result = self.run_script("install")
        self.assertEqual(result.returncode, 0, result.stdout)
        pages = {self.PAGES + name for name in ("ddprof.1", "ddprof-record.1", "ddprof-report.1")}
        self.assertEqual(self.files(), {"bin/ddprof", *self.LIBRARY, *self.COMPLETIONS.values(), *pages})
        self.assertEqual(self.text(self.PAGES + "ddprof-report.1"), ".TH report\n")
        self.assertEqual(self.text(self.COMPLETIONS["zsh"]), "# zsh\n")
        others = {self.PAGES + "ddprof-extra.1", "bin/ddprof-tool"}
        for path in others:
            with open(os.path.join(self.prefix, path), "w"):
                pass
        os.unlink(self.program)  # after make clean, the program that was installed tells what there is
        self.assert_removed_but_for(others)
        self.assert_removed_but_for(others)

    def test_a_program_that_does_not_tell_its_commands_is_not_installed(self):
        self.write_stand_in("#!/bin/sh\nexit 2\n")
        self.assertEqual(self.run_script("install").returncode, 1)
        self.assertEqual(self.files(), set())

    def test_the_built_program_tells_what_is_installed(self):
        shutil.copy2(harness.BINARY, self.program)
        commands = subprocess.run([self.program, "--help-commands"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if commands.returncode != 0:
            self.skipTest("this program has no --help-commands")
        result = self.run_script("install")
        self.assertEqual(result.returncode, 0, result.stdout)
        for command in commands.stdout.split():
            self.assertIn(".TH", self.text(self.PAGES + "ddprof-%s.1" % command))
        for path in self.COMPLETIONS.values():
            self.assertIn("ddprof", self.text(path))
        self.assert_removed_but_for(set())


class Bootstrap(unittest.TestCase):
    """tools/bootstrap.sh where packages are missing, and the user may not install any."""

    def test_without_sudo_one_line_says_what_to_type(self):
        folder = tempfile.mkdtemp(prefix="ddprof_bootstrap_")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        # A machine without any of the packages, and without sudo.
        for name, text in (("dpkg-query", "exit 1"), ("apt-get", "echo called >&2; exit 100"), ("id", "echo 1000")):
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n%s\n" % text)
            os.chmod(path, 0o755)
        for name in ("sh", "grep", "sed"):
            os.symlink(shutil.which(name), os.path.join(folder, name))
        result = subprocess.run(["/bin/sh", os.path.join(harness.REPOSITORY, "tools", "bootstrap.sh"), "build"], env={"PATH": folder},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Abootstrap: packages are missing, .*root or sudo; as root: apt-get update && apt-get install .* g\+\+ .*libdw-dev\n\Z")


class Demo(unittest.TestCase):
    """tools/demo.sh, the end of `make demo`, for a user to whom the kernel gives no perf events, as Debian's kernels do."""

    # Runs the program, but leaves a profile only for root, as `ddprof record` does.
    PROFILER = """#!/bin/sh
if [ "$1" = report ]; then echo "report as ${DEMO_USER:-user}"; exit; fi
[ -z "${DEMO_USER:-}" ] || echo samples >"$3"
echo "record as ${DEMO_USER:-user}: not permitted" >&2
"""

    def test_a_user_who_may_not_profile_sees_it_with_sudo(self):
        tree = tempfile.mkdtemp(prefix="ddprof_demo_")
        self.addCleanup(shutil.rmtree, tree)
        for folder in ("tools", "bin", "build/release"):
            os.makedirs(os.path.join(tree, folder))
        shutil.copy2(os.path.join(harness.REPOSITORY, "tools", "demo.sh"), os.path.join(tree, "tools"))
        for path, text in (("build/release/ddprof", self.PROFILER), ("bin/id", "#!/bin/sh\necho 1000\n"), ("bin/g++", "#!/bin/sh\n"),
                           ("bin/sudo", '#!/bin/sh\nDEMO_USER=root exec "$@"\n')):
            with open(os.path.join(tree, path), "w") as file:
                file.write(text)
            os.chmod(os.path.join(tree, path), 0o755)
        result = subprocess.run([os.path.join(tree, "tools/demo.sh")], env={"PATH": os.path.join(tree, "bin") + ":" + os.environ["PATH"]},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("record as user: not permitted\n\nThe demo goes on with sudo:\n", result.stdout)
        self.assertIn("$ sudo ddprof report build/demo/shop.pb.gz\nreport as root\n", result.stdout)


class BuildPackages(unittest.TestCase):
    """tools/check_packages.py finds what the build reads and the list does not name."""

    def check(self, *options):
        if not os.path.exists(os.path.join(harness.REPOSITORY, "build", "release", ".ninja_deps")):
            self.skipTest("no release build in build/release")
        result = subprocess.run([os.path.join(harness.REPOSITORY, "tools", "check_packages.py"), *options], stdout=subprocess.PIPE, text=True)
        if result.returncode == 77:
            self.skipTest(result.stdout.strip())
        return result

    def test_the_list_is_enough(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_package_that_the_list_forgets_is_named(self):
        for package, file in (("libdw-dev", "/usr/include/dwarf.h"), ("libzstd-dev", "libzstd.a")):
            result = self.check("--without", package)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertRegex(result.stdout, r"(?m)^%s is not in the build list.*%s" % (re.escape(package), re.escape(file)))


if __name__ == "__main__":
    unittest.main()
