"""What the facts mean, as findings. Pure; but for the skew of clocks, which is only told, times are compared for difference alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from loopwatch.check.facts import Facts, RightAnswer
from loopwatch.check.table import Finding, fine, found
from loopwatch.durations import render
from loopwatch.kube.resources import EVENTS, LEASE_NAMESPACE, MACHINE_POOLS
from loopwatch.pools.derive.instants import same_instant
from loopwatch.pools.model import (
    HOLDER_ANNOTATION,
    LIFECYCLE_MANAGER,
    Lease,
    MachinePool,
    UnknownMachinePool,
    is_lifecycle_unknown,
    ready_status,
)
from loopwatch.settings.model import CheckSettings, Mode, Subject
from loopwatch.text import clean_message

SHOWN: Final = 5
"""Names in a sentence; all of them are in the finding's `objects`."""
SKEW_SECONDS: Final = 10.0
DEFAULT_LEASE_SECONDS: Final = 40
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


def judge(settings: CheckSettings, facts: Facts, options: str) -> list[Finding]:
    """Every finding; `options` are those of the `loopwatch rbac` that grants what is asked for."""
    if not facts.api_version:
        return [found("api-unreachable", f"The API server does not answer: {facts.api_error}")]
    return [
        *_api(facts),
        *_namespace(facts),
        *_rights(facts, options),
        *_clocks(facts),
        *(_objects(settings, facts) if _read(facts) else ()),
        *_runtime(settings, facts),
    ]


def _api(facts: Facts) -> Iterator[Finding]:
    yield fine("api-unreachable", f"The API server answers: {facts.api_version}.")
    trouble, version = facts.group_trouble, MACHINE_POOLS.version
    if trouble is not None and trouble.status != _NOT_FOUND:
        yield found("pools-unavailable", f"The API of machinepools answers {trouble.status or 'nothing'}: {trouble.text}")
        return
    if trouble is not None or version not in facts.group_versions:
        others = f"; it serves {', '.join(facts.group_versions)}" if facts.group_versions else ""
        yield found("pools-not-served", f"The API server does not serve {MACHINE_POOLS.group}/{version}{others}.")
        return
    before, after = facts.before, facts.after
    troubles = {"pools": before.pools_trouble or after.pools_trouble, "leases": before.leases_trouble or after.leases_trouble}
    for what, unread in troubles.items():
        if unread is not None and what == "pools" and unread.status == _NOT_FOUND:
            yield found("pools-not-served", f"{MACHINE_POOLS.api_version} is served, without machinepools.")
        elif unread is not None:
            yield found(f"{what}-unavailable", f"The {what} of IronCore can't be read: {unread.text}")
        elif what == "pools":
            yield fine("pools-not-served", f"{MACHINE_POOLS.api_version} is served; {len(facts.after.pools)} pools were read.")


def _namespace(facts: Facts) -> Iterator[Finding]:
    if facts.namespace_exists is None:
        yield found("namespace-unknown", f"Whether the namespace {LEASE_NAMESPACE} exists may not be asked by this identity.")
    elif facts.namespace_exists:
        yield fine("lease-namespace-missing", f"The namespace {LEASE_NAMESPACE} exists.")
    else:
        yield found("lease-namespace-missing", f"The namespace {LEASE_NAMESPACE} does not exist.")


def _rights(facts: Facts, options: str) -> Iterator[Finding]:
    unknown = [answer for answer in facts.rights if answer.allowed is None]
    missing = [answer for answer in facts.rights if answer.allowed is False]
    for answer in missing:
        event = answer.right.resource == EVENTS
        yield found("events-right-missing" if event else "right-missing", _right_words(answer), (answer.right.key,), options=options)
    if unknown:
        yield found("rights-unknown", f"{len(unknown)} rights could not be asked about: {unknown[0].error}", _keys(unknown))
    elif not missing:
        yield fine("right-missing", f"All {len(facts.rights)} rights that it needs are there.")


def _keys(answers: Iterable[RightAnswer]) -> tuple[str, ...]:
    return tuple(answer.right.key for answer in answers)


def _right_words(answer: RightAnswer) -> str:
    right = answer.right
    group = f" ({right.resource.group})" if right.resource and right.resource.group else ""
    where = f"namespace {answer.namespace}" if answer.namespace else "the whole cluster"
    return f"No right to {right.verb} {right.what}{group} in {where}: {right.why}."


def _clocks(facts: Facts) -> Iterator[Finding]:
    skew = facts.skew_seconds
    if skew is None:
        return
    words = f"The API server's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this host's."
    if abs(skew) > SKEW_SECONDS:
        yield found("clock-skew", words)
    else:
        yield fine("clock-skew", "The clocks of this host and of the API server agree, to a second or so.")


def _read(facts: Facts) -> bool:
    return not any((facts.before.pools_trouble, facts.before.leases_trouble, facts.after.pools_trouble, facts.after.leases_trouble))


def _objects(settings: CheckSettings, facts: Facts) -> Iterator[Finding]:
    yield from _broken(facts)
    if settings.subject is Subject.SIDECAR and settings.machine_pool_name not in {*facts.after.pools, *_broken_names(facts)}:
        yield found("pool-missing", f"There is no MachinePool {settings.machine_pool_name}.")
    yield from _orphans(facts)
    yield from _reporters(settings, facts)
    yield from _marked_without_lease(facts)
    yield from _elsewhere(facts)
    if settings.subject is Subject.CONTROLLER:
        yield from _would_be_marked(settings, facts)
        yield from _grace(settings, facts)
    yield from _silent_but_ready(facts)


def _broken_names(facts: Facts) -> set[str]:
    return {name for plural, name in facts.after.undecodable if plural == MACHINE_POOLS.plural}


def _broken(facts: Facts) -> Iterator[Finding]:
    for plural, name in facts.after.undecodable:
        yield found("undecodable", f"{plural} {clean_message(name, 256)} can't be decoded.", (name,), resource=plural, name=name)


def _orphans(facts: Facts) -> Iterator[Finding]:
    names = sorted(facts.after.leases.keys() - facts.after.pools.keys() - _broken_names(facts))
    if names:
        yield found("orphaned-lease", f"{_many(names, 'Lease')} of no pool: {_listed(names)}.", tuple(names), name=names[0])


def _reporters(settings: CheckSettings, facts: Facts) -> Iterator[Finding]:
    names = [name for name, lease in facts.after.leases.items() if _renewed(facts, name) and not _by_sidecar(lease)]
    if not names:
        return
    words = f"{_many(names, 'pool')} with a machinepoollet that renewed its Lease while it was watched: {_listed(names)}."
    if settings.subject is Subject.SIDECAR and settings.mode is Mode.REPORT:
        yield found("two-reporters", words, tuple(names), name=names[0])
    else:
        yield found("machinepoollet-reports", words, tuple(names))


def _marked_without_lease(facts: Facts) -> Iterator[Finding]:
    names = [name for name, pool in facts.after.pools.items() if is_lifecycle_unknown(pool.ready) and name not in _leased(facts)]
    if names:
        words = f"{_many(names, 'pool')} Unknown by a lifecycle controller, without a Lease: {_listed(names)}."
        yield found("poollets-without-heartbeat", words, tuple(names), name=names[0])


def _elsewhere(facts: Facts) -> Iterator[Finding]:
    writers = {name: _others(pool) for name, pool in facts.after.pools.items()}
    names = [name for name, others in writers.items() if others]
    managers = sorted({other for others in writers.values() for other in others})
    if names:
        words = f"{_many(names, 'pool')} marked Unknown by {_listed([clean_message(name, 128) for name in managers])}: {_listed(names)}."
        yield found("lifecycle-elsewhere", words, tuple(names))
    elif facts.manager_lease is not None and facts.manager_lease.moved:
        holder = clean_message(facts.manager_lease.holder, 128)
        yield found(
            "lifecycle-elsewhere", f"ironcore-controller-manager runs ({holder}); from v0.5.0 on it marks silent pools, unless told not to."
        )


def _others(pool: MachinePool) -> tuple[str, ...]:
    """Who turned Ready to Unknown, as far as the owner of the list tells, where it was not us."""
    if not isinstance(pool, UnknownMachinePool) or LIFECYCLE_MANAGER in pool.condition_writers:
        return ()
    return pool.condition_writers


def _would_be_marked(settings: CheckSettings, facts: Facts) -> Iterator[Finding]:
    pools, leased = facts.after.pools, _leased(facts)
    known = [name for name, pool in pools.items() if ready_status(pool.ready) != "unknown"]
    silent = [name for name in known if name in leased and name in facts.before.pools and not _progressed(facts, name)]
    if silent:
        watched = render(round(facts.watched_seconds))
        words = f"{_many(silent, 'pool')} silent for the {watched} of this check: {_listed(silent)}."
        grace = render(settings.machine_pool_lifecycle_grace_period_seconds)
        yield found("pool-silent", words, tuple(silent), grace=grace, name=silent[0])
    never = [name for name in known if name not in leased and pools[name].ready is None]
    if never and settings.mark_never_reported:
        yield found("never-reported", f"{_many(never, 'pool')} without Lease and Ready would be marked: {_listed(never)}.", tuple(never))
    elif never:
        words = f"{_many(never, 'pool')} without Lease and Ready, not to be marked: {_listed(never)}."
        yield found("never-reported-left", words, tuple(never), name=never[0])
    if not silent and not never:
        yield fine(
            "pool-silent", f"No pool would be marked: each of {len(pools)} made progress while it was watched, or is Unknown already."
        )


def _grace(settings: CheckSettings, facts: Facts) -> Iterator[Finding]:
    grace = settings.machine_pool_lifecycle_grace_period_seconds
    longest = max((lease.duration_seconds or 0 for lease in facts.after.leases.values()), default=0)
    if longest == 0:
        return
    if grace > longest:
        yield fine("grace-too-short", f"The grace period, {render(grace)}, is above the largest lease duration, {render(longest)}.")
        return
    names = sorted(name for name, lease in facts.after.leases.items() if (lease.duration_seconds or 0) >= grace)
    words = f"The grace period, {render(grace)}, is not above the lease duration of {_many(names, 'pool')}: {_listed(names)}."
    yield found("grace-too-short", words, tuple(names), grace=render(longest + 10))


def _silent_but_ready(facts: Facts) -> Iterator[Finding]:
    """Only where the watch was long enough to know."""
    names = [
        name
        for name, lease in facts.after.leases.items()
        if name in facts.after.pools
        and name in facts.before.pools
        and ready_status(facts.after.pools[name].ready) == "true"
        and facts.watched_seconds > (lease.duration_seconds or DEFAULT_LEASE_SECONDS)
        and not _progressed(facts, name)
    ]
    if names:
        yield found("silent-but-ready", f"{_many(names, 'pool')} Ready=True with a Lease that stood still: {_listed(names)}.", tuple(names))


def _runtime(settings: CheckSettings, facts: Facts) -> Iterator[Finding]:
    name = settings.machine_pool_name or "NAME"
    if facts.runtime is None:
        if facts.runtime_wanted:
            yield found("runtime-not-found", "No machine runtime was found here.", name=name)
    elif facts.runtime.succeeded:
        yield fine("runtime-silent", f"The machine runtime answers Status, with {len(facts.runtime.machine_classes)} machine classes.")
    else:
        yield found("runtime-silent", f"The machine runtime does not answer Status: {facts.runtime.message}", name=name)


def _leased(facts: Facts) -> set[str]:
    return {*facts.after.leases, *(name for plural, name in facts.after.undecodable if plural != MACHINE_POOLS.plural)}


def _renewed(facts: Facts, name: str) -> bool:
    before, after = facts.before.leases.get(name), facts.after.leases.get(name)
    return before is not None and after is not None and not same_instant(before.renew_time, after.renew_time)


def _progressed(facts: Facts, name: str) -> bool:
    """As the lifecycle sees it, nearly: a Lease that came, went or moved, or another Ready."""
    before, after = facts.before, facts.after
    if (name in before.leases) != (name in after.leases) or _renewed(facts, name):
        return True
    was, now = before.pools[name].ready, after.pools[name].ready
    if was is None or now is None:
        return was is not now
    return (was.status, was.observed_generation) != (now.status, now.observed_generation)


def _by_sidecar(lease: Lease) -> bool:
    return bool(lease.holder) and (lease.metadata.annotations or {}).get(HOLDER_ANNOTATION) == lease.holder


def _many(names: list[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
