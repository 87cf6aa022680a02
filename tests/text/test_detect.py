"""Planted faults are found at their place, clean text is left alone, and how often real text is accused."""

import ast
import gzip
import json
import lzma
import random
import sysconfig
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mezzotint.text.detect import KINDS, Finding, Kind, detect

WORDS = tuple(
    "the cat sat under old trees while rain fell on roofs of small towns near rivers and nobody cared".split()
)
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=6, max_size=17, unique=True)
# Text with balanced brackets: leaves are letters, so that no bracket can be read as a mark or a face.
BALANCED = st.recursive(
    st.text("abc ", max_size=4).map(lambda text: f"x{text}y"),
    lambda inner: st.tuples(st.sampled_from(("()", "[]", "{}")), st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: f"a{pair[0][0]}{' '.join(pair[1])}{pair[0][1]}"
    ),
    max_leaves=8,
)


def kinds(text: str, *, seams: tuple[int, ...] = (), known: str = "") -> list[Kind]:
    return [finding.kind for finding in detect(text, seams=seams, known=known)]


def test_the_kinds_are_plain_names() -> None:
    assert KINDS == ("stutter", "loop", "empty", "pad", "control", "bracket", "seam")


@given(words=SENTENCES, seam=st.integers(0, 20))
def test_a_clean_sentence_is_not_accused_wherever_its_blocks_meet(words: list[str], seam: int) -> None:
    assert detect(" ".join(words) + ".", seams=(seam,)) == ()


@given(words=SENTENCES, data=st.data())
def test_a_planted_stutter_is_found_at_its_place(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    stop = data.draw(st.integers(start + 1, min(len(words), start + 8)))
    rounds = data.draw(st.integers(2, 3))
    before, said, after = words[:start], words[start:stop], words[stop:]
    assume(rounds == 3 or len(said) == 1 or "and" not in (said[0], said[-1]))
    text = " ".join([*before, *said * rounds, *after])
    place = len(" ".join([*before, ""]))
    assert detect(text) == (Finding("stutter", place, place + len(" ".join(said * rounds))),)


@pytest.mark.parametrize(
    "text",
    [
        "The the cat sat.",
        "He did not did not go.",
        "It is of the of the same kind.",
        "She don't don't know.",
        "They had had had enough.",
        "and and then",
        "Take the informationinformation home.",
    ],
)
def test_a_stutter_is_a_word_or_phrase_that_comes_at_once_again(text: str) -> None:
    assert kinds(text) == ["stutter"]


@pytest.mark.parametrize(
    "text",
    [
        "He had had that that long.",
        "Ha ha! No no.",
        "No, no, no! I know, I know.",
        "It rose higher and higher and fell.",
        "1 1 2 2 0 0 0 0 10 10",
        "a a b b x x",
        "x_1 x_1 and v2 v2",
        "root     root     4096",
        "return other\nreturn other",
        "import warnings\n    warnings.warn(text, text)",
        'name NAME, class Class, "value": "value"',
        "one-by-one one",
        "The theatre in in-house style.",
        "for i in range(3): print(i, i)\nelse: pass",
        '{"a":[0,0,0,0],"b":"b","c":{"c":1}}',
        "Mr Shinshin took the tartar.",
        "red, blue, red, red",
    ],
)
def test_what_good_text_repeats_is_no_stutter(text: str) -> None:
    assert detect(text) == ()


@given(period=st.text("ab c", min_size=1, max_size=30), before=st.sampled_from(("", "So: ", "It went on.\n")))
def test_a_planted_loop_is_found_with_its_first_round(period: str, before: str) -> None:
    period = f"x{period.strip()};"
    rounds = -(-40 // len(period)) + 3
    text = before + period * rounds
    assert detect(text + " \n") == (Finding("loop", len(before), len(text)),)


@given(
    before=st.text("ab", max_size=20),
    period=st.text("ab ", min_size=1, max_size=16),
    length=st.integers(0, 120),
)
def test_a_loop_is_the_longest_end_that_a_slow_search_finds(before: str, period: str, length: int) -> None:
    text = f"{before}{(period * 120)[:length]}".rstrip()
    sizes = range(40, len(text) + 1)
    found = [size for size in sizes if any(is_periodic(text[-size:], p) for p in range(1, size // 4 + 1))]
    loops = [finding for finding in detect(text) if finding.kind == "loop"]
    assert loops == ([Finding("loop", len(text) - max(found), len(text))] if found else [])


def is_periodic(text: str, period: int) -> bool:
    return any(map(str.isalpha, text)) and text[period:] == text[:-period]


@pytest.mark.parametrize("text", ["-" * 79, "=-" * 40, "10" * 64, "0, " * 32, "\n".join(["| --- |"] * 8), "ha! " * 9])
def test_rules_columns_and_short_cries_are_no_loop(text: str) -> None:
    assert detect(f"Result\n{text}") == ()


def test_a_loop_without_letters_must_be_long_and_one_that_ended_is_none() -> None:
    assert kinds("0, " * 80) == ["loop"]
    assert kinds("and so on; " * 30) == ["loop"]
    assert kinds("and so on; " * 30 + "until it stopped at last") == []


def test_what_is_said_again_within_a_loop_counts_once() -> None:
    text = "the old man said " * 30
    assert detect(text) == detect(text, seams=(17, 40)) == (Finding("loop", 0, len(text) - 1),)


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", " " * 500])
def test_nothing_to_see_is_empty_and_nothing_else(text: str) -> None:
    assert detect(text) == (Finding("empty", 0, len(text)),)


@pytest.mark.parametrize("flood", ["<pad>" * 3, "<mask> <mask> <mask>", "\ufffd" * 3, " " * 128, "\n" * 8, " \n" * 9])
def test_a_flood_of_padding_is_found_at_its_place(flood: str) -> None:
    assert detect(f"He said{flood}no.") == (Finding("pad", 7, 7 + len(flood)),)


def test_indents_empty_lines_and_one_broken_character_are_no_flood() -> None:
    assert detect(f"def f():\n{' ' * 100}return 1\n\n\n\n\n\nx = '\ufffd'") == ()


@pytest.mark.parametrize(
    "token",
    ["<|tool_call>", "<tool_call|>", "<|channel>", "<turn|>", '<|"|>', "<pad>", "<|im_end|>", "<start_of_turn>"],
)
def test_a_control_token_in_the_text_is_a_leak(token: str) -> None:
    assert detect(f"Yes. {token} Then") == (Finding("control", 5, 5 + len(token)),)


def test_the_name_of_a_channel_leaks_at_the_beginning_only() -> None:
    assert kinds("thought\nThe user asks") == ["control"]
    assert kinds("I thought\nso") == []


@pytest.mark.parametrize(
    "text", ["a < b | c > d", "List<int>", "<div class='x'><p>Hi</p></div>", "x <| y |> z", "a<b>c"]
)
def test_code_and_markup_are_no_leak(text: str) -> None:
    assert detect(text) == ()


@given(text=BALANCED, data=st.data())
def test_balanced_brackets_are_fine_and_one_that_is_planted_is_found(text: str, data: st.DataObject) -> None:
    assert "bracket" not in kinds(text)
    # A word behind the bracket and before it, so that it is no mark of a list.
    assert [f for f in detect(f"{text} word) end") if f.kind == "bracket"] == [
        Finding("bracket", len(text) + 5, len(text) + 6)
    ]
    if places := [place for place, sign in enumerate(text) if sign in "()[]{}"]:
        lost = data.draw(st.sampled_from(places))
        assert "bracket" in kinds(text[:lost] + text[lost + 1 :])
    assert [f for f in detect(f"({text}") if f.kind == "bracket"] == [Finding("bracket", 0, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "a) one\nb) two\n 10) ten",
        "Fine :-) and ;)",
        'print("(", \')\', ":(")',
        "f(a,\n  b)",
        "x[:], y[1:], {0: [:]}",
        '{"text":"say \\"(\\" or ]"}',
        "don't (isn't) won't",
        "`(` opens",
    ],
)
def test_quoted_brackets_list_marks_and_faces_have_no_partner_to_find(text: str) -> None:
    assert detect(text) == ()


@pytest.mark.parametrize(("text", "place"), [("f(a]", 3), ("x = [1, 2", 4), ("so it ends) here", 10), ("({)}", 2)])
def test_the_first_bracket_without_a_partner_is_named(text: str, place: int) -> None:
    assert detect(text) == (Finding("bracket", place, place + 1),)


@given(words=SENTENCES, data=st.data())
def test_text_said_again_behind_a_seam_is_found(words: list[str], data: st.DataObject) -> None:
    stop = data.draw(st.integers(1, len(words)))
    start = data.draw(st.integers(0, stop - 1))
    gap = data.draw(st.sampled_from((" ", "\n", "  ", ".\n\n")))
    said = words[start:stop]
    assume(len(said) == 1 or "and" not in (said[0], said[-1]))
    head = " ".join(words[:stop]) + ("." if gap[0] == "." else "")
    piece = " ".join(said) + ("." if gap[0] == "." else "")
    text = head + gap.lstrip(".") + " ".join([piece, *words[stop:]])
    seam = len(head) + data.draw(st.integers(0, len(gap.lstrip("."))))
    again = len(head) + len(gap.lstrip("."))
    assert detect(text, seams=(seam,)) == (Finding("seam", len(head) - len(piece), again + len(piece)),)


def test_a_stutter_is_one_of_the_seam_only_where_a_block_begins() -> None:
    text = "We saw the the cat."
    assert detect(text) == (Finding("stutter", 7, 14),)
    for seam in (10, 11):
        assert detect(text, seams=(seam,)) == (Finding("seam", 7, 14),)
    for seam in (0, 7, 14, len(text)):
        assert detect(text, seams=(seam,)) == (Finding("stutter", 7, 14),)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("We need inform", "information", "informinform"),
        ('{"name":"Ada",', '"name":"Ada","age":3}', '"name":"Ada","name":"Ada",'),
        ("    total += x\n", "    total += x\n    return", "total += x\n    total += x"),
    ],
)
def test_a_seam_repeats_parts_of_words_fields_and_lines(before: str, after: str, found: str) -> None:
    text = before + after
    start = text.index(found)
    assert detect(text, seams=(len(before),)) == (Finding("seam", start, start + len(found)),)


@pytest.mark.parametrize(
    ("before", "after"),
    [("x = 10", "100"), ("}\n", "}\n"), ("he had", " had it"), ("ban", "anas"), ("a, ", "a, b"), ("in", " inner")],
)
def test_marks_digits_and_parts_of_a_few_letters_repeat_by_chance(before: str, after: str) -> None:
    assert "seam" not in kinds(before + after, seams=(len(before),))


def test_each_seam_is_looked_at_once() -> None:
    text = "A cat\ncat sat on it\nit is"
    assert kinds(text, seams=(20, 6, 6)) == ["seam", "seam"]
    assert kinds(text, seams=(6,)) == ["seam"]


@pytest.mark.parametrize("seam", [-1, 4])
def test_a_seam_outside_the_text_is_refused(seam: int) -> None:
    with pytest.raises(ValueError, match=f"a seam is at {seam}; a text of 3 characters has offsets 0 to 3"):
        detect("abc", seams=(seam,))


def test_what_the_prompt_already_repeats_is_not_held_against_the_answer() -> None:
    text = "Duran Duran played, played played."
    assert kinds(text) == ["stutter", "stutter"]
    assert detect(text, known="Who are Duran Duran?") == (Finding("stutter", 20, 33),)
    assert kinds("f(x", known="f(x") == ["bracket"]
    assert kinds("", known="text") == ["empty"]


def test_findings_come_by_their_place() -> None:
    text = "thought\nThe the (cat <turn|> sat sat down"
    assert [(f.kind, text[f.start : f.end]) for f in detect(text)] == [
        ("control", "thought\n"),
        ("stutter", "The the"),
        ("bracket", "("),
        ("control", "<turn|>"),
        ("stutter", "sat sat"),
    ]


@given(text=st.text(max_size=200), data=st.data())
def test_any_text_gives_findings_within_it_and_the_same_ones_again(text: str, data: st.DataObject) -> None:
    seams = tuple(data.draw(st.lists(st.integers(0, len(text)), max_size=3)))
    found = detect(text, seams=seams)
    assert all(finding.kind in KINDS and 0 <= finding.start <= finding.end <= len(text) for finding in found)
    assert detect(text, seams=seams) == found


def check_rates(texts: Iterable[str], limits: dict[Kind, float]) -> None:
    """Count the texts accused, each with one border drawn at random; the limits are about twice what was found."""
    rng, counts, n = random.Random(1), Counter[Kind](), 0
    for text in texts:
        n += 1
        counts.update({finding.kind for finding in detect(text, seams=(rng.randint(0, len(text)),))})
    shares = {kind: counts[kind] / n for kind in KINDS}
    assert n > 900
    assert all(shares[kind] <= limits.get(kind, 0) for kind in KINDS), shares


def test_few_paragraphs_of_a_novel_are_accused(data_dir: Path) -> None:
    novel = lzma.decompress((data_dir / "war-and-peace.txt.xz").read_bytes()).decode()
    paragraphs = [paragraph for paragraph in novel.split("\n\n") if paragraph.strip()]
    check_rates(paragraphs[::4], {"stutter": 0.002, "bracket": 0.001, "seam": 0.001})


def test_few_canvases_of_the_standard_library_are_accused() -> None:
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::6]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    chunks = [code[start : start + 256] for start in range(0, len(code), 256)]
    # Cut anywhere, as a canvas cuts it: a third of the pieces has a bracket without partner by right.
    check_rates([chunk for chunk in chunks if chunk.strip()], {"stutter": 0.002, "seam": 0.003, "bracket": 0.5})


def test_few_whole_functions_of_the_standard_library_are_accused() -> None:
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::6]
    functions = [
        "\n".join(source.split("\n")[node.lineno - 1 : node.end_lineno])
        for source in (file.read_text(encoding="utf-8") for file in files)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    ]
    check_rates(functions[:2000], {"stutter": 0.002, "seam": 0.003, "bracket": 0.015})


def test_few_solutions_of_sums_are_accused(data_dir: Path) -> None:
    lines = gzip.decompress((data_dir / "gsm8k_train.jsonl.gz").read_bytes()).decode().splitlines()
    # What is found here are slips of its writers: "of of", "tree tree", "need to need to".
    check_rates([json.loads(line)["answer"] for line in lines[::4]], {"stutter": 0.004, "bracket": 0.001})
