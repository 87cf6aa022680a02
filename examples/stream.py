"""An answer in drafts, which may change, and blocks, which do not: python examples/stream.py [MODEL]"""

import sys

from mezzotint import LLM, BlockEvent, Completion, DraftEvent, SamplingParams


def main(model: str = "lab") -> None:
    """Print a line an event."""
    llm = LLM(model)
    for event in llm.stream([{"role": "user", "content": "Hello"}], SamplingParams(max_tokens=64, seed=1)):
        match event:
            case DraftEvent():
                print(f"step {event.step} of {event.step_budget}: {sum(event.accepted)} positions accepted")
            case BlockEvent(token_ids=[]):
                print(f"the rest of a character that was cut short: {event.text!r}")
            case BlockEvent():
                print(f"block {event.block} is final after {event.steps} steps: {event.text!r}")
            case Completion():
                print(f"the whole answer, which ended by {event.finish_reason}: {event.text!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
