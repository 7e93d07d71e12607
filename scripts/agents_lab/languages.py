"""The languages in which programs talk to their models: what each wants to hear, as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Speak = Callable[[Iterable[str], str, dict[str, Any]], Iterator[bytes]]


def _event(value: dict[str, Any] | str, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()


def messages(pieces: Iterable[str], tool: str, arguments: dict[str, Any]) -> Iterator[bytes]:
    """Anthropic's Messages."""

    def event(name: str, **rest: Any) -> bytes:
        return _event({"type": name, **rest}, name)

    usage = {"input_tokens": 10, "output_tokens": 1}
    yield event(
        "message_start",
        message={"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant",
                 "model": "claude-x", "content": [], "stop_reason": None, "usage": usage},
    )  # fmt: skip
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in pieces:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    if tool:
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": tool, "input": {}}
        yield event("content_block_start", index=1, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        yield event("content_block_delta", index=1, delta=delta)
        yield event("content_block_stop", index=1)
    reason = "tool_use" if tool else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5})
    yield event("message_stop")


def responses(pieces: Iterable[str], tool: str, arguments: dict[str, Any]) -> Iterator[bytes]:
    """OpenAI's Responses."""

    def event(name: str, **rest: Any) -> bytes:
        return _event({"type": name, **rest}, name)

    answer = f"resp_{time.time_ns()}"
    yield event("response.created", response={"id": answer})
    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "m1", "content": []}
    yield event("response.output_item.added", output_index=0, item=item)
    said = ""
    for piece in pieces:
        said += piece
        yield event(
            "response.output_text.delta", item_id="m1", output_index=0, content_index=0, delta=piece
        )
    item = {**item, "content": [{"type": "output_text", "text": said}]}
    yield event("response.output_item.done", output_index=0, item=item)
    if tool:
        call = {"type": "function_call", "id": "f1", "call_id": f"call_{time.time_ns()}",
                "name": tool, "arguments": json.dumps(arguments)}  # fmt: skip
        yield event("response.output_item.done", output_index=1, item=call)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield event("response.completed", response={"id": answer, "output": [], "usage": usage})


def chat(pieces: Iterable[str], tool: str, arguments: dict[str, Any]) -> Iterator[bytes]:
    """OpenAI's Chat Completions."""

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "x",
                       "choices": [choice]})  # fmt: skip

    yield event({"role": "assistant", "content": ""})
    for piece in pieces:
        yield event({"content": piece})
    if tool:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {
            "index": 0,
            "id": f"call_{time.time_ns()}",
            "type": "function",
            "function": function,
        }
        yield event({"tool_calls": [call]})
    yield event({}, "tool_calls" if tool else "stop")
    yield _event("[DONE]")


def gemini(pieces: Iterable[str], tool: str, arguments: dict[str, Any]) -> Iterator[bytes]:
    def event(part: dict[str, Any], reason: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        return _event({"candidates": [candidate], "usageMetadata": {"totalTokenCount": 15}})

    for piece in pieces:
        yield event({"text": piece})
    part = {"functionCall": {"name": tool, "args": arguments}} if tool else {"text": " "}
    yield event(part, "STOP")


def whole(speak: Speak, text: str) -> dict[str, Any]:
    if speak is messages:
        return {"id": "m", "type": "message", "role": "assistant", "model": "x",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    if speak is gemini:
        content = {"role": "model", "parts": [{"text": text}]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    message = {"role": "assistant", "content": text}
    return {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message,
            "finish_reason": "stop"}], "usage": {"total_tokens": 2}}  # fmt: skip


# By the end of the address that is asked.
LANGUAGES: tuple[tuple[str, Speak | None], ...] = (
    ("count_tokens", None),
    ("/messages", messages),
    ("/responses", responses),
    ("/chat/completions", chat),
    ("enerateContent", gemini),
)
