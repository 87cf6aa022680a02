"""Trains a byte-level BPE of the bundled model's kind from seeded text; encoding lives in mezzotint.text.

The shipped tokenizer.json was made here from an earlier wording of the task families and stays as it is,
because the bundled weights depend on its ids. Training anew gives one of the same layout with other merges.
"""

import ast
import random
import sysconfig
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from mezzotint.tasks import FAMILIES

VOCABULARY_SIZE = 2048
MAX_PIECE_BYTES = 16
CORPUS_BYTES = 3_000_000
LIBRARY_SHARE = 0.4
LIBRARY_SKIPS = frozenset({"test", "tests", "idlelib", "lib2to3", "encodings", "site-packages"})

# Ids follow this order from 0: the first five are Gemma's ids too, the others keep Gemma's spelling.
CONTROL_TOKENS = (
    "<pad>", "<eos>", "<bos>", "<unk>", "<mask>",
    "<|think|>", "<|turn>", "<turn|>", "<|channel>", "<channel|>",
    "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>',
    "<|image>", "<image|>", "<|image|>",
)  # fmt: skip

# One alternative a kind of piece. White space never joins a word, so that a word has the same ids in
# every context and copying it is copying ids. A line break takes the indentation after it along.
PIECES = r"\n+ *| +|\p{L}+|\p{N}|[^\p{L}\p{N}\s]+|[^\S\n ]+"


def train_tokenizer(texts: Iterable[str], vocabulary_size: int = VOCABULARY_SIZE) -> Tokenizer:
    """Learn merges from texts: control tokens first, then the 256 bytes, then merges.

    Returns: a tokenizer of exactly vocabulary_size ids that decodes what it encodes byte for byte.
    Raises: ValueError when the texts are too few to fill the vocabulary.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(CONTROL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=MAX_PIECE_BYTES,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocabulary_size:
        found = tokenizer.get_vocab_size()
        raise ValueError(f"the texts gave {found} of {vocabulary_size} ids; add text or ask for fewer ids")
    bos = "<bos>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos}:0 $A:0",
        pair=f"{bos}:0 $A:0 {bos}:1 $B:1",
        special_tokens=[(bos, CONTROL_TOKENS.index(bos))],
    )
    return tokenizer


def write_tokenizer(directory: Path, seed: int = 0) -> None:
    """Train a tokenizer of the bundled model's kind and write it as directory/tokenizer.json.

    Its merges, and so its ids, differ from those of the shipped file: weights trained on one need that one.
    """
    train_tokenizer(training_texts(seed)).save(str(directory / "tokenizer.json"))


def training_texts(seed: int, size_bytes: int = CORPUS_BYTES) -> list[str]:
    """Draw the seeded corpus: functions of Python's standard library and examples of every task family.

    Returns: about size_bytes UTF-8 bytes of text, LIBRARY_SHARE of them from the library, the rest in
    equal parts from the families' train split; no held-out example is among them.
    """
    library_bytes = int(size_bytes * LIBRARY_SHARE)
    texts = _take(library_functions(seed), library_bytes)
    for name in sorted(FAMILIES):
        texts += _take(_task_texts(name, seed), (size_bytes - library_bytes) // len(FAMILIES))
    return texts


def library_functions(seed: int) -> list[str]:
    """Read the functions and methods of the running interpreter's standard library, in a seeded order.

    Returns: sources, each function once, without the indentation that all its lines share.
    """
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(file for file in root.rglob("*.py") if LIBRARY_SKIPS.isdisjoint(file.relative_to(root).parts))
    functions = [function for file in files for function in _functions(file.read_text(encoding="utf-8"))]
    random.Random(seed).shuffle(functions)
    return functions


def _functions(source: str) -> Iterator[str]:
    lines = source.split("\n")  # as ast counts them: a form feed starts no line
    tree = ast.parse(source)
    bodies = [tree.body] + [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in (node for body in bodies for node in body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))


def _task_texts(name: str, seed: int) -> Iterator[str]:
    example_seed = seed
    while True:
        example = FAMILIES[name].generate(example_seed, "train")
        yield "\n".join([message.get("content", "") for message in example.messages] + [example.answer])
        example_seed += 1


def _take(texts: Iterable[str], size_bytes: int) -> list[str]:
    taken: list[str] = []
    for text in texts:
        taken.append(text)
        size_bytes -= len(text.encode())
        if size_bytes <= 0:
            break
    return taken
