"""Allocations and the live heap of programs whose truth is known."""

import contextlib
import json
import math
import os
import signal
import unittest

import harness
import pprof

ALLOCATED, LIVE, OBJECTS, LIVE_OBJECTS = "alloc_space/bytes", "inuse_space/bytes", "alloc_objects/count", "inuse_objects/count"
INTERVAL = 524288


def deviation(size, count, interval):
    """Of an estimate of count blocks of that size, relative: each is sampled with p = 1 - e^(-size / interval)."""
    chance = -math.expm1(-size / interval)
    return math.sqrt((1 - chance) / (chance * count))


class HeapTest(harness.SystemTest):
    def heap(self, *arguments, interval=INTERVAL, options=("--max-alloc-samples", "1000000"), status=0, puppet="heap", by=(), **how):
        path = self.path("heap%d.pb.gz" % next(self.numbers))
        events = ["-e", "sALLOC p=%d m=a" % interval]
        result = self.ddprof("record", "-O", path, *events, *options, "--", *by, self.puppet(puppet), *map(str, arguments), **how)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn("done", result.stdout)
        return harness.Recording(result, path)

    def of(self, recording, column, *functions):
        plain = lambda name: name.replace("(anonymous namespace)::", "").split("(")[0]
        return pprof.total(recording.profile, column, lambda sample: any(plain(name) in functions for name in sample.stack))

    def assert_estimate(self, estimate, size, count, interval):
        truth, error = size * count, deviation(size, count, interval)
        self.assertLess(abs(estimate / truth - 1), 5 * error + 1e-6, "%d of %d: %.2f deviations" % (estimate, truth, (estimate / truth - 1) / error if error else 0))


class Heap(HeapTest):
    def test_a_leak_is_found_and_what_was_freed_is_not(self):
        # At most 2,000 samples, which the ring holds however slow the profiler is.
        for size, count, threads, interval in ((8, 200000, 1, 16384), (1000, 20000, 2, 262144), (100000, 2000, 2, 8 * INTERVAL), (1 << 20, 300, 1, 8 * INTERVAL), (1 << 30, 3, 1, INTERVAL)):
            with self.subTest(size=size, threads=threads):
                recording = self.heap("leak", count, size, threads, interval=interval)
                self.assert_estimate(self.of(recording, LIVE, "leak_here"), size, count * threads, interval)
                self.assert_estimate(self.of(recording, ALLOCATED, "leak_here"), size, count * threads, interval)
                self.assert_estimate(self.of(recording, ALLOCATED, "churn_here"), size, 10 * count * threads, interval)
                self.assert_estimate(self.of(recording, LIVE_OBJECTS, "leak_here") * size, size, count * threads, interval)
                self.assertEqual(self.of(recording, LIVE, "churn_here"), 0)

    def test_every_way_to_allocate_is_seen_and_every_way_to_free(self):
        recording = self.heap("forms", 2000, 6400, interval=131072)
        for function in ("by_calloc", "by_realloc", "by_memalign", "by_aligned_alloc", "by_new", "by_new_array", "by_aligned_new", "by_nothrow_new"):
            with self.subTest(function):
                self.assert_estimate(self.of(recording, ALLOCATED, function), 6400, 4000, 131072)
                self.assert_estimate(self.of(recording, LIVE, function), 6400, 2000, 131072)

    def test_a_block_that_grows_is_alive_once(self):
        recording = self.heap("grow", 64, 1 << 20)
        self.assertEqual(self.of(recording, LIVE, "grow_here"), 64 << 20)
        sizes = [i << 20 for i in range(1, 65)]
        error = math.sqrt(sum((size * deviation(size, 1, INTERVAL)) ** 2 for size in sizes))
        self.assertLess(abs(self.of(recording, ALLOCATED, "grow_here") - sum(sizes)), 5 * error)

    def test_what_grows_and_shrinks_and_ends_leaves_nothing(self):
        recording = self.heap("chain", 200, 1 << 20)
        sizes = [1 << bits for bits in range(3, 21)] + [1 << bits for bits in range(3, 20)]
        error = math.sqrt(200 * sum((size * deviation(size, 1, INTERVAL)) ** 2 for size in sizes))
        self.assertLess(abs(self.of(recording, ALLOCATED, "grow_here") - 200 * sum(sizes)), 5 * error)
        self.assertEqual(self.of(recording, LIVE, "grow_here"), 0)

    def test_threads_that_allocate_little_add_nothing(self):
        recording = self.heap("idle", 800, 16)
        self.assertLess(pprof.total(recording.profile, ALLOCATED), 4 << 20)

    def test_stacks_reach_the_root(self):
        recording = self.heap("paced", 2000, 1000, 2, interval=262144, options=())
        samples = [sample for sample in recording.profile.samples if any("_here" in name for name in sample.stack)]
        self.assertGreater(len(samples), 0)
        for sample in samples:
            self.assertIsNone(pprof.find_frame(sample, pprof.STOPPED), sample.stack)
            self.assertIn("leak_and_churn", "".join(sample.stack))
            self.assertRegex(sample.stack[-1], "clone|start_thread|thread_start")
            self.assertNotIn("libddprof.so", "".join(mapping.path for mapping in sample.mappings[:1] if mapping))

    def test_live_blocks_of_a_program_that_crashes_are_told(self):
        recording = self.heap("crash", 2000, 100000, status=-signal.SIGSEGV)
        self.assert_estimate(self.of(recording, LIVE, "leak_here"), 100000, 2000, INTERVAL)

    def memory_group(self, limit):
        """The folder of a control group with this much memory; of either version."""
        for folder, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = os.path.join(folder, "ddprof_test_%d" % os.getpid())
            with contextlib.suppress(OSError):
                os.mkdir(group)
                self.addCleanup(lambda group=group: harness.wait_for(lambda: self.is_removed(group), 10, "the end of the group"))
                with open(os.path.join(group, file), "w") as limits:
                    limits.write(str(limit))
                return group
        self.skipTest("no control group of memory can be made here")

    @staticmethod
    def is_removed(group):
        with contextlib.suppress(OSError):
            os.rmdir(group)
        return not os.path.exists(group)

    @harness.needs_root
    def test_who_filled_the_memory_of_a_program_that_is_killed_for_it(self):
        limit = 256 << 20
        group = self.memory_group(limit)
        path = self.path("killed.pb.gz")
        command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', group, self.puppet("heap"), "fill", "100000", str(1 << 20)]
        result = self.ddprof("record", "-O", path, "--preset", "cpu_live_heap", "--", *command)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
        recording = harness.Recording(result, path)
        self.assertAlmostEqual(self.of(recording, LIVE, "leak_here") / limit, 0.9, delta=0.2)
        self.assertGreater(self.of(recording, LIVE, "leak_here"), 0.95 * pprof.total(recording.profile, LIVE))

    def test_what_grows_is_told_by_several_profiles(self):
        size, count = 1 << 20, 100
        folder = self.path("periods")
        result = self.run_command([self.binary, "--preset", "alloc_live_heap", "--period", "1", "-O", folder + "/", self.puppet("heap"), "server", str(count), str(size)])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pb.gz"))
        self.assertGreater(len(files), 2)
        live = [pprof.total(pprof.read(path), LIVE) for path in files]
        report = lambda *options: json.loads(self.ddprof("report", folder, "--json", *options).stdout)
        # Nearly all blocks of this size are sampled, and stay the same samples: sums over time would be several times as much.
        self.assertEqual(report("--sample-type", "inuse_space")["total"], live[-1])
        growth = report("--growth")
        self.assertEqual(growth["total"], live[-1] - live[0])
        self.assertGreater(growth["total"], 20 * size)
        self.assertIn("leak_here", growth["functions_by_self"][0]["name"])
        text = self.ddprof("report", folder, "--sample-type", "inuse_space").stdout
        self.assertRegex(text, r"(?s)MiB live was allocated by .*, growing\s+\S+\s+[MG]iB/min")
        self.assertIn("How long it is alive", text)
        one = self.ddprof("report", files[0], "--growth")
        self.assertNotEqual(one.returncode, 0)
        self.assertIn("--growth: all profiles are of the same moment", one.stderr)

    def test_a_file_that_is_written_to_again_has_what_is_alive_at_the_end(self):
        path = self.path("again.pb.gz")
        result = self.run_command([self.binary, "--preset", "alloc_live_heap", "--period", "1", "-O", path, self.puppet("heap"), "server", "100", str(1 << 20)])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        recording = harness.Recording(result, path)
        self.assert_estimate(self.of(recording, LIVE, "hold_here"), 1 << 20, 100, INTERVAL)
        self.assert_estimate(self.of(recording, LIVE, "leak_here"), 1 << 20, 100, INTERVAL)

    def test_the_wrapper_has_it_too(self):
        path = self.path("wrapped.pb.gz")
        result = self.run_command([self.binary, "--preset", "cpu_live_heap", "-O", path, self.puppet("heap"), "leak", "2000", "100000"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        self.assert_estimate(self.of(harness.Recording(result, path), LIVE, "leak_here"), 100000, 2000, 8 * INTERVAL)


# A leak of 2,000 blocks of 100,000 bytes by leak_here().
class Edges(HeapTest):
    """What programs do to an allocator, and where a library in the target could harm them."""

    def edge(self, mode, status=0, **how):
        return self.heap(mode, puppet="heap_edges", status=status, **how)

    def assert_leak(self, recording, count=2000):
        self.assert_estimate(self.of(recording, LIVE, "leak_here"), 100000, count, INTERVAL)

    def test_sizes_that_nobody_has_fail_as_they_would_and_do_no_harm(self):
        self.assert_leak(self.edge("huge"))

    def test_errno_is_left_alone(self):
        self.edge("errors")

    def test_handlers_may_allocate_and_leave(self):
        recording = self.edge("signals")
        self.assert_leak(recording)
        self.assertGreater(self.of(recording, ALLOCATED, "allocate_in_handler"), 0)

    def test_children_have_profiles_of_their_own_however_many(self):
        recording = self.edge("forks")
        self.assertNotIn("beyond the limit", recording.stderr)
        leaks = {}
        for sample in recording.profile.samples:
            if any("leak_here" in name for name in sample.stack):
                pid = sample.labels.get("pid")
                leaks[pid] = leaks.get(pid, 0) + sample.values[recording.profile.types.index(LIVE)]
        self.assertGreater(len(leaks), 250, "of 301 processes")

    def test_a_sandbox_is_not_broken(self):
        self.assert_leak(self.edge("sandbox"))

    def test_a_cleared_environment_was_read_before(self):
        self.assert_leak(self.edge("cleared"))

    def test_blocks_of_the_program_before_are_gone(self):
        recording = self.edge("exec")
        self.assert_leak(recording, 1000)
        self.assertLess(pprof.total(recording.profile, LIVE), 2 * 1000 * 100000)

    @unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
    def test_a_child_that_becomes_another_user_is_followed(self):
        self.assert_leak(self.edge("user"))

    def test_a_small_address_space_is_left_alone(self):
        self.assertIn("less than 1 GiB of address space", self.edge("limited").stderr)

    def test_threads_that_come_and_go(self):
        recording = self.edge("threads")
        self.assertEqual(self.of(recording, LIVE, "churn_here"), 0)

    def test_operators_of_the_program_itself_are_used(self):
        self.heap(puppet="own_new")

    def test_what_is_static_is_named(self):
        self.assertIn("allocations: heap_static is static", self.heap("leak", 2000, 100000, puppet="heap_static").stderr)

    def with_jemalloc(self, order, *arguments, **how):
        library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
        if not os.path.exists(library):
            self.skipTest("there is no jemalloc")
        by = ["sh", "-c", 'LD_PRELOAD=%s exec "$@"' % (order % library), "sh"]
        return self.heap(*arguments, by=by, **how)

    def test_another_allocator_is_seen_behind_ours(self):
        recording = self.with_jemalloc("$LD_PRELOAD:%s", "leak", 2000, 100000)
        self.assert_estimate(self.of(recording, LIVE, "leak_here"), 100000, 2000, INTERVAL)
        forms = self.with_jemalloc("$LD_PRELOAD:%s", "forms", 2000, 6400, interval=131072)
        # jemalloc's aligned form calls aligned_alloc(); until there are tables a stack may end there.
        for functions in (("by_new",), ("by_new_array",), ("by_aligned_new", "operator new[]"), ("by_nothrow_new",), ("by_mallocx",)):
            self.assert_estimate(self.of(forms, ALLOCATED, *functions), 6400, 4000, 131072)
            self.assert_estimate(self.of(forms, LIVE, *functions), 6400, 2000, 131072)

    def test_another_allocator_before_ours_is_named(self):
        self.assertIn("allocations: those of libjemalloc.so.2 do not pass libddprof.so", self.with_jemalloc("%s:$LD_PRELOAD", "leak", 2000, 100000).stderr)


if __name__ == "__main__":
    unittest.main()
