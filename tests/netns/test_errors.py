# SPDX-License-Identifier: Apache-2.0
"""What a person reads when something is missing or wrong: one sentence, soon, and nothing left behind."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import BIN

TRAIN = BIN / "gradlane-train"
CONFIGURATION = '[link]\ninterfaces = ["eth0"]\nrate = "200mbit"\n'


def fails(command, *words, limit_s=10, **settings):
    """Runs a command that has to fail within the limit with words in its last line; returns its complaint."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit_s,
                          stdin=subprocess.DEVNULL, **settings)
    assert done.returncode != 0, done.stdout
    sentence = done.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in sentence, done.stderr
    assert "Traceback" not in done.stderr and "terminate called" not in done.stderr, done.stderr
    return done.stderr


def gradlaned(instance, configuration):
    return [BIN / "gradlaned", "--instance", instance, "--config", configuration]


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "gradlaned.toml"
    path.write_text(CONFIGURATION)
    return path


def test_an_unknown_key_is_named_with_its_line(configuration):
    configuration.write_text(CONFIGURATION + "[lanes]\ndscpp = [1, 2, 3, 4]\n")
    fails(gradlaned("terror", configuration), f"{configuration}:5", "dscpp", "dscp")


def test_a_missing_configuration_is_named(tmp_path):
    fails(gradlaned("terror", tmp_path / "nowhere.toml"), "nowhere.toml", "No such file")


def test_without_root_the_missing_capability_is_named(configuration):
    os.chmod(configuration.parent, 0o755)
    copy = pathlib.Path("/tmp") / f"gradlane-test-{os.getpid()}.toml"
    copy.write_text(CONFIGURATION)
    try:
        fails(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *gradlaned("terror", copy)], "CAP_")
    finally:
        copy.unlink()


def test_without_type_information_the_kernel_option_is_named(configuration):
    # In a mount namespace of its own the kernel seems to have none.
    script = "mount -t tmpfs none /sys/kernel && exec \"$@\""
    fails(["unshare", "-m", "sh", "-c", script, "sh", *gradlaned("terror", configuration)], "BTF")


def test_an_unknown_interface_is_named_and_nothing_stays(configuration):
    configuration.write_text(CONFIGURATION.replace("eth0", "nothere0"))
    fails(gradlaned("terror", configuration), "nothere0")
    assert not pathlib.Path("/sys/fs/bpf/gradlane/terror").exists()


def test_a_second_daemon_of_an_instance_is_refused(lab):
    lab.up("pair.toml", daemons=True)
    daemon = lab.host("left")["daemon"]
    fails(lab._exec("left", gradlaned(f"{lab.name}-left", daemon["config"]), ""), str(daemon["pid"]))
    assert lab.host("left")["daemon"]["running"]


def server(port, *options, workers=1):
    return [TRAIN, "server", "--listen", f"127.0.0.1:{port}", "--workers", workers, "--schedule", "pwfbp",
            "--backend", "cpu", *options]


def worker(port, *options):
    return [TRAIN, "worker", "--connect", f"127.0.0.1:{port}", "--rank", "0", "--backend", "cpu", *options]


def start(command):
    return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


def test_a_missing_dataset_is_named_with_its_package(tmp_path):
    fails(server(27101, "--data", tmp_path), str(tmp_path), "dataset-fashion-mnist")


def test_a_port_in_use_is_named():
    first = start(server(27102, "--json"))
    try:
        assert "listening" in first.stdout.readline()
        fails(server(27102), "27102", "in use")
    finally:
        end(first)


def test_a_worker_without_a_server_gives_up_in_time():
    fails(worker(27103), "27103", limit_s=20)


def listening_pair(port, *options):
    first = start(server(port, "--json", "--steps", "100000", *options))
    assert "listening" in first.stdout.readline()
    second = start(worker(port))
    assert "ready" in first.stdout.readline()
    return first, second


@pytest.mark.parametrize("victim", ["worker", "server"])
def test_when_one_is_killed_the_other_ends_with_a_sentence(victim):
    port = 27104 if victim == "worker" else 27105
    processes = listening_pair(port)
    try:
        time.sleep(0.5)
        killed, other = processes[::-1] if victim == "worker" else processes
        killed.send_signal(signal.SIGKILL)
        begin = time.monotonic()
        _, complaint = other.communicate(timeout=15)
        assert time.monotonic() - begin < 10
        assert other.returncode not in (0, None)
        assert ("worker 0" if victim == "worker" else "server") in complaint.strip().splitlines()[-1], complaint
    finally:
        end(*processes)


def test_a_full_disk_is_named():
    first = start(server(27106, "--json", "--steps", "2", "--byte-log", "/dev/full"))
    second = None
    try:
        assert "listening" in first.stdout.readline()
        second = start(worker(27106))
        _, complaint = first.communicate(timeout=60)
        assert first.returncode != 0
        assert "/dev/full" in complaint.strip().splitlines()[-1], complaint
    finally:
        end(first, *([second] if second else []))


def test_run_without_a_daemon_still_runs_the_command():
    done = subprocess.run([BIN / "gradlane", "run", "--instance", "terror", "--", "sh", "-c", "echo ran; exit 7"],
                          capture_output=True, text=True, timeout=10)
    assert done.stdout == "ran\n"
    assert done.returncode == 7
    assert "terror" in done.stderr


def test_status_without_a_daemon_says_so():
    fails([BIN / "gradlane", "status", "--instance", "terror"], "terror")
