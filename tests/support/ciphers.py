"""Keys and ciphers of tests, and a serde that notices what it never wrote."""

from __future__ import annotations

import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_ext import Encryption

__all__ = ["CONVENTIONS", "KEYS", "NEWER", "OLDER", "Box", "Witness"]

KEYS = Encryption({"2025": b"5" * 32})

NEWER = Encryption({"2025": b"5" * 32, "2026": b"6" * 32}, "2026")
"""The same key, and another one that seals."""

OLDER = Encryption(dict(NEWER.keys), "2025")
"""Both, and the older one seals."""


class Box:
    """A cipher of somebody's own, by LangGraph's convention."""

    def __init__(self, key: bytes = b"b" * 32) -> None:
        self._aead = ChaCha20Poly1305(key)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        nonce = os.urandom(12)
        return "box", nonce + self._aead.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "box"
        try:
            return self._aead.decrypt(ciphertext[:12], ciphertext[12:], None)
        except InvalidTag as error:
            raise RuntimeError("no box of mine") from error


class Witness(JsonPlusSerializer):
    """A serde that is never to see what it has not written."""

    written: set[tuple[str, bytes]] = set()  # noqa: RUF012 - over all savers of a test

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        made = super().dumps_typed(obj)
        self.written.add(made)
        return made

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        assert data in self.written, "the serde was given what it never wrote"
        return super().loads_typed(data)


CONVENTIONS: dict[str, dict[str, Any]] = {
    "ours": {"encryption": KEYS},
    "langgraph": {"serde": EncryptedSerializer.from_pycryptodome_aes(key=b"l" * 32)},
    "another cipher": {"encryption": Box()},
    "another cipher, in a serde": {"serde": EncryptedSerializer(Box())},
}
"""How a saver is told to encrypt, by name."""
