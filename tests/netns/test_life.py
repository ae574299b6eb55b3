# SPDX-License-Identifier: Apache-2.0
"""The life of a daemon: killed, restarted and stopped under load, and what is left of it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import BIN, wait_until
from test_transfer import counts, receive, send

PINS = pathlib.Path("/sys/fs/bpf/gradlane")


def bpf_objects():
    """Names of all programs, maps and links of ours in this kernel, by bpftool."""
    found = []
    for kind in ("prog", "map"):
        listed = json.loads(subprocess.run(["bpftool", "-j", kind, "list"], capture_output=True, text=True,
                                           check=True).stdout)
        # The lab's own are the lab's business.
        found += [(kind, entry["id"], entry["name"]) for entry in listed
                  if re.match("gl_(?!lab)", entry.get("name", ""))]
    return set(found)


def cgroups(instance):
    """Folders of an instance in any cgroup v2 hierarchy."""
    mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
              if " - cgroup2 " in line]
    return [path for mount in mounts for path in pathlib.Path(mount).glob(f"gradlane.slice/{instance}*")]


def kill_daemon(lab, host):
    pid = lab.host(host)["daemon"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}/root").exists() or
               pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z")


def restart_daemon(lab, host):
    """Starts the daemon again as the lab did; waits for its ready line."""
    daemon = lab.start(host, BIN / "gradlaned", "--instance", f"{lab.name}-{host}", "--config",
                       lab.host(host)["daemon"]["config"])
    assert daemon.stdout.readline() == "ready\n", daemon.stderr.read()
    return daemon


def arriving(instance):
    """What the programs of an instance count of its senders, by bpftool: no daemon is needed for it."""
    dumped = json.loads(subprocess.run(
        ["bpftool", "-j", "map", "dump", "pinned", PINS / instance / "scc-1" / "gl_activity"],
        capture_output=True, text=True, check=True).stdout)
    return dumped[0]["formatted"]["value"]


def counted_senders(instance):
    return sum(arriving(instance)["active"])


def pacing_rate(lab, worker):
    """The rate that a worker's SCC sockets are paced to; it varies by a quarter: the median of some samples."""
    samples = []
    for _ in range(15):
        text = lab.run(worker, "ss", "-tinH", "state", "established").stdout
        samples += [max(int(value) for value in re.findall(r"pacing_rate (\d+)bps", text))]
    return sorted(samples)[len(samples) // 2]


@pytest.mark.vm
def test_a_killed_daemon_breaks_nothing_and_grants_follow_the_number_of_senders(lab):
    lab.up('[defaults]\nrate = "200mbit"\nbuffer = "64KB"\n[[host]]\nname = "server"\n[[host]]\nname = "worker"\n'
           'count = 4\n[[switch]]\nname = "switch"\n[[link]]\na = "server"\nb = "switch"\n[[link]]\na = "worker"\n'
           'b = "switch"\n', daemons=True)
    workers = [f"worker{number}" for number in range(1, 5)]
    address = lab.host("server")["addresses"][0]
    # One receiver for each sender, so that senders can leave without the others noticing.
    receivers = {}
    for number, worker in enumerate(workers):
        receivers[worker] = receive(lab, "server", 1, 400_000_000, 1, port=5100 + number)
        send(lab, worker, address, port=5100 + number)
    wait_until(lambda: counts(lab, "server")["scc_on"] == 4)
    sent_before = counts(lab, "worker1")["grants_received"]

    kill_daemon(lab, "server")
    kill_daemon(lab, "worker1")
    instance = f"{lab.name}-server"
    wait_until(lambda: counted_senders(instance) == 4)
    # A machine that cannot fill the link has its grants raised instead, up to the whole link for each.
    link_is_full = arriving(instance)["trim"] < 2 * 1024
    rate = pacing_rate(lab, "worker1")
    # Two of four leave: the others are granted more, though no daemon runs at the server.
    for worker in workers[2:]:
        receivers[worker].kill()
        receivers[worker].wait(10)
    wait_until(lambda: counted_senders(instance) == 2)
    if link_is_full:
        wait_until(lambda: pacing_rate(lab, "worker1") > 1.3 * rate)
    assert all(receivers[worker].poll() is None for worker in workers[:2]), "a connection broke"

    daemons = [restart_daemon(lab, host) for host in ("server", "worker1")]
    # Taken over, not started anew: counters went on while no daemon ran.
    assert counts(lab, "worker1")["grants_received"] > sent_before
    assert all(receivers[worker].poll() is None for worker in workers[:2]), "a connection broke"
    received = counts(lab, "worker1")["grants_received"]
    wait_until(lambda: counts(lab, "worker1")["grants_received"] > received)
    # New connections get SCC from the new daemon.
    before = counts(lab, "worker2")["scc_on"]
    receive(lab, "server", 1, 1_000_000, 1, port=5200)
    send(lab, "worker2", address, port=5200)
    wait_until(lambda: counts(lab, "worker2")["scc_on"] == before + 1)
    for daemon in daemons:
        daemon.terminate()
        assert daemon.wait(10) == 0


@pytest.mark.vm
def test_a_stopped_daemon_leaves_nothing(lab):
    before = bpf_objects()
    lab.up("pair.toml", daemons=True)
    instance = f"{lab.name}-left"
    receiver = receive(lab, "right", 1, 200_000, 3)
    send(lab, "left", lab.host("right")["addresses"][0])
    receiver.wait(20)
    assert bpf_objects() - before
    assert (PINS / instance).exists() and cgroups(instance)
    for host in ("left", "right"):
        done = subprocess.run([BIN / "gradlane", "off", "--instance", f"{lab.name}-{host}"],
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        filters = lab.run(host, "tc", "filter", "show", "dev", "eth0", "egress").stdout
        assert "gl_" not in filters, filters
        wait_until(lambda host=host: not (PINS / f"{lab.name}-{host}").exists())
        wait_until(lambda host=host: not cgroups(f"{lab.name}-{host}"))
    # The kernel frees a congestion control after a grace period that takes half a minute on a busy machine.
    wait_until(lambda: not bpf_objects() - before, 90)


@pytest.mark.vm
def test_cleanup_removes_what_a_killed_daemon_left(lab):
    before = bpf_objects()
    lab.up("pair.toml", daemons=True)
    for host in ("left", "right"):
        kill_daemon(lab, host)
    assert (PINS / f"{lab.name}-left").exists()
    for host in ("left", "right"):
        # In the host's own namespace: on kernels without tcx the marker is a filter there.
        for _ in range(2):
            done = lab.run(host, BIN / "gradlane", "cleanup", "--instance", f"{lab.name}-{host}")
            assert done.returncode == 0, done.stderr
        filters = lab.run(host, "tc", "filter", "show", "dev", "eth0", "egress").stdout
        assert "gl_" not in filters, filters
        assert not (PINS / f"{lab.name}-{host}").exists()
        assert not cgroups(f"{lab.name}-{host}")
    wait_until(lambda: not bpf_objects() - before, 90)


def test_cleanup_refuses_an_instance_that_is_alive(lab):
    lab.up("pair.toml", daemons=True)
    done = lab.run("left", BIN / "gradlane", "cleanup", "--instance", f"{lab.name}-left", check=False)
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert (PINS / f"{lab.name}-left").exists()


def test_filters_of_others_stay(lab):
    lab.up("pair.toml", "--no-daemons")
    lab.run("left", "tc", "qdisc", "add", "dev", "eth0", "clsact")
    lab.run("left", "tc", "filter", "add", "dev", "eth0", "egress", "prio", "1", "protocol", "ip", "u32", "match",
            "ip", "protocol", "47", "0xff", "classid", "1:1")
    others = lab.run("left", "tc", "filter", "show", "dev", "eth0", "egress").stdout
    configuration = lab.folder / "left.toml"
    configuration.write_text('[link]\ninterfaces = ["eth0"]\nrate = "200mbit"\n')
    daemon = lab.start("left", BIN / "gradlaned", "--instance", f"{lab.name}-left", "--config", configuration)
    assert daemon.stdout.readline() == "ready\n", daemon.stderr.read()
    time.sleep(0.1)
    daemon.terminate()
    assert daemon.wait(10) == 0
    assert lab.run("left", "tc", "filter", "show", "dev", "eth0", "egress").stdout == others
