"""With -g, each service in each container gets uploads of its own, which add up to the profile of the host."""

import collections
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
import unittest

import agent
import harness
import pprof
import test_collectors

CGROUPS = "/sys/fs/cgroup"


def removed(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    return False


class HostTest(harness.SystemTest):
    def in_container(self, container, program=None, **variables):
        """A busy process in a control group of this name; None: in the one that we are in."""
        program = program or self.puppet("split")
        hierarchy = next((path for path in (os.path.join(CGROUPS, name) for name in ("pids", "unified")) if os.path.ismount(path)), CGROUPS)
        folder, command = os.path.join(hierarchy, container or ""), [program, "1", "120"]
        if container:
            try:
                os.mkdir(folder)
            except OSError as error:
                self.skipTest("cannot make a control group: %s" % error)
            self.addCleanup(lambda: harness.wait_for(lambda: removed(folder), 10, "an empty control group"))
            command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder, *command]
        environment = {key: value for key, value in self.environment().items() if not key.startswith(("DD_", "OTEL_"))}
        target = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(environment, **variables))
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        harness.wait_for(lambda: target.poll() is not None or os.readlink("/proc/%d/exe" % target.pid) == program, 10, "the target")
        if target.poll() is not None:
            self.skipTest("cannot enter a control group")
        return target.pid

    def three(self):
        """Two services in containers, and one beside them that is called after its program. Other tests have services of their own."""
        Target = collections.namedtuple("Target", "pid container service")
        first, second, run = secrets.token_hex(32), secrets.token_hex(32), secrets.token_hex(4)
        shop, bank, farm = ("%s-%s" % (name, run) for name in ("shop", "bank", "farm"))
        program = shutil.copy(self.puppet("split"), self.path(farm))
        return {"shop": Target(self.in_container(first, DD_SERVICE=shop, DD_ENV="prod", DD_VERSION="2.1", DD_EXTERNAL_ENV="it-false,cn-shop"), first, shop),
                "bank": Target(self.in_container(second, OTEL_SERVICE_NAME=bank), second, bank),
                "farm": Target(self.in_container(None, program), None, farm)}

    @contextlib.contextmanager
    def host(self, *options):
        """A profiler of the host, until the end of the block; it must end well."""
        process = subprocess.Popen([self.binary, "-g", "-E", "test", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   cwd=self.folder, env=self.environment())
        try:
            yield
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=harness.PATIENCE)
            self.assertEqual(process.returncode, 0, output)
            self.wait_until_profiler_ends()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def files_in(folder):
    return [pprof.read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".pb.gz")]


def process_ids(profile):
    return {sample.labels["process_id"] for sample in profile.samples}


def wait_for_periods(receiver, targets, periods):
    services = [target.service for target in targets.values()]

    def have_come():
        bodies = [body for _, _, body in list(receiver.received)]
        return all(sum(b"service:%s," % service.encode() in body for body in bodies) >= periods for service in services)
    harness.wait_for(have_come, 40, "%d periods of each service" % periods)


@unittest.skipUnless(harness.IS_ROOT, "needs root, to see every process")
class HostServices(HostTest):
    def assert_belongs(self, post, name, target):
        self.assertEqual(process_ids(post.profile), {target.pid})
        self.assertEqual(post.tags["process_id"], str(target.pid))
        self.assertNotIn("ddprof.custom_ctx", post.tags)
        container = post.headers.get("Datadog-Container-ID"), post.headers.get("Datadog-Entity-ID")
        self.assertEqual(container, (target.container, "ci-" + target.container) if target.container else (None, None))
        wanted = {"shop": ("prod", "2.1", "it-false,cn-shop")}.get(name, ("test", None, None))
        self.assertEqual((post.tags["env"], post.tags.get("version"), post.headers.get("Datadog-External-Env")), wanted)

    def test_each_service_has_uploads_of_its_own(self):
        targets = self.three()
        kinds = agent.Agent, test_collectors.Collector, test_collectors.Pyroscope
        receiver, collector, pyroscope = receivers = [kind(self) for kind in kinds]
        folder = self.path("files")
        os.makedirs(folder)
        with self.host("-u", "3", "-U", receiver.url, "--otlp-endpoint", collector.url, "--pyroscope-url", pyroscope.url, "-O", folder + "/", "-V", "9"):
            wait_for_periods(receiver, targets, 1)
            time.sleep(1)  # what is collected, not a synchronisation
        posts, *_ = [each.posts for each in receivers]
        for name, target in targets.items():
            mine = [post for post in posts if post.tags["service"] == target.service]
            self.assertGreaterEqual(len(mine), 2, "one period, and what was left at the end")
            for post in mine:
                self.assert_belongs(post, name, target)
        self.assert_streams(posts)
        self.assert_adds_up(folder, posts, collector, pyroscope)
        self.assert_collector_sees(collector, targets)
        self.assertLessEqual({(targets["shop"].service, targets["shop"].container, "prod", "2.1"),
                              (targets["bank"].service, targets["bank"].container, "test", None)},
                             {(post.application, post.labels.get("container_id"), post.labels.get("env"), post.labels.get("version")) for post in pyroscope.posts})

    def assert_streams(self, posts):
        """Each service counts its own, from 0, without gaps and without repeating itself."""
        streams = collections.defaultdict(list)
        for post in posts:
            streams[post.tags["runtime-id"]].append(post)
        for posts in streams.values():
            self.assertEqual([post.tags["profile_seq"] for post in posts], [str(i) for i in range(len(posts))])
            self.assertEqual(len({(post.tags["service"], post.headers.get("Datadog-Container-ID")) for post in posts}), 1)

    def assert_adds_up(self, folder, posts, collector, pyroscope):
        """In each period: to the nanosecond."""
        whole = {file.time_ns: pprof.total(file, harness.CPU) for file in files_in(folder)}
        for posts, column in ((posts, agent.CPU), (pyroscope.posts, harness.CPU)):
            sums = collections.Counter()
            for post in posts:
                sums[post.profile.time_ns] += pprof.total(post.profile, column)
            self.assertEqual(dict(sums), whole)
        self.assertEqual(collector.sums(), list(whole.values()), "one request for each period")

    def assert_collector_sees(self, collector, targets):
        services = {target.service for target in targets.values()}
        for resource in (resource for post in collector.posts for resource in post.resources):
            said = resource.get("deployment.environment.name"), resource.get("service.version")
            if resource.get("service.name") in services:
                self.assertEqual(said, ("prod", "2.1") if resource["service.name"] == targets["shop"].service else ("test", None))
        pids = {target.pid for target in targets.values()}
        for post in collector.posts:  # others on this machine may become other programs meanwhile, which are other resources
            seen = [resource["process.pid"] for resource in post.resources if resource.get("process.pid") in pids]
            self.assertCountEqual(seen, set(seen), "a resource for each")
        wanted = {(target.service, target.pid, target.container) for target in targets.values()}
        self.assertTrue(any(wanted <= {(resource.get("service.name"), resource.get("process.pid"), resource.get("container.id"))
                                       for resource in post.resources} for post in collector.posts))

    def test_an_outage_among_the_shares(self):
        """From the third upload on nobody is let in for a while: all arrive, once, and in the order of each service."""
        targets, requests = self.three(), iter(range(10**6))
        receiver = agent.Agent(self, answer=lambda handler: next(requests) in (2, 3) and (handler.send_error(403) or True))
        folder = self.path("outage")
        os.makedirs(folder)
        with self.host("-u", "2", "-U", receiver.url, "-O", folder + "/", "--spool-dir", self.path("spool")):
            wait_for_periods(receiver, targets, 3)
        self.assertGreater(next(requests), 4, "it happened")
        posts = receiver.posts
        self.assert_streams(posts)
        self.assertEqual(sum(pprof.total(post.profile, agent.CPU) for post in posts), sum(pprof.total(file, harness.CPU) for file in files_in(folder)))

    def test_a_service_that_changes_by_exec(self):
        """What the shell has spent is the first service's, what the program spends that it becomes is the second's."""
        first, second = ("%s-%s" % (name, secrets.token_hex(4)) for name in ("first", "second"))
        receiver = agent.Agent(self)
        with self.host("-u", "2", "-U", receiver.url):
            script = 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done; DD_SERVICE=$0 DD_ENV=prod exec "$@"'
            target = subprocess.Popen(["sh", "-c", script, second, self.puppet("split"), "1", "120"], stdout=subprocess.DEVNULL,
                                      env=dict(self.environment(), DD_SERVICE=first))
            self.addCleanup(target.wait)
            self.addCleanup(target.kill)
            harness.wait_for(lambda: any(b"service:%s," % second.encode() in body for _, _, body in list(receiver.received)), 40, "the second service")
        posts = receiver.posts
        for service, environment, name in ((first, "test", "sh"), (second, "prod", "split")):
            mine = [post for post in posts if post.tags["service"] == service]
            self.assertGreaterEqual(len(mine), 1)
            for post in mine:
                self.assertEqual((process_ids(post.profile), post.tags["env"]), ({target.pid}, environment))
                self.assertEqual({sample.labels["process name"] for sample in post.profile.samples}, {name})

    def test_one_upload_for_all_if_wanted(self):
        receiver, container = agent.Agent(self), secrets.token_hex(32)
        self.in_container(container)
        with self.host("-u", "1", "-S", "farm", "--no-split-services", "-U", receiver.url):
            receiver.wait_for_posts(2)
        self.assertEqual({post.tags["service"] for post in receiver.posts}, {"farm"})
        # An upload waits for its answer for three quarters of a period at most: on a busy machine the same request may come twice.
        self.assertEqual(len({post.profile.time_ns for post in receiver.posts}), len({body for _, _, body in receiver.received}))
        self.assertIn("ddprof.custom_ctx:container_id", receiver.posts[0].event["tags_profiler"])
        self.assertIn(container, {sample.labels.get("container_id") for post in receiver.posts for sample in post.profile.samples})
        self.assertNotIn("Datadog-Container-ID", receiver.posts[0].headers)


if __name__ == "__main__":
    unittest.main()
