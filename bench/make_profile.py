#!/usr/bin/env python3
"""Writes a pprof of many samples, for measuring what reads it: stacks of a random call tree, with lines and thread labels."""

import argparse
import itertools
import random
import zlib

CHOICES, WEIGHTS = range(6), (40, 25, 15, 10, 6, 4)  # a few callees are hot, the others are not
LOCATIONS_PER_FUNCTION = 4
THREADS, MAPPINGS = 64, 4


def varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    text.append(number)
    return bytes(text)


def integer(field, number):
    return varint(field << 3) + varint(number)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Strings:
    def __init__(self):
        self.index = {"": 0}

    def __call__(self, text):
        return self.index.setdefault(text, len(self.index))

    def encoded(self):
        return b"".join(message(6, text.encode()) for text in self.index)


def make_stack(generator, options):
    """Leaf first. The callee is chosen by the caller, so that stacks share their beginnings as those of programs do."""
    per_level = options.locations // options.frames
    at, stack = 0, []
    for level, choice in enumerate(generator.choices(CHOICES, WEIGHTS, k=options.frames)):
        at = 0 if level < 4 else (at * 7 + choice) % per_level
        stack.append(1 + level * per_level + at)
    return message(1, b"".join(map(varint, reversed(stack))))


def samples(generator, options, strings):
    stacks = [make_stack(generator, options) for _ in range(options.stacks)]
    labels = [message(3, integer(1, strings("thread id")) + integer(3, 1000 + thread))
              + message(3, integer(1, strings("thread name")) + integer(2, strings("worker-%d" % (thread % 8))))
              + message(3, integer(1, strings("pid")) + integer(3, 1000))
              + message(3, integer(1, strings("process name")) + integer(2, strings("server"))) for thread in range(THREADS)]
    values = [message(2, varint(1) + varint(nanoseconds)) for nanoseconds in range(10_000_000, 10_000_100)]
    for number in range(options.samples):
        # Every stack occurs, then they repeat in random order.
        stack = stacks[number] if number < len(stacks) else generator.choice(stacks)
        yield message(2, stack + generator.choice(values) + generator.choice(labels))


def mappings(strings):
    for number in range(MAPPINGS):
        start = 0x400000 + number * 0x1000000
        yield message(3, integer(1, number + 1) + integer(2, start) + integer(3, start + 0x1000000)
                      + integer(5, strings("/usr/lib/libpart%d.so" % number if number else "/usr/bin/server"))
                      + integer(6, strings("%040x" % (number + 1))) + b"".join(integer(flag, 1) for flag in (7, 8, 9)))


def locations(options):
    for number in range(options.locations):
        function = number // LOCATIONS_PER_FUNCTION
        address = 0x400000 + function % MAPPINGS * 0x1000000 + number * 16
        line = integer(1, function + 1) + integer(2, 10 + number % LOCATIONS_PER_FUNCTION)
        yield message(4, integer(1, number + 1) + integer(2, function % MAPPINGS + 1) + integer(3, address) + message(4, line))


def functions(options, strings):
    for number in range(options.locations // LOCATIONS_PER_FUNCTION):
        name = strings("server::part%d::Handler<std::vector<int, std::allocator<int> > >::step_%d(Request const&)" % (number % 97, number))
        yield message(5, integer(1, number + 1) + integer(2, name) + integer(3, strings("_ZN6server7step_%dEv" % number))
                      + integer(4, strings("/src/server/part%d.cc" % (number % 97))) + integer(5, 8))


def parts(options):
    generator, strings = random.Random(options.seed), Strings()
    yield message(1, integer(1, strings("samples")) + integer(2, strings("count")))
    yield message(1, integer(1, strings("cpu")) + integer(2, strings("nanoseconds")))
    yield from samples(generator, options, strings)
    yield from mappings(strings)
    yield from locations(options)
    yield from functions(options, strings)
    yield integer(9, 1_700_000_000_000_000_000) + integer(10, 60_000_000_000) + integer(14, strings("cpu"))
    yield strings.encoded()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--locations", type=int, default=20_000)
    parser.add_argument("--stacks", type=int, default=200_000, help="distinct ones")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    gzip = zlib.compressobj(1, zlib.DEFLATED, 31)
    everything = parts(options)
    with open(options.output, "wb") as file:
        while chunk := b"".join(itertools.islice(everything, 10_000)):
            file.write(gzip.compress(chunk))
        file.write(gzip.flush())


if __name__ == "__main__":
    main()
