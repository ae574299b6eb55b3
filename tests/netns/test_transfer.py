# SPDX-License-Identifier: Apache-2.0
"""What a job's traffic looks like: its congestion control, its grants, and its marks on the wire."""

import json
import re
import subprocess

import pytest

from conftest import BIN, wait_until

INCAST = BIN / "gl-incast"
PRIORITY_OF_DSCP = {36: 6, 22: 4, 14: 2, 0: 1}


def status(lab, host):
    """What `gradlane status` says of a host's daemon."""
    done = subprocess.run([BIN / "gradlane", "status", "--instance", f"{lab.name}-{host}", "--json"],
                          capture_output=True, text=True, check=True, timeout=20)
    return json.loads(done.stdout)


def counts(lab, host):
    return status(lab, host)["counts"]


def receive(lab, host, flows, size, batches, pause_ms=0, job="job", port=5000):
    """Starts a receiver and waits until it listens."""
    receiver = lab.start(host, INCAST, "receive", port, flows, size, batches, pause_ms, job=job)
    assert "listening" in receiver.stdout.readline()
    return receiver


def send(lab, host, address, flows=1, congestion="", priority=0, job="job", port=5000):
    return lab.start(host, INCAST, "send", address, port, flows, congestion, priority, job=job)


def batches_of(receiver, limit_s=60):
    """Waits for the receiver's end and returns what it measured."""
    output, complaints = receiver.communicate(timeout=limit_s)
    assert receiver.returncode == 0, complaints
    return [json.loads(line) for line in output.splitlines() if "batch" in line]


def retransmissions(lab, hosts):
    """Segments that the hosts have sent again."""
    total = 0
    for host in hosts:
        names, values = [line.split() for line in lab.run(host, "cat", "/proc/net/snmp").stdout.splitlines()
                         if line.startswith("Tcp:")]
        total += int(values[names.index("RetransSegs")])
    return total


@pytest.mark.vm
@pytest.mark.parametrize("version", [0, 1], ids=["ipv4", "ipv6"])
def test_both_ends_of_a_jobs_connection_use_scc_and_grants(lab, version):
    lab.up("pair.toml", daemons=True)
    address = lab.host("right")["addresses"][version]
    receiver = receive(lab, "right", 1, 1_000_000, 10)
    send(lab, "left", address)
    wait_until(lambda: counts(lab, "left")["grants_received"] > 0)
    for host in ("left", "right"):
        sockets = lab.run(host, "ss", "-tinH", "state", "established").stdout
        assert "gl_scc" in sockets, sockets
    assert len(batches_of(receiver)) == 10
    assert counts(lab, "right")["grants_sent"] > 0
    assert counts(lab, "left")["scc_on"] == 1
    assert counts(lab, "left")["grants_bad"] == 0


@pytest.mark.vm
def test_a_peer_without_gradlane_is_spoken_to_as_before(lab):
    lab.up(
        '[defaults]\nrate = "200mbit"\nbuffer = "64KB"\n[[host]]\nname = "left"\n[[host]]\nname = "right"\n'
        'daemon = false\n[[switch]]\nname = "switch"\n[[link]]\na = "left"\nb = "switch"\n[[link]]\na = "right"\n'
        'b = "switch"\n', daemons=True)
    default = lab.run("left", "cat", "/proc/sys/net/ipv4/tcp_congestion_control").stdout.strip()
    # More batches than are needed: the connection has to be there when it is looked at.
    receiver = receive(lab, "right", 1, 300_000, 10_000, 50, job="")
    send(lab, "left", lab.host("right")["addresses"][0])
    wait_until(lambda: counts(lab, "left")["scc_peer_unaware"] == 1)
    sockets = lab.run("left", "ss", "-tinH", "state", "established").stdout
    assert f" {default} " in sockets, sockets
    assert "batch" in receiver.stdout.readline()
    assert counts(lab, "left")["scc_peer_unaware"] == 1
    assert counts(lab, "left")["scc_on"] == 0


def test_eight_senders_into_a_shallow_port_lose_next_to_nothing(lab):
    lab.up("star-8.toml", daemons=True)
    workers = [f"worker{number}" for number in range(1, 9)]
    address = lab.host("server")["addresses"][0]
    lost = {}
    for port, (name, job, congestion) in enumerate((("scc", "job", ""), ("cubic", "", "cubic"))):
        before = retransmissions(lab, workers)
        receiver = receive(lab, "server", 8, 200_000, 15, job=job, port=6000 + port)
        for worker in workers:
            send(lab, worker, address, congestion=congestion, job=job, port=6000 + port)
        assert len(batches_of(receiver)) == 15
        lost[name] = retransmissions(lab, workers) - before
    # 16,600 segments each: cubic loses hundreds of them here.
    assert lost["cubic"] > 100, lost
    assert lost["scc"] * 10 < lost["cubic"], lost


def dscps_on_the_wire(lab, port, version, traffic):
    """Runs traffic while tcpdump looks at the receiver's switch port; returns the traffic classes it saw in
    each direction, by packets."""
    sniffer = lab.start("switch", "tcpdump", "-i", "right", "-n", "-v", "-l", "--immediate-mode",
                        "ip" if version == 0 else "ip6")
    assert "listening" in sniffer.stderr.readline()
    traffic()
    sniffer.terminate()
    text, _ = sniffer.communicate(timeout=20)
    # One packet may be spread over two lines.
    packets = re.sub(r"\n\s+", " ", text).splitlines()
    seen = {"to": [], "from": []}
    for packet in packets:
        found = re.search(r"\(tos 0x([0-9a-f]+)|class 0x([0-9a-f]+)", packet)
        value = int(found.group(1) or found.group(2), 16) if found else 0
        if re.search(rf"> \S+\.{port}: Flags", packet):
            seen["to"].append(value)
        elif re.search(rf"\.{port} > \S+: Flags", packet):
            seen["from"].append(value)
    return seen


@pytest.mark.parametrize("version", [0, 1], ids=["ipv4", "ipv6"])
# One lane tells whether another kernel marks; guests are slow.
@pytest.mark.parametrize("dscp", [pytest.param(36, marks=pytest.mark.vm), 22, 14, 0])
def test_a_tag_is_seen_on_the_wire_as_its_lanes_dscp(lab, version, dscp):
    lab.up("pair.toml", daemons=True)
    address = lab.host("right")["addresses"][version]

    def traffic():
        receiver = receive(lab, "right", 1, 200_000, 2)
        send(lab, "left", address, priority=PRIORITY_OF_DSCP[dscp])
        assert len(batches_of(receiver)) == 2

    classes = dscps_on_the_wire(lab, 5000, version, traffic)["to"]
    assert len(classes) > 20
    # The SYN leaves before the socket is a job's: all others carry the lane.
    assert [value >> 2 for value in classes[1:]] == [dscp] * (len(classes) - 1)


def test_traffic_outside_of_jobs_is_not_touched(lab):
    lab.up("pair.toml", daemons=True)
    address = lab.host("right")["addresses"][0]

    def traffic():
        receiver = receive(lab, "right", 1, 200_000, 2, job="")
        send(lab, "left", address, priority=6, job="")
        assert len(batches_of(receiver)) == 2

    seen = dscps_on_the_wire(lab, 5000, 0, traffic)
    assert len(seen["to"]) > 20
    assert {value >> 2 for value in seen["to"] + seen["from"]} == {0}
    assert counts(lab, "left")["sockets"] == 0


@pytest.mark.vm
def test_gradlane_run_gives_an_unmodified_program_scc_and_a_lane(lab):
    lab.up("pair.toml", daemons=True)
    address = lab.host("right")["addresses"][0]

    def traffic():
        receiver = receive(lab, "right", 1, 200_000, 2)
        sender = lab.start("left", BIN / "gradlane", "run", "--instance", f"{lab.name}-left", "--job", "plain",
                           "--lane", "urgent", "--", INCAST, "send", address, 5000, 1)
        assert len(batches_of(receiver)) == 2
        sender.wait(20)

    classes = dscps_on_the_wire(lab, 5000, 0, traffic)["to"]
    assert [value >> 2 for value in classes[1:]] == [36] * (len(classes) - 1)
    assert counts(lab, "left")["scc_on"] == 1
