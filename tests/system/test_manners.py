"""A program cannot tell whether it was started by ddprof, whatever state it was started in. The checker reports all that a
program inherits; its report must be the same, byte for byte, with and without the profiler."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

import harness

IN_PID_NAMESPACE = ["unshare", "--fork", "--pid", "--mount-proc", "--"]


def close_streams(*descriptors):
    return lambda: [os.close(descriptor) for descriptor in descriptors]


def ignore(*signals):
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in signals]


def block(*signals):
    return lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signals)


class Manners(harness.SystemTest):
    @property
    def report_path(self):
        return self.path("report.json")

    def report(self, command, folder=None, **options):
        """What the checker says when it is started so. Process ids and the numbers of pipes differ from run to run."""
        inside = folder or self.folder
        options.setdefault("env", {"PATH": os.environ["PATH"], "HOME": self.folder, "EMPTY": "", "ODD": 'a "quoted" = value'})
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.report_path)
        self.puppet("checker")
        result = self.run_command([*command, inside + "/puppets/checker", "to=%s/report.json" % inside, "an argument", "-x", "--", "last"], **options)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        return result, self.normal(harness.read_text(self.report_path))

    @staticmethod
    def normal(text):
        text = re.sub(r'^"pid": \d+, "ppid": (\d+)', lambda ids: '"parent": "%s"' % ("test" if ids[1] == str(os.getpid()) else "another"), text, flags=re.MULTILINE)
        return re.sub(r"(pipe|socket):\[\d+\]", r"\1", text)

    def assert_unnoticed(self, prefix=(), folder=None, expect_profile=True, change=lambda text: text, said="", **options):
        """Plain, wrapped, and wrapped with profiling off: the same report; and the profiler did its work."""
        inside = folder or self.folder
        profile = "%d.pb.gz" % next(self.numbers)
        _, plain = self.report(prefix, folder, **options)
        result, wrapped = self.report([*prefix, inside + "/ddprof", "-q", "-O", inside + "/" + profile], folder, **options)
        self.assertEqual(change(wrapped), change(plain))
        if said:
            self.assert_one_clear_line(result.stderr, said)
        else:
            self.assertEqual(result.stderr, "")
        if expect_profile:
            harness.wait_for(lambda: os.path.exists(self.path(profile)), 20, "the profile")
        self.wait_until_profiler_ends()
        self.assertEqual(os.path.exists(self.path(profile)), expect_profile, "a profile was not to be expected")
        result, disabled = self.report([*prefix, inside + "/ddprof", "--enable=false"], folder, **options)
        self.assertEqual((change(disabled), result.stderr), (change(plain), ""))


class Checker(Manners):
    def test_the_checker_sees_what_it_should(self):
        """A judge that sees nothing finds no fault."""
        _, plain = self.report([])
        for prefix, line in ((["nice", "-n", "3"], '"nice": 3'), (["setpriv", "--no-new-privs"], '"no_new_privs": 1'), (["setsid"], '"sid": "self"'),
                             (["taskset", "1"], '"cpus": [0]'), (["env", "MORE=1"], '"MORE=1"'), (["prlimit", "--core=1:1"], "[1, 1]")):
            _, other = self.report(prefix)
            self.assertIn(line, other)
            self.assertNotEqual(other, plain, prefix)


class Streams(Manners):
    def test_open(self):
        self.assert_unnoticed()

    def test_closed_input(self):
        self.assert_unnoticed(preexec_fn=close_streams(0))

    def test_closed_output(self):
        self.assert_unnoticed(preexec_fn=close_streams(1))

    def test_closed_errors(self):
        self.assert_unnoticed(preexec_fn=close_streams(2))

    def test_all_closed(self):
        self.assert_unnoticed(preexec_fn=close_streams(0, 1, 2))

    def test_input_that_is_a_file_is_not_read(self):
        with open(__file__) as file:
            self.assert_unnoticed(stdin=file, preexec_fn=lambda: os.lseek(0, 7, os.SEEK_SET))

    def test_more_descriptors(self):
        with open(__file__) as file:
            self.assert_unnoticed(pass_fds=[file.fileno()], preexec_fn=lambda: os.dup2(file.fileno(), 100))

    def test_a_message_that_nobody_can_read(self):
        """An error that cannot be said is no reason to fail: a pipe without reader, a full disk, a stream for reading."""
        def without_reader():
            reader, writer = os.pipe()
            os.dup2(writer, 2)
            os.close(reader)
            os.close(writer)

        def read_only():
            os.dup2(os.open("/dev/null", os.O_RDONLY), 2)

        def full():
            os.dup2(os.open("/dev/full", os.O_WRONLY), 2)

        for preparation in (without_reader, read_only, full, close_streams(2)):
            with self.subTest(preparation):
                result = self.ddprof("-O", "/no/such/folder/x.pb.gz", self.puppet("cold_exit"), "code", "7", preexec_fn=lambda: (signal.signal(signal.SIGPIPE, signal.SIG_DFL), preparation()))
                self.assertEqual(result.returncode, 7)


class Signals(Manners):
    def test_nohup(self):
        self.assert_unnoticed(["nohup"])

    def test_ignored(self):
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                self.assert_unnoticed(preexec_fn=ignore(number))

    def test_blocked(self):
        self.assert_unnoticed(preexec_fn=block(signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1, signal.SIGSEGV))

    def test_blocked_and_pending(self):
        def pend():
            block(signal.SIGPIPE, signal.SIGUSR1, signal.SIGCHLD)()
            for number in (signal.SIGPIPE, signal.SIGUSR1):
                os.kill(os.getpid(), number)

        self.assert_unnoticed(preexec_fn=pend)

    def test_children_of_before(self):
        """A shell may start something and then become the target: that child is the target's. To tell it from ours we must
        wait for ours as everybody does, which adds to what the target's children used."""
        script = 'sleep 0.01 & exec "$@"'
        self.assert_unnoticed(["sh", "-c", script, "sh"], change=lambda text: re.sub('"had_children": (true|false)', "", text))


class Surroundings(Manners):
    def test_a_session_of_its_own(self):
        self.assert_unnoticed(["setsid"])
        self.assert_unnoticed(start_new_session=True)

    def test_scheduling_and_personality(self):
        self.assert_unnoticed(["nice", "-n", "5", "ionice", "-c", "3", "chrt", "--batch", "0", "taskset", "1", "setarch", "-R"])

    def test_no_new_privileges(self):
        self.assert_unnoticed(["setpriv", "--no-new-privs"])

    def test_an_umask_and_a_folder(self):
        self.assert_unnoticed(umask=0o077, cwd="/usr")

    def test_a_folder_that_is_gone(self):
        self.assert_unnoticed(["sh", "-c", 'mkdir -p gone && cd gone && rmdir ../gone && exec "$@"', "sh"])

    def test_few_descriptors(self):
        """Too few for the profiler: said in one line, and the target runs with its own limit."""
        self.assert_unnoticed(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)), expect_profile=False, said="descriptors|open files")

    @harness.needs_root
    def test_no_process_left(self):
        """The limit counts processes of a user who is not root, and has one: this."""
        self.assert_unnoticed(["prlimit", "--nproc=1:1", "setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--"], expect_profile=False,
                              said="running without profiling: fork")

    def test_little_memory(self):
        self.assert_unnoticed(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))

    def test_an_unprivileged_user(self):
        self.assert_unnoticed(harness.unprivileged([]))

    def test_under_a_reaper(self):
        """A target that adopts its orphans would adopt the profiler."""
        script = ("import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])")
        self.assert_unnoticed(["/usr/bin/python3", "-c", script], change=without_silent_child)


KILL_THE_PROFILER = """
import os, signal, sys
signals = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
def profilers(binary):
    return [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and os.path.exists('/proc/%s/exe' % pid) and os.readlink('/proc/%s/exe' % pid) == binary]
while len(profilers(sys.argv[1])) < 2:
    pass
found = sorted(profilers(sys.argv[1]))[1 if sys.argv[2] == 'worker' else 0:]  # the supervisor was first
for how in (signal.SIGSTOP, signal.SIGKILL):  # a worker whose supervisor is gone would end by itself
    for pid in found:
        os.kill(pid, how)
def has_ended(pid):
    try:
        return 'zombie' in open('/proc/%d/status' % pid).read()
    except OSError:
        return True
while not all(has_ended(pid) for pid in found):
    pass
try:
    print('waited for', os.wait())
except ChildProcessError:
    print('no child, signals:', signals)
"""


def without_silent_child(text):
    """Where there is no other parent the profiler is a child of the target, but one that wait() does not know."""
    return text.replace('"has_silent_children": true', '"has_silent_children": false')


def without_namespace_numbers(text):
    return re.sub(r"\w+:\[\d+\]", "namespace", text)


@unittest.skipUnless(harness.IS_ROOT, "needs root, to build such places")
class Places(Manners):
    def assert_unnoticed_where(self, mounts, **options):
        """In a mount namespace of its own, after these commands. The test's folder is at /mnt too."""
        script = 'mount --bind "%s" /mnt && cd / && %s && exec "$@"' % (self.folder, mounts)
        self.assert_unnoticed(["unshare", "--mount", "--", "sh", "-c", script, "sh"], folder="/mnt", change=without_namespace_numbers, **options)

    def test_a_mount_namespace(self):
        self.assert_unnoticed_where("true")

    def test_a_root_that_is_read_only(self):
        self.assert_unnoticed_where("mount -o remount,bind,ro /")

    def test_a_tmp_without_programs(self):
        self.assert_unnoticed_where("mount -t tmpfs -o noexec,ro tmpfs /tmp")

    def test_no_settings_of_the_kernel(self):
        self.assert_unnoticed_where("mount -t tmpfs -o ro tmpfs /proc/sys")

    def test_no_proc(self):
        self.assert_unnoticed_where("mount -t tmpfs -o ro tmpfs /proc")

    def test_no_devices(self):
        self.assert_unnoticed_where("mount -t tmpfs -o ro tmpfs /dev")

    def test_a_bare_root(self):
        """A chroot with nothing in it but the two programs and the C library: no /proc, /dev, /tmp or /etc."""
        root = self.path("bare")
        os.makedirs(os.path.join(root, "mnt"), exist_ok=True)
        listed = subprocess.run(["ldd", self.binary], stdout=subprocess.PIPE, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            os.makedirs(root + os.path.dirname(library), exist_ok=True)
            shutil.copy2(os.path.realpath(library), root + library)
        script = 'mount --bind "%s" "%s/mnt" && exec chroot "%s" "$@"' % (self.folder, root, root)
        self.assert_unnoticed(["unshare", "--mount", "--", "sh", "-c", script, "sh"], folder="/mnt", change=without_namespace_numbers)

    def test_nowhere_to_write(self):
        result = self.run_command(["unshare", "--mount", "--", "sh", "-c", 'mount --bind "%s" /mnt && mount -o remount,bind,ro /mnt && exec "$@"' % self.folder, "sh",
                                   "/mnt/ddprof", "-O", "/mnt/x.pb.gz", self.puppet("cold_exit"), "code", "7"])
        self.assertEqual(result.returncode, 7)
        self.assert_one_clear_line(result.stderr, "running without profiling", "read-only")

    def test_a_program_that_is_gone(self):
        """In a mount namespace that nobody else sees, and deleted by itself as soon as it runs."""
        path = self.path("gone.pb.gz")
        delete_and_run = "exec 9</mnt/program; rm /mnt/program; exec /proc/self/fd/9 1 0.5"
        script = 'mount -t tmpfs tmpfs /mnt && cp "%s" /mnt/program && exec "%s" -q -F 499 -O "%s" sh -c "%s"' % (self.puppet("split"), self.binary, path, delete_and_run)
        result = self.run_command(["unshare", "--mount", "--", "sh", "-c", script])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.wait_until_profiler_ends()
        self.assert_sampled(harness.Recording(result, path), 0.5 * 0.7 * 499, "spend_70")


@unittest.skipUnless(harness.IS_ROOT, "needs root, to make PID namespaces")
class FirstProcess(Manners):
    """Init of a PID namespace, as the first process of a container is."""

    def test_sees_no_child(self):
        self.assert_unnoticed(IN_PID_NAMESPACE, expect_profile=False, said="takes the profiler with it", change=lambda text: without_silent_child(without_namespace_numbers(text)))

    def test_leaves_the_profiles_of_the_periods_that_it_lived_through(self):
        folder = self.path("periods")
        os.makedirs(folder, exist_ok=True)
        result = self.run_command([*IN_PID_NAMESPACE, self.binary, "-q", "-u", "1", "-O", folder, self.puppet("split"), "1", "3"])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        profiles = sorted(name for name in os.listdir(folder) if name.endswith(".pb.gz"))
        self.assertTrue(profiles)
        recording = harness.Recording(result, os.path.join(folder, profiles[0]))
        self.assertGreater(recording.count("spend_70"), 0)

    def kill_profiler(self, which):
        return self.run_command([*IN_PID_NAMESPACE, self.binary, "-q", "-O", self.folder, "/usr/bin/python3", "-c", KILL_THE_PROFILER, self.binary, which])

    def test_has_no_child_when_the_worker_is_killed(self):
        result = self.kill_profiler("worker")
        self.assertEqual((result.returncode, result.stdout), (0, "no child, signals: []\n"), result.stderr)

    def test_inherits_a_worker_whose_supervisor_is_killed(self):
        """As it inherits every orphan of its namespace."""
        result = self.kill_profiler("all")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^waited for \(\d+, 9\)\n$")

    def test_that_records_reaps_what_it_inherits(self):
        """In front, ddprof is init itself: a daemon of the target that ends must not stay as a zombie."""
        script = "(setsid sh -c 'exit 0' &) ; sleep 0.3; grep -l '^State:.*zombie' /proc/[0-9]*/status; true"
        result = self.run_command([*IN_PID_NAMESPACE, self.binary, "record", "-q", "-O", self.path("init.pb.gz"), "sh", "-c", script])
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_that_records_writes_the_profile(self):
        path = self.path("recorded.pb.gz")
        result = self.run_command([*IN_PID_NAMESPACE, self.binary, "record", "-q", "-O", path, self.puppet("split"), "1", "0.5"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_sampled(harness.Recording(result, path), 0.7 * 0.5 * 99, "spend_70")


class Starters(Manners):
    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest("no %s here" % program)

    def test_tini(self):
        self.needs("tini")
        self.assert_unnoticed(["tini", "-s", "--"], change=without_own_group)

    @harness.needs_root
    def test_tini_as_init(self):
        """When its child ends so does tini, and with it everything in the namespace: profiles of whole periods are what is left."""
        self.needs("tini")
        _, plain = self.report([*IN_PID_NAMESPACE, "tini", "--"])
        result, wrapped = self.report([*IN_PID_NAMESPACE, "tini", "--", self.binary, "-q", "-O", self.path("tini.pb.gz")])
        self.assertEqual((without_namespace_numbers(wrapped), result.stderr), (without_namespace_numbers(plain), ""))

    @harness.needs_root
    def test_sudo(self):
        self.needs("sudo")
        for user in ("root", "nobody"):
            with self.subTest(user):
                self.assert_unnoticed(["sudo", "-n", "-u", user], change=lambda text: re.sub(r'"SUDO_COMMAND=(\\.|[^"\\])*"', "", without_own_group(text)))


def without_own_group(text):
    """Some starters give each program a process group of its own, which has its number."""
    return re.sub(r'"(pgid|sid)": ("self"|\d+)', "", text)


if __name__ == "__main__":
    unittest.main()
