"""Reads OTLP profiles by way of protoc and a schema, and holds them to the rules that the schema cannot state."""

import ast
import collections
import os
import subprocess

import harness
import pprof

SCHEMA = os.path.join(harness.REPOSITORY, "tests", "formats", "otlp_profiles.proto")
TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table", "attribute_table", "stack_table")
# What ddprof's labels are called by OpenTelemetry.
LABELS = {"thread.id": "thread id", "thread.name": "thread name", "process.pid": "pid", "process.executable.name": "process name",
          "process.vpid": "namespace pid", "container.id": "container_id", "process.linux.cgroup": "cgroup", "service.name": "service"}

Sample = collections.namedtuple("Sample", "column stack addresses mappings labels time value")


def protoc_text(path):
    with open(path, "rb") as file:
        result = subprocess.run(["protoc", "--proto_path=" + os.path.dirname(SCHEMA), "--decode=otlp.ExportProfilesServiceRequest",
                                 os.path.basename(SCHEMA)], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.PATIENCE)
    if result.returncode != 0 or result.stderr:
        raise ValueError("protoc: %s" % result.stderr.decode())
    return result.stdout.decode()


def parse(text):
    """protoc's text as {field: [values]}, messages within messages. A field that the schema does not have is a number there."""
    top = collections.defaultdict(list)
    open_messages = [top]
    for line in text.splitlines():
        word = line.strip()
        if word == "}":
            open_messages.pop()
        elif word.endswith("{"):
            message = collections.defaultdict(list)
            open_messages[-1][known(word[:-1].strip())].append(message)
            open_messages.append(message)
        else:
            name, _, value = word.partition(": ")
            open_messages[-1][known(name)].append(scalar(value))
    return top


def known(name):
    if name.isdigit():
        raise ValueError("field %s is not in the schema" % name)
    return name


def scalar(text):
    if text.startswith('"'):
        return ast.literal_eval("b" + text).decode(errors="surrogateescape")  # ids of traces are bytes, not text; protoc checks text
    return text == "true" if text in ("true", "false") else int(text)


def one(message, name, fallback=0):
    return message[name][0] if message[name] else fallback


def any_value(message):
    for kind in ("string_value", "int_value", "bool_value"):
        if message[kind]:
            return message[kind][0]
    return [any_value(value) for value in one(message, "array_value")["values"]]


def key_values(messages):
    found = {message["key"][0]: any_value(message["value"][0]) for message in messages}
    if len(found) != len(messages):
        raise ValueError("a key has two values")
    return found


def frozen(message):
    if isinstance(message, dict):
        return tuple(sorted((name, tuple(map(frozen, values))) for name, values in message.items() if values))
    return message


class Reader:
    """The facts of a request. `used` counts what refers to each entry of each table."""

    def __init__(self, path):
        self.top = parse(protoc_text(path))
        self.tables = one(self.top, "dictionary", collections.defaultdict(list))
        self.used = {table: collections.Counter() for table in TABLES}
        self.profiles = [(resource, scope, profile) for resource in self.top["resource_profiles"]
                         for scope in resource["scope_profiles"] for profile in scope["profiles"]]
        self.samples = [sample for parts in self.profiles for sample in self.samples_of(*parts)]
        for resource, scope, profile in self.profiles:
            self.attributes(profile)

    def at(self, table, index):
        if not 0 <= index < len(self.tables[table]):
            raise ValueError("%s has no element %d" % (table, index))
        self.used[table][index] += 1
        return self.tables[table][index]

    def string(self, message, name):
        return self.at("string_table", one(message, name))

    def attributes(self, message):
        found = {}
        for index in message["attribute_indices"]:
            entry = self.at("attribute_table", index)
            self.string(entry, "unit_strindex")
            found[self.string(entry, "key_strindex")] = any_value(entry["value"][0])
        return found

    def value_type(self, message):
        return "%s/%s" % (self.string(message, "type_strindex"), self.string(message, "unit_strindex"))

    def call(self, line):
        function = self.at("function_table", one(line, "function_index"))
        return pprof.Call(self.string(function, "name_strindex"), self.string(function, "system_name_strindex"),
                          self.string(function, "filename_strindex"), one(line, "line"), one(function, "start_line"))

    def mapping(self, index):
        message = self.at("mapping_table", index)
        build_id = self.attributes(message).get("process.executable.build_id.gnu", "")
        return pprof.Mapping(one(message, "memory_start"), one(message, "memory_limit"), one(message, "file_offset"),
                             self.string(message, "filename_strindex"), build_id) if index else None

    def location(self, index):
        message = self.at("location_table", index)
        self.attributes(message)
        return pprof.Location(one(message, "address"), self.mapping(one(message, "mapping_index")), [self.call(line) for line in message["lines"]])

    def samples_of(self, resource, scope, profile):
        process = key_values(resource["resource"][0]["attributes"])
        column = self.value_type(profile["sample_type"][0])
        for sample in profile["samples"]:
            found = dict(process, **self.attributes(sample))
            labels = {LABELS.get(key, key): value for key, value in found.items() if not key.startswith("telemetry.sdk.")}
            stack = self.at("stack_table", one(sample, "stack_index"))
            locations = [self.location(index) for index in stack["location_indices"]]
            names = tuple(name for location in locations for name in [call.name for call in location.calls] or ["0x%x" % location.address])
            for value, time in self.measured(sample):
                yield Sample(column, names, tuple(l.address for l in locations), tuple(l.mapping for l in locations), frozenset(labels.items()), time, value)

    @staticmethod
    def measured(sample):
        values, times = sample["values"], sample["timestamps_unix_nano"]
        if not times:
            return [(values[0], None)] if len(values) == 1 else []
        return zip(values or [1] * len(times), times)

    def check_rules(self):
        """A list of what the specification forbids: empty when all is well."""
        found = []
        for table in TABLES:
            entries = [frozen(entry) for entry in self.tables[table]]
            zero = "" if table == "string_table" else ()
            if table == "link_table":
                zero = frozen({"trace_id": ["\0" * 16], "span_id": ["\0" * 8]})
            if not entries or entries[0] != zero:
                found.append("%s does not begin with a zero element" % table)
            found += ["%s holds twice: %r" % (table, entry) for entry, count in collections.Counter(entries).items() if count > 1]
            found += ["%s holds unused: %r" % (table, self.tables[table][index]) for index in range(1, len(entries)) if not self.used[table][index]]
        for _, _, profile in self.profiles:
            found += self.check_samples(profile["samples"])
        found += ["location 0 is in a stack"] * any(0 in stack["location_indices"] for stack in self.tables["stack_table"])
        return found

    @staticmethod
    def check_samples(samples):
        identities = collections.Counter((one(s, "stack_index"), frozenset(s["attribute_indices"]), one(s, "link_index")) for s in samples)
        found = ["a sample is there twice: %r" % (identity,) for identity, count in identities.items() if count > 1]
        shapes = {(bool(s["values"]), bool(s["timestamps_unix_nano"])) for s in samples}
        if len(shapes) != 1:
            found.append("a profile has samples of %d shapes" % len(shapes))
        for sample in samples:
            values, times = len(sample["values"]), len(sample["timestamps_unix_nano"])
            if not (times == 0 and values == 1 or times > 0 and values in (0, times)):
                found.append("a sample has %d values and %d times" % (values, times))
        return found
