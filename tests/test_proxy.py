"""Two processes of pages behind the proxy of compose.yaml: a visitor stays with his, and a class works for everybody."""

import shutil
from collections.abc import Iterator

import httpx
import pytest

from benchmarks.servers import Served, serving_processes
from tests.patience import HANG_S

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="there is no HAProxy: apt-get install haproxy"),
]

TRIES = 12
COOKIE = "headlight-process"
LECTURE = "attention.en"
"""A bundled one: its pictures are made from bundled checkpoints."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[Served]:
    with serving_processes(HEADLIGHT_CHECKPOINTS="", HEADLIGHT_ENGINE="", HEADLIGHT_PUBLIC="") as served:
        yield served


def visitor(proxy: Served, process: str = "") -> httpx.Client:
    """A browser; it has been sent to `process` before, if one is named."""
    cookies = {COOKIE: process} if process else {}
    return httpx.Client(base_url=proxy.address, cookies=cookies, timeout=HANG_S, trust_env=False)


def opened(person: httpx.Client) -> str:
    """The code of a class that somebody opens."""
    assert person.get(f"/hold/{LECTURE}").status_code == 200
    found: str = person.post("/class", json={"lecture": LECTURE}).raise_for_status().json()["code"]
    return found


def test_a_visitor_stays_with_his_process_and_both_have_visitors(proxy: Served) -> None:
    first = set()
    for _ in range(TRIES):
        with visitor(proxy) as person:
            first.add(person.get("/").cookies[COOKIE])
            assert all(person.get("/_stcore/health").is_success for _ in range(4))
            assert COOKIE not in person.get("/").cookies, "the proxy sends him elsewhere"
    assert first == {"1", "2"}
    with visitor(proxy, "2") as person:
        assert {opened(person)[0] for _ in range(3)} == {"2"}


@pytest.mark.parametrize("process", ["1", "2"])
def test_a_class_is_found_from_both_processes(proxy: Served, process: str) -> None:
    with visitor(proxy, process) as lecturer:
        code = opened(lecturer)
        assert code[0] == process
        for other in ("1", "2", ""):
            with visitor(proxy, other) as student:
                assert student.get(f"/class/{code}").status_code == 200
                assert student.get(f"/class/{code[:4]}-{code[4:].lower()}", follow_redirects=True).status_code == 200
                assert student.get(f"/class?code={code}", follow_redirects=True).url.path.endswith(code)
                with student.stream("GET", f"/class/{code}/events") as events:
                    lines = "\n".join(line for line, _ in zip(events.iter_lines(), range(8), strict=False))
                assert "event:" in lines
        assert lecturer.post(f"/class/{code}/steer", json={"step": 1}).is_success
        assert lecturer.post(f"/class/{code}/close").is_success


def test_a_picture_of_a_lecture_is_found_wherever_it_was_made(proxy: Served) -> None:
    with visitor(proxy, "2") as lecturer:
        assert lecturer.get(f"/hold/{LECTURE}").status_code == 200
        made = lecturer.post(f"/hold/{LECTURE}/view", json={"step": 0, "text": "Ein Hund."}).raise_for_status()
        view = made.json()["view"]
        for other in ("1", "2", ""):
            with visitor(proxy, other) as student:
                assert student.get(f"/headlight/view/{view}").status_code == 200
        assert lecturer.get(f"/headlight/view/{'0' * 32}").status_code == 404
