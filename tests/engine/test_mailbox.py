from mezzotint.decoding.program import Block, Draft, Prefilled
from mezzotint.engine.mailbox import Mailbox
from mezzotint.engine.request import Failed, Told

PREFILLED, FAILED = Told("id", Prefilled(3)), Failed("id", "error", "for a reason")


def draft(step: int) -> Told:
    return Told("id", Draft(0, step, [], []))


def block(number: int) -> Told:
    return Told("id", Block(number, [5], 1))


def test_letters_are_taken_once_and_in_order() -> None:
    mailbox = Mailbox(lambda: None, drafts=8)
    for letter in (PREFILLED, draft(1), block(0), FAILED):
        mailbox.put(letter)
    assert mailbox.take() == [PREFILLED, draft(1), block(0), FAILED]
    assert mailbox.take() == []


def test_of_drafts_the_latest_are_kept_and_of_all_else_everything() -> None:
    mailbox = Mailbox(lambda: None, drafts=2)
    for number in range(5):
        mailbox.put(draft(2 * number))
        mailbox.put(draft(2 * number + 1))
        mailbox.put(block(number))
    assert mailbox.take() == [*map(block, range(4)), draft(8), draft(9), block(4)]
    mailbox.put(draft(10))
    mailbox.put(draft(11))
    assert mailbox.take() == [draft(10), draft(11)], "what was taken no longer counts"


def test_a_reader_is_called_when_something_comes_where_nothing_was() -> None:
    calls: list[str] = []
    mailbox = Mailbox(lambda: calls.append("come"), drafts=2)
    for _ in range(2):
        mailbox.put(PREFILLED)
        mailbox.put(block(0))
        mailbox.take()
    assert calls == ["come", "come"]
