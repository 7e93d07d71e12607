"""A save that somebody has changed writes nothing outside the worktree, and stays."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_for
from tests.workshop import Workshop, write
from tmuxorch.errors import CannotRestore, TmuxorchError
from tmuxorch.model import HistoryEntry

Manifest = dict[str, Any]
Tamper = Callable[[Path, Path], None]
FILE, LINK = stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777
REFUSED: dict[str, Tamper] = {}


def refused(name: str) -> Callable[[Tamper], Tamper]:
    def keep(tamper: Tamper) -> Tamper:
        REFUSED[name] = tamper
        return tamper

    return keep


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def saved(shop: Workshop) -> tuple[HistoryEntry, Path]:
    """A real save of edits, new files, a link, something staged and a directory."""
    agent = shop.worker("w")
    top = Path(agent.task.worktree)
    write(top / "README", "edited\n")
    write(top / "new/file", "new\n")
    write(top / "new/other", "other\n")
    (top / "pointer").symlink_to("README")
    write(top / "staged", "staged\n")
    shop.sh(top, "add", "staged")
    entry = shop.remove(agent)
    assert entry.archive is not None
    save = Path(entry.archive)
    wait_for(lambda: not [*save.glob("files.*")], what="the end of the deletion in the background")
    return entry, save


def edit(save: Path, change: Callable[[Manifest], object]) -> None:
    said = json.loads((save / "manifest").read_text())
    change(said)
    (save / "manifest").write_text(json.dumps(said))


def keep(path: object, mode: object = FILE, size: object = 4) -> Callable[[Manifest], object]:
    return lambda said: said["kept"].append([path, mode, size])


@refused("an absolute path")
def _(save: Path, outside: Path) -> None:
    edit(save, keep(f"{outside}/hit"))


@refused("a way up")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("../../../outside/hit"))


@refused("a way up in the middle")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("new/../../hit"))


@refused("a directory above")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("..", stat.S_IFDIR | 0o777))


@refused("the top itself")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep(".", FILE))


@refused("an empty path")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep(""))


@refused("an empty name on the way")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("new//file"))


@refused("a NUL in a path")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("new/a\0b"))


@refused("a link on the way in files")
def _(save: Path, outside: Path) -> None:
    (save / "files/new").rename(save / "files/old")
    (save / "files/new").symlink_to(outside)


@refused("a link on the way in the manifest")
def _(save: Path, outside: Path) -> None:
    (save / "files/way").symlink_to(outside)
    write(outside / "read", "secret\n")
    edit(save, keep("way", LINK, len(str(outside))))
    edit(save, keep("way/read", FILE, 7))


@refused("a file that became a link")
def _(save: Path, outside: Path) -> None:
    write(outside / "secret", "secret\n")
    (save / "files/new/file").unlink()
    (save / "files/new/file").symlink_to(outside / "secret")


@refused("a file that became a FIFO")
def _(save: Path, _outside: Path) -> None:
    (save / "files/new/file").unlink()
    os.mkfifo(save / "files/new/file")


@refused("a file that is gone")
def _(save: Path, _outside: Path) -> None:
    (save / "files/new/file").unlink()


@refused("a path that is a number")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep(7))


@refused("a mode that is a word")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("x", "0644"))


@refused("a mode without end")
def _(save: Path, _outside: Path) -> None:
    edit(save, keep("new/file", 1 << 80))


@refused("kept that is a word")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(kept="abc"))


@refused("gone that is a number")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(gone=[1]))


@refused("permissions that are a word")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(usual="rw"))


@refused("a head that is an option")
def _(save: Path, outside: Path) -> None:
    edit(save, lambda said: said.update(head=f"--output={outside}/hit"))


@refused("a branch that is a way up")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(branch="../../../../outside/hit"))


@refused("a tip that is a list")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(tip=["a"]))


@refused("whole that is a word")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(whole="yes"))


@refused("an unknown field")
def _(save: Path, _outside: Path) -> None:
    edit(save, lambda said: said.update(more=1))


@refused("no JSON")
def _(save: Path, _outside: Path) -> None:
    (save / "manifest").write_text("[" * 100_000)


@refused("a list")
def _(save: Path, _outside: Path) -> None:
    (save / "manifest").write_text("[]")


@refused("a FIFO for a manifest")
def _(save: Path, _outside: Path) -> None:
    (save / "manifest").unlink()
    os.mkfifo(save / "manifest")


@refused("files that are a link")
def _(save: Path, outside: Path) -> None:
    (save / "files").rename(outside / "files")
    (save / "files").symlink_to(outside / "files")


@refused("a link in git's directory")
def _(save: Path, outside: Path) -> None:
    (save / "git/index").rename(outside / "index")
    (save / "git/index").symlink_to(outside / "index")


@refused("a broken pack of what was staged")
def _(save: Path, _outside: Path) -> None:
    (save / "staged.pack").write_bytes(b"PACK nothing")


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_sentence_and_the_save_stays(shop: Workshop, name: str) -> None:
    entry, save = saved(shop)
    outside = shop.directory / "outside"
    write(outside / "hit", "mine\n")
    REFUSED[name](save, outside)
    before, mine, there = names(save), files(shop.repo), files(outside)
    with pytest.raises(TmuxorchError) as failure:
        shop.restore(entry)
    assert "\n" not in failure.value.message
    assert (names(save), files(shop.repo)) == (before, mine)
    assert files(outside) == there, "nothing is written elsewhere"
    assert not os.path.lexists(entry.task.worktree)
    assert shop.ctx.store.agents() == []


def test_a_commit_that_leads_out_by_a_link_writes_nothing_there(shop: Workshop) -> None:
    entry, save = saved(shop)
    outside = shop.directory / "outside"
    outside.mkdir()
    blob = shop.sh(shop.repo, "rev-parse", "HEAD:README").strip()
    to = save / "target"
    to.write_text(str(outside))
    link = shop.sh(shop.repo, "hash-object", "-w", str(to)).strip()
    inner = raw_tree(shop, ("100644", "hit", blob))
    tree = raw_tree(shop, ("120000", "a", link), ("40000", "a", inner))
    head = shop.sh(shop.repo, "commit-tree", "-m", "evil", tree).strip()
    edit(save, lambda said: said.update(head=head, tip=head, commits=[head]))
    with pytest.raises(TmuxorchError):
        shop.restore(entry)
    assert list(outside.iterdir()) == []


def raw_tree(shop: Workshop, *entries: tuple[str, str, str]) -> str:
    data = b"".join(f"{m} {n}".encode() + b"\0" + bytes.fromhex(oid) for m, n, oid in entries)
    file = write(shop.directory / "tree", data)
    asked = ("hash-object", "-t", "tree", "--literally", "-w", str(file))
    return shop.sh(shop.repo, *asked).strip()


def test_permissions_to_be_somebody_else_do_not_come_back(shop: Workshop) -> None:
    entry, save = saved(shop)
    edit(save, lambda said: [k.__setitem__(1, k[1] | 0o6000) for k in said["kept"]])
    top = Path(shop.restore(entry).task.worktree)
    modes = [os.lstat(path).st_mode for path in [top, *top.rglob("*")]]
    assert [mode for mode in modes if stat.S_ISREG(mode) and mode & 0o6000] == []
    assert (top / "new/file").read_text() == "new\n"


@pytest.mark.parametrize("kind", [stat.S_IFBLK, stat.S_IFCHR, stat.S_IFSOCK])
def test_no_device_is_made(shop: Workshop, kind: int) -> None:
    entry, save = saved(shop)
    edit(save, keep("device", kind | 0o666, 0))
    try:
        top = Path(shop.restore(entry).task.worktree)
    except CannotRestore:
        return
    assert not (top / "device").exists()


def names(top: Path) -> list[str]:
    return sorted(os.path.relpath(f"{here}/{n}", top) for here, d, f in os.walk(top) for n in d + f)


def files(top: Path) -> dict[str, bytes]:
    found = (p for p in top.rglob("*") if p.is_file() and ".git/" not in f"{p}")
    return {str(p): p.read_bytes() for p in found}
