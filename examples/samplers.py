"""One prompt under each sampler: python examples/samplers.py [MODEL]"""

import sys

from mezzotint import LLM, SamplingParams
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.tasks import FAMILIES


def main(model: str = "lab") -> None:
    """Print what each sampler writes, and what it takes."""
    llm = LLM(model)
    example = FAMILIES["extract"].generate(0, "test")
    for sampler in SAMPLERS:
        params = SamplingParams(sampler=sampler, max_tokens=64, seed=1)
        [completion] = llm.generate(list(example.messages), params)
        receipt = completion.receipt
        print(f"{sampler}: {completion.text!r}")
        print(
            f"  {receipt.denoise_steps} of {receipt.step_budget} steps, "
            f"{receipt.tokens_per_forward:.1f} tokens per forward, {receipt.generation_s * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
