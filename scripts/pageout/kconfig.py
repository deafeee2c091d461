# SPDX-License-Identifier: GPL-2.0-only
"""The test kernel's configuration: fragments merged by the kernel's own tool, and verified."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .common import ROOT, Failure, clean_env, run
from .source import Base

LINE = re.compile(r"^(?:CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set)$")
PROFILES = ROOT / "scripts" / "profiles"


@dataclass(frozen=True)
class Ask:
    """One line of a fragment; `value` is None for "is not set"."""

    symbol: str
    value: str | None
    where: str

    def line(self) -> str:
        return f"# CONFIG_{self.symbol} is not set" if self.value is None else f"CONFIG_{self.symbol}={self.value}"


@dataclass(frozen=True)
class Fragments:
    """What is asked for: always, and `optional` only of trees that know the symbol."""

    asked: tuple[Ask, ...]
    optional: tuple[Ask, ...]


def text(asked: tuple[Ask, ...]) -> str:
    """All that decides the configuration, apart from the tree."""
    return "".join(a.line() + "\n" for a in asked)


def read_fragment(path: Path) -> list[Ask]:
    try:
        text = path.read_text()
    except OSError as e:
        raise Failure(f"configuration fragment {path}: {e.strerror}") from e
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        m = LINE.match(line)
        if m:
            found.append(Ask(m[1] or m[3], None if m[3] or m[2] == "n" else m[2], f"{path.name}:{number}"))
        elif line and not line.startswith("#"):
            raise Failure(f"{path}:{number}: neither CONFIG_NAME=value nor '# CONFIG_NAME is not set': {line}")
    return found


def profile_fragment(name: str) -> Path:
    path = PROFILES / f"{name}.config"
    if not re.fullmatch(r"[\w-]+", name) or not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.config"))) or "none"
        raise Failure(f"there is no profile {name!r}; there are: {known}")
    return path


def make_words(profiles: list[str]) -> list[str]:
    """What the profiles want set for make, one `# Make: NAME=value` a line."""
    return [word for name in profiles for word in re.findall(r"^# Make: (\S+=\S*)$", profile_fragment(name).read_text(), re.M)]


def fragments(profiles: list[str], extra: list[Path]) -> Fragments:
    """The snippet, then the profiles, then the user's fragments; a later line replaces an earlier one."""
    paths = [ROOT / "Kconfig.snippet", *(profile_fragment(p) for p in profiles), *extra]
    asked: dict[str, Ask] = {}
    for path in paths:
        for ask in read_fragment(path):
            asked.pop(ask.symbol, None)
            asked[ask.symbol] = ask
    # A configuration that says something of an optional symbol has the last word.
    optional = [a for a in read_fragment(ROOT / "Kconfig.series") if a.symbol not in asked]
    return Fragments(tuple(asked.values()), tuple(optional))


def definition(base: Base, commit: str, symbol: str) -> str:
    """The Kconfig text that defines a symbol, "" where the tree has none."""
    found = run(["git", f"--git-dir={base.repo}", "grep", "-nE", "-A12", rf"^(menu)?config {symbol}$", commit, "--",
                 "*Kconfig*"], env=clean_env(), check=False)
    return found.stdout


def effective(base: Base, commit: str, wanted: Fragments) -> tuple[Ask, ...]:
    """What is asked of the tree of that commit: everything, less the optional symbols it does not know."""
    return (*wanted.asked, *(a for a in wanted.optional if definition(base, commit, a.symbol)))


def configure(tree: Path, base: Base, commit: str, asked: tuple[Ask, ...]) -> str:
    """Write tree/.config for the commit that is checked out there and return its text.

    An option asked for and not granted is an error that names it.
    """
    fragment, result = tree / ".config.asked", tree / ".config.new"
    fragment.write_text(text(asked))
    result.unlink(missing_ok=True)
    # allnoconfig with what is asked for on top: nothing else is switched on.
    run(["scripts/kconfig/merge_config.sh", "-n", fragment.name], cwd=tree,
        env=clean_env(KCONFIG_CONFIG=result.name))
    got = result.read_text()
    verify(base, commit, asked, got)
    old = tree / ".config"
    if not old.exists() or old.read_text() != got:
        result.replace(old)  # an equal one keeps its time, so that make need not look again
    else:
        result.unlink()
    return got


def verify(base: Base, commit: str, asked: tuple[Ask, ...], config: str) -> None:
    got: dict[str, str | None] = {}
    for line in config.splitlines():
        if m := LINE.match(line):
            got[m[1] or m[3]] = None if m[3] else m[2]
    bad = [a for a in asked if got.get(a.symbol) != a.value]
    if not bad:
        return
    lines = []
    for ask in bad:
        have = got.get(ask.symbol)
        granted = "is not set" if have is None else f"={have}"
        lines.append(f"  CONFIG_{ask.symbol}: asked for {'is not set' if ask.value is None else '=' + ask.value} "
                     f"({ask.where}), the result has {granted}")
        rule = definition(base, commit, ask.symbol)
        if not rule:
            lines.append("    this kernel has no such option")
        for m in re.finditer(r"\.?Kconfig\S*-\d+-\s+(depends on .*|select .*)$", rule, re.M):
            if m[1].startswith("depends"):
                lines.append(f"    {m[1]}")
    raise Failure(f"configuration not granted by Linux {base.version}:\n" + "\n".join(lines)
                  + "\n  remedy: ask for what it depends on too, or leave it out")
