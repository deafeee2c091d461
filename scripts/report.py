#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""report.html from a comparison: its tables, and plots drawn into the page itself.

The arithmetic is pageout-bench's (`pageout-bench compare --format json`); this only shows it. Where samples were taken on
the host's clock, it adds a bootstrap confidence interval of the median.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import jinja2
import matplotlib

matplotlib.use("svg")
# The same figure gives the same file, whoever draws it and when.
matplotlib.rcParams.update({"svg.hashsalt": "pageout", "svg.fonttype": "none", "font.size": 9})
from matplotlib import pyplot  # noqa: E402

SCHEMA = "pageout-comparison/1"
TEMPLATES = Path(__file__).resolve().parent / "templates"
GROUPS = {
    "seconds": "Seconds of every pass and phase",
    "time": "The steady pass and the disk's own limit",
    "shape": "Shape of the requests, and the kernel's work",
    "block": "Block layer",
    "latency": "Latency",
    "vmstat": "/proc/vmstat",
}
COLOURS = ["#8a8a8a", "#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#ff7f0e"]

Table = dict[str, Any]
Cell = dict[str, Any]


class Failure(Exception):
    """An error whose text is meant for the user."""


def number(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.{1 if value >= 100 else 2 if value >= 0.1 else 4}f}"
    if unit in ("pages", "x"):
        return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
    if unit == "ns":
        return f"{value / 1000:,.1f} us"
    return f"{value:,.0f}"


def size(value: float) -> str:
    kib = value / 1024
    return f"{kib:,.0f} KiB" if kib < 10000 else f"{kib / 1024:,.0f} MiB"


def cell_text(cell: Cell | None, unit: str) -> str:
    if cell is None:
        return "-"
    text = number(cell["median"], unit)
    if cell["n"] > 1 and cell["min"] != cell["max"]:
        text += f" ({number(cell['min'], unit)}..{number(cell['max'], unit)})"
    if cell["bytes"] is not None:
        text += f", {size(cell['bytes'])}"
    return text


def ratio_text(cell: Cell | None) -> str:
    if cell is None or cell["verdict"] in (None, "same"):
        return ""
    ratio = "new" if cell["ratio"] is None else f"{cell['ratio']:.{3 if cell['ratio'] < 0.1 else 2}f}x"
    return ratio if cell["verdict"] == "changed" else f"{ratio} ~" if cell["verdict"] == "unclear" else f"{ratio} {cell['verdict']}"


def svg(figure: Any) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = out.getvalue()
    return text[text.index("<svg"):]


def values(row: dict[str, Any]) -> list[float]:
    return [0.0 if c is None else c["median"] for c in row["cells"]]


def plot_seconds(table: Table) -> str | None:
    """Seconds of every pass and phase: a group of bars for each, a bar a step."""
    rows = [r for r in table["rows"] if r["group"] == "seconds"]
    if not rows:
        return None
    labels = [c["label"] for c in table["columns"]]
    figure, axes = pyplot.subplots(figsize=(max(5.0, 0.28 * len(rows) * len(labels) + 2), 3.2))
    width = 0.8 / len(labels)
    for i, label in enumerate(labels):
        heights = [values(row)[i] for row in rows]
        low = [h - (row["cells"][i] or {"min": h})["min"] for h, row in zip(heights, rows)]
        high = [(row["cells"][i] or {"max": h})["max"] - h for h, row in zip(heights, rows)]
        axes.bar([n + i * width for n in range(len(rows))], heights, width, label=label, color=COLOURS[i % len(COLOURS)],
                 yerr=[low, high] if any(low) or any(high) else None, capsize=2)
    limit = next((r for r in table["rows"] if r["field"] == "media_limit_s"), None)
    base = next((i for i, c in enumerate(table["columns"]) if c["baseline"] is None), 0)
    if limit and limit["cells"][base]:
        axes.axhline(limit["cells"][base]["median"], color="black", linewidth=0.8, linestyle="--",
                     label=f"media limit of a steady pass ({labels[base]})")
    axes.set_xticks([n + 0.4 - width / 2 for n in range(len(rows))], [r["name"] for r in rows],
                    rotation=30 if len(rows) > 6 else 0)
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False)
    return svg(figure)


def plot_requests(table: Table) -> str | None:
    """Pages a request, of reads and writes, step by step."""
    rows = [r for r in table["rows"] if r["field"] in ("steady.pages_per_read_request", "steady.pages_per_write_request")]
    if not rows:
        return None
    labels = [c["label"] for c in table["columns"]]
    figure, axes = pyplot.subplots(figsize=(max(4.0, 0.9 * len(labels) + 1.5), 3.0))
    width = 0.8 / len(rows)
    for i, row in enumerate(rows):
        name = "read" if "read" in row["field"] else "write"
        bars = axes.bar([n + i * width for n in range(len(labels))], values(row), width, label=f"pages a {name} request",
                        color=COLOURS[1 + i])
        axes.bar_label(bars, [number(v, "pages") for v in values(row)], fontsize=7)
    axes.set_xticks([n + 0.4 - width / 2 for n in range(len(labels))], labels, rotation=20 if len(labels) > 4 else 0)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False)
    return svg(figure)


def intervals(table: Table, comparison: dict[str, Any]) -> list[dict[str, str]]:
    """Bootstrap intervals of the steady pass's median, on the host's clock and from three samples on."""
    if table["clock"] != "host":
        return []
    from scipy import stats

    found = []
    for column in table["columns"]:
        seconds = []
        for path in sorted(Path(column["source"]).rglob("record.json")) if Path(column["source"]).is_dir() else []:
            record = json.loads(path.read_text())
            same = all(record.get(k) == table[k] for k in ("scenario", "disk", "lru", "page_cluster", "mem_bytes", "clock"))
            value = (record.get("steady") or {}).get("seconds")
            if same and record["status"] == "PASS" and record["step"] == column["step"] and value is not None:
                seconds.append(value)
        if len(seconds) < 3 or len(set(seconds)) == 1:
            continue
        import numpy

        result = stats.bootstrap((numpy.array(seconds),), numpy.median, confidence_level=0.95, method="percentile",
                                 random_state=1)
        low, high = result.confidence_interval
        found.append({"label": column["label"], "n": str(len(seconds)), "median": number(float(numpy.median(seconds)), "s"),
                      "low": number(float(low), "s"), "high": number(float(high), "s")})
    return found


def show(table: Table, comparison: dict[str, Any]) -> dict[str, Any]:
    """A table as the template wants it: texts only."""
    groups = []
    for group, title in GROUPS.items():
        rows = [{"name": r["name"],
                 "cells": [{"text": cell_text(c, r["unit"]), "ratio": ratio_text(c), "verdict": (c or {}).get("verdict") or ""}
                           for c in r["cells"]]}
                for r in table["rows"] if r["group"] == group]
        if rows:
            groups.append({"title": title, "rows": rows, "open": group != "vmstat"})
    changes = {
        kind: [f"{c['column']}: {c['row']}: {number(c['from'], c['unit'])} -> {number(c['to'], c['unit'])}"
               + (f" ({c['ratio']:.2f}x)" if c["ratio"] is not None else "")
               for c in table[kind] if c["group"] != "vmstat"]
        for kind in ("worse", "better")
    }
    samples = [c["samples"] for c in table["columns"]]
    note = ""
    if any(c["samples_varied"] for c in table["columns"]):
        note = ("Samples begin at different moments: their ranges say how much of a number is chance. "
                "\"~\": the ranges overlap.")
    elif max(samples) > 1 and table["clock"] == "virtual":
        note = ("All samples of a column are identical, host times apart: virtual time has no spread, by construction."
                if all(c["samples_identical"] for c in table["columns"])
                else "Samples in virtual time differ, which must not be: something of the host got in.")
    memory = "?" if table["mem_bytes"] is None else f"{table['mem_bytes'] >> 20} MiB"
    return {
        "title": f"{table['scenario']}: {table['workload']} on {table['disk'] or 'no disk'}",
        "subtitle": f"{memory} of memory, {table['lru']} LRU, page-cluster {table['page_cluster']}, {table['clock']} time",
        "columns": table["columns"], "differences": table["environment"]["differences"],
        "common": table["environment"]["common"], "groups": groups, "changes": changes, "note": note,
        "intervals": intervals(table, comparison),
        "plots": [p for p in (plot_seconds(table), plot_requests(table)) if p],
    }


def show_summary(summary: dict[str, Any]) -> dict[str, Any]:
    """One line a table: seconds of the steady pass, times the disk's limit, pages a request."""
    lines = []
    for line in summary["lines"]:
        cells = []
        for cell in line["cells"]:
            if cell is None or cell["seconds"] is None:
                cells.append({"text": "-", "verdict": "", "more": ""})
                continue
            times = "" if cell["times_limit"] is None else f" ({number(cell['times_limit'], 'x')}x)"
            pages = [f"{number(cell[f'pages_per_{way}_request'], 'pages')} pages a {way}" for way in ("read", "write")
                     if cell[f"pages_per_{way}_request"] is not None]
            cells.append({"text": f"{number(cell['seconds'], 's')} s{times}", "verdict": cell["seconds_verdict"] or "",
                          "more": ", ".join(pages)})
        lines.append({"name": f"{line['scenario']}, {line['disk'] or 'no disk'}, {line['lru']} LRU, page-cluster {line['page_cluster']}",
                      "cells": cells})
    return {"columns": summary["columns"], "lines": lines}


def write_atomic(path: Path, text: str) -> None:
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def load(path: Path) -> dict[str, Any]:
    try:
        comparison = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise Failure(f"{path}: no JSON: {e}") from e
    if not isinstance(comparison, dict) or comparison.get("schema") != SCHEMA:
        raise Failure(f"{path}: not a comparison of schema {SCHEMA}: make one with pageout-bench compare --format json")
    return comparison


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Draw report.html from a comparison.",
        epilog="example: pageout-bench compare results/bench --format json > c.json && scripts/report.py --comparison c.json --out r.html")
    parser.add_argument("--comparison", type=Path, required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--version", action="version",
                        version=f"report.py (pageout) {(TEMPLATES.parents[1] / 'VERSION').read_text().strip()}")
    args = parser.parse_args(argv)
    comparison = load(args.comparison)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    page = environment.get_template("report.html.j2").render(
        tables=[show(t, comparison) for t in comparison["tables"]], left_out=comparison["left_out"],
        summary=show_summary(comparison["summary"]))
    write_atomic(args.out, page)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Failure, OSError) as error:
        print(f"report.py: error: {error}", file=sys.stderr)
        sys.exit(1)
