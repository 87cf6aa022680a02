"""Two held-out tasks, each by three decoders from the same weights: python examples/demo.py [MODEL]"""

import sys
import time
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from mezzotint import LLM, Completion, SamplingParams
from mezzotint.cli.watch import watching
from mezzotint.tasks import FAMILIES

GREEDY = SamplingParams(max_tokens=64, decoder="ar", temperature=0)
RUNS = [SamplingParams(max_tokens=64, seed=0), GREEDY, replace(GREEDY, decoder="verified")]


def main(model: str = "lab") -> None:
    """Show each canvas settle, what the task's verifier says of the text, and what the text cost."""
    console, llm = Console(highlight=False), LLM(model)
    table = Table("task", "decoder", "accepted", "steps", "forwards", "tokens/forward", "seconds", box=None)
    for name in ("extract", "parallel_rule"):
        example = FAMILIES[name].generate(2, "test")
        console.print(f"\n{example.messages[0]['content']}", style="bold", markup=False, soft_wrap=True)
        for params in RUNS:
            *drafts, completion = llm.stream(list(example.messages), params)
            assert isinstance(completion, Completion)
            if params.decoder == "diffusion":  # drawn afterwards: the times below are free of it
                with watching(console, llm.tokenizer, params.max_tokens) as draw:
                    for event in drafts:
                        draw(event)
                        time.sleep(0.1 * console.is_terminal)
            console.print(f"{params.decoder}: {completion.text}", markup=False, soft_wrap=True)
            receipt, accepted = completion.receipt, FAMILIES[name].accept(example, llm.parse(completion))
            steps = f"{sum(receipt.denoise_steps)} of {receipt.step_budget * len(receipt.denoise_steps)}"
            costs = receipt.forwards, receipt.tokens_per_forward, receipt.prefill_s + receipt.generation_s
            table.add_row(name, params.decoder, str(accepted), steps, *(f"{cost:.3g}" for cost in costs))
    console.print(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
