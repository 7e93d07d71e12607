"""A model that thinks nothing: it answers every program in the language that it speaks.

What it does is asked for by a word in the last message: SLOWNOW streams for some seconds, TOOLNOW
asks to run a command (or to make a file), ASKNOW asks a question with choices; anything else gets
a quick answer.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agents_lab.languages import LANGUAGES, whole

WORDS = 40
STEP_S = 0.15
WISHES = ("SLOWNOW", "TOOLNOW", "ASKNOW", "QUICK")
TOOL_RESULT = r'tool_result|functionResponse|function_call_output|"role": "tool"'
QUESTION = {
    "question": "Which colour should it be?",
    "header": "Colour",
    "type": "choice",
    "multiSelect": False,
    "options": [
        {"label": "Red", "description": "red one"},
        {"label": "Blue", "description": "blue one"},
    ],
}
ASKING = ("AskUserQuestion", "ask_user", "question", "request_user_input")
# What aider takes for a new file, which it asks about.
NEW_FILE = "Here it is:\n\nmade.txt\n```\nhello\n```\n"


@dataclass
class Request:
    """One request of a conversation, and when its answer began and was over."""

    message: str
    answers_tool: bool
    tool: str
    began_at: float
    ended_at: float | None = None


class Model:
    """The requests that came, and the command that its tool is to run."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.requests: list[Request] = []

    @property
    def is_answering(self) -> bool:
        return any(request.ended_at is None for request in self.requests)

    def plan(self, body: dict[str, Any]) -> tuple[str, str, dict[str, Any], Request | None]:
        """What to answer: text, and a tool's name and arguments if one is to be called.

        The request is noted; one for a title, which is not the person's, is not.
        """
        tools = set(_tools(body))
        message, is_answered = _last_message(body)
        is_aider = "file listing" in json.dumps(body.get("messages", []))
        if not tools and not is_aider:
            return '{"title": "A title"}', "", {}, None
        wish = max(WISHES, key=message.rfind) if any(w in message for w in WISHES) else ""
        text, tool, arguments = "A quick answer.", "", {}
        if is_answered:
            text = "It is done."
        elif wish == "TOOLNOW" and is_aider:
            text = NEW_FILE
        elif wish == "TOOLNOW":
            found = next((c for c in self._commands() if c[0] in tools), None)
            text, (tool, arguments) = "I use a tool.", found or ("", {})
        elif wish == "ASKNOW":
            tool = next((name for name in ASKING if name in tools), "")
            text, arguments = "I ask.", {"questions": [QUESTION]}
        elif wish == "SLOWNOW":
            text = " ".join(f"word{n}" for n in range(WORDS))
        request = Request(message, is_answered, tool, time.monotonic())
        self.requests.append(request)
        return text, tool, arguments, request

    def _commands(self) -> Iterator[tuple[str, dict[str, Any]]]:
        said = {"command": self.command, "description": "Touch a file"}
        asked = {"sandbox_permissions": "require_escalated", "justification": "May I touch it?"}
        yield "Bash", said
        yield "bash", said
        yield "run_shell_command", said
        yield "exec_command", {"cmd": self.command, **asked}
        yield "shell_command", {"command": self.command, **asked}
        yield "shell", {"command": ["sh", "-c", self.command], **asked}


def _tools(body: dict[str, Any]) -> Iterator[str]:
    for tool in body.get("tools") or []:
        if "functionDeclarations" in tool:
            yield from (one["name"] for one in tool["functionDeclarations"])
        else:
            yield (tool.get("function") or tool).get("name", "")


def _last_message(body: dict[str, Any]) -> tuple[str, bool]:
    """The person's last words, and whether a tool has answered since."""
    turns = body.get("messages") or body.get("contents") or body.get("input") or []
    if isinstance(turns, str):
        return turns, False
    is_answered, said, of_tool = False, "", ""
    for turn in reversed(turns):
        text = json.dumps(turn, ensure_ascii=False)
        is_result = re.search(TOOL_RESULT, text) and not any(wish in text for wish in WISHES)
        if is_result:  # what is said after a refused tool comes along with that
            if said:
                break
            is_answered = True
            of_tool = text + of_tool
        elif turn.get("role") == "user":
            said = text + said  # aider adds a message of its own after the person's
        elif said:
            break
    return of_tool + said, is_answered


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._json({"data": [], "models": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = {}
        speak = next((how for end, how in LANGUAGES if end in self.path), None)
        if speak is None:
            self._json({"totalTokens": 1, "input_tokens": 1})
            return
        text, tool, arguments, request = self.model.plan(body)
        try:
            if "stream" not in self.path and not body.get("stream"):
                self._json(whole(speak, text))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in speak(_pieces(text), tool, arguments):
                self.wfile.write(event)
                self.wfile.flush()
        except OSError:
            pass  # it was interrupted
        finally:
            self.close_connection = True
            if request is not None:
                request.ended_at = time.monotonic()

    def _json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _pieces(text: str) -> Iterator[str]:
    words = text.split(" ")
    for word in words:
        if len(words) >= WORDS:
            time.sleep(STEP_S)
        yield word + " "


def serve(model: Model) -> int:
    """Answer on loopback from a thread; the port."""
    handler = type("Bound", (Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
