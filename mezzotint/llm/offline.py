"""LLM: one checkpoint, ready to answer prompts; what it is made of lives beside it."""

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property

from mezzotint.decoding.filling import Lengths
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.sampler import Sampler
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.llm.alone import answer_alone
from mezzotint.llm.checkpoint import load_checkpoint
from mezzotint.llm.choose import Choice, ChoosingDecoder, choose
from mezzotint.llm.entry import accept, check_memory
from mezzotint.llm.events import Completion, Event
from mezzotint.llm.infill import Infilled, infill
from mezzotint.llm.together import Together
from mezzotint.text.document import Blank
from mezzotint.text.grammar import Grammar, Grammars
from mezzotint.text.parse import Reply, parse_reply
from mezzotint.text.prompt import Prompt, list_prompts
from mezzotint.text.stop import StopScanner


class LLM:
    """One checkpoint, ready to generate."""

    def __init__(
        self,
        model: str = "lab",
        *,
        dtype: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
        compiled: bool = False,
        drafter: str | None = None,
        costs: Costs | None = None,
        memory_bytes: int | None = None,
        shared: bool = False,
    ) -> None:
        """Load `model`: "lab", a directory in Hugging Face format, or a hub id.

        dtype: float64, float32 or bfloat16; None = as stored. threads: torch's intra-op threads for the whole
        process, set once the options are known to be good; None leaves them. compiled: run as machine code, which
        some seconds of a C++ compiler make the first time; not bit for bit what is computed without. drafter: the
        checkpoint of decoder `mtp`; None takes the one beside the model that is called like it with "-drafter" behind.
        costs: of forwards, by which `verified` decides how much to draft; None measures them at its first prompt, so
        that its receipts may differ from process to process, though no token does. memory_bytes: of keys and values of
        prompts that are answered at once, taken at the first call with several and never grown; None takes half of
        what is free then, but no more than 64 whole contexts fill. shared: single prompts and streams are answered by
        the engine of those, too, where each finds again what an earlier one left of a beginning that they have in
        common, and streams that are read in turn go on at once.
        Raises: ValueError naming option, value and remedy.
        """
        # All prompts of a call wait in the engine: whoever calls holds them anyway.
        if not isinstance(shared, bool):
            raise ValueError(f"shared is {shared!r}; give True or False")
        config = EngineConfig(memory_bytes=memory_bytes, max_waiting=sys.maxsize, drafts=shared)
        self._checkpoint = load_checkpoint(
            model, dtype=dtype, device=device, threads=threads, compiled=compiled, drafter=drafter
        )
        self.path, self.model = self._checkpoint.path, self._checkpoint.model
        self.tokenizer, self.limits = self._checkpoint.tokenizer, self._checkpoint.limits
        self._costs = CostBook(self.model, self.limits, costs)
        self._together, self._is_shared = Together(self._checkpoint, self._costs, config), shared

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | None = None,
        *,
        grammar: Grammar | None = None,
        stop: str | Sequence[str] = (),
    ) -> list[Completion]:
        """Answer one prompt or several, in order.

        A prompt is text (encoded as it stands behind <bos>), a chat (a list of messages, or a Chat, rendered by
        the checkpoint's template) or token ids. With the `ends` of a Chat the answer is one canvas at most and fills
        the blank before them, of max_tokens or what the canvas leaves. grammar: one of `grammars`, which every answer
        follows: it is whole wherever a whole one fits into max_tokens. stop: strings, at most 16, of which the first to
        be complete ends an answer; its text ends before it. They are looked for in all that is written, thoughts too,
        control tokens left out.
        Several are answered at once, as many as memory holds, and share the prefixes that they or earlier ones have in
        common; each gets what it gets alone.
        Raises: ValueError before any work if a prompt is malformed or, with its max_tokens, exceeds context or memory;
        GenerationError, which holds the others' completions, if one of several, or of an LLM that is shared, fails
        after that.
        """
        params = params or SamplingParams()
        asked = [accept(prompt, params, self._checkpoint, grammar, stop) for prompt in list_prompts(prompts)]
        if self._is_shared or len(asked) > 1:
            return self._together.answer(asked)
        check_memory(asked[0], self._checkpoint)
        *_, completion = answer_alone(asked[0], self._checkpoint, self._costs)
        assert isinstance(completion, Completion)
        return [completion]

    def stream(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        grammar: Grammar | None = None,
        stop: str | Sequence[str] = (),
    ) -> Iterator[Event]:
        """Answer one prompt as draft and block events, then its Completion; see generate.

        Text that may yet be the beginning of a stop string is held back until it cannot be.
        Raises: as generate, before any work; if the LLM is shared, GenerationError while it is read.
        """
        asked = accept(prompt, params or SamplingParams(), self._checkpoint, grammar, stop)
        if self._is_shared:
            return self._together.stream(asked)
        check_memory(asked, self._checkpoint)
        return answer_alone(asked, self._checkpoint, self._costs)

    @cached_property
    def grammars(self) -> Grammars:
        """What compiles schemas, expressions and Lark for this checkpoint; reading a large vocabulary takes seconds.

        Raises: ValueError without a tokenizer.
        """
        if self.tokenizer is None:
            raise ValueError(f"{self.path} has no tokenizer.json, and a grammar is about text; add the file")
        return Grammars(self.tokenizer)

    def choose(
        self,
        prompt: Prompt,
        choices: Sequence[str],
        *,
        decoder: ChoosingDecoder = "diffusion",
        seed: int | None = None,
    ) -> list[Choice]:
        """How likely each of several texts is as the whole answer, among them, in the order in which they are given.

        diffusion: one denoise forward of a canvas with a blank, its noise from `seed`. ar: the causal pass of each,
        which has no seed.
        Raises: ValueError naming what is wrong with prompt or choices. Source: contract 32.
        """
        return choose(prompt, choices, decoder, seed, self._checkpoint)

    def infill(
        self,
        document: Sequence[str | Blank],
        params: SamplingParams | None = None,
        *,
        lengths: Lengths = "surplus",
        raw: bool = False,
    ) -> Infilled:
        """Fill the blanks of a document, a list of texts and blanks such as `[prefix, Blank(), suffix]`.

        What is given does not change. What stands behind a blank stands in its canvas, as far as it fits; what stands
        farther is quoted in the prompt, and without a chat template not seen. Blanks that do not fit one canvas
        together are filled from the left, one longer than a canvas piece by piece. `cut_span` and `cut_lines` make such
        a document of a text of which a part is to be written anew. lengths: how long middles are: "surplus", for a
        checkpoint that learnt to write pads behind them; "candidates", for any, denoises several lengths at once and
        lets the causal pass choose among them and what it writes itself. raw: without the chat template of an instruct
        checkpoint, and so without hints. params: its max_tokens are those of a blank that names none; see Blank. A
        grammar inside a blank is not offered.
        Raises: ValueError before any work naming what is wrong. Source: contract 33.
        """
        raw = raw or self._checkpoint.prompts.template is None
        return infill(document, params or SamplingParams(), lengths, self._checkpoint, raw=raw)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt. Raises: ValueError naming what is wrong with it, or what the checkpoint lacks."""
        return self._checkpoint.encode(prompt)

    def sampler(self, params: SamplingParams) -> Sampler:
        """The sampler of a request: with the checkpoint's own numbers unless the request names others."""
        return self._checkpoint.sampler(params)

    def parse(self, completion: Completion) -> Reply:
        """A completion's thoughts, calls of tools and content, up to its stop string if one ended it.

        Raises: ValueError without a tokenizer.
        """
        if self.tokenizer is None:
            raise ValueError(f"{self.path} has no tokenizer.json; read the completion's token ids")
        ids = completion.token_ids
        if completion.stop_reason is not None:
            ids = StopScanner(self.tokenizer, completion.stop_reason).push(ids)
        return parse_reply(ids, self.tokenizer, completion.opened)
