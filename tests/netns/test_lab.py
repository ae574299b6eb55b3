# SPDX-License-Identifier: Apache-2.0
"""The lab itself: networks come and go whole, and a port does what the file says."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import BIN, Lab, wait_until

MBIT = 1e6
LINKS_BEFORE = {link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-j", "link", "show"]))}

# Small, with ports of different kinds: two lanes of a star, tree of two switches.
TREE = """[defaults]
rate = "100mbit"
[[host]]
name = "h"
count = 3
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[link]]
a = "h1"
b = "s1"
[[link]]
a = "h2"
b = "s2"
[[link]]
a = "h3"
b = "s2"
offload = false
[[link]]
a = "s1"
b = "s2"
"""


def traces(name: str) -> list[str]:
    """What of a lab is on this machine, seen by others than gradlane-lab."""
    found = []
    namespaces = json.loads(subprocess.check_output(["ip", "-j", "netns", "list"]) or "[]")
    found += [space["name"] for space in namespaces if space["name"].startswith(f"gl-{name}-")]
    links = json.loads(subprocess.check_output(["ip", "-j", "link", "show"]))
    found += [link["ifname"] for link in links if link["ifname"] not in LINKS_BEFORE
              and re.fullmatch("eth0|sw_bridge|(worker|h|s)[0-9]|server|switch|left|right", link["ifname"])]
    for folder in ("/run/gradlane-lab", "/run/gradlane", "/sys/fs/bpf/gradlane"):
        if os.path.isdir(folder):
            found += [f"{folder}/{entry}" for entry in os.listdir(folder) if entry.startswith(name)]
    for mount in re.findall(r" (\S+) \S+ .*- cgroup2 ", pathlib.Path("/proc/self/mountinfo").read_text()):
        slice_folder = pathlib.Path(mount) / "gradlane.slice"
        if slice_folder.is_dir():
            found += [str(folder) for folder in slice_folder.iterdir() if folder.name.startswith(f"{name}-")]
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{name}-" in process.read_text() or f"/{name}/" in process.read_text():
                found.append(process.read_text().replace("\0", " "))
        except OSError:
            pass
    return found


def received_mbit_s(result: dict) -> float:
    return result["end"]["sum_received"]["bits_per_second"] / MBIT


class Held:
    """`with Held(lab, PORT) as held:` watches how many bytes the switch holds for a host; held.most is the maximum."""

    def __init__(self, lab: Lab, port: str) -> None:
        self.process = lab.start("switch", "bash", "-c", "while tc -j -s qdisc show dev $0 root; do sleep 0.02; done",
                                 port, stdout=(lab.folder / "held").open("w"))
        self.file = lab.folder / "held"
        self.most = 0

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)
        self.most = max(map(int, re.findall(r'"backlog":(\d+)', self.file.read_text())))


def stub_daemon(lab: Lab, body: str) -> str:
    """A program in the place of gradlaned."""
    path = lab.folder / "daemon"
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_hosts_reach_each_other_over_a_tree(lab):
    lab.up(TREE)
    listed = lab.status()
    assert listed["complete"]
    assert [host["name"] for host in listed["hosts"]] == ["h1", "h2", "h3"]
    assert all(link["up"] for link in listed["links"])
    lab.transfer("h2", "h1", 100_000, version=4)
    lab.transfer("h2", "h1", 100_000, version=6)


def test_exec_passes_exit_status_input_and_mounts(lab):
    lab.up("pair.toml")
    assert lab.run("left", "sh", "-c", "exit 7", check=False).returncode == 7
    assert lab.run("left", "no-such-program", check=False).returncode == 127
    assert "no host" in lab.run("nobody", "true", check=False).stderr
    # The network alone is another one.
    assert lab.run("left", "stat", "-L", "-c", "%i", "/proc/self/ns/mnt").stdout == \
        subprocess.check_output(["stat", "-L", "-c", "%i", "/proc/self/ns/mnt"], text=True)
    assert lab.run("left", "stat", "-L", "-c", "%i", "/proc/self/ns/net").stdout != \
        subprocess.check_output(["stat", "-L", "-c", "%i", "/proc/self/ns/net"], text=True)


def test_exec_puts_a_command_into_a_job(lab):
    lab.up("pair.toml")
    groups = lab.run("left", "cat", "/proc/self/cgroup", job="training").stdout
    assert f"0::/gradlane.slice/{lab.name}-left/training" in groups
    lab.call("down")
    assert traces(lab.name) == []


def test_a_second_up_is_refused_and_says_how_to_take_the_first_down(lab):
    lab.up("pair.toml")
    again = lab.call("up", lab.file("[[host]]\n"), check=False)
    assert again.returncode == 1
    lab.folder.joinpath("topology.toml").write_text(TREE)
    again = lab.call("up", lab.folder / "topology.toml", "--no-daemons", check=False)
    assert again.returncode == 1
    assert f"gradlane-lab down --name {lab.name}" in again.stderr
    assert lab.status()["complete"]


def test_down_leaves_nothing(lab):
    lab.up("star-8.toml")
    lab.start("worker1", "sleep", "1000")
    assert traces(lab.name)
    lab.call("down")
    assert traces(lab.name) == []


def test_two_labs_at_a_time(lab, tmp_path):
    other = Lab(tmp_path)
    try:
        lab.up("pair.toml")
        other.up("pair.toml")
        lab.call("down")
        assert other.link("left")["up"]
    finally:
        other.remove()
    assert traces(other.name) == []


def test_the_rate_is_that_of_the_file(lab):
    lab.up("pair.toml")
    results = lab.iperf("right", {"left": ["-C", "cubic"]})
    # 200 Mbit/s on the wire are 191 of payload.
    assert 150 < received_mbit_s(results["left"]) < 196


def test_a_switch_port_never_holds_more_than_its_buffer(lab):
    lab.up("star-8.toml")
    senders = {f"worker{i}": ["-C", "cubic", "-S", tos] for i, tos in enumerate((144, 88, 56, 0, 0, 0), 1)}
    with Held(lab, "server") as held:
        lab.iperf("server", senders, seconds=3)
    assert 32 << 10 < held.most <= 64 << 10


def test_one_lane_alone_has_the_whole_buffer(lab):
    lab.up("star-8.toml")
    with Held(lab, "server") as held:
        lab.iperf("server", {f"worker{i}": ["-C", "cubic"] for i in range(1, 5)}, seconds=3)
    assert 48 << 10 < held.most <= 64 << 10


# Slow enough for an emulated processor to fill it.
@pytest.mark.vm
def test_the_buffer_of_a_slow_port(lab):
    slow_to_right = PAIR.replace('a = "right"', 'a = "right"\nrate = "5mbit"\nbuffer = "16KB"')
    lab.up(slow_to_right)
    with Held(lab, "right") as held:
        lab.iperf("right", {"left": ["-u", "-b", "10M", "-l", "1400"]}, seconds=3)
    assert 8 << 10 < held.most <= 16 << 10


def test_urgent_goes_first_and_bulk_keeps_its_share(lab):
    lab.up("star-8.toml")
    with lab.capture("server") as capture:
        results = lab.iperf("server", {"worker1": ["-C", "cubic", "-S", 144], "worker2": ["-C", "cubic"]}, 4)
    urgent, bulk = received_mbit_s(results["worker1"]), received_mbit_s(results["worker2"])
    assert urgent > 5 * bulk
    # A twentieth of 200 Mbit/s is guaranteed; loss in the shared buffer keeps TCP from filling it all the time.
    assert bulk > 4
    assert urgent + bulk > 150
    assert capture.result["dropped_packets"] == 0
    wire = {flow["dscp"]: flow["wire_bytes"] for flow in capture.flows(direction="to")
            if flow["wire_bytes"] > 1e6}
    assert set(wire) == {36, 0}


def test_bulk_that_never_backs_off_does_not_keep_urgent_out(lab):
    lab.up("star-8.toml")
    flood = ["-u", "-b", "150M", "-l", "1400"]
    with lab.capture("server") as capture:
        lab.iperf("server", {"worker1": [*flood, "-S", 144], "worker2": [*flood, "-S", 88], "worker3": flood}, 3)
    sent = {dscp: sum(flow["wire_bytes"] for flow in capture.flows(direction="to", protocol="udp", dscp=dscp))
            for dscp in (36, 22, 0)}
    # 154 Mbit/s with headers are offered to each lane, of 200 in all; bulk keeps its 10 Mbit/s.
    assert sent[36] > 4 * sent[22]
    assert sent[22] > 1.3 * sent[0]
    assert sent[0] > 2e6


@pytest.mark.vm
@pytest.mark.parametrize("version", [4, 6])
def test_lanes_go_by_dscp_of_both_ip_versions(lab, version):
    lab.up("pair.toml")
    for tos, lane in ((144, 0), (88, 1), (56, 2), (0, 3), (184, 3)):
        before = [lane_bytes(lab, each) for each in range(4)]
        lab.transfer("left", "right", 300_000, tos, version)
        gained = [lane_bytes(lab, each) - before[each] for each in range(4)]
        assert gained[lane] > 300_000
        assert sum(gained) - gained[lane] < 10_000


def lane_bytes(lab: Lab, lane: int) -> int:
    """Bytes that have left by a lane of the switch's port to the host `right`."""
    shown = lab.run("switch", "tc", "-s", "class", "show", "dev", "right").stdout
    return int(re.search(rf"class htb 10:1{lane} .*?\n Sent (\d+) bytes", shown).group(1))


def test_a_port_marks_above_its_threshold(lab):
    lab.up("""[defaults]
rate = "100mbit"
ecn_threshold = "16KB"
[[host]]
name = "h"
count = 3
[[switch]]
name = "s"
[[link]]
a = "h"
b = "s"
""")
    for host in ("h1", "h2", "h3"):
        lab.run(host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
    with lab.capture("h1") as capture:
        results = lab.iperf("h1", {"h2": ["-C", "cubic"], "h3": ["-C", "cubic"]})
    marked = sum(flow["packets"] for flow in capture.flows(direction="to", ecn=3))
    assert marked > 0
    # Marked in time, nothing is lost.
    assert sum(result["end"]["sum_sent"]["retransmits"] for result in results.values()) < 20


def test_frames_are_split_before_they_reach_the_switch(lab):
    lab.up("pair.toml")
    watcher = lab.start("switch", "timeout", "-s", "INT", "2", "tcpdump", "-nn", "-i", "left", "-c", "2000",
                        "tcp dst port 5201 and greater 6265")
    time.sleep(0.5)
    lab.iperf("right", {"left": ["-C", "cubic"]}, 2)
    output, complaints = watcher.communicate(timeout=10)
    assert "0 packets captured" in complaints, output


def test_a_host_without_offload_sends_frames_only(lab):
    lab.up(TREE)
    watcher = lab.start("s2", "timeout", "-s", "INT", "2", "tcpdump", "-nn", "-i", "h3", "-c", "2000",
                        "tcp dst port 5201 and greater 1515")
    time.sleep(0.5)
    lab.iperf("h2", {"h3": ["-C", "cubic"]}, 2)
    output, complaints = watcher.communicate(timeout=10)
    assert "0 packets captured" in complaints, output


@pytest.mark.vm
@pytest.mark.parametrize("how", [(), ("--drop",)])
def test_break_and_repair(lab, how):
    lab.up("pair.toml")
    connect = ("timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/10.77.0.2/9")
    # Refused at once: the host answers.
    assert lab.run("left", *connect, check=False).returncode == 1
    lab.call("break", *how, "left")
    assert lab.link("left")["up"] == bool(how)
    assert lab.link("left")["drops_all"] == bool(how)
    assert lab.run("left", *connect, check=False).returncode == 124
    lab.call("repair", "left")
    assert lab.link("left")["up"] and not lab.link("left")["drops_all"]
    wait_until(lambda: lab.run("left", *connect, check=False).returncode == 1)
    assert "there is no link" in lab.call("break", "middle", check=False).stderr


def test_daemons_start_in_their_namespaces_and_stop(lab):
    lab.up("pair.toml", "--daemon",
           stub_daemon(lab, 'echo starting; echo "$@"; readlink /proc/self/ns/net; echo ready\n'
                            "trap 'echo stopped; exit 0' TERM; while :; do sleep 0.05; done"), daemons=True)
    for name in ("left", "right"):
        daemon = lab.host(name)["daemon"]
        assert daemon["ready"] and daemon["running"]
        assert daemon["instance"] == f"{lab.name}-{name}"
        log = pathlib.Path(daemon["log"]).read_text().splitlines()
        assert log[1] == f"--instance {daemon['instance']} --config {daemon['config']}"
        assert log[2] == lab.run(name, "readlink", "/proc/self/ns/net").stdout.strip()
        assert 'interfaces = ["eth0"]' in pathlib.Path(daemon["config"]).read_text()
    os.kill(lab.host("left")["daemon"]["pid"], signal.SIGKILL)
    wait_until(lambda: not lab.host("left")["daemon"]["running"])
    lab.call("down")
    assert traces(lab.name) == []


@pytest.mark.parametrize("body, sentence", [
    ("echo 'this cannot be: do that' >&2; exit 3", "gradlaned of left ended at its start: this cannot be: do that"),
    ("exec sleep 1000", "gradlaned of left was not ready within 10 s"),
])
def test_a_failed_up_leaves_nothing(lab, body, sentence):
    failed = lab.call("up", lab.file(PAIR), "--daemon", stub_daemon(lab, body), check=False)
    assert failed.returncode == 1
    assert failed.stderr == f"gradlane-lab: {sentence}\n"
    assert traces(lab.name) == []


PAIR = """[defaults]
rate = "200mbit"
[[host]]
name = "left"
[[host]]
name = "right"
[[switch]]
name = "switch"
[[link]]
a = "left"
b = "switch"
[[link]]
a = "right"
b = "switch"
"""


def test_an_interrupted_up_leaves_nothing(lab):
    process = subprocess.Popen(
        lab.command("up", lab.file(PAIR), "--daemon", stub_daemon(lab, "exec sleep 1000")),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lab.started.append(process)
    wait_until(lambda: pathlib.Path(f"/run/gradlane-lab/{lab.name}/left.log").exists())
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.communicate(timeout=15)[1]
    assert process.returncode == 1
    assert traces(lab.name) == []


# From before the first namespace to while the daemons start.
@pytest.mark.parametrize("milliseconds", [1, 5, 10, 20, 40, 80, 160, 320])
def test_down_takes_away_what_a_killed_up_has_made(lab, milliseconds):
    process = subprocess.Popen(
        lab.command("up", lab.file(TREE), "--daemon", stub_daemon(lab, "exec sleep 1000")),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(milliseconds / 1000)
    process.kill()
    process.wait()
    lab.call("down")
    assert traces(lab.name) == []


def test_down_works_without_the_state(lab):
    lab.up("pair.toml", "--daemon", stub_daemon(lab, "echo ready; exec sleep 1000"), daemons=True)
    for file in pathlib.Path(f"/run/gradlane-lab/{lab.name}").iterdir():
        file.unlink()
    os.rmdir(f"/run/gradlane-lab/{lab.name}")
    lab.call("down")
    assert traces(lab.name) == []


def test_down_kills_what_does_not_end(lab):
    lab.up("pair.toml")
    lab.start("left", "bash", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done").stdout.readline()
    started = time.monotonic()
    lab.call("down")
    assert 9 < time.monotonic() - started < 25
    assert traces(lab.name) == []


@pytest.mark.parametrize("text, sentence", [
    ("speed = 1\n", "topology.toml:1: there is no \"speed\" here"),
    ("[defaults]\nrate = \"fast\"\n", "topology.toml:2: rate must be a rate from"),
    ("[[host]]\nname = \"h\"\n", "topology.toml: there is no link"),
    (PAIR + "[[link]]\na = \"left\"\nb = \"switch\"\n", "topology.toml:15: host \"left\" has a link already"),
])
def test_a_bad_file_gets_a_sentence_and_leaves_nothing(lab, text, sentence):
    failed = lab.call("up", lab.file(text), check=False)
    assert failed.returncode == 1
    assert sentence in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert traces(lab.name) == []


def test_without_root_it_says_so():
    failed = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",
                             BIN / "gradlane-lab", "list"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "gradlane-lab: network namespaces need root: run gradlane-lab by sudo\n"


def test_the_capture_agrees_with_tcpdump_and_the_sender(lab):
    lab.up("pair.toml")
    dump = lab.folder / "dump.pcap"
    watcher = lab.start("switch", "tcpdump", "-U", "--immediate-mode", "-Z", "root", "-i", "right", "-s", "80",
                        "-B", "16384", "-w", dump, "tcp")
    assert "listening on" in watcher.stderr.readline()
    with lab.capture("right") as capture:
        lab.transfer("left", "right", 20_000_000, 144)
        capture.mark("second")
        lab.transfer("left", "right", 10_000_000, 0, port=7001)
    time.sleep(1)  # tcpdump forgets what it has not read yet
    watcher.send_signal(signal.SIGINT)
    _, complaints = watcher.communicate(timeout=10)
    assert "\n0 packets dropped by kernel" in complaints, complaints
    assert capture.result["dropped_packets"] == 0

    [first] = capture.flows(0, direction="to", dscp=36)
    [second] = capture.flows(1, direction="to", dscp=0, destination_port=7001)
    assert first["payload_bytes"] == 20_000_000
    assert second["payload_bytes"] == 10_000_000
    for flow in (first, second):
        lines = subprocess.check_output(
            ["tcpdump", "-nn", "-r", str(dump),
             f"src port {flow['source_port']} and dst port {flow['destination_port']}"], text=True, stderr=subprocess.DEVNULL).splitlines()
        payload = sum(int(re.search(r"length (\d+)", line).group(1)) for line in lines)
        assert flow["payload_bytes"] + flow["retransmitted_bytes"] == payload


def test_the_capture_sees_both_ip_versions_and_periods(lab):
    lab.up("pair.toml")
    with lab.capture("right") as capture:
        lab.transfer("left", "right", 1_000_000, version=4)
        capture.mark("six")
        lab.transfer("left", "right", 1_000_000, version=6)
    assert [period["name"] for period in capture.result["periods"]] == ["", "six"]
    for period, version in ((0, 4), (1, 6)):
        flows = capture.flows(period, direction="to", protocol="tcp")
        assert {flow["ip_version"] for flow in flows} == {version}
        assert sum(flow["payload_bytes"] for flow in flows) == 1_000_000
