"""S1: what a checkpoint's metadata says, and what from a config gets into it."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, get_checkpoint_metadata

from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Driver


def put_with(store: Driver, configurable: dict[str, Any], more: dict[str, Any], meta: Any = None) -> dict[str, Any]:
    """Put one checkpoint under a config with these extra keys and return the metadata that is read back."""
    where = config(**configurable) | {"metadata": more}
    store.put(where, checkpoint(cid(1)), metadata() if meta is None else meta, {})
    listed = store.list(config())[0].metadata
    assert listed == store.read().metadata
    return dict(listed)


def test_s1_metadata_takes_in_the_config_as_langgraph_does(store: Driver) -> None:
    """Plain values of `metadata` and `configurable` are added, the argument wins, then `metadata`: LangGraph's rule."""
    configurable = {
        "user": "u1",
        "n": 3,
        "ratio": 0.5,
        "flag": True,
        "step": 99,
        "both": "configurable",
        "obj": object(),
    }
    more = {"both": "metadata", "tags": ["not", "plain"], "run": "r1"}
    expected = get_checkpoint_metadata({"configurable": configurable, "metadata": more}, metadata(1))

    assert expected == put_with(store, configurable, more, metadata(1))
    assert {"user": "u1", "both": "metadata", "run": "r1", "step": 1}.items() <= expected.items()


def test_s1_langgraphs_own_keys_stay_out_of_the_metadata(store: Driver) -> None:
    """Keys that LangGraph excludes, and `__` keys with their live objects, are not stored."""
    internal = {"__pregel_runtime": object(), "__pregel_durability": "sync", "__secret": "x"}
    excluded = dict.fromkeys(EXCLUDED_METADATA_KEYS - {"thread_id", "checkpoint_id", "checkpoint_ns"}, "x")

    assert metadata() == put_with(store, internal | excluded, internal | excluded | {"thread_id": "x"})


@pytest.mark.parametrize("key", ["langgraph_auth_user_id", "langgraph_auth_user", "langgraph_request_id"])
def test_s1_the_servers_auth_keys_are_dropped(store: Driver, key: str) -> None:
    """LangGraph's API server strips them from the metadata it passes; the config still holds them, and they go too."""
    assert metadata() == put_with(store, {key: "secret"}, {key: "secret"})


def test_s1_other_server_keys_are_kept(store: Driver) -> None:
    """run_id, graph_id and the like are the only link between the server's runs and their checkpoints."""
    server = {"run_id": "r", "graph_id": "g", "assistant_id": "a", "run_attempt": 1, "langgraph_version": "1.2"}

    assert metadata() | server == put_with(store, server, {})


def test_s1_metadata_survives_a_json_round_trip(store: Driver) -> None:
    """Nested values, unicode, big integers and floats come back equal; a tuple comes back as a list."""
    rich = {"deep": {"ключ": [1, {"ж": None}]}, "n": 2**53 + 1, "x": 0.1, "big": 1e300, "t": True, "emoji": "🙂", "": 0}
    meta = metadata(3, **rich, counters_since_delta_snapshot={"log": (1, 2)})

    assert meta | {"counters_since_delta_snapshot": {"log": [1, 2]}} == put_with(store, {}, {}, meta)


def test_s1_nul_bytes_leave_metadata_text_as_langgraph_does(store: Driver) -> None:
    """LangGraph removes NUL from texts at the top level, for PostgreSQL's sake: so do we, on every backend."""
    assert metadata(note="ab", user="xy") == put_with(store, {"user": "x\0y"}, {}, metadata(note="a\0b"))
