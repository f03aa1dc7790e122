"""The files and texts that users see, each read by something other than ddprof."""

import collections
import os
import re
import subprocess
import unittest

import harness


class Output(harness.SystemTest):
    shared = None

    def recording(self):
        if Output.shared is None:
            Output.shared = self.record([self.puppet("split"), "2", "0.5"], ["-F", "499"])
        return Output.shared

    def test_samples_are_labelled(self):
        for sample in self.recording().samples():
            self.assertLessEqual({harness.THREAD_ID, harness.THREAD_NAME, harness.PROCESS_ID, harness.PROCESS_NAME}, set(sample.labels))
        self.assertEqual(self.recording().labels(harness.PROCESS_NAME), {"split"})
        self.assertEqual(len(self.recording().labels(harness.PROCESS_ID)), 1)

    def test_the_header_says_what_was_measured(self):
        profile = self.recording().profile
        self.assertEqual(profile.types[:2], [harness.COUNT, harness.CPU])
        self.assertEqual(profile.period_type, harness.CPU)
        self.assertAlmostEqual(profile.period, 1e9 / 499, delta=2)
        self.assertGreater(profile.duration_ns, 450_000_000)
        self.assertGreater(profile.time_ns, 1_600_000_000_000_000_000)

    def test_mappings_carry_the_build_ids_of_their_files(self):
        checked = 0
        for mapping in self.recording().profile.mappings:
            if not os.path.isfile(mapping.path):
                continue
            text = subprocess.run(["readelf", "-nW", mapping.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            found = re.search(r"Build ID: ([0-9a-f]+)", text)
            if found:
                self.assertEqual(mapping.build_id, found.group(1), mapping.path)
                checked += 1
        self.assertGreaterEqual(checked, 2)

    def test_the_summary_says_what_was_seen_and_what_was_missed(self):
        stderr = self.recording().stderr
        self.assertRegex(stderr, r"\d samples")
        self.assertRegex(stderr, r"\d lost")
        self.assertIn(os.path.basename(self.recording().path), stderr)

    def test_folded_stacks_hold_the_same_samples(self):
        path = self.path("x.folded")
        result = self.ddprof("record", "-F", "499", "-O", path, "--", self.puppet("split"), "1", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        counts = collections.Counter()
        for line in harness.read_text(path).splitlines():
            stack, value = line.rsplit(" ", 1)
            for name in set(stack.split(";")):
                counts[name] += int(value)
            counts[None] += int(value)
        self.assertGreater(counts["spend_70"], counts["spend_10"])
        self.assertGreater(counts["main"] / counts[None], 0.5)

    def test_the_report_names_the_hot_functions_in_order(self):
        result = self.ddprof("report", self.recording().path)
        self.assertEqual(result.returncode, 0, result.stderr)
        places = [result.stdout.find(name) for name in ("spend_70", "spend_20", "spend_10")]
        self.assertNotIn(-1, places, result.stdout)
        self.assertEqual(places, sorted(places), result.stdout)

    def test_samples_can_be_watched(self):
        result = self.ddprof("record", "--show-samples", "-F", "99", "-O", self.path("watched.pb.gz"), "--", self.puppet("split"), "1", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line for line in result.stdout.splitlines() if " cpu=" in line]
        counted = int(re.search(r"ddprof: ([\d,]+) samples", result.stderr).group(1).replace(",", ""))
        self.assertEqual(len(lines), counted)
        self.assertGreater(sum("spend_" in line for line in lines), 0.9 * counted)

    def test_the_configuration_shows_where_each_value_came_from(self):
        result = self.ddprof("--show-config", "-S", "from-the-line", "true", env=dict(os.environ, DD_ENV="from-outside"))
        text = result.stdout + result.stderr
        self.assertRegex(text, r"service.*from-the-line.*(?i:command line)")
        self.assertRegex(text, r"environment.*from-outside.*DD_ENV")

    def test_the_version_is_said(self):
        result = self.ddprof("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
