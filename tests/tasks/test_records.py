"""The natural wording of the records: complete, and unambiguous in its blanks."""

import re

import pytest

from mezzotint.tasks.records import RECORDS, Record


def blanks(sentence: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", sentence)


def test_there_are_at_least_five_types_of_five_to_seven_fields() -> None:
    assert len(RECORDS) >= 5
    assert all(5 <= len(record.fields) <= 7 for record in RECORDS)


def test_no_sentence_and_no_clause_is_written_twice() -> None:
    written = [sentence for record in RECORDS for sentence in record.sentences]
    written += [clause for record in RECORDS for field in record.fields.values() for clause in field.clauses]
    repeated = {sentence for sentence in written if written.count(sentence) > 1}
    assert not repeated


@pytest.mark.parametrize("record", RECORDS)
def test_a_sentence_tells_two_or_three_fields_of_its_record(record: Record) -> None:
    assert len(record.sentences) >= 9
    for sentence in record.sentences:
        told = blanks(sentence)
        assert 2 <= len(set(told)) == len(told) <= 3
        assert set(told) <= set(record.fields)


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_is_told_by_some_sentence(record: Record) -> None:
    assert {key for sentence in record.sentences for key in blanks(sentence)} == set(record.fields)


@pytest.mark.parametrize("record", RECORDS)
def test_a_clause_tells_its_own_field_and_no_two_fields_share_one(record: Record) -> None:
    shapes: list[str] = []
    for key, field in record.fields.items():
        assert len(field.clauses) >= 3
        assert all(blanks(clause) == [key] for clause in field.clauses)
        shapes += [clause.replace(f"{{{key}}}", "") for clause in field.clauses]
    assert len(set(shapes)) == len(shapes)
