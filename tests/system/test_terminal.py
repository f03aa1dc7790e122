"""What a person sees at a terminal: a real one (a pty), with what is written to it put on a small screen."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

import harness

COLUMNS = 60
PROGRESS = r"ddprof: \d+ s, [\d,]+ samples, [\d,]+ lost"


class Screen:
    """As much of a terminal as these tests need: lines that wrap, carriage returns, erasing, the alternate screen."""

    def __init__(self, text):
        self.lines, self.row, self.column, self.main = [""], 0, 0, None
        for escape, character in re.findall(r"\x1b\[([?\d;]*[a-zA-Z])|([^\x1b])", text):
            self.obey(escape) if escape else self.put(character)

    def obey(self, escape):
        if escape == "K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif escape == "?1049h":
            self.main, self.lines, self.row, self.column = (self.lines, self.row, self.column), [""], 0, 0
        elif escape == "?1049l":
            (self.lines, self.row, self.column), self.main = self.main, None
        elif escape == "H":
            self.row = self.column = 0

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            if self.column == COLUMNS:  # the last column was written: the next character wraps
                self.put("\n"), self.put("\r")
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
            self.column += 1

    def text(self):
        return [line.rstrip() for line in self.lines]


class Terminal(harness.SystemTest):
    def at_terminal(self, command, **streams):
        """Runs a command with the terminal as those standard streams that are not given; what it wrote there."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        for name in ("stdin", "stdout", "stderr"):
            streams.setdefault(name, slave)
        process = subprocess.Popen(command, env=self.environment(), cwd=self.folder, start_new_session=True, **streams)
        os.close(slave)
        written = b""
        try:
            while piece := os.read(master, 65536):
                written += piece
        except OSError:  # the last one has closed it
            pass
        os.close(master)
        self.assertEqual(process.wait(timeout=harness.PATIENCE), 0, written)
        return written.decode()

    def record(self, script, **streams):
        self.path_of_profile = self.path("x.pb.gz")
        return self.at_terminal([self.binary, "record", "-O", self.path_of_profile, "--", sys.executable, "-c", script], **streams)

    # Longer than the second after which progress is drawn.
    TALK = ("import sys, time\n"
            "for i in range(5):\n"
            "    print('line %d of' % i, end=' ', flush=True)\n"
            "    end = time.monotonic() + 0.3\n"
            "    while time.monotonic() < end: pass\n"
            "    print('the program', flush=True)\n")
    TALKED = ["line %d of the program" % i for i in range(5)]

    def test_the_output_of_the_program_arrives_unmixed(self):
        lines = Screen(self.record(self.TALK)).text()
        self.assertEqual(lines[:5], self.TALKED)
        self.assertRegex(lines[5], r"^ddprof: .*samples")

    def test_the_summary_has_a_line_of_its_own_after_half_a_line(self):
        lines = Screen(self.record(self.TALK + "print('no end of line', end='', flush=True)")).text()
        self.assertEqual(lines[:6], self.TALKED + ["no end of line"])
        self.assertRegex(lines[6], r"^ddprof: .*samples")

    def test_a_full_last_line_is_not_followed_by_an_empty_one(self):
        lines = Screen(self.record("print('x' * %d, end='', flush=True)" % COLUMNS)).text()
        self.assertEqual(lines[0], "x" * COLUMNS)
        self.assertRegex(lines[1], r"^ddprof: .*samples")

    def test_output_of_the_program_that_goes_elsewhere_is_untouched(self):
        with open(self.path("out"), "wb") as out:
            lines = Screen(self.record(self.TALK, stdout=out)).text()
        self.assertEqual(harness.read_text(self.path("out")).splitlines(), self.TALKED)
        self.assertRegex(lines[0], r"^ddprof: .*samples")
        with open(self.path("err"), "wb") as err:
            written = self.record(self.TALK, stderr=err)
        self.assertEqual(written.replace("\r\n", "\n").splitlines(), self.TALKED)
        self.assertRegex(harness.read_text(self.path("err")), r"^ddprof: .*samples")

    def test_nothing_is_drawn_over_an_alternate_screen(self):
        script = ("import sys, time\n"
                  "sys.stdout.write('before\\n\\x1b[?1049h\\x1b[H'), sys.stdout.flush()\n"
                  "end = time.monotonic() + 2.2\n"
                  "while time.monotonic() < end: pass\n"
                  "sys.stdout.write('on the whole screen\\x1b[?1049l'), sys.stdout.flush()\n")
        written = self.record(script)
        inside = re.search(r"\x1b\[\?1049h(.*)\x1b\[\?1049l", written, re.S).group(1)
        self.assertEqual(inside, "\x1b[Hon the whole screen")
        lines = Screen(written).text()
        self.assertEqual(lines[0], "before")
        self.assertRegex(lines[1], r"^ddprof: .*samples")

    def busy(self, **streams):
        process = subprocess.Popen([self.puppet("split"), "1", "20"], stdin=subprocess.DEVNULL, **streams)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def attach(self, target):
        return [self.binary, "record", "-d", "2", "-O", self.path("p.pb.gz"), "-p", str(target.pid)]

    def test_progress_is_drawn_for_a_process_that_writes_elsewhere(self):
        written = self.at_terminal(self.attach(self.busy(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        self.assertRegex(written, PROGRESS)
        lines = Screen(written).text()
        self.assertRegex(lines[0], r"^ddprof: .*samples")
        self.assertNotRegex(lines[0], PROGRESS)

    def test_no_progress_is_drawn_for_a_process_on_the_same_terminal(self):
        script = "%s 1 20 & target=$!; %s record -d 2 -O p.pb.gz -p $target; kill $target; wait" % (self.puppet("split"), self.binary)
        written = self.at_terminal(["sh", "-c", script])
        self.assertIn("samples", written)
        self.assertNotRegex(written, PROGRESS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
