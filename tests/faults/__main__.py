"""`python -m tests.faults`: many seeds of the fault suite, or one again, or one cut down to what it takes.

soak --seeds N [--base M]   play N seeds from M on, in as many processes as there are cores; exit 1 when any fails
replay SEED                 play one seed and print all that happened
shrink SEED                 drop misfortunes as long as the same invariant still fails, and print what is left
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence

from tests.faults.plan import Plan, make
from tests.faults.scenario import Outcome, play
from tests.faults.shrinking import shrunk

LAST_LINES = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Play seeds of the fault suite on the sandbox.")
    commands = parser.add_subparsers(dest="command", required=True)
    soak_parser = commands.add_parser("soak", help="play many seeds")
    soak_parser.add_argument("--seeds", type=_count, default=100, help="how many (default 100)")
    soak_parser.add_argument("--base", type=int, default=1, help="the first (default 1)")
    for name, words in (("replay", "play one and print all that happened"), ("shrink", "find the fewest misfortunes that still fail")):
        commands.add_parser(name, help=words).add_argument("seed", type=int)
    chosen = parser.parse_args(arguments)
    if chosen.command == "soak":
        return soak(range(chosen.base, chosen.base + chosen.seeds))
    plan = make(str(chosen.seed))
    outcome = shrunk(plan) if chosen.command == "shrink" else play(plan)
    _print(_told(outcome.plan), *outcome.journal.lines(), str(outcome.failure or "passed"))
    return int(outcome.failure is not None)


def soak(seeds: Sequence[int]) -> int:
    """Play them all; 1 where any fails."""
    failed = []
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(seeds))) as pool:
        for number, (seed, report) in enumerate(pool.imap(_report, seeds), 1):
            if report:
                failed.append(seed)
                _print(report, f"seed {seed} failed; again: make soak SEEDS=1 SEED_BASE={seed}", "")
            if number % 50 == 0:
                _print(f"{number} of {len(seeds)} played")
    _print(f"{len(seeds) - len(failed)} passed, {len(failed)} failed" + (f": seeds {', '.join(map(str, failed))}" if failed else ""))
    return int(bool(failed))


def _report(seed: int) -> tuple[int, str]:
    """What there is to say of a seed: nothing where it passed."""
    outcome = play(make(str(seed)))
    return seed, "" if outcome.failure is None else story_of(outcome)


def story_of(outcome: Outcome) -> str:
    """A failure as it is printed: who was there, the last events before it, what broke."""
    return "\n".join([_told(outcome.plan), "the last events:", *outcome.journal.lines(LAST_LINES), str(outcome.failure)])


def _told(plan: Plan) -> str:
    pods = [f"{pod.pool}: machinepoollet {pod.poollet}, sidecars {[mode.value for mode in pod.sidecars]}" for pod in plan.pods]
    head = (
        f"seed {plan.seed}: grace {plan.times.grace:g} s, {plan.controllers} controllers, --mark-never-reported {plan.mark_never_reported}"
    )
    return "\n".join([head, *pods, "misfortunes:", *map(str, plan.misfortunes)])


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: play 1 seed or more")
    return number


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
