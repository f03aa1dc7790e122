"""The rows of the matrix: which programs, built how, run how. Variants of the puppets are built when a row needs them."""

import collections
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PUPPETS = os.path.join(HERE, "puppets")

# build: a function that returns the program's path, or None for programs of the system. during: a function that
# drives the program while it runs, given the scratch folder. twin: builds the same code with symbols, for a file without any.
# required: whether the row counts for the exit status.
Row = collections.namedtuple("Row", "name build command during twin quick required needs")


def row(name, build, command, during=None, twin=None, quick=False, required=True, needs=()):
    return Row(name, build, command, during, twin, quick, required, needs)


class Builder:
    """Compiles a puppet once per set of flags; a variant that is newer than its sources is kept."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)

    def is_current(self, source, output):
        sources = [source] + [os.path.join(PUPPETS, name) for name in os.listdir(PUPPETS) if name.endswith(".h")]
        return os.path.exists(output) and all(os.path.getmtime(s) < os.path.getmtime(output) for s in sources)

    def compile(self, puppet, variant, command, environment=None):
        source, output = os.path.join(PUPPETS, puppet), os.path.join(self.folder, variant)
        if not self.is_current(source, output):
            made = "%s.%d.new" % (output, threading.get_ident())  # rows that share a program are built at the same time
            line = [part.format(source=source, output=made) for part in command]
            done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=dict(os.environ, **(environment or {})))
            if done.returncode != 0:
                raise RuntimeError("%s\n%s" % (" ".join(line), done.stdout))
            os.rename(made, output)
        return output

    def native(self, puppet, compiler, *flags):
        stem, extension = os.path.splitext(puppet)
        if extension == ".cpp":
            compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
            flags += ("-std=c++20",)
        variant = "_".join([stem, compiler.replace("+", "p")] + [flag.strip("-").replace("=", "") for flag in flags])
        return self.compile(puppet, variant, [compiler, "-g", "-w", *flags, "-o", "{output}", "{source}", "-pthread", "-ldl"])

    def rust(self, variant, *flags):
        return self.compile("rust_shares.rs", "rust_" + variant, ["rustc", "-g", *flags, "-o", "{output}", "{source}"])

    def go(self, variant, *flags):
        environment = {"GO111MODULE": "off", "GOCACHE": os.path.join(self.folder, "go_cache")}
        return self.compile("go_shares.go", "go_" + variant, ["go", "build", *flags, "-o", "{output}", "{source}"], environment)


LINKS = {
    "PIE": ("-fPIE", "-pie"),
    "no-pie": ("-fno-pie", "-no-pie"),
    "static": ("-fno-pie", "-no-pie", "-static"),
    "static-pie": ("-fPIE", "-static-pie"),
    "stripped": ("-fPIE", "-pie", "-s"),
}
FRAME_POINTERS = {"no fp": "-fomit-frame-pointer", "fp": "-fno-omit-frame-pointer"}
# Each level, each kind of link and both settings of the frame pointer, once with each compiler or nearly so.
QUICK = {
    "gcc -O0 fp PIE", "gcc -O1 no fp no-pie", "gcc -O2 no fp PIE", "gcc -O2 no fp static", "gcc -O2 no fp stripped",
    "gcc -O3 no fp static-pie", "clang -O0 no fp PIE", "clang -O1 fp static", "clang -O2 no fp PIE", "clang -O3 no fp stripped",
    "clang -O3 no fp static-pie",
}


def compiled_rows(builder, seconds):
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            for pointer, pointer_flag in FRAME_POINTERS.items():
                for link, link_flags in LINKS.items():
                    name = "%s %s %s %s" % (compiler, level, pointer, link)

                    def build(compiler=compiler, flags=(level, pointer_flag, *link_flags)):
                        return builder.native("nested48.cpp", compiler, *flags)

                    yield row(name, build, [str(seconds / 2)], quick=name in QUICK, needs=[compiler])


WITHOUT_CFI = ("-fomit-frame-pointer", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")


def rows_without_cfi(builder, seconds):
    """Neither CFI nor frame pointers: frames are left by rules made from the instructions."""
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            for link in ("PIE", "static"):
                def build(compiler=compiler, flags=(level, *WITHOUT_CFI, *LINKS[link])):
                    return builder.native("nested48.cpp", compiler, *flags)

                name = "%s %s no CFI %s" % (compiler, level, link)
                yield row(name, build, [str(seconds / 2)], quick=level == "-O2" and link == "PIE", needs=[compiler])


def musl_rows(builder, seconds):
    """musl has no CFI, and neither has what is built here; Debian's musl-tools."""
    for name, flags in (("musl static", ("-static",)), ("musl static, no CFI", ("-static", *WITHOUT_CFI)), ("musl", ())):
        def build(flags=flags):
            return builder.native("qsort_callback.c", "musl-gcc", "-O2", "-fomit-frame-pointer", *flags)

        yield row(name, build, [str(seconds)], quick=True, needs=["musl-gcc"])


def special_rows(builder, seconds):
    text = str(seconds)
    cases = [
        ("alloca", "alloca_user.c", [text], True),
        ("untouched buffers", "hollow_frames.c", [text], True),
        ("realigned frames", "realigned.c", [text], True),
        # What they return to is read from memory, and a busy machine reads it too late for some.
        ("frames larger than the copy", "large_frames.c", [text], False),
        ("qsort callback", "qsort_callback.c", [text], True),
        ("signal handler", "signal_handler.c", [text, "plain"], True),
        # The interrupted frames are on another stack than the copy. They are read from memory, and where the handler has returned
        # by then, because the profiler had to wait for a CPU, they are not believed.
        ("signal handler, own stack", "signal_handler.c", [text, "altstack"], False),
        ("vdso", "vdso_caller.c", [text], True),
        ("generated code", "jit.c", [text], True),
        ("generated code without frame pointers", "jit_frameless.c", [text], True),
        # A sample that was taken before a change and is unwound after it is not believed.
        ("generated code that changes", "jit_frameless.c", [text, "changing"], False),
        ("lazy binding", "lazy_binding.c", [text], True),
        ("makecontext", "contexts.c", [text], True),
        ("contexts by assembly", "contexts.c", [text, "by_hand"], True),
        ("coroutines", "coroutine.cpp", [text], True),
        ("500 frames", "deep.cpp", ["500", "16", text], True),
        ("500 frames, varying", "deep.cpp", ["500", "16", text, "varying"], True),
        ("2,000 frames", "deep.cpp", ["2000", "16", text], True),
        ("2,000 frames, varying", "deep.cpp", ["2000", "16", text, "varying"], True),
        ("500 frames of 1 KB", "deep.cpp", ["500", "1024", text], False),
        ("2,000 frames of 1 KB, varying", "deep.cpp", ["2000", "1024", text, "varying"], False),
    ]
    for compiler in ("gcc", "clang"):
        for name, puppet, arguments, required in cases:
            def build(puppet=puppet, compiler=compiler, binding=("-Wl,-z,lazy",) if name == "lazy binding" else ()):
                return builder.native(puppet, compiler, "-O2", "-fomit-frame-pointer", *binding)

            yield row("%s -O2: %s" % (compiler, name), build, arguments, quick=compiler == "gcc", required=required, needs=[compiler])


def other_language_rows(builder, seconds):
    text = str(seconds / 2)
    for level in "0123":
        for pointer in ("no", "yes"):
            flags = ("-Copt-level=" + level, "-Cforce-frame-pointers=" + pointer)
            yield row("rustc -O%s %s" % (level, "fp" if pointer == "yes" else "no fp"),
                      lambda flags=flags, v="O%s_%s" % (level, pointer): builder.rust(v, *flags), [text],
                      quick=level + pointer in ("0no", "3no"), needs=["rustc"])
    yield row("rustc -O3 static", lambda: builder.rust("static", "-Copt-level=3", "-Ctarget-feature=+crt-static"), [text], needs=["rustc"])
    yield row("rustc -O3 stripped", lambda: builder.rust("stripped", "-Copt-level=3", "-Cstrip=symbols"), [text], quick=True, needs=["rustc"])
    yield row("go", lambda: builder.go("plain"), [text], quick=True, needs=["go"])
    yield row("go without optimisation", lambda: builder.go("slow", "-gcflags=-N -l"), [text], needs=["go"])
    yield row("go PIE", lambda: builder.go("pie", "-buildmode=pie"), [text], needs=["go"])
    yield row("go stripped", lambda: builder.go("stripped", "-ldflags=-s -w"), [text], twin=lambda: builder.go("plain"), quick=True, needs=["go"])


PYTHON_WORK = """
import json, re, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while time.process_time() < %g:
    fib(18); sorted(range(5000), key=lambda x: -x %% 97); json.loads(json.dumps({"a": list(range(500))}))
    re.sub(r"(a+)b", lambda m: m.group(1), "aaab" * 500)
"""
NODE_WORK = """
const deadline = %g * 1e6, fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
while (process.cpuUsage().user < deadline) {
  fib(20); Array.from({length: 5000}, (_, i) => i * 7919 %% 5003).sort((a, b) => a - b);
  JSON.parse(JSON.stringify({a: Array(500).fill("x")})); "aaab".repeat(500).replace(/(a+)b/g, (_, a) => a);
}
"""
PERL_WORK = """
my $n = 0; sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
while ((times)[0] < %g) { fib(15); my %%h = map { $_ => 1 } 1 .. 2000; my $t = "aaab" x 500; $t =~ s/(a+)b/$1/g; $n += grep { $_ %% 7 } sort keys %%h }
"""
JAVA_WORK = """
public class Work {
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] arguments) {
    long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9), sum = 0;
    while (System.nanoTime() < end) { sum += fib(22); sum += java.util.stream.IntStream.range(0, 5000).boxed().sorted((a, b) -> b - a).count(); }
    System.out.println(sum);
  }
}
"""
SQL_WORK = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT count(*), sum(i %% 7), group_concat(DISTINCT i %% 9) FROM n;"
CPP_WORK = "#include <functional>\n#include <iostream>\n#include <map>\n#include <regex>\nint main() { std::regex r(\"a+\"); std::map<int, std::function<int(int)>> m; std::cout << m.size() << std::regex_match(\"a\", r); }\n"


def redis_load(folder):
    """Drives redis through its Unix socket, then ends it."""
    socket = os.path.join(folder, "redis.sock")
    end = time.monotonic() + 20
    while not os.path.exists(socket) and time.monotonic() < end:
        time.sleep(0.02)
    for operations in ("set,get", "lpush,lrange_100", "zadd,incr"):
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-t", operations, "-n", "80000", "-c", "20"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)


def program_rows(seconds):
    """Programs as the distribution ships them. {folder} is a scratch folder with the inputs that prepare_inputs makes."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    yield row("python3", None, [python, "-c", PYTHON_WORK % seconds], quick=True)
    yield row("node --perf-basic-prof", None, ["node", "--perf-basic-prof", "-e", NODE_WORK % seconds], quick=True, needs=["node"])
    yield row("sqlite3", None, ["sqlite3", ":memory:", SQL_WORK % (3000000 * seconds)], quick=True, needs=["sqlite3"])
    yield row("xz", None, ["xz", "-6", "-T2", "--keep", "--force", "--stdout", "{folder}/data"], quick=True, needs=["xz"])
    yield row("redis-server", None, ["redis-server", "--port", "0", "--unixsocket", "{folder}/redis.sock", "--save", "", "--dir", "{folder}"],
              during=redis_load, quick=True, needs=["redis-server", "redis-benchmark", "redis-cli"])
    yield row("perl", None, ["perl", "-e", PERL_WORK % seconds], quick=True, needs=["perl"])
    yield row("gzip", None, ["gzip", "-9", "--keep", "--force", "--stdout", "{folder}/data"], needs=["gzip"])
    # Assembly with little CFI, in libcrypto.
    for name, use in (("aes-256-cbc", "enc -aes-256-cbc -K 0 -iv 0"), ("sha256", "dgst -sha256"), ("chacha20", "enc -chacha20 -K 0 -iv 0")):
        yield row("openssl: " + name, None, ["sh", "-c", "head -c %dM /dev/zero | openssl %s >/dev/null 2>&1" % (1000 * seconds, use)],
                  quick=name != "chacha20", needs=["openssl"])
    yield row("openssl: rsa2048", None, ["openssl", "speed", "-seconds", "%d" % (2 * seconds), "rsa2048"], needs=["openssl"])
    # Assembly without any, in libx264 and libavcodec.
    yield row("ffmpeg: x264", None, ["ffmpeg", "-loglevel", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30", "-t", "%g" % (10 * seconds),
                                     "-c:v", "libx264", "-f", "null", "-"], needs=["ffmpeg"])
    yield row("java -XX:+PreserveFramePointer", None, ["java", "-XX:+PreserveFramePointer", "{folder}/Work.java", "%g" % seconds], required=False, needs=["java"])
    yield row("clang++", None, ["clang++", "-std=c++20", "-O2", "-c", "-o", "{folder}/heavy.o", "{folder}/heavy.cpp"], quick=True, needs=["clang++"])


def prepare_inputs(folder, seconds):
    with open(os.path.join(folder, "heavy.cpp"), "w") as file:
        file.write(CPP_WORK)
    with open(os.path.join(folder, "Work.java"), "w") as file:
        file.write(JAVA_WORK)
    state, megabyte = 1, bytearray()
    while len(megabyte) < 1 << 20:  # neither noise nor zeros
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        megabyte += b"%d some words that repeat " % (state % 9973)
    with open(os.path.join(folder, "data"), "wb") as file:
        for i in range(int(6 * seconds)):
            file.write(megabyte[i * 1000:] + megabyte[:i * 1000])


def all_rows(builder, seconds):
    yield from compiled_rows(builder, seconds)
    yield from rows_without_cfi(builder, seconds)
    yield from musl_rows(builder, seconds)
    yield from special_rows(builder, seconds)
    yield from other_language_rows(builder, seconds)
    yield from program_rows(seconds)


def missing_programs(one):
    return [name for name in one.needs if not shutil.which(name)]
