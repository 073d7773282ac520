"""The rules of what a consolidation adds: promotions to lasting notes, and one episode.

Neither stands on a person's words, as a fact does, so it may only say what the notes shown say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from memoryd.memory import notes
from memoryd.memory.clock import iso
from memoryd.memory.consolidation_answer import EpisodeDraft
from memoryd.memory.consolidation_desk import Desk, No
from memoryd.memory.consolidation_prompt import EPISODES, PROMOTIONS
from memoryd.memory.drafting import with_line
from memoryd.memory.facts import Category, DraftType, NoteDraft, Relation
from memoryd.memory.known import says_same
from memoryd.memory.notes import Note, file_name, new_note
from memoryd.memory.pairs import telling_words
from memoryd.memory.plan import Operation
from memoryd.memory.proposals import FactProposal, to_json
from memoryd.memory.text import fold
from memoryd.memory.values import loses, opposes, sense_key, turns

_LINE_CHARACTERS = 500
#: In an episode a number of fewer characters may be a count of what it tells of.
_EPISODE_VALUE = 3
_STEM = 5
_CATEGORIES: Mapping[DraftType, Category] = {
    "user": "other",
    "feedback": "preference",
    "project": "project",
    "reference": "project",
}


def decide_promotions(desk: Desk, drafts: Sequence[NoteDraft]) -> None:
    """Put each promotion on the desk; the first 3 are looked at."""
    for at, draft in enumerate(drafts):
        _decide(desk, draft, "promotion", at < PROMOTIONS, partial(_promote, desk, draft))


def decide_episodes(desk: Desk, drafts: Sequence[EpisodeDraft]) -> None:
    """Put the first episode on the desk."""
    for at, draft in enumerate(drafts):
        _decide(desk, draft, "episode", at < EPISODES, partial(_episode, desk, draft))


def _decide(
    desk: Desk,
    draft: NoteDraft | EpisodeDraft,
    category: str,
    looked_at: bool,
    put: Callable[[], None],
) -> None:
    try:
        if not looked_at:
            raise No("cap", f"more than one run may add of this kind ({category})")
        desk.require_clean(draft.name, draft.description, draft.content)
        desk.require_remembered(draft.name, (draft.description, draft.content), ())
        put()
    except No as no:
        desk.refuse(no, statement=draft.description, category=category)


def _promote(desk: Desk, draft: NoteDraft) -> None:
    _require_news(desk, desk.material.notes, draft.description, draft.content)
    if {sense_key(draft.description), sense_key(draft.content)} & desk.material.superseded:
        raise No("superseded")
    text = f"{draft.description}\n{draft.content}"
    desk.require_evidence(text)
    if _is_mostly_new(text, desk.material.told):
        raise No("evidence.not-found", "over half of its words stand in nothing shown")
    met = next(
        (n for n in desk.material.notes if (n.type, n.name) == (draft.type, draft.name)), None
    )
    kept = _proposal(draft, met, desk.material.now_ms)
    _require_agreement(desk, draft, met, kept)
    if met is not None:
        desk.require_untouched([met])
        desk.require_ours([met], kept)
    desk.require_mode(kept)
    desk.require_plain(kept, draft.name, text)
    if met is None:
        _add(desk, draft.type, draft, "promotion")
    else:
        _append(desk, draft, met)
    desk.count(promoted=1)


def _require_agreement(desk: Desk, draft: NoteDraft, met: Note | None, kept: str) -> None:
    """Leave to a person what says the opposite of a note: no model's word outweighs theirs."""
    said = [line for line in (draft.description, *draft.content.splitlines()) if line.strip()]
    for note in desk.material.notes:
        lines = (note.description, *note.body.splitlines())
        against = any(opposes(line, one) for line in lines if line.strip() for one in said)
        if against or (note == met and turns(note.body, draft.content)):
            raise No("conflict", f"{note.path} says otherwise", decision="review", draft=kept)


def _is_mostly_new(text: str, told: str) -> bool:
    """Whether over half the words of ``text`` begin like no word of ``told``.

    The first five letters count, so that a word in another form is the same word.
    """
    said = {word[:_STEM] for word in telling_words(text) if len(word) > 2 or not word.isascii()}
    known = {word[:_STEM] for word in telling_words(told)}
    return len(said - known) * 2 > len(said)


def _proposal(draft: NoteDraft, met: Note | None, now_ms: int) -> str:
    """What a person's yes would write."""
    relation = Relation("new") if met is None else Relation("updates", met.name)
    category = _CATEGORIES[draft.type]
    return to_json(FactProposal(draft.description, category, draft, relation, now_ms))


def _require_news(desk: Desk, present: Sequence[Note], description: str, content: str) -> None:
    for note in present:
        if says_same(note, content or description):
            raise No("same", f"{note.path} says the same")


def _append(desk: Desk, draft: NoteDraft, met: Note) -> None:
    """A promotion that meets a note: its body where that loses nothing of the note, else a line."""
    source = desk.source(met)
    whole = any(one.whole and one.note.path == met.path for one in desk.material.shown)
    content = fold(draft.content)
    line = content if len(content) <= _LINE_CHARACTERS else draft.description
    changes: dict[str, notes.Value] = {"body": with_line(met.body, line)}
    if whole and not loses(
        f"{met.description}\n{met.body}", f"{draft.description}\n{draft.content}"
    ):
        changes = {"body": draft.content, "description": draft.description}
    candidate = desk.rules.new_id()
    data = notes.update(source.data, source=desk.rules.source, **changes)
    operation = desk.hand(candidate).operation(met.path, source.data, data, line=line)
    _apply(desk, candidate, operation, draft.description, "promotion")


def _episode(desk: Desk, draft: EpisodeDraft) -> None:
    episodes = [note for note in desk.material.notes if note.type == "episode"]
    _require_news(desk, episodes, draft.description, draft.content)
    desk.require_evidence(f"{draft.description}\n{draft.content}", least=_EPISODE_VALUE)
    desk.require_mode("")
    desk.require_plain("", draft.name, draft.description, draft.content)
    _add(desk, "episode", draft, "episode", happened_at=_happened_at(desk, draft))
    desk.count(episodes=1)


def _happened_at(desk: Desk, draft: EpisodeDraft) -> str:
    """The day it names unless that is to come; else that of the newest session, else today."""
    today = time.strftime("%Y-%m-%d", time.gmtime(desk.material.now_ms / 1000 + 86_400))
    if draft.happened_at is not None and draft.happened_at <= today:
        return draft.happened_at
    days = [day for date, _ in desk.material.sessions if (day := notes.day(date[:10]))]
    return max(days, default=iso(desk.material.now_ms)[:10])


def _add(
    desk: Desk,
    kind: notes.NoteType,
    draft: NoteDraft | EpisodeDraft,
    category: str,
    *,
    happened_at: str | None = None,
) -> None:
    name = desk.free_name(kind, draft.name)
    data = new_note(
        name=name,
        description=draft.description,
        type=kind,
        body=draft.content,
        happened_at=happened_at,
        created=iso(desk.material.now_ms),
        source=desk.rules.source,
    )
    candidate = desk.rules.new_id()
    operation = desk.hand(candidate).operation(f"{kind}/{file_name(name)}", None, data)
    _apply(desk, candidate, operation, draft.description, category)


def _apply(desk: Desk, candidate: str, operation: Operation, statement: str, category: str) -> None:
    desk.apply(candidate, [operation], statement=statement, category=category, path=operation.path)
