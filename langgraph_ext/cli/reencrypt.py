"""The command that seals a database anew, with the key that is current."""

from __future__ import annotations

from contextlib import closing

import typer

from langgraph_ext.cli.asked import YesOption, ask
from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption
from langgraph_ext.cli.place import find, opened_with_keys
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import print_json
from langgraph_ext.cli.progress import shown_steps
from langgraph_ext.database.encryption import AES_KEY, KEYS, Encryption
from langgraph_ext.errors import EncryptionError, InvalidArgument
from langgraph_ext.saver import encrypt_database
from langgraph_ext.saver.ciphers import encryption_of_environment
from langgraph_ext.saver.reencrypting import to_look_at

__all__ = ["reencrypt"]


def reencrypt(yes: YesOption = False, db: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Seal all payloads with the first key of LANGGRAPH_EXT_KEYS, whatever has sealed them; encrypt a plain database.

    Give every process the new key first, as its current one. A plain database may be used by nothing else meanwhile.
    It goes in small batches; stop it when you like, and begin it again.
    """
    with exits_with_code():
        path, encryption = find(db).path, encryption_of_environment()
        if not isinstance(encryption, Encryption):
            raise InvalidArgument(f"there is no key: set {KEYS} to name:hexadecimal digits, or {AES_KEY}")
        rows, is_plain = _looked(path)
        if not as_json:
            what = "encrypt a plain database, which nothing else may use meanwhile," if is_plain else "seal"
            typer.echo(f"would {what} with key {encryption.current!r}: {rows} rows to look at")
        ask(yes, as_json=as_json, nothing="nothing was sealed")
        with shown_steps("sealing", "rows") as step:
            done = encrypt_database(
                path, encryption, on_progress=None if step is None else lambda seen: step(seen, 2 * rows)
            )
        if as_json:
            print_json({"reencrypted": plain(done)})
        else:
            typer.echo(f"done: {done.changed} rows sealed")


def _looked(path: str) -> tuple[int, bool]:
    """How many rows there are, and whether they are plain."""
    try:
        with closing(opened_with_keys(path)) as database:
            return database.read(to_look_at), database.sealer is None
    except EncryptionError as error:
        if error.code != "reencrypt_unfinished":
            raise
        return 0, True
