"""How a question of ours to a model is known for what it is, wherever an agent writes it down.

``[provider] command`` may be a coding agent (``claude -p``, ``codex exec``). Then each question
makes a session of that agent, with a transcript, whose end fires our own hook: distilled, it would
make the next question, for ever. Three guards stop that, each by itself:

| guard       | what tells it                                    | who looks                       |
|-------------|--------------------------------------------------|---------------------------------|
| environment | ``MEMORYD_OWN_CALL``, which the hook puts into   | intake: the session is excluded |
|             | the envelope                                     |                                 |
| directory   | the folder the program runs in                   | intake; ingestion, by the cwd   |
| content     | the lines that enclose every prompt              | ingestion, by the first words   |

The folder has a name nobody else uses, so that a session made for one home is known in another.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

from memoryd.memory.files import make_directory
from memoryd.memory.home import Home

#: In the environment of every program that answers for us.
VARIABLE = "MEMORYD_OWN_CALL"
#: The folder such programs run in, in ``run`` of the home.
FOLDER = "memoryd-own-calls"

#: The lines around a prompt. Whatever a prompt quotes is indented, so only these begin a line so.
OPEN = "=== memoryd asks a model from here on: no person said this ==="
CLOSE = "=== memoryd asks a model up to here ==="
#: What agents close their own frames with, behind what a program was given.
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,40}>")
_WORD = re.compile(r"\w")
#: A piece that was opened and never closed is a prompt of ours only if it is as long as one.
_UNCLOSED_CHARACTERS = 2_000


def folder(home: Home) -> Path:
    """Where the programs that answer for ``home`` run."""
    return home.root / "run" / FOLDER


def prepared(place: Path) -> Path:
    """``place``, made where it is missing (0700). Raises ``OSError``."""
    make_directory(place)
    return place


def environment(environ: Mapping[str, str], place: Path) -> dict[str, str]:
    """``environ`` for a program that answers for us in ``place``.

    Everything of memoryd is off in it, what its hooks say goes to this home, and git does not take
    a repository around the home for the program's project.
    """
    ceilings = filter(None, (str(place.parent), environ.get("GIT_CEILING_DIRECTORIES")))
    return {
        **environ,
        VARIABLE: "1",
        "MEMORYD_DISABLE": "1",
        "MEMORYD_HOME": str(place.parent.parent),
        "GIT_CEILING_DIRECTORIES": os.pathsep.join(ceilings),
    }


def is_own_place(cwd: str) -> bool:
    """Whether ``cwd`` is, or lies in, a folder that programs answer for us in, of any home."""
    if FOLDER not in cwd:
        return False
    parts = PurePath(os.path.normpath(cwd)).parts
    return any(pair == ("run", FOLDER) for pair in itertools.pairwise(parts))


def is_own_transcript(path: Path) -> bool:
    """Whether an agent that names folders for directories keeps what was said in ours there.

    Claude Code and Cursor do, with dashes for slashes. Others are known once they are read.
    """
    return any(part.endswith(f"-run-{FOLDER}") for part in path.parts)


def enclosed(prompt: str) -> str:
    """``prompt`` between the lines that say whose it is; already enclosed, it stays as it is."""
    if prompt.startswith(f"{OPEN}\n"):
        return prompt
    return f"{OPEN}\n{prompt}\n{CLOSE}"


def continued(prompt: str, more: str) -> str:
    """The enclosed ``prompt`` with ``more`` at its end, within the enclosing lines."""
    return f"{prompt.removesuffix(CLOSE)}{more.strip()}\n{CLOSE}"


def is_own_question(text: str) -> bool:
    """Whether ``text`` is a question of ours as an agent was asked it: no words follow the prompt.

    The command line of an agent (``claude -p "Answer:"``) puts its words before what it reads; who
    pastes a prompt to talk about it goes on behind it.
    """
    first = next(_prompts(text), None) if OPEN in text else None
    if first is None:
        return False
    return not _WORD.search(_TAG.sub("", without_own_prompts(text[first[1] :])))


def without_own_prompts(text: str) -> str:
    """``text`` without the prompts of ours in it; a line of one that is quoted alone stays."""
    if OPEN not in text:
        return text
    kept, position = [], 0
    for start, end in _prompts(text):
        kept.append(text[position:start])
        position = end
    return "".join(kept) + text[position:] if kept else text


def _prompts(text: str) -> Iterator[tuple[int, int]]:
    """Where each prompt of ours begins and ends: the rules of the answer and the data are one."""
    position = 0
    while (start := _line(text, OPEN, position)) >= 0:
        closing = _line(text, CLOSE, start)
        if closing < 0:
            if len(text) - start >= _UNCLOSED_CHARACTERS:
                yield start, len(text)
            return
        position = closing + len(CLOSE)
        yield start, position


def _line(text: str, line: str, position: int) -> int:
    """Where ``line`` stands as a line of its own at or after ``position``, -1 for nowhere."""
    while (found := text.find(line, position)) >= 0:
        position = found + len(line)
        begins = found == 0 or text[found - 1] == "\n"
        if begins and (position == len(text) or text[position] in "\r\n"):
            return found
    return -1
