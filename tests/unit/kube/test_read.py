from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from loopwatch.kube.errors import ApiError, StreamError
from loopwatch.kube.read import Reader
from loopwatch.kube.resources import LEASES, MACHINE_POOLS, ObjectKey
from loopwatch.kube.transport import CredentialsError, TransportTimeout
from tests.support.stepped import SteppedClock, stepped
from tests.unit.kube.fake_api import FakeApi, Fault, status_body

KEY = ObjectKey("", "pool-a")


def _reader(api: FakeApi, timeout_seconds: float = 10.0) -> Reader:
    return Reader(api, SteppedClock(), timeout_seconds=timeout_seconds)


async def _lines(reader: Reader, **changes: Any) -> list[bytes]:
    times = {"server_timeout_seconds": 60, "read_timeout_seconds": 90} | changes
    async with reader.watch(MACHINE_POOLS, resource_version="1", **times) as stream:
        return [line async for line in stream]


@stepped
async def test_get_gives_the_bytes_of_one_object() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=200, body=b' {"metadata": {"name": "pool-a"}}'))
    body = await _reader(api).get(MACHINE_POOLS, KEY, timeout_seconds=5)
    assert json.loads(body)["metadata"]["name"] == "pool-a"
    (request,) = api.requests
    assert (request.method, request.path, request.query) == ("GET", "/apis/compute.ironcore.dev/v1alpha1/machinepools/pool-a", ())
    assert request.headers["Accept"] == "application/json"


@stepped
async def test_get_may_ask_the_cache() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=200, body=b"{}"))
    await _reader(api).get(LEASES, ObjectKey("n", "l"), timeout_seconds=5, resource_version="0")
    assert api.requests[0].path == "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"
    assert api.requests[0].query == (("resourceVersion", "0"),)


@stepped
async def test_a_page_that_is_no_object_is_an_error_not_an_object() -> None:
    api = FakeApi()
    api.faults.extend([Fault(status=200, body=b"<html>Log in</html>"), Fault(status=200, body=b"<html>Log in</html>")])
    with pytest.raises(ApiError, match="Log in") as caught:
        await _reader(api).get(MACHINE_POOLS, KEY, timeout_seconds=5)
    assert caught.value.kind == "other"
    with pytest.raises(ApiError, match="no Status object"):
        await _reader(api).list_page(MACHINE_POOLS)


@stepped
async def test_a_list_comes_in_pages_that_hold_raw_items() -> None:
    api = FakeApi()
    for name in "abc":
        api.put(name)
    reader = _reader(api)
    first = await reader.list_page(MACHINE_POOLS, limit=2)
    assert [msgspec.json.decode(item)["metadata"]["name"] for item in first.items] == ["a", "b"]
    assert (first.resource_version, first.remaining) == ("103", 1)
    last = await reader.list_page(MACHINE_POOLS, limit=2, continue_token=first.continue_token, resource_version="7")
    assert (len(last.items), last.continue_token, last.remaining) == (1, "", None)
    assert "resourceVersion" not in dict(api.requests[1].query), "the API refuses it beside a continue token"


@stepped
async def test_a_list_without_items_is_empty() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=200, body=b'{"metadata": {"resourceVersion": "5"}, "items": null}'))
    page = await _reader(api).list_page(LEASES, namespace="n", field_selector="metadata.name=a", limit=1, resource_version="0")
    assert (page.items, page.resource_version) == ([], "5")
    assert api.requests[0].path.endswith("/namespaces/n/leases")
    assert dict(api.requests[0].query) == {"fieldSelector": "metadata.name=a", "limit": "1", "resourceVersion": "0"}


@stepped
async def test_a_watch_asks_for_bookmarks_and_for_an_end() -> None:
    api = FakeApi()
    api.put("a")
    assert [json.loads(line)["type"] for line in await _lines(_reader(api), server_timeout_seconds=45.2)] == ["ADDED"]
    query = dict(api.requests[0].query)
    assert query == {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": "1", "timeoutSeconds": "46"}
    timeout = api.timeouts[0]
    assert (timeout.total, timeout.read, timeout.connect) == (None, 90, 10), "a default total timeout would cut every watch"


@stepped
async def test_a_watch_of_less_than_a_second_asks_for_one() -> None:
    api = FakeApi()
    await _lines(_reader(api), server_timeout_seconds=0.2)
    assert dict(api.requests[0].query)["timeoutSeconds"] == "1", "0 would mean the server's own default, some hours"


@stepped
async def test_lines_of_a_watch_are_whole_wherever_the_chunks_are_cut() -> None:
    api = FakeApi()
    api.put("a", text="x" * 5000)
    api.chunked = lambda line: [line[start : start + 7] for start in range(0, len(line), 7)]
    (line,) = await _lines(_reader(api))
    assert len(json.loads(line)["object"]["text"]) == 5000


@stepped
async def test_a_watch_that_ends_within_a_line_is_a_stream_error() -> None:
    api = FakeApi()
    api.faults.append(Fault(lines=(b'{"type":"ADDED"}\n{"type":',)))
    with pytest.raises(StreamError, match="ended within a line"):
        await _lines(_reader(api))


@stepped
async def test_a_refused_watch_is_an_api_error_with_retry_after() -> None:
    api = FakeApi()
    api.faults.append(Fault(status=429, body=status_body(429, "TooManyRequests"), headers={"Retry-After": "7"}))
    with pytest.raises(ApiError) as caught:
        await _lines(_reader(api))
    assert (caught.value.kind, caught.value.retry_after) == ("throttled", 7)


@stepped
async def test_a_401_renews_the_credentials_and_sends_once_more() -> None:
    api = FakeApi()
    api.put("a")
    api.faults.append(Fault(status=401))
    assert len((await _reader(api).list_page(MACHINE_POOLS)).items) == 1
    assert (api.renewals, len(api.requests)) == (1, 2)
    api.faults.append(Fault(status=401))
    assert len(await _lines(_reader(api))) == 1
    assert (api.renewals, len(api.requests)) == (2, 4)


@stepped
async def test_a_second_401_is_the_answer() -> None:
    for ask in (lambda reader: reader.get(MACHINE_POOLS, KEY, timeout_seconds=5), lambda reader: reader.list_page(LEASES), _lines):
        api = FakeApi()
        api.faults.extend([Fault(status=401, body=status_body(401, "Unauthorized"))] * 3)
        with pytest.raises(ApiError) as caught:
            await ask(_reader(api))
        assert caught.value.kind == "unauthorized"
        assert (api.renewals, len(api.requests)) == (1, 2)


@stepped
async def test_credentials_that_cannot_be_renewed_are_said_as_such() -> None:
    api = FakeApi()
    api.renewal_error = CredentialsError("the plugin failed")
    api.faults.append(Fault(status=401))
    with pytest.raises(CredentialsError):
        await _reader(api).list_page(LEASES)
    assert len(api.requests) == 1


@stepped
async def test_no_other_answer_is_asked_for_twice() -> None:
    for status in (400, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504):
        api = FakeApi()
        api.faults.append(Fault(status=status))
        with pytest.raises(ApiError):
            await _reader(api).list_page(LEASES)
        assert (len(api.requests), api.renewals) == (1, 0)


@stepped
async def test_a_hung_request_ends_at_its_own_timeout() -> None:
    api = FakeApi()
    clock = SteppedClock()
    reader = Reader(api, clock, timeout_seconds=10)
    for ask, seconds in ((reader.get(MACHINE_POOLS, KEY, timeout_seconds=3), 3), (reader.list_page(LEASES), 10), (_lines(reader), 10)):
        api.faults.append(Fault(hang=True))
        began = clock.monotonic()
        with pytest.raises(TransportTimeout):
            await ask
        assert clock.monotonic() - began == pytest.approx(seconds)


@stepped
async def test_both_tries_after_a_401_share_one_timeout() -> None:
    api = FakeApi()
    clock = SteppedClock()
    api.faults.extend([Fault(status=401), Fault(hang=True)])
    with pytest.raises(TransportTimeout):
        await Reader(api, clock).get(MACHINE_POOLS, KEY, timeout_seconds=3)
    assert clock.monotonic() == 1003
