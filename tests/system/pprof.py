"""Reads pprof profiles (gzip, protobuf) with the standard library alone: the tests' own eyes, independent of ddprof's code."""

import collections
import gzip

Sample = collections.namedtuple("Sample", "stack values labels addresses mappings")  # leaf first; inlined calls are names in stack only
Mapping = collections.namedtuple("Mapping", "start limit offset path build_id")
Call = collections.namedtuple("Call", "name linker_name file line start_line")
Location = collections.namedtuple("Location", "address mapping calls")  # calls: innermost inlined call first
Profile = collections.namedtuple("Profile", "types samples mappings period period_type duration_ns time_ns comments default_type locations")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data):
    """Yields (number, value): an int for varints, bytes for everything with a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise ValueError("field %d reaches behind the end" % number)
            value, at = data[at:at + length], at + length
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        else:
            raise ValueError("wire type %d" % kind)
        yield number, value


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def numbers(values):
    """Repeated integers, packed or not."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            result.append(one)
    return result


def first(found, number, fallback=0):
    return found[number][-1] if found[number] else fallback


class Decoder:
    def __init__(self, data):
        self.top = message(data)
        self.strings = [text.decode("utf-8", "replace") for text in self.top[6]]
        self.functions = {first(f, 1): self.function(f) for f in map(message, self.top[5])}
        self.locations = {first(l, 1): l for l in map(message, self.top[4])}
        self.mappings = {first(m, 1): self.mapping(m) for m in map(message, self.top[3])}

    def mapping(self, found):
        return Mapping(first(found, 2), first(found, 3), first(found, 4), self.strings[first(found, 5)],
                       self.strings[first(found, 6)])

    def function(self, found):
        return Call(self.strings[first(found, 2)], self.strings[first(found, 3)], self.strings[first(found, 4)], 0, first(found, 5))

    def location(self, found):
        lines = map(message, found[4])
        calls = [self.functions[first(line, 1)]._replace(line=first(line, 2)) for line in lines]
        return Location(first(found, 3), self.mappings.get(first(found, 2)), calls)

    def frames(self, location):
        """The names of one location, innermost inlined call first."""
        found = self.locations[location]
        names = [self.functions[first(message(line), 1)].name for line in found[4]]
        return names or ["0x%x" % first(found, 3)]

    def value_type(self, data):
        found = message(data)
        return "%s/%s" % (self.strings[first(found, 1)], self.strings[first(found, 2)])

    def label(self, data):
        found = message(data)
        text = first(found, 2)
        return self.strings[first(found, 1)], self.strings[text] if text else signed(first(found, 3))

    def sample(self, data):
        found = message(data)
        locations = numbers(found[1])
        stack = [name for location in locations for name in self.frames(location)]
        addresses = [first(self.locations[location], 3) for location in locations]
        mappings = [self.mappings.get(first(self.locations[location], 2)) for location in locations]
        return Sample(stack, [signed(v) for v in numbers(found[2])], dict(self.label(l) for l in found[3]), addresses, mappings)

    def profile(self):
        top = self.top
        period_type = self.value_type(top[11][-1]) if top[11] else ""
        return Profile([self.value_type(t) for t in top[1]], [self.sample(s) for s in top[2]],
                       list(self.mappings.values()), first(top, 12), period_type, first(top, 10), first(top, 9),
                       [self.strings[c] for c in numbers(top[13])], self.strings[first(top, 14)],
                       [self.location(l) for l in self.locations.values()])


def decode(data):
    return Decoder(data).profile()


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return decode(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def total(profile, value_type, where=lambda sample: True):
    column = profile.types.index(value_type)
    return sum(sample.values[column] for sample in profile.samples if where(sample))


# Frames that stand for what is missing from a stack, or for CPU time without one. Other names in brackets are code ([vdso]).
STOPPED = "[truncated"
ACCOUNTED = ("[unsampled", "[lost", "[throttled", "[kernel: not permitted", "[too many distinct", "[too many processes")


def find_frame(sample, prefix):
    """The last frame whose name begins with the prefix (or one of them), or None."""
    return next((name for name in reversed(sample.stack) if name.startswith(prefix)), None)
