"""Many commands at once: none fails, none gets in another's way."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.conftest import World

SLEEP = ("--", "sleep", "1000")


def make(world: World, count: int, at_once: int, *options: str) -> list[dict[str, Any]]:
    def new(_: int) -> dict[str, Any]:
        done = world.run("new", "--json", *options, "Paint the fence", *SLEEP)
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(new, range(count)))


def assert_all_apart_and_alive(world: World, workers: list[dict[str, Any]]) -> None:
    for key in ("id", "name", "branch", "worktree"):
        assert len({worker[key] for worker in workers}) == len(workers), key
    listed = world.json("ls")
    assert {a["id"] for a in listed} == {w["id"] for w in workers}
    assert all(a["process"]["alive"] and a["state"] == "running" for a in listed)
    assert sorted(world.marked_panes()) == sorted(w["id"] for w in workers)
    panes = {w["tmux"]["pane"]: w["id"] for w in workers}
    marked = world.tmux("list-panes", "-a", "-F", "#{pane_id} #{@tmuxorch_id}").splitlines()
    for pane, agent_id in (line.split() for line in marked if len(line.split()) == 2):
        assert panes[pane] == agent_id


def test_fifteen_at_once_on_one_repository(world: World) -> None:
    workers = make(world, 15, 15)
    assert_all_apart_and_alive(world, workers)
    world.run("rm", "-y", *(worker["name"] for worker in workers))
    world.assert_nothing_left()
    assert len(world.json("history", "-n", "100")) == 15


def test_a_hundred_by_sixteen_commands_at_once(world: World) -> None:
    workers = make(world, 100, 16, "--no-wait")
    assert_all_apart_and_alive(world, workers)
    names = [worker["name"] for worker in workers]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: world.run("rm", "-y", *names[n::4]), range(4)))
    world.assert_nothing_left()
    assert len(world.json("history", "-n", "200")) == 100


def test_one_name_wanted_by_many_is_given_once(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        tries = list(pool.map(lambda _: world.run("new", "-n", "same", *SLEEP, ok=False), range(8)))
    assert sorted(done.returncode for done in tries) == [0] + [1] * 7
    assert all("taken" in done.stderr for done in tries if done.returncode)
    assert len(world.marked_panes()) == 1
    assert len(world.linked_worktrees()) == 1
    world.run("rm", "same")
    world.assert_nothing_left()


def test_one_worker_removed_by_many_is_removed_once(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    with ThreadPoolExecutor(6) as pool:
        tries = list(pool.map(lambda _: world.run("rm", "-y", "a", ok=False), range(6)))
    assert {done.returncode for done in tries} <= {0, 1}
    assert 0 in {done.returncode for done in tries}
    assert len(world.json("history")) == 1
    world.assert_nothing_left()
