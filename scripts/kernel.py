#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Kernel source, series and kernels of the bench; the formats are in docs/seams.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pageout import build, series, source  # noqa: E402
from pageout.common import ROOT, Failure, clean_env, explain_oserror, run, say  # noqa: E402

EXAMPLES = """examples:
  scripts/kernel.py steps
  scripts/kernel.py build --step base --step full
  scripts/kernel.py build --step 1 --linux ~/linux --config my.config --explain
  scripts/kernel.py series --linux ~/linux
  scripts/kernel.py checkout --step full /tmp/linux-full
"""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="kernel.py", description=__doc__, epilog=EXAMPLES,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--version", action="version", version=f"kernel.py (pageout) {(ROOT / 'VERSION').read_text().strip()}")
    sub = p.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        c = sub.add_parser(name, help=text, description=text)
        return c

    def tree(c: argparse.ArgumentParser) -> None:
        c.add_argument("--linux", metavar="DIR", help="a kernel tree of your own, read and never written "
                       "(default: LINUX, else Debian's package)")

    def config(c: argparse.ArgumentParser) -> None:
        tree(c)
        c.add_argument("--step", action="append", metavar="STEP", help="base, 3, full, control:NAME; may be repeated")
        c.add_argument("--config", action="append", default=[], type=Path, metavar="FRAGMENT",
                       help="more options, merged last")
        c.add_argument("--profile", action="append", default=[], metavar="NAME", help="options of scripts/profiles/NAME.config")

    command("steps", "the steps: controls, the base, and the base with the first k patches")
    c = command("source", "make the base kernel ready; where it is and what it is")
    tree(c)
    c = command("series", "apply the series (or up to a step) with git am onto a clean base")
    tree(c)
    c.add_argument("--step", action="append", metavar="STEP", help="default: all of the series and every control")
    c = command("checkout", "put a step's source into a new folder, with its history")
    tree(c)
    c.add_argument("--step", default="full", metavar="STEP")
    c.add_argument("dir", type=Path)
    c = command("key", "the key under which a step's kernel is kept, and what enters it")
    config(c)
    c = command("build", "build what is missing of a step's kernel, modules and initramfs")
    config(c)
    c.add_argument("--explain", "--dry-run", action="store_true", help="say what would be built and why; build nothing")
    c.add_argument("--no-initramfs", action="store_true", help="kernel and modules only")
    c.add_argument("--kunit", action="store_true", help="the KUnit suites and kunit.ko beside the bench's own modules")
    return p


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    out = lambda value: print(json.dumps(value), flush=True)  # noqa: E731
    if args.command == "steps":
        out({"steps": [{"name": s.name, "subject": s.subject} for s in series.all_steps()]})
        return 0
    base = source.base_of(args.linux)
    if args.command == "source":
        out({"repository": str(base.repo), "commit": base.commit, "tree": base.tree, "version": base.version,
             "origin": base.origin})
    elif args.command == "series":
        steps = [series.find_step(n, base.version) for n in args.step] if args.step else series.all_steps(base.version)
        for step in steps:
            commit = series.apply(base, step.patches)
            say(f"{step.name}: {step.subject}: {'applies' if step.patches else 'the base'}")
            out({"step": step.name, "subject": step.subject, "commit": commit, "repository": str(base.repo)})
    elif args.command == "checkout":
        step = series.find_step(args.step, base.version)
        commit = series.apply(base, step.patches)
        if args.dir.exists() and any(args.dir.iterdir()):
            raise Failure(f"{args.dir} exists and is not empty")
        run(["git", "clone", "-q", "--shared", "--no-checkout", str(base.repo), str(args.dir)], env=clean_env())
        run(["git", "checkout", "-q", "-B", "pageout", commit], cwd=args.dir, env=clean_env())
        run(["git", "tag", "-f", "base", base.commit], cwd=args.dir, env=clean_env())
        out({"dir": str(args.dir.resolve()), "commit": commit, "base": base.commit, "step": step.name})
    else:
        for name in args.step or ["base"]:
            req = build.Request(base, series.find_step(name, base.version), args.profile, args.config,
                                getattr(args, "kunit", False))
            if args.command == "key":
                out({"step": req.step.name, "key": req.key, "inputs": req.inputs})
            elif args.explain:
                out(build.explain(req))
            else:
                out(build.build(req, with_images=not args.no_initramfs))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as e:
        say(f"kernel.py: error: {e}")
        sys.exit(1)
    except OSError as e:
        say(f"kernel.py: error: {explain_oserror(e)}")
        sys.exit(1)
    except KeyboardInterrupt as e:
        signum = e.args[0] if e.args else signal.SIGINT
        say("kernel.py: interrupted; the same command goes on from here")
        sys.exit(128 + int(signum))
