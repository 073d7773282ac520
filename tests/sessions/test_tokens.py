"""What the index holds of a text, and what a typed word looks for: do they meet?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.sessions.tokens import TOKEN_CHARACTERS, fold, index_tokens, terms


def found(query: str, text: str) -> bool:
    """Whether a message of ``text`` has all that ``query`` looks for, as FTS5 would say."""
    rows = [f" {row} " for row in index_tokens(text)]
    return all(
        any(
            f" {' '.join(phrase)}{'' if term.begins else ' '}" in row
            for phrase in term.phrases
            for row in rows
        )
        for term in terms(query)
    )


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("LEASE", "the lease"),
        ("cafe", "im Café"),
        ("café", "the CAFE"),
        ("straße", "STRASSE"),
        ("oresund", "Øresund"),
        ("istanbul", "İstanbul"),
        ("ｆｕｌｌ", "full width"),
        ("getUserName", "call getUserName()"),
        ("getusername", "call getUserName()"),
        ("user name", "call getUserName()"),
        ("get_user_name", "call getUserName()"),
        ("getUserName", "call get_user_name()"),
        ("get-user-name", "get.user.name"),
        ("HTTPResponse", "parse_http_response"),
        ("response", "parseHTTPResponse"),
        ("python", "python3 is there"),
        ("user_quota", "getUserQuotaLimit"),
        ("memory/store.py", "see /srv/app/memory/store.py:12"),
        ("store.py", "C:\\app\\memory\\store.py"),
        ("1.2.3", "v1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("1.2", "at 1.2.3 now"),
        ("v1.2", "at 1.2.3 now"),
        ("v1", "since v1.2.3"),
        ("2026-01-05", "on 2026/01/05"),
        ("2026-01", "on 2026-01-05"),
        ("192.168.1.1", "http://192.168.1.1:8080/"),
        ("8080", "http://192.168.1.1:8080/"),
        ("c++", "in C++."),
        ("C#", "C# and F#"),
        ("go", "written in Go."),
        ("x", "let x be"),
        ("don't", "I don’t"),
        ("me@example.com", "mail me@example.com"),
        ("部署", "我们决定部署新版"),
        ("部署新版", "我们决定部署新版"),
        ("署", "我们决定部署"),
        ("版", "我们决定部署新版"),
        ("决", "我们决定部署新版"),
        ("저", "저장소를"),
        ("使用 pnpm", "使用pnpm安装"),
        ("使用pnpm安装", "使用 pnpm 安装"),
        ("データベース", "本番データベースの"),
        ("가격", "가격을 바꿨다"),
        ("저장소", "저장소를 만들다"),
        ("การตั้งค่า", "เปลี่ยนการตั้งค่าแล้ว"),
        ("भाषा", "हिन्दी भाषा में"),
        ("مفتاح", "المِفْتاحُ"),
        ("المفتاح", "مفتاح الواجهة"),
        ("والمفتاح", "مفتاح"),
        ("مفتاح", "بالمفتاح"),
        ("مفتاح", "للمفتاح"),
        ("احمد", "أحمد"),
        ("مدرسه", "مدرسة"),
        ("مستشفي", "مستشفى"),
        ("وزارة", "الوزارة"),
        ("كتاب", "کتاب"),
        ("١٢٣", "123"),
        ("🚀", "shipped 🚀"),
        ("חשבון", "חֶשְׁבּוֹן"),
        ("webho*", "Webhooks are"),
        ('"ran out"', "it ran out"),
    ],
)
def test_what_is_typed_meets_what_was_said(query: str, text: str) -> None:
    """In every script, form and case."""
    assert terms(query)
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("time", "timeout"),
        ("1.2", "1.20"),
        ("2.3", "v1.2.3"),
        ("c", "abc"),
        ("部新", "部署新"),
        ('"out ran"', "it ran out"),
        ("user_name", "name of the user"),
        ("ab*", "abc"),
        ("ولد", "لد"),
        ("c++", "c plus"),
    ],
)
def test_what_is_something_else_is_not_found(query: str, text: str) -> None:
    """Words are whole, phrases are in order."""
    assert not found(query, text)


@pytest.mark.parametrize(
    ("query", "typed"),
    [
        ("a AND b NEAR(d) NOT -e ^f {g}:h", ["a", "AND", "b", "NEAR", "d", "NOT", *"efgh"]),
        ('one "two three" four', ["one", "two three", "four"]),
        ('one "two three', ["one", "two", "three"]),
        ("“two three”", ["two three"]),
        ('"" "!!" ""', []),
        ("?! … ,,, -- ***", []),
        ("same Same SAME", ["same"]),
        ("f(x) = y", ["f", "x", "y"]),
        ("", []),
    ],
)
def test_a_query_means_its_words_and_nothing_else(query: str, typed: list[str]) -> None:
    """No operator, no open quotation mark, no punctuation."""
    assert [term.typed for term in terms(query)] == typed


def test_a_long_word_is_known_by_its_beginning() -> None:
    """Both where it stands and where it is looked for."""
    digest = "f" * 5_000

    assert all(len(token) <= TOKEN_CHARACTERS for token in index_tokens(digest)[0].split())
    assert found(digest, f"it is {digest}")


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "aB",
        "1.",
        "東",
        "_",
        "1",
        "a+",
        "و",
        '"',
        "\u0940",
        "a\u0940",
        "A",
        "aA1",
        "’",
        "é",
        "*",
    ],
)
def test_work_is_bounded_by_the_length(unit: str) -> None:
    """A hundred thousand of anything is looked at once, not once a character (the time limit)."""
    text = unit * (100_000 // len(unit))

    words, parts = index_tokens(text)

    assert len(words) + len(parts) < 8 * len(text)
    assert len(terms(text)) <= 1


def test_an_encoding_has_no_parts() -> None:
    """A digest would fill the index with letters."""
    assert index_tokens("4f2a1b9cdeadbeef00112233 v2 t09")[1] == ""


@given(st.text())
def test_tokens_are_clean_for_any_text(text: str) -> None:
    """No token holds what would mean something to FTS5, and a text meets itself folded."""
    words, parts = index_tokens(text)

    assert not {'"', "\0", "=", "*"} & set(words + parts)
    assert index_tokens(fold(text))[0] == words
    for term in terms(text):
        assert term.match().count('"') % 2 == 0


_TYPED = st.text(
    st.sampled_from("aZ9_.-/ éßİøأةىالوфЁ部署がデ가각ทั้हिन्दी'+#:v1🚀"), min_size=1, max_size=12
)


@given(_TYPED, st.sampled_from(["", "before ", "前 ", "(", "قبل "]))
def test_a_text_is_found_by_itself(text: str, before: str) -> None:
    """Write, then search, always meet: whatever is copied from a message finds it."""
    for word in text.split():
        assert found(word, f"{before}{text} after"), word
