"""Which pages of KV memory are free, counted as integers; what a row does with its pages lives in table.

  ┌────────────── release, if not kept ─────────────┐
  ▼                                                 │
free ────────────────── allocate ────────────► referenced ◄─┐
  ▲                                                 │       │ share
  └─── evict ─── cached ◄── release, if kept ───────┘       │
                    └───────────────────────────────────────┘
"""

import re
from collections import Counter
from collections.abc import Callable


class PagePool:
    """Pages 0 to pages − 1 of one group: each is free, referenced by rows, or cached (unreferenced but kept).

    references: rows that hold each page. kept: pages whose content has a name, referenced or not.
    evict: called with a cached page that is needed elsewhere; whoever keeps pages sets it, and it has to forget it.
    """

    def __init__(self, pages: int) -> None:
        self.references = [0] * pages
        self.kept: set[int] = set()
        self.evict: Callable[[int], None] = self.forget
        self._free, self._unused = bytearray(b"\x01" * pages), pages  # and how many of them are set
        self._cached: dict[int, None] = {}  # in order of their last release

    @property
    def available(self) -> int:
        """Pages that can be allocated: free ones and cached ones."""
        return self._unused + len(self._cached)

    def allocate(self, count: int, after: int | None = None) -> list[int]:
        """Take `count` pages, each referenced once: consecutive ones behind page `after` as far as they are free.

        Cached pages are evicted only where free ones do not suffice, the least recently released first.
        Raises: ValueError if fewer are available.
        """
        if count > self.available:
            raise ValueError(f"{count} pages are wanted and {self.available} available; release a row's pages first")
        while self._unused < count:
            self.evict(next(iter(self._cached)))
        taken: list[int] = []
        page = len(self._free) if after is None else after + 1
        while len(taken) < count:
            if self._free[page : page + 1] != b"\x01":  # a slice: behind the last page there is none
                page = self._find_run(count - len(taken))
            self._free[page] = 0
            self._unused -= 1
            self.references[page] = 1
            taken.append(page)
            page += 1
        return taken

    def _find_run(self, count: int) -> int:
        """Where `count` more pages begin: centred in the longest free run, so that the row before it can go on too."""
        run = max(re.finditer(b"\x01+", self._free), key=lambda run: run.end() - run.start())
        spare = max(0, run.end() - run.start() - count)
        return run.start() + (spare // 2 if run.start() else 0)

    def share(self, page: int) -> None:
        """Reference a referenced or cached page once more."""
        if self._free[page]:
            raise ValueError(f"page {page} is shared but free; only what somebody holds or keeps can be shared")
        self._cached.pop(page, None)
        self.references[page] += 1

    def release(self, page: int) -> None:
        """Give up one reference; the last one leaves the page cached if it is kept, else free."""
        if not self.references[page]:
            raise ValueError(f"page {page} is released but nobody holds it; release each reference once")
        self.references[page] -= 1
        if not self.references[page]:
            if page in self.kept:
                self._cached[page] = None
            else:
                self._set_free(page)

    def keep(self, page: int) -> None:
        """Let a referenced page stay cached when it is released."""
        self.kept.add(page)

    def forget(self, page: int) -> None:
        """Keep a page no longer; a cached one becomes free."""
        self.kept.remove(page)
        if page in self._cached:
            del self._cached[page]
            self._set_free(page)

    def _set_free(self, page: int) -> None:
        self._free[page] = 1
        self._unused += 1

    def check_integrity(self, group: str, holders: Counter[int]) -> None:
        """Raise AssertionError naming the page unless all have one state, and as many references as holders."""
        if self._unused != self._free.count(1):
            raise AssertionError(f"{self._unused} {group} pages count as free, and {self._free.count(1)} are")
        for page, references in enumerate(self.references):
            states = {"free": bool(self._free[page]), "cached": page in self._cached, "referenced": references > 0}
            found = [state for state, holds in states.items() if holds]
            if len(found) != 1:
                raise AssertionError(
                    f"{group} page {page} is {' and '.join(found) or 'lost'}, not in exactly one state"
                )
            if references != holders[page]:
                raise AssertionError(
                    f"{group} page {page} counts {references} references, {holders[page]} rows hold it"
                )
            if found != ["referenced"] and (page in self.kept) != (found == ["cached"]):
                raise AssertionError(f"{group} page {page} is {found[0]}, and kept is {page in self.kept}")
