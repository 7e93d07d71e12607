"""A repository's own settings count wherever something is done with its agents."""

from __future__ import annotations

import os

import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, column, kill, listed, watch_once, write


def test_the_watcher_obeys_each_repositorys_own_policy(world: World) -> None:
    other = world.make_repo("other")
    (other / ".tmuxorch.toml").write_text("[cleanup]\ndead = 'never'\n")
    kept = world.new("-n", "kept", *SLEEP, cwd=other)
    goes = world.new("-n", "goes", *SLEEP)
    with world.watching():
        for worker in (kept, goes):
            kill(worker)
        wait_for(lambda: list(listed_everywhere(world)) == ["kept"])
        # Read again when it has changed.
        (other / ".tmuxorch.toml").write_text("[cleanup]\ndead = 'always'\n")
        wait_for(lambda: listed_everywhere(world) == [])


def listed_everywhere(world: World) -> list[str]:
    return [a["name"] for a in world.json("ls", "--all")]


@pytest.mark.parametrize(
    "text", ["[cleanup\n", "[cleanup]\ndead = 'perhaps'\n", "[setup]\nrun = ['make']\n"]
)
def test_where_a_repositorys_file_cannot_be_used_nothing_is_removed_by_itself(
    world: World, text: str
) -> None:
    made = world.new("-n", "a", *SLEEP)
    (world.repo / ".tmuxorch.toml").write_text(text)
    log = world.directory / "watch.log"
    with world.watching():
        kill(made)
        wait_for(lambda: column(world, made, "state") == "exited" and world.marked_panes() == [])
        world.run("stop", "a", ok=False)
        second = world.new("-n", "b", *SLEEP, cwd=world.make_repo("other"))
        kill(second)
        wait_for(lambda: listed_everywhere(world) == ["a"])
        assert log.read_text().count("nothing of ") == 1
    # The person's own commands work all the same.
    removed = world.run("rm", "-y", "a")
    assert "your own settings are used" in removed.stderr


def test_a_persistent_agent_is_restarted_as_its_repository_says(world: World) -> None:
    (world.repo / ".tmuxorch.toml").write_text("[restart]\nlimit = 0\n")
    made = world.new("-n", "a", "--kind", "persistent", *SLEEP)
    kill(made)
    watch_once(world)
    assert listed(world) == {"a": ("exited", "crashed")}
    assert column(world, made, "restart_at") is None


@pytest.mark.parametrize("verb", [["stop", "a"], ["rm", "-y", "a"]])
def test_stop_and_rm_give_the_grace_that_the_repository_says(world: World, verb: list[str]) -> None:
    (world.home / "config.toml").write_text("[cleanup]\ngrace_s = 0\n")
    (world.repo / ".tmuxorch.toml").write_text("[cleanup]\ngrace_s = 30\n")
    made = world.new(
        "-n", "a", "--", "sh", "-c",
        'trap "sleep 0.5; echo ended >$0; exit 0" TERM HUP; touch $1; while :; do sleep 0.02; done',
        str(world.directory / "farewell"), str(world.directory / "ready"),
    )  # fmt: skip
    wait_for(lambda: os.path.exists(world.directory / "ready"))
    write(made)
    world.run(*verb)
    assert (world.directory / "farewell").exists()
