"""`python -m tests.faults`: many seeds of the fault suite, or one again, or one cut down to what it takes.

soak --seeds N [--base M]   play N seeds from M on, in as many processes as there are cores; exit 1 when any fails
replay SEED                 play one seed and print all that happened
shrink SEED                 drop misfortunes as long as the same invariant still fails, and print what is left
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

from tests.faults.plan import Plan, make
from tests.faults.scenario import Outcome, play
from tests.faults.shrinking import shrunk

LAST_LINES = 40
SEEDS_A_LINE = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Play seeds of the fault suite.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("soak", "play many seeds on the sandbox"), ("soak-real", "play seeds on a real kube-apiserver")):
        soaking = commands.add_parser(name, help=words)
        soaking.add_argument("--seeds", type=_count, default=100, help="how many (default 100)")
        soaking.add_argument("--base", type=int, default=1, help="the first (default 1)")
    for name, words in (("replay", "play one and print all that happened"), ("shrink", "find the fewest misfortunes that still fail")):
        commands.add_parser(name, help=words).add_argument("seed", type=int)
    chosen = parser.parse_args(arguments)
    if chosen.command in ("soak", "soak-real"):
        seeds = range(chosen.base, chosen.base + chosen.seeds)
        return soak(seeds) if chosen.command == "soak" else asyncio.run(soak_real(seeds))
    plan = make(str(chosen.seed))
    outcome = shrunk(plan) if chosen.command == "shrink" else play(plan)
    _print(_told(outcome.plan), *outcome.journal.lines(), str(outcome.failure or "passed"))
    return int(outcome.failure is not None)


def soak(seeds: Sequence[int]) -> int:
    """Play them all on the sandbox; 1 where any fails."""
    failed = []
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(seeds))) as pool:
        for number, (seed, report) in enumerate(pool.imap(_report, seeds), 1):
            if report:
                failed.append(seed)
                _print(report, f"seed {seed} failed; again: make soak SEEDS=1 SEED_BASE={seed}", "")
            if number % SEEDS_A_LINE == 0:
                _print(f"{number} of {len(seeds)} played")
    return _summed_up(seeds, failed)


async def soak_real(seeds: Sequence[int]) -> int:
    """Play them one after the other on a real server; 1 where any fails."""
    from tests.faults.real.play import stage  # what it stands on is not built on every machine

    failed = []
    async with stage() as real:
        for seed in seeds:
            began = time.monotonic()
            outcome = await real.play(make(str(seed), real=True))
            if outcome.failure is not None:
                failed.append(seed)
                _print(story_of(outcome), f"seed {seed} failed; again: make soak-real SEEDS=1 SEED_BASE={seed}", "")
            else:
                _print(f"seed {seed} passed in {time.monotonic() - began:.0f} s: {outcome.told}")
    return _summed_up(seeds, failed)


def _summed_up(seeds: Sequence[int], failed: list[int]) -> int:
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
