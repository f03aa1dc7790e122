"""What an engine collected of a real program, played back: the same profile every time, with no program and no kernel in it."""

import gzip
import os
import unittest

import harness
import pprof

RECORD_EVENTS = os.path.join(os.path.dirname(harness.BINARY), "src", "collect", "engines", "record_events")


class Replay(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.access(RECORD_EVENTS, os.X_OK):
            raise AssertionError("no %s: build its target, record_events" % RECORD_EVENTS)

    def events_of(self, *program):
        path = self.path("run.events")
        recorded = self.run_command([RECORD_EVENTS, "auto", path, *program])
        if "perf_event_paranoid" in recorded.stderr or "seccomp" in recorded.stderr:
            self.skipTest(recorded.stderr)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        return path

    def play(self, events, name):
        path = self.path(name)
        result = self.ddprof("-g", "--engine", "replay:" + events, "-O", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    @staticmethod
    def without_clocks(path):
        """The bytes of a profile but for when it was, how long it took and what it says of the profiler itself."""
        with gzip.open(path) as file:
            fields = list(pprof.fields(file.read()))
        time, duration, comment, text = 9, 10, 13, 6
        texts = [value for number, value in fields if number == text]
        for index in pprof.numbers([value for number, value in fields if number == comment]):
            texts[index] = b""
        return texts, [field for field in fields if field[0] not in (time, duration, comment, text)]

    def test_profiles_are_the_same_to_the_byte(self):
        events = self.events_of(self.puppet("split"), "2", "2")
        first, second = self.play(events, "first.pb.gz"), self.play(events, "second.pb.gz")
        self.assertEqual(self.without_clocks(first.path), self.without_clocks(second.path))
        self.assertGreater(first.count("spend_70"), first.count("spend_20"))
        self.assertIn("a recording that is played back", first.stderr)

    def test_what_is_no_recording_is_refused(self):
        with open(self.path("text"), "w") as file:
            file.write("no events")
        for source, reason in (("text", "not a file of events"), ("none", "No such file")):
            result = self.ddprof("-g", "--engine", "replay:" + self.path(source), "-O", self.path("never.pb.gz"))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(reason, result.stderr)

    def test_is_not_shown(self):
        self.assertNotIn("replay", self.ddprof("record", "--help-extended").stdout)
        self.assertIn("one of auto, perf", self.ddprof("record", "--engine", "none", "true").stderr)


if __name__ == "__main__":
    unittest.main()
