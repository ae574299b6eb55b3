# SPDX-License-Identifier: Apache-2.0
"""Incast in the lab: a server, sixteen workers, one switch port; one run of one variant, and what it measured."""

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess

from lab import Lab, LabError

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARIES = ROOT / "build" / "bin"
INCAST = str(BINARIES / "gl-incast")
WORKERS = 16
KILO = 1024
# Of 1538 bytes of a full frame on the wire 1448 are payload; the lab's TBF counts 1514 of them.
IDEAL = 1448 / 1514

# Networks that a host has besides the lab's own, by what their routes say.
NETWORKS = {
    "10.78.0": ("rto_min", "4ms"),
    "10.79.0": ("rto_min", "4ms", "features", "ecn"),
    "10.80.0": ("rto_min", "4ms", "congctl", "gl_dctcp"),
}


@dataclasses.dataclass(frozen=True)
class Port:
    """The switch port towards the server, and the network around it."""

    rate_mbit: int = 200
    buffer_kb: int = 64
    ecn_threshold_kb: int = 0
    worker_mbit: int = 0  # 0: five times the port's

    @property
    def ideal_mbit(self) -> float:
        return self.rate_mbit * IDEAL

    def topology(self) -> str:
        marks = f'ecn_threshold = "{self.ecn_threshold_kb}KB"\n' if self.ecn_threshold_kb else ""
        worker = self.worker_mbit or 5 * self.rate_mbit
        return (f'[defaults]\nlanes = 1\nbuffer = "{self.buffer_kb}KB"\nhost_buffer = "4MB"\n{marks}'
                f'[[host]]\nname = "server"\n[[host]]\nname = "worker"\ncount = {WORKERS}\n'
                f'[[switch]]\nname = "switch"\n'
                f'[[link]]\na = "server"\nb = "switch"\nrate = "{self.rate_mbit}mbit"\n'
                f'[[link]]\na = "worker"\nb = "switch"\nrate = "{worker}mbit"\n')


@dataclasses.dataclass(frozen=True)
class Variant:
    """How the flows of a run are controlled."""

    name: str
    network: str = "10.77.0"
    congestion: str = ""  # of the senders; empty: the route's or the job's
    job: bool = False
    marks: bool = False  # runs in the lab whose port sets ECN marks
    tokens: int = 0
    window_clamp: int = 0
    share: float = 0.0  # SO_MAX_PACING_RATE as part of an equal share


VARIANTS = {variant.name: variant for variant in (
    Variant("scc", job=True),
    Variant("scc, marks", job=True, marks=True),
    Variant("dctcp, floor, marks", network="10.80.0", marks=True),
    Variant("ecn cubic, floor, marks", network="10.79.0", congestion="cubic", marks=True),
    Variant("cubic, floor", network="10.78.0", congestion="cubic"),
    Variant("window clamp, floor", network="10.78.0", congestion="cubic", window_clamp=2 * 1448),
    Variant("tokens 4, floor", network="10.78.0", congestion="cubic", tokens=4),
    Variant("tokens 4", congestion="cubic", tokens=4),
    Variant("static share, floor", network="10.78.0", congestion="cubic", share=0.93),
    Variant("cubic", congestion="cubic"),
    Variant("reno", congestion="reno"),
    Variant("bbr", congestion="bbr"),
)}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is sent."""

    senders: int
    block_kb: int
    seconds: float = 3.0
    most_batches: int = 20
    pause_ms: int = 50

    def flows_of(self, worker: int) -> int:
        """Connections of a worker, numbered from 0."""
        return self.senders // WORKERS + (1 if worker < self.senders % WORKERS else 0)


def busy_seconds() -> float:
    """Processor time of the whole machine that was not idle, since it was started."""
    fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _wait, interrupt, soft = (int(field) for field in fields[:7])
    return (user + nice + system + interrupt + soft) / os.sysconf("SC_CLK_TCK")


class PortCounters:
    """The counters of the program at the switch port towards the server, read by bpftool."""

    def __init__(self, lab: Lab) -> None:
        filters = json.loads(subprocess.run(lab.on_host("switch", ["tc", "-j", "filter", "show", "dev", "server",
                                                                   "parent", "10:"]),
                                            capture_output=True, text=True, check=True).stdout)
        program = next(entry["options"]["prog"]["id"] for entry in filters if "prog" in entry.get("options", {}))
        maps = json.loads(subprocess.run(["bpftool", "-j", "prog", "show", "id", str(program)],
                                         capture_output=True, text=True, check=True).stdout)["map_ids"]
        for number in maps:
            shown = json.loads(subprocess.run(["bpftool", "-j", "map", "show", "id", str(number)],
                                              capture_output=True, text=True, check=True).stdout)
            if shown["name"].endswith(".bss"):
                self.map = str(number)

    def read(self) -> dict:
        dumped = json.loads(subprocess.run(["bpftool", "-j", "map", "dump", "id", self.map],
                                           capture_output=True, text=True, check=True).stdout)
        values = {}
        for variable in dumped[0]["formatted"]["value"][".bss"]:
            values.update(variable)
        return {"filling": values["filling"], "dropped": values["dropped"]}


class Stage:
    """The labs of a port, one without and one with marks, while the context is open."""

    def __init__(self, port: Port, folder: pathlib.Path, ecn_threshold_kb: int = 30, marked: bool = True) -> None:
        self.ports = {False: port}
        if marked:
            self.ports[True] = dataclasses.replace(port, ecn_threshold_kb=ecn_threshold_kb)
        self.port = port
        self.folder = folder
        self.labs: dict[bool, Lab] = {}
        self.counters: dict[bool, PortCounters] = {}
        self.stack = contextlib.ExitStack()
        self.next_port = 5000

    def __enter__(self) -> "Stage":
        with contextlib.ExitStack() as stack:
            for marks, port in self.ports.items():
                name = "incastm" if marks else "incast"
                path = self.folder / f"{name}.toml"
                path.write_text(port.topology())
                lab = stack.enter_context(Lab(str(BINARIES), str(path), name))
                for prefix in sorted({variant.network for variant in VARIANTS.values() if variant.marks == marks}):
                    if prefix in NETWORKS:
                        lab.add_network(prefix, *NETWORKS[prefix])
                self.labs[marks] = lab
                self.counters[marks] = PortCounters(lab)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def run(self, variant: Variant, cell: Cell) -> dict:
        """One run: metrics of all its batches but the first, which opens the connections."""
        lab = self.labs[variant.marks]
        port = self.counters[variant.marks]
        self.next_port += 1
        job = "incast" if variant.job else None
        receive = [INCAST, "receive", str(self.next_port), str(cell.senders), str(cell.block_kb * KILO),
                   str(cell.most_batches + 1), str(cell.pause_ms), "--seconds", str(cell.seconds), "--hold",
                   *(["--tokens", str(variant.tokens)] if variant.tokens else []),
                   *(["--window-clamp", str(variant.window_clamp)] if variant.window_clamp else [])]
        processes = []
        try:
            receiver = subprocess.Popen(lab.on_host("server", receive, job), text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            processes.append(receiver)
            if "listening" not in receiver.stdout.readline():
                raise LabError(receiver.stderr.read())
            address = variant.network + "." + lab.hosts["server"]["addresses"][0].rsplit(".", 1)[1]
            rate = int(variant.share * self.port.ideal_mbit * 1e6 / 8 / cell.senders)
            for worker in range(min(WORKERS, cell.senders)):
                send = [INCAST, "send", address, str(self.next_port), str(cell.flows_of(worker)),
                        variant.congestion, *(["--pacing-rate", str(rate)] if rate else [])]
                processes.append(subprocess.Popen(lab.on_host(f"worker{worker + 1}", send, job),
                                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            first = json.loads(receiver.stdout.readline() or "{}")
            before = (lab.counters(), port.read(), busy_seconds())
            batches = []
            for line in receiver.stdout:
                if "done" in line:
                    break
                batches.append(json.loads(line))
            after = (lab.counters(), port.read(), busy_seconds())
            if receiver.poll() not in (None, 0) or "ms" not in first:
                raise LabError(f"{variant.name}: {receiver.stderr.read().strip()}")
            # A batch that takes longer than the limit is the only one.
            return metrics_of(cell, batches or [first], before if batches else None, after)
        finally:
            for process in processes:
                with contextlib.suppress(OSError):
                    process.stdin and process.stdin.close()
            for process in processes:
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                for stream in (process.stdout, process.stderr):
                    stream and stream.close()


def percentile_of(histogram: list[int], share: float) -> float:
    """Upper end of the part, as a share of the whole, under which so many entries are."""
    total, passed = sum(histogram), 0
    for part, count in enumerate(histogram):
        passed += count
        if passed >= share * total:
            return (part + 1) / len(histogram)
    return 0.0


def metrics_of(cell: Cell, batches: list[dict], before: tuple | None, after: tuple) -> dict:
    times = sorted(batch["ms"] for batch in batches)
    volume = cell.senders * cell.block_kb * KILO * len(batches)
    metrics = {
        "batches": len(batches),
        "goodput_mbit_s": volume * 8 / sum(times) / 1000,
        "batch_p50_ms": statistics.median(times),
        "batch_p99_ms": times[min(len(times) - 1, int(0.99 * len(times)))],
        "flow_p50_ms": statistics.median(batch["flow_p50_ms"] for batch in batches),
        "flow_p99_ms": statistics.median(batch["flow_p99_ms"] for batch in batches),
        "slowest_to_mean": statistics.median(batch["slowest_to_mean"] for batch in batches),
        "jain": statistics.median(batch["jain"] for batch in batches),
    }
    if before is None:
        return metrics
    tcp = {name: after[0][name] - before[0][name] for name in after[0]}
    filling = [new - old for new, old in zip(after[1]["filling"], before[1]["filling"])]
    segments = volume / 1448
    metrics |= {
        "retransmitted_percent": 100 * tcp["RetransSegs"] / segments,
        "timeouts_per_batch": tcp["TCPTimeouts"] / len(batches),
        "drops_per_batch": (after[1]["dropped"] - before[1]["dropped"]) / len(batches),
        "queue_p50_of_buffer": percentile_of(filling, 0.5),
        "queue_p99_of_buffer": percentile_of(filling, 0.99),
        "cpu_s_per_gb": (after[2] - before[2]) / (volume / 1e9),
    }
    return metrics
