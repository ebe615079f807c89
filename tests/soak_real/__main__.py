"""`python -m tests.soak_real --seeds N [--base M]`: N seeds on one real kube-apiserver, one after the other; exit 1 when any fails."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import structlog

from loopwatch.kube.resources import LEASES, MACHINE_POOLS
from loopwatch.sandbox.runtime.behaviours import Error, Hang, Ok
from loopwatch.settings.model import Mode
from tests.acceptance.api import Kubectl
from tests.real_servers.apiserver import ApiServer
from tests.soak_real.cast import GRACE_SECONDS, LEASE_SECONDS, TIMES, Cast, Player
from tests.soak_real.witness import Witness, until_all_is_seen

PLAY_SECONDS: Final = 20.0
SETTLE_SECONDS: Final = GRACE_SECONDS + LEASE_SECONDS + 5.0
"""What the issue gives a dead pool to be Unknown, once a controller leads and sees."""
HALF_OPEN_SECONDS: Final = TIMES.read_seconds + 2.0
"""A watch whose connection froze is found by its read timeout; till then its controller's page may lie behind."""
LONGEST_MISFORTUNE_SECONDS: Final = 8.0
FOREIGN: Final = {"type": "Foreign", "status": "True", "reason": "Kept", "message": "somebody else's", "observedGeneration": 1}


class Seed:
    """One seed: what happens is drawn from it alone, though not when exactly."""

    def __init__(self, number: int, cast: Cast, kubectl: Kubectl) -> None:
        self.story: list[str] = []
        self.living: set[str] = set()
        self._random = random.Random(number)
        self._cast, self._kubectl = cast, kubectl
        self._began = time.monotonic()

    async def play(self) -> None:
        """Misfortunes for a while; then all is healed, but the dead stay dead."""
        for player in self._cast.players:
            player.live()
        self.living = set(self._cast.sidecars)
        await asyncio.sleep(3.0)
        async with asyncio.TaskGroup() as under_way:
            while time.monotonic() - self._began < PLAY_SECONDS:
                misfortune = self._random.choice(self._misfortunes())
                under_way.create_task(misfortune())
                await asyncio.sleep(self._random.uniform(0.5, 2.5))
        for player in self._cast.players:
            player.proxy.refuses, player.proxy.delay_seconds = False, 0.0
        for pool in sorted(self.living):
            self._cast.sidecars[pool].live()
            await self._cast.runtimes[pool].behave(Ok())
        for controller in self._cast.controllers:
            controller.live()
        self._tell("all is healed")

    def _misfortunes(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [
            self._freeze,
            self._cut,
            self._partition,
            self._slow,
            self._restart_a_controller,
            self._restart_a_sidecar,
            self._kill_for_good,
            self._break_a_runtime,
            self._make_a_pool_again,
            self._delete_a_lease,
        ]

    async def _freeze(self) -> None:
        player = self._anybody()
        self._tell(f"the connections of {player.name} freeze")
        player.proxy.freeze()

    async def _cut(self) -> None:
        player = self._anybody()
        self._tell(f"the connections of {player.name} are cut")
        player.proxy.cut()

    async def _partition(self) -> None:
        player, seconds = self._anybody(), self._seconds()
        self._tell(f"{player.name} reaches nobody for {seconds:.1f} s")
        player.proxy.refuses = True
        player.proxy.cut()
        await asyncio.sleep(seconds)
        player.proxy.refuses = False

    async def _slow(self) -> None:
        player, seconds = self._anybody(), self._seconds()
        self._tell(f"the network of {player.name} is slow for {seconds:.1f} s")
        player.proxy.delay_seconds = self._random.uniform(0.05, 0.4)
        await asyncio.sleep(seconds)
        player.proxy.delay_seconds = 0.0

    async def _restart_a_controller(self) -> None:
        await self._restart(self._random.choice(self._cast.controllers))

    async def _restart_a_sidecar(self) -> None:
        await self._restart(self._cast.sidecars[self._random.choice(sorted(self.living))])

    async def _restart(self, player: Player) -> None:
        seconds = self._seconds()
        self._tell(f"{player.name} dies for {seconds:.1f} s")
        await player.die()
        await asyncio.sleep(seconds)
        if player.name.removeprefix("sidecar-") in self.living or player in self._cast.controllers:
            player.live()

    async def _kill_for_good(self) -> None:
        if len(self.living) > 1:
            pool = self._random.choice(sorted(self.living))
            self._tell(f"the sidecar of {pool} dies for good")
            self.living.discard(pool)
            await self._cast.sidecars[pool].die()

    async def _break_a_runtime(self) -> None:
        pool, seconds = self._random.choice(sorted(self.living)), self._seconds()
        self._tell(f"the runtime of {pool} fails for {seconds:.1f} s")
        await self._cast.runtimes[pool].behave(Error() if self._random.random() < 0.5 else Hang())
        await asyncio.sleep(seconds)
        await self._cast.runtimes[pool].behave(Ok())

    async def _make_a_pool_again(self) -> None:
        pool = self._random.choice(sorted(self._cast.sidecars))
        self._tell(f"{pool} is deleted and made again")
        await self._kubectl.delete(MACHINE_POOLS, pool)
        await asyncio.sleep(self._random.uniform(0.0, 2.0))
        await self._kubectl.send("POST", MACHINE_POOLS.collection_path(), manifest(pool), expect=(201, 409))
        await add_foreign(self._kubectl, pool)

    async def _delete_a_lease(self) -> None:
        pool = self._random.choice(sorted(self._cast.sidecars))
        self._tell(f"the lease of {pool} is deleted")
        await self._kubectl.delete(LEASES, pool)

    def _anybody(self) -> Player:
        return self._random.choice(self._cast.players)

    def _seconds(self) -> float:
        return self._random.uniform(0.5, LONGEST_MISFORTUNE_SECONDS)

    def _tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:7.2f}  {what}")


def manifest(pool: str) -> dict[str, object]:
    """A MachinePool."""
    return {
        "apiVersion": MACHINE_POOLS.api_version,
        "kind": "MachinePool",
        "metadata": {"name": pool},
        "spec": {"providerID": f"soak://{pool}"},
    }


async def add_foreign(kubectl: Kubectl, pool: str) -> None:
    """Somebody else's condition, added without loss: the list is atomic, so it is read and written with its resourceVersion."""
    while True:
        found = await kubectl.get(MACHINE_POOLS, pool)
        conditions = [entry for entry in found.get("status", {}).get("conditions", []) if entry["type"] != "Foreign"]
        patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "status": {"conditions": [*conditions, FOREIGN]}}
        answer = await kubectl.send("PATCH", f"{MACHINE_POOLS.collection_path()}/{pool}/status", patch, expect=(200, 409))
        if answer["kind"] == "MachinePool":
            return


async def play(number: int, kubeconfig: Path, folder: Path) -> tuple[list[str], list[str], int]:
    """What was broken, the story, and how many marks were seen."""
    async with contextlib.AsyncExitStack() as stack:
        cast = Cast(kubeconfig, folder, stack)
        kubectl = Kubectl(await cast.connect("witness"), cast.clock)
        await kubectl.ensure_namespaces()
        await kubectl.clear()
        looking = asyncio.create_task(kubectl.look_on())
        await kubectl.eyes_open()
        drawn = random.Random(f"cast of {number}")
        for _ in range(2):
            await cast.add_controller(f"soak-{number}")
        for pool in [f"pool-{each}" for each in range(drawn.randint(3, 5))]:
            await kubectl.create_pool(pool)
            await add_foreign(kubectl, pool)
            await cast.add_sidecar(pool, drawn.choice([Mode.REPORT, Mode.AUTO]))
        witness, seed = Witness(kubectl, cast), Seed(number, cast, kubectl)
        watching = asyncio.create_task(witness.look())
        await seed.play()
        wanted = {pool: "True" if pool in seed.living else "Unknown" for pool in cast.sidecars}
        await until_all_is_seen(kubectl, wanted, SETTLE_SECONDS)
        await witness.until_pages_agree(HALF_OPEN_SECONDS)
        watching.cancel()
        witness.judge_the_end(seed.living)
        for player in cast.players:
            await player.die()
        looking.cancel()
        await asyncio.gather(looking, watching, return_exceptions=True)
        return witness.broken, seed.story, witness.marks


def main() -> int:
    """Play them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak_real", description="Play seeds of misfortune on a real kube-apiserver.")
    parser.add_argument("--seeds", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--base", type=int, default=1, help="the first (default 1)")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    failed = []
    with tempfile.TemporaryDirectory(prefix="loopwatch-soak-") as folder, ApiServer(Path(folder) / "server", audit=False) as server:
        for number in range(chosen.base, chosen.base + chosen.seeds):
            place = Path(folder) / str(number)
            place.mkdir()
            broken, story, marks = asyncio.run(play(number, server.kubeconfig, place))
            say(f"seed {number}: {marks} marks, {len(story)} misfortunes, {'FAILED' if broken else 'passed'}")
            if broken:
                failed.append(number)
                say("\n".join([*story, *broken, f"again: make soak-real SEEDS=1 SEED_BASE={number}"]))
    say(f"{chosen.seeds - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
