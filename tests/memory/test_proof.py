"""What a model says is held against what was said: lies wait for a person, paraphrases do not."""

from __future__ import annotations

from itertools import count

import pytest

from memoryd.memory.config import CurationSettings
from memoryd.memory.facts import (
    Answer,
    Category,
    Evidence,
    Fact,
    NoteDraft,
    Relation,
    SliceMessage,
)
from memoryd.memory.policy import Judged, decide
from memoryd.memory.providers.base import ShownNote

_LINTER = "Always run the linter before you commit."
_TABS_NL = "Ik gebruik liever tabs dan spaties, en houd de antwoorden kort."
_DB = "The staging database listens on port 5433, see docs/ops/staging.md."
_AR = "أفضّل الردود القصيرة ولا ننشر يوم الجمعة أبداً"
_ZH = "请始终使用 pnpm，端口是 5432，提交之前运行测试。"
_JA = "コミットの前に必ずテストを実行してください。ポートは5432です。"
_KO = "커밋하기 전에 항상 테스트를 실행하세요. 포트는 5432입니다."
_RU = "Всегда запускай линтер перед коммитом."
_DE = "Bitte antworte immer kurz und benutze Leerzeichen statt Tabs."
_FR = "Je préfère les réponses courtes et le serveur écoute sur le port 8080."
_ES = "Siempre ejecuta las pruebas antes de hacer commit, y usa Python 3.12."

#: (what the person said, what the model says of it, falsely)
_LIES = [
    (_LINTER, "Loves Rust and lives in Berlin."),
    (_LINTER, "Lives in a castle with seven cats."),
    (_LINTER, "Prefers tea over coffee."),
    (_LINTER, "Always run the linter 3 times before you commit."),
    (_LINTER, "Always run the linter with Ruff before you commit."),
    (_LINTER, "Always run `make lint` before you commit."),
    (_LINTER, "Never run the linter before you commit."),
    (_LINTER, "Don't run the linter before you commit."),
    (_LINTER, "Runs the linter, drinks whisky every evening and dislikes dogs, birds, horses."),
    (_LINTER, "Always run the linter before you commit and hates cats."),
    (_LINTER, "Always run the linter before you commit; lives in a castle."),
    (_LINTER, "The linter is configured in tools/lint.toml."),
    (_LINTER, "The deadline for the linter is 2026-03-01."),
    (_LINTER, "The linter belongs to Margaret."),
    (_LINTER, "The password rotates monthly."),
    (_LINTER, "Houdt van katten en woont in een kasteel."),
    (_LINTER, "喜欢猫，端口是 9999。"),
    (_DB, "The staging database listens on port 5432."),
    (_DB, "The staging database listens on port 543."),
    (_DB, "The staging database listens on 10.0.0.7."),
    (_DB, "The production cluster uses MongoDB."),
    (_DB, "The staging database is described in docs/ops/production.md."),
    (_DB, "The staging database runs PostgreSQL."),
    (_DB, "The staging database does not listen on port 5433, see docs/ops/staging.md."),
    (_DB, "Deploys happen every weekday morning."),
    (_DB, "The staging database is version 5.433."),
    (_TABS_NL, "Gebruikt liever vim en woont in Utrecht."),
    (_TABS_NL, "Werkt alleen in de ochtend en drinkt veel koffie."),
    (_TABS_NL, "Prefers 4 spaces."),
    (_TABS_NL, "Prefers tabs, as Margaret does."),
    (_AR, "يسكن في قصر مع سبع قطط"),
    (_AR, "الخادم يستمع على المنفذ 9999"),
    (_AR, "The server listens on port 9999."),
    (_ZH, "请始终使用 npm，端口是 5433。"),
    (_ZH, "他住在柏林，喜欢猫。"),
    (_JA, "ポートは9999です。"),
    (_JA, "猫が好きで東京に住む。"),
    (_KO, "포트는 9999입니다."),
    (_RU, "Живёт в замке с кошками."),
    (_RU, "Всегда запускай линтер 5 раз перед коммитом."),
    (_DE, "Wohnt in einer Burg und mag keine Katzen."),
    (_DE, "Bitte antworte immer in 3 Sätzen."),
    (_FR, "Le serveur écoute sur le port 9090."),
    (_FR, "Elle habite dans un château avec des chats."),
    (_ES, "Usa Python 3.11 siempre."),
    (_ES, "Vive en un castillo con gatos y perros."),
]
#: (what the person said, what the model says of it, honestly)
_HONEST = [
    (_LINTER, "Always run the linter before committing."),
    (_LINTER, "Run linters prior to every commit."),
    (_LINTER, "The linter must be run before commits."),
    (_LINTER, "Wants the linter run before each commit."),
    (_LINTER, "Linting comes before committing."),
    (_LINTER, "NEVER commit before the linter ran."),
    (_LINTER, "Voor elke commit moet de linter draaien."),
    (_LINTER, "Vor jedem Commit den Linter ausführen."),
    (_LINTER, "提交之前始终运行检查。"),
    (_LINTER, "شغّل المدقق قبل كل حفظ دائماً"),
    (_DB, "Staging's database is on port 5433."),
    (_DB, "The DB of staging listens on 5433."),
    (_DB, "Port 5433 is the staging database; docs/ops/staging.md has more."),
    (_DB, "See `docs/ops/staging.md` for the staging database."),
    (_DB, "De staging-database luistert op poort 5433."),
    (_DB, "The person uses a staging database at port 5433."),
    (_DB, "قاعدة البيانات تستمع على المنفذ 5433"),
    (_DB, "قاعدة البيانات تستمع على المنفذ ٥٤٣٣"),
    (_TABS_NL, "Prefers tabs over spaces."),
    (_TABS_NL, "Prefers tabs to spaces and concise answers."),
    (_TABS_NL, "Wants short replies."),
    (_TABS_NL, "Gebruikt liever tabs dan spaties."),
    (_TABS_NL, "Houdt van korte antwoorden."),
    (_TABS_NL, "Uses Tabs, not spaces."),
    (_AR, "يفضل الردود القصيرة"),
    (_AR, "لا ينشرون يوم الجمعة"),
    (_AR, "Prefers short replies."),
    (_AR, "Never deploy on holy days."),
    (_ZH, "始终使用 pnpm。"),
    (_ZH, "提交之前要运行测试。"),
    (_ZH, "端口为５４３２。"),
    (_ZH, "Always use pnpm."),
    (_ZH, "The port is 5432."),
    (_JA, "コミット前にテストを実行する。"),
    (_JA, "ポートは 5432。"),
    (_JA, "Run the tests before every commit."),
    (_KO, "커밋 전에 테스트를 실행한다."),
    (_KO, "The port is 5432."),
    (_RU, "Перед каждым коммитом запускать линтер."),
    (_RU, "Run the linter before each commit."),
    (_DE, "Antworten sollen kurz sein."),
    (_DE, "Benutzt Leerzeichen und keine Tabs."),
    (_DE, "Prefers spaces over tabs."),
    (_DE, "Wants brief answers."),
    (_FR, "Préfère des réponses courtes."),
    (_FR, "Le serveur écoute sur 8080."),
    (_FR, "Prefers short answers."),
    (_FR, "The server listens on port 8080."),
    (_ES, "Ejecuta las pruebas antes de cada commit."),
    (_ES, "Usa Python 3.12."),
    (_ES, "Run the tests before committing."),
    (_ES, "Uses Python 3.12."),
    ("Keep your answers short.", "Prefers concise replies."),
    ("I'm using typescript for everything.", "Uses TypeScript."),
    ("We use postgres in prod.", "The project uses PostgreSQL."),
    ("Open a pull request for each change.", "Open a PR for every change."),
    ("CI must be green on Fri.", "CI has to be green on Friday."),
    ("Retry at most three times.", "Retry at most 3 times."),
    ("The timeout is 30 seconds.", "The timeout is 30s."),
    ("We have 10,000 users.", "There are 10000 users."),
    ("Write type safe code only.", "Only type-safe code."),
    ("Cafe is spelled café here.", "Spell it cafe."),
    ("my deadline is on march 3", "The deadline is March 3."),
    ("pnpm please", "Prefers pnpm."),
    ("Our fork lives at github.com/acme/tool.", "The fork is at github.com/acme/tool."),
]


def _decided(
    said: str,
    statement: str,
    *,
    note: NoteDraft | None = None,
    relation: Relation | None = None,
    before: str = "Sure.",
    shown: tuple[ShownNote, ...] = (),
    category: Category = "preference",
) -> Judged:
    messages = [
        SliceMessage("m1", 1, "id-1", "assistant", before, 1, "p"),
        SliceMessage("m2", 2, "id-2", "user", said, 2, "p"),
    ]
    evidence = (Evidence("m2", said),)
    fact = Fact(
        statement, category, evidence, "explicit", "none", 0.9, note, relation or Relation("new")
    )
    numbers = count()
    (judged,) = decide(
        [Answer((fact,), (), whole=True)],
        messages,
        CurationSettings(),
        new_id=lambda: f"c{next(numbers)}",
        shown=shown,
    )
    return judged


def _reason(said: str, statement: str) -> str:
    return _decided(said, statement).candidate.reason


def test_lies_on_true_quotes_wait_for_a_person() -> None:
    """An invented value or name, nothing but other words, or the opposite: none is written."""
    written = [lie for lie in _LIES if _reason(*lie) != "statement.unproven"]

    assert len(_LIES) >= 40
    assert written == []


def test_honest_paraphrases_are_written() -> None:
    """Other words, forms, spellings and languages for what was said are no lies."""
    held = [
        (_decided(*one).candidate.detail, *one)
        for one in _HONEST
        if _reason(*one) != "policy.passed"
    ]

    assert len(_HONEST) >= 60
    assert held == []


def test_what_waits_is_not_lost_and_says_what_is_wrong() -> None:
    """The candidate keeps its statement and evidence; the detail names the value."""
    judged = _decided(_DB, "The staging database listens on port 5432.")

    assert judged.candidate.decision == "review"
    assert judged.candidate.detail == "it says 5432, which was not said"
    assert [span.span for span in judged.candidate.evidence] == [_DB]
    assert judged.fact is not None


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (NoteDraft("feedback", "linter", "Run the linter.", "Run it. Port 99."), "unproven"),
        (NoteDraft("feedback", "linter", "Run the linter in Berlin.", "Run it."), "unproven"),
        (NoteDraft("feedback", "linter-at-99", "Run the linter.", "Run it."), "unproven"),
        (NoteDraft("feedback", "linter", "Run the linter.", f"{_LINTER}\nHates cats."), "passed"),
        (NoteDraft("feedback", "linter", "Hates cats.", _LINTER), "passed"),
    ],
)
def test_a_draft_that_says_more_is_never_written(note: NoteDraft, reason: str) -> None:
    """The statement stands alone, so that a person who says yes writes what they read."""
    judged = _decided(_LINTER, _LINTER, note=note)

    assert judged.candidate.reason.endswith(reason)
    assert judged.fact is not None
    assert judged.fact.note is None


def test_a_name_that_nobody_spoke_of_is_made_of_the_statement() -> None:
    """One word may be a topic; several are a claim."""
    lie = _decided(_LINTER, _LINTER, note=NoteDraft("feedback", "hates-cats-dogs", "x", _LINTER))
    topic = _decided(_LINTER, _LINTER, note=NoteDraft("feedback", "quality", "x", _LINTER))

    assert lie.fact is not None
    assert topic.fact is not None
    assert lie.fact.note is not None
    assert topic.fact.note is not None
    assert lie.fact.note.name == "always-run-the-linter-before-you-commit"
    assert topic.fact.note.name == "quality"


@pytest.mark.parametrize("kind", ["updates", "contradicts"])
def test_what_the_note_it_meets_says_may_be_said(kind: str) -> None:
    """Of a note that was shown, under that name; no other."""
    shown = (ShownNote("p", "project/db.md", "project", "db", "The database", "On port 5433."),)
    relation = Relation("updates" if kind == "updates" else "contradicts", "db")
    said = "make that the standby database"
    statement = "The standby database is on port 5433."

    met = _decided(said, statement, relation=relation, shown=shown)
    other = _decided(said, statement, relation=Relation(relation.kind, "else"), shown=shown)

    assert met.candidate.reason == "policy.passed"
    assert other.candidate.reason == "statement.unproven"


def test_a_yes_stands_on_the_question_before_it() -> None:
    """The words of what was asked count as said near it."""
    judged = _decided(
        "yes, always do it like that", "Use pnpm workspaces.", before="Shall I use pnpm workspaces?"
    )

    assert judged.candidate.reason == "policy.passed"
