# SPDX-License-Identifier: Apache-2.0
"""Counts of tests, and the JUnit XML files of ctest and pytest that they come from."""

import fnmatch
import pathlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field


@dataclass
class Counts:
    """What became of the tests of one step."""

    passed: int = 0
    failed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # name of the test -> the reason it gave
    failures: list[str] = field(default_factory=list)  # names of the failed tests

    def add(self, other: "Counts") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped.update(other.skipped)
        self.failures += other.failures


def read(path: pathlib.Path, prefix: str = "") -> Counts:
    """Counts the tests of a JUnit file. Raises OSError or ParseError if it cannot be read."""
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name", "")
        classname = case.get("classname", "")
        if classname and classname != name:
            name = f"{classname}::{name}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
            counts.failures.append(prefix + name)
        elif skipped is not None or case.get("status") in ("notrun", "disabled"):
            reason = skipped.get("message", "") if skipped is not None else ""
            counts.skipped[prefix + name] = reason or case.get("status", "") or "no reason given"
        else:
            counts.passed += 1
    return counts


def read_skip_list(path: pathlib.Path) -> dict[str, str]:
    """Reads the committed list of tests that may be skipped: lines `NAME: reason`; NAME may hold `*`."""
    allowed = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, separator, reason = line.partition(": ")
        if not separator or not reason.strip():
            raise ValueError(f"{path}:{number}: write `NAME: reason`, with a reason")
        allowed[name.strip()] = reason.strip()
    return allowed


def unlisted(skipped: dict[str, str], allowed: dict[str, str]) -> dict[str, str]:
    """The skipped tests that the list does not allow."""
    return {
        name: reason
        for name, reason in skipped.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
    }
