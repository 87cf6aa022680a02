"""The file of a run: it is gone on with, by one process, under one configuration, and survives a line cut short."""

from pathlib import Path

import pytest

from mezzotint.evaluate.ask import Record
from mezzotint.evaluate.journal import Journal, answers_of, read_journal
from mezzotint.text.detect import Finding
from tests.evaluate.asked import TRAITS, record, suite


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    written = [
        record("a", findings=(Finding("loop", 1, 9),)),
        record("b", accepted=None, message={"role": "assistant", "content": "\ud800\u2028x"}, metrics={"n": 1.5}),
        Record(id="c", epoch=2, seed=3, digest="d", accepted=None, error="away"),
    ]
    with Journal(tmp_path / "j", TRAITS) as journal:
        for each in written:
            journal.append(each)
    with Journal(tmp_path / "j", TRAITS) as journal:
        assert journal.records == written
    configuration, records = read_journal(tmp_path / "j")
    assert records == written
    assert {**configuration, **TRAITS} == configuration


def test_a_line_cut_short_is_taken_off_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, TRAITS) as journal:
        journal.append(record("a"))
        journal.append(record("b"))
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 40):
        path.write_bytes(whole[:cut])
        with Journal(path, TRAITS) as journal:
            assert [each.id for each in journal.records] == ["a"]
            journal.append(record("b"))
        assert path.read_bytes() == whole
    path.write_bytes(whole[:10])
    with Journal(path, TRAITS) as journal:
        assert journal.records == []


def test_a_file_of_other_answers_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path, TRAITS).close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"holds other answers \(decoder is 'diffusion', not 'ar'\): name another"):
        Journal(path, {**TRAITS, "decoder": "ar"})
    assert path.read_bytes() == before
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(ValueError, match="line 1 is no JSON"):
        Journal(tmp_path / "text", TRAITS)
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(ValueError, match="holds no answers of"):
        read_journal(tmp_path / "other")
    path.write_bytes(before + b'{"id": 1}\n')
    with pytest.raises(ValueError, match="line 2 is no record"):
        Journal(path, TRAITS)


def test_only_one_run_writes_a_file(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", TRAITS), pytest.raises(ValueError, match="is being written by another run"):
        Journal(tmp_path / "j", TRAITS)


def test_answers_are_those_to_the_questions_as_they_are_put_now() -> None:
    failed = Record(id="b", epoch=0, seed=3, digest="x", accepted=None, error="away")
    kept = answers_of([record("a"), failed, record("gone")], suite("a", "b"))
    assert list(kept) == [("a", 0)]
    with pytest.raises(ValueError, match="question a was put otherwise when the file was written"):
        answers_of([record("a", digest="other")], suite("a"))
