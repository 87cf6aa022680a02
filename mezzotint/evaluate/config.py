"""What an evaluation is told: tasks, arms, how many prompts and which; nothing runs here."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from mezzotint.llm import PRESETS, SamplingParams, preset
from mezzotint.tasks import FAMILIES

MAX_PROMPTS = 1_000_000  # the next seed's prompts begin where these end
FORMS = ("free", "grammar")
BLANKS = ("infill",)  # tasks whose prompts give what stands behind the answer, for which there is no gate
DECLARING = ("extract", "call", "choose")  # tasks whose prompts say what form an answer has
MAX_SEED = 10**12  # so that every answer's seed stays below 2^64


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to answer; steps: budget of a block. None means the checkpoint's own sampler or budget.

    preset: what decides sampler, steps and gate, if anything does.
    form: `free`, or `grammar` where the answer follows what its prompt declares; see grammar.
    """

    decoder: str
    sampler: str | None
    steps: int | None
    temperature: float
    form: str = "free"
    preset: str | None = None

    def params(self, *, max_tokens: int, seed: int) -> SamplingParams:
        """The options of one answer.

        Raises: ValueError naming an option that this arm cannot have.
        """
        if self.preset is not None:
            return preset(self.preset, temperature=self.temperature, max_tokens=max_tokens, seed=seed)
        options = {name: value for name, value in asdict(self).items() if name not in ("form", "preset")}
        return SamplingParams(max_tokens=max_tokens, seed=seed, **options)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Example `seed` of a task's held-out split; its answers are drawn with the same seed."""

    task: str
    index: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """One evaluation: `n` prompts of every task, each answered by every arm.

    Prompt i of seed s is example s × 10^6 + i of the test split. steps: a budget for each diffusion arm;
    empty means one arm at the checkpoint's own. temperature: of every arm; None: diffusion at 1, the others greedy.
    presets: an arm each, behind those of the decoders.
    forms: how answers are held to what their prompts declare; with both every arm is there twice.
    Raises: ValueError naming option, value and remedy. Source: contract 14.
    """

    tasks: tuple[str, ...] = tuple(FAMILIES)
    decoders: tuple[str, ...] = ("diffusion", "ar")
    n: int = 200
    seed: int = 0
    steps: tuple[int, ...] = ()
    sampler: str | None = None
    temperature: float | None = None
    forms: tuple[str, ...] = ("free",)
    presets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tasks", "decoders", "steps", "forms", "presets"):
            _refuse_repeats(name, getattr(self, name))
        if not self.tasks or not (self.decoders or self.presets):
            raise ValueError("tasks or decoders is empty; name at least one of each")
        self._check_presets()
        for task in self.tasks:
            if task not in FAMILIES:
                raise ValueError(f"task is {task!r}; choose from {', '.join(FAMILIES)}")
        self._check_forms()
        if not 1 <= self.n <= MAX_PROMPTS:
            raise ValueError(f"n is {self.n}; ask for 1 to {MAX_PROMPTS} prompts a task")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed is {self.seed}; it must lie between 0 and {MAX_SEED}")
        for arm in self.arms:
            arm.params(max_tokens=1, seed=0)  # refuses what SamplingParams refuses
        if "diffusion" not in self.decoders:
            self._refuse_canvas_options()

    @property
    def arms(self) -> tuple[Arm, ...]:
        """One arm a decoder, or one a step budget under diffusion, in the order given."""
        arms = [arm for decoder in self.decoders for arm in self._arms(decoder)]
        arms += [self._arm(name) for name in self.presets]
        return tuple(replace(arm, form=form) for arm in arms for form in self.forms)

    @property
    def answers(self) -> int:
        """How many answers the evaluation takes."""
        return self.n * len(self.tasks) * len(self.arms)

    def prompts(self, task: str) -> list[Prompt]:
        """The prompts of one task, the same for every arm."""
        first = self.seed * MAX_PROMPTS
        return [Prompt(task=task, index=index, seed=first + index) for index in range(self.n)]

    def _check_forms(self) -> None:
        if not self.forms or not set(self.forms) <= {*FORMS}:
            raise ValueError(f"forms is {','.join(self.forms)!r}; choose from {', '.join(FORMS)}")
        for task in self.tasks if "grammar" in self.forms else ():
            if task not in DECLARING:
                told = f"the prompts of {task} declare no form for a grammar"
                raise ValueError(f"{told}; take some of {', '.join(DECLARING)}, or leave the grammar out")

    def _check_presets(self) -> None:
        for name in self.presets:
            if name not in PRESETS:
                raise ValueError(f"preset is {name!r}; choose from {', '.join(PRESETS)}")
            blanks = [f"the blanks of {task}" for task in self.tasks if task in BLANKS]
            without = [*blanks, *["a grammar"] * ("grammar" in self.forms)]
            if without and PRESETS[name]["gate"] != "off":
                raise ValueError(
                    f"preset {name!r} has a gate, but none is there for {without[0]}; leave out one of the two"
                )

    def _refuse_canvas_options(self) -> None:
        for name in ("steps", "sampler"):
            if value := getattr(self, name):
                given = value if isinstance(value, str) else ",".join(map(str, value))
                raise ValueError(f"{name} is {given}, but only diffusion has a canvas: drop it or add that")

    def _arm(self, name: str) -> Arm:
        temperature = 1.0 if self.temperature is None else self.temperature
        return Arm(decoder=PRESETS[name]["decoder"], sampler=None, steps=None, temperature=temperature, preset=name)

    def _arms(self, decoder: str) -> list[Arm]:
        usual = 1.0 if decoder == "diffusion" else 0.0
        temperature = usual if self.temperature is None else self.temperature
        if decoder != "diffusion":
            return [Arm(decoder=decoder, sampler=None, steps=None, temperature=temperature)]
        budgets = self.steps or (None,)
        return [Arm(decoder=decoder, sampler=self.sampler, steps=s, temperature=temperature) for s in budgets]


def arm_of(
    *,
    decoder: str | None,
    sampler: str | None,
    steps: int | None,
    temperature: float | None,
    form: str,
    preset: str | None,
) -> Arm:
    """One arm; None leaves an option as EvaluateConfig does, and the decoder at diffusion.

    Raises: ValueError naming option, value and remedy.
    """
    if form not in FORMS:
        raise ValueError(f"form is {form!r}; choose from {', '.join(FORMS)}")
    if preset is not None:
        if preset not in PRESETS:
            raise ValueError(f"preset is {preset!r}; choose from {', '.join(PRESETS)}")
        if given := [name for name in (decoder, sampler, steps) if name is not None]:
            raise ValueError(f"preset {preset!r} decides decoder, sampler and steps; drop {given[0]!r}")
        decoder = PRESETS[preset]["decoder"]
    decoder = decoder or "diffusion"
    usual = 1.0 if decoder == "diffusion" else 0.0
    arm = Arm(
        decoder=decoder,
        sampler=sampler,
        steps=steps,
        temperature=usual if temperature is None else temperature,
        form=form,
        preset=preset,
    )
    arm.params(max_tokens=1, seed=0)  # refuses what SamplingParams refuses
    return arm


def _refuse_repeats(name: str, values: Sequence[object]) -> None:
    repeated = [value for value in values if values.count(value) > 1]
    if repeated:
        raise ValueError(f"{name} names {repeated[0]} twice; once is enough")
