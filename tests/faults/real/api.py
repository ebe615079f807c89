"""An administrator's way to a real API server, past the proxy: what the hands use, and what tells of every accepted write."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable

from loopwatch.kube.resources import ObjectKey, Resource
from tests.faults.ground import Conflict, Document
from tests.real_servers.client import MERGE_PATCH, Client, WatchEvent, WatchStream

LONGEST_SECONDS = 3600.0


class RealApi:
    """See ground.Api."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, resource: Resource, key: ObjectKey) -> Document | None:
        """A copy of an object; None where there is none."""
        answer = self._client.get(resource.object_path(key))
        found: Document | None = answer.expect(200, 404) if answer.status == 200 else None
        return found

    def create(self, resource: Resource, body: Document) -> None:
        """Create an object that does not exist."""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        self._client.create(resource.collection_path(body["metadata"].get("namespace", "")), whole)

    def patch(self, resource: Resource, key: ObjectKey, body: Document, subresource: str = "") -> None:
        """A merge patch; one that comes too late for its object is as good."""
        answer = self._client.request("PATCH", resource.object_path(key, subresource), body, MERGE_PATCH)
        if answer.status == http.client.CONFLICT:
            raise Conflict
        answer.expect(200, 404)

    def delete(self, resource: Resource, key: ObjectKey) -> None:
        """One that is gone already is as good."""
        self._client.delete(resource.object_path(key))

    def inject(self, resource: Resource, body: Document) -> None:
        """The schema lets nothing in that is not what it should be."""
        raise NotImplementedError(f"{resource.plural}: a real API server stores no broken object ({body['metadata']['name']})")

    def clear(self, resource: Resource, namespace: str = "") -> None:
        """Delete all objects."""
        self._client.delete(resource.collection_path(namespace))


class Watching:
    """Tells of every event of one collection, in a thread of its own; what exists at the beginning is not told."""

    def __init__(self, client: Client, collection: str, tell: Callable[[WatchEvent], None]) -> None:
        listed = client.get(collection).expect(200)
        self._tell = tell
        self._closed = False
        self._stream: WatchStream = client.watch(collection, listed["metadata"]["resourceVersion"], LONGEST_SECONDS)
        self._thread = threading.Thread(target=self._follow, name=f"watch {collection}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No event is told any more."""
        self._closed = True
        self._stream.close()
        self._thread.join()

    def _follow(self) -> None:
        for event in self._stream:
            if self._closed:
                return
            self._tell(event)
