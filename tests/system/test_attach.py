"""Attaching to what runs already: processes with all their threads and children, a container, or the whole host."""

import contextlib
import glob
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import harness


TICK = 1 / os.sysconf("SC_CLK_TCK")


class AttachTest(harness.SystemTest):
    def start(self, name, *arguments, as_nobody=False, **options):
        command = [self.puppet(name), *arguments]
        process = subprocess.Popen(harness.unprivileged(command) if as_nobody else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def attach(self, *options, as_nobody=False, **run_options):
        path = self.path("attached_%d.pb.gz" % next(self.numbers))
        command = [self.binary, *options, "-O", path]
        result = self.run_command(harness.unprivileged(command) if as_nobody else command, **run_options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)


class Attach(AttachTest):
    def test_every_one_of_two_hundred_threads_is_sampled(self):
        target = self.start("many_threads", "200")
        threads = set(json.loads(target.stdout.readline())["tids"])
        recording = self.attach("-p", str(target.pid), "-d", "4", "-F", "999")
        sampled = {s.labels[harness.THREAD_ID] for s in recording.samples() if recording.has(s, "burn_forever")}
        self.assertEqual(threads - set(map(int, sampled)), set())
        self.assertEqual(recording.labels(harness.PROCESS_NAME), {"many_threads"})
        self.assertIn("worker-7", recording.labels(harness.THREAD_NAME))
        self.assertIsNone(target.poll(), "the target must survive its profiler")

    def test_threads_born_while_attaching_are_sampled(self):
        target = self.start("many_threads", "20")
        target.stdout.readline()
        path = self.path("late.pb.gz")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-d", "4", "-F", "999", "-O", path],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        late = set()
        for _ in range(5):
            target.send_signal(signal.SIGUSR1)
            late |= set(json.loads(target.stdout.readline())["tids"])
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        sampled = {int(s.labels[harness.THREAD_ID]) for s in recording.samples()}
        self.assertEqual(late - sampled, set())

    def test_it_ends_with_the_target(self):
        target = self.start("cold_exit", "stdin")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-d", "600", "-O", self.path("ended.pb.gz")],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(profiler.kill)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        target.communicate()
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)

    def test_an_interrupt_ends_it_with_a_profile(self):
        target = self.start("many_threads", "2")
        target.stdout.readline()
        path = self.path("interrupted.pb.gz")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-O", path], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        time.sleep(0.5)  # what is collected, not a synchronisation
        profiler.send_signal(signal.SIGINT)
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertTrue(os.path.exists(path), stderr)
        self.assertIsNone(target.poll())

    def test_a_pid_that_does_not_exist_is_named(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        result = self.ddprof("-p", str(gone.pid), "-d", "1", "-O", self.path("none.pb.gz"))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, str(gone.pid), "no such process|does not exist|no process")

    def test_a_process_of_another_user_is_refused_with_the_reason(self):
        if not harness.IS_ROOT:
            self.skipTest("needs root, to own the target while another user attaches")
        target = self.start("cold_exit", "stdin")
        with harness.paranoid(2):
            command = [self.binary, "-p", str(target.pid), "-d", "1", "-O", self.path("other.pb.gz")]
            result = self.run_command(harness.unprivileged(command))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, str(target.pid), "permi|another user")

    @harness.needs_root
    def test_the_whole_host_is_seen(self):
        target = self.start("many_threads", "2")
        target.stdout.readline()
        recording = self.attach("-g", "-d", "2", "-F", "199")
        self.assertIn("many_threads", recording.labels(harness.PROCESS_NAME))
        self.assert_sampled(recording, 2 * 199, "burn_forever")

    def test_the_whole_host_is_refused_without_privileges(self):
        with harness.paranoid(2):
            command = [self.binary, "-g", "-d", "1", "-O", self.path("host.pb.gz")]
            result = self.run_command(harness.unprivileged(command))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, "perf_event_paranoid|CAP_PERFMON|root")


class Children(AttachTest):
    """Masters that only wait, and busy children that were there before anybody looked."""

    def master(self, **options):
        process = self.start("master", **options)
        facts = json.loads(process.stdout.readline())
        return process, facts["pid"], facts["workers"], facts["grandchild"]

    def pids(self, recording, function=None):
        return {int(s.labels[harness.PROCESS_ID]) for s in recording.samples() if function is None or recording.has(s, function)}

    def check_the_whole_tree(self, as_nobody):
        _, master, workers, grandchild = self.master(as_nobody=as_nobody)
        family = [master, *workers, grandchild]
        begin, before, stolen = time.monotonic(), measured(family), harness.stolen()
        recording = self.attach("record", "-p", str(master), "-d", "3", "-F", "499", as_nobody=as_nobody)
        charged, seconds, stolen = measured(family) - before, time.monotonic() - begin, harness.stolen() - stolen
        self.assertEqual(self.pids(recording), {*workers, grandchild})
        self.assertEqual(self.pids(recording, "work_in_grandchild"), {grandchild})
        threads = {s.labels[harness.THREAD_ID] for s in recording.samples() if int(s.labels[harness.PROCESS_ID]) in workers}
        self.assertEqual(len(threads), 4)
        # The tree uses about as much at any time, also while the profiler starts and ends. A tick of each process is the clock's.
        share = charged * recording.profile.duration_ns / 1e9 / seconds
        self.assertLess(recording.cpu_ns() / 1e9, min(share * 1.25, charged) + len(family) * TICK + stolen)
        self.assertGreater(recording.cpu_ns() / 1e9, share * 0.75 - len(family) * TICK)
        self.assertRegex(recording.stderr, r"process %d \(master\) was idle: all samples are of 3 processes that it started" % master)

    def test_children_that_were_there_before_are_in_the_profile(self):
        self.check_the_whole_tree(as_nobody=False)

    def test_children_are_in_the_profile_of_an_ordinary_user_too(self):
        with harness.paranoid(2):
            self.check_the_whole_tree(as_nobody=True)

    def test_children_of_later_are_in_the_profile_and_it_ends_with_the_last_one(self):
        process, master, workers, grandchild = self.master()
        path = self.path("late_worker.pb.gz")
        profiler = subprocess.Popen([self.binary, "-p", str(master), "-F", "499", "-O", path], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(profiler.kill)
        harness.wait_for(lambda: is_attached(profiler.pid, tasks=6), 20, "the profiler to attach")
        process.send_signal(signal.SIGUSR1)
        late = json.loads(process.stdout.readline())["late"]
        time.sleep(0.5)  # what is collected, not a synchronisation
        process.kill()
        process.wait()  # the kernel ends the children with it
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        self.assertEqual(self.pids(recording), {*workers, grandchild, late})

    def test_only_the_process_itself_where_that_is_asked_for(self):
        _, master, workers, grandchild = self.master()
        recording = self.attach("record", "-p", str(workers[0]), "--no-children", "-d", "1", "-F", "499")
        self.assertEqual(self.pids(recording), {workers[0]})
        self.assertNotIn("was idle", recording.stderr)

    def test_several_processes_by_number_and_by_name(self):
        program = self.path("m_" + secrets.token_hex(4))
        shutil.copy2(self.puppet("master"), program)
        _, _, workers, grandchild = self.master(executable=program)
        recording = self.attach("record", "-p", "%d,%d" % (workers[1], grandchild), "-d", "1", "-F", "499")
        self.assertEqual(self.pids(recording), {workers[1], grandchild})
        for name in (os.path.basename(program), os.path.basename(program)[:-1] + "*"):
            recording = self.attach("record", "-p", "name:" + name, "-d", "1", "-F", "499")
            self.assertEqual(self.pids(recording), {*workers, grandchild})
            self.assertNotIn("was idle", recording.stderr)  # the busy ones were named too

    def test_a_shell_that_attaches_to_itself_does_not_profile_the_profiler(self):
        path = self.path("shell.pb.gz")
        script = '"$0" 1 60 >/dev/null & "$1" record -p $$ -d 1 -F 499 -O "$2"; status=$?; kill $!; exit $status'
        result = self.run_command(["sh", "-c", script, self.puppet("split"), self.binary, path])
        self.assertEqual(result.returncode, 0, result.stderr)
        recording = harness.Recording(result, path)
        self.assertEqual({s.labels[harness.PROCESS_NAME] for s in recording.samples()}, {"split"})

    def test_files_are_named_after_what_was_named(self):
        _, master, _, _ = self.master()
        for option, name in ((str(master), "master-"), ("name:master", "master-")):
            profiles = self.path("by_name_%d" % next(self.numbers))
            os.mkdir(profiles)
            result = self.ddprof("-p", option, "-d", "1", "-O", profiles + "/")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(glob.glob(os.path.join(profiles, name + "*.pb.gz")), os.listdir(profiles))

    def test_who_cannot_be_found_is_named_and_nothing_starts(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        _, master, _, _ = self.master()
        for option, words in (("-p=%d,%d" % (master, gone.pid), ("process %d: no such process" % gone.pid,)),
                              ("-p=name:no_such_program", ("no process has that name", "ps -e")),
                              ("--container=no_such_container", ("no_such_container: no",))):
            path = self.path("nothing.pb.gz")
            result = self.ddprof("record", *option.split("=", 1), "-d", "5", "-O", path)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assert_one_clear_line(result.stderr, *words)
            self.assertFalse(os.path.exists(path))
        for wrong in ("12,", "nginx", "0"):
            self.assertEqual(self.ddprof("record", "-p", wrong).returncode, 2)

    @harness.needs_root
    def test_a_process_of_another_user_is_told_at_once_and_the_others_are_sampled(self):
        _, foreign, _, _ = self.master()
        _, master, workers, grandchild = self.master(as_nobody=True)
        with harness.paranoid(2):
            recording = self.attach("record", "-p", "%d,%d" % (foreign, master), "-d", "1", "-F", "499", as_nobody=True)
        self.assertEqual(self.pids(recording), {*workers, grandchild})
        first = recording.stderr.splitlines()[0]
        self.assertRegex(first, r"attach to process %d \(master\): .*another user" % foreign)
        self.assertRegex(recording.stderr.splitlines()[1], "try: run ddprof as root or as the user of the process")
        self.assertIn("not sampled: 4 processes that could not be attached to", recording.stderr)

    @harness.needs_root
    def test_all_processes_of_a_container(self):
        hierarchy = next((path for path in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified") if os.path.ismount(path)), "/sys/fs/cgroup")
        container, name = secrets.token_hex(32), "web-" + secrets.token_hex(4)
        folder = os.path.join(hierarchy, container)
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest("cannot make a control group: %s" % error)
        self.addCleanup(lambda: harness.wait_for(lambda: removed(folder), 10, "an empty control group"))
        enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder]
        process = subprocess.Popen([*enter, self.puppet("master")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=dict(self.environment(), HOSTNAME=name))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        facts = json.loads(process.stdout.readline() or self.skipTest("cannot enter a control group"))
        for given in (container[:12], name):
            recording = self.attach("record", "--container", given, "-d", "1", "-F", "499")
            self.assertEqual(self.pids(recording), {*facts["workers"], facts["grandchild"]})
            self.assertEqual(recording.labels("container_id"), {container})
        profiles = self.path("by_container")
        os.mkdir(profiles)
        result = self.ddprof("--container", name, "-d", "1", "-O", profiles + "/")
        self.assertTrue(glob.glob(os.path.join(profiles, name + "-*.pb.gz")), result.stderr)
        result = self.ddprof("record", "--container", "x" + name, "-d", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("%s (%s)" % (container[:12], name), result.stderr)


@unittest.skipUnless(shutil.which("nginx", path="/usr/sbin:/usr/bin"), "needs nginx")
class Nginx(AttachTest):
    def test_requests_are_in_the_profile_of_the_master(self):
        folder = self.path("nginx")
        os.makedirs(os.path.join(folder, "logs"), exist_ok=True)
        os.chmod(folder, 0o777)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(os.path.join(folder, "page"), "w") as file:
            file.write("x" * 200000)
        configuration = os.path.join(folder, "nginx.conf")
        with open(configuration, "w") as file:
            file.write("""worker_processes 2; pid nginx.pid; error_log stderr crit; daemon off;
events { worker_connections 64; }
http { access_log off; gzip on; gzip_comp_level 9; gzip_min_length 1; gzip_types *; default_type text/plain;
       client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
       server { listen 127.0.0.1:%d; root .; } }""" % port)
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
        command = [nginx, "-p", folder, "-c", configuration]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
        self.addCleanup(server.communicate)
        self.addCleanup(server.terminate)
        harness.wait_for(lambda: server.poll() is not None or answers(port), 20, "nginx to answer")
        self.assertIsNone(server.poll())
        is_over = threading.Event()
        clients = [threading.Thread(target=ask_until, args=(port, is_over)) for _ in range(2)]
        for client in clients:
            client.start()
        self.addCleanup(lambda: [client.join() for client in clients])
        self.addCleanup(is_over.set)
        recording = self.attach("record", "-p", str(server.pid), "-d", "2", "-F", "499")
        pids = {int(s.labels[harness.PROCESS_ID]) for s in recording.samples()}
        workers = set(map(int, harness.read_text("/proc/%d/task/%d/children" % (server.pid, server.pid)).split()))
        self.assertTrue(pids)
        self.assertLessEqual(pids, workers)
        self.assertGreater(recording.count(), 20, recording.stderr)
        self.assertRegex(recording.stderr, r"process %d \(nginx\) was idle" % server.pid)
        self.assertEqual(recording.labels(harness.PROCESS_NAME) - {None}, {"nginx"})


def answers(port):
    with contextlib.suppress(OSError):
        return ask(port)
    return False


def ask(port):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
        size = 0
        while data := connection.recv(65536):
            size += len(data)
        return size > 0


def ask_until(port, is_over):
    while not is_over.is_set():
        answers(port)


def measured(pids):
    """Seconds of CPU time that these processes have used, by /proc/PID/stat."""
    ticks = 0
    for pid in pids:
        fields = harness.read_text("/proc/%d/stat" % pid).rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * TICK


def removed(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    return False


def is_attached(pid, tasks=1):
    """Whether the profiler has opened its rings, and events on so many tasks beside them."""
    events = 0
    for link in glob.glob("/proc/%d/fd/*" % pid):
        with contextlib.suppress(OSError):
            events += "perf_event" in os.readlink(link)
    # Per CPU: a ring for samples, one for totals, and an event for each on every task.
    return events >= (2 + 2 * tasks) * os.cpu_count()


if __name__ == "__main__":
    unittest.main()
