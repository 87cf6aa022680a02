"""An engine on a thread of its own, for readers on any thread or event loop; what a step does lives in engine.

    reader ── command ──► inbox ──► the stepping thread, which alone touches the engine
           ◄── mailbox ◄── outcomes ──┘

A step that fails as a whole ends the requests that were in it; the engine begins afresh, pages free and nothing
cached, and the service goes on.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

from mezzotint.engine.engine import Engine
from mezzotint.engine.mailbox import Letter, Mailbox
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told, UnavailableError
from mezzotint.engine.stats import Stats

Answer = TypeVar("Answer")

_DRAFTS = 32  # that wait for a reader before the oldest are dropped


class Service:
    """One engine that steps while there is something to do, and sleeps otherwise."""

    def __init__(self, engine: Engine) -> None:
        """Take over an engine; nobody else may touch it from now on."""
        self._engine = engine
        self._changed = threading.Condition()
        self._inbox: list[Callable[[], None]] = []
        self._mail: dict[str, Mailbox] = {}  # of every request that has not ended; the stepping thread's
        self._is_open = self._is_running = self._is_stopping = self._is_resting = False
        self._thread = threading.Thread(target=self._run, name="mezzotint-engine", daemon=True)

    def start(self) -> None:
        """Begin to serve. Raises: RuntimeError the second time."""
        with self._changed:
            self._thread.start()
            self._is_open = self._is_running = True

    async def stream(self, request: Request) -> AsyncGenerator[Outcome, None]:
        """Answer a request. Closing the iterator, or cancelling the task that reads it, cancels the request.

        Yields: what it is told, and at last Done or Failed. Of drafts that wait for the reader the oldest are dropped.
        Raises: ValueError as Engine.submit, UnavailableError if none is taken now; both before anything is yielded.
        """
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        mailbox = Mailbox(lambda: loop.call_soon_threadsafe(arrived.set), drafts=_DRAFTS)
        self._enter(request, mailbox)
        try:
            while True:
                await arrived.wait()
                arrived.clear()
                for letter in mailbox.take():
                    yield _open(letter)
                    if isinstance(letter, Done | Failed):
                        return
        finally:
            self._leave(request, mailbox)

    def submit(self, request: Request) -> "Stream":
        """Begin to answer a request at once, for a reader without an event loop; see stream.

        Raises: UnavailableError if none is taken now; what else is wrong the stream raises.
        """
        arrived = threading.Event()
        mailbox = Mailbox(arrived.set, drafts=_DRAFTS)
        self._enter(request, mailbox)
        return Stream(mailbox, arrived, lambda: self._leave(request, mailbox))

    def stats(self) -> Stats:
        """What the engine has done, and how full it is; waits for a step's end."""
        told: Future[Stats] = Future()
        try:
            self._send(lambda: told.set_result(self._engine.stats()))
        except UnavailableError:
            return self._engine.stats()
        return told.result()

    def call(self, function: Callable[[], Answer]) -> "Future[Answer]":
        """Run something on the stepping thread, between two steps: it alone uses the model meanwhile.

        Returns: what will hold its answer, or what it raised. Raises: UnavailableError if the service is stopped.
        """
        told: Future[Answer] = Future()

        def run() -> None:
            if not told.set_running_or_notify_cancel():
                return
            try:
                told.set_result(function())
            except Exception as error:
                told.set_exception(error)

        self._send(run)
        return told

    def drain(self) -> None:
        """Take no more requests, and wait until all that were taken have ended."""
        with self._changed:
            self._is_open = False
            self._changed.wait_for(lambda: not self._is_running or (self._is_resting and not self._inbox))

    def stop(self) -> None:
        """End what still runs as Failed, kind `stopped`, and the thread; wait for it."""
        with self._changed:
            self._is_open, self._is_stopping = False, True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _enter(self, request: Request, mailbox: Mailbox) -> None:
        if not self._is_open:
            raise UnavailableError(
                "the service takes no requests: it was not started, or is about to stop; try another one"
            )
        self._send(lambda: self._take(request, mailbox))

    def _leave(self, request: Request, mailbox: Mailbox) -> None:
        """Cancel a request, unless it has ended."""
        try:
            self._send(lambda: self._drop(request.id, mailbox))
        except UnavailableError:
            return

    def _send(self, command: Callable[[], None]) -> None:
        with self._changed:
            if not self._is_running:
                raise UnavailableError("the service is stopped")
            self._inbox.append(command)
            self._changed.notify_all()

    # What follows runs on the stepping thread.

    def _run(self) -> None:
        try:
            while self._await_work():
                for command in self._take_commands():
                    command()
                if not self._engine.is_idle:
                    self._deliver(self._step())
        finally:
            with self._changed:
                self._is_open = self._is_running = False
                self._changed.notify_all()
            for command in self._take_commands():
                command()
            self._deliver(self._engine.abandon("stopped", "the service was stopped"))

    def _await_work(self) -> bool:
        """Sleep until there is something to do. Returns: whether there is, and the service has not been stopped."""
        with self._changed:
            self._is_resting = True
            self._changed.notify_all()  # to whoever drains
            self._changed.wait_for(lambda: self._is_stopping or self._inbox or not self._engine.is_idle)
            self._is_resting = False
            return not self._is_stopping

    def _take_commands(self) -> list[Callable[[], None]]:
        with self._changed:
            commands, self._inbox = self._inbox, []
        return commands

    def _step(self) -> list[Outcome]:
        try:
            return self._engine.step()
        except Exception as error:
            logging.getLogger(__name__).exception("a step failed; its requests are given up")
            return self._engine.abandon("crashed", f"the engine failed: {type(error).__name__}: {error}")

    def _take(self, request: Request, mailbox: Mailbox) -> None:
        try:
            self._engine.submit(request)
        except Exception as error:
            mailbox.put(error)
        else:
            self._mail[request.id] = mailbox

    def _drop(self, id: str, mailbox: Mailbox) -> None:
        if self._mail.get(id) is mailbox:  # another request may have its id by now
            self._deliver(self._engine.cancel(id))

    def _deliver(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            mailbox = self._mail.get(outcome.id)
            if mailbox is None:  # it was dropped since
                continue
            if isinstance(outcome, Done | Failed):
                del self._mail[outcome.id]
            try:
                mailbox.put(outcome)
            except RuntimeError:  # the reader's event loop is closed
                self._drop(outcome.id, mailbox)


class Stream(Iterator[Outcome]):
    """What a request is told, and at last Done or Failed. Closing it, or leaving its `with`, cancels the request."""

    def __init__(self, mailbox: Mailbox, arrived: threading.Event, leave: Callable[[], None]) -> None:
        self._mailbox, self._arrived, self._leave = mailbox, arrived, leave
        self._letters: list[Letter] = []
        self._has_ended = False

    def __next__(self) -> Outcome:
        if self._has_ended:
            raise StopIteration
        while not self._letters:
            self._arrived.wait()
            self._arrived.clear()
            self._letters = self._mailbox.take()[::-1]
        letter = self._letters.pop()
        self._has_ended = not isinstance(letter, Told)
        return _open(letter)

    def close(self) -> None:
        """Cancel the request, unless it has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open(letter: Letter) -> Outcome:
    if isinstance(letter, Exception):
        raise letter
    return letter
