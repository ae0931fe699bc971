"""Keys: what an Encryption takes, what it shows, and what LangGraph's own convention is taken for."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import Encryption, LedgerSaver
from langgraph_ext.database.encryption import LOCKED, keyring_of
from langgraph_ext.database.sealing import Sealer, key_id_of
from langgraph_ext.errors import AdmissionError, EncryptionError, InvalidArgument
from langgraph_ext.saver.ciphers import encryption_of_environment, taken_apart
from tests.support.ciphers import KEYS, NEWER, Box

KEY = b"k" * 32


@pytest.mark.parametrize("length", [16, 24, 32])
def test_s6_a_key_seals_for_one_place(length: int) -> None:
    """The same bytes are sealed otherwise each time, and open at no other place."""
    sealer = Sealer(keyring_of(Encryption({"k": b"x" * length})))
    first, second = (sealer.seal(("value", "t", 1), b"data") for _ in range(2))
    assert first != second
    assert b"data" not in first
    assert b"data" == sealer.open(("value", "t", 1), first)
    for elsewhere in (("value", "t", "1"), ("value", "t"), ("value", "t", 1, None), ("values", "t", 1)):
        with pytest.raises(EncryptionError, match="row_forged"):
            sealer.open(elsewhere, first)
    for damaged in (first[:-1], first[:20], first[:-1] + bytes([first[-1] ^ 1])):
        with pytest.raises(EncryptionError, match="row_forged"):
            sealer.open(("value", "t", 1), damaged)
    for plain in (b"", b"{}", b"data" * 20):
        with pytest.raises(EncryptionError, match="row_plaintext"):
            sealer.open(("value", "t", 1), plain)


def test_s6_what_is_sealed_names_its_key() -> None:
    """Whatever the name, it is as long; a key that is not given is asked for."""
    old, new = (Sealer(keyring_of(each)) for each in (KEYS, NEWER))
    sealed = new.seal(("value",), b"x")
    assert key_id_of(sealed) != key_id_of(old.seal(("value",), b"x"))
    assert len(sealed) == len(Sealer(keyring_of(Encryption({"a longer name": KEY}))).seal(("value",), b"x"))
    assert b"x" == new.open(("value",), old.seal(("value",), b"x"))
    with pytest.raises(EncryptionError, match="key_missing"):
        old.open(("value",), sealed)


@pytest.mark.parametrize(
    ("keys", "current", "says"),
    [
        ({}, "", "no mapping with a key"),
        (KEY, "", "no mapping"),
        ({"k": b"short"}, "k", "key 'k' has 5; it must be 16, 24 or 32 bytes"),
        ({"k": "k" * 32}, "k", "key 'k' is a str"),
        ({7: KEY}, "", "name is a int"),
        ({"": KEY}, "", "name is a str"),
        ({"a": KEY, "b": KEY}, "", "current is not the name of a key; it must be one of 'a', 'b'"),
        ({"a": KEY}, "b", "current is not the name of a key; it must be one of 'a'"),
    ],
)
def test_s6_a_key_that_is_none_is_refused(keys: Any, current: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        Encryption(keys, current)


def test_s6_keys_are_not_shown() -> None:
    """Neither by the object, nor by errors."""
    shown = repr(Encryption({"2026": KEY}))
    assert "2026" in shown
    assert "kkk" not in shown
    with pytest.raises(InvalidArgument) as refused:
        Encryption({"2026": b"kkk" * 3})
    assert "kkk" not in str(refused.value)


SECRET = b"0123456789abcdef"


@pytest.mark.parametrize(
    "mistaken",
    [
        lambda: Encryption({SECRET: "2026"}),  # type: ignore[dict-item]
        lambda: Encryption({"2026": SECRET}, current=SECRET.decode()),
        lambda: Encryption({"2026": SECRET}, current=SECRET),  # type: ignore[arg-type]
        lambda: Encryption.from_env({"LANGGRAPH_EXT_KEYS": f"2026:{SECRET.hex()}:"}),
        lambda: Encryption.from_env({"LANGGRAPH_EXT_KEYS": f"{SECRET.hex()}:2026"}),
    ],
)
def test_s6_a_key_in_a_wrong_place_is_not_shown(mistaken: Any) -> None:
    """Such as where its name belongs."""
    with pytest.raises(InvalidArgument) as refused:
        mistaken()
    assert SECRET.decode() not in str(refused.value)
    assert SECRET.hex() not in str(refused.value)


def test_s6_two_keys_of_one_name_are_refused() -> None:
    """In the environment, and if one of them is a cipher's."""
    with pytest.raises(InvalidArgument, match="entry 2 has the name of an earlier one"):
        Encryption.from_env({"LANGGRAPH_EXT_KEYS": f"a:{'ab' * 16},a:{'cd' * 16}"})
    with pytest.raises(InvalidArgument, match="'cipher:box'"):
        keyring_of(Encryption({"cipher:box": KEY}, formerly=Box()))


def test_s6_keys_come_from_the_environment() -> None:
    """Ours, the current one first; else LangGraph's."""
    listed = {"LANGGRAPH_EXT_KEYS": f"2026:{'ab' * 32}, 2025:{'cd' * 16}", "LANGGRAPH_AES_KEY": "z" * 32}
    made = Encryption.from_env(listed)
    assert ("2026", {"2026": b"\xab" * 32, "2025": b"\xcd" * 16}) == (made.current, dict(made.keys))
    assert b"z" * 24 == next(iter(Encryption.from_env({"LANGGRAPH_AES_KEY": "z" * 24}).keys.values()))
    for wrong in ({"LANGGRAPH_EXT_KEYS": "secret"}, {"LANGGRAPH_EXT_KEYS": "a:xyz"}, {"LANGGRAPH_AES_KEY": "z"}, {}):
        with pytest.raises(InvalidArgument) as refused:
            Encryption.from_env(wrong)
        assert "secret" not in str(refused.value)


def test_s6_the_command_line_takes_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes with ours, and opens what LangGraph's cipher has sealed."""
    monkeypatch.delenv("LANGGRAPH_EXT_KEYS", raising=False)
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    assert encryption_of_environment() is LOCKED
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "z" * 32)
    cipher = EncryptedSerializer.from_pycryptodome_aes().cipher
    found = encryption_of_environment()
    assert isinstance(found, Encryption)
    sealed = Sealer(keyring_of(cipher)).seal(("value",), b"x")
    assert b"x" == Sealer(keyring_of(found)).open(("value",), sealed)


def test_s6_langgraphs_serializer_is_what_we_take_it_for() -> None:
    """A cipher by whose name the type is marked, and an inner serializer; if this fails, saver/ciphers.py is wrong."""
    inner = JsonPlusSerializer()
    serde = EncryptedSerializer.from_pycryptodome_aes(inner, key=KEY)
    kind, data = serde.dumps_typed({"a": 1})
    assert ("msgpack+aes", {"a": 1}) == (kind, inner.loads_typed(("msgpack", serde.cipher.decrypt("aes", data))))
    assert (serde.cipher, inner) == taken_apart(serde)
    assert (None, inner) == taken_apart(inner)
    name, sealed = serde.cipher.encrypt(b"x")
    assert ("aes", b"x") == (name, serde.cipher.decrypt(name, sealed))
    saver = LedgerSaver(":memory:", serde=serde)
    assert saver.serde is inner
    saver.close()


def test_s6_a_foreign_cipher_is_bound_to_places_by_us() -> None:
    """It knows of none itself; what it refuses, whatever it says, is refused by our name."""
    sealer = Sealer(keyring_of(Box()))
    sealed = sealer.seal(("value", "t"), b"data")
    assert b"data" == sealer.open(("value", "t"), sealed)
    for other in ((("value", "u"), sealed), (("value", "t"), sealed[:-1]), (("value", "t"), sealed[:6])):
        with pytest.raises(EncryptionError, match="row_forged"):
            sealer.open(*other)
    assert "cipher:box" == sealer.current


def test_s6_a_serializer_that_pickles_is_refused() -> None:
    """Also when it is wrapped: who can write to the file could run code by it."""
    pickles = JsonPlusSerializer(pickle_fallback=True)
    for serde in (pickles, EncryptedSerializer.from_pycryptodome_aes(pickles, key=KEY)):
        with pytest.raises(InvalidArgument, match="pickle"):
            LedgerSaver(":memory:", serde=serde)


def test_s6_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AdmissionError, match=r"langgraph-ext\[encryption\]") as refused:
        LedgerSaver(":memory:", encryption=KEYS)
    assert "extra_missing" == refused.value.code
