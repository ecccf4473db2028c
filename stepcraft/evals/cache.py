"""A cache of model replies, so that rerunning an interrupted sample does not repeat paid calls."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from stepcraft.errors import BadInput


class ReplyCache(BaseCache):
    """A cache of chat model replies in an SQLite file, for use with LangChain's `set_llm_cache`.

    A reply is looked up by a hash of the prompt and the model's parameters.

    Args:
        folder: The folder for the file, which is created if necessary.

    Raises:
        BadInput: The file is not writable.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._replies = sqlite3.connect(
                folder / "replies.db", isolation_level=None, check_same_thread=False
            )
            self._replies.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, messages TEXT)"
            )
        except (OSError, sqlite3.Error) as error:
            raise BadInput(f"the cache in {folder} cannot be written: {error}") from error

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        """Return the reply to a prompt, or None if it is not there."""
        query = "SELECT messages FROM replies WHERE key = ?"
        with self._lock:
            row = self._replies.execute(query, (_key(prompt, llm_string),)).fetchone()
        if row is None:
            return None
        return [
            ChatGeneration(message=message) for message in messages_from_dict(json.loads(row[0]))
        ]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Store a reply."""
        messages = [message_to_dict(g.message) for g in return_val if isinstance(g, ChatGeneration)]
        row = (_key(prompt, llm_string), json.dumps(messages, ensure_ascii=False))
        with self._lock:
            self._replies.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", row)

    def clear(self, **_: Any) -> None:  # noqa: ANN401 - the signature of the class
        """Remove all replies."""
        with self._lock:
            self._replies.execute("DELETE FROM replies")


def _key(prompt: str, llm_string: str) -> str:
    return hashlib.sha256(f"{llm_string}\n{prompt}".encode()).hexdigest()
