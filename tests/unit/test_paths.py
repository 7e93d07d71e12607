"""Where things are kept, and which tmux server is meant."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from tmuxorch import paths
from tmuxorch.errors import ConfigInvalid, StoreUnusable, UsageError

ORDINARY = 65534


class Place(NamedTuple):
    of: Callable[[Mapping[str, str]], str]
    variable: str
    xdg: str
    below_xdg: str
    below_home: str


PLACES = [
    Place(
        paths.state_dir,
        "TMUXORCH_STATE_DIR",
        "XDG_STATE_HOME",
        "tmuxorch",
        ".local/state/tmuxorch",
    ),
    Place(
        paths.worktrees_dir,
        "TMUXORCH_WORKTREES_DIR",
        "XDG_DATA_HOME",
        "tmuxorch/worktrees",
        ".local/share/tmuxorch/worktrees",
    ),
    Place(
        paths.config_path,
        "TMUXORCH_CONFIG",
        "XDG_CONFIG_HOME",
        "tmuxorch/config.toml",
        ".config/tmuxorch/config.toml",
    ),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.variable)
class TestAPlace:
    def test_is_below_home_by_default(self, place: Place) -> None:
        assert place.of({"HOME": "/home/me"}) == f"/home/me/{place.below_home}"

    def test_follows_the_xdg_variable(self, place: Place) -> None:
        assert place.of({"HOME": "/home/me", place.xdg: "/x/"}) == f"/x/{place.below_xdg}"

    @pytest.mark.parametrize("value", ["", "relative", "./x", "~/x"])
    def test_ignores_a_relative_xdg_variable(self, place: Place, value: str) -> None:
        assert place.of({"HOME": "/h", place.xdg: value}) == f"/h/{place.below_home}"

    def test_is_what_our_own_variable_says(self, place: Place) -> None:
        assert place.of({place.variable: "/here/../there", place.xdg: "/x"}) == "/there"

    def test_takes_a_tilde_in_our_own_variable_for_home(self, place: Place) -> None:
        assert place.of({place.variable: "~/mine", "HOME": "/home/me"}) == "/home/me/mine"
        assert place.of({place.variable: "~", "HOME": "/home/me"}) == "/home/me"

    def test_is_absolute_even_if_our_own_variable_is_not(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("/usr")
        assert place.of({place.variable: "mine"}) == "/usr/mine"

    def test_counts_an_empty_variable_as_not_set(self, place: Place) -> None:
        assert place.of({place.variable: "", "HOME": "/h"}) == f"/h/{place.below_home}"

    @pytest.mark.parametrize(
        ("environ", "said"), [({}, "not set"), ({"HOME": "me"}, "not an absolute path")]
    )
    def test_says_what_to_set_when_there_is_no_home(
        self, place: Place, environ: dict[str, str], said: str
    ) -> None:
        expected = f"HOME is {said}: set it, or set {place.variable} to an absolute path"
        with pytest.raises(ConfigInvalid, match=expected):
            place.of(environ)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestAPrivateDirectory:
    def test_is_made_with_its_parents_for_its_owner_only(self, tmp_path: Path) -> None:
        paths.ensure_private(str(tmp_path / "a/b/c"))
        assert mode(tmp_path / "a/b/c") == 0o700

    def test_is_made_usable_under_any_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            paths.ensure_private(str(tmp_path / "open"))
        finally:
            os.umask(before)
        assert mode(tmp_path / "open") == 0o700

    def test_of_ours_that_others_can_read_is_closed_to_them(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        paths.ensure_private(str(tmp_path))
        assert mode(tmp_path) == 0o700

    def test_that_is_fine_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("")
        paths.ensure_private(str(tmp_path))
        paths.ensure_private(str(tmp_path))
        assert (tmp_path / "kept").exists()

    def test_is_never_a_shared_one(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o1777)
        with pytest.raises(StoreUnusable, match="shared by design"):
            paths.ensure_private(str(tmp_path))
        assert mode(tmp_path) == 0o1777

    @pytest.mark.parametrize("below", ["file", "file/deeper"])
    def test_cannot_be_where_a_file_is(self, tmp_path: Path, below: str) -> None:
        (tmp_path / "file").write_text("kept")
        with pytest.raises(StoreUnusable, match="not a directory is in the way"):
            paths.ensure_private(str(tmp_path / below))
        assert (tmp_path / "file").read_text() == "kept"

    def test_cannot_be_where_a_link_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        with pytest.raises(StoreUnusable, match="in the way"):
            paths.ensure_private(str(tmp_path / "link"))

    def test_that_cannot_be_made_says_why(self) -> None:
        with pytest.raises(StoreUnusable, match=r"/proc/none cannot be used: No such file"):
            paths.ensure_private("/proc/none")

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    def test_says_that_the_disk_is_full_or_read_only(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "mkdir", refuse)
        with pytest.raises(StoreUnusable, match=os.strerror(code)):
            paths.ensure_private(str(tmp_path / "new"))


@pytest.fixture
def others_directory() -> Iterator[Path]:
    """A directory an unprivileged user can reach and not write to; `mine` in it is his own."""
    with TemporaryDirectory() as directory:
        mine = Path(directory, "mine")
        mine.mkdir()
        if os.geteuid() == 0:
            os.chown(mine, ORDINARY, ORDINARY)
        mine.chmod(0o500)
        os.chmod(directory, 0o555)
        yield Path(directory)
        mine.chmod(0o700)
        os.chmod(directory, 0o700)


@pytest.mark.parametrize(
    ("below", "reason"), [("mine", "it is not writable"), ("new", "Permission denied")]
)
def test_a_directory_we_may_not_write_to_is_not_used(
    others_directory: Path, below: str, reason: str
) -> None:
    said = as_an_ordinary_user(lambda: paths.ensure_private(str(others_directory / below)))
    assert said == f"the directory {others_directory / below} cannot be used: {reason}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_directory_of_another_user_is_not_used_even_if_we_may_write_to_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "his").mkdir(mode=0o777)
    os.chown(tmp_path / "his", ORDINARY, ORDINARY)
    with pytest.raises(StoreUnusable, match=f"belongs to another user .uid {ORDINARY}"):
        paths.ensure_private(str(tmp_path / "his"))


def test_the_parents_of_a_private_directory_are_private_too_under_any_umask(
    tmp_path: Path,
) -> None:
    before = os.umask(0)
    try:
        paths.ensure_private(str(tmp_path / "a/b/c"))
    finally:
        os.umask(before)
    assert {mode(tmp_path / made) for made in ("a", "a/b", "a/b/c")} == {0o700}


def as_an_ordinary_user(act: Callable[[], None]) -> str:
    """What StoreUnusable says when somebody does it who, unlike root, may not write anywhere."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(ORDINARY)
            act()
        except StoreUnusable as unusable:
            os.write(writer, unusable.message.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as said:
        message = said.read()
    os.waitpid(child, 0)
    return message


def default_socket(name: str, base: str = "/tmp") -> str:
    return f"{os.path.realpath(base)}/tmux-{os.getuid()}/{name}"


class TestTheSocket:
    def test_is_tmux_own_default_when_nothing_is_said(self) -> None:
        assert paths.socket_path({}, None, None) == default_socket("default")

    def test_is_the_one_we_are_inside_of(self) -> None:
        assert paths.socket_path({"TMUX": "/s/x,12,0"}, None, None) == "/s/x"

    def test_variable_is_a_name_or_a_path(self) -> None:
        inside = {"TMUX": "/s/x,12,0"}
        assert paths.socket_path({**inside, "TMUXORCH_SOCKET": "work"}, None, None) == (
            default_socket("work")
        )
        assert paths.socket_path({"TMUXORCH_SOCKET": "/s/y"}, None, None) == "/s/y"
        assert paths.socket_path({"TMUXORCH_SOCKET": "~/s", "HOME": "/h"}, None, None) == "/h/s"

    def test_given_as_a_name_wins_over_the_environment(self) -> None:
        environ = {"TMUXORCH_SOCKET": "env", "TMUX": "/s/x,12,0"}
        assert paths.socket_path(environ, "mine", None) == default_socket("mine")

    def test_given_as_a_path_wins_over_everything_and_is_made_absolute(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("/usr")
        assert paths.socket_path({"TMUXORCH_SOCKET": "env"}, "mine", "s") == "/usr/s"

    def test_is_in_the_resolved_directory_as_tmux_spells_it(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        environ = {"TMUX_TMPDIR": str(tmp_path / "link")}
        assert paths.socket_path(environ, "a", None) == default_socket("a", f"{tmp_path}/real")

    @pytest.mark.parametrize("directory", ["", "/no/such/directory"])
    def test_is_in_tmp_if_the_directory_does_not_exist(self, directory: str) -> None:
        assert paths.socket_path({"TMUX_TMPDIR": directory}, "a", None) == default_socket("a")

    @pytest.mark.parametrize("name", ["a/b", "..", "."])
    def test_name_that_is_a_path_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match="give a path with -S"):
            paths.socket_path({}, name, None)

    def test_path_that_fits_no_socket_is_refused_by_its_bytes(self) -> None:
        assert paths.socket_path({}, None, "/" + "a" * 102) == "/" + "a" * 102
        with pytest.raises(ConfigInvalid, match=r"is 121 bytes long .* -S PATH or TMUX_TMPDIR"):
            paths.socket_path({}, None, "/" + "é" * 60)


def test_the_module_costs_tmuxorch_ls_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import tmuxorch.paths; "
        "print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(paths.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    ours = {"tmuxorch", "tmuxorch.errors", "tmuxorch.paths"}
    assert set(loaded.stdout.split()) - {"__future__"} == ours
