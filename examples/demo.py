"""Two held-out tasks, each by three decoders from the same weights: python examples/demo.py [MODEL]"""

import sys
import time
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from mezzotint import LLM, SamplingParams
from mezzotint.cli.watch import watching
from mezzotint.tasks import FAMILIES

AR = SamplingParams(max_tokens=64, decoder="ar", temperature=0)
RUNS = [SamplingParams(max_tokens=64, seed=0), AR, replace(AR, decoder="verified")]


def main(model: str = "lab") -> None:
    """Show each canvas settle, what the task's verifier says of the text, and what the text cost."""
    console, llm = Console(highlight=False), LLM(model)
    table = Table("task", "decoder", "right", "steps", "forwards", "tokens/forward", "seconds", box=None)
    for name in ("extract", "parallel_rule"):
        example = FAMILIES[name].generate(2, "test")
        console.print(f"\n{example.messages[0]['content']}", style="bold", markup=False, soft_wrap=True)
        for params in RUNS:
            [answer] = llm.generate(example.messages, params)
            if params.decoder == "diffusion":  # once more for the eye: the times below are free of it
                with watching(console, llm.tokenizer, params.max_tokens) as draw:
                    for event in llm.stream(example.messages, params):
                        draw(event)
                        time.sleep(0.1 * console.is_terminal)
            console.print(f"{params.decoder}: {answer.text}", markup=False, soft_wrap=True)
            cost, right = answer.receipt, FAMILIES[name].accept(example, llm.parse(answer))
            figures = cost.forwards, cost.tokens_per_forward, cost.prefill_s + cost.generation_s
            steps = f"{sum(cost.denoise_steps)} of {cost.step_budget * len(cost.denoise_steps)}"
            table.add_row(name, params.decoder, str(right), steps, *(f"{figure:.3g}" for figure in figures))
    console.print(table)


main(*sys.argv[1:])
