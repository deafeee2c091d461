# SPDX-License-Identifier: GPL-2.0-only
"""The strict reader of KUnit results and what scripts/kunit.py makes of a log.

tests/data/kunit/NAME.log are logs of real guests, one fault each; NAME.json says
what must be found in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import kunit  # noqa: E402
import kunit_ktap  # noqa: E402
from pageout.common import Failure  # noqa: E402

DATA = ROOT / "tests/data/kunit"

GOOD = """\
KTAP version 1
1..2
    KTAP version 1
    # Subtest: first
    # module: kunit_first
    1..2
    ok 1 a
    ok 2 b # SKIP no such device
# first: pass:1 fail:0 skip:1 total:2
# Totals: pass:1 fail:0 skip:1 total:2
ok 1 first
    KTAP version 1
    # Subtest: second
    1..1
        KTAP version 1
        # Subtest: each
        ok 1 1
        ok 2 2
    # each: pass:2 fail:0 skip:0 total:2
    ok 1 each
ok 2 second
"""


def read(text: str) -> kunit_ktap.Report:
    return kunit_ktap.parse(text.splitlines())


@pytest.mark.parametrize("log", sorted(DATA.glob("*.log")), ids=lambda p: p.stem)
def test_captured_logs(log: Path) -> None:
    want = json.loads(log.with_suffix(".json").read_text())
    outcome = kunit.Outcome("guest", "base", log)
    lines = log.read_text().splitlines()
    kunit.judge(outcome, lines, [])
    kunit.judge_markers(outcome, lines, ["kunit", f"kunit_{log.stem}"])
    assert [outcome.passed, outcome.failed, outcome.skipped] == want["counts"]
    assert outcome.ok == want["ok"]
    assert len(outcome.errors) == len(want["errors"]), outcome.errors
    for error, part in zip(outcome.errors, want["errors"]):
        assert part in error


def test_good() -> None:
    report = read(GOOD)
    assert report.errors == []
    assert report.counts() == (3, 0, 1)
    assert not report.failed()
    names = [name for suite in report.suites for name, _ in suite.leaves()]
    assert names == ["first/a", "first/b", "second/each/1", "second/each/2"]
    assert report.suites[0].children[1].skipped == "no such device"


def test_time_stamps_and_other_lines() -> None:
    stamped = "".join(f"[    {n}.123456] {line}\n[    {n}.223456] random: crng init done\n"
                      for n, line in enumerate(GOOD.splitlines()))
    assert read(stamped).counts() == (3, 0, 1)
    assert read(stamped).errors == []


def test_several_documents() -> None:
    assert read(GOOD + GOOD).counts() == (6, 0, 2)


@pytest.mark.parametrize(("change", "part"), [
    (lambda t: t.replace("1..2\n    KTAP", "    KTAP"), "run of suites: no plan"),
    (lambda t: t.replace("    1..2\n", ""), "suite first: no plan"),
    (lambda t: t.replace("    ok 2 b # SKIP no such device\n", ""), "suite first: 1 results where 2 were planned"),
    (lambda t: t.replace("    1..2\n", "    1..1\n"), "more results than the 1 planned"),
    (lambda t: t.replace("    ok 2 b", "    ok 3 b"), "result 3 where 2 should come"),
    (lambda t: t.replace("    ok 1 a", "    not ok 1 a"), "first is ok though something in it is not"),
    (lambda t: t.replace("        ok 2 2", "        not ok 2 2"), "each is ok though something in it is not"),
    (lambda t: t.replace("ok 1 first", "ok 1 other"), "a result of other ends"),
    (lambda t: t[:t.index("ok 2 second")], "1 of 2 results, when the log ended"),
    (lambda t: t[:t.index("    ok 1 each")], "suite second: 0 of 1 results"),
    (lambda t: t.replace("KTAP version 1\n1..2", "KTAP version 2\n1..2"), "version 2 is not one that is known"),
    (lambda t: t.replace("        ok 1 1\n        ok 2 2\n", ""), "case each: no results at all"),
    (lambda t: t + "BUG: KASAN: use-after-free in f\n", "the kernel said: BUG: KASAN"),
    (lambda t: t + "WARNING: possible circular locking dependency detected\n", "the kernel said: WARNING: possible"),
    (lambda t: "", "no KTAP at all"),
    (lambda t: "Booting\nDone\n", "no KTAP at all"),
    (lambda t: "KTAP version 1\n1..1\nkunit: disabled\n", "0 of 1 results"),
    (lambda t: "KTAP version 1\n1..0\n", "run of suites: no results at all"),
])
def test_what_is_not_said_is_not_passed(change, part: str) -> None:
    report = read(change(GOOD))
    assert report.failed()
    assert any(part in e for e in report.errors), report.errors


def test_a_suite_that_did_not_run() -> None:
    outcome = kunit.Outcome("guest", "base", DATA)
    kunit.judge(outcome, GOOD.splitlines(), [kunit.Suite("third_test.c", ["third"], [])])
    assert outcome.errors == ["suite third of kunit/third_test.c did not run"]
    assert not outcome.ok


def test_nothing_passed_is_not_ok() -> None:
    skipped = "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..1\n    ok 1 a # SKIP\nok 1 s # SKIP\n"
    outcome = kunit.Outcome("guest", "base", DATA)
    kunit.judge(outcome, skipped.splitlines(), [])
    assert (outcome.passed, outcome.failed, outcome.skipped) == (0, 0, 1)
    assert not outcome.ok


@pytest.mark.parametrize(("log", "part"), [
    ("", "did not come up"),
    ("pageout-kunit: begin kunit\npageout-kunit: end kunit 0\n", "kunit_x: was not tried"),
    ("pageout-kunit: begin kunit\npageout-kunit: end kunit 0\npageout-kunit: begin kunit_x\n", "ended while it ran"),
    ("pageout-kunit: begin kunit\npageout-kunit: end kunit 0\npageout-kunit: begin kunit_x\npageout-kunit: end kunit_x 1\n",
     "could not be loaded"),
    ("pageout-kunit: begin kunit\npageout-kunit: end kunit 0\npageout-kunit: begin kunit_x\npageout-kunit: end kunit_x 0\n",
     "before it said that it was done"),
])
def test_markers(log: str, part: str) -> None:
    outcome = kunit.Outcome("guest", "base", DATA)
    kunit.judge_markers(outcome, log.splitlines(), ["kunit", "kunit_x"])
    assert len(outcome.errors) == 1
    assert part in outcome.errors[0]


def test_suites_and_their_needs(tmp_path: Path) -> None:
    (tmp_path / "one_test.c").write_text(
        '/*\n * Needs: mm/pageout.h pageout_window\n * Needs: mm/pageout.c\n */\n#include "pageout.h"\n'
        'static struct kunit_suite one = {\n\t.name = "one",\n};\n')
    (suite,) = kunit.find_suites(tmp_path)
    assert suite.module == "kunit_one"
    assert suite.names == ["one"]
    assert suite.needs == [("mm/pageout.h", "pageout_window"), ("mm/pageout.c", ""), ("mm/pageout.h", "")]


def test_needs_are_looked_up_in_the_step(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t", *args], check=True,
                              capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/pageout.h").write_text("int pageout_window_start(void);\n")
    git("add", ".")
    git("commit", "-qm", "x")
    head = git("rev-parse", "HEAD")

    def unmet(*needs: tuple[str, str]) -> str:
        return kunit.unmet(kunit.Suite("s_test.c", ["s"], list(needs)), tmp_path / ".git", head)

    assert unmet(("mm/pageout.h", "")) == ""
    assert unmet(("mm/pageout.h", "pageout_window_start")) == ""
    assert unmet(("mm/pageout.h", "pageout_window")) == "has no pageout_window in mm/pageout.h"
    assert unmet(("mm/pageout.c", "")) == "has no mm/pageout.c"


def test_a_test_without_a_suite_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one_test.c").write_text("int x;\n")
    with pytest.raises(Failure, match="one_test.c: no struct kunit_suite"):
        kunit.find_suites(tmp_path)
    with pytest.raises(Failure, match="no \\*_test.c"):
        kunit.find_suites(tmp_path / "mm")


def test_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    archive = kunit.cpio({"bin": (0o040755, b""), "bin/a": (0o100755, b"hello"), "b": (0o100644, b"")})
    listed = subprocess.run(["cpio", "-t", "--quiet"], input=archive, capture_output=True, check=True).stdout
    assert listed.decode().split() == ["bin", "bin/a", "b"]
    subprocess.run(["cpio", "-i", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "bin/a").read_bytes() == b"hello"
    assert (tmp_path / "bin/a").stat().st_mode & 0o111


@pytest.mark.parametrize(("argv", "status", "part"), [
    (["--way", "moon"], 2, "invalid choice"),
    (["--step", "99", "--way", "uml"], 1, "there is no step '99'"),
    (["--linux", "/nowhere"], 1, "/nowhere"),
])
def test_usage(argv: list[str], status: int, part: str, tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, str(ROOT / "scripts/kunit.py"), "--out", str(tmp_path), *argv],
                         capture_output=True, text=True, check=False)
    assert ran.returncode == status
    assert part in ran.stderr


def test_list() -> None:
    ran = subprocess.run([sys.executable, str(ROOT / "scripts/kunit.py"), "--list"], capture_output=True, text=True,
                         check=True)
    assert "simdisk_model_test.c: simdisk_model" in ran.stdout
