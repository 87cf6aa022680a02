"""A fleet put together from its file: arms, policy, ledger, verifiers; what each of them does lives in its room."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mezzotint.cli.options import Loading
    from mezzotint.router.config import FleetConfig
    from mezzotint.router.fleet import Fleet
    from mezzotint.server import Backend
    from mezzotint.types import Arm, Verifier


def check_fleet(path: Path, served: str) -> "FleetConfig":
    """Read a fleet's file, before a checkpoint is read for nothing.

    served: what clients call the model here. Raises: ValueError naming the file, the key and the remedy.
    """
    from mezzotint.router.config import read_fleet

    config = read_fleet(path)
    for name in config.names:
        if name.partition(":")[0] == served:
            told = f"{path}: an arm is named {name!r}, which already means the model that is served"
            raise ValueError(f"{told}; call it otherwise, such as {name.partition(':')[2] or 'here'!r}")
    if served == "auto":
        raise ValueError("the model would be called 'auto', which is the fleet's own name; give it another --name")
    config.check_keys()
    return config


class Loaded(NamedTuple):
    """A fleet, and the engine in its midst, which is not started."""

    fleet: "Fleet"
    backend: "Backend"


def load_fleet(file: Path, loading: "Loading") -> Loaded:
    """A fleet without a server before it. Raises: ValueError naming what is wrong, and the remedy."""
    from mezzotint.cli.answer import load_alone
    from mezzotint.engine.config import EngineConfig
    from mezzotint.server import Backend, ServerConfig

    name = Path(loading.model).name
    config = check_fleet(file, name)
    backend = Backend(name, load_alone(loading), ServerConfig(), EngineConfig())
    return Loaded(assemble(config, backend, loading), backend)


def assemble(config: "FleetConfig", backend: "Backend", loading: "Loading") -> "Fleet":
    """The fleet that a file describes, around an engine. Raises: ValueError naming what is wrong, and the remedy."""
    import torch

    from mezzotint.router.fingerprint import fingerprint
    from mezzotint.router.fleet import Fleet
    from mezzotint.router.ledger import Ledger
    from mezzotint.router.policy import Policy
    from mezzotint.router.policy_file import PolicyConfig, load_policy
    from mezzotint.server.arm import count_prompt

    arms = list(_make_arms(config, backend))
    traits = [arm.traits for arm in arms]
    chosen = PolicyConfig() if config.policy is None else load_policy(config.policy)
    model = backend.checkpoint.model
    running: dict[str, Any] = {"dtype": str(model.dtype), "device": str(model.device)}
    running |= {
        "compiled": bool(loading.compiled),
        "threads": torch.get_num_threads(),
        "local": [*map(vars, config.local)],
    }
    return Fleet(
        arms,
        Policy(chosen, traits, seed=secrets.randbits(32), clock=time.time),
        Ledger(config.ledger, fingerprint(traits, backend.checkpoint.path, running)),
        count_tokens=partial(count_prompt, backend),
        make_verifier=_find_verifiers(config),
        default_max_tokens=backend.config.default_max_tokens,
        default_deadline_s=backend.config.deadline_s,
    )


def _make_arms(config: "FleetConfig", backend: "Backend") -> Iterator["Arm"]:
    from mezzotint.router.remote import RemoteArm
    from mezzotint.server.arm import LocalArm

    for local in config.local:
        yield LocalArm(backend=backend, busy_price=config.busy_price, **vars(local))
    load: Counter[str] = Counter()
    for remote in config.remote:
        yield RemoteArm(remote, load)


def _find_verifiers(config: "FleetConfig") -> "Callable[[Mapping[str, Any]], Verifier]":
    from mezzotint.evaluate.judge import EndpointJudge
    from mezzotint.evaluate.verify import make_verifier

    told = config.judge
    judge = None if told is None else EndpointJudge(told.url, told.model, told.key or "none")
    return partial(make_verifier, commands=config.commands, judge=judge)
