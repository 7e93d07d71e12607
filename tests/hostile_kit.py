"""All that an agent which may write only its worktree can plant so that somebody runs a program.

Every planted program leaves a file of its own name in the directory of canaries.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "prepare-commit-msg", "push-to-checkout", "reference-transaction", "sendemail-validate",
)  # fmt: skip
# Settings whose value is a program, by the key that is given to `git config`.
PROGRAMS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass",
    "core.gitProxy", "core.alternateRefsCommand", "sequence.editor", "gpg.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "gpg.x509.program", "credential.helper",
    "diff.external", "diff.evil.command", "diff.evil.textconv", "diff.default.textconv",
    "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "filter.a=b.clean",
    "filter.a=b.smudge", "filter.lfs.clean", "filter.lfs.smudge", "filter.lfs.process",
    "merge.evil.driver", "merge.default.driver", "mergetool.evil.cmd", "difftool.evil.cmd",
    "trailer.evil.command", "trailer.evil.cmd", "interactive.diffFilter", "pager.status",
    "pager.diff", "pager.log", "man.evil.cmd", "browser.evil.cmd", "guitool.evil.cmd",
    "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.vcs",
    "uploadpack.packObjectsHook", "receive.procReceiveRefs", "sendemail.smtpServer",
    "instaweb.httpd", "web.browser", "imap.tunnel", "transfer.credentialsInUrl",
)  # fmt: skip
ALIASES = ("status", "diff", "log", "config", "rev-list", "rev-parse", "cat-file", "st")
PLAIN = {
    "log.showSignature": "true",
    "commit.gpgSign": "true",
    "status.submoduleSummary": "true",
    "diff.submodule": "log",
    "diff.ignoreSubmodules": "none",
    "submodule.recurse": "true",
    "fetch.recurseSubmodules": "true",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "extensions.partialClone": "origin",
    "remote.origin.promisor": "true",
    "remote.origin.partialCloneFilter": "blob:none",
    "core.repositoryFormatVersion": "1",
    "merge.default": "evil",
    "diff.tool": "evil",
    "merge.tool": "evil",
    "credential.interactive": "true",
    "maintenance.auto": "true",
    "gc.auto": "1",
}
# The worktree's own say: every file goes through everything that anybody's settings define.
ATTRIBUTES = (
    "* filter=evil diff=evil merge=evil -text\n*.b filter=a=b\n*.p filter=theirs diff=theirs\n"
    "*.bin filter=lfs diff=lfs merge=lfs\nREADME filter=theirs diff=theirs merge=theirs\n"
)


@dataclass(frozen=True)
class Kit:
    """A directory that planted programs write to, and what they are planted in."""

    canaries: Path
    environ: Mapping[str, str]

    @classmethod
    def make(cls, directory: Path, environ: Mapping[str, str]) -> Kit:
        kit = cls(directory / "canaries", environ)
        kit.canaries.mkdir()
        script = f'#!/bin/sh\n: > "{kit.canaries}/$1"\ncat > /dev/null < /dev/null\nexit 1\n'
        (directory / "canary").write_text(script)
        (directory / "canary").chmod(0o755)
        return kit

    def command(self, label: str) -> str:
        """A shell command that tells on whoever runs it."""
        return f"{self.canaries.parent}/canary {label.replace('/', '_')}"

    @property
    def sung(self) -> list[str]:
        return sorted(os.listdir(self.canaries))

    def git(self, directory: Path, *args: str, ok: bool = True) -> str:
        """As an agent would that takes care to run nothing of its own yet."""
        quiet = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        argv = ["git", *quiet, "-C", str(directory), *args]
        done = subprocess.run(argv, env=dict(self.environ), capture_output=True, check=False)
        assert not ok or done.returncode == 0, f"{args}: {os.fsdecode(done.stderr)}"
        return os.fsdecode(done.stdout)

    # -- repositories -------------------------------------------------------------------

    def repository(self, top: Path, label: str) -> Path:
        """A repository with a commit, an edit and new files; returns its git directory."""
        top.mkdir(parents=True, exist_ok=True)
        self.git(top, "init", "-q", "--template=", ".")
        for name in ("README", "f.b", "f.bin"):
            (top / name).write_text(f"{name}\n")
        self.git(top, "add", "-f", "README", "f.b", "f.bin")
        self.git(top, "commit", "-q", "-m", "first", "--no-gpg-sign")
        (top / ".gitattributes").write_text(ATTRIBUTES)
        for name in ("README", "f.b", "f.bin", "new.b"):
            (top / name).write_text("edited\n")
        self.poison(top / ".git", label)
        return top / ".git"

    def poison(self, own: Path, label: str) -> None:
        """Fill a git directory with settings, hooks and attributes that run programs."""
        config = own / "config"
        for key in PROGRAMS:
            self.git(own, "config", "-f", str(config), key, self.command(f"{label}-{key}"))
        for name in ALIASES:
            value = f"!{self.command(f'{label}-alias-{name}')}"
            self.git(own, "config", "-f", str(config), f"alias.{name}", value)
        for key, value in PLAIN.items():
            self.git(own, "config", "-f", str(config), key, value)
        run = self.command(f"{label}-submodule")
        for key, value in (
            ("submodule.sub.update", f"!{run}"),
            ("remote.origin.url", f"ext::{self.command(f'{label}-ext')}"),
            ("core.hooksPath", str(own / "hooks")),
            ("filter.evil.required", "true"),
            ("filter.a=b.required", "true"),
        ):
            self.git(own, "config", "-f", str(config), key, value)
        self.hooks(own / "hooks", label)
        (own / "info").mkdir(exist_ok=True)
        (own / "info" / "attributes").write_text(ATTRIBUTES)

    def hooks(self, directory: Path, label: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            (directory / name).write_text(f"#!/bin/sh\n{self.command(f'{label}-hook-{name}')}\n")
            (directory / name).chmod(0o755)

    def person(self, gitconfig: Path) -> None:
        """Programs that the person's own settings name, for attributes to call upon."""
        keys = (
            "filter.theirs.clean", "filter.theirs.smudge", "filter.theirs.process",
            "diff.theirs.command", "diff.theirs.textconv", "merge.theirs.driver", "diff.external",
            "gpg.program", "core.pager", "core.fsmonitor", "filter.a=b.clean", "filter.a=b.smudge",
        )  # fmt: skip
        for key in keys:
            asked = ("config", "-f", str(gitconfig), key, self.command(f"person-{key}"))
            self.git(gitconfig.parent, *asked)
        self.git(gitconfig.parent, "config", "-f", str(gitconfig), "log.showSignature", "true")

    # -- what is planted in a worktree --------------------------------------------------

    def attributes(self, top: Path) -> None:
        """Attributes that name the person's filters, on files that were changed and are new."""
        (top / ".gitattributes").write_text(ATTRIBUTES)
        (top / "README").write_text("changed\n")
        for name in ("new.p", "new.b", "src/new.bin"):
            (top / name).write_text("new\n")

    def texts(self, top: Path) -> None:
        """Files that git or its like read settings from when they are in a worktree."""
        run = self.command("text")
        (top / ".gitmodules").write_text(
            f'[submodule "sub"]\n\tpath = sub\n\turl = ext::{run}\n\tupdate = !{run}\n'
            f'[submodule "../../x"]\n\tpath = ../outside\n\turl = -u{run}\n'
        )
        (top / ".lfsconfig").write_text(
            f'[lfs]\n\turl = ext::{run}\n[lfs "customtransfer.x"]\n\tpath = {run}\n'
        )
        (top / ".mailmap").write_text("Evil <evil@example.org> <test@example.org>\n")
        (top / ".tmuxorch.toml").write_text(f'[setup]\nrun = ["{run}"]\ncopy = ["/etc/passwd"]\n')
        (top / "out").symlink_to("/etc")
        (top / "up").symlink_to("../../..")
        (top / "self").symlink_to("self")

    def nested(self, top: Path) -> None:
        """Repositories inside: new, ignored, a submodule, and one that misses objects."""
        self.repository(top / "inner", "nested")
        self.repository(top / "deep" / "er" / "repo", "deep")
        (top / ".gitignore").write_text("*.log\n.env\nhidden/\n")
        self.repository(top / "hidden", "ignored")
        sub = self.repository(top / "sub", "submodule")
        head = self.git(top / "sub", "rev-parse", "HEAD").strip()
        self.git(top, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
        shutil.move(sub, top / "sub-git")
        (top / "sub" / ".git").write_text("gitdir: ../sub-git\n")
        led = self.repository(top / "led", "led")
        more = f'[filter "more"]\n\tclean = {self.command("include")}\n'
        (led / "more").write_text(more)
        (led / "info" / "attributes").write_text("* filter=more\n")
        self.git(top, "config", "-f", str(led / "config"), "include.path", "more")
        lacking = self.repository(top / "lacking", "promisor")
        blob = self.git(top / "lacking", "rev-parse", "HEAD:README").strip()
        (lacking / "objects" / blob[:2] / blob[2:]).unlink()
        bare = top / "bare"
        self.git(top, "init", "-q", "--bare", "--template=", str(bare))
        self.poison(bare, "bare")

    def fifos(self, top: Path) -> None:
        """FIFOs and sockets where git or we read files."""
        for name in (".gitignore", ".gitattributes", ".gitmodules", ".mailmap", "src/.gitignore"):
            (top / name).unlink(missing_ok=True)
            os.mkfifo(top / name)
        (top / "README").unlink()
        os.mkfifo(top / "README")
        for number, name in enumerate(("index", "HEAD", "config", "packed-refs", "info/exclude")):
            own = self.repository(top / f"piped{number}", f"piped-{name}")
            (own / name).unlink(missing_ok=True)
            os.mkfifo(own / name)
        for number, key in enumerate(("include.path", "core.attributesFile", "core.excludesFile")):
            own = self.repository(top / f"led{number}", f"led-{key}")
            os.mkfifo(top / f"pipe{number}")
            asked = ("config", "-f", f"{own}/config", "--add", key, str(top / f"pipe{number}"))
            self.git(top, *asked)
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(top)  # the name of a socket is short
            try:
                server.bind("sock")
            finally:
                os.chdir(here)

    def huge(self, top: Path) -> None:
        with (top / "huge").open("wb") as file:
            file.truncate(1 << 33)

    # -- what is done to the `.git` of a worktree ------------------------------------------

    def _home(self, top: Path) -> Path:
        """A repository of the agent's own that has the worktree's files as its own."""
        home = top / ".cache" / "home"
        self.repository(home, "dotgit")
        return home / ".git"

    def led_elsewhere(self, top: Path) -> None:
        home = self._home(top)
        self.git(home, "config", "-f", str(home / "config"), "core.worktree", str(top))
        (top / ".git").write_text(f"gitdir: {home}\n")

    def a_directory(self, top: Path) -> None:
        home = self._home(top)
        (top / ".git").unlink()
        shutil.move(home, top / ".git")

    def a_link(self, top: Path) -> None:
        home = self._home(top)
        (top / ".git").unlink()
        (top / ".git").symlink_to(home)

    def a_fifo(self, top: Path) -> None:
        (top / ".git").unlink()
        os.mkfifo(top / ".git")
        (top / "README").write_text("changed\n")

    def missing(self, top: Path) -> None:
        (top / ".git").unlink()
        (top / "README").write_text("changed\n")

    def nothing_but_files(self, top: Path) -> None:
        self.texts(top)
        self.attributes(top)

    def everything_inside(self, top: Path) -> None:
        self.texts(top)
        self.attributes(top)
        self.nested(top)


PLANTS: dict[str, Callable[[Kit, Path], None]] = {
    "its .git leads elsewhere": Kit.led_elsewhere,
    "its .git is a directory": Kit.a_directory,
    "its .git is a link": Kit.a_link,
    "its .git is a FIFO": Kit.a_fifo,
    "its .git is missing": Kit.missing,
    "files and attributes": Kit.nothing_but_files,
    "repositories inside": Kit.everything_inside,
    "FIFOs and sockets": Kit.fifos,
}
ODD = tuple(list(PLANTS)[:4])
