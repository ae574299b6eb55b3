# SPDX-License-Identifier: Apache-2.0
"""Which cells the incast benchmark measures."""

import dataclasses

from incast import VARIANTS, Cell, Port


@dataclasses.dataclass(frozen=True)
class Group:
    """Cells on one port, with the variants that take turns in them."""

    name: str
    port: Port
    cells: list[Cell]
    variants: list[str]
    ecn_threshold_kb: int = 30
    repeat: int = 1

    def case(self, cell: Cell) -> str:
        return case_of(self.port, cell)


def case_of(port: Port, cell: Cell) -> str:
    return f"{port.rate_mbit} Mbit/s, B={port.buffer_kb} KB, S={cell.block_kb} KB, N={cell.senders}"


ALL = list(VARIANTS)
RIVALS = ["scc", "scc, marks", "dctcp, floor, marks", "ecn cubic, floor, marks", "cubic, floor", "tokens 4, floor",
          "static share, floor"]
FEW = ["scc", "dctcp, floor, marks", "cubic, floor"]
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256)
TABLE = (16, 64, 128, 256)

FULL = [
    Group("shallow, small", Port(200, 64), [Cell(n, 64) for n in TABLE], ALL, repeat=5),
    Group("deep, small", Port(200, 256), [Cell(n, 64) for n in TABLE], RIVALS, repeat=3),
    Group("shallow, all counts", Port(200, 64), [Cell(n, 256, 2.0) for n in COUNTS], FEW, repeat=1),
    Group("shallow, large", Port(200, 64), [Cell(n, 1024, 2.0) for n in COUNTS], FEW, repeat=1),
    Group("gigabit", Port(1000, 128), [Cell(16, 1024), Cell(64, 256)], RIVALS, repeat=3),
]

QUICK = [
    Group("shallow, small", Port(200, 64), [Cell(n, 64, 1.5) for n in (16, 128)],
          ["scc", "dctcp, floor, marks", "cubic, floor", "tokens 4, floor", "cubic"], repeat=2),
]
