# SPDX-License-Identifier: Apache-2.0
"""What every benchmark prints: one JSON object per line for a measurement or a verdict (docs/measuring.md)."""

import json
import os
import statistics
import sys


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


class Report:
    """Prints measurements and verdicts, and keeps them."""

    def __init__(self, bench: str) -> None:
        self.bench = bench
        self.cells: dict[tuple[str, str], dict] = {}

    def measurement(self, case: str, variant: str, runs: list[dict]) -> dict:
        """The medians of some runs' metrics, with the least and largest of each in `spread`."""
        names = sorted({name for run in runs for name in run})
        values = {name: [run[name] for run in runs if name in run] for name in names}
        metrics = {name: round(statistics.median(found), 4) for name, found in values.items()}
        spread = {name: [round(min(found), 4), round(max(found), 4)] for name, found in values.items()}
        self.cells[case, variant] = metrics
        self._print({"bench": self.bench, "case": case, "variant": variant, "runs": len(runs),
                     "load_average": load_average(), "metrics": metrics, "spread": spread})
        return metrics

    def at_least(self, target: str, value: float, limit: float) -> None:
        self._verdict(target, value, limit, value >= limit)

    def at_most(self, target: str, value: float, limit: float) -> None:
        self._verdict(target, value, limit, value <= limit)

    def _verdict(self, target: str, value: float, limit: float, holds: bool) -> None:
        self._print({"bench": self.bench, "target": target, "value": round(value, 4), "limit": round(limit, 4),
                     "holds": bool(holds)})

    def _print(self, line: dict) -> None:
        print(json.dumps(line), flush=True)


def progress(text: str) -> None:
    """One line that the next one replaces, if a person is looking."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)
