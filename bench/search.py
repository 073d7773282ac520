"""The searches of docs/sessions.md in a history of 1,000,000 messages: what they find, how fast.

Makes a history in a temporary folder (280 characters a message; 72 % Latin, 17 % Chinese and
Japanese, 8 % Arabic, 3 % Korean; names, paths and versions among them; sessions over two years,
read in any order) with the messages that the table says are found, indexes it as memoryd does, and
runs each search in a process of its own: ``cold_ms`` is the first time, with the file dropped from
the system's cache where that can be asked for, ``p50_ms`` and ``max_ms`` are the times after it,
``cpu_ms`` what the processor had to do with it, whatever else the machine was doing. Prints a line
a search and one of JSON; fails where a search does not find what the table says.

    python bench/search.py [--messages 1000000] [--rounds 7] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs" / "sessions.md"
FILE = "sessions.sqlite"
NOW_MS = 1_767_603_600_000
TWO_YEARS_MS = 2 * 365 * 86_400_000
SESSION_MESSAGES = 250
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "copilot-cli", "cursor")
#: In the share of messages that the table calls common.
COMMON = {"the": 40, "test": 9, "error": 8, "file": 7, "worker": 7, "we": 12, "of": 16, "a": 20}
_WORDS = re.compile(r"\S+")
PLAIN = _WORDS.findall(
    "run build check write read cache index queue table column lease retry branch commit merge"
    " release config setting option value number string parser adapter transcript session message"
    " project folder server client request response header token lock thread process signal daemon"
    " service install upgrade version docs example reason result failure timeout network socket"
    " database migration schema query search filter sort page limit offset cursor batch job"
)
HAN = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动"
    "同工也能下过子说产种面而方后多定行学法所民得经"
)
KANA = "のにはをたがでてとしれさあるいもなかららりつまスルントデタベ設定実行変更確認保存"
ARABIC = _WORDS.findall(
    "في من على إلى هذا التي الملف المشروع الخادم والاختبار البيانات نحتاج نستخدم الكود تشغيل حفظ"
    " إعداد النسخة خطأ المستخدم بعد قبل عند كل جديد قديم الطلب الجلسة الذاكرة"
)
KOREAN = _WORDS.findall(
    "우리는 설정을 변경하고 파일을 저장했습니다 테스트가 실패했고 서버를 다시 시작해야 합니다"
    " 데이터를 확인하는 코드를 작성했다 오류가 발생한 함수에서 값을 반환한다"
)


@dataclass(frozen=True)
class Case:
    """A row of the table: what is typed, the message it finds, whether its words are common."""

    query: str
    finds: str
    common: bool


def cases() -> list[Case]:
    """The searches that docs/sessions.md lists."""
    table = DOCS.read_text("utf-8").partition("| you type |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.*?) \|$", table, re.MULTILINE)
    return [Case(query, finds, "common" in note) for query, finds, note in rows]


class Writer:
    """Writes texts as they are in real histories, from a seed."""

    def __init__(self) -> None:
        self._random = chance = random.Random(7)
        stems = [f"{one}{other}" for one in PLAIN for other in PLAIN]
        chance.shuffle(stems)
        vocabulary = [*COMMON, *PLAIN, *stems]
        weights = [*COMMON.values(), *(1.6 for _ in PLAIN)]
        weights += [60 / (rank + 20) for rank in range(len(stems))]
        self._vocabulary, self._weights = vocabulary, _summed(weights)

    def text(self) -> str:
        """One message."""
        kind = self._random.random()
        if kind < 0.72:
            return self._latin()
        if kind < 0.82:
            return self._unspaced(HAN, 1.3)
        if kind < 0.89:
            return self._unspaced(KANA, 1.2)
        return self._spaced(ARABIC if kind < 0.97 else KOREAN)

    def _latin(self) -> str:
        chance = self._random
        words = chance.choices(self._vocabulary, cum_weights=self._weights, k=chance.randint(8, 58))
        if chance.random() < 0.5:
            words.insert(chance.randrange(len(words)), self._name())
        return " ".join(words)

    def _name(self) -> str:
        chance = self._random
        one, two, three = chance.choices(PLAIN, k=3)
        form = chance.randrange(6)
        if form == 0:
            return f"{one}{two.title()}{three.title()}()"
        if form == 1:
            return f"{one}_{two}_{three}"
        if form == 2:
            return f"/srv/{one}/{two}/{three}.py"
        if form == 3:
            return f"{one}-{two}"
        if form == 4:
            return f"v{chance.randrange(9)}.{chance.randrange(30)}.{chance.randrange(30)}"
        return f"{chance.getrandbits(64):016x}"

    def _unspaced(self, characters: str, share: float) -> str:
        chance = self._random
        text = "".join(chance.choices(characters, k=int(chance.randint(60, 280) / share)))
        return f"{text[:40]}，{text[40:]} {self._name()}"

    def _spaced(self, words: list[str]) -> str:
        return " ".join(self._random.choices(words, k=self._random.randint(15, 60)))


def _summed(weights: list[float]) -> list[float]:
    total, summed = 0.0, []
    for weight in weights:
        total += weight
        summed.append(total)
    return summed


def sessions(total: int, wanted: list[Case]) -> Iterator[tuple[int, int, list[str]]]:
    """Sessions in the order in which they are read: number, time of the first message, texts."""
    chance, writer = random.Random(11), Writer()
    count = max(1, total // SESSION_MESSAGES)
    order = list(range(count))
    chance.shuffle(order)
    planted: dict[int, list[str]] = {}
    for number, case in enumerate(wanted):
        # A common word is ranked among its newest hits; a rare one is found wherever it stands.
        share = 0.999 - number / 20_000 if case.common else (number + 0.5) / len(wanted)
        planted.setdefault(int(count * share), []).append(case.finds)
    for number in order:
        texts = [writer.text() for _ in range(SESSION_MESSAGES)]
        for at, text in enumerate(planted.get(number, [])):
            texts[20 + 30 * at] = text
        yield number, NOW_MS - TWO_YEARS_MS + number * (TWO_YEARS_MS // count), texts


def make(path: Path, total: int, wanted: list[Case]) -> float:
    """Fill the tables of a history as ingestion would; the seconds it took."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.history import History

    started = time.perf_counter()
    with History(path, SystemClock()):
        pass
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma synchronous = off")
    database.execute("begin")
    for number, at_ms, texts in sessions(total, wanted):
        _write_session(database, number, at_ms, texts)
    database.execute("commit")
    database.execute("pragma wal_checkpoint(truncate)").fetchall()
    database.close()
    return time.perf_counter() - started


def _write_session(database: sqlite3.Connection, number: int, at_ms: int, texts: list[str]) -> None:
    agent, project = AGENTS[number % 6], f"%2F-srv-{PLAIN[number % 40]}"
    row = database.execute(
        "insert into session (agent, session, kind, parent, forked_from, transcript, position,"
        " reading, head, tail, last_seq, bad_lines, skipped, state, last_active_ms, ingested_ms)"
        " values (?, ?, 'root', '', '', '', 0, 1, '', '', ?, 0, '{}', '', ?, ?)",
        (agent, f"{number:08x}-bench", len(texts), at_ms + len(texts) * 20_000, NOW_MS),
    )
    database.executemany(
        "insert into message (session_id, seq, message_id, part, parts, reading, role, text,"
        " at_ms, cwd, project, line_end) values (?, ?, ?, 1, 1, 1, ?, ?, ?, ?, ?, 0)",
        (
            (
                *(row.lastrowid, seq, f"{number}-{seq}"),
                *("user" if seq % 4 == 0 else "assistant", text, at_ms + seq * 20_000),
                *(f"/srv/{PLAIN[number % 40]}", project),
            )
            for seq, text in enumerate(texts)
        ),
    )


def index(path: Path) -> float:
    """Index all of it through the code that memoryd uses; the seconds it took."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.search import Search

    with Search(path, SystemClock()) as search:
        started = time.perf_counter()
        search.index.catch_up()
        return time.perf_counter() - started


def shares(path: Path, total: int, wanted: list[Case]) -> list[float]:
    """For each search, in what share of the messages its most common word stands."""
    from memoryd.sessions.tokens import terms

    database = sqlite3.connect(path)
    count = "select count(*) from full_text where full_text match ?"
    found = [
        max(
            database.execute(count, (single.match(),)).fetchone()[0] / total
            for term in terms(case.query)
            for single in term.single()
        )
        for case in wanted
    ]
    database.close()
    return found


def measure(path: Path, case: Case, rounds: int) -> dict[str, object]:
    """Run one search: whether it finds what it should, and the milliseconds it took."""
    from memoryd.memory.clock import SystemClock
    from memoryd.sessions.search import Query, Search

    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    times, worked = [], []
    with Search(path, SystemClock()) as search:
        for _ in range(rounds + 1):
            started, begun = time.perf_counter(), time.process_time()
            answer = search.find(Query(case.query))
            times.append((time.perf_counter() - started) * 1000)
            worked.append((time.process_time() - begun) * 1000)
    excerpts = [hit.excerpt for hit in answer.hits]
    return {
        "query": case.query,
        "found": case.finds in excerpts,
        "place": excerpts.index(case.finds) + 1 if case.finds in excerpts else None,
        "cold_ms": round(times[0], 1),
        "p50_ms": round(statistics.median(times[1:]), 1),
        "max_ms": round(max(times[1:]), 1),
        "cpu_ms": round(statistics.median(worked[1:]), 1),
    }


def run(folder: Path, total: int, rounds: int) -> dict[str, object]:
    """Make the history where it is not there yet, and run every search in it."""
    path, wanted = folder / FILE, cases()
    seconds = [0.0, 0.0]
    if not path.exists():
        seconds = [make(path, total, wanted), index(path)]
    common = shares(path, total, wanted)
    results = []
    for number, share in enumerate(common):
        command = [sys.executable, __file__, "--only", str(number), "--keep", str(folder)]
        done = subprocess.run([*command, "--rounds", str(rounds)], check=True, capture_output=True)
        results.append(json.loads(done.stdout) | {"share": round(share, 3)})
        sys.stdout.write(json.dumps(results[-1], ensure_ascii=False) + "\n")
    return {
        "bench": "search",
        "messages": total,
        "megabytes": path.stat().st_size // 1_000_000,
        "make_seconds": round(seconds[0], 1),
        "index_seconds": round(seconds[1], 1),
        "searches": len(results),
        "not_found": [each["query"] for each in results if not each["found"]],
        "with_common_words": sum(share > 0.1 for share in common),
        "p50_ms": statistics.median(each["p50_ms"] for each in results),
        "most_cpu_ms": max(each["cpu_ms"] for each in results),
        "slowest_ms": max(each["max_ms"] for each in results),
        "slowest_cold_ms": max(each["cold_ms"] for each in results),
    }


def main() -> int:
    """Read the arguments, print the results; 1 where something was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the history here, or use the one there")
    parser.add_argument("--only", type=int, help="(internal) one search, in the history of --keep")
    chosen = parser.parse_args()
    if chosen.only is not None:
        result = measure(chosen.keep / FILE, cases()[chosen.only], chosen.rounds)
        sys.stdout.write(json.dumps(result))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        result = run(chosen.keep or Path(folder), chosen.messages, chosen.rounds)
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    return 1 if result["not_found"] else 0


if __name__ == "__main__":
    sys.exit(main())
