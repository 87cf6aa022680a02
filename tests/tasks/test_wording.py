"""Composed sentences: each split has a template for every choice of fields, and no template is in both."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.records import RECORDS, Record
from mezzotint.tasks.wording import CUES, FRAMES, PAIRS, compose
from tests.tasks.templates import key_choices, natural_sentences, spell_templates, templates, unnamed

SPLITS: tuple[Split, ...] = ("train", "test")


def test_every_frame_and_every_cue_occurs_in_train() -> None:
    known = [row for keys in key_choices() for row in spell_templates(keys) if row[2] == "train"]
    assert {frame for frame, *_ in known} == {*FRAMES, *PAIRS}
    alone = {
        (cues, keys)
        for keys in key_choices()
        if len(keys) == 1
        for _, cues, split, _ in spell_templates(keys)
        if split == "train"
    }
    assert alone == {((cue,), (key,)) for key in CUES for cue in (key, *CUES[key])}


def test_no_template_is_in_both_splits_whichever_fields_it_tells() -> None:
    assert not unnamed(templates("train")) & unnamed(templates("test"))


def test_no_held_out_template_reads_like_a_sentence_of_train() -> None:
    assert not templates("test") & natural_sentences()


def test_about_a_quarter_of_the_templates_is_held_out() -> None:
    held_out, known = len(templates("test")), len(templates("train"))
    assert held_out + known > 10_000
    assert 0.22 < held_out / (held_out + known) < 0.28


def test_every_field_of_every_record_has_cues_beside_its_key() -> None:
    assert CUES.keys() == {key for record in RECORDS for key in record.fields}
    assert all(cues and key not in cues for key, cues in CUES.items())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: next(iter(record.fields)))
def test_no_cue_is_shared_by_two_fields_of_one_record(record: Record) -> None:
    cues = [cue for key in record.fields for cue in (key, *CUES[key])]
    assert len(set(cues)) == len(cues)


@pytest.mark.parametrize("split", SPLITS)
def test_every_field_and_every_two_fields_of_a_record_have_a_template_to_draw(split: Split) -> None:
    for keys in key_choices():
        splits = [its for _, _, its, _ in spell_templates(keys)]
        # Drawing goes on until it meets the split, so a tenth keeps it short as well as finite.
        assert splits.count(split) >= len(splits) / 10, keys


@given(data=st.data(), record=st.sampled_from(RECORDS), split=st.sampled_from(SPLITS), seed=st.integers(0, 2**32))
def test_every_key_is_told_exactly_once_by_templates_of_the_split(
    data: st.DataObject, record: Record, split: Split, seed: int
) -> None:
    keys = data.draw(st.lists(st.sampled_from(sorted(record.fields)), unique=True))
    given_keys = list(keys)
    sentences = compose(Random(seed), keys, split)
    assert sorted(re.findall(r"\{(\w+)\}", " ".join(sentences))) == sorted(given_keys)
    assert keys == given_keys
    assert set(sentences) <= templates(split)


def test_every_template_is_drawn_in_the_end() -> None:
    record = RECORDS[0]
    for split in SPLITS:
        rng = Random(0)
        pairs = [rng.sample(list(record.fields), 2) for _ in range(40_000)]
        drawn = {sentence for keys in pairs for sentence in compose(rng, keys, split)}
        possible = {
            sentence
            for keys in key_choices()
            if set(keys) <= record.fields.keys()
            for _, _, its, sentence in spell_templates(keys)
            if its == split
        }
        assert drawn == possible
