"""Sentences that `choose` is worded with, and which of them train never uses; what they tell is decided there.

A sentence is a frame with a noun in place. Of the four frames that tell one thing, each noun has one that train never
shows with it; every frame and every noun also occurs in train, in other company.
"""

NOUNS = ("card", "room", "seat", "badge", "guest", "parcel", "ticket", "lamp", "boat", "letter")
# What a rule can tell, and with a question mark what it asks. A sentence names its noun and ends with its only stop.
FRAMES: dict[str, tuple[str, ...]] = {
    "own": (
        "{Noun} {x} is {label}.",
        "The {noun} {x} has {label}.",
        "Put {noun} {x} under {label}.",
        "Give {label} to {noun} {x}.",
    ),
    "own?": (
        "Which label has {noun} {x}?",
        "Where is {noun} {x}?",
        "What is the label of {noun} {x}?",
        "Under which label is the {noun} {x}?",
    ),
    "same": (
        "{Noun} {y} is like {x}.",
        "The {noun} {y} goes with {x}.",
        "Treat {noun} {y} as {x}.",
        "Keep {noun} {y} beside {x}.",
    ),
    "count": (
        "{label} has {n} {noun}s.",
        "Under {label} are {n} {noun}s.",
        "We saw {n} {noun}s at {label}.",
        "There are {n} {noun}s for {label}.",
    ),
    "count?": (
        "Which label has the {degree} {noun}s?",
        "Who has the {degree} {noun}s?",
        "Where are the {degree} {noun}s?",
        "What comes with the {degree} {noun}s?",
    ),
    "list": (
        "{label} lists the {noun}s {x}, {y}.",
        "In {label} are {noun}s {x} and {y}.",
        "The {noun}s {x} and {y} are in {label}.",
        "{Noun}s of {label}: {x}, {y}.",
    ),
    "list?": (
        "Which list has {noun} {x}?",
        "In which list is the {noun} {x}?",
        "Where do we find {noun} {x}?",
        "What lists the {noun} {x}?",
    ),
    "key": (
        "A {noun} from {x} is {label}.",
        "If the {noun} names {x}, take {label}.",
        "With {x} on the {noun} use {label}.",
        "{x} makes a {noun} {label}.",
    ),
    "text": (
        "This {noun} came from {x} by way of {y}.",
        "Then {y} sent me a {noun} from {x}.",
        "On the {noun} is {x} but no {y}.",
        "Here is a {noun} that {x} gave to {y}.",
    ),
    "text?": (
        "Which label has this {noun}?",
        "What is right for the {noun}?",
        "Which label do we give the {noun}?",
        "Where does this {noun} go?",
    ),
    "word": (
        "The {noun} says {label}.",
        "They read {label} on a {noun}.",
        "One {noun} shows {label}.",
        "I saw {label} on the {noun}.",
    ),
    "word?": (
        "Which label do the {noun}s show?",
        "Which of the labels is on a {noun}?",
        "What label was on the {noun}s?",
        "Which label did a {noun} have?",
    ),
    "votes": (
        "Votes on the {noun}: {list}.",
        "The {noun} got these votes: {list}.",
        "They called the {noun} {list}.",
        "Names for the {noun}: {list}.",
    ),
    "votes?": (
        "Which has the most votes for the {noun}?",
        "What was the {noun} called most often?",
        "Which label won the {noun}?",
        "Which label of the {noun} comes up most?",
    ),
    "order": (
        "{Noun}s in order: {list}.",
        "The {noun}s stand in this order: {list}.",
        "Count the {noun}s as {list}.",
        "From left to right the {noun}s are {list}.",
    ),
    "order?": (
        "Which {noun} comes right {side} {label}?",
        "Name the {noun} just {side} {label}.",
        "What {noun} is next {side} {label}?",
        "The {noun} right {side} {label} is which?",
    ),
}


def unseen_frame(key: str, noun: str) -> str:
    """Name the frame of FRAMES[key] that train never shows with `noun`."""
    frames = FRAMES[key]
    return frames[(NOUNS.index(noun) + list(FRAMES).index(key)) % len(frames)]
