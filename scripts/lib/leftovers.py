# SPDX-License-Identifier: Apache-2.0
"""What of gradlane is on this machine, seen by ip, tc, bpftool and /proc, outside our own cleanup code."""

import json
import os
import pathlib
import subprocess
import time

PROGRAMS = ("gradlane", "gradlaned", "gradlane-lab", "gradlane-train")

# A lock file cannot be removed without a race with its next user; these are empty and in memory.
LOCKS = {"file /run/gradlane/kernel.lock", "file /run/gradlane/leases"}


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _json(*command: str) -> list:
    try:
        parsed = json.loads(_output(*command) or "[]")
    except json.JSONDecodeError:
        return []
    return parsed if isinstance(parsed, list) else []


def _mounts(kind: str) -> set[str]:
    """Mount points of a type of file system."""
    found = set()
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        if right.split()[0] == kind:
            found.add(left.split()[4])
    return found


def _processes() -> set[str]:
    found = set()
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        name = os.path.basename(words[0]).decode(errors="replace")
        if name in PROGRAMS:
            found.add(f"process {folder.name} {b' '.join(words).decode(errors='replace').strip()}")
    return found


def _bpf_objects() -> set[str]:
    found = set()
    for kind in ("prog", "map"):
        for entry in _json("bpftool", "-j", kind, "show"):
            name = entry.get("name", "")
            if name.startswith("gl_"):
                found.add(f"bpf {kind} {entry.get('id')} {name}")
    for entry in _json("bpftool", "-j", "struct_ops", "show"):
        name = entry.get("name", "")
        if name.startswith("gl_"):
            found.add(f"struct_ops {entry.get('id')} {name}")
    for mount in _mounts("bpf"):
        for folder, names, files in os.walk(os.path.join(mount, "gradlane")):
            found.update(f"pin {os.path.join(folder, name)}" for name in names + files)
    for name in pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split():
        if name.startswith("gl_"):
            found.add(f"congestion control {name}")
    return found


def _network() -> set[str]:
    found = {
        f"network namespace {entry['name']}"
        for entry in _json("ip", "-j", "netns", "list")
        if entry.get("name", "").startswith("gl-")
    }
    for link in _json("ip", "-j", "link", "show"):
        device = link.get("ifname", "")
        if device.startswith("gl"):
            found.add(f"interface {device}")
        for side in ("ingress", "egress"):
            for line in _output("tc", "filter", "show", "dev", device, side).splitlines():
                if "gl_" in line:
                    found.add(f"tc filter on {device} {side}: {' '.join(line.split())}")
    return found


def _files() -> set[str]:
    found = set()
    for mount in _mounts("cgroup2"):
        for folder, _, _ in os.walk(os.path.join(mount, "gradlane.slice")):
            found.add(f"cgroup {folder}")
    for top in ("/run/gradlane", "/run/gradlane-lab"):
        for folder, names, files in os.walk(top):
            found.update(f"file {os.path.join(folder, name)}" for name in names + files)
    return found - LOCKS


def snapshot() -> set[str]:
    """All that is there now, one line each."""
    return _processes() | _bpf_objects() | _network() | _files()


def left_behind(before: set[str], patience_s: float = 60.0) -> set[str]:
    """What is there now and was not before. The kernel frees BPF objects a little later than their last user
    goes, hence the patience."""
    deadline = time.monotonic() + patience_s
    while True:
        left = snapshot() - before
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)
