# SPDX-License-Identifier: Apache-2.0
"""A lab for the demo and the benchmarks: its hosts, their kernel counters, and the capture at a switch port."""

import json
import os
import subprocess

COUNTERS = ("RetransSegs", "TCPTimeouts")


class LabError(Exception):
    """One sentence for a person."""


class Lab:
    """A running lab. Use as a context manager: it is taken down whatever happens."""

    def __init__(self, binaries, topology, name):
        self.tool = os.path.join(binaries, "gradlane-lab")
        self.name = name
        self.topology = topology
        self.hosts = {}

    def __enter__(self):
        # What a killed run may have left.
        self._run("down", "--name", self.name, check=False)
        try:
            self._run("up", self.topology, "--name", self.name)
            for lab in self._list():
                for host in lab["hosts"]:
                    self.hosts[host["name"]] = host
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._run("down", "--name", self.name, check=False)

    def _run(self, *arguments, check=True):
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise LabError(done.stderr.strip() or f"gradlane-lab {arguments[0]} failed")
        return done.stdout

    def _list(self):
        labs = json.loads(self._run("list", "--json"))
        return [lab for lab in labs if lab["name"] == self.name]

    def on_host(self, host, command, job=None):
        """The command line that runs a command on a host."""
        line = [self.tool, "exec", host, "--name", self.name]
        if job:
            line += ["--job", job]
        return line + ["--", *command]

    def run_on(self, host, *command):
        done = subprocess.run(self.on_host(host, command), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"{' '.join(command)} on {host}: {done.stderr.strip()}")

    def add_network(self, prefix, *route_options):
        """Gives every host a second address, reached by a route with options of its own."""
        for host, facts in self.hosts.items():
            last = facts["addresses"][0].rsplit(".", 1)[1]
            self.run_on(host, "ip", "address", "add", f"{prefix}.{last}/24", "dev", facts["interface"])
            self.run_on(host, "ip", "route", "change", f"{prefix}.0/24", "dev", facts["interface"],
                        "proto", "kernel", "scope", "link", "src", f"{prefix}.{last}", *route_options)

    def counters(self):
        """Sums of the hosts' TCP counters since their namespaces were made."""
        sums = dict.fromkeys(COUNTERS, 0)
        for facts in self.hosts.values():
            for file in ("snmp", "netstat"):
                with open(f"/proc/{facts['daemon']['pid']}/net/{file}", encoding="ascii") as lines:
                    for names in lines:
                        values = next(lines).split()
                        for name, value in zip(names.split(), values):
                            if name in sums:
                                sums[name] += int(value)
        return sums


class Capture:
    """Counts what passes the server's switch port, in periods with names."""

    def __init__(self, lab, link):
        self.process = subprocess.Popen(
            [lab.tool, "capture", link, "--name", lab.name, "--json", "--until-stdin-closes"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "ready" not in self.process.stderr.readline():
            raise LabError("the capture at the switch did not start: " + self.process.stderr.read().strip())

    def mark(self, name):
        self.process.stdin.write(f"mark {name}\n")
        self.process.stdin.flush()

    def finish(self):
        out, _ = self.process.communicate(timeout=30)
        return json.loads(out)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
