"""Ciphers: LangGraph's convention of encryption, a serializer that wraps another one and a cipher, taken apart.

`EncryptedSerializer` encrypts values, and nothing else: not where they belong, nor metadata. Its cipher and its inner
serializer are taken, and ours is the envelope. tests/unit/test_encryption.py fails if LangGraph changes what is read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext.database.encryption import AES_KEY, KEYS, LOCKED, Encryption, Locked
from langgraph_ext.errors import InvalidArgument

__all__ = ["encryption_of_environment", "refuse_pickle", "taken_apart"]


def taken_apart(serde: Any) -> tuple[CipherProtocol | None, Any]:
    """Cipher and inner serializer of LangGraph's encrypted one; of any other, None and itself."""
    if isinstance(serde, EncryptedSerializer):
        cipher: CipherProtocol = serde.cipher
        inner: SerializerProtocol = serde.serde
        return cipher, inner
    return None, serde


def refuse_pickle(serde: Any) -> None:
    """Refuse a serializer that pickles what it does not know: who can write to the file could run code by it.

    Raises:
        InvalidArgument: It does.
    """
    if isinstance(serde, JsonPlusSerializer) and serde.pickle_fallback:
        raise InvalidArgument(
            "serde has pickle_fallback=True; who can write to a database runs code in whoever reads a pickle. Leave it "
            "out, and store what msgpack takes: dataclasses, pydantic models, messages"
        )


def encryption_of_environment() -> Encryption | Locked:
    """What the environment's keys open: ours, and LangGraph's cipher with its key; `LOCKED` if it names none.

    Raises:
        InvalidArgument: A key is not what it must be.
    """
    if not os.environ.get(KEYS) and not os.environ.get(AES_KEY):
        return LOCKED
    ours = Encryption.from_env()
    formerly = None
    if os.environ.get(AES_KEY):
        with suppress(ImportError):  # without its library, nothing was written by it here
            formerly = EncryptedSerializer.from_pycryptodome_aes().cipher
    return Encryption(ours.keys, ours.current, formerly)
