# SPDX-License-Identifier: GPL-2.0-only
"""A strict reader of KUnit's results (KTAP) in a kernel log.

What is not said is not passed: a document without a plan, with fewer results than
planned, with numbers out of order, or cut off by a crash is an error, and so is a
result of "ok" above a failed one. Lines of other parts of the kernel may stand
between; a line that tells of a bug or a warning in the kernel is an error too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# Before any KTAP line: the console's time stamp, with caller where that is on.
STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])? ?")
VERSION = re.compile(r"^KTAP version (\d+)$")
PLAN = re.compile(r"^1\.\.(\d+)$")
SUBTEST = re.compile(r"^# Subtest: (\S.*)$")
RESULT = re.compile(r"^(not )?ok (\d+) (?:- )?([^#]*?)(?: *# *(SKIP|TODO)\b *(.*))?$")
SPLAT = re.compile(r"\b(?:BUG:|Oops:|Kernel panic|general protection fault|WARNING: CPU|WARNING: possible|UBSAN:|"
                   r"KASAN:|KCSAN:|INFO: task .* blocked for more than|rcu: INFO: .*stall|Unknown symbol|"
                   r"Out of memory:)")


@dataclass
class Result:
    """One line of "ok" or "not ok", with the results of its subtest."""

    name: str
    ok: bool
    skipped: str | None = None  # the reason, which may be empty
    children: list[Result] = field(default_factory=list)

    def leaves(self, path: str = "") -> Iterator[tuple[str, Result]]:
        """The results that have none below them, by their full names."""
        full = f"{path}/{self.name}" if path else self.name
        if not self.children:
            yield full, self
        for child in self.children:
            yield from child.leaves(full)


@dataclass
class _Document:
    level: int  # 0: a run of suites, 1: the cases of a suite, 2: the parameters of a case
    line: int
    plan: int | None = None
    name: str = ""
    results: list[Result] = field(default_factory=list)

    @property
    def where(self) -> str:
        kind = ("run of suites", "suite", "case")[min(self.level, 2)]
        return f"line {self.line}: {kind}{' ' + self.name if self.name else ''}"


@dataclass
class Report:
    suites: list[Result] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    diagnostics: dict[str, list[str]] = field(default_factory=dict)  # of each failed result

    def counts(self) -> tuple[int, int, int]:
        """Passed, failed and skipped ones of the innermost results."""
        leaves = [r for s in self.suites for _, r in s.leaves()]
        return (sum(r.ok and r.skipped is None for r in leaves), sum(not r.ok for r in leaves),
                sum(r.ok and r.skipped is not None for r in leaves))

    def failed(self) -> bool:
        return bool(self.errors) or self.counts()[1] > 0 or any(not s.ok for s in self.suites)


def parse(lines: Iterable[str]) -> Report:
    """Read one log, which may hold several documents (one for each module)."""
    report = Report()
    stack: list[_Document] = []
    said: list[str] = []  # what was said since the last result
    number = 0

    def error(text: str) -> None:
        report.errors.append(text)

    def unfinished(doc: _Document, why: str) -> None:
        if doc.plan is None and doc.level < 2:
            error(f"{doc.where}: no plan (1..N), {why}")
        elif doc.plan is not None and len(doc.results) < doc.plan:
            error(f"{doc.where}: {len(doc.results)} of {doc.plan} results, {why}")
        elif not doc.results:
            error(f"{doc.where}: no results at all, {why}")
        else:
            error(f"{doc.where}: no result of its own, {why}")

    def give_up(why: str) -> None:
        """End what is open; its results still count, as they were said."""
        inner: Result | None = None
        while stack:
            doc = stack.pop()
            unfinished(doc, why)
            if inner:
                doc.results.append(inner)
            inner = Result(doc.name or "(no name)", False, None, doc.results)
            if not stack:
                report.suites += doc.results

    def close(doc: _Document) -> None:
        # Only the parameters of a case come without a plan: the kernel does not know their number.
        if doc.plan is None and doc.level < 2:
            error(f"{doc.where}: no plan (1..N)")
        if doc.plan is not None and len(doc.results) != doc.plan:
            error(f"{doc.where}: {len(doc.results)} results where {doc.plan} were planned")
        if not doc.results:
            error(f"{doc.where}: no results at all")

    for number, raw in enumerate(lines, 1):
        line = STAMP.sub("", raw.rstrip("\r\n"))
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        level = indent // 4
        if SPLAT.search(text):
            error(f"line {number}: the kernel said: {text}")

        if indent % 4 == 0 and (match := VERSION.match(text)):
            if level == 0 and stack:
                give_up("when another run began")
            if match[1] != "1":
                error(f"line {number}: KTAP version {match[1]} is not one that is known")
            if level != len(stack):
                error(f"line {number}: a document at depth {level} inside of one at depth {len(stack) - 1}")
                give_up("when that came")
                continue
            stack.append(_Document(level, number))
            said = []
            continue
        if not stack:
            continue
        if indent % 4 != 0:
            said.append(text)
            continue

        if match := PLAN.match(text):
            top = stack[-1]
            if level != top.level or top.plan is not None or top.results:
                error(f"line {number}: a plan that is nobody's: {text}")
            else:
                top.plan = int(match[1])
            continue
        if (match := SUBTEST.match(text)) and level == stack[-1].level:
            stack[-1].name = match[1]
            continue
        match = RESULT.match(text)
        if not match:
            # A failed expectation is told in lines of any indentation.
            if text:
                said.append(text)
            continue

        children: list[Result] = []
        while stack and stack[-1].level > level:
            doc = stack.pop()
            close(doc)
            children = doc.results
            if doc.level != level + 1 or (doc.name and doc.name != match[3]):
                error(f"line {number}: a result of {match[3]} ends {doc.where}")
        if not stack or stack[-1].level != level:
            error(f"line {number}: a result at depth {level} that is nobody's: {text}")
            give_up("when that came")
            continue
        top = stack[-1]
        result = Result(match[3].strip(), not match[1], match[5] if match[4] == "SKIP" else None, children)
        if int(match[2]) != len(top.results) + 1:
            error(f"line {number}: result {match[2]} where {len(top.results) + 1} should come: {text}")
        if result.ok and any(not c.ok for c in children):
            error(f"line {number}: {result.name} is ok though something in it is not")
        if top.plan is not None and len(top.results) >= top.plan:
            error(f"line {number}: more results than the {top.plan} planned: {text}")
        if not result.ok and not children:
            report.diagnostics["/".join([d.name for d in stack if d.name] + [result.name])] = said
        said = []
        top.results.append(result)
        if top.level == 0 and top.plan is not None and len(top.results) == top.plan:
            close(top)
            report.suites += top.results
            stack.pop()

    give_up(f"when the log ended at line {number}")
    if not report.suites and not report.errors:
        error("no KTAP at all: no suite ran")
    return report
