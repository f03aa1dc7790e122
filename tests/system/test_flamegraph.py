"""The flame graph: what is in the file equals the pprof of the same run, a parser of XML reads it, and a browser shows it."""

import collections
import json
import os
import signal
import unittest
import xml.etree.ElementTree

import harness
import judges
import pprof
import test_faults

BROWSER = "/usr/bin/chromium"
SVG = "{http://www.w3.org/2000/svg}"

Node = collections.namedtuple("Node", "path value extra frame")  # path: names from the root on; extra: see flamegraph_svg.hpp


class Picture:
    """A flame graph as its own table describes it, read with expat."""

    def __init__(self, path):
        self.root = xml.etree.ElementTree.parse(path).getroot()
        self.data = json.loads(next(part.text for part in self.root.iter(SVG + "script") if part.get("id") == "data"))
        self.nodes, self.merged, callers = [], 0, []
        numbers = self.data["nodes"]
        for depth, frame, value, extra in (numbers[at:at + 4] for at in range(0, len(numbers), 4)):
            if frame < 0:
                self.merged += value
                continue
            callers[depth:] = [self.data["frames"][frame][0]]
            self.nodes.append(Node(tuple(callers), value, extra, self.data["frames"][frame]))

    def texts(self, group):
        parts = next(part for part in self.root.iter(SVG + "g") if part.get("id") == group)
        return [text.text for text in parts.iter(SVG + "text")]

    def total(self, name):
        """Of what goes through a function. Recursion counts once."""
        return sum(node.value for node in self.nodes if node.path[-1] == name and name not in node.path[:-1])


def comparable(name):
    """Frames without a name are shown as an address by one, as an offset by the other."""
    return "?" if name.startswith("0x") or "+0x" in name else name


class Flamegraph(harness.SystemTest):
    recorded = None

    def recording(self):
        if Flamegraph.recorded is None:
            Flamegraph.recorded = self.record([self.puppet("split"), "2", "0.5"], ["-F", "499"])
        return Flamegraph.recorded

    def convert(self, source, name):
        path = self.path(name)
        result = self.ddprof("convert", source, path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return path

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def assert_equals_pprof(self, picture, profile):
        """Each node has what the samples with its stack have."""
        column = profile.types.index(harness.CPU)
        expected, seen = collections.Counter(), collections.Counter()
        for sample in profile.samples:
            stack = tuple(comparable(name) for name in reversed(sample.stack))
            for depth in range(len(stack) + 1):
                expected[stack[:depth]] += sample.values[column]
        for node in picture.nodes:
            seen[tuple(comparable(name) for name in node.path[1:])] += node.value
        self.assertEqual(picture.merged, 0)
        self.assertEqual(picture.data["total"], pprof.total(profile, harness.CPU))
        self.assertEqual(+seen, +expected)

    def test_every_node_equals_the_pprof(self):
        picture = Picture(self.convert(self.recording().path, "cpu.svg"))
        self.assert_equals_pprof(picture, self.recording().profile)
        self.assertEqual((picture.data["type"], picture.data["unit"]), ("cpu", "nanoseconds"))
        self.assertEqual(picture.nodes[0].path, ("split",))
        frame = next(node.frame for node in picture.nodes if node.path[-1] == "spend_70")
        self.assertEqual(picture.data["modules"][frame[1]], "split")
        self.assertRegex(frame[2], r"split\.c:\d+$")
        samples = "%s samples" % format(self.recording().count(), ",")
        self.assertIn(samples, picture.texts("missed"))
        self.assertTrue([text for text in picture.texts("missed") if text.endswith(" lost")], picture.texts("missed"))

    def test_inlined_calls_are_marked(self):
        source = os.path.join(harness.REPOSITORY, "tests", "puppets", "inline_chain.cpp")
        program = self.path("inline_chain")
        built = self.run_command(["g++", "-O2", "-g", "-std=c++20", source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        recording = self.record([program, "0.4"], ["-F", "499"])
        picture = Picture(self.convert(recording.path, "inlined.svg"))
        self.assert_equals_pprof(picture, recording.profile)
        inlined = set()  # names of calls that are not the outermost of their location
        for location in recording.profile.locations:
            inlined.update(call.name for call in location.calls[:-1])
        self.assertTrue(inlined)
        self.assertLessEqual({node.path[-1] for node in picture.nodes if node.extra == 1}, inlined)
        self.assertTrue([node for node in picture.nodes if node.extra == 1])

    def test_a_recording_goes_straight_into_a_picture(self):
        path = self.path("direct.svg")
        result = self.ddprof("record", "-F", "499", "-O", path, "--", self.puppet("split"), "1", "0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(path, result.stderr)
        picture = Picture(path)
        self.assertGreater(picture.total("spend_70"), 0.1 * picture.data["total"])
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("direct")], ["direct.svg"])
        for arguments in (["report", path], ["convert", path, "x.pb.gz"]):
            refused = self.ddprof(*arguments)
            self.assertEqual(refused.returncode, 1)
            self.assert_one_clear_line(refused.stderr, "direct.svg", "a picture, not a profile")

    def test_a_picture_is_of_the_whole_run_when_its_worker_was_replaced(self):
        path = self.path("parts.svg")
        service = test_faults.Service(self, "-O", path)
        worker = service.worker
        while not os.path.exists(path + ".parts.pb.gz"):  # a worker that has seen nothing leaves nothing
            answered = service.client.answered
            harness.wait_for(lambda: service.client.answered > answered + 1000, 30, "some work")
            os.kill(service.supervisor, signal.SIGUSR1)
            worker = service.wait_for_worker(after=worker)
        before = Picture(path).data["total"]
        seconds = service.end()
        total = Picture(path).data["total"]
        self.assertGreater(total, before)
        self.assertAlmostEqual(total / 1e9, seconds, delta=0.03 * seconds + 0.05)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("parts")], ["parts.svg"])

    def test_foreign_names_stay_text(self):
        names = ["</script><script>throw 1</script>", "]]>", "<img src=x onerror=throw(1)>", "a&b\"'<c>", "\x9b31m", "\udcff\ufffe",
                 "x" * 20_000, "函数<データ>::実行()", "${7*7}"]
        lines = "".join("main;%s;leaf %d\n" % (name.replace(";", ":"), 10 + at) for at, name in enumerate(names))
        source = self.write("foreign.folded", lines.encode("utf-8", "surrogateescape"))
        picture = Picture(self.convert(source, "foreign.svg"))
        self.assertEqual(len([part for part in picture.root.iter(SVG + "script")]), 2)
        self.assertEqual({part.tag.split("}")[1] for part in picture.root.iter()},
                         {"svg", "title", "desc", "style", "defs", "pattern", "rect", "text", "g", "script"})
        self.assertEqual(picture.total("leaf"), sum(10 + at for at in range(len(names))))
        for name in (names[0], names[1], names[2], names[3], names[7], names[8]):
            self.assertEqual(picture.total(name), 10 + names.index(name))
        self.open_in_browser(self.path("foreign.svg"), "leaf")

    def test_odd_profiles(self):
        deep = ";".join("f%d" % (at % 9) for at in range(2000))
        many = "".join("main;f%d %d\n" % (at, 1 + at % 2) for at in range(100_000))
        cases = {"one": ("main 5\n", 5), "deep": (deep + " 3\n", 3), "many": (many, 150_000)}
        for name, (content, total) in cases.items():
            with self.subTest(name):
                path = self.convert(self.write(name + ".folded", content.encode()), name + ".svg")
                picture = Picture(path)
                self.assertEqual(picture.data["total"], total)
                leaves = collections.Counter()
                for node in picture.nodes:
                    leaves[node.path] += node.value
                    leaves[node.path[:-1]] -= node.value
                self.assertEqual(sum(value for key, value in leaves.items() if key), total)
                self.assertLess(os.path.getsize(path), 1_000_000)
        self.assertEqual(Picture(self.path("many.svg")).merged, 150_000, "each is below a pixel's 20th")
        self.assertEqual(len(Picture(self.path("deep.svg")).nodes), 2001)
        empty = bytes.fromhex("0a0408011002") + b"2\x00" + b"2\x07samples" + b"2\x05count"  # a column, and no sample
        picture = Picture(self.convert(self.write("empty.pb", empty), "empty.svg"))
        self.assertEqual((picture.data["total"], len(picture.nodes)), (0, 1))
        self.assertIn("The profile is empty: nothing was sampled.", [text.text for text in picture.root.iter(SVG + "text")])

    def open_in_browser(self, path, regex):
        if not os.path.exists(BROWSER):
            raise unittest.SkipTest("chromium is not installed")
        pictures = os.path.join(harness.REPOSITORY, "build", "flamegraph")
        os.makedirs(pictures, exist_ok=True)
        seen = harness.last_json(judges.node("open_flamegraph.mjs", path, regex, pictures))
        self.assertEqual(seen["errors"], [])
        return seen

    def test_a_browser_zooms_searches_and_explains(self):
        profile = self.recording().profile
        total = pprof.total(profile, harness.CPU)
        matched = pprof.total(profile, harness.CPU, lambda sample: "spend_70" in sample.stack)
        seen = self.open_in_browser(self.convert(self.recording().path, "browser.svg"), "spend_70")

        whole = seen["whole"]["frames"]
        self.assertEqual((whole[0]["name"], whole[0]["value"]), ("split", total))
        shown = [frame for frame in whole if frame["name"] == "spend_70"]
        self.assertLessEqual(sum(frame["value"] for frame in shown), matched)
        for frame in whole:
            self.assertAlmostEqual(frame["width"], 1176 * frame["value"] / total, delta=1)
            self.assertEqual(frame["overflow"], 0, "%s is too long for its bar" % frame["text"])

        target = seen["zoomed"]["target"]
        share = "%.1f %%" % (100 * target["value"] / total)
        self.assertEqual(seen["hovered"]["tip"][0], "spend_70")
        self.assertIn(share + " of all cpu", seen["hovered"]["tip"][1])
        self.assertTrue(any("split.c:" in line for line in seen["hovered"]["tip"]))
        zoomed = {frame["name"]: frame for frame in seen["zoomed"]["frames"]}
        for name in ("split", "spend_70"):  # callers fill the width, as does the frame itself
            self.assertAlmostEqual(zoomed[name]["width"], 1176, delta=1)
        self.assertTrue(zoomed["split"]["above"])
        self.assertFalse(zoomed["spend_70"]["above"])
        self.assertEqual(seen["zoomed"]["status"], "zoomed: %s of all" % share)

        self.assertEqual(seen["searched"]["matched"], matched)
        self.assertIn("%.1f %% matched" % (100 * matched / total), seen["searched"]["status"])
        self.assertIn("100.0 % of what is shown", seen["searched"]["status"])
        self.assertEqual({frame["name"] for frame in seen["searched"]["frames"] if frame["found"]}, {"spend_70"})
        self.assertRegex(seen["invalid"]["status"], "^not a regular expression: ")
        self.assertEqual(seen["invalid"]["frames"], seen["searched"]["frames"], "an expression that is none changes nothing")
        self.assertEqual(seen["reset"]["frames"], whole)
        self.assertEqual(seen["button"]["frames"], whole)
        self.assertEqual(seen["control_f"]["focused"], "Search names by regular expression")
        below = min((frame for frame in whole if frame["top"] == whole[0]["top"] + 18), key=lambda frame: frame["left"])
        self.assertEqual(seen["walked"]["focused"].split(",")[0], below["name"])
        self.assertEqual(seen["walked"]["tip"][0], below["name"])
        for width in (360, 3000):
            self.assertEqual((seen["wide_%d" % width]["width"], seen["wide_%d" % width]["scroll"]), (width, width))
            self.assertAlmostEqual(seen["wide_%d" % width]["frames"][0]["width"], width - 24, delta=1)


if __name__ == "__main__":
    unittest.main()
