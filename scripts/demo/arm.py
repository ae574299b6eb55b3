# SPDX-License-Identifier: Apache-2.0
"""One way of training: a server and its workers, which run a block of iterations when told to."""

import json
import os
import select
import subprocess
import time

from lab import LabError


class Arm:
    """A server and its workers on the lab's hosts."""

    def __init__(self, name, title, lab, folder, options, address="10.77.0", port=7000, job=None):
        self.name, self.title = name, title
        self.lab, self.folder = lab, folder
        self.options, self.address, self.port, self.job = options, address, port, job
        self.workers = sorted(host for host in lab.hosts if host.startswith("worker"))
        self.processes = []
        self.server = None
        self.buffer = b""
        self.iteration_ms, self.loss, self.blocks = [], [], []
        self.counted = dict.fromkeys(("RetransSegs", "TCPTimeouts"), 0)
        self.facts = {}

    def _start(self, host, command, **streams):
        log = open(os.path.join(self.folder, f"{self.name}-{host}.log"), "wb")
        process = subprocess.Popen(self.lab.on_host(host, command, self.job), stderr=log, **streams)
        log.close()
        self.processes.append((host, process))
        return process

    def start(self, trainer, training):
        """Starts all processes and waits until the workers have joined."""
        listen = f"{self.address}.1:{self.port}"
        self.server = self._start(
            "server",
            [trainer, "server", "--listen", listen, "--workers", str(len(self.workers)), "--commands", "--json",
             "--byte-log", self._byte_log("server"), *self.options, *training],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._expect("listening", 30)
        for rank, host in enumerate(self.workers):
            self._start(host, [trainer, "worker", "--connect", listen, "--rank", str(rank),
                               "--byte-log", self._byte_log(host)],
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.facts["ready"] = self._expect("ready", 60)

    def _byte_log(self, host):
        return os.path.join(self.folder, f"{self.name}-{host}.bytes.jsonl")

    def _tell(self, command):
        try:
            self.server.stdin.write((command + "\n").encode())
            self.server.stdin.flush()
        except BrokenPipeError:
            raise LabError(self._why()) from None

    def _expect(self, event, seconds):
        """The next object with this event from the server."""
        until = time.monotonic() + seconds
        while True:
            line, found, rest = self.buffer.partition(b"\n")
            if found:
                self.buffer = rest
                answer = json.loads(line)
                if answer.get("event") == event:
                    return answer
                continue
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.server.stdout], [], [], left)[0]:
                raise LabError(f"the server of {self.title} did not answer within {seconds} s: {self._why()}")
            more = os.read(self.server.stdout.fileno(), 65536)
            if not more:
                raise LabError(self._why())
            self.buffer += more

    def _why(self):
        """The last words of whoever ended first."""
        for host, process in self.processes:
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
            with open(os.path.join(self.folder, f"{self.name}-{host}.log"), encoding="utf-8") as log:
                lines = log.read().strip().splitlines()
            if lines:
                return f"{self.title}, {host}: {lines[-1]}"
        return f"{self.title} ended without a word; its logs are in {self.folder}"

    def run(self, steps):
        """One block of iterations; its counters are taken by the caller's lab."""
        before = self.lab.counters()
        begin = time.monotonic()
        self._tell(f"run {steps}")
        block = self._expect("block", 30 + 2 * steps)
        block["wall_s"] = time.monotonic() - begin
        for name, value in self.lab.counters().items():
            self.counted[name] += value - before[name]
        # At a block's edges the network is idle before the first iteration, and the last one waits for all
        # parameters: neither is what an iteration in the midst of a training takes.
        self.iteration_ms += block["iteration_ms"][1:-1]
        self.loss += block["loss"]
        self.blocks.append(block)

    def finish(self):
        """Checks, evaluates and ends all processes in good order."""
        for command, event in (("check", "check"), ("evaluate", "evaluate"), ("finish", "result")):
            self._tell(command)
            self.facts[event] = self._expect(event, 60)
        for host, process in self.processes:
            if process.wait(timeout=20) != 0:
                raise LabError(f"{self.title}, {host} ended with status {process.returncode}: {self._why()}")

    def stop(self):
        """Ends what still runs; for runs that failed."""
        for _, process in self.processes:
            if process.poll() is None:
                process.terminate()
        for _, process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def byte_log(self):
        """What the trainer itself says it sent, one object per connection and end."""
        connections = []
        for host in ["server", *self.workers]:
            with open(self._byte_log(host), encoding="utf-8") as log:
                connections += [json.loads(line) for line in log if line.strip()]
        return connections
