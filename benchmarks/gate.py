"""What the presets give, what each signal of the gate catches of planted faults, and how often it cries wolf.

python -m benchmarks.gate --compile --n 200
python -m benchmarks.gate --compile --calibrate 300    # writes gate.json beside the weights, and measures nothing else
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.arguments import names_of, threads
from benchmarks.machine import describe_run
from benchmarks.report import markdown_table, run_table
from mezzotint.decoding.alarms import GateLimits, find_surprise, measure_surprise
from mezzotint.evaluate.config import BLANKS, EvaluateConfig
from mezzotint.evaluate.interval import wilson_interval
from mezzotint.evaluate.run import answer_limit, answer_prompts
from mezzotint.llm import LLM, PRESETS, SamplingParams
from mezzotint.llm.checkpoint import read_bounds
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.inspect import TextInspector
from mezzotint.text.parse import encode_reply, end_of_reply
from mezzotint.text.prompt import Chat
from mezzotint.text.tokenizer import Tokenizer

SPOKEN = tuple(task for task in FAMILIES if task not in BLANKS)
USUAL = ("extract", "repair", "call")
QUANTILE = 0.995  # of blocks that ar draws; each of the two statistics of surprise gets half of the rest
MUTATIONS = ("none", "swap", "duplicate", "drop", "digit", "control")


class Case(NamedTuple):
    """A prompt and an answer to it, in ids, the end of turn included."""

    prompt: list[int]
    answer: list[int]


def main(arguments: Sequence[str]) -> None:
    """Measure, or calibrate, and print Markdown."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    llm = LLM(options.model, compiled=options.compile)
    if options.calibrate:
        calibrate(llm, options.calibrate)
        return
    print(run_table(describe_run(arguments, "gate")), "", sep="\n")
    print(preset_table(llm, options.tasks, options.n), "", sep="\n")
    print(recall_table(llm, options.tasks, options.n), "", sep="\n")
    cases = [case for task in options.tasks for case in draw_cases(llm, task, options.n, temperature=0.0)]
    print(
        markdown_table(["text of greedy ar", "in alarm", "95 %", "n"], [alarm_row(llm, cases, read_bounds(llm.path))])
    )


def preset_table(llm: LLM, tasks: Sequence[str], n: int) -> str:
    """A row for each preset over all tasks, and one for each of them; the ratio is to the preset before."""
    config = EvaluateConfig(tasks=tuple(tasks), decoders=(), presets=tuple(PRESETS), n=n)
    told: dict[tuple[str, str], list[Any]] = {}
    for answer in answer_prompts(llm, config):
        for name in ("all", answer.prompt.task):
            told.setdefault((name, answer.arm.preset or ""), []).append(answer)
    rows, before = [], dict[str, float]()
    for (task, preset), answers in sorted(told.items(), key=lambda item: (item[0][0], list(PRESETS).index(item[0][1]))):
        receipts = [answer.completion.receipt for answer in answers]
        passed = sum(answer.accepted for answer in answers)
        seconds = float(np.mean([receipt.prefill_s + receipt.generation_s for receipt in receipts]))
        low, high = wilson_interval(passed, len(answers))
        ratio = f"{seconds / before[task]:.2f}" if task in before else "–"
        before[task] = seconds
        steps = np.mean([sum(receipt.denoise_steps) for receipt in receipts])
        encodes = np.mean([receipt.encodes for receipt in receipts])
        mended = np.mean([bool(receipt.interventions) for receipt in receipts])
        rate, span = f"{passed / len(answers):.1%}", f"{low:.1%} – {high:.1%}"
        cells = (rate, span, f"{steps:.1f}", f"{encodes:.1f}", f"{seconds:.3f}", ratio, f"{mended:.0%}")
        rows.append([task, preset, str(len(answers)), *cells])
    head = ["task", "preset", "n", "passes", "95 %", "steps", "encodes", "seconds", "× before", "mended"]
    return markdown_table(head, rows)


def recall_table(llm: LLM, tasks: Sequence[str], n: int) -> str:
    """Of right answers with one planted fault each, the share that text and surprise notice."""
    bounds, counts = read_bounds(llm.path), {name: [0, 0, 0, 0] for name in MUTATIONS}
    for task in tasks:
        for seed in range(n):
            case = _right_answer(llm, FAMILIES[task].generate(seed, "test"))
            for name in MUTATIONS:
                if (mutated := mutate(case.answer, name, Random(seed), _tokenizer(llm))) is None:
                    continue
                seen = look(llm, Case(case.prompt, mutated), bounds)
                told = (1, bool(seen[0]), bool(seen[1]), bool(seen[0] or seen[1]))
                counts[name] = [old + int(new) for old, new in zip(counts[name], told, strict=True)]
    rows = [[name, str(n), *(f"{seen / max(1, n):.1%}" for seen in rest)] for name, (n, *rest) in counts.items()]
    return markdown_table(["planted", "answers", "text", "surprise", "either"], rows)


def look(llm: LLM, case: Case, bounds: GateLimits) -> tuple[list[str], list[str]]:
    """What alarms by its text, and by its surprise, of the blocks of an answer."""
    inspector = TextInspector(_tokenizer(llm), case.prompt, is_turn=True)
    width, text, surprise = llm.limits.canvas_length, list[str](), list[str]()
    weighed = weigh(llm, case)
    for start in range(0, len(case.answer), width):
        block, borders = case.answer[start : start + width], list(range(0, start, width))
        is_whole = start + width >= len(case.answer)
        found = inspector.inspect(case.answer[:start], borders, block, is_whole=is_whole)
        text += [alarm.kind for alarm in found]
        surprise += [alarm.kind for alarm in find_surprise(weighed[start : start + width], bounds)]
    return text, surprise


@torch.inference_mode()
def weigh(llm: LLM, case: Case) -> Tensor:
    """The surprise of each token of an answer."""
    ids = [*case.prompt, *case.answer]
    hidden = llm.model.encode(torch.tensor([ids]), llm.model.new_kv(1, len(ids)))[0]
    return measure_surprise(llm.model.logits(hidden[len(case.prompt) - 1 : -1]), case.answer)


def mutate(answer: Sequence[int], name: str, rng: Random, tokenizer: Tokenizer) -> list[int] | None:
    """An answer with one fault; None where it has no place for it."""
    ids, last = list(answer), len(answer) - 1  # the end of turn stays
    place = rng.randrange(max(1, last - 1))
    if name == "swap":
        if ids[place] == ids[place + 1] or place + 1 >= last:
            return None
        ids[place : place + 2] = ids[place + 1], ids[place]
    elif name == "duplicate":
        ids[place:place] = [ids[place]]
    elif name == "drop":
        del ids[place]
    elif name == "digit":
        digits = {id: tokenizer.token_bytes(id) for id in ids[:last] if tokenizer.token_bytes(id).isdigit()}
        pairs = [
            (one, other) for one, id in enumerate(ids) for other in range(one) if id in digits and ids[other] in digits
        ]
        pairs = [(one, other) for one, other in pairs if ids[one] != ids[other]]
        if not pairs:
            return None
        one, other = rng.choice(pairs)
        ids[one], ids[other] = ids[other], ids[one]
    elif name == "control":
        ids.insert(place, tokenizer.control["<mask>"])
    return ids


def draw_cases(llm: LLM, task: str, n: int, *, temperature: float) -> Iterator[Case]:
    """What ar writes at held-out prompts."""
    for seed in range(n):
        example = FAMILIES[task].generate(seed, "test")
        limit = answer_limit(llm, example)
        asked = SamplingParams(decoder="ar", temperature=temperature, max_tokens=limit, seed=seed)
        chat = _chat(example)
        [completion] = llm.generate(chat, asked)
        yield Case(llm.encode(chat), completion.token_ids)


def alarm_row(llm: LLM, cases: Sequence[Case], bounds: GateLimits) -> list[str]:
    """How many answers of ar are in alarm, by any signal."""
    accused = sum(any(look(llm, case, bounds)) for case in cases)
    low, high = wilson_interval(accused, len(cases))
    return ["any signal", f"{accused / len(cases):.1%}", f"{low:.1%} – {high:.1%}", str(len(cases))]


def calibrate(llm: LLM, n: int) -> None:
    """Let ar draw n answers over all tasks, and write what 99.5 % of their blocks stay below as gate.json.

    They are drawn at the temperature at which a canvas takes its last steps.
    """
    cold, usual, width = llm.sampler(SamplingParams()).t_min, GateLimits(), llm.limits.canvas_length
    sums, spikes = list[float](), list[int]()
    for number, task in enumerate(SPOKEN):
        share = n // len(SPOKEN) + (number < n % len(SPOKEN))
        for case in draw_cases(llm, task, share, temperature=cold):
            for block in weigh(llm, case).split(width):
                sums.append(float(block.unfold(0, min(3, len(block)), 1).sum(-1).max()))
                spikes.append(int((block > usual.spike).sum()))
    level = 1 - (1 - QUANTILE) / 2
    found = GateLimits(
        surprise=round(max(0.1, float(np.quantile(sums, level))), 2), spikes=int(np.quantile(spikes, level))
    )
    file = llm.path / "gate.json"
    file.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")
    print(f"{file}: {asdict(found)} from {len(sums)} blocks")


def _right_answer(llm: LLM, example: Example) -> Case:
    tokenizer = _tokenizer(llm)
    ids = [*encode_reply(example.reply, tokenizer), end_of_reply(example.reply, tokenizer)]
    return Case(llm.encode(_chat(example)), ids)


def _chat(example: Example) -> Chat:
    return Chat(messages=example.messages, tools=example.tools, thinking=example.thinking, begins=example.begins)


def _tokenizer(llm: LLM) -> Tokenizer:
    assert llm.tokenizer is not None  # lab has one
    return llm.tokenizer


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="lab")
    parser.add_argument("--tasks", type=names_of(SPOKEN), default=USUAL, help="some, with commas")
    parser.add_argument("--n", type=int, default=200, help="prompts of each task")
    parser.add_argument("--threads", type=threads, help="torch's threads; default: torch's own choice")
    parser.add_argument("--compile", action="store_true", help="run as machine code")
    parser.add_argument("--calibrate", type=int, metavar="N", help="write gate.json from N answers of ar, and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
