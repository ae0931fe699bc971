"""A real HTTP server that speaks the chat completions API of OpenAI from a script, one reply for each request."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal, TypeAlias, cast

__all__ = ["Answer", "Completions", "Refusal", "calls", "completions", "cuts", "refuses", "says", "stalls"]

Ending: TypeAlias = Literal["closed", "ended", "error"]
"""How a stream breaks: the connection is closed, the body ends as if it were whole, or the API sends an error."""


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments that are a text are sent as they are; an id of None is left out."""

    name: str
    arguments: str
    id: str | None


@dataclass(frozen=True)
class Answer:
    """What the model says, and what happens on the way."""

    text: str
    calls: tuple[Call, ...]
    finish_reason: str
    usage: tuple[int, int]
    cut: tuple[int, Ending] | None = None
    stall: tuple[int, float] | None = None


@dataclass(frozen=True)
class Refusal:
    """An HTTP status with an error for body."""

    status: int
    message: str
    code: str | None
    retry_after: float | None


Request: TypeAlias = dict[str, Any]
Reply: TypeAlias = "Answer | Refusal"
Step: TypeAlias = "Reply | Callable[[Request], Reply]"
"""One place of a script; a function is given the body of the request."""


def says(text: str, *, finish_reason: str = "stop", usage: tuple[int, int] = (1, 1)) -> Answer:
    """A text, streamed word by word; `usage` is the tokens in and out."""
    return Answer(text, (), finish_reason, usage)


def calls(
    *asked: tuple[str, dict[str, Any] | str],
    text: str = "",
    ids: Sequence[str | None] | None = None,
    finish_reason: str = "tool_calls",
    usage: tuple[int, int] = (1, 1),
) -> Answer:
    """Tool calls; each is streamed as its name, then its arguments in pieces.

    Args:
        asked: Name and arguments of each; a text is sent as it is, also if it is not JSON.
        text: What the model says before.
        ids: One for each call, None for a call without; if not given, ids that no other call of the server has.
        finish_reason: As the API gives it.
        usage: Tokens in and out.
    """
    named: Sequence[str | None] = [_UNNAMED] * len(asked) if ids is None else ids
    made = (
        Call(name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False), call_id)
        for (name, arguments), call_id in zip(asked, named, strict=True)
    )
    return Answer(text, tuple(made), finish_reason, usage)


def refuses(
    status: int, message: str = "refused", *, code: str | None = None, retry_after: float | None = None
) -> Refusal:
    """A status of 400 or more with the API's error body; `retry_after` is in seconds."""
    return Refusal(status, message, code, retry_after)


def cuts(after_chunks: int, answer: Answer, *, how: Ending = "closed") -> Answer:
    """The answer breaks off.

    A stream has a chunk with the role, one for each word, for each call one with its name and up to three with its
    arguments, one with the finish reason, and one with the usage if it was asked for. An answer that is not streamed
    breaks in the middle of its body, which `how` makes no difference to.
    """
    return replace(answer, cut=(after_chunks, how))


def stalls(after_chunks: int, answer: Answer, seconds: float) -> Answer:
    """The answer pauses, then goes on. One that is not streamed pauses before it begins. For chunks see `cuts`."""
    return replace(answer, stall=(after_chunks, seconds))


@contextmanager
def completions(*script: Step, keeps: bool = False) -> Iterator[Completions]:
    """Serve the script until the block is left; then no thread and no connection is left either.

    Args:
        script: The replies.
        keeps: Whether connections are kept open for the next request, as the API does; else each is closed.
    """
    server = Completions(script, keeps=keeps)
    try:
        yield server
    finally:
        server.close()


class Completions(socketserver.ThreadingTCPServer):
    """The server; made by `completions`.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        url: What a client takes for its base URL.
        requests: The bodies received, in order. The n-th is given the n-th reply; one that has none is refused with
            400, which clients do not repeat.
        connections: How many there have been.
    """

    daemon_threads = False  # else closing would not wait for them
    request_queue_size = 128

    def __init__(self, script: Sequence[Step], *, keeps: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = int(self.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.requests: list[Request] = []
        self.connections = 0
        self.keeps = keeps
        self._script = tuple(script)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._failures: list[BaseException] = []
        self._serving = threading.Thread(target=self.serve_forever, args=(0.02,), name="completions")
        self._serving.start()

    def assert_exhausted(self) -> None:
        """Every reply was asked for, and nothing more."""
        assert len(self._script) == len(self.requests), f"{len(self.requests)} requests, {len(self._script)} replies"

    def close(self) -> None:
        """Break what is still being answered; raises what a function of the script has raised."""
        self.shutdown()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # the client has been faster
                    connection.shutdown(socket.SHUT_RDWR)  # wakes whoever reads from it
        self.server_close()
        self._serving.join()
        if self._failures:
            raise self._failures[0]

    def reply_to(self, request: Request) -> tuple[int, Reply]:
        """The number of a request and what the script has for it."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if number > len(self._script):
            return number, refuses(400, f"the script has no reply {number}", code="script_exhausted")
        step = self._script[number - 1]
        return number, step(request) if callable(step) else step

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
            self.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong here; that a client has left is no error."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self._failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, or more that come over one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return None  # the client has left
        if self.path != "/v1/chat/completions":
            return self._refuse(refuses(404, f"no such path: {self.path}"))
        request: Request = json.loads(body)
        number, reply = cast(Completions, self.server).reply_to(request)
        if isinstance(reply, Refusal):
            return self._refuse(reply)
        reply = _named(reply, number)
        head = {"id": f"chatcmpl-{number}", "created": 0, "model": request["model"]}
        if request.get("stream"):
            return self._stream(reply, _chunks(reply, head, request))
        if reply.stall is not None and not self._pause(reply.stall[1]):
            self.close_connection = True
            return None
        return self._send(200, _whole(reply, head), cut=reply.cut is not None)

    def _refuse(self, refusal: Refusal) -> None:
        after = {} if refusal.retry_after is None else {"Retry-After": f"{refusal.retry_after:g}"}
        self._send(refusal.status, _error(refusal.message, refusal.code), after)

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None, *, cut: bool = False) -> None:
        sent = json.dumps(body).encode()
        self._begin(status, {"Content-Type": "application/json", "Content-Length": str(len(sent)), **(headers or {})})
        self.wfile.write(sent[: len(sent) // 2] if cut else sent)
        self.close_connection |= cut

    def _stream(self, answer: Answer, chunks: list[Any]) -> None:
        cut, ending = answer.cut or (len(chunks), None)
        stall, seconds = answer.stall or (-1, 0.0)
        self._begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for n, chunk in enumerate([*chunks, None]):
            if n == stall and not self._pause(seconds):
                ending = "closed"
                break
            if n == cut or chunk is None:
                break
            self._event(json.dumps(chunk))
        if ending == "closed":
            self.close_connection = True
            return
        if ending == "error":
            self._event(json.dumps(_error("the server had an error", None)))
        elif ending is None:
            self._event("[DONE]")
        self._piece(b"")

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        kept = {} if cast(Completions, self.server).keeps else {"Connection": "close"}
        for name, value in {**headers, **kept}.items():
            self.send_header(name, value)
        self.end_headers()

    def _event(self, data: str) -> None:
        self._piece(f"data: {data}\n\n".encode())

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _pause(self, seconds: float) -> bool:
        """Wait; False as soon as the client has left, or the server is being closed."""
        self.connection.settimeout(seconds)
        try:
            self.connection.recv(1)  # nothing more is sent, so all that can come is the end
        except TimeoutError:
            self.connection.settimeout(None)
            return True
        return False

    def log_message(self, format: str, *args: Any) -> None:
        pass


_UNNAMED = "(an id of the server's)"


def _named(answer: Answer, number: int) -> Answer:
    """With ids for the calls that are to have one of the server's."""
    made = [
        replace(call, id=f"call_{number}_{n}") if call.id == _UNNAMED else call for n, call in enumerate(answer.calls)
    ]
    return replace(answer, calls=tuple(made))


def _whole(answer: Answer, head: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}


def _chunks(answer: Answer, head: dict[str, Any], request: Request) -> list[Any]:
    head = {**head, "object": "chat.completion.chunk"}
    counted = bool((request.get("stream_options") or {}).get("include_usage"))
    shared = {"usage": None} if counted else {}  # the API sends it with every chunk, if it was asked for

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> Any:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**head, "choices": [choice], **shared}

    made = [chunk({"role": "assistant", "content": "", "refusal": None})]
    made += [chunk({"content": word}) for word in re.findall(r"\s*\S+\s*", answer.text)]
    for index, call in enumerate(answer.calls):
        made.append(chunk({"tool_calls": [{"index": index, **_call(call, "")}]}))
        made += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in _pieces(call.arguments)
        ]
    made.append(chunk({}, answer.finish_reason))
    return [*made, {**head, "choices": [], "usage": _usage(answer)}] if counted else made


def _call(call: Call, arguments: str) -> dict[str, Any]:
    named = {} if call.id is None else {"id": call.id}
    return {**named, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _pieces(text: str) -> list[str]:
    """Three, so that names and numbers are torn apart."""
    size = max(1, -(-len(text) // 3))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _usage(answer: Answer) -> dict[str, int]:
    came, went = answer.usage
    return {"prompt_tokens": came, "completion_tokens": went, "total_tokens": came + went}


def _error(message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted_error", "param": None, "code": code}}
