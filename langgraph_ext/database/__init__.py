"""The database: transactions as plain functions, run by one lane per database.

`open_database(url)` returns a `Database`; `transact(fn, …)` and `atransact(fn, …)` run `fn(tx, …)` as one durable
transaction, `read` and `aread` run it on a connection that cannot write. Nothing outside this package imports a driver.
"""

from langgraph_ext.database.app_tx import AppTx
from langgraph_ext.database.appends import Append
from langgraph_ext.database.closing import Closing
from langgraph_ext.database.connection import Fsync
from langgraph_ext.database.database import Database, open_database
from langgraph_ext.database.encryption import LOCKED, Encryption
from langgraph_ext.database.loops import Answer, on_a_loop, tell
from langgraph_ext.database.sealed_json import metadata_opened, metadata_sealed, seal_words, worded_in
from langgraph_ext.database.sealing import Sealer, name_place, plaintext
from langgraph_ext.database.tx import GREATEST, Row, Tx

__all__ = [
    "GREATEST",
    "LOCKED",
    "Answer",
    "AppTx",
    "Append",
    "Closing",
    "Database",
    "Encryption",
    "Fsync",
    "Row",
    "Sealer",
    "Tx",
    "metadata_opened",
    "metadata_sealed",
    "name_place",
    "on_a_loop",
    "open_database",
    "plaintext",
    "seal_words",
    "tell",
    "worded_in",
]
