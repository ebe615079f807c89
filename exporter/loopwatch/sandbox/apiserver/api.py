"""The API server in memory: `handle` answers one request, and convenience methods let tests and the demo set the scene.

Pure asyncio, no sockets: `sandbox.transport` calls it in the same process, `sandbox.server` puts it on a loopback port. It keeps no
file, knows no authorization but the faults', and answers a broken request as the real server does instead of failing.
"""

from __future__ import annotations

import asyncio
import email.utils
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from loopwatch.clock import Clock
from loopwatch.kube.resources import NAMESPACES, SELF_SUBJECT_ACCESS_REVIEWS, ObjectKey, Resource
from loopwatch.kube.transport import Request
from loopwatch.sandbox.apiserver import calls, negotiation, statuses, writes
from loopwatch.sandbox.apiserver.calls import Call, Identity
from loopwatch.sandbox.apiserver.router import Answer, Router, page_not_found, traits_of
from loopwatch.sandbox.apiserver.store import Store, path_of
from loopwatch.sandbox.faults import (
    Effect,
    FaultTable,
    Forbid,
    Hang,
    Latency,
    LoseAnswer,
    NotServed,
    Respond,
    Rule,
    Traits,
    Unauthorized,
)
from loopwatch.sandbox.recorder import Record, Recorder

ADMIN: Final = Identity("sandbox-admin")
ANONYMOUS: Final = "system:anonymous"
BOOKMARK_SECONDS: Final = 60.0
HISTORY_LIMIT: Final = 20_000
"""Events kept for each resource at least; up to twice as many are."""
FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_encode: Final = msgspec.json.Encoder().encode


class _Attributes(msgspec.Struct):
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _ReviewSpec(msgspec.Struct):
    resource_attributes: _Attributes | None = msgspec.field(default=None, name="resourceAttributes")


class _Review(msgspec.Struct):
    spec: _ReviewSpec


class AnswerLost(Exception):
    """The connection closes here without an answer."""


class ApiServer:
    """One API server; every method but `handle` answers at once."""

    def __init__(
        self,
        clock: Clock,
        *,
        tokens: Mapping[str, str] | None = None,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        history_limit: int = HISTORY_LIMIT,
    ) -> None:
        self.tokens = tokens
        """The bearer tokens that are accepted, with their users; None accepts every request. May be replaced at any time."""
        self.requests = Recorder()
        self.clock = clock
        self._store = Store()
        self.faults = FaultTable(lambda: self._store.revision)
        self._router = Router(clock, self.faults, self._store, bookmark_seconds=bookmark_seconds, history_limit=history_limit)
        self._types = {(resource.group, resource.version, resource.plural): kind_of for resource, kind_of in self._router.types.items()}
        for name in FIRST_NAMESPACES:
            self.create_namespace(name)

    @property
    def revision(self) -> int:
        """The resourceVersion of the last write."""
        return self._store.revision

    async def handle(self, request: Request, identity: Identity) -> Answer:
        """Answer a request. AnswerLost where a fault closes the connection; a watch's stream may raise StreamCut."""
        call = calls.parse(request, identity, self._types)
        record = self._record(call)
        try:
            answer = await self._faulty_answer(call)
        except statuses.Refusal as refusal:
            headers = {"Content-Type": statuses.JSON_TYPE, **refusal.headers}
            answer = Answer(refusal.code, headers, refusal.body())
        record.status = answer.status
        date = email.utils.format_datetime(self.clock.utcnow(), usegmt=True)
        return self._compressed(call, answer._replace(headers={"Date": date, **answer.headers}))

    async def _faulty_answer(self, call: Call) -> Answer:
        lost: list[Rule] = []
        for rule in self.faults.matching(traits_of(call)):
            effect = rule.fault.effect
            if isinstance(effect, LoseAnswer) and effect.applied:
                lost.append(rule)
            elif isinstance(effect, Latency | Respond | Unauthorized | Forbid | NotServed | Hang | LoseAnswer):
                rule.take()
                answer = await self._before(call, rule, effect)
                if answer is not None:
                    return answer
        user = self._authenticate(call)
        if user == ANONYMOUS and call.kind_of is not None:
            raise self._forbidden(call, user)
        answer = self._review(call, user) if _is_review(call) else self._router.answer(call)
        if lost:
            lost[0].take()
            raise AnswerLost
        return answer

    def _review(self, call: Call, user: str) -> Answer:
        """SelfSubjectAccessReview: what a fault forbids is not allowed, and all else is."""
        try:
            review = msgspec.json.decode(call.request.body or b"", type=_Review)
        except msgspec.DecodeError as error:
            raise statuses.bad_request(f"the object provided is unrecognized (must be of type SelfSubjectAccessReview): {error}") from None
        asked = review.spec.resource_attributes or _Attributes()
        traits = Traits(asked.verb, asked.resource, asked.subresource, asked.namespace, asked.name, call.identity.client)
        allowed = user != ANONYMOUS and not any(isinstance(rule.fault.effect, Forbid) for rule in self.faults.matching(traits))
        spec = msgspec.json.decode(call.request.body or b"")["spec"]
        body = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec, "status": {"allowed": allowed}}
        return Answer(201, {"Content-Type": statuses.JSON_TYPE}, _encode(body) + b"\n")

    async def _before(self, call: Call, rule: Rule, effect: Effect) -> Answer | None:
        """What a fault does before the request is looked at; None lets it go on."""
        match effect:
            case Latency(seconds=seconds):
                await self.clock.sleep(seconds)
            case Hang(resume=resume):
                await self._hang(rule, resume=resume)
            case LoseAnswer():
                raise AnswerLost
            case Unauthorized():
                raise statuses.unauthorized()
            case Forbid(user=user):
                raise self._forbidden(call, user or self._authenticate(call))
            case NotServed():
                return page_not_found()
            case Respond():
                return _respond(effect)
        return None

    async def _hang(self, rule: Rule, *, resume: bool) -> None:
        changed = asyncio.Event()
        self.faults.on_change(changed.set)
        try:
            while not resume or self.faults.in_force(rule.number):
                await changed.wait()
                changed.clear()
        finally:
            self.faults.forget(changed.set)

    def _authenticate(self, call: Call) -> str:
        """The user; a refusal (401) for a token that is not accepted."""
        token = call.identity.token
        if self.tokens is None:
            return call.identity.client or ADMIN.client
        if token is None:
            return ANONYMOUS
        if token not in self.tokens:
            raise statuses.unauthorized()
        return self.tokens[token]

    @staticmethod
    def _forbidden(call: Call, user: str) -> statuses.Refusal:
        if call.kind_of is None:
            return statuses.Refusal(
                403, f'forbidden: User "{user}" cannot {call.verb} path "{call.request.path}"', reason="Forbidden", details={}
            )
        return statuses.forbidden(
            call.kind_of.resource, user, call.verb, subresource=call.subresource, namespace=call.key.namespace, name=call.key.name
        )

    def _record(self, call: Call) -> Record:
        request = call.request
        record = Record(
            at=self.clock.monotonic(),
            method=request.method,
            path=request.path,
            query="&".join(f"{name}={value}" for name, value in request.query),
            client=call.identity.client,
            verb=call.verb,
            resource=call.resource_name,
            subresource=call.subresource,
            namespace=call.key.namespace,
            name=call.key.name,
        )
        self.requests.add(record)
        return record

    @staticmethod
    def _compressed(call: Call, answer: Answer) -> Answer:
        smaller = negotiation.compressed(answer.body, call.headers) if answer.stream is None and call.kind_of else None
        if smaller is None:
            return answer
        return answer._replace(body=smaller, headers=answer.headers | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})

    # Setting the scene: as an admin, past faults, tokens and the record.

    def create_namespace(self, name: str) -> dict[str, Any]:
        """Make a namespace; as it is stored. ValueError with the server's words where it refuses."""
        return self.put_object(NAMESPACES, {"metadata": {"name": name}})

    def put_object(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create or replace an object through the real checks, its status included; as it is stored.

        A status takes a second write, as it would for a client. ValueError with the server's words where it refuses.
        """
        meta = dict(body["metadata"])
        meta.pop("resourceVersion", None)
        named = {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": meta}
        key = ObjectKey(str(meta.get("namespace", "")), str(meta["name"]))
        if self.object(resource, key) is None:
            self._admin("POST", resource.collection_path(key.namespace), named)
        else:
            self._replace(resource, key, named)
        if "status" in body and self._router.types[resource].status:
            self._replace(resource, key, named, "status")
        return self._existing(resource, key)

    def object(self, resource: Resource, key: ObjectKey | str) -> dict[str, Any] | None:
        """A copy of an object, as a GET shows it; None where there is none. A bare name serves for cluster-scoped ones."""
        collection = self._store.collections[resource]
        stored = collection.objects.get(path_of(_key(key)))
        return None if stored is None else cast("dict[str, Any]", msgspec.json.decode(collection.whole(stored)))

    def objects(self, resource: Resource) -> list[dict[str, Any]]:
        """Copies of all objects of a resource, in the order of a list."""
        collection = self._store.collections[resource]
        return [msgspec.json.decode(collection.whole(stored)) for stored in collection.at(self._store.revision, "/", "")]

    def delete_object(self, resource: Resource, key: ObjectKey | str) -> None:
        """Delete an object. ValueError where there is none."""
        self._admin("DELETE", resource.object_path(_key(key)))

    def inject_object(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Store an object as it is, past every check: what a real server could hold only after its schema changed.

        `metadata.name` (and namespace) must be strings; all else may have any type. The object appears in lists and watches.
        """
        meta = body.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        namespace = meta.get("namespace", "") if isinstance(meta, dict) else ""
        if not (isinstance(name, str) and name and isinstance(namespace, str)):
            raise ValueError(f"a foreign object still needs metadata with a name and namespace that are strings, not {meta!r}")
        key = ObjectKey(namespace, name)
        collection = self._store.collections[resource]
        before = collection.objects.get(path_of(key))
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        stored = writes.versioned(collection, key, whole, (), self._store.next_revision())
        collection.record("ADDED" if before is None else "MODIFIED", stored, before)

    def compact(self, revision: int | None = None) -> None:
        """Forget the history before `revision` (default: now): older watches and continue tokens answer 410."""
        self._store.compact(revision)

    def _existing(self, resource: Resource, key: ObjectKey) -> dict[str, Any]:
        found = self.object(resource, key)
        if found is None:
            raise ValueError(f"{resource.plural} {key.name}: it vanished while it was written")
        return found

    def _replace(self, resource: Resource, key: ObjectKey, body: Mapping[str, Any], subresource: str = "") -> None:
        version = self._existing(resource, key)["metadata"]["resourceVersion"]
        meta = {**body["metadata"], "resourceVersion": version}
        self._admin("PUT", resource.object_path(key, subresource), {**body, "metadata": meta})

    def _admin(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        request = Request(method, path, body=None if body is None else _encode(body))
        try:
            answer = self._router.answer(calls.parse(request, ADMIN, self._types))
        except statuses.Refusal as refusal:
            raise ValueError(f"{method} {path}: {refusal.code} {refusal.reason}: {refusal.message}") from None
        if answer.status >= 300:
            raise ValueError(f"{method} {path}: {answer.status} {answer.body.decode()}")


def _is_review(call: Call) -> bool:
    return call.request.method == "POST" and call.request.path == SELF_SUBJECT_ACCESS_REVIEWS.collection_path()


def _key(key: ObjectKey | str) -> ObjectKey:
    return ObjectKey("", key) if isinstance(key, str) else key


def _respond(effect: Respond) -> Answer:
    retry = {} if effect.retry_after_seconds is None else {"Retry-After": str(effect.retry_after_seconds)}
    if effect.html:
        title = f"{effect.status} {effect.message or 'Bad Gateway'}"
        page = f"<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
        return Answer(effect.status, {"Content-Type": "text/html", **retry}, page.encode())
    reasons = {
        400: "BadRequest",
        401: "Unauthorized",
        403: "Forbidden",
        404: "NotFound",
        409: "Conflict",
        410: "Expired",
        429: "TooManyRequests",
        500: "InternalError",
        503: "ServiceUnavailable",
        504: "Timeout",
    }
    messages = {
        429: "The apiserver is overloaded, please try again later.",
        500: "Internal error occurred: the sandbox was asked to fail",
        503: "the server is currently unable to handle the request",
    }
    seconds = effect.retry_after_seconds
    refusal = statuses.Refusal(
        effect.status,
        effect.message or messages.get(effect.status, "the sandbox was asked to answer so"),
        reason=effect.reason or reasons.get(effect.status, ""),
        details=None if seconds is None else {"retryAfterSeconds": seconds},
    )
    return Answer(effect.status, {"Content-Type": statuses.JSON_TYPE, **retry}, refusal.body())
