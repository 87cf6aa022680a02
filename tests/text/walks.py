"""Random walks through grammars, the public suite of JSON Schema, and the judge of both."""

import json
import lzma
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import jsonschema_rs
import numpy as np

import mezzotint
from mezzotint.text.grammar import Grammars
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Constraint

# Of older drafts the suite's files do not say which they are; "v1" is judged by the draft that it goes on from.
DRAFTS: dict[str, tuple[str, Any]] = {
    "draft3": ("http://json-schema.org/draft-03/schema#", None),
    "draft4": ("http://json-schema.org/draft-04/schema#", jsonschema_rs.Draft4Validator),
    "draft6": ("http://json-schema.org/draft-06/schema#", jsonschema_rs.Draft6Validator),
    "draft7": ("http://json-schema.org/draft-07/schema#", jsonschema_rs.Draft7Validator),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", jsonschema_rs.Draft201909Validator),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", jsonschema_rs.Draft202012Validator),
    "v1": ("https://json-schema.org/v1", jsonschema_rs.Draft202012Validator),
}


class Group(NamedTuple):
    """One schema of the suite with its tests."""

    draft: str
    schema: Any
    tests: list[dict[str, Any]]

    @property
    def declared(self) -> Any:
        """The schema, its draft named."""
        if not isinstance(self.schema, dict):
            return self.schema
        return {"$schema": DRAFTS[self.draft][0], **self.schema}


def read_suite(data_dir: Path) -> list[Group]:
    with lzma.open(data_dir / "json_schema_test_suite.jsonl.xz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [Group(record["file"].split("/")[0], record["schema"], record["tests"]) for record in records]


def is_valid(schema: Any, value: Any, draft: str = "draft2020-12") -> bool:
    """What jsonschema-rs says, formats included."""
    if isinstance(schema, dict):
        schema = {key: it for key, it in schema.items() if key != "$schema"}
    return bool(DRAFTS[draft][1](schema, validate_formats=True).is_valid(value))


@lru_cache(maxsize=1)
def lab_tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab")


@lru_cache(maxsize=1)
def lab_grammars() -> Grammars:
    return Grammars(lab_tokenizer())


def allowed_ids(place: Constraint) -> list[int]:
    bits = np.unpackbits(np.frombuffer(place.allowed(), dtype=np.uint8), bitorder="little")
    return [int(id) for id in np.flatnonzero(bits)]


def walk(place: Constraint, rng: Random, steps: int) -> list[int]:
    """Consume up to `steps` random allowed ids, or what is forced."""
    taken: list[int] = []
    for _ in range(steps):
        forced = place.forced() if rng.random() < 0.5 else []
        ids = [] if forced else allowed_ids(place)
        if not forced and (not ids or (place.is_accepting and rng.random() < 0.2)):
            break
        step = forced or [rng.choice(ids)]
        place.consume(step)
        taken += step
    return taken


def walk_to_end(place: Constraint, rng: Random, steps: int, limit: int = 400) -> list[int]:
    """A whole answer: a random beginning, and its closure."""
    taken = walk(place, rng, steps)
    closure = place.closure(limit)
    assert closure is not None, taken
    place.consume(closure)
    assert place.is_accepting
    return taken + closure


def accepts(place: Constraint, ids: list[int]) -> bool:
    if place.count_valid(ids) < len(ids):
        return False
    place.consume(ids)
    return place.is_accepting
