# SPDX-License-Identifier: Apache-2.0
"""Trains one network in three ways over one lab, in blocks that take turns, and compares them."""

import argparse
import json
import os
import shutil
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from arm import Arm
from lab import Capture, Lab, LabError
from report import lane_share, plot, summarise, table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARIES = os.path.join(ROOT, "build", "bin")
TOPOLOGY = os.path.join(ROOT, "userspace", "lab", "topologies", "star-8.toml")
# Milliseconds that a worker's device takes for one iteration: about what the network needs for the gradients
# of eight workers, 65 thousand parameters each, at 200 Mbit/s.
DEVICE_MS = 80
# The peers of the tuned arm are reached over a network of their own, for its timeout floor belongs to a route.
TUNED_NETWORK = "10.78.0"


class Progress:
    """A bar on a terminal, a line for each tenth elsewhere."""

    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def advance(self, steps, text):
        tenth = self.done * 10 // self.total
        self.done += steps
        share = self.done / self.total
        left = (time.monotonic() - self.begin) * (1 - share) / share
        if self.terminal:
            bar = ("#" * int(share * 30)).ljust(30)
            print(f"\r[{bar}] {share:4.0%}  {text:30} {left:3.0f} s left ", end="", file=sys.stderr, flush=True)
            if self.done >= self.total:
                print(file=sys.stderr)
        elif self.done * 10 // self.total > tenth:
            print(f"{share:4.0%}  {text}, {left:.0f} s left", file=sys.stderr, flush=True)


def arms_of(lab, folder):
    """The three ways. They differ in what is named here and in nothing else."""
    device = ["--device-ms", str(DEVICE_MS)]
    return [
        Arm("plain", "plain", lab, folder,
            ["--schedule", "serial", "--lanes", "1", "--congestion", "cubic", *device]),
        Arm("tuned", "tuned", lab, folder,
            ["--schedule", "wfbp", "--lanes", "1", "--congestion", "cubic", *device],
            address=TUNED_NETWORK, port=7001),
        Arm("gradlane", "gradlane", lab, folder,
            ["--schedule", "pwfbp", "--lanes", "4", *device], port=7002, job="train"),
    ]


def train(lab, folder, blocks, steps, training):
    """Runs all arms in blocks that take turns; returns the arms and what the capture saw."""
    lab.add_network(TUNED_NETWORK, "rto_min", "4ms")
    arms = arms_of(lab, folder)
    capture = Capture(lab, "server")
    try:
        for arm in arms:
            arm.start(os.path.join(BINARIES, "gradlane-train"), training)
        ready = arms[0].facts["ready"]
        layers = ", ".join(f"{layer['name']} {layer['parameters']}" for layer in ready["layers"])
        print(f"Training on Fashion-MNIST: {ready['parameters']} parameters ({layers}),\n"
              f"batch {ready['batch']} over {ready['workers']} workers; an iteration takes a worker's device "
              f"{DEVICE_MS} ms.", file=sys.stderr)
        progress = Progress(blocks * steps * len(arms))
        for block in range(blocks):
            # The order turns, so that no arm always follows the same other one.
            for arm in arms[block % 3:] + arms[:block % 3]:
                capture.mark(arm.name)
                arm.run(steps)
                capture.mark("between")
                progress.advance(steps, f"block {block + 1} of {blocks}, {arm.title}")
        for arm in arms:
            arm.finish()
        return arms, capture.finish()
    finally:
        capture.stop()
        for arm in arms:
            arm.stop()


def compare(arms, capture):
    """The result, as it goes into result.json."""
    result = {
        "version": 1,
        "load_average": os.getloadavg()[0],
        "device_ms": DEVICE_MS,
        "capture_dropped_packets": capture["dropped_packets"],
        "arms": {arm.name: summarise(arm, capture) for arm in arms},
        "loss": arms[0].loss,
        "same_loss_curve": all(arm.loss == arms[0].loss for arm in arms),
    }
    for arm in arms:
        result["arms"][arm.name]["lane_share"] = round(lane_share(arm, capture), 5)
    fingerprints = {arm["fingerprint"] for arm in result["arms"].values()}
    result["same_weights"] = len(fingerprints) == 1 and all(
        arm["weights_agree"] for arm in result["arms"].values())
    return result


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/demo/run", description=__doc__,
        epilog="example: scripts/demo/run --blocks 4 --steps 10 --output build/demo-short")
    parser.add_argument("--blocks", type=int, default=9, help="blocks of each arm (default %(default)s)")
    parser.add_argument("--steps", type=int, default=34,
                        help="iterations of a block, at least 3; its first and last are not timed (default %(default)s)")
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "demo"),
                        help="folder for result.json, plots and logs (default build/demo)")
    parser.add_argument("--data", help="folder with the data set (default: that of Debian's package)")
    parser.add_argument("--name", default="demo", help="of the lab (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()

    if options.blocks < 1 or options.steps < 3:
        parser.error("--blocks takes 1 or more, --steps 3 or more")
    if os.geteuid() != 0:
        sys.exit("demo: it makes network namespaces and loads BPF programs: run it as root")
    # A signal ends the run as an error does: everything is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("demo: ended by SIGTERM"))
    logs = os.path.join(options.output, "logs")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs, exist_ok=True)
    training = ["--batch", "64", "--slice", "8192", "--learning-rate", "0.05", "--seed", "1", "--backend", "cpu"]
    if options.data:
        training += ["--data", options.data]
    try:
        with Lab(BINARIES, TOPOLOGY, options.name) as lab:
            arms, capture = train(lab, logs, options.blocks, options.steps, training)
        result = compare(arms, capture)
        with open(os.path.join(options.output, "result.json"), "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)
        trouble = plot(result, options.output)
    except LabError as error:
        sys.exit(f"demo: {error}")
    except OSError as error:
        sys.exit(f"demo: {error.strerror}: {error.filename or options.output}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted; everything was taken down")

    if options.json:
        print(json.dumps(result))
    else:
        print(table(result))
    load = f"load average {result['load_average']:.1f}"
    print(f"\n{len(arms[0].loss)} iterations of each, {len(arms[0].iteration_ms)} of them timed; {load}; the capture missed "
          f"{result['capture_dropped_packets']} packets.", file=sys.stderr)
    if trouble:
        print(f"No plot: {trouble}", file=sys.stderr)
    else:
        print(f"Plots: {os.path.relpath(options.output)}/demo.png and demo.svg", file=sys.stderr)
    if not (result["same_loss_curve"] and result["same_weights"]):
        sys.exit("demo: the arms do not agree: losses or weights differ")
    print("All three arms computed the same losses and weights, bit for bit.", file=sys.stderr)


if __name__ == "__main__":
    main()
