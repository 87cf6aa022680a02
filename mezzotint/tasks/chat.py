"""`chat`: short turns of small talk by exact rules, so that stops, empty answers and thoughts occur.

Test holds names, places, words and dates out (see `values`); at its odd seeds each wording, a frame with a core in
it, is held out too. A thinking example wants a thought before the answer, which may be worded freely.
"""

from random import Random
from typing import Any, NamedTuple

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.requests import draw_frame
from mezzotint.tasks.values import DATE, NAME, PLACE, draw_word
from mezzotint.text.parse import Reply

FRAMES = (
    "{core}",
    "Next. {core}",
    "All right. {core}",
    "Good. {core}",
    "Listen. {core}",
    "{core} Please.",
    "{core} Go ahead.",
    "So. {core}",
)
_COLORS = ("red", "green", "blue", "white", "black")
_NOUNS = ("door", "lamp", "car", "table", "book")


class Topic(NamedTuple):
    """One rule: what the user may say, the right answer, and the thought that leads to it.

    told: what the user said at the beginning, and the answer then. mute: the model has to be silent meanwhile.
    """

    cores: tuple[str, ...]
    answer: str
    thought: str
    told: tuple[str, str] = ("", "")
    mute: bool = False


TOPICS: dict[str, Topic] = {
    "greet": Topic(
        ("Hello, I am {name}.", "Good day from {name}.", "This is {name} here."), "Hello, {name}.", "{name} greets me."
    ),
    "leave": Topic(
        ("I am {name} and have to go.", "Good night from {name}.", "{name} leaves now."),
        "Goodbye, {name}.",
        "{name} leaves.",
    ),
    "thank": Topic(
        ("Thank you for the {noun}, {word}.", "Many thanks from {place}.", "Thanks, {word}."),
        "You are welcome.",
        "The user thanks me.",
    ),
    "yes": Topic(
        ("The {noun} of {word} is {color}. Is it {color}?", "{word} is a {color} {noun}. Is {word} {color}?"),
        "Yes.",
        "It is {color}.",
    ),
    "no": Topic(
        ("The {noun} of {word} is {color}. Is it {other}?", "{word} is a {color} {noun}. Is {word} {other}?"),
        "No.",
        "It is {color}.",
    ),
    "where": Topic(
        ("{name} lives in {place}. Where does {name} live?", "{name} went to {place}. Where is {name}?"),
        "In {place}.",
        "{name} is in {place}.",
    ),
    "more": Topic(
        ("{word} has {low} or {high}. Which is more?", "In {place} we saw {high} and {low}. Which is more?"),
        "{high}.",
        "{high} is more than {low}.",
    ),
    "twice": Topic(("Say {word} twice.", "Write {word} two times."), "{word} {word}", "The word is {word}."),
    "today": Topic(
        ("Today is {date}. What day is it?", "It was {date} last week. What was the day?"),
        "The day is {date}.",
        "The day is {date}.",
    ),
    "silent": Topic(
        ("Say nothing about {place}.", "Do not answer {name}.", "Repeat nothing of {word}.", "Be silent, {word}."),
        "",
        "No answer is wanted.",
    ),
    "recall": Topic(
        ("What is my name?", "Who am I?", "Tell me my name."),
        "Your name is {name}.",
        "The user is {name}.",
        told=("My name is {name}.", "Hello, {name}."),
    ),
    "wait": Topic(
        ("Hello {name}.", "Are you there?", "What about {place}?"),
        "",
        "I wait for {word}.",
        told=("Be silent until I say {word}.", ""),
        mute=True,
    ),
    "wake": Topic(
        ("{word}.", "Now {word}.", "I say {word}."),
        "I am here.",
        "The word {word} came.",
        told=("Be silent until I say {word}.", ""),
        mute=True,
    ),
}
_SMALL_TALK = ("thank", "yes", "no", "where", "more", "twice")  # none of them tells or asks who the user is


def generate(seed: int, split: Split) -> Example:
    """Draw the last turn of a chat of one to three; its variant names the rule, `think` behind it if thoughts are due.

    Returns: the example; a pure function of seed and split.
    Raises: ValueError for an unknown split.
    """
    rng = example_random("chat", split, seed)
    wording: Split = "test" if split == "test" and seed % 2 else "train"
    variant = rng.choice(list(TOPICS))
    topic, slots = TOPICS[variant], _draw_slots(rng, split)
    messages = _exchange(topic.told[0].format(**slots), topic.told[1].format(**slots)) if topic.told[0] else []
    for _ in range(rng.choice((0, 0, 1))):
        between = TOPICS[rng.choice(_SMALL_TALK)]
        others = _draw_slots(rng, split)
        answer = "" if topic.mute else between.answer.format(**others)
        messages += _exchange(_word(rng, between, wording).format(**others), answer)
    thinking = rng.random() < 0.3
    return Example(
        family="chat",
        messages=(*messages, {"role": "user", "content": _word(rng, topic, wording).format(**slots)}),
        answer=topic.answer.format(**slots),
        reasoning=topic.thought.format(**slots) if thinking else "",
        thinking=thinking,
        variant=f"{variant} think" if thinking else variant,
    )


def accept(example: Example, reply: Reply) -> bool:
    """Check that `reply` says exactly the right words, or none, and has thoughts if and only if they are due.

    White space around the words is allowed, thoughts are not compared, any fault in how the reply is written or
    any call refuses it.
    Returns: true for a right reply only.
    """
    return (
        not reply.faults
        and not reply.calls
        and reply.content.strip() == example.answer
        and bool(reply.reasoning.strip()) == example.thinking
    )


def _draw_slots(rng: Random, split: Split) -> dict[str, str]:
    color, other = rng.sample(_COLORS, 2)
    low = rng.randint(2, 90)
    return {
        "name": NAME.draw(rng, split),
        "word": draw_word(rng, split),
        "place": PLACE.draw(rng, split),
        "date": DATE.draw(rng, split),
        "noun": rng.choice(_NOUNS),
        "color": color,
        "other": other,
        "low": str(low),
        "high": str(rng.randint(low + 1, 99)),
    }


def _word(rng: Random, topic: Topic, wording: Split) -> str:
    core = rng.choice(topic.cores)
    return draw_frame(rng, FRAMES, core, wording).format(core=core)


def _exchange(user: str, assistant: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


CHAT = Family("chat", generate, accept)
