"""Fan-outs over LedgerSaver behave as over InMemorySaver: Send, parallel nodes, failures in the middle."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from tests.support.stories import Teller

WIDTH = 20


class State(TypedDict, total=False):
    """Results in order, and a last-value channel."""

    done: Annotated[list[Any], operator.add]
    total: int


def sending(saver: Any, fail_once: tuple[int, ...] = (), ask: tuple[int, ...] = ()) -> Any:
    """`plan` sends WIDTH items to `work`; some fail the first time, some ask; `gather` comes after all."""
    failed: set[int] = set()

    def work(item: dict[str, int]) -> State:
        n = item["n"]
        if n in fail_once and n not in failed:
            failed.add(n)
            raise ValueError(f"item {n}")
        return {"done": [[n, interrupt(f"item {n}") if n in ask else n * n]]}

    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"done": ["planned"]})
    builder.add_node("work", work)
    builder.add_node("gather", lambda state: {"total": len(state["done"])})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in range(WIDTH)], ["work"])
    builder.add_edge("work", "gather")
    return builder.compile(checkpointer=saver)


def chained(saver: Any) -> Any:
    """Nodes that go on by `Command(goto=…)`, by name and by Send, for some rounds."""

    def turn(state: State) -> Command[Any]:
        n = len(state["done"])
        if n > 8:
            return Command(update={"total": n})
        return Command(update={"done": [f"turn {n}"]}, goto=[Send("extra", {"n": n}), "turn"])

    builder = StateGraph(State)
    builder.add_node("turn", turn, destinations=("turn", "extra"))
    builder.add_node("extra", lambda item: {"done": [f"extra {item['n']}"]})
    builder.add_edge(START, "turn")
    return builder.compile(checkpointer=saver)


def diamond(saver: Any) -> Any:
    """Parallel branches of different length that meet; every one writes several channels."""
    builder = StateGraph(State)
    for name in ("a", "b1", "b2", "c", "end"):
        builder.add_node(name, lambda state, name=name: {"done": [name, None, ""]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b1")
    builder.add_edge("a", "c")
    builder.add_edge("b1", "b2")
    builder.add_edge(["b2", "c"], "end")
    return builder.compile(checkpointer=saver)


def test_s1_send_fans_out_and_gathers(both: Callable[..., Teller]) -> None:
    """All items come back in the order they were sent, over two turns of the same thread."""

    def story(teller: Teller) -> None:
        teller.run({"done": []})
        teller.run({"done": ["again"]})

    state = both(sending, story).state()
    assert ["planned", *([n, n * n] for n in range(WIDTH))] == state.values["done"][: WIDTH + 1]
    assert 2 * WIDTH + 3 == state.values["total"]


def test_s1_send_resumes_only_what_failed(both: Callable[..., Teller]) -> None:
    """Of twenty one fails: `invoke(None)` runs what is missing. Which neighbours had ended before is left to chance."""

    def story(teller: Teller) -> None:
        teller.brief = True
        assert "ValueError" == teller.run({"done": []})[0]
        teller.run(None)
        teller.state()

    state = both(lambda saver: sending(saver, fail_once=(19,)), story).state()
    assert (["planned", *([n, n * n] for n in range(WIDTH))], ()) == (state.values["done"], state.next)


def test_s1_send_with_questions(both: Callable[..., Teller]) -> None:
    """Three of twenty ask; each is answered by its id, the others do not run again."""

    def story(teller: Teller) -> None:
        teller.run({"done": []})
        for value in ("item 7", "item 0", "item 19"):
            question = next(item for item in teller.state().interrupts if item.value == value)
            teller.run(Command(resume={question.id: f"answer to {value}"}))

    values = both(lambda saver: sending(saver, ask=(0, 7, 19)), story).state().values
    assert [[0, "answer to item 0"], [7, "answer to item 7"], [19, "answer to item 19"]] == [
        values["done"][n + 1] for n in (0, 7, 19)
    ]


def test_s1_commands_go_on_by_name_and_by_send(both: Callable[..., Teller]) -> None:
    """`Command(goto=[Send, name])`, round after round."""
    state = both(chained, lambda teller: teller.run({"done": []})).state()

    assert {f"turn {n}" for n in (0, 1, 3, 5, 7)} <= set(state.values["done"])
    assert (["turn 0", "turn 1", "extra 0"], 9) == (state.values["done"][:3], state.values["total"])


def test_s1_branches_of_different_length_meet(both: Callable[..., Teller], durability: str) -> None:
    """A node that waits for two branches runs once, after the longer one.

    Under durability async LangGraph hands savers its live set of branches that arrived: what a checkpoint in between
    holds depends on how fast the saver is (AsyncSqliteSaver's differ from InMemorySaver's, too).
    """

    def story(teller: Teller) -> None:
        teller.brief = durability == "async"
        teller.run({"done": ["in"]})
        teller.state()

    state = both(diamond, story).state()

    assert ["in", "a", "b1", "c", "b2", "end"] == [item for item in state.values["done"] if item]


def test_s1_threads_do_not_mix(both: Callable[..., Teller]) -> None:
    """Runs of several threads in turns, each with a failure, keep apart."""

    def story(teller: Teller) -> None:
        teller.brief = True
        for thread in ("a", "b"):
            teller.run({"done": [thread]}, {"configurable": {"thread_id": thread}})
        for thread in ("b", "a"):
            teller.run(None, {"configurable": {"thread_id": thread}})

    told = both(lambda saver: sending(saver, fail_once=(19,)), story)
    states = [told.state({"configurable": {"thread_id": thread}}).values["done"][:2] for thread in ("a", "b")]
    assert [["a", "planned"], ["b", "planned"]] == states
