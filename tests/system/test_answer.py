"""The answer: what `record` ends with and `report` begins with, on programs of different shapes; what is kept, and several profiles as one."""

import datetime
import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

NODE_PROGRAM = """
function hash(text) { let sum = 7; for (let i = 0; i < 4000000; i++) sum = (sum * 31 + text.charCodeAt(i % text.length)) | 0; return sum; }
function serve() { let sum = 0; for (let i = 0; i < 60; i++) sum += hash('order ' + i); return sum; }
console.log(serve());
"""


class Headlines(harness.SystemTest):
    def answer(self, *command, options=("-F", "999", "--stack-sample-size", "4096")):
        """What stands below the summary: the headline, the rows, and the next command."""
        path = self.path("answer.pb.gz")
        for _ in range(4):
            result = self.ddprof("record", *options, "-O", path, "--", *command)
            self.assertEqual(result.returncode, 0, result.stderr)
            if harness.Recording(result, path).missed() < 0.05:
                break
        self.assertEqual(result.stderr.count("\n\n"), 2, result.stderr)
        _, answer, next_step = result.stderr.split("\n\n")
        self.assertEqual(next_step, "ddprof report %s\n" % path)
        rows = [line for line in answer.splitlines() if re.match(r" *\d+\.\d %", line)]
        headline = " ".join(answer.splitlines()[:len(answer.splitlines()) - len(rows)])
        self.assertLessEqual(len(rows), 5)
        report = json.loads(self.ddprof("report", "--json", path).stdout)
        self.assertEqual(report["headline"]["text"].split(" in ")[0], headline.split(" in ")[0])
        return headline, rows, report["headline"]

    def test_one_hot_function(self):
        headline, rows, data = self.answer(self.puppet("shapes"), "hot", "0.6")
        self.assertRegex(headline, r"^\d\d % of CPU in hot_function \(shapes\.c:\d+\), called by handle_request")
        self.assertEqual(data["kind"], "one")
        self.assertGreater(data["functions"][0]["total"], 0.6 * data["total"])
        self.assertIn("hot_function", rows[0])

    def test_a_flat_program(self):
        headline, _, data = self.answer(self.puppet("shapes"), "flat", "0.8")
        self.assertRegex(headline, r"^CPU is spread over \d\d functions, the largest \d+ % \(flat_\d\d\)")
        self.assertEqual(data["kind"], "spread")
        self.assertGreaterEqual(data["function_count"], 40)

    def test_a_recursive_program(self):
        headline, _, data = self.answer(self.puppet("shapes"), "recursive", "0.4")
        self.assertRegex(headline, r"^\d+ % of CPU in recurse \(shapes\.c:\d+\), called by main")
        self.assertEqual(data["functions"][0]["caller"], "main")

    def test_a_program_that_spends_its_time_in_a_library(self):
        headline, _, data = self.answer(self.puppet("shapes"), "library", "0.6")
        self.assertRegex(headline, r"^\d+ % of CPU in fill_buffers \(shapes\.c:\d+\), mostly in (\S*memset\S* \(libc\.so\.6\)|libc\.so\.6)")
        self.assertEqual(data["functions"][0]["callee_module"], "libc.so.6")

    def test_a_go_program(self):
        headline, _, data = self.answer(self.puppet("go_shares"), "0.4")
        self.assertRegex(headline, r"^\d+ % of CPU in main\.\w+ \(go_shares\.go:\d+\)")
        self.assertFalse([one for one in data["functions"] if one["own"] and one["name"].startswith("runtime.")])

    def test_a_rust_program(self):
        headline, _, _ = self.answer(self.puppet("rust_shares"), "0.4")
        self.assertRegex(headline, r"^\d+ % of CPU in rust_shares::\w+ \(rust_shares\.rs:\d+\), called")

    @unittest.skipUnless(shutil.which("node"), "no node on this machine")
    def test_a_node_program(self):
        script = self.path("shop.js")
        with open(script, "w") as file:
            file.write(NODE_PROGRAM)
        headline, _, data = self.answer("node", "--perf-basic-prof", script)
        self.assertRegex(headline, r"% of CPU in (hash|serve) \(shop\.js:\d+\)")
        self.assertTrue(data["functions"][0]["own"])

    def test_several_processes_have_an_answer_each(self):
        shapes = self.puppet("shapes")
        copy = self.path("othershape")
        shutil.copy(shapes, copy)
        headline, rows, _ = self.answer("sh", "-c", "%s hot 0.5; %s recursive 0.4" % (shapes, copy))
        self.assertRegex(headline, r"^\d\d % of CPU in process (shapes|othershape), \d+ % of that in (hot_function|recurse)")
        self.assertTrue([row for row in rows if "shapes" in row and "hot_function" in row], rows)
        self.assertTrue([row for row in rows if "othershape" in row and "recurse" in row], rows)

    def test_the_headline_is_of_the_whole_file_when_a_worker_is_replaced(self):
        """The first part is of one function, the second of another: the answer is that of the file, which has both."""
        path = self.path("replaced.pb.gz")
        script = "%s hot 0.6; kill -USR1 $PPID; %s recursive 0.6" % (self.puppet("shapes"), self.puppet("shapes"))
        result = self.ddprof("record", "-F", "999", "-O", path, "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("replaced 1 times", result.stderr)
        self.assertEqual(result.stderr.split("\n\n")[1], self.ddprof("report", path).stdout.split("\n\n")[1])
        names = {name for sample in harness.Recording(result, path).samples() for name in sample.stack}
        self.assertTrue({"hot_function", "recurse"} <= names, names)

    def test_quiet_says_none_of_it(self):
        result = self.ddprof("record", "-q", "-O", self.path("q.pb.gz"), "--", self.puppet("shapes"), "hot", "0.1")
        self.assertEqual(result.stderr, "")

    def test_no_samples_are_no_headline_that_lies(self):
        result = self.ddprof("record", "-O", self.path("true.pb.gz"), "--", "true")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("% of CPU in", result.stderr)


class Screens(harness.SystemTest):
    shared = None

    def profile(self):
        if Screens.shared is None:
            Screens.shared = self.record([self.puppet("split"), "2", "0.5"], ["-F", "499", "--stack-sample-size", "4096"]).path
        return Screens.shared

    def report(self, *arguments, columns=None):
        environment = dict(self.environment(), **({"COLUMNS": str(columns)} if columns else {}))
        result = self.ddprof("report", *arguments, env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_it_begins_with_the_headline_and_fits_one_screen(self):
        text = self.report(self.profile())
        self.assertRegex(text.split("\n\n")[1], r"^\d+ % of CPU (in|has no whole stack) ")
        self.assertLessEqual(len(text.splitlines()), 50)
        self.assertNotRegex(text, r"(?m)^ +0\.0 % +0 ns")

    def test_a_pipe_honours_columns(self):
        for columns in (60, 100, 200):
            text = self.report(self.profile(), columns=columns)
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
            tree = text.split("Hottest paths\n")[1].split("\n\n")[0]
            self.assertIn("spend_70", tree)
        self.assertNotEqual(self.report(self.profile(), columns=60), self.report(self.profile(), columns=200))

    def test_callers_and_callees(self):
        text = self.report("--callers", "spend_70", self.profile())
        self.assertIn("What calls spend_70", text)
        self.assertRegex(text.split("What calls")[1], r"spend_70 ← ")
        data = json.loads(self.report("--json", "--callees", "spend_70", self.profile()))
        self.assertEqual(data["callees"][0]["function"], "spend_70")
        self.assertEqual(data["callees"][0]["paths"][0]["frames"][0], "spend_70")
        failed = self.ddprof("report", "--callers", "no_such_function", self.profile())
        self.assertEqual(failed.returncode, 1)
        self.assertIn("--callers no_such_function", failed.stderr)

    def test_only_one_module(self):
        everything = json.loads(self.report("--json", self.profile()))
        split = json.loads(self.report("--json", "--only-module", "split", self.profile()))
        self.assertTrue(0 < split["total"] <= everything["total"])
        self.assertEqual({one["module"] for one in split["functions_by_self"] if one["self"]}, {"split"})

    def test_other_sample_types_are_named(self):
        path = self.path("two.pb.gz")
        result = self.ddprof("record", "-q", "-e", "sCPU", "-e", "sPF", "-O", path, "--", self.puppet("split"), "1", "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("shown is cpu; also in this profile: page-faults (--sample-type page-faults)", self.report(path, columns=200))
        self.assertRegex(self.report("--sample-type", "page-faults", path), r"page faults")

    def on_a_terminal(self, *arguments, pager):
        """Standard output of a report on a terminal of 24 lines."""
        main, other = pty.openpty()
        environment = dict(self.environment(), TERM="xterm", **({} if pager is None else {"PAGER": pager}))
        script = "stty rows 24 cols 80; exec \"$@\""
        process = subprocess.Popen(["sh", "-c", script, "sh", self.binary, "report", *arguments], stdin=other, stdout=other, stderr=other, env=environment)
        os.close(other)
        text = b""
        try:
            while True:
                piece = os.read(main, 4096)
                if not piece:
                    break
                text += piece
        except OSError:
            pass
        os.close(main)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def test_a_long_report_goes_through_the_pager(self):
        pager = "sed 's/^/paged: /'"
        self.assertIn("paged: ", self.on_a_terminal("-n", "30", self.profile(), pager=pager))
        self.assertNotIn("paged: ", self.on_a_terminal("-n", "30", "--no-pager", self.profile(), pager=pager))
        self.assertIn("spend_70", self.on_a_terminal("-n", "30", self.profile(), pager="cat"))
        self.assertIn("spend_70", self.on_a_terminal("-n", "30", self.profile(), pager=""))
        self.assertIn("spend_70", self.on_a_terminal("-n", "30", self.profile(), pager="/no/such/pager"))
        self.assertNotIn("paged: ", self.report("-n", "30", self.profile()))


class Kept(harness.SystemTest):
    """A folder of profiles: two of shop, one of another service, one that no index knows."""
    source = None

    def profiles(self):
        folder = tempfile.mkdtemp(dir=self.path(""))
        if Kept.source is None:
            Kept.source = self.record([self.puppet("split"), "1", "0.2"], ["-F", "499"]).path
        source = Kept.source
        now = datetime.datetime.now(datetime.timezone.utc)
        lines = []
        for name, service, minutes in (("a.pb.gz", "shop", 120), ("b.pb.gz", "shop", 5), ("c.pb.gz", "mail", 1)):
            shutil.copy(source, os.path.join(folder, name))
            start = now - datetime.timedelta(minutes=minutes)
            end = start + datetime.timedelta(seconds=30)
            lines.append(json.dumps({"file": name, "bytes": os.path.getsize(source), "sequence": 0, "service": service, "pid": 7,
                                     "start": start.isoformat().replace("+00:00", "Z"), "end": end.isoformat().replace("+00:00", "Z"),
                                     "sums": {"cpu/nanoseconds": 123000000}}, separators=(",", ":")))
        with open(os.path.join(folder, "index.jsonl"), "w") as file:
            file.write("\n".join(lines) + "\n")
        shutil.copy(source, os.path.join(folder, "other-12-000000.pb.gz"))
        os.symlink("/etc/passwd", os.path.join(folder, "planted.folded"))
        return folder, source

    def total(self, *arguments):
        result = self.ddprof("report", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["total"]

    def test_list_and_report_of_a_folder(self):
        folder, source = self.profiles()
        listed = self.ddprof("list", folder)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        rows = listed.stdout.splitlines()
        self.assertRegex(rows[0], r"time +service +duration +CPU +size +file")
        self.assertEqual([row.split()[-1] for row in rows[1:5]], ["a.pb.gz", "b.pb.gz", "c.pb.gz", "other-12-000000.pb.gz"])
        self.assertRegex(rows[2], r"UTC +shop +30\.0 s +123 ms")
        self.assertTrue(rows[5].startswith("4 profiles in "))
        chosen = json.loads(self.ddprof("list", "--json", "--service", "shop", "--since", "10m", folder).stdout)
        self.assertEqual([os.path.basename(one["file"]) for one in chosen["profiles"]], ["b.pb.gz"])

        one = self.total(source)
        self.assertEqual(self.total(source, source), 2 * one)
        self.assertEqual(self.total(folder), 4 * one)
        self.assertEqual(self.total(folder, "--service", "shop"), 2 * one)
        self.assertEqual(self.total(folder, "--service", "shop", "--since", "10m"), one)
        self.assertEqual(self.total(folder, "--until", "1h"), one)
        nothing = self.ddprof("report", folder, "--service", "nobody")
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("none of its profiles is meant", nothing.stderr)
        wrong = self.ddprof("report", folder, "--since", "soon")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("--since soon: not a time", wrong.stderr)

    def test_without_a_name_the_newest_is_read(self):
        folder, _ = self.profiles()
        state = self.path("state")
        os.makedirs(os.path.join(state, "ddprof", "spool", "peer"))
        for name in os.listdir(folder):
            if name != "other-12-000000.pb.gz":
                shutil.move(os.path.join(folder, name), os.path.join(state, "ddprof", name))
        with open(os.path.join(state, "ddprof", "spool", "peer", "1-2.parcel"), "w") as file:
            file.write("x" * 2048)
        environment = dict(self.environment(), XDG_STATE_HOME=state)
        result = self.ddprof("report", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout.splitlines()[0], r"c\.pb\.gz \(the newest")
        listed = self.ddprof("list", env=environment)
        self.assertIn("1 request waits to be sent, 2.00 KiB", listed.stdout)
        empty = self.ddprof("list", env=dict(self.environment(), XDG_STATE_HOME=self.path("nowhere")))
        self.assertEqual(empty.returncode, 1)
        self.assertIn("no profiles are kept there yet", empty.stderr)

    def test_profiles_of_different_values_are_not_merged(self):
        _, source = self.profiles()
        folded = self.path("x.folded")
        with open(folded, "w") as file:
            file.write("main;work 7\n")
        result = self.ddprof("report", source, folded)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be merged", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
