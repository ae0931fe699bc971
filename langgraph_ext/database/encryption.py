"""Encryption: the keys that payloads are sealed with, and how one of them seals.

    sealed = 0xE5, id of the key (4 bytes), what its cipher makes of it

The key's id is a digest of its name, so each ciphertext names its key, and its length does not depend on the name. Our
own cipher is AES-GCM, by OpenSSL, with a random nonce for each value; the place that a value belongs to is its
associated data. A foreign cipher (LangGraph's, or any that has its methods) is given a digest of the place with the
value, and both are compared when it is opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from types import MappingProxyType
from typing import Any, Protocol

from langgraph_ext.errors import AdmissionError, InvalidArgument

__all__ = ["AES_KEY", "KEYS", "LOCKED", "Cipher", "Encryption", "Keyring", "Locked", "key_id", "keyring_of"]

KEYS = "LANGGRAPH_EXT_KEYS"
"""The environment variable of our keys: `name:hexadecimal digits`, the current one first, separated by commas."""

AES_KEY = "LANGGRAPH_AES_KEY"
"""LangGraph's environment variable: one key, of 16, 24 or 32 characters."""

AES_KEY_NAME = "LANGGRAPH_AES_KEY"
"""What that key is called in ciphertexts."""

_LENGTHS = (16, 24, 32)

_NONCE, _TAG = 12, 16

_DIGEST = 16


class Cipher(Protocol):
    """LangGraph's CipherProtocol."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """`(cipher name, ciphertext)`."""

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """The plaintext."""


@dataclass(frozen=True, slots=True)
class Encryption:
    """Keys to encrypt a database's payloads with, by AES-GCM.

    Needs the extra `encryption`. What is stored names the key that it was sealed with, so keys can be changed: add one,
    make it `current`, and have `saver.reencrypt()` walk what older ones have sealed.

    Args:
        keys: By name, each of 16, 24 or 32 bytes. Names are stored; keys are not.
        current: The name of the key that seals; the others only open. May be left out if there is one key.
        formerly: A cipher of LangGraph's convention that has sealed before, and only opens now.

    Raises:
        InvalidArgument: A key has no such length, or a name is no text, is twice the same by its digest, or unknown.
    """

    keys: Mapping[str, bytes] = field(repr=False)
    current: str = ""
    formerly: Cipher | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.keys
        if not isinstance(given, Mapping) or not given:
            raise InvalidArgument('keys is no mapping with a key in it; pass Encryption({"2026": os.urandom(32)})')
        keys = {name: _key(name, key) for name, key in given.items()}
        if len({key_id(name) for name in keys}) < len(keys):
            raise InvalidArgument("two keys' names cannot be told apart by their digests; rename one")
        object.__setattr__(self, "keys", MappingProxyType(keys))
        if not self.current and len(keys) == 1:
            object.__setattr__(self, "current", next(iter(keys)))
        if self.current not in keys:
            names = ", ".join(map(repr, keys))
            raise InvalidArgument(f"current is not the name of a key; it must be one of {names}")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Encryption:
        """The keys of `LANGGRAPH_EXT_KEYS` (`2026:<hex>,2025:<hex>`, the current one first), else LANGGRAPH_AES_KEY.

        Raises:
            InvalidArgument: Neither is set, or one is not what it must be.
        """
        if listed := environ.get(KEYS):
            keys: dict[str, bytes] = {}
            for number, each in enumerate(listed.split(","), start=1):
                name, colon, digits = each.strip().rpartition(":")
                try:
                    found = bytes.fromhex(digits)
                except ValueError:
                    found = b""
                if not colon or not name or len(found) not in _LENGTHS:  # the name may be a key: it is not shown
                    raise InvalidArgument(
                        f"{KEYS}: entry {number} is not name:hexadecimal digits, of 16, 24 or 32 bytes"
                    )
                if name in keys:
                    raise InvalidArgument(f"{KEYS}: entry {number} has the name of an earlier one; rename one")
                keys[name] = found
            return cls(keys, next(iter(keys)))
        if (key := environ.get(AES_KEY)) is not None:
            return cls({AES_KEY_NAME: key.encode()}, AES_KEY_NAME)
        raise InvalidArgument(
            f"no keys: set {KEYS} to name:hexadecimal digits, or {AES_KEY} to 16, 24 or 32 characters"
        )


def _key(name: Any, key: Any) -> bytes:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidArgument(
            f"a key's name is a {type(name).__name__}; it must be text that can be printed, such as a year"
        )
    if not isinstance(key, bytes | bytearray) or len(key) not in _LENGTHS:
        found = f"has {len(key)}" if isinstance(key, bytes | bytearray) else f"is a {type(key).__name__}"
        raise InvalidArgument(f"key {name!r} {found}; it must be 16, 24 or 32 bytes, such as os.urandom(32)")
    return bytes(key)


class Locked:
    """Stands for keys that nobody has: what is encrypted is shown as that, and nothing is written."""

    def __repr__(self) -> str:
        return "LOCKED"


LOCKED = Locked()


def key_id(name: str) -> bytes:
    """What of a key's name stands in a ciphertext."""
    return blake2b(name.encode(), digest_size=4).digest()


class Key(Protocol):
    """One key of a ring."""

    name: str

    def encrypt(self, place: bytes, data: bytes) -> bytes: ...
    def decrypt(self, place: bytes, data: bytes | memoryview) -> bytes:
        """Raises `ValueError` if this is not what was sealed for this place."""


class _Own:
    """A key of ours."""

    def __init__(self, name: str, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
        except ImportError as error:
            raise AdmissionError(
                "encryption needs the extra: pip install 'langgraph-ext[encryption]'", code="extra_missing"
            ) from error
        self.name = name
        self._aead = AESGCM(key)
        self._invalid = InvalidTag

    def encrypt(self, place: bytes, data: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(nonce, data, place)

    def decrypt(self, place: bytes, data: bytes | memoryview) -> bytes:
        if len(data) < _NONCE + _TAG:
            raise ValueError("too short")
        try:
            return self._aead.decrypt(data[:_NONCE], data[_NONCE:], place)
        except self._invalid as error:
            raise ValueError("does not open") from error


class _Foreign:
    """A cipher that knows of no place: it is given the digest of one with the value."""

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher
        self._cipher_name, _ = cipher.encrypt(b"")
        self.name = f"cipher:{self._cipher_name}"

    def encrypt(self, place: bytes, data: bytes) -> bytes:
        name, sealed = self._cipher.encrypt(_digest(place) + data)
        if name != self._cipher_name:
            raise InvalidArgument(f"the cipher calls itself {name!r} now, and {self._cipher_name!r} before")
        return sealed

    def decrypt(self, place: bytes, data: bytes | memoryview) -> bytes:
        try:
            opened = self._cipher.decrypt(self._cipher_name, bytes(data))
        except Exception as error:  # a cipher's own, which say what they like
            raise ValueError("does not open") from error
        if not compare_digest(opened[:_DIGEST], _digest(place)):
            raise ValueError("belongs elsewhere")
        return opened[_DIGEST:]


def _digest(place: bytes) -> bytes:
    return blake2b(place, digest_size=_DIGEST).digest()


class Keyring:
    """The key that seals, and all that open, by their ids."""

    def __init__(self, current: Key, *others: Key) -> None:
        self.current = current
        self.current_id = key_id(current.name)
        self.by_id = {key_id(key.name): key for key in (*others, current)}
        if len(self.by_id) <= len(others):
            raise InvalidArgument(
                f"a key has the name of the cipher that sealed formerly, {others[-1].name!r}; rename it"
            )


def keyring_of(encryption: Any) -> Keyring:
    """The keys of an `Encryption`, or a foreign cipher as one.

    Raises:
        InvalidArgument: It is neither.
        AdmissionError: The extra is not installed (`extra_missing`).
    """
    if isinstance(encryption, Encryption):
        own = {name: _Own(name, key) for name, key in encryption.keys.items()}
        others: list[Key] = [key for name, key in own.items() if name != encryption.current]
        if encryption.formerly is not None:
            others.append(_Foreign(_cipher(encryption.formerly, "formerly")))
        return Keyring(own[encryption.current], *others)
    return Keyring(_Foreign(_cipher(encryption, "encryption")))


def _cipher(given: Any, what: str) -> Cipher:
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in ("encrypt", "decrypt")):
        raise InvalidArgument(
            f"{what} is a {type(given).__name__}; it must be an Encryption, or a cipher with encrypt and decrypt"
        )
    cipher: Cipher = given
    return cipher
