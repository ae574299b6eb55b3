# SPDX-License-Identifier: Apache-2.0
"""Several hosts on this machine: the fixture `lab` makes a network of namespaces and takes it down again."""

import itertools
import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
TOPOLOGIES = ROOT / "userspace" / "lab" / "topologies"

_numbers = itertools.count(1)

# Arguments of both: address, port, bytes, TOS octet.
RECEIVER = """
import socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.create_server((address, port), family=family) as listener:
    listener.settimeout(20)
    print("listening", flush=True)
    connection, _ = listener.accept()
    connection.settimeout(20)
    while block := connection.recv(1 << 16):
        count -= len(block)
    sys.exit(count != 0)
"""
SENDER = """
import socket, sys
address, port, count, tos = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family) as connection:
    connection.settimeout(20)
    if family == socket.AF_INET6:
        connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
    else:
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    connection.connect((address, port))
    connection.sendall(bytes(count))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
"""


class Lab:
    """One lab with a name of its own. Nothing is there before up()."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.name = f"t{os.getpid()}_{next(_numbers)}"
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def command(self, command: str, *arguments: object) -> list[str]:
        return [str(BIN / "gradlane-lab"), command, "--name", self.name, *map(str, arguments)]

    def call(self, command: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess:
        """Runs a sub-command to its end; a failure fails the test with what it printed."""
        done = subprocess.run(self.command(command, *arguments), capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            pytest.fail(f"gradlane-lab {command} ended with {done.returncode}: {done.stderr}")
        return done

    def file(self, text: str) -> pathlib.Path:
        path = self.folder / "topology.toml"
        path.write_text(text)
        return path

    def up(self, topology: str | pathlib.Path, *arguments: str, daemons: bool = False) -> None:
        """Makes it, from the name of a file that comes with the lab, from a path, or from TOML text."""
        if isinstance(topology, str):
            topology = self.file(topology) if "\n" in topology else TOPOLOGIES / topology
        # An emulated machine is so slow that kernels take long to verify the programs.
        patience = ["--wait", "50"] if "GRADLANE_VM_KERNEL" in os.environ else []
        self.call("up", topology, *patience, *([] if daemons else ["--no-daemons"]), *arguments)

    def status(self) -> dict:
        """What `gradlane-lab list --json` says of it."""
        return json.loads(self.call("list", "--json").stdout)[0]

    def host(self, name: str) -> dict:
        return next(host for host in self.status()["hosts"] if host["name"] == name)

    def link(self, name: str) -> dict:
        return next(link for link in self.status()["links"] if link["name"] == name)

    def run(self, host: str, *command: object, check: bool = True, timeout: float = 60,
            job: str = "") -> subprocess.CompletedProcess:
        """Runs a command on a host to its end."""
        done = subprocess.run(self._exec(host, command, job), capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(map(str, command))} on {host} ended with {done.returncode}: "
                        f"{done.stdout}{done.stderr}")
        return done

    def start(self, host: str, *command: object, job: str = "", **settings: object) -> subprocess.Popen:
        """Starts a command on a host; what still runs at the end of the test is ended."""
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                    "text": True, **settings}
        process = subprocess.Popen(self._exec(host, command, job), **settings)
        self.started.append(process)
        return process

    def capture(self, link: str) -> "CaptureAtPort":
        return CaptureAtPort(self, link)

    def transfer(self, sender: str, receiver: str, count: int, tos: int = 0, version: int = 4,
                 port: int = 7000) -> None:
        """Sends exactly so many bytes over one connection, and waits for all of them."""
        address = self.host(receiver)["addresses"][0 if version == 4 else 1]
        server = self.start(receiver, "/usr/bin/python3", "-c", RECEIVER, address, port, count)
        assert server.stdout.readline() == "listening\n", server.communicate(timeout=10)
        self.run(sender, "/usr/bin/python3", "-c", SENDER, address, port, count, tos)
        assert server.wait(20) == 0, server.communicate(timeout=10)

    def iperf(self, server: str, clients: dict[str, list[object]], seconds: float = 3) -> dict[str, dict]:
        """Each client sends to a server at once with iperf3 and its further options; their results by name."""
        servers, senders = [], {}
        address = self.host(server)["addresses"][0]
        for number, name in enumerate(clients):
            port = 5201 + number
            servers.append(self.start(server, "iperf3", "-s", "-1", "-p", port))
            wait_until(lambda port=port: f":{port} " in self.run(server, "ss", "-Hltn").stdout)
            senders[name] = port
        running = {
            name: self.start(name, "iperf3", "-c", address, "-p", port, "-t", seconds, "-J", *clients[name])
            for name, port in senders.items()
        }
        results = {}
        for name, process in running.items():
            output, complaints = process.communicate(timeout=seconds + 30)
            assert process.returncode == 0, output + complaints
            results[name] = json.loads(output)
        for process in servers:
            process.wait(10)
        return results

    def remove(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=10)
        self.call("down")

    def _exec(self, host: str, command: tuple, job: str) -> list[str]:
        return self.command("exec", *(["--job", job] if job else []), host, "--", *command)


class CaptureAtPort:
    """`with lab.capture(LINK) as capture:` counts at the switch's port; capture.result holds the JSON."""

    def __init__(self, lab: Lab, link: str) -> None:
        self.lab = lab
        self.link = link
        self.result: dict = {}

    def __enter__(self) -> "CaptureAtPort":
        self.process = subprocess.Popen(
            self.lab.command("capture", self.link, "--json", "--until-stdin-closes"), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lab.started.append(self.process)
        line = self.process.stderr.readline()
        assert line == "ready\n", line
        return self

    def mark(self, name: str) -> None:
        """A period begins."""
        self.process.stdin.write(f"mark {name}\n")
        self.process.stdin.flush()

    def __exit__(self, kind: type | None, *_: object) -> None:
        output, complaints = self.process.communicate(timeout=10)
        if kind is None:
            assert self.process.returncode == 0, complaints
            self.result = json.loads(output)

    def flows(self, period: int = 0, **wanted: object) -> list[dict]:
        """The flows of a period that have these values."""
        return [flow for flow in self.result["periods"][period]["flows"]
                if all(flow[key] == value for key, value in wanted.items())]


def wait_until(condition, limit_s: float = 60) -> None:
    """Waits for a condition, which fails the test if it does not come true."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


@pytest.fixture
def lab(tmp_path):
    """A lab to bring up; taken down after the test, whatever happened in it."""
    lab = Lab(tmp_path)
    yield lab
    lab.remove()
