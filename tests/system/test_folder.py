"""Folders of profiles: names that sort by time and never meet, an index that needs no decoding, nothing ever replaced."""

import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
import pprof

NAME = r"%s-(\d{8}T\d{6}Z)-(%s)-([0-9a-f]{6})-(\d{6})\.pb\.gz"
IN_PID_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
RENAME = "import ctypes, sys, time\nctypes.CDLL(None).prctl(15, sys.argv[1].encode())\nprint('ready', flush=True)\nwhile True: pass\n"


def digests(folder):
    result = {}
    for path in glob.glob(os.path.join(folder, "*.pb.gz")):
        with open(path, "rb") as file:
            result[os.path.basename(path)] = hash(file.read())
    return result


class Folder(harness.SystemTest):
    def fresh(self):
        return self.path("folder%d" % next(self.numbers))

    def index(self, folder):
        return [json.loads(line) for line in harness.read_text(os.path.join(folder, "index.jsonl")).splitlines()]

    def run_into(self, folder, *options, program=None, prefix=()):
        result = self.run_command([*prefix, self.binary, "-q", "-O", folder + "/", *options, *(program or [self.puppet("split"), "1", "0.3"])])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()

    def test_a_restart_replaces_nothing(self):
        folder, before = self.fresh(), {}
        for _ in range(3):
            self.run_into(folder, "-u", "1", program=["sleep", "1.2"])
            now = digests(folder)
            self.assertEqual({name: now.get(name) for name in before}, before, "profiles of earlier runs")
            self.assertGreater(len(now), len(before))
            before = now
        lines = self.index(folder)
        self.assertEqual({line["file"] for line in lines}, set(before), "each profile has its line")
        self.assertEqual(len(lines), len(before))
        for name in before:
            self.assertRegex(name, NAME % ("sleep", r"\d+"))
        runs = [re.fullmatch(NAME % ("sleep", r"\d+"), line["file"]).groups() for line in lines]
        self.assertEqual(len({run[:3] for run in runs}), 3)
        self.assertEqual([run[0] for run in runs], sorted(run[0] for run in runs), "names sort by time")

    def test_the_index_says_what_is_in_a_profile(self):
        folder = self.fresh()
        self.run_into(folder, "-S", 'the "shop"')
        line, = self.index(folder)
        profile = pprof.read(os.path.join(folder, line["file"]))
        self.assertEqual(list(line), ["file", "bytes", "sequence", "service", "pid", "start", "end", "sums"])
        self.assertEqual((line["service"], line["sequence"]), ('the "shop"', 0))
        self.assertEqual(line["bytes"], os.path.getsize(os.path.join(folder, line["file"])))
        self.assertIn("-%d-" % line["pid"], line["file"])
        self.assertEqual(line["sums"][harness.CPU], pprof.total(profile, harness.CPU))

    @harness.needs_root
    def test_containers_that_share_a_folder_never_meet(self):
        """Each program is PID 1 of its namespace, and all start at once."""
        folder, count = self.fresh(), 6

        def container(_):
            return self.run_command([*IN_PID_NAMESPACE, self.binary, "-q", "-u", "1", "-O", folder, "sleep", "3"])

        os.mkdir(folder)
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            for result in pool.map(container, range(count)):
                self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        names = [re.fullmatch(NAME % ("sleep", r"1"), line["file"]).groups() for line in self.index(folder)]
        self.assertEqual(len({name[2] for name in names}), count)
        self.assertEqual(len(names), len(set(names)))
        # A container's processes are killed when its first has ended: a last profile may be there without its line.
        listed = {line["file"] for line in self.index(folder)}
        self.assertLessEqual(listed, set(digests(folder)))
        unlisted = [re.fullmatch(NAME % ("sleep", r"1"), name).groups() for name in set(digests(folder)) - listed]
        self.assertEqual(len({name[2] for name in unlisted}), len(unlisted), "one for each at most")
        for path in glob.glob(os.path.join(folder, "*.pb.gz")):
            pprof.read(path)

    @harness.needs_root
    def test_a_host_has_the_name_of_the_machine(self):
        folder = self.fresh()
        for _ in range(2):
            result = self.ddprof("-g", "-q", "-d", "1", "--maximum-pids", "0", "-O", folder + "/")
            self.assertEqual(result.returncode, 0, result.stderr)
        host = re.sub(r"[^A-Za-z0-9.-]+", "_", os.uname().nodename)
        self.assertEqual(len(digests(folder)), 2)
        for line in self.index(folder):
            self.assertRegex(line["file"], "^" + NAME % ("host", re.escape(host)))
            self.assertEqual((line["pid"], line["service"]), (0, "host"))

    def test_a_folder_and_its_parents_are_made_for_this_user(self):
        top = self.fresh()
        self.run_into(os.path.join(top, "a", "b"))
        for path in (top, os.path.join(top, "a"), os.path.join(top, "a", "b")):
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700, path)
        self.assertEqual(len(digests(os.path.join(top, "a", "b"))), 1)

    def test_a_worker_after_another_goes_on_with_the_same_name(self):
        folder = self.fresh()
        self.run_into(folder, "-u", "1", "--worker-period", "1", program=["sleep", "3.5"])
        names = [re.fullmatch(NAME % ("sleep", r"\d+"), line["file"]).groups() for line in self.index(folder)]
        self.assertEqual(len({name[:3] for name in names}), 1)
        self.assertEqual([int(name[3]) for name in names], list(range(len(names))))
        self.assertGreater(len(names), 2)

    def test_a_prefix_for_debugging_replaces_nothing_either(self):
        prefix = os.path.join(self.folder, "debug")
        for _ in range(2):
            self.assertEqual(self.ddprof("-q", "--debug-pprof-prefix", prefix, self.puppet("split"), "1", "0.3").returncode, 0)
            self.wait_until_profiler_ends()
        self.assertEqual(len(glob.glob(prefix + "-*-000000.pb.gz")), 2)


class Record(harness.SystemTest):
    """Names that `record` chooses by itself."""

    def test_two_recordings_of_one_pid(self):
        """As in containers, where every program has the PID 2."""
        folder = self.path("place")
        os.mkdir(folder)
        if self.run_command([*IN_PID_NAMESPACE, "true"]).returncode != 0:
            self.skipTest("no PID namespace to be had")
        # Threads take numbers too, and not always as many: until three recordings had the same.
        names, runs = [], 0
        while not any(name.endswith("-3.pb.gz") and name.count("-") == 3 for name in names) and runs < 20:
            result = self.run_command([*IN_PID_NAMESPACE, self.binary, "record", "-q", "--", self.puppet("split"), "1", "0.2"], cwd=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            names, runs = sorted(os.listdir(folder)), runs + 1
        self.assertEqual(len(names), runs, names)
        stems = collections.Counter(re.sub(r"^(ddprof-split-\d+)(-\d+)?\.pb\.gz$", r"\1", name) for name in names)
        self.assertIn(3, stems.values(), names)
        for stem, count in stems.items():
            self.assertLessEqual({stem + ".pb.gz", *("%s-%d.pb.gz" % (stem, number) for number in range(2, count + 1))}, set(names))
        for name in names:
            self.assertGreater(len(pprof.read(os.path.join(folder, name)).samples), 0)

    def test_a_file_that_was_named_is_replaced(self):
        path = self.path("named.pb.gz")
        for _ in range(2):
            self.assertEqual(self.ddprof("record", "-q", "-O", path, "true").returncode, 0)
        self.assertEqual(glob.glob(self.path("named*")), [path])

    def test_a_recording_that_fails_leaves_nothing(self):
        folder = self.path("nothing")
        os.mkdir(folder)
        result = self.run_command([self.puppet("deny_perf"), self.binary, "record", "-q", "true"], cwd=folder)
        self.assertEqual((result.returncode, os.listdir(folder)), (0, []), result.stderr)

    def rename(self, name):
        target = subprocess.Popen([sys.executable, "-c", RENAME, name], stdout=subprocess.PIPE, text=True)
        self.addCleanup(target.communicate)
        self.addCleanup(target.kill)
        self.assertEqual(target.stdout.readline(), "ready\n")
        return target.pid

    def test_a_process_that_calls_itself_a_path(self):
        for name, file_name in (("../../../tmp/x", "_._.._.._tmp_x"), ("a\x1b[31m\nb", "a_31m_b"), ("-rf $(id)", "_rf_id_")):
            with self.subTest(name):
                pid, folder = self.rename(name), self.path("odd%d" % next(self.numbers))
                result = self.ddprof("-p", str(pid), "-q", "-d", "1", "-O", folder + "/")
                self.assertEqual(result.returncode, 0, result.stderr)
                names = os.listdir(folder)
                self.assertEqual(len(names), 2, names)
                self.assertTrue(any(re.fullmatch(NAME % (re.escape(file_name), pid), entry) for entry in names), names)
                os.mkdir(folder + "/inside")
                result = self.ddprof("record", "-p", str(pid), "-q", "-d", "1", cwd=folder + "/inside")
                self.assertEqual((result.returncode, os.listdir(folder + "/inside")), (0, ["ddprof-%s-%d.pb.gz" % (file_name, pid)]), result.stderr)
                shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
