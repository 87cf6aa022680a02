"""The wording of the records: complete, unambiguous in its blanks, and apart for the two splits."""

import re

import pytest

from mezzotint.tasks.records import RECORDS, Record


def blanks(sentence: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", sentence)


def test_there_are_at_least_five_types_of_five_to_seven_fields() -> None:
    assert len(RECORDS) >= 5
    assert all(5 <= len(record.fields) <= 7 for record in RECORDS)


@pytest.mark.parametrize("record", RECORDS)
def test_no_sentence_is_in_both_splits(record: Record) -> None:
    assert len(set(record.sentences)) >= 6
    assert len(set(record.unseen)) >= 2
    clauses = {clause for field in record.fields.values() for clause in field.clauses}
    unseen = {field.unseen for field in record.fields.values()}
    assert not {*record.sentences, *clauses} & {*record.unseen, *unseen}


@pytest.mark.parametrize("record", RECORDS)
def test_a_sentence_tells_two_or_three_fields_of_its_record(record: Record) -> None:
    for sentence in record.sentences + record.unseen:
        told = blanks(sentence)
        assert 2 <= len(set(told)) == len(told) <= 3
        assert set(told) <= set(record.fields)


@pytest.mark.parametrize("record", RECORDS)
def test_a_clause_tells_its_own_field_and_no_two_fields_share_one(record: Record) -> None:
    shapes: list[str] = []
    for key, field in record.fields.items():
        clauses = (*field.clauses, field.unseen)
        assert all(blanks(clause) == [key] for clause in clauses)
        shapes += [clause.replace(f"{{{key}}}", "") for clause in clauses]
    assert len(set(shapes)) == len(shapes)
