"""One recording in every format that is written, each read by the program or the document that defines it."""

import collections
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import unittest

import harness
import judges
import otlp
import pprof

sys.path.insert(0, judges.SOURCES)
import check_firefox  # noqa: E402

BROWSER = "/usr/bin/chromium"


def read_json(path):
    with open(path) as file:
        return json.load(file)


class Formats(harness.SystemTest):
    recorded = None

    def recording(self):
        if Formats.recorded is None:
            Formats.recorded = self.record([self.puppet("split"), "2", "0.5"], ["-F", "499"])
        return Formats.recorded

    def convert(self, name, source=None):
        path = self.path(name)
        result = self.ddprof("convert", source or self.recording().path, path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return path

    def totals(self, profile, column=harness.CPU):
        """CPU time by thread and stack, root first."""
        sums = collections.Counter()
        for sample in profile.samples:
            sums[sample.labels.get(harness.THREAD_ID), tuple(reversed(sample.stack))] += sample.values[profile.types.index(column)]
        return +sums

    def test_speedscope_opens_the_file_in_a_browser(self):
        if not os.path.exists(BROWSER):
            raise unittest.SkipTest("chromium is not installed")
        path = self.convert("cpu.speedscope.json")
        shot = os.path.join(harness.REPOSITORY, "build", "speedscope.png")
        seen = harness.last_json(judges.node("open_speedscope.mjs", path, shot))
        self.assertEqual(seen["errors"], [])
        self.assertRegex(seen["title"], "split")
        self.assertIn("all threads · cpu", seen["shown"])
        self.assertGreater(os.path.getsize(shot), 10_000, "the picture is empty")

    def test_speedscopes_own_schema_is_met(self):
        try:
            import jsonschema
        except ImportError:
            raise unittest.SkipTest("python3-jsonschema is not installed")
        schema = os.path.join(judges.installed(), "node_modules", "speedscope", "dist", "release", "file-format-schema.json")
        path = self.path("recorded.speedscope.json")
        result = self.ddprof("record", "-O", path, "--", self.puppet("split"), "1", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        jsonschema.validate(read_json(path), read_json(schema))

    def test_speedscope_entries_hold_the_values_of_their_threads(self):
        profile, original = read_json(self.convert("threads.speedscope.json")), self.recording().profile
        frames = profile["shared"]["frames"]
        for column, unit in ((harness.CPU, "nanoseconds"), (harness.COUNT, "none")):
            name = column.split("/")[0]
            sums = collections.Counter()
            for entry in profile["profiles"]:
                if entry["name"].startswith("all threads") or not entry["name"].endswith(" " + name):
                    continue
                self.assertEqual(entry["unit"], unit)
                self.assertEqual(entry["endValue"], sum(entry["weights"]))
                tid = int(entry["name"].split("tid ")[1].split(" ")[0])
                for stack, weight in zip(entry["samples"], entry["weights"]):
                    sums[tid, tuple(frames[frame]["name"] for frame in stack)] += weight
            self.assertEqual(sums, self.totals(original, column))

    def test_the_firefox_file_is_what_its_format_demands(self):
        for name in ("cpu.firefox.json", "cpu.firefox.json.gz"):
            with self.subTest(name):
                profile = check_firefox.check(self.convert(name))
                sums = collections.Counter()
                for thread in profile["threads"]:
                    for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
                        sums[thread["tid"], self.firefox_stack(profile, stack)] += round(weight * 1e6)
                self.assertEqual(sums, self.totals(self.recording().profile))

    @staticmethod
    def firefox_stack(profile, stack):
        shared, names = profile["shared"], []
        while stack is not None:
            function = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
            names.append(shared["stringArray"][shared["funcTable"]["name"][function]])
            offset = shared["stackTable"]["prefixOffset"][stack]
            stack = stack - offset if offset else None
        return tuple(reversed(names))

    def test_npms_pprof_format_agrees_on_every_value(self):
        judges.assert_pprof_format_agrees(self, self.convert("cpu.pb"), self.recording().profile)

    @staticmethod
    def otlp_expected(profile):
        """What OTLP must hold of a pprof: each value but zeros under its column, the time apart from the labels."""
        sums = collections.Counter()
        for sample in profile.samples:
            labels = dict(sample.labels)
            time = labels.pop("end_timestamp_ns", None)
            for column, value in zip(profile.types, sample.values):
                sums[column, tuple(sample.stack), tuple(sample.addresses), tuple(sample.mappings), frozenset(labels.items()), time] += value
        return {key: value for key, value in sums.items() if value}

    def check_otlp(self, path):
        if not shutil.which("protoc"):
            raise unittest.SkipTest("protoc is not installed")
        original, seen = pprof.read(path), otlp.Reader(self.convert(os.path.basename(path) + ".otlp", path))
        self.assertEqual(seen.check_rules(), [])
        sums = collections.Counter()
        for sample in seen.samples:
            sums[sample[:-1]] += sample.value
        self.assertEqual(dict(sums), self.otlp_expected(original))
        self.assertEqual(collections.Counter(map(str, (seen.location(i) for i in range(1, len(seen.tables["location_table"]))))),
                         collections.Counter(map(str, original.locations)))
        for _, scope, profile in seen.profiles:
            self.assertEqual(otlp.key_values(scope["scope"][0]["attributes"])["pprof.scope.default_sample_type"], original.default_type)
            self.assertEqual(seen.value_type(profile["period_type"][0]), original.period_type)
            self.assertEqual(profile["period"], [original.period])
            self.assertEqual(profile["time_unix_nano"], [original.time_ns])
            self.assertEqual(profile["duration_nano"], [original.duration_ns])
            self.assertEqual(seen.attributes(profile).get("pprof.profile.comment", []), original.comments)
        return seen

    def test_protoc_agrees_on_every_part_of_an_otlp_request(self):
        seen = self.check_otlp(self.recording().path)
        self.assertEqual(len(seen.profiles), len(self.recording().profile.types))
        self.assertTrue(any("spend_70" in sample.stack for sample in seen.samples))

    def test_otlp_keeps_the_time_of_each_sample(self):
        recording = self.record([self.puppet("split"), "1", "0.3"], ["-F", "499", "--timeline"])
        seen = self.check_otlp(recording.path)
        counted = [sample for sample in seen.samples if sample.column == harness.COUNT and sample.time]
        self.assertGreater(len(counted), 10)

    def test_otlp_holds_a_profile_whose_content_is_known(self):
        # One sample of work called by main, values 3 and 30303030; addresses 0x400123 and 0x400456, lines app.cc:12 and :34.
        known = bytes.fromhex("""
            0a04080110020a040803100412110a020102120503b6c6b90e1a04080b100c1a19080110808080021880a0800220802028053006380140014801220f08011001
            18a382800222040801100c220f0802100118d68880022204080210222a0a0801100718082009280a2a0a0802100a180a2009281e3200320b6370752d73616d70
            6c65733205636f756e7432086370752d74696d65320b6e616e6f7365636f6e6473320c2f7573722f62696e2f617070320830313233616263643204776f726b32
            085f5a34776f726b7632066170702e636332046d61696e3209746872656164206964320434323432488080a8b1e39fe7cb175080b09dc2df015a040803100460
            92c2e8047003""")
        with open(self.path("known.pb"), "wb") as file:
            file.write(known)
        seen = self.check_otlp(self.path("known.pb"))
        app = pprof.Mapping(0x400000, 0x401000, 0x1000, "/usr/bin/app", "0123abcd")
        work, main = ("work", "_Z4workv", "app.cc", 12, 10), ("main", "main", "app.cc", 34, 30)
        labels = frozenset({"thread id": "4242"}.items())
        self.assertEqual(seen.samples, [otlp.Sample(column, ("work", "main"), (0x400123, 0x400456), (app, app), labels, None, value)
                                        for column, value in (("cpu-samples/count", 3), ("cpu-time/nanoseconds", 30303030))])
        self.assertEqual([seen.location(1), seen.location(2)], [(0x400123, app, [work]), (0x400456, app, [main])])
        profile = seen.profiles[0][2]
        self.assertEqual((profile["time_unix_nano"], profile["duration_nano"], profile["period"]), ([1700000000 * 10**9], [60 * 10**9], [10101010]))

    def test_otlp_has_a_resource_for_each_process(self):
        recording = self.record(["sh", "-c", "'%s' 1 0.3 & '%s' 1 0.3; wait" % ((self.puppet("split"),) * 2)], ["-F", "499"])
        seen = self.check_otlp(recording.path)
        pids = [otlp.key_values(resource["resource"][0]["attributes"]).get("process.pid") for resource in seen.top["resource_profiles"]]
        self.assertEqual(len(pids), len(set(pids)))
        self.assertEqual(set(pids), recording.labels(harness.PROCESS_ID))
        self.assertGreater(len(pids), 1)

    def test_otlp_is_written_and_not_read(self):
        path = self.convert("cpu.otlp")
        for arguments in (["report", path], ["convert", path, "x.pb.gz"]):
            with self.subTest(arguments):
                result = self.ddprof(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assert_one_clear_line(result.stderr, "cpu.otlp", "OTLP profiles, which are only written")
        result = self.ddprof("record", "-O", "x.otlp", "--", "echo", "does not run")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assert_one_clear_line(result.stderr, "x.otlp", "written by ddprof convert, not while recording")
        self.assertFalse(os.path.exists(self.path("x.otlp")))

    def test_gos_pprof_agrees_on_every_value(self):
        values = judges.go_values(self.go_raw(self.convert("go.pb.gz")))
        self.assertEqual(values, [sample.values for sample in self.recording().profile.samples])

    def go_raw(self, path):
        return judges.go_raw(path, self.folder)

    def test_legacy_profiles_mean_what_gos_pprof_says(self):
        maps = b"00400000-00402000 r-xp 00000000 08:02 5 /usr/bin/app\n"
        words = [0, 3, 0, 10000, 0, 5, 2, 0x400123, 0x400457, 2, 3, 0x400200, 0x400300, 0x400457, 0, 1, 0]
        cases = {"cpu.prof": struct.pack("<%dQ" % len(words), *words) + maps,
                 "heap.prof": b"heap profile: 3: 3072 [5: 4096] @ heap_v2/524288\n 2: 2048 [4: 3072] @ 0x400101 0x400457\n"
                              b" 1: 1024 [1: 1024] @ 0x400201\n\nMAPPED_LIBRARIES:\n" + maps}
        for name, content in cases.items():
            with self.subTest(name):
                with open(self.path(name), "wb") as file:
                    file.write(content)
                theirs = self.legacy_samples(self.go_raw(self.path(name)))
                ours = self.legacy_samples(self.go_raw(self.convert(name + ".pb.gz", self.path(name))))
                self.assertEqual(ours, theirs)
                self.assertEqual(len(ours), 2)

    @staticmethod
    def legacy_samples(raw):
        """Values, and the addresses of their stacks."""
        samples, addresses, section = [], {}, None
        for line in raw.splitlines():
            if line in ("Samples:", "Locations", "Mappings"):
                section = line
            elif section == "Samples:" and ": " in line and line.split(":")[0].split()[0].isdigit() and line[0] == " ":
                numbers, _, stack = line.partition(":")
                samples.append((numbers.split(), stack.split()))
            elif section == "Locations" and ":" in line:
                number, address = line.split(":")[0].strip(), line.split(":")[1].split()[0]
                addresses[number] = address
        return [(values, [addresses[number] for number in stack]) for values, stack in samples]

    def assert_file_is(self, path, program):
        self.assertEqual(judges.go_top(path, self.folder).splitlines()[0], "File: " + program)

    def test_go_names_the_program_and_not_a_library_that_it_uses(self):
        library = self.path("busy_plugin.so")
        shutil.copy2(self.puppet("plugin.so"), library)
        command = [self.puppet("dlopen_user"), library, "0.5", "keep"]
        self.assert_file_is(self.record(command, ["-F", "499"]).path, "dlopen_user")
        # Of several programs the busiest.
        self.assert_file_is(self.record(["sh", "-c", "%s; /bin/true" % shlex.join(command)], ["-F", "499"]).path, "dlopen_user")
        command[2] = "20"
        target = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        harness.wait_for(lambda: "busy_plugin" in harness.read_text("/proc/%d/maps" % target.pid), 10, "the library")
        result = self.ddprof("record", "-d", "1", "-O", self.path("attached.pb.gz"), "-p", str(target.pid))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_file_is(self.path("attached.pb.gz"), "dlopen_user")

    def test_folded_stacks_say_what_their_numbers_are(self):
        path = self.convert("unit.folded")
        lines = harness.read_text(path).splitlines()
        self.assertEqual(lines[0], "# value: cpu nanoseconds 0")
        for line in lines:  # what flamegraph.pl, inferno and speedscope take for a stack
            self.assertRegex(line, r"^.* \d+$")
        again = pprof.read(self.convert("unit.pb.gz", path))
        self.assertEqual(again.types, [harness.CPU])
        self.assertEqual(pprof.total(again, harness.CPU), harness.Recording.cpu_ns(self.recording()))
        report = self.ddprof("report", path)
        self.assertRegex(report.stdout, r"\d m?s cpu")
        self.assertNotRegex(report.stdout, r"\d samples")
        with open(self.path("others.folded"), "w") as file:
            file.write("main;work 1688047000\n")
        report = self.ddprof("report", self.path("others.folded"))
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("1,688,047,000 value", report.stdout)
        self.assertNotIn("samples", report.stdout)

    def test_speedscope_opens_folded_stacks(self):
        if not os.path.exists(BROWSER):
            raise unittest.SkipTest("chromium is not installed")
        seen = harness.last_json(judges.node("open_speedscope.mjs", self.convert("opened.folded"), self.path("folded.png")))
        self.assertEqual(seen["errors"], [])
        self.assertIn("opened.folded", seen["title"])

    def test_every_format_can_be_read_again(self):
        expected = harness.Recording.cpu_ns(self.recording())
        for name in ("a.pb.gz", "a.pb", "a.pprof", "a.folded", "a.speedscope.json", "a.firefox.json", "a.firefox.json.gz"):
            with self.subTest(name):
                again = pprof.read(self.convert(name + ".again.pb.gz", self.convert(name)))
                column = harness.CPU if harness.CPU in again.types else harness.COUNT
                self.assertEqual(pprof.total(again, column), expected)
                report = self.ddprof("report", self.path(name))
                self.assertEqual(report.returncode, 0, report.stderr)
                self.assertIn("spend_70", report.stdout)

    def test_pipes_are_read_and_written(self):
        with open(self.recording().path, "rb") as source:
            result = self.run_command([self.binary, "convert", "-", "-", "--to", "folded"], stdin=source)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, harness.read_text(self.convert("b.folded")))

    def slow_writer(self, stdout):
        """Writes the recording in pieces, with time for the reader to find nothing in between."""
        script = ("import sys, time\n"
                  "data = open(sys.argv[1], 'rb').read()\n"
                  "out = open(sys.argv[2], 'wb', 0) if len(sys.argv) > 2 else sys.stdout.buffer\n"
                  "for at in range(0, len(data), len(data) // 3 + 1):\n"
                  "    time.sleep(0.1)\n"
                  "    out.write(data[at:at + len(data) // 3 + 1]), out.flush()\n")
        command = [sys.executable, "-c", script, self.recording().path]
        if isinstance(stdout, str):
            command, stdout = command + [stdout], subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=stdout)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_writer_that_is_slower_than_the_reader_is_waited_for(self):
        expected = harness.read_text(self.convert("c.folded"))
        os.mkfifo(self.path("fifo"))
        for source in ("-", "/dev/stdin", "/dev/fd/0", self.path("fifo")):
            for arguments in (["convert", source, "-", "--to", "folded"], ["report", source]):
                with self.subTest(arguments):
                    writer = self.slow_writer(source if source == self.path("fifo") else subprocess.PIPE)
                    result = self.run_command([self.binary, *arguments], stdin=writer.stdout or subprocess.DEVNULL)
                    if writer.stdout:
                        writer.stdout.close()
                    self.assertEqual(result.returncode, 0, result.stderr)
                    if arguments[0] == "convert":
                        self.assertEqual(result.stdout, expected)
                    else:
                        self.assertIn("spend_70", result.stdout)

    def test_what_cannot_be_converted_is_said_and_nothing_is_left(self):
        with open(self.path("nonsense"), "wb") as file:
            file.write(b"hello\n")
        for arguments, status, words in (
                (["nonsense", "x.pb.gz"], 1, ["nonsense", "no known format"]),
                (["no_such_file", "x.pb.gz"], 1, ["no_such_file", "no such file"]),
                ([self.recording().path, "x.speedscop.json"], 1, ["did you mean .speedscope.json"]),
                ([self.recording().path, "no_such_folder/x.pb.gz"], 1, ["no_such_folder"]),
                ([self.recording().path], 2, ["convert: needs a file to read and one to write"]),
                ([self.recording().path, "-"], 2, ["--to"]),
                ([self.recording().path, "x.pb", "--to", "foldet"], 2, ["foldet", "folded"])):
            with self.subTest(arguments):
                result = self.ddprof("convert", *arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assert_one_clear_line(result.stderr, *words)
                self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("x.")])


if __name__ == "__main__":
    unittest.main()
