# SPDX-License-Identifier: Apache-2.0
"""The incast benchmark's target table, as verdicts on what was measured."""

from bench import Report
from incast import Cell, Port
from plan import case_of

# Goodput, Mbit/s; retransmitted, percent; timeouts per batch, at 200 Mbit/s: by buffer, block and senders.
GOALS = {
    (64, 64, 16): (185, 0, 0), (64, 64, 64): (185, 0, 0), (64, 64, 128): (185, 0.3, 4), (64, 64, 256): (185, 1, 40),
    (256, 64, 16): (186, 0, 0), (256, 64, 64): (186, 0, 0), (256, 64, 128): (186, 0, 0), (256, 64, 256): (184, 0.2, 4),
}
LARGE_BLOCK_MBIT = 189
GIGABIT_MBIT, GIGABIT_PERCENT = 930, 0.01


def judge(report: Report) -> None:
    """A verdict for every number of the table whose cell was measured."""
    for (buffer, block, senders), goal in GOALS.items():
        _judge_small(report, Port(200, buffer), Cell(senders, block), goal)
    for senders in (2, 4, 8, 16, 32, 64, 128, 256):
        case = case_of(Port(200, 64), Cell(senders, 1024))
        if metrics := report.cells.get((case, "scc")):
            report.at_least(f"{case}: goodput, Mbit/s", metrics["goodput_mbit_s"], LARGE_BLOCK_MBIT)
            report.at_most(f"{case}: queue p99, of the buffer", metrics["queue_p99_of_buffer"], 0.5)
    for senders, block in ((16, 1024), (64, 256)):
        case = case_of(Port(1000, 128), Cell(senders, block))
        if metrics := report.cells.get((case, "scc")):
            report.at_least(f"{case}: goodput, Mbit/s", metrics["goodput_mbit_s"], GIGABIT_MBIT)
            report.at_most(f"{case}: sent again, %", metrics["retransmitted_percent"], GIGABIT_PERCENT)


def _judge_small(report: Report, port: Port, cell: Cell, goal: tuple[float, float, float]) -> None:
    case = case_of(port, cell)
    metrics = report.cells.get((case, "scc"))
    if not metrics:
        return
    report.at_least(f"{case}: goodput, Mbit/s", metrics["goodput_mbit_s"], goal[0])
    report.at_most(f"{case}: sent again, %", metrics["retransmitted_percent"], goal[1])
    report.at_most(f"{case}: timeouts per batch", metrics["timeouts_per_batch"], goal[2])
    report.at_least(f"{case}: slowest to mean flow", metrics["slowest_to_mean"], 0.95)
    ideal_ms = cell.senders * cell.block_kb * 1024 * 8 / port.ideal_mbit / 1000
    report.at_most(f"{case}: batch p99 to the ideal", metrics["batch_p99_ms"] / ideal_ms, 1.05)
    rivals = {variant: found["goodput_mbit_s"] for (other, variant), found in report.cells.items()
              if other == case and not variant.startswith("scc")}
    if rivals:
        best = max(rivals, key=rivals.get)
        report.at_least(f"{case}: goodput to that of the best rival ({best})",
                        metrics["goodput_mbit_s"] / rivals[best], 1)
    if "cubic" in rivals:
        report.at_least(f"{case}: goodput to cubic's", metrics["goodput_mbit_s"] / rivals["cubic"], 3)
