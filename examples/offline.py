"""Two prompts answered at once in this process: python examples/offline.py [MODEL]"""

import sys

from mezzotint import LLM, SamplingParams


def main(model: str = "lab") -> None:
    """Print both answers with what they cost."""
    llm = LLM(model)
    words = ("Ada keeps bees in Riga. Where?", "Ben keeps goats in Bonn. What?")
    prompts = [[{"role": "user", "content": text}] for text in words]
    for completion in llm.generate(prompts, SamplingParams(max_tokens=64, seed=1)):
        receipt = completion.receipt
        print(repr(completion.text), completion.finish_reason)
        print(f"  {receipt.output_tokens} tokens in {receipt.forwards} forwards, seed {receipt.seed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
