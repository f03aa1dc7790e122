"""What a service's log has of its profiler: the start, troubles and their end, the end with totals; and nobody's pipe is held for it."""

import os
import re
import signal
import socket
import subprocess
import unittest

import agent
import harness
import test_outage

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ddprof\[\d+\]: "
START = r"version [\d.]+, profiling sh \(PID \d+\); "
END = r"the end, after [\d.]+ s: [\d,]+ samples, \d+ lost, .*; \d+ profiles? for .*; ddprof [\d.]+ s of CPU, [\d.]+ MiB"
IDLE = ["sh", "-c", "while sleep 0.1; do :; done"]


def answering(number):
    def answer(handler):
        handler.send_response(number)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True
    return answer


class LogTest(harness.SystemTest):
    def start(self, *options, program=IDLE, **streams):
        """A wrapped program with a profile every second."""
        streams.setdefault("stderr", subprocess.DEVNULL)
        streams.setdefault("stdout", subprocess.DEVNULL)
        environment = dict(self.environment(), **streams.pop("env", {}))
        process = subprocess.Popen([self.binary, "-u", "1", *options, *program], stdin=subprocess.DEVNULL, text=True, env=environment, cwd=self.folder, **streams)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        process.terminate()
        process.wait()
        self.wait_until_profiler_ends()

    def wait_for_line(self, path, words):
        return harness.wait_for(lambda: os.path.exists(path) and re.search(words, harness.read_text(path)), 40, "%s in the log" % words)

    def spool(self):
        return ["--spool-dir", self.path("spool%d" % next(self.numbers))]


class StandardError(LogTest):
    """With default settings, `ddprof ./server 2>log.txt` or less."""

    def test_every_trouble_with_an_agent_has_one_line(self):
        peers = {"down": ("http://127.0.0.1:%d" % test_outage.free_port(), "Connection refused"),
                 "slow": (agent.SilentAgent(self).url, "[Nn]o answer|timed? ?out")}
        for number in (500, 404, 403):
            peers[str(number)] = (agent.Agent(self, answer=answering(number)).url, "answered %d" % number)
        running = {}
        for name, (url, _) in peers.items():
            path = self.path("log_%s.txt" % name)
            with open(path, "w") as log:
                running[path] = self.start("-U", url, *self.spool(), stderr=log)
        for path, (url, words) in zip(running, peers.values()):
            with self.subTest(words):
                self.wait_for_line(path, r"(?m)^ddprof: .*(%s)" % words)
        for process in running.values():
            process.terminate()
            process.wait()
        self.wait_until_profiler_ends(60)
        for path, (url, words) in zip(running, peers.values()):
            with self.subTest(words):
                start, trouble, end = harness.read_text(path).splitlines()
                self.assertRegex(start, "^ddprof: " + START + "a profile every 1 s goes to %s$" % url)
                self.assertRegex(trouble, words)
                self.assertRegex(trouble, "; try: ")
                self.assertRegex(end, "^ddprof: " + END + "$")

    def stopped_without(self, pipe):
        """Stops the profilers: what they hold now, they hold for good. One that is just writing a line may go on."""
        profilers = harness.processes_of(self.binary)
        for pid in profilers:
            os.kill(pid, signal.SIGSTOP)
        name = os.readlink("/proc/self/fd/%d" % pipe.fileno())
        if not any(name in harness.descriptors_of(pid) for pid in profilers):
            return profilers
        for pid in profilers:
            os.kill(pid, signal.SIGCONT)
        return None

    def test_a_pipe_has_them_too_and_ends_with_the_program(self):
        port = test_outage.free_port()
        process = self.start("-U", "http://127.0.0.1:%d" % port, *self.spool(), stderr=subprocess.PIPE)
        self.assertRegex(process.stderr.readline(), "^ddprof: " + START)
        self.assertRegex(process.stderr.readline(), "Connection refused; profiles wait in")
        receiver = agent.Agent(self, port=port)
        self.assertRegex(process.stderr.readline(), r"^ddprof: http://127.0.0.1:%d takes profiles again, \d+ had waited$" % port)
        receiver.wait_for_posts(2)
        profilers = harness.wait_for(lambda: self.stopped_without(process.stderr), 20, "a moment without a line")
        process.terminate()
        self.assertEqual(process.stderr.read(), "")
        for pid in profilers:
            os.kill(pid, signal.SIGCONT)
        process.communicate()
        self.wait_until_profiler_ends()

    def test_a_file_keeps_what_the_program_says(self):
        path = self.path("shared.txt")
        with open(path, "w") as log:
            process = self.start("-U", "http://127.0.0.1:%d" % test_outage.free_port(), *self.spool(), stderr=log,
                                 program=["sh", "-c", "while sleep 0.05; do echo a line of the program >&2; done"])
        self.wait_for_line(path, "refused(.*\n)+.*program")
        self.end(process)
        lines = harness.read_text(path).splitlines()
        self.assertGreater(lines.count("a line of the program"), 10)
        self.assertEqual(len([line for line in lines if line.startswith("ddprof: ")]), 3)
        self.assertEqual({line.split(":")[0] for line in lines}, {"a line of the program", "ddprof"})

    def test_the_journal_of_systemd_is_held_and_no_other_socket(self):
        for is_journal in (True, False):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                status = os.fstat(theirs.fileno())
                stream = "%d:%d" % (status.st_dev, status.st_ino) if is_journal else "1:1"
                process = self.start("-O", self.path("journal.pb.gz"), stderr=theirs.fileno(), program=["sh", "-c", "exit 0"], env={"JOURNAL_STREAM": stream})
                theirs.close()
                self.assertEqual(process.wait(), 0)
                said = ours.makefile().read()
                self.assertRegex(said, "^ddprof: " + START + r"the profile goes to .*\n(ddprof: " + END + r"\n)?$")
                self.assertEqual(len(said.splitlines()), 2 if is_journal else 1)
            self.wait_until_profiler_ends()

    def test_quiet_is_quiet_but_for_errors(self):
        path = self.path("quiet.txt")
        with open(path, "w") as log:
            process = self.start("-q", "-U", "http://127.0.0.1:%d" % test_outage.free_port(), *self.spool(), stderr=log)
        self.wait_for_line(path, "refused")
        self.end(process)
        self.assertEqual(len(harness.read_text(path).splitlines()), 1)

    def test_standard_output_can_be_chosen(self):
        path = self.path("output.txt")
        with open(path, "w") as log:
            process = self.start("-o", "stdout", "-O", self.path("output.pb.gz"), stdout=log, program=["sh", "-c", "echo of the program"])
        process.wait()
        self.wait_until_profiler_ends()
        self.assertRegex(harness.read_text(path), "^ddprof: " + START + ".*\nof the program\nddprof: " + END + "\n$")


class File(LogTest):
    """-o FILE"""

    def test_has_the_whole_story(self):
        path, port = self.path("story.log"), test_outage.free_port()
        process = self.start("-o", path, "--worker-period", "2", "-U", "http://127.0.0.1:%d" % port, *self.spool())
        self.wait_for_line(path, "Connection refused")
        agent.Agent(self, port=port)
        self.wait_for_line(path, "takes profiles again")
        self.wait_for_line(path, "worker is replaced as planned")
        self.end(process)
        lines = harness.read_text(path).splitlines()
        for line in lines:
            self.assertRegex(line, "^" + STAMP)
        self.assertRegex(lines[0], STAMP + START + "a profile every 1 s goes to http://127.0.0.1:%d$" % port)
        self.assertRegex(lines[-1], STAMP + END + "$")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_debug_shows_every_period_and_upload(self):
        path, receiver = self.path("debug.log"), agent.Agent(self)
        process = self.start("-o", path, "-l", "debug", "-U", receiver.url, "-O", self.path("debugged") + "/", *self.spool())
        receiver.wait_for_posts(3)
        self.end(process)
        text = harness.read_text(path)
        periods = re.findall(r"a period of [\d.]+ s ends: \d+ samples, \d+ lost\n", text)
        uploads = re.findall(r"post to %s: status 200 \(\d+ bytes, \d+ ms\)\n" % receiver.url, text)
        files = re.findall(r"wrote %s/\S+\.pb\.gz: \d+ bytes\n" % self.path("debugged"), text)
        self.assertEqual((len(periods), len(uploads), len(files)), (len(receiver.posts),) * 3, text)

    def test_less_can_be_asked_for(self):
        path = self.path("less.log")
        process = self.start("-o", path, "-l", "error", "-U", "http://127.0.0.1:%d" % test_outage.free_port(), *self.spool())
        self.wait_for_line(path, "refused")
        self.end(process)
        self.assertEqual(len(harness.read_text(path).splitlines()), 1)

    def test_a_folder_that_is_gone_and_back_is_told(self):
        path, folder = self.path("gone.log"), self.path("gone")
        process = self.start("-o", path, "-O", folder + "/")
        harness.wait_for(lambda: os.path.exists(os.path.join(folder, "index.jsonl")), 20, "a profile")
        os.rename(folder, folder + ".moved")
        self.wait_for_line(path, "No such file or directory; profiles are lost until it can be written again")
        os.mkdir(folder)
        self.wait_for_line(path, r"profiles are written to %s/sh-\S+ again" % folder)
        self.end(process)

    def test_that_cannot_be_made(self):
        program = ["sh", "-c", "echo ran; exit 7"]
        for options in (["record", "--", *program], ["record", "-g", "-d", "1"], ["-p", str(os.getpid()), "-d", "1"], ["-g", "-d", "1"]):
            command = options[:1] + ["-o", "/no/such/folder/log"] + options[1:] if options[0] == "record" else ["-o", "/no/such/folder/log", *options]
            result = self.ddprof(*command)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assert_one_clear_line(result.stderr, "--log-mode", "/no/such/folder/log", "no such file")
        result = self.ddprof("-q", "-o", "/no/such/folder/log", *program)
        self.assertEqual((result.returncode, result.stdout), (7, "ran\n"))
        self.assert_one_clear_line(result.stderr, "--log-mode", "/no/such/folder/log", "no such file")
        self.wait_until_profiler_ends()

    def test_record_has_its_own(self):
        path = self.path("record.log")
        result = self.ddprof("record", "-o", path, "-O", self.path("record.pb.gz"), "--", "sh", "-c", "exit 0")
        start, end = harness.read_text(path).splitlines()
        self.assertRegex(start, STAMP + START + "the profile goes to %s$" % self.path("record.pb.gz"))
        self.assertRegex(end, STAMP + END)
        self.assertNotIn("version", result.stderr)
        self.assertRegex(result.stderr, "^ddprof: .* samples, 0 lost")


class Attached(LogTest):
    def test_a_process_that_ends_at_once(self):
        """There is a profile, or a line that says why not."""
        for delay in ("0", "0.01", "0.02", "0.03"):
            target = subprocess.Popen(["sleep", delay])
            path = self.path("ended%s.pb.gz" % delay)
            result = self.ddprof("-p", str(target.pid), "-O", path)
            target.wait()
            self.assertEqual(result.returncode, 0 if os.path.exists(path) else 1, result.stderr)
            self.assertRegex(result.stderr, r"^ddprof: (version .*\nddprof: 0 samples, 0 lost|attach to process %d: .*\n(?:  try: .*\n)?$)" % target.pid)


if __name__ == "__main__":
    unittest.main()
