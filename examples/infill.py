"""A blank filled, a span written anew, one of two answers chosen: python examples/infill.py [MODEL]"""

import sys

from mezzotint import LLM, SamplingParams
from mezzotint.llm import Blank, cut_span

CODE = "def __init__(self, name, value):\n    self.name = name\n    self.value = name\n"
WRONG = "self.value = name"
QUESTION = "Labels: red, blue.\nThe cup is red. The hat is blue.\nWhich label has the hat?"


def main(model: str = "lab") -> None:
    """Print both texts, of which nothing given has changed, and how likely each answer is."""
    llm, params = LLM(model), SamplingParams(max_tokens=12, seed=1)
    document: list[str | Blank] = ["def close(self):\n    self.stream.close()\n    self.stream = ", Blank(), "\n"]
    filled = llm.infill(document, params, lengths="candidates")
    print(f"filled with {filled.middles[0].text!r}:\n{filled.text}")
    start = CODE.index(WRONG)
    anew = llm.infill(cut_span(CODE, start, start + len(WRONG)), params, lengths="candidates")
    print(f"written anew as {anew.middles[0].text!r}:\n{anew.text}")
    for choice in llm.choose([{"role": "user", "content": QUESTION}], ["red", "blue"], seed=1):
        print(f"{choice.text}: {choice.probability:.0%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
