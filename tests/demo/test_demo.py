# SPDX-License-Identifier: Apache-2.0
"""The demo in a short form: what it prints and writes, and that the arms agree."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARMS = ("plain", "tuned", "gradlane")
FIGURES = ("iteration_ms_p50", "iteration_ms_p99", "goodput_mbit_s", "retransmitted_segments",
           "retransmission_timeouts", "test_accuracy", "lane_share")


def demo(tmp_path, *arguments, limit_s=240):
    return subprocess.run(
        [ROOT / "scripts" / "demo" / "run", "--output", tmp_path, "--name", "demotest", *arguments],
        capture_output=True, text=True, timeout=limit_s)


def nothing_left():
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return "gl-demotest" not in namespaces and not pathlib.Path("/run/gradlane-lab/demotest").exists()


def test_a_short_demo_proves_lanes_and_agreement(tmp_path):
    done = demo(tmp_path, "--blocks", "2", "--steps", "5")
    assert done.returncode == 0, done.stderr
    assert nothing_left()
    assert max(len(line) for line in done.stdout.splitlines()) <= 80, done.stdout
    for title in ("iteration time p50", "retransmitted segments", "gradients in their lane", "test accuracy"):
        assert title in done.stdout
    assert "bit for bit" in done.stderr

    result = json.loads((tmp_path / "result.json").read_text())
    assert result["same_loss_curve"] and result["same_weights"]
    assert len(result["loss"]) == 10
    for arm in ARMS:
        assert all(isinstance(result["arms"][arm][figure], (int, float)) for figure in FIGURES), arm
        assert result["arms"][arm]["iterations"] == 10
    # Joined to the trainer's own log of bytes; the other arms have no lanes.
    assert result["arms"]["gradlane"]["lane_share"] >= 0.95
    assert set(result["arms"]["plain"]["bytes_by_dscp"]) == {"0"}
    assert set(result["arms"]["gradlane"]["bytes_by_dscp"]) == {"36", "22", "14", "0"}
    for name in ("demo.png", "demo.svg"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_a_missing_dataset_ends_the_demo_with_a_sentence_and_nothing_left(tmp_path):
    done = demo(tmp_path, "--data", str(tmp_path / "nowhere"))
    assert done.returncode != 0
    assert "dataset-fashion-mnist" in done.stderr.strip().splitlines()[-1], done.stderr
    assert "Traceback" not in done.stderr
    assert nothing_left()
