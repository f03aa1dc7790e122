"""What a person reads before the first profile: help by command, suggestions, --show-config, completion, man pages."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios
import time
import unittest

from harness import SystemTest, read_text

COMMANDS = ["record", "report", "list", "convert", "doctor", "help", "completion"]


def on_terminal(command, columns, env):
    """Runs a command on a terminal of so many columns; what it printed."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execve(command[0], command, env)
    text = b""
    with contextlib.suppress(OSError):  # the terminal ends with its last process
        while data := os.read(terminal, 65536):
            text += data
    os.close(terminal)
    os.waitpid(pid, 0)
    return text.decode().replace("\r\n", "\n")


class Screens(SystemTest):
    def help_of(self, *arguments, columns=None):
        environment = {name: value for name, value in self.environment().items() if name != "COLUMNS"}
        if columns:
            environment["COLUMNS"] = str(columns)
        result = self.ddprof(*arguments, env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_the_overview_is_one_screen(self):
        text = self.help_of("--help")
        self.assertEqual(text, self.help_of("help"))
        self.assertLessEqual(len(text.splitlines()), 40)
        for command in COMMANDS:
            self.assertRegex(text, r"\n  %s  " % command)
        self.assertEqual(self.help_of("--help-commands").split(), COMMANDS)

    def test_each_command_has_a_page_of_its_own(self):
        for command in COMMANDS:
            text = self.help_of("help", command)
            self.assertEqual(text, self.help_of(command, "--help"))
            self.assertEqual(text, self.help_of(command, "-h"))
            self.assertTrue(text.startswith("Usage: ddprof %s " % command), text)
            self.assertIn("\nExamples:\n", text)
        self.assertRegex(self.help_of("report", "--help"), r"\n      --focus REGEX ")
        self.assertNotIn("--frequency", self.help_of("report", "--help"))
        self.assertRegex(self.help_of("record", "--help"), r"\n  -F, --frequency HZ ")
        self.assertNotIn("--focus", self.help_of("record", "--help-extended"))
        self.assertIn("DD_TRACE_AGENT_URL", self.help_of("doctor", "--help-extended"))

    def test_help_needs_neither_a_configuration_nor_a_home(self):
        with open(self.path("ddprof.toml"), "w") as file:
            file.write("][")
        self.addCleanup(os.unlink, self.path("ddprof.toml"))
        result = self.ddprof("help", "record", env={})
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_text_fits_the_width(self):
        widths = {}
        for columns in (60, 80, 100, 200):
            for arguments in (["--help"], ["record", "--help"], ["report", "--help"]):
                text = self.help_of(*arguments, columns=columns)
                self.assertLessEqual(max(map(len, text.splitlines())), columns, text)
                widths[columns] = len(text.splitlines())
        self.assertGreater(widths[60], widths[200])
        self.assertEqual(self.help_of("record", "--help"), self.help_of("record", "--help", columns=80))
        # A terminal knows better than the variable.
        environment = dict(self.environment(), COLUMNS="80")
        for columns in (60, 200):
            text = on_terminal([self.binary, "record", "--help"], columns, environment)
            self.assertEqual(text, self.help_of("record", "--help", columns=columns))


class Suggestions(SystemTest):
    def refused(self, *arguments, status=2, **options):
        result = self.ddprof(*arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_a_mistyped_command(self):
        self.assertIn("did you mean ddprof record?", self.refused("recrod", "./server", status=127))
        self.assertNotIn("did you mean", self.refused("no-such-program-here", status=127))
        self.assertNotIn("did you mean", self.refused("./recrod", status=127))
        self.assertIn("did you mean ddprof report?", self.refused("help", "reprot"))

    def test_a_program_of_that_name_still_runs(self):
        with open(self.path("recrod"), "w") as file:
            file.write("#!/bin/sh\necho ran $1\n")
        os.chmod(self.path("recrod"), 0o755)
        result = self.ddprof("recrod", "it", env=dict(self.environment(), PATH=self.folder + ":" + os.environ["PATH"]))
        self.assertEqual((result.returncode, result.stdout), (0, "ran it\n"), result.stderr)
        self.wait_until_profiler_ends()

    def test_an_option_of_another_command(self):
        text = self.refused("report", "-F", "99", "x")
        self.assertIn("--frequency: an option of ddprof and ddprof record, not of ddprof report", text)
        self.assertIn("try: ddprof report --help", text)
        self.assertIn("--top: an option of ddprof report", self.refused("--top", "5", "true"))

    def test_an_option_that_does_not_exist(self):
        text = self.refused("report", "--sort", "x")
        self.assertIn("--top", text)
        self.assertNotIn("--port", text)
        self.assertIn("try: ddprof report --help", text)
        self.assertIn("did you mean --focus?", self.refused("report", "--fokus", "x"))
        self.assertIn("try: ddprof record --help", self.refused("record", "--zzzz", "true"))

    def test_words_for_later_versions(self):
        for word in ("view", "diff", "serve", "top"):
            self.assertIn("not in this version", self.refused(word))


class Configuration(SystemTest):
    def shown(self, *arguments, **options):
        result = self.ddprof("--show-config", *arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = (re.split(r"  +", line, maxsplit=2) for line in result.stdout.splitlines())
        return {row[0]: row[1:] for row in rows}

    def test_it_goes_to_standard_output_and_is_true(self):
        rows = self.shown(env=dict(self.environment(), DD_ENV="staging", DD_DOGSTATSD_URL="unix:///run/dsd"))
        self.assertEqual(rows["environment"], ["staging", "DD_ENV"])
        self.assertEqual(rows["log-mode"], ["stderr", "default"])
        self.assertIn(rows["stack-sample-size"][0], ("65528", "32000", "16384", "8192"))
        self.assertEqual(rows["frequency"], ["99", "default"])
        self.assertEqual(rows["otlp-compression"], ["gzip", "default"])
        self.assertEqual(rows["internal-stats"], ["unix:///run/dsd", "DD_DOGSTATSD_URL"])
        self.assertEqual(rows["spool-dir"][0], self.path("state/ddprof/spool"))
        self.assertRegex(rows["socket"][1], "no effect")
        self.assertNotIn("focus", rows)
        self.assertEqual(self.shown("--stack-sample-size", "4096")["stack-sample-size"], ["4096", "command line"])
        self.assertIn(self.shown("-F", "999")["stack-sample-size"][0], ("16384", "8192"))

    def test_the_program_runs_after_it(self):
        result = self.ddprof("--show-config", "--enable=false", "echo", "hello")
        self.assertTrue(result.stdout.startswith("(target) "), result.stdout)
        self.assertTrue(result.stdout.endswith("\nhello\n"), result.stdout)

    def test_what_has_no_effect_is_said_once(self):
        result = self.ddprof("record", "--reorder-events", "-O", self.path("once.pb.gz"), "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("--reorder-events has no effect in this version"), 1, result.stderr)
        result = self.ddprof("record", "--preset", "cpu_live_heap", "-d", "1", "-O", self.path("attached.pb.gz"), "-p", str(os.getpid()))
        self.assertEqual(result.stderr.count("preset cpu_live_heap: allocations of a program that runs already"), 1, result.stderr)
        result = self.ddprof("--loaded-libs-check-interval", "5", "true")
        self.assertEqual(result.stderr.count("--loaded-libs-check-interval has no effect in this version"), 1, result.stderr)
        result = self.ddprof("record", "-O", self.path("quiet.pb.gz"), "true", env=dict(self.environment(), DD_PROFILING_REORDER_EVENTS="true"))
        self.assertEqual(result.stderr.count("DD_PROFILING_REORDER_EVENTS) has no effect"), 1, result.stderr)
        result = self.ddprof("record", "-u", "5", "-O", self.path("whole.pb.gz"), "true")
        self.assertIn("--upload-period has no effect: there is one profile", result.stderr)
        self.wait_until_profiler_ends()


class Completion(SystemTest):
    """The shells themselves complete, in a folder with a few files."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.work = cls.path("work")
        os.makedirs(os.path.join(cls.work, "sub"))
        for name in ("cpu.pb.gz", "server.cfg"):
            open(os.path.join(cls.work, name), "w").close()
        shutil.copy(shutil.which("true"), os.path.join(cls.work, "my_server"))

    def script(self, shell):
        if not shutil.which(shell):
            self.skipTest("no %s: tools/bootstrap.sh test installs it" % shell)
        result = self.ddprof("completion", shell)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        path = self.path("completion." + shell)
        with open(path, "w") as file:
            file.write(result.stdout)
        self.assertEqual(self.run_command([shell, "-n", path]).stderr, "")
        return path

    def type_lines(self, command, setup, lines):
        """Types each line and a tab in an interactive shell; what the line then is. The shell writes it to a file."""
        got, ready = self.path(command[0] + ".got"), self.path(command[0] + ".ready")
        for path in (got, ready):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execvpe(command[0], command, dict(os.environ, TERM="dumb", HOME=self.folder, HISTFILE="/dev/null", COLUMNS="200"))
        def drain_until(condition):
            end = time.monotonic() + 60
            while not condition():
                self.assertLess(time.monotonic(), end, "the shell does not answer")
                if select.select([terminal], [], [], 0.05)[0]:
                    os.read(terminal, 65536)
        try:
            os.write(terminal, (setup % {"got": got, "ready": ready}).encode())
            drain_until(lambda: os.path.exists(ready))
            for number, line in enumerate(lines):
                os.write(terminal, line.encode() + b"\t\x18s")
                drain_until(lambda: os.path.exists(got) and len(read_text(got).splitlines()) > number)
        finally:
            os.close(terminal)  # hangs up
            os.waitpid(pid, 0)
        return [line.strip() for line in read_text(got).splitlines()]

    COMPLETED = {
        "ddprof recor": "ddprof record",
        "ddprof report --foc": "ddprof report --focus",
        "ddprof report --freq": "ddprof report --freq",
        "ddprof --log-level=inf": "ddprof --log-level=informational",
        "ddprof -l inf": "ddprof -l informational",
        "ddprof -T a:b -U http://x:80 --freq": "ddprof -T a:b -U http://x:80 --frequency",
        "ddprof report cp": "ddprof report cpu.pb.gz",
        "ddprof convert cpu.pb.gz out.spe": "ddprof convert cpu.pb.gz out.speedscope.json",
        "ddprof convert --to specu": "ddprof convert --to specu",
        "ddprof convert --to speed": "ddprof convert --to speedscope",
        "ddprof record -O out.spe": "ddprof record -O out.speedscope.json",
        "ddprof record -p %d" % os.getpid(): "ddprof record -p %d" % os.getpid(),
        "ddprof record sha512su": "ddprof record sha512sum",
        "ddprof record ./my": "ddprof record ./my_server",
        "ddprof record -F 99 ./my_server serv": "ddprof record -F 99 ./my_server server.cfg",
        "ddprof record -F 99 ./my_server --freq": "ddprof record -F 99 ./my_server --freq",
        "ddprof -- sha512su": "ddprof -- sha512sum",
        "ddprof list s": "ddprof list sub/",
        "ddprof help docto": "ddprof help doctor",
        "ddprof completion fi": "ddprof completion fish",
    }

    def assert_completed(self, lines):
        self.assertEqual([line.rstrip("=") for line in lines], list(self.COMPLETED.values()))

    def test_bash(self):
        setup = ("source %s; bind 'set enable-bracketed-paste off'; show() { echo \"$READLINE_LINE\" >>%%(got)s; READLINE_LINE=; }; "
                 "bind -x '\"\\C-xs\":show'; touch %%(ready)s\n" % self.script("bash"))
        self.assert_completed(self.type_lines(["bash", "--norc", "--noprofile", "-i"], setup, self.COMPLETED))

    def test_zsh(self):
        setup = ("autoload -Uz compinit; compinit -D -u; source %s; show() { print -r -- \"$BUFFER\" >>%%(got)s; BUFFER= }; zle -N show; "
                 "bindkey '^Xs' show; setopt nobeep; touch %%(ready)s\n" % self.script("zsh"))
        self.assert_completed(self.type_lines(["zsh", "-f", "-i"], setup, self.COMPLETED))

    def test_fish(self):
        script = self.script("fish")
        asked = "\n".join("complete -C %s | string replace -r '\\t.*' ''; echo --" % repr(line) for line in self.COMPLETED)
        result = self.run_command(["fish", "--no-config", "-c", "source %s\n%s" % (script, asked)], cwd=self.work, env=dict(self.environment(), HOME=self.folder))
        self.assertEqual(result.stderr, "")
        answers = [answer.split("\n") for answer in result.stdout.split("--\n")]
        for (line, completed), answer in zip(self.COMPLETED.items(), answers):
            offered = [word for word in answer if word]
            if line == completed:
                self.assertLessEqual(len([word for word in offered if word != line.split()[-1]]), 0, line)
            else:
                self.assertIn(completed.split()[-1], offered, line)

    def test_the_first_word(self):
        """Commands come first; programs once a letter is typed."""
        ask = "source %s; COMP_LINE='ddprof '; COMP_WORDS=(ddprof ''); COMP_CWORD=1; _ddprof; echo ${COMPREPLY[*]}" % self.script("bash")
        self.assertEqual(self.run_command(["bash", "-c", ask]).stdout.split(), COMMANDS)
        if shutil.which("fish"):
            result = self.run_command(["fish", "--no-config", "-c", "source %s; complete -C 'ddprof rec'" % self.script("fish")])
            self.assertRegex(result.stdout, r"(?m)^record\t")


class ManPages(SystemTest):
    def pages(self):
        for command in [None, *COMMANDS]:
            path = self.path("ddprof%s.1" % ("-" + command if command else ""))
            with open(path, "w") as file:
                file.write(self.ddprof(*filter(None, [command]), "--help-man").stdout)
            yield path

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            self.skipTest("no groff: tools/bootstrap.sh test installs it")
        for path in self.pages():
            result = self.run_command(["groff", "-man", "-ww", "-Tutf8", "-P-bcu", path])
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for section in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertIn("\n%s\n" % section, result.stdout)

    def test_mandoc_has_nothing_to_say(self):
        if not shutil.which("mandoc"):
            self.skipTest("no mandoc: tools/bootstrap.sh test installs it")
        for path in self.pages():
            result = self.run_command(["mandoc", "-T", "lint", "-W", "warning", path])
            # A date of the build would make each build another one.
            problems = [line for line in result.stdout.splitlines() if "missing date" not in line]
            self.assertEqual(problems, [])

    def test_the_page_of_ddprof_names_every_profiling_option(self):
        text = self.ddprof("--help-man").stdout.replace("\\-", "-")
        for option in re.findall(r"(?m)^  (?:-\w, |    )--(?:\[no-\])?([a-z-]+)", self.ddprof("--help-extended").stdout):
            self.assertRegex(text, r"--(\[no-\])?%s\b" % option)


if __name__ == "__main__":
    unittest.main()
