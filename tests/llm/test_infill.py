"""Documents filled by a model that knows nothing: what is given stays, byte for byte, and what it costs is told."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mezzotint import LLM, SamplingParams
from mezzotint.decoding.infill import Filled, fill_canvas
from mezzotint.decoding.program import drive
from mezzotint.engine.runner import Runner
from mezzotint.llm import Blank, Infilled
from mezzotint.llm.document import Unfinished
from mezzotint.model.kv import kv_bytes
from mezzotint.text.document import cut_span, take_apart
from tests.decoding.one_by_one import run_one_by_one
from tests.llm.tiny import BUDGET, CANVAS, CONTEXT, END, V

PARAMS = SamplingParams(seed=3)
CODE = "def lay(most):\n    return f'{most:>4}'  # ok\n"
WORDS = "naïve 日本語 🙂🙂 и, déjà-vu;\r\n\tend"


def fill(llm: LLM, document: Any, params: SamplingParams = PARAMS, **how: Any) -> Infilled:
    done = llm.infill(document, params, raw=True, **how)
    untimed = replace(done.receipt, prefill_s=0.0, generation_s=0.0)
    return replace(done, receipt=untimed)


def cuts(text: str) -> Iterator[tuple[str, str, str]]:
    rng = Random(text)
    for start in range(len(text) + 1):
        end = min(len(text), start + rng.randrange(4))
        yield text[:start], text[start:end], text[end:]


@pytest.mark.parametrize("text", [CODE, WORDS])
def test_given_text_never_changes_wherever_it_is_cut(llm: LLM, text: str) -> None:
    for before, held, behind in cuts(text):
        done = fill(llm, cut_span(text, len(before), len(before + held), Blank(max_tokens=3)))
        [middle] = done.middles
        assert done.text == before + middle.text + behind
        assert done.text.encode() == before.encode() + middle.text.encode() + behind.encode()
        assert 0 <= middle.tokens <= 3
        assert done.receipt.output_tokens == middle.tokens


def test_the_tokens_around_a_middle_spell_what_was_given(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model saw is the document: the ids of prompt, seams and canvas spell it with its middle."""
    assert llm.tokenizer is not None
    seen, real = list[tuple[Any, Any]](), Unfinished.take

    def take(self: Any, sheet: Any, filled: Any) -> Any:
        seen.append((sheet, filled))
        return real(self, sheet, filled)

    monkeypatch.setattr(Unfinished, "take", take)
    changed = 0
    for before, _, behind in cuts(WORDS):
        done = fill(llm, [before, Blank(max_tokens=3), behind])
        [(sheet, [one])] = seen
        ids = (*sheet.prompt, *one.before, *one.tokens, *one.after, *sheet.gaps[0].behind)
        assert llm.tokenizer.decode(ids) == done.text
        assert ids[-1] == llm.tokenizer.eos_id, "the document ends there"
        given = sheet.gaps[0]
        shared = (one.before != given.before.ids) + (one.after != given.after.ids)
        assert done.middles[0].tokens == len(one.tokens) + shared
        changed += (one.before, one.after) != (sheet.gaps[0].before.ids, sheet.gaps[0].after.ids)
        seen.clear()
    assert changed > 5, "a seam is written otherwise now and then"


def test_no_control_token_is_part_of_a_middle(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    assert llm.tokenizer is not None
    pad, own = llm.tokenizer.pad_id, llm.tokenizer.encode_text("x")[0]
    real = llm.model.read

    def read(hidden: Any, **options: Any) -> Any:
        reading = real(hidden, **options)
        ids = reading.argmax.new_tensor([own, pad, END, own, pad, pad, pad, pad])[: len(hidden)]
        return reading._replace(argmax=ids, proposal=ids)

    monkeypatch.setattr(llm.model, "read", read)
    done = fill(llm, ["", Blank(max_tokens=5), "\n"])
    assert [(middle.text, middle.tokens, middle.finish_reason) for middle in done.middles] == [("xx", 2, "stop")]


def test_several_blanks_are_filled_in_one_canvas_or_from_the_left(llm: LLM) -> None:
    close = fill(llm, ["a = ", Blank(max_tokens=1), ";", Blank(max_tokens=1), "\n"])
    assert len(close.middles) == 2
    assert len(close.receipt.denoise_steps) == 2, "the seams are read, then one canvas denoised"
    far = fill(llm, ["a = ", Blank(max_tokens=3), CODE, Blank(max_tokens=3), CODE])
    assert far.text == f"a = {far.middles[0].text}{CODE}{far.middles[1].text}{CODE}"
    assert len(far.receipt.denoise_steps) == 4
    assert far.receipt.encodes == 1, "the second canvas encodes what has come before it"


def test_a_later_canvas_sees_what_filled_the_first(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, real = list[list[int]](), fill_canvas

    def noting(prompt: list[int], *given: Any) -> Any:
        prompts.append(prompt)
        return real(prompt, *given)

    monkeypatch.setattr("mezzotint.llm.infill.fill_canvas", noting)
    done = fill(llm, ["a = ", Blank(max_tokens=3), CODE, Blank(max_tokens=3), CODE])
    assert llm.tokenizer is not None
    first, second = map(llm.tokenizer.decode, prompts)
    assert "a = ".startswith(first)
    assert f"a = {done.middles[0].text}{CODE}".startswith(second)
    assert len(second) > len(CODE)


def test_what_waits_for_a_later_canvas_is_no_end(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    hows, behind = list[Any](), list[Any]()

    def noting(prompt: Any, held: Any, gaps: Any, sizes: Any, how: Any) -> Any:
        hows.append(how)
        behind.append((*gaps[-1].after.ids, *gaps[-1].behind))
        return fill_canvas(prompt, held, gaps, sizes, how)

    monkeypatch.setattr("mezzotint.llm.infill.fill_canvas", noting)
    fill(llm, ["a = ", Blank(max_tokens=6), ";\n", Blank(max_tokens=6), "\n"])
    assert llm.tokenizer is not None
    assert [how.fill_id is None for how in hows] == [True, False]
    assert [llm.tokenizer.decode(ids, keep_control=True) for ids in behind] == [";\n", "\n<eos>"]
    assert hows[0].randomness(0).first_canvas().tolist() != hows[1].randomness(0).first_canvas().tolist()


def test_of_a_blank_longer_than_its_canvas_three_quarters_are_kept_or_less_to_a_line_break(llm: LLM) -> None:
    assert llm.tokenizer is not None
    for text, kept in (("w x\ny z", "w x\n"), ("w x y z", "w x y"), ("日", "日"[:0])):
        parts = take_apart(["a = ret", Blank(max_tokens=20), CODE])
        unfinished = Unfinished(parts, [20], CANVAS, llm._checkpoint, raw=True)
        sheet = unfinished.lay()
        gap, tokens = sheet.gaps[0], tuple(llm.tokenizer.encode_text(text))
        unfinished.take(sheet, (Filled(gap.before.ids, tokens, gap.after.ids, is_full=True),))
        assert unfinished.middles == [kept]
        assert unfinished.lay().gaps[0].most == 20 - unfinished.tokens[0]
        assert not unfinished.is_done


def test_a_blank_longer_than_a_canvas_is_filled_piece_by_piece(llm: LLM) -> None:
    done = fill(llm, ["a = ", Blank(max_tokens=20), CODE])
    [middle] = done.middles
    assert done.text == f"a = {middle.text}{CODE}"
    assert 0 < middle.tokens <= 20
    assert middle.finish_reason == "length"
    assert sum(done.receipt.block_tokens) == done.receipt.output_tokens == middle.tokens
    assert len(done.receipt.denoise_steps) > 4


def test_the_same_seed_fills_alike(llm: LLM) -> None:
    document = ["a = ", Blank(max_tokens=3), "\n"]
    for lengths in ("surplus", "candidates"):
        assert fill(llm, document, lengths=lengths) == fill(llm, document, lengths=lengths)


@pytest.fixture
def shared(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The forwards of rows that `llm` has run since the test began, and how many rows each had."""
    ran: list[tuple[str, int]] = []
    encode, denoise = Runner.encode, Runner.denoise

    def noting_encode(self: Runner, pieces: Any) -> Any:
        ran.append(("encode", len(pieces)))
        return encode(self, pieces)

    def noting_denoise(self: Runner, steps: Any) -> Any:
        ran.append(("denoise", len(steps)))
        return denoise(self, steps)

    monkeypatch.setattr(Runner, "encode", noting_encode)
    monkeypatch.setattr(Runner, "denoise", noting_denoise)
    return ran


def test_all_candidates_take_a_step_in_one_forward_and_the_receipt_counts_those(
    llm: LLM, shared: list[tuple[str, int]]
) -> None:
    done = fill(llm, ["a = ", Blank(max_tokens=4), "\n"], lengths="candidates")
    assert done.text == f"a = {done.middles[0].text}\n"
    denoised = [rows for kind, rows in shared if kind == "denoise"]
    assert denoised[:3] == [1, 3, 3], "seams, of which one holds a token of the four; then all lengths for two steps"
    assert len(denoised) <= 3 + BUDGET, "the best go on together"
    assert sum(done.receipt.denoise_steps) == len(denoised)
    assert done.receipt.encodes + 1 == len(shared) - len(denoised)
    compared = [rows for kind, rows in shared if kind == "encode" and rows > 1]
    assert len(compared) == 1
    assert done.receipt.step_budget == BUDGET


def test_rows_are_refused_where_memory_does_not_hold_them(
    llm: LLM, shared: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = kv_bytes(llm.model.config, 1, llm.model.dtype)
    monkeypatch.setattr("mezzotint.llm.entry.available_bytes", lambda device: CONTEXT * one)
    document = ["a = ", Blank(max_tokens=3), "\n"]
    assert fill(llm, document).text
    shared.clear()
    with pytest.raises(ValueError, match="shorten the prompt"):
        fill(llm, document, lengths="candidates")
    assert not shared


@pytest.mark.parametrize("lengths", ["surplus", "candidates"])
def test_rows_side_by_side_fill_what_the_plain_loop_fills_one_after_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lengths: Any
) -> None:
    llm = LLM(str(folder), dtype="float64")
    documents = [["a = ", Blank(max_tokens=4), CODE], ["a", Blank(max_tokens=2), "b;", Blank(max_tokens=2), "\n"]]
    documents.append([WORDS, Blank(max_tokens=3), CODE, Blank(max_tokens=4)])
    together = [fill(llm, document, lengths=lengths) for document in documents]

    class Plain:
        """Keys and values of one row that forgets everything between two canvases."""

        def __init__(self, model: Any, capacity: int, rows: int, width: int) -> None:
            self._model, self._capacity = model, capacity

        def hold(self, prompt: list[int]) -> int:
            return 0

        def run(self, program: Any) -> Any:
            return drive(run_one_by_one(program), self._model, self._model.new_kv(1, self._capacity))

    monkeypatch.setattr("mezzotint.llm.infill.Rows", Plain)
    assert [fill(llm, document, lengths=lengths) for document in documents] == together


def test_a_blank_may_stand_at_either_end_and_be_all_there_is(llm: LLM) -> None:
    for document in ([Blank(max_tokens=3), CODE], [CODE, Blank(max_tokens=3)], [Blank(max_tokens=3)]):
        done = fill(llm, document)
        assert done.text == "".join(part if isinstance(part, str) else done.middles[0].text for part in document)


def test_what_a_blank_may_have_is_its_own_or_the_requests_or_its_share(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms, real = list[list[int]](), fill_canvas

    def noting(prompt: Any, held: Any, gaps: Any, sizes: list[int], how: Any) -> Any:
        rooms.append(sizes)
        return real(prompt, held, gaps, sizes, how)

    monkeypatch.setattr("mezzotint.llm.infill.fill_canvas", noting)
    fill(llm, ["", Blank(), "\n"])
    fill(llm, ["", Blank(), "\n"], replace(PARAMS, max_tokens=2))
    fill(llm, ["", Blank(max_tokens=4), "\n"], replace(PARAMS, max_tokens=2))
    assert rooms == [[CANVAS * 3 // 4], [2], [4]]


def test_what_lies_beyond_the_canvas_is_quoted_with_hints_to_a_model_that_is_asked(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, real = list[list[int]](), fill_canvas

    def noting(prompt: list[int], *given: Any) -> Any:
        prompts.append(prompt)
        return real(prompt, *given)

    monkeypatch.setattr("mezzotint.llm.infill.fill_canvas", noting)
    done = llm.infill(["one ", Blank(max_tokens=3, hint="two"), " three four five six seven"], PARAMS)
    assert llm.tokenizer is not None
    told = llm.tokenizer.decode(prompts[0])
    assert "Fill in the blank.\nHint: two\nIt ends with:\n" in told
    assert "six seven" in told
    assert "three" not in told
    assert done.text == f"one {done.middles[0].text} three four five six seven"
    short = llm.infill(["one ", Blank(max_tokens=3), " two"], PARAMS)
    assert "It ends with" not in llm.tokenizer.decode(prompts[1])
    assert short.receipt.prompt_tokens == len(prompts[1])


@pytest.mark.parametrize(
    ("params", "how", "told"),
    [
        (
            replace(PARAMS, decoder="ar"),
            {},
            "decoder is 'ar', which sees only what stands before",
        ),
        (replace(PARAMS, min_tokens=2), {}, "min_tokens is 2, which blanks do not use"),
        (replace(PARAMS, drop_after_end=True), {}, "drop_after_end is True"),
        (replace(PARAMS, ignore_eos=True), {}, "ignore_eos is True"),
        (replace(PARAMS, logprobs=1), {}, "logprobs is 1"),
        (replace(PARAMS, thinking_budget=0), {}, "thinking_budget is 0"),
        (replace(PARAMS, logit_bias={V: 1.0}), {}, f"logit_bias names token id {V}"),
        (replace(PARAMS, canvas_length=CANVAS + 1), {}, "canvas_length is 9"),
        (PARAMS, {"lengths": "guess"}, "lengths is 'guess'; choose one of surplus, candidates"),
    ],
)
def test_options_that_no_blank_uses_are_refused(
    llm: LLM, shared: list[tuple[str, int]], params: SamplingParams, how: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        fill(llm, ["a", Blank(max_tokens=3), "b"], params, **how)
    assert not shared


def test_a_grammar_inside_a_blank_is_not_offered(llm: LLM) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'grammar'"):
        llm.infill(["a", Blank(), "b"], grammar=llm.grammars.from_regex("a"))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'grammar'"):
        Blank(grammar=llm.grammars.from_regex("a"))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("document", "how", "told"),
    [
        (["a"], {}, "the document has no blank"),
        (["a", Blank(max_tokens=30), "b"], {"lengths": "candidates"}, "a blank may have 30 tokens, but .* at most 4"),
        (
            ["a", Blank(max_tokens=3), CODE, Blank(max_tokens=30), "b"],
            {"lengths": "candidates"},
            "a blank may have 30 tokens",
        ),
        (["a", Blank(max_tokens=3, hint="x")], {}, "blank 1 has a hint, which only a prompt can tell"),
        ([CODE * 9, Blank(max_tokens=3)], {}, f"exceed the context of {CONTEXT}"),
        (["a", Blank(max_tokens=200), "b"], {}, f"exceed the context of {CONTEXT}"),
        (["a", Blank(max_tokens=2), CODE * 9, Blank(max_tokens=2)], {}, f"exceed the context of {CONTEXT}"),
    ],
)
def test_documents_that_cannot_be_filled_are_refused_before_any_work(
    llm: LLM, shared: list[tuple[str, int]], document: Any, how: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        fill(llm, document, **how)
    assert not shared
