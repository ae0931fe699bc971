"""What models were sent last: a bounded memory, whose loss costs a read."""

from __future__ import annotations

from langchain_core.messages import HumanMessage

from langgraph_ext.database import open_database
from langgraph_ext.engine.sent import LastSent, Sent, copied, last_sent


def window(tokens: int, text: str = "hi") -> Sent:
    return Sent((0, None), 1, tokens, [HumanMessage(text, id="1")])


def test_what_was_used_longest_ago_is_forgotten() -> None:
    kept = LastSent(100)
    kept.keep("a", window(40))
    kept.keep("b", window(40))
    assert kept.find("a") is not None
    kept.keep("c", window(40))
    assert [True, False, True] == [kept.find(each) is not None for each in "abc"]


def test_a_window_takes_the_place_of_the_one_before() -> None:
    kept = LastSent(100)
    for tokens in (30, 60, 90):
        kept.keep("a", window(tokens))
    assert 90 == (kept.find("a") or window(0)).tokens
    kept.keep("b", window(10))
    assert kept.find("a") is not None


def test_one_that_is_too_large_is_not_kept_and_takes_no_other_along() -> None:
    kept = LastSent(100)
    kept.keep("a", window(90))
    kept.keep("b", window(101))
    assert kept.find("b") is None
    assert kept.find("a") is not None
    kept.keep("a", window(200))
    assert kept.find("a") is None


def test_copies_may_be_made_others() -> None:
    messages = [HumanMessage("hi", id="1")]
    [other] = copied(messages)
    assert other == messages[0]
    other.content = "spoilt"
    assert "hi" == messages[0].content


def test_each_database_has_its_own() -> None:
    one, another = open_database(":memory:"), open_database(":memory:")
    last_sent(one).keep("a", window(1))
    assert last_sent(one).find("a") is not None
    assert last_sent(another).find("a") is None
