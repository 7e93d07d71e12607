"""The real programs: how they are installed, and how each is set up to talk to the fake model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A program, and how it is treated: where it comes from, what its answers are called, whether
    its model can ask a question, how a turn is interrupted and the program left."""

    npm: str
    no: str
    yes: str
    exit: str
    interrupt: tuple[str, ...] = ("Escape",)
    asks: bool = True


PROGRAMS = {
    "claude": Program("@anthropic-ai/claude-code", no="No", yes="1", exit="/exit"),
    "codex": Program("@openai/codex", no="No", yes="1", exit="/quit", asks=False),
    "gemini": Program("@google/gemini-cli", no="No", yes="1", exit="/quit"),
    "opencode": Program(
        "opencode-ai", no="Reject", yes="1", exit="/exit", interrupt=("Escape", "Escape")
    ),
    "aider": Program("", no="n", yes="y", exit="/exit", interrupt=("C-c",), asks=False),
}


@dataclass(frozen=True)
class Lab:
    """A folder with a home, a repository and a tmux server's socket, and where the programs are."""

    folder: Path
    programs: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def socket(self) -> str:
        return str(self.folder / "tmux")

    @property
    def path(self) -> str:
        bins = [
            Path(sys.executable).parent,
            self.programs / "npm/node_modules/.bin",
            self.programs / "venv/bin",
        ]
        return os.pathsep.join([*map(str, bins), os.environ["PATH"]])

    def made(self, name: str) -> Path:
        """What the model's command makes, outside of every worktree."""
        return self.folder / f"{name}.made"

    def environ(self, port: int) -> dict[str, str]:
        url = f"http://127.0.0.1:{port}"
        return {
            "PATH": self.path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMUXORCH_STATE_DIR": str(self.folder / "state"),
            "TMUXORCH_WORKTREES_DIR": str(self.folder / "worktrees"),
            "TMUXORCH_CONFIG": str(self.home / "tmuxorch.toml"),
            "TMUXORCH_SOCKET": self.socket,
            "TMUXORCH_WATCHER": "off",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": "none",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "LAB_KEY": "none",
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "OPENAI_API_BASE": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "AIDER_ANALYTICS": "false",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }


def install(folder: Path, names: Sequence[str]) -> None:
    """Have these programs in the folder; what is there already is left."""
    wanted = [PROGRAMS[name].npm for name in names if PROGRAMS[name].npm]
    missing = [p for p in wanted if not (folder / "npm/node_modules" / p).exists()]
    if missing:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder / "npm")]
        subprocess.run([*command, *missing], check=True, stdout=sys.stderr)
    if "aider" in names and not (folder / "venv/bin/aider").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        pip = str(folder / "venv/bin/pip")
        subprocess.run([pip, "install", "-q", "aider-chat"], check=True, stdout=sys.stderr)


def version(lab: Lab, name: str) -> str:
    """The first line of what it says of itself."""
    done = subprocess.run(
        [name, "--version"],
        env={"PATH": lab.path, "HOME": str(lab.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return next((line for line in done.stdout.splitlines() if line), "not installed")


def set_up(lab: Lab, port: int) -> None:
    """A home in which each program finds its model on loopback, and trusts the repository."""
    url = f"http://127.0.0.1:{port}"
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    _write(
        lab.home / ".claude.json",
        {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(lab.repo): trusted}},
    )
    codex = (
        'model = "gpt-5"\nmodel_provider = "lab"\napproval_policy = "on-request"\n'
        "check_for_update_on_startup = false\n"
        f'[model_providers.lab]\nname = "lab"\nbase_url = "{url}/v1"\n'
        'wire_api = "responses"\nenv_key = "LAB_KEY"\n'
        f'[projects."{lab.repo}"]\ntrust_level = "trusted"\n'
    )
    _write(lab.home / ".codex/config.toml", codex)
    gemini = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "model": {"name": "gemini-2.5-flash"},
    }
    _write(lab.home / ".gemini/settings.json", gemini)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lab",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"lab": {"name": "lab"}},
    }
    opencode = {
        "model": "lab/lab",
        "provider": {"lab": provider},
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
    }
    _write(lab.home / ".config/opencode/opencode.json", opencode)
    aider = "check-update: false\nshow-model-warnings: false\nanalytics-disable: true\n"
    aider += "show-release-notes: false\ngitignore: false\nmodel: openai/lab\n"
    _write(lab.home / ".aider.conf.yml", aider)
    _write(lab.home / ".gitconfig", "[user]\n\tname = Lab\n\temail = lab@example.org\n")
    # One server for all windows would answer for the first of them.
    own = '[agents.codex]\ncommand = ["codex", "--no-daemon", ["--", "{task}"]]\n'
    _write(lab.home / "tmuxorch.toml", own)
    if not lab.repo.exists():
        _write(lab.repo / "README.md", "# A repository to try agents in\n")
        for command in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "first"]):
            git = ["git", "-C", str(lab.repo), *command]
            subprocess.run(git, env={**os.environ, "HOME": str(lab.home)}, check=True)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
