"""Several arms behind one model name: reads what is asked, has it decided, sends errands, which try the arms.

Policy, ledger and verifiers are handed in. What a client is told of an attempt is in the ledger by then.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mezzotint.router.errand import Desk, Errand, Opened, Order
from mezzotint.router.keeper import Keeper
from mezzotint.router.kind import read_ask
from mezzotint.router.ledger import Ledger
from mezzotint.router.record import Ask, Attempt, Decision, Outcome
from mezzotint.router.remote import RemoteArm
from mezzotint.server.errors import ApiError, refuse
from mezzotint.types import Arm, Verifier

GOALS = ("auto", "auto:fast", "auto:cheap", "auto:best")
# What a request may ask to be verified by; tests that it brings along would run what anybody sends.
ACCEPTABLE = ("exact", "number", "regex", "json_schema", "tool_calls", "command", "judge")
_LONG = 10_000  # characters of a prompt, from which counting its tokens takes milliseconds
_RECALLED = 5_000  # attempts of the past that a policy learns from


class Chooser(Protocol):
    """What decides, and learns from what came of it: a Policy, which says what these mean."""

    def decide(self, ask: Ask, in_flight: Mapping[str, int]) -> Decision:
        """Choose a plan."""

    def note(self, attempt: Attempt) -> None:
        """Learn from an attempt."""

    def note_outcome(self, decision_id: str, accepted: bool) -> bool:
        """Learn from a late verdict."""

    def restore(self, attempts: Iterable[Attempt], *, is_same: bool = True) -> None:
        """Learn from attempts of the past."""

    def may_go_on(self, ask: Ask, arm: str, entropy_nats: float) -> bool:
        """Whether a canvas is worth finishing."""

    def explain(self, decision: Decision) -> str:
        """Say a decision in words."""


class Fleet:
    """Several arms, and the state that their requests share."""

    def __init__(
        self,
        arms: Sequence[Arm],
        policy: Chooser,
        ledger: Ledger,
        *,
        count_tokens: Callable[[Mapping[str, Any]], int],
        make_verifier: Callable[[Mapping[str, Any]], Verifier],
        default_max_tokens: int = 1024,
        default_deadline_s: float = 600.0,
    ) -> None:
        """count_tokens: of a body's prompt. make_verifier: of what `accept` says; raises ValueError for what it cannot.

        default_max_tokens, default_deadline_s: of requests that name none.
        """
        self._arms = {arm.traits.name: arm for arm in arms}
        self._policy, self._keeper = policy, Keeper(ledger)
        self._count_tokens, self._make_verifier = count_tokens, make_verifier
        self._default_max_tokens, self._default_deadline_s = default_max_tokens, default_deadline_s
        self._watches: list[asyncio.Task[None]] = []
        self.on_attempt: Callable[[str, str, float], None] = lambda arm, outcome, cost_usd: None
        self.on_settled: Callable[[str, str, str, float], None] = lambda arm, kind, outcome, seconds: None

    @property
    def names(self) -> Sequence[str]:
        """Models that it answers for: auto with each goal, and every arm."""
        return (*GOALS, *self._arms)

    @property
    def arms(self) -> Sequence[str]:
        """Their names."""
        return tuple(self._arms)

    async def start(self) -> None:
        """Recall what the ledger holds, and begin to watch the arms."""
        await self.recall()
        remote = [arm for arm in self._arms.values() if isinstance(arm, RemoteArm)]
        self._watches = [asyncio.create_task(arm.watch()) for arm in remote]

    async def recall(self) -> None:
        """Learn from what the ledger holds, of this configuration or else of others."""
        own = await self._keeper.do(lambda book: book.attempts(_RECALLED))
        others = [] if own else await self._keeper.do(lambda book: book.attempts(_RECALLED, is_same=False))
        self._policy.restore(own or others, is_same=bool(own) or not others)

    async def stop(self) -> None:
        """Let go of the arms, and of the ledger once all is written."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for arm in self._arms.values():
            if isinstance(arm, RemoteArm):
                await arm.close()
        await self._keeper.close()

    async def open(self, body: Mapping[str, Any], *, stream: bool, usage: bool) -> Opened:
        """Decide, try, and verify where that is asked for, until an answer may leave.

        body: a chat in OpenAI's form. stream: whether an answer may leave while it is being written. usage: whether a
        last chunk without choices tells the usage. Raises: ApiError.
        """
        arrived_s = asyncio.get_running_loop().time()
        verifier, tokens = await self._read_accept(body), await self._count(body)
        order = self._order(body, tokens, verifier, arrived_s, stream=stream, usage=usage)
        return await Errand(order, self._desk(order.decision)).run()

    async def measure(self, name: str, body: Mapping[str, Any], verifier: Verifier | None) -> Attempt | None:
        """Have one arm answer a chat, and keep what came of it like that of any request.

        Returns: None where the arm refuses it. Raises: ApiError where the arm takes no request.
        """
        noted: list[Attempt] = []
        now_s = asyncio.get_running_loop().time()
        asked = {**body, "model": name}
        order = self._order(asked, await self._count(asked), verifier, now_s, stream=False, usage=True)
        desk = self._desk(order.decision)

        def note(attempt: Attempt) -> asyncio.Future[None]:
            noted.append(attempt)
            return desk.note(attempt)

        try:
            opened = await Errand(order, replace(desk, note=note)).run()
            async for _ in opened.chunks:
                pass
        except ApiError as error:
            if error.code == "unavailable":
                raise
        return noted[-1] if noted else None

    async def _count(self, body: Mapping[str, Any]) -> int:
        """Tokens of a prompt; those of a long one are counted aside, since others would wait. Raises: ApiError."""
        if sum(len(str(message.get("content"))) for message in body["messages"]) < _LONG:
            return self._count_tokens(body)
        return await asyncio.to_thread(self._count_tokens, body)

    def _order(
        self,
        body: Mapping[str, Any],
        tokens: int,
        verifier: Verifier | None,
        arrived_s: float,
        *,
        stream: bool,
        usage: bool,
    ) -> Order:
        in_flight = {name: arm.in_flight for name, arm in self._arms.items() if arm.is_up}
        return Order(
            body=body,
            decision=self._decide(body, tokens, in_flight, verifies=verifier is not None),
            verifier=verifier,
            arrived_s=arrived_s,
            is_pinned=body["model"] in self._arms,
            stream=stream,
            usage=usage,
        )

    def explain(self, body: Mapping[str, Any]) -> str:
        """What would be done with a chat if every arm were up and idle, in words. Raises: ApiError."""
        idle = dict.fromkeys(self._arms, 0)
        return self._policy.explain(self._decide(body, self._count_tokens(body), idle, verifies=False))

    def _decide(
        self, body: Mapping[str, Any], tokens: int, in_flight: Mapping[str, int], *, verifies: bool
    ) -> Decision:
        """Raises: ApiError for a chat that cannot be read, or that no arm can answer."""
        try:
            ask = read_ask(body, prompt_tokens=tokens, default_max_tokens=self._most_tokens(tokens))
        except ValueError as error:
            raise refuse(error, frozenset({"x_route", *body})) from error
        if "deadline_ms" not in (body.get("x_route") or {}):
            ask = replace(ask, deadline_s=self._default_deadline_s)
        decision = self._policy.decide(replace(ask, verifies=verifies), in_flight)
        pin = body["model"] if body["model"] in self._arms else None
        seen = [each for each in decision.candidates if pin in (None, each.arm)]
        if pin is not None and (decision.plan or pin not in in_flight):
            made = replace(decision, plan=(pin,), reason="pinned", propensity=1.0)
            return replace(made, seconds=seen[0].seconds, cost_usd=seen[0].cost_usd)
        if not decision.plan:
            told = "; ".join(f"{each.arm}: {each.excluded}" for each in seen)
            is_down = not in_flight
            raise ApiError(
                503 if is_down else 400,
                f"no arm can take this request: {told}",
                kind="server_error" if is_down else "invalid_request_error",
                code="unavailable" if is_down else "no_arm",
                retry_after_s=1 if is_down else None,
            )
        return decision

    def _most_tokens(self, prompt: int) -> int:
        """Of an answer whose request names no bound: what fits behind its prompt everywhere, where anything does."""
        room = min(arm.traits.context for arm in self._arms.values()) - prompt
        return min(room, self._default_max_tokens) if room > 0 else self._default_max_tokens

    async def note_outcome(self, outcome: Mapping[str, Any], key: str | None) -> bool:
        """Take a late verdict, once for each key. Returns: whether it was new. Raises: ApiError."""
        verify_ms = outcome["verify_ms"]
        told = {"score": outcome["score"], "reason": outcome["reason"]}
        told["verify_s"] = None if verify_ms is None else verify_ms / 1000
        id, verdict = outcome["decision_id"], outcome["verdict"]
        try:
            is_new = await self._keeper.do(lambda book: book.write_outcome(id, verdict, key, **told))
        except LookupError as error:
            raise ApiError(404, str(error.args[0]), kind="not_found_error", param="decision_id") from error
        except ValueError as error:
            raise ApiError(409, str(error), code="key_reused", param="Idempotency-Key") from error
        if is_new:
            self._policy.note_outcome(id, verdict == "accepted")
        return is_new

    async def table(self) -> Sequence[Mapping[str, Any]]:
        """The ledger, a row for each arm and class."""
        return [row._asdict() for row in await self._keeper.do(lambda book: book.table())]

    async def _read_accept(self, body: Mapping[str, Any]) -> Verifier | None:
        """What an answer has to pass, if anything. Raises: ApiError for what nothing can be verified by."""
        accept = (body.get("x_route") or {}).get("accept")
        if accept is None:
            return None
        if accept.get("type") not in ACCEPTABLE:
            told = f"x_route.accept.type is {accept.get('type')!r}; a request may name {', '.join(ACCEPTABLE)}"
            raise ApiError(400, told, param="x_route.accept")
        if accept["type"] == "json_schema" and "schema" not in accept:
            if (schema := _asked_schema(body)) is None:
                told = "x_route.accept is of type json_schema without a schema; give one there, or as response_format"
                raise ApiError(400, told, param="x_route.accept")
            accept = {**accept, "schema": schema}
        try:
            return await asyncio.to_thread(self._make_verifier, accept)
        except ValueError as error:
            raise ApiError(400, f"x_route.accept: {error}", param="x_route.accept") from error

    def _desk(self, decision: Decision) -> Desk:
        ask = decision.ask

        def note(attempt: Attempt) -> asyncio.Future[None]:
            self._policy.note(attempt)
            self.on_attempt(attempt.arm, attempt.outcome, attempt.cost_usd)
            return self._keeper.do(lambda book: book.write_attempt(attempt))

        def settle(arm: str, outcome: Outcome, seconds: float) -> None:
            self.on_settled(arm, ask.kind.partition("#")[0], outcome, seconds)  # of frames there may be any number

        return Desk(
            arms=self._arms,
            may_go_on=lambda arm, nats: self._policy.may_go_on(ask, arm, nats),
            note=note,
            settle=settle,
            kept=self._keeper.do(lambda book: book.write_decision(decision)),
        )


def _asked_schema(body: Mapping[str, Any]) -> Any:
    """The schema that an answer is to follow anyway, wherever a chat says it."""
    holder = (body.get("response_format") or {}).get("json_schema") or {}
    return holder.get("schema", (body.get("structured_outputs") or {}).get("json"))
