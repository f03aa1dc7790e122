"""Files that mean harm: each of HOSTILE is one that brought a profiler down or could have, and mutants() changes the structure of real
files: counts, sizes, offsets, links, and not only bytes. `make_files.py FOLDER [SEED COUNT FILE...]` writes them; large ones are sparse."""

import os
import random
import struct
import sys
import zlib

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
PT_LOAD, PT_NOTE, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS = 1, 4, 1, 2, 3, 4, 7, 8
MIB, GIB = 1 << 20, 1 << 30
CODE = 0x1000  # where code is, in the file and in memory
# A function that counts down from a million: samples fall into it. It pops its return address and jumps there, so that its instructions
# do not tell where its caller is, and unwinding needs what the file says.
SPIN = b"\xb9\x40\x42\x0f\x00\xff\xc9\x75\xfc\x59\xff\xe1"


class Elf:
    """A small program or library with one executable page, and sections as they are added. Data is written where it is put."""

    def __init__(self):
        self.sections, self.names = [(b"", 0, 0, 0, 0, 0, 0, 0, 0)], b"\0"
        self.pieces, self.end = [(CODE, SPIN + b"\x90" * 0xffe)], CODE + 0x1000
        self.memory = CODE + 0x1000

    def put(self, data, size=None, at=None):
        """Writes `data`, in a hole of `size` bytes. Returns where."""
        at = self.end if at is None else at
        self.pieces.append((at, data))
        self.end = max(self.end, (at + max(len(data), size or 0) + 15) // 16 * 16)
        return at

    def add(self, name, data=b"", size=None, kind=SHT_PROGBITS, flags=0, link=0, entry=0, at=None, address=0, info=0):
        at = self.put(data, size) if at is None else at
        self.sections.append((name, kind, flags, address, at, len(data) if size is None else size, link, info, entry))
        return len(self.sections) - 1

    def write(self, path, names=None, shnum=None, segments=None, entry=CODE):
        names_of, texts = [], b"\0"
        for name, *_ in self.sections:
            names_of.append(len(texts) if name else 0)
            texts += name + b"\0" if name else b""
        if names is None:
            strings = self.add(b"", texts, kind=SHT_STRTAB)
        else:
            strings, names_of = names, [0] + [1] * (len(self.sections) - 1)
        names_of += [0] * (len(self.sections) - len(names_of))
        table = b"".join(SHDR.pack(name_at, kind, flags, address, at, size, link, info, 1, entry)
                         for name_at, (_, kind, flags, address, at, size, link, info, entry) in zip(names_of, self.sections))
        phdr = PHDR.pack(PT_LOAD, 5, 0, 0, 0, CODE + 0x1000, self.memory, 0x1000)
        phoff, phnum = EHDR.size, 1
        self.pieces.append((phoff, phdr))
        if segments:
            phoff, phnum = segments
        shoff = self.put(table)
        count = len(self.sections) if shnum is None else shnum
        header = EHDR.pack(IDENT, 3, 62, 1, entry, phoff, shoff, 0, EHDR.size, PHDR.size, min(phnum, 0xffff), SHDR.size,
                           count if count < 0xff00 else 0, strings if strings < 0xff00 else 0xffff)
        with open(path, "wb") as file:
            for at, data in self.pieces:
                file.seek(at)
                file.write(data)
            file.seek(0)
            file.write(header)
            file.truncate(max(self.end, file.seek(0, 2)))
        os.chmod(path, 0o755)


def cie(length=None):
    body = struct.pack("<IB", 0, 1) + b"zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"
    return struct.pack("<I", len(body) if length is None else length) + body


def many_segments(path):
    """PN_XNUM: as many program headers as a sparse file of gigabytes holds."""
    elf = Elf()
    at = elf.put(b"", size=3 * GIB)
    elf.sections[0] = (b"", 0, 0, 0, 0, 0, 0, 3 * GIB // PHDR.size, 0)
    elf.write(path, segments=(at, 0xffff))


def many_sections(path):
    """131,072 sections that share a name of 8 MiB without an end."""
    elf = Elf()
    names = elf.add(b"", b"\0" + b"x" * (8 * MIB), kind=SHT_STRTAB)
    for _ in range(131072 - len(elf.sections)):
        elf.sections.append((b"x", SHT_PROGBITS, 0, 0, CODE, 16, 0, 0, 0))
    elf.sections[0] = (b"", 0, 0, 0, 0, len(elf.sections), names, 0, 0)
    elf.write(path, names=names, shnum=0)


def names_without_end(path):
    """As many sections as are read, with names of 8 MiB without an end."""
    elf = Elf()
    names = elf.add(b"", b"\0" + b"x" * (8 * MIB), kind=SHT_STRTAB)
    for _ in range(60000):
        elf.sections.append((b"x", SHT_PROGBITS, 0, 0, CODE, 16, 0, 0, 0))
    elf.write(path, names=names)


def large_debug_info(path):
    """.debug_info of 1.5 GiB: zeros that are not on the disk, units of no bytes."""
    elf = Elf()
    elf.add(b".debug_abbrev", b"\x01\x11\0\0\0\0")
    elf.add(b".debug_info", b"", size=3 * GIB // 2)
    elf.write(path)


def many_units(path):
    """Units of one byte each, as many as fit into 64 MiB."""
    elf = Elf()
    elf.add(b".debug_abbrev", b"\x01\x11\0\0\0\0")
    elf.add(b".debug_info", struct.pack("<IB", 1, 0) * (64 * MIB // 5))
    elf.write(path)


def packed_debug_info(path):
    """.debug_info that unpacks to 1.5 GiB."""
    elf = Elf()
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(16 * MIB)) for _ in range(96)) + packer.flush()
    elf.add(b".debug_abbrev", b"\x01\x11\0\0\0\0")
    elf.add(b".debug_info", struct.pack("<IIQQ", 1, 0, 3 * GIB // 2, 1) + packed, flags=0x800)
    elf.write(path)


def large_eh_frame(path):
    """.eh_frame of 3 GiB, nearly all of it not on the disk."""
    elf = Elf()
    elf.add(b".eh_frame", cie(), size=3 * GIB, flags=2)
    elf.write(path, entry=0)  # not where stacks end


def fde(at, section):
    """For all code, `at` bytes into a section at this address, whose CIE is its first record."""
    body = struct.pack("<I", at + 4) + struct.pack("<iI", CODE - (section + at + 8), 0x1000) + b"\0\0\0\0"
    return struct.pack("<I", len(body)) + body


def distant_eh_frame(path, offset=2 * MIB):
    """An honest .eh_frame, far behind everything else in the file. Not one of HOSTILE."""
    elf = Elf()
    data = cie() + fde(len(cie()), offset)
    elf.add(b".eh_frame", data, at=offset, address=offset, flags=2)
    elf.pieces.append((offset, data))
    elf.write(path, entry=0)


def many_rows(path, rows):
    """An honest .eh_frame whose table has this many rows. Not one of HOSTILE."""
    elf = Elf()
    elf.memory = CODE + rows + 0x1000
    elf.end = (elf.end + rows + 0xffff) // 0x1000 * 0x1000
    start, at = cie(), (elf.end + 15) // 16 * 16
    steps = b"".join(b"\x41\x0e" + bytes([8 + 8 * (row % 8)]) for row in range(rows))  # a byte on, another CFA
    body = struct.pack("<I", len(start) + 4) + struct.pack("<iI", CODE - (at + len(start) + 8), rows + 0x1000) + b"\0\0\x0e\x08" + steps
    data = start + struct.pack("<I", len(body)) + body + bytes(4)
    elf.add(b".eh_frame", data, at=elf.put(data, at=at), address=at, flags=2)
    elf.write(path, entry=0)


def eh_frame_of_cies(path):
    """60 MiB of CIEs: each takes ten times its bytes in memory."""
    elf = Elf()
    elf.add(b".eh_frame", cie() * (60 * MIB // len(cie())), flags=2)
    elf.write(path)


def eh_frame_of_rows(path):
    """60 MiB of instructions that make a row every three bytes, each with an expression of a megabyte."""
    elf = Elf()
    elf.memory = 64 * MIB
    expression = b"\x0f\x80\x80\x40" + b"\x77\x00" + b"\x23\x01" * (MIB // 2 - 1)  # DW_CFA_def_cfa_expression
    rows = expression + b"\x41" * (16 * MIB) + b"\x0e\x10\x41\x0e\x18\x41" * (43 * MIB // 6)
    start = cie()
    at = (elf.end + 15) // 16 * 16
    fde_at = at + len(start)
    body = struct.pack("<I", len(start) + 4) + struct.pack("<iI", CODE - (fde_at + 8), elf.memory - CODE) + b"\0" + rows
    elf.add(b".eh_frame", start + struct.pack("<I", len(body)) + body, at=elf.put(start + struct.pack("<I", len(body)) + body, at=at),
            address=at, flags=2)
    elf.write(path)


def symbols(count, name, names, value=CODE, size=0):
    return bytes(SYM.size) + SYM.pack(name, 0x12, 0, 1, value, size) * count


def many_symbols(path):
    """5 million functions of one name of 8 MiB without an end, at one place."""
    elf = Elf()
    elf.add(b".text", at=CODE, size=0x1000, flags=6, address=CODE)
    names = elf.add(b".strtab", b"\0" + b"_" * (8 * MIB), kind=SHT_STRTAB)
    elf.add(b".symtab", symbols(5_000_000, 1, names), kind=SHT_SYMTAB, link=names, entry=24)
    elf.write(path)


def unsized_symbols(path):
    """A million functions without a size, at one place, that differ in nothing but their last underscore."""
    elf = Elf()
    elf.add(b".text", at=CODE, size=0x1000, flags=6, address=CODE)
    names = elf.add(b".strtab", b"\0" + b"_" * 4000 + b"x\0", kind=SHT_STRTAB)
    table = bytes(SYM.size) + b"".join(SYM.pack(1 + i % 3900, 0x12, 0, 1, CODE, i % 2) for i in range(1_000_000))
    elf.add(b".symtab", table, kind=SHT_SYMTAB, link=names, entry=24)
    elf.write(path)


def sparse_symbols(path):
    """A symbol table of a terabyte."""
    elf = Elf()
    elf.add(b".text", at=CODE, size=0x1000, flags=6, address=CODE)
    names = elf.add(b".strtab", b"\0x\0", kind=SHT_STRTAB)
    elf.add(b".symtab", symbols(4, 1, names, size=16), size=1 << 40, kind=SHT_SYMTAB, link=names, entry=24)
    elf.write(path)


def many_notes(path):
    """Thousands of sections that mean the same list of a million notes."""
    elf = Elf()
    note = struct.pack("<III4s", 4, 0, 1, b"GNU\0") * 1_000_000
    at = elf.put(note)
    for _ in range(50000):
        elf.sections.append((b"", SHT_NOTE, 2, 0, at, len(note), 0, 0, 0))
    elf.write(path)


def many_relocations(path):
    """A Go program whose sections all mean the same relocations, none of which is the one that is looked for."""
    elf = Elf()
    relocations = elf.put(struct.pack("<QQq", 0x5000, 8, 1) * 1_000_000)
    elf.add(b".go.buildinfo", b"\xff Go buildinf:")
    table = struct.pack("<IIQQQ", 0xfffffff1, 0x08010000, 1, 0, 0) + bytes(40) + bytes(64)
    elf.add(b".gopclntab", table, address=0x5000, flags=2)
    for _ in range(50000):
        elf.sections.append((b"", SHT_RELA, 2, 0, relocations, 24_000_000, 0, 0, 24))
    elf.write(path)


def long_go_sequences(path):
    """A table of Go whose functions all have the same sequence of 16 million steps."""
    elf = Elf()
    functions, steps = 4096, 16_000_000
    sequences = b"\x02\x01\x01\x01" * (steps // 2)
    header = 72
    table = b""
    descriptions = functions * 8 + 8
    entries = b"".join(struct.pack("<II", i, descriptions) for i in range(functions)) + struct.pack("<II", 0x1000, 0)
    description = struct.pack("<IIiIIIIIiI", 0, 1, 0, 0, 1, 1, 1, 3, 0, 0) + b"\0\0\0\4" + struct.pack("<III", 1, 1, 1) + bytes(64)
    names = b"\0x\0" + bytes(13)
    at_names = header
    at_sequences = at_names + len(names)
    at_functions = (at_sequences + 1 + len(sequences) + 15) // 16 * 16
    table = struct.pack("<IIQQQQQQQQ", 0xfffffff1, 0x08010000, functions, 0, CODE, at_names, at_names, at_names, at_sequences, at_functions)
    body = table + names + b"\0" + sequences
    body += bytes(at_functions - len(body)) + entries + description
    elf.add(b".gopclntab", body, address=0x100000, flags=2)
    elf.write(path)


def abbreviations_without_end(path):
    """8 MiB of abbreviations without attributes, which every unit reads to its end."""
    elf = Elf()
    elf.add(b".debug_abbrev", b"".join(bytes([0x80 | (i & 0x7f), 0x80 | (i >> 7 & 0x7f), 0x80 | (i >> 14 & 0x7f), i >> 21, 0x11, 0, 0, 0])
                                       for i in range(1, MIB)) + b"\0")
    unit = struct.pack("<IHIB", 12, 4, 0, 8) + b"\xff\xff\xff\x02\0"
    elf.add(b".debug_info", unit * 100_000)
    elf.write(path)


def sparse_go_rodata(path):
    """A Go program whose table is to be looked for in a terabyte."""
    elf = Elf()
    elf.add(b".go.buildinfo", b"\xff Go buildinf:")
    elf.add(b".rodata", b"", size=1 << 40, flags=2, address=0x5000)
    elf.write(path)


def perf_map(path, size=126 * MIB):
    """Lines of a perf map, all of them different."""
    block = b"".join(b"@%04x 1 f\n" % start for start in range(0, 1 << 16, 2))
    with open(path, "wb") as file:
        number = 1
        while file.tell() < size:
            file.write(block.replace(b"@", b"%x" % number))
            number += 1
        file.truncate(size)


def perf_map_of_names(path, size=126 * MIB):
    """Lines of a perf map with names as long as they may be."""
    with open(path, "wb") as file:
        block = b"".join(b"@%04x 10 %s\n" % (start, b"n" * 290) for start in range(0, 1 << 16, 16))
        number = 1
        while file.tell() < size:
            file.write(block.replace(b"@", b"%x" % number))
            number += 1


def jit_dump(path):
    """A jitdump with 200,000 functions, of unwinding information that makes many rows."""
    start = cie()
    rows = b"\x0e\x10\x41\x0e\x18\x41" * 20
    with open(path, "wb") as file:
        file.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0))
        records = []
        for i in range(200_000):
            address = 0x10000 + i * 64
            body = struct.pack("<I", len(start) + 4) + struct.pack("<iI", -64 - len(start) - 8, 64) + b"\0" + rows
            frames = start + struct.pack("<I", len(body)) + body
            unwinding = struct.pack("<QQQ", len(frames), 0, 0) + frames
            records.append(struct.pack("<IIQ", 4, 16 + len(unwinding), 0) + unwinding)
            load = struct.pack("<IIQQQQ", 1, 1, address, address, 64, i) + b"function%d\0" % i
            records.append(struct.pack("<IIQ", 0, 16 + len(load), 0) + load)
        file.write(b"".join(records))


HOSTILE = {make.__name__: make for make in (
    many_segments, many_sections, names_without_end, large_debug_info, many_units, packed_debug_info, large_eh_frame, eh_frame_of_cies,
    eh_frame_of_rows, many_symbols, unsized_symbols, sparse_symbols, many_notes, many_relocations, long_go_sequences,
    abbreviations_without_end, sparse_go_rodata, perf_map, perf_map_of_names, jit_dump)}


class Mutator:
    """Changes numbers that mean something: where they are is known from the file itself."""

    INTERESTING = (0, 1, 2, 3, 7, 8, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff,
                   1 << 32, 1 << 40, (1 << 47) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)

    def __init__(self, data, seed):
        self.data, self.random = bytearray(data), random.Random(seed)

    def number(self, at, size, old=None):
        """Another value for the number of so many bytes at `at`."""
        if at < 0 or at + size > len(self.data):
            return
        old = int.from_bytes(self.data[at:at + size], "little")
        choose = self.random
        value = choose.choice((choose.choice(self.INTERESTING), old + choose.randint(-16, 16), old * 2, old // 2, old ^ 1 << choose.randrange(8 * size),
                               len(self.data) - choose.randint(0, 64), choose.getrandbits(8 * size)))
        self.data[at:at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    def header(self):
        self.number(*self.random.choice(((24, 8), (32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2))))

    def table_of(self, offset_at, count_at, entry):
        offset, count = int.from_bytes(self.data[offset_at:offset_at + 8], "little"), int.from_bytes(self.data[count_at:count_at + 2], "little")
        return [offset + i * entry for i in range(min(count, 256)) if offset + (i + 1) * entry <= len(self.data)]

    def segment(self):
        rows = self.table_of(32, 56, PHDR.size)
        if rows:
            self.number(self.random.choice(rows) + self.random.choice((0, 4, 8, 16, 32, 40, 48)), self.random.choice((4, 8)))

    def sections(self):
        return self.table_of(40, 60, SHDR.size)

    def section(self):
        rows = self.sections()
        if rows:
            at, size = self.random.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)))
            self.number(self.random.choice(rows) + at, size)

    def section_twice(self):
        """One header becomes another, with its name: links and tables cross."""
        rows = self.sections()
        if len(rows) > 2:
            one, two = self.random.sample(rows, 2)
            self.data[one + 4:one + 64] = self.data[two + 4:two + 64]

    def content(self):
        """A number in a section: lengths of units, records and tables stand at their beginnings, and anywhere."""
        rows = self.sections()
        if not rows:
            return self.anywhere()
        row = self.random.choice(rows)
        offset, size = (int.from_bytes(self.data[row + at:row + at + 8], "little") for at in (24, 32))
        if size == 0 or offset + size > len(self.data):
            return self.anywhere()
        place = self.random.choice((0, 4, 6, 8, 12, 16, 24, self.random.randrange(size)))
        self.number(offset + min(place, size - 1), self.random.choice((1, 2, 4, 8)))

    def records(self):
        """Lengths of the records of CFI and of units, which follow each other."""
        rows = self.sections()
        if not rows:
            return self.anywhere()
        row = self.random.choice(rows)
        at, size = (int.from_bytes(self.data[row + field:row + field + 8], "little") for field in (24, 32))
        end, steps = min(at + size, len(self.data)), self.random.randrange(1, 40)
        while steps > 0 and at + 4 < end:
            length = int.from_bytes(self.data[at:at + 4], "little")
            steps -= 1
            if steps == 0 or length > end - at:
                break
            at += 4 + length
        self.number(at + self.random.choice((0, 4, 8)), 4)

    def anywhere(self):
        self.number(self.random.randrange(len(self.data)), self.random.choice((1, 2, 4, 8)))

    def cut(self):
        del self.data[self.random.randrange(len(self.data)):]

    def grow(self):
        """Repeats a piece: counts that fit no more."""
        at = self.random.randrange(len(self.data))
        piece = self.data[at:at + self.random.randrange(1, 4096)]
        self.data[at:at] = piece * self.random.randrange(1, 64)

    def mutate(self):
        steps = (self.header, self.segment, self.section, self.section, self.section_twice, self.content, self.content, self.content, self.records,
                 self.records, self.anywhere, self.cut, self.grow)
        weights = (1, 2, 4, 4, 2, 4, 4, 4, 4, 4, 2, 1, 1)
        for step in self.random.choices(steps, weights, k=self.random.randrange(1, 6)):
            if len(self.data) < 64:
                break
            step()
        return bytes(self.data)


def mutants(sources, seed, count):
    """`count` changed copies of these contents; the same for the same seed."""
    for number in range(seed, seed + count):
        yield number, Mutator(sources[number % len(sources)], number).mutate()


def main(folder, seed=None, count=0, *files):
    os.makedirs(folder, exist_ok=True)
    if seed is None:
        for name, make in HOSTILE.items():
            make(os.path.join(folder, name))
            print(os.path.join(folder, name), flush=True)
        return
    sources = [open(file, "rb").read() for file in files]
    for number, data in mutants(sources, int(seed), int(count)):
        path = os.path.join(folder, "mutant%d" % number)
        with open(path, "wb") as file:
            file.write(data)
        print(path, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
