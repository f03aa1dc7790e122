#!/usr/bin/env python3
"""Checks a file against the documentation of the Firefox Profiler's processed format, version 66: check_firefox.py FILE…

Written from src/types/profile.ts and CHANGELOG-formats.md of firefox-devtools/profiler, not from what ddprof writes.
"""

import gzip
import json
import math
import re
import sys

VERSION = 66
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred",
          "darkgrey", "grey"}
META = {"interval": float, "startTime": float, "preprocessedProfileVersion": float, "version": float, "processType": float,
        "product": str, "stackwalk": float, "debug": bool, "markerSchema": list, "categories": list, "symbolicated": bool,
        "sampleUnits": dict}
THREAD = {"name": str, "isMainThread": bool, "processType": str, "pid": str, "processStartupTime": float, "registerTime": float,
          "pausedRanges": list, "samples": dict, "markers": dict}
# The columns of each table: what they index, or what they hold. A "?" stands for "or null", "-" for "or -1".
TABLES = {
    "stackTable": {"frame": "frameTable", "prefixOffset": "number"},
    "frameTable": {"func": "funcTable", "address": "number-", "inlineDepth": "number", "category": "category?",
                   "subcategory": "number?", "nativeSymbol": "nativeSymbols?", "innerWindowID": "number?", "line": "number?",
                   "column": "number?", "originalLocation": "sourceLocationTable?"},
    "funcTable": {"name": "string", "isJS": "boolean", "relevantForJS": "boolean", "resource": "resourceTable-",
                  "source": "sources?", "lineNumber": "number?", "columnNumber": "number?",
                  "originalLocation": "sourceLocationTable?"},
    "resourceTable": {"name": "string", "host": "string?", "type": "number", "lib": "lib?"},
    "nativeSymbols": {"libIndex": "lib", "address": "number", "name": "string", "functionSize": "number?"},
    "sources": {"id": "text?", "filename": "string", "startLine": "number", "startColumn": "number", "sourceMapURL": "string?",
                "content": "text?"},
    "sourceLocationTable": {"source": "sources", "line": "number", "column": "number"},
}


class Problem(Exception):
    pass


def demand(condition, *words):
    if not condition:
        raise Problem(" ".join(map(str, words)))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_index(value, length):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < length


def check_types(found, wanted, where):
    for key, kind in wanted.items():
        demand(key in found, where, "has no", key)
        value = found[key]
        demand(is_number(value) if kind is float else isinstance(value, kind), where, key, "is", value)


class Checker:
    def __init__(self, profile):
        self.profile, self.shared = profile, profile["shared"]
        self.lengths = {name: self.shared[name]["length"] for name in TABLES}
        self.lengths.update(string=len(self.shared["stringArray"]), lib=len(profile["libs"]),
                            category=len(profile["meta"]["categories"]))

    def check(self):
        self.meta()
        self.libs()
        demand(all(isinstance(text, str) for text in self.shared["stringArray"]), "stringArray holds more than strings")
        for name, columns in TABLES.items():
            self.table(self.shared[name], columns, name)
        self.stacks()
        self.frames()
        for number, thread in enumerate(self.profile["threads"]):
            self.thread(thread, "thread %d" % number)
        demand(isinstance(self.profile["pages"], list) and isinstance(self.profile["counters"], list), "pages, counters")

    def value(self, value, kind, where):
        if kind.endswith("?"):
            kind = kind[:-1]
            if value is None:
                return
        if kind.endswith("-"):
            kind = kind[:-1]
            if value == -1:
                return
        if kind == "number":
            demand(is_number(value) and value >= 0, where, "is", value)
        elif kind == "boolean":
            demand(isinstance(value, bool), where, "is", value)
        elif kind == "text":
            demand(isinstance(value, str), where, "is", value)
        else:
            demand(is_index(value, self.lengths[kind]), where, "is", value, "of", self.lengths[kind])

    def table(self, table, columns, name):
        demand(set(table) == set(columns) | {"length"}, name, "has the columns", sorted(table))
        for column, kind in columns.items():
            demand(len(table[column]) == table["length"], name, column, "has", len(table[column]), "rows of", table["length"])
            for value in table[column]:
                self.value(value, kind, "%s.%s" % (name, column))

    def meta(self):
        meta = self.profile["meta"]
        check_types(meta, META, "meta")
        demand(meta["preprocessedProfileVersion"] == VERSION, "version", meta["preprocessedProfileVersion"])
        demand(meta["interval"] > 0, "interval", meta["interval"])
        demand(meta["sampleUnits"] == {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}, "sampleUnits")
        demand(any(category["color"] == "grey" for category in meta["categories"]), "no grey category")
        for category in meta["categories"]:
            demand(category["color"] in COLORS and category["subcategories"][0] == "Other", "category", category)
        for key in ("initialVisibleThreads", "initialSelectedThreads"):
            demand(all(is_index(thread, len(self.profile["threads"])) for thread in meta.get(key, [])), key)

    def libs(self):
        for lib in self.profile["libs"]:
            check_types(lib, dict.fromkeys(("arch", "name", "path", "debugName", "debugPath", "breakpadId"), str), "lib")
            demand(re.fullmatch("[0-9A-F]{33}", lib["breakpadId"]), "breakpadId", lib["breakpadId"])
            demand(lib["codeId"] is None or re.fullmatch("[0-9a-f]+", lib["codeId"]), "codeId", lib["codeId"])
            if lib["codeId"] and len(lib["codeId"]) >= 32:
                data = bytes.fromhex(lib["codeId"])[:16]
                guid = data[3::-1] + data[5:3:-1] + data[7:5:-1] + data[8:]
                demand(lib["breakpadId"] == guid.hex().upper() + "0", "breakpadId and codeId differ")

    def stacks(self):
        for index, offset in enumerate(self.shared["stackTable"]["prefixOffset"]):
            demand(isinstance(offset, int) and 0 <= offset <= index, "stack", index, "has its parent", offset, "before it")

    def frames(self):
        """Inlined calls: the frames of one address form a chain with depths from 0 on, and share their symbol."""
        frames, stacks = self.shared["frameTable"], self.shared["stackTable"]
        for index, (frame, offset) in enumerate(zip(stacks["frame"], stacks["prefixOffset"])):
            depth = frames["inlineDepth"][frame]
            if depth == 0:
                continue
            demand(offset != 0, "stack", index, "begins with an inlined call")
            outer = stacks["frame"][index - offset]
            for column, expected in (("inlineDepth", depth - 1), ("address", frames["address"][frame]),
                                     ("nativeSymbol", frames["nativeSymbol"][frame])):
                demand(frames[column][outer] == expected, "stack", index, "is inlined into a frame with another", column)
        for category, subcategory in zip(frames["category"], frames["subcategory"]):
            demand(category is None or is_index(subcategory, len(self.profile["meta"]["categories"][category]["subcategories"])),
                   "subcategory", subcategory)

    def thread(self, thread, where):
        check_types(thread, THREAD, where)
        demand(isinstance(thread["tid"], (int, str)), where, "tid", thread["tid"])
        demand(thread["markers"]["length"] == len(thread["markers"]["data"]) == len(thread["markers"]["startTime"]), where, "markers")
        samples = thread["samples"]
        demand(("time" in samples) != ("timeDeltas" in samples), where, "has neither or both of time and timeDeltas")
        demand(samples["weightType"] in ("samples", "tracing-ms", "bytes"), where, samples["weightType"])
        for column in ("stack", "time", "timeDeltas", "weight", "threadCPUDelta"):
            values = samples.get(column)
            demand(values is None or len(values) == samples["length"], where, column, "is of another length")
        for stack in samples["stack"]:
            demand(stack is None or is_index(stack, self.lengths["stackTable"]), where, "stack", stack)
        demand(all(map(is_number, samples.get("weight") or [])), where, "weight")
        times = samples.get("timeDeltas") or [0]
        demand(all(is_number(delta) and delta >= 0 for delta in times[1:]) and is_number(times[0]), where, "goes back in time")


def check(path):
    with open(path, "rb") as file:
        data = file.read()
    profile = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    Checker(profile).check()
    return profile


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            check(name)
        except (Problem, KeyError, ValueError, TypeError) as problem:
            sys.exit("%s: %s: %s" % (name, type(problem).__name__, problem))
