"""What one upload of a profile is made of, as {name: shape}, and how two uploads differ."""

import email
import json
import os
import re

import agent
import judges

ABSENT = "-"
# Whose profile it is, where it is sent from: they depend on the machine, and are compared by their values.
IDENTITY_HEADERS = ("datadog-container-id", "datadog-entity-id", "datadog-external-env")
PLACE_LABELS = ("cgroup", "container_id", "namespace pid")  # where the process is, if it is somewhere
SHAPES = ((r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a UUID"), (r"v?\d+\.\d+\.\d+", "a version"),
          (r"\d+", "a number"), (r"true|false", "true or false"), (re.escape(os.uname().nodename), "the host's name"))


class Upload:
    def __init__(self, path, headers, body):
        self.path, self.headers = path, {name.lower(): value for name, value in headers.items()}
        message = email.message_from_bytes(b"Content-Type: " + self.headers["content-type"].encode() + b"\r\n\r\n" + body)
        self.parts = {part.get_param("name", header="content-disposition"): part for part in message.get_payload()}
        self.event = json.loads(self.parts["event"].get_payload(decode=True))
        self.tags = dict(tag.split(":", 1) for tag in self.event["tags_profiler"].split(","))
        self.origin = self.headers["dd-evp-origin"]

    def unpack(self, name, path):
        """Writes an attachment without its compression. Returns the path."""
        with open(path, "wb") as file:
            file.write(agent.unpacked(self.parts[name].get_payload(decode=True)))
        return path


def shape(text):
    """What is different in each run or on each machine has a name instead."""
    for pattern, name in SHAPES:
        if re.fullmatch(pattern, text):
            return name
    return re.sub(r"\d", "0", text) if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", text) else text


def headers_of(upload):
    facts = {"header `%s`" % name: "sent" for name in upload.headers if name not in IDENTITY_HEADERS}
    facts.pop("header `connection`")  # Node 18 closes, as we do; Node 20 keeps alive
    facts["content type of the request"] = upload.headers["content-type"].split(";")[0]
    return facts


def parts_of(upload):
    return {"part `%s`" % name: "`%s`, %s" % (part.get_filename(), part.get_content_type()) for name, part in upload.parts.items()}


def tags_of(upload):
    return {"tag `%s`" % name: "`%s`" % shape(value) for name, value in upload.tags.items()}


def kind_of(value):
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names[type(value)]


def event_facts(theirs, ours, path=""):
    """The two sides of event.json. What one side does not have is one fact, with all that it holds."""
    sides = {}, {}
    for key in {*theirs, *ours}:
        place = "%s.%s" % (path, key) if path else key
        if isinstance(theirs.get(key), dict) and isinstance(ours.get(key), dict):
            found = event_facts(theirs[key], ours[key], place)
        elif key in theirs and key in ours:
            found = tuple({"key `%s`" % place: value_of(place, side[key])} for side in (theirs, ours))
        else:
            found = tuple({"key `%s`" % place: kind_of(side[key])} if key in side else {} for side in (theirs, ours))
        for side, facts in zip(sides, found):
            side.update(facts)
    return sides


def value_of(place, value):
    """Tags and parts are compared on their own: here it is their form that counts."""
    if place in ("attachments", "tags_profiler"):
        return "%s of %s" % (kind_of(value), "file names" if place == "attachments" else "`name:value`, joined by commas")
    return "`%s`" % shape(value) if isinstance(value, str) else kind_of(value)


def pprof_facts(path):
    seen = judges.read_pprof(path)
    facts = {"pprof column `%s`" % column: "column %d" % (i + 1) for i, column in enumerate(seen["types"])}
    facts.update({"pprof label `%s`" % key: kind for key, kind in seen["labelKinds"].items() if key not in PLACE_LABELS})
    facts["pprof `period_type`"] = "`%s`" % seen["periodType"]
    facts["pprof `default_sample_type`"] = "`%s`" % seen["defaultType"]
    facts["pprof mappings"] = "with build ids" if any(seen["buildIds"]) else ABSENT
    facts["pprof addresses"] = "in locations" if any(one["address"] != "0" for sample in seen["samples"] for one in sample["stack"]) else ABSENT
    return facts


def differences(theirs, ours):
    """[(what, theirs, ours)] of two tables of facts."""
    pairs = ((what, theirs.get(what, ABSENT), ours.get(what, ABSENT)) for what in sorted({*theirs, *ours}))
    return [pair for pair in pairs if pair[1] != pair[2]]
