"""How long agents keep their sessions, as their settings say, whatever these hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.sessions.retention import DAY_MS, retention_of


def days(agent: str, folder: Path, settings: str | None = None, **environ: str) -> float | None:
    """How many days ``agent`` keeps a session under these settings; None for ever."""
    if settings is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(settings)
    kept = retention_of(agent, {"HOME": str(folder.parent), **environ})
    return kept.days if kept else None


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (None, 30),
        ("{}", 30),
        ('{"cleanupPeriodDays": 7}', 7),
        ('{"cleanupPeriodDays": 0}', 0),
        ('{"cleanupPeriodDays": 99999}', None),
        ('{"cleanupPeriodDays": "7"}', 30),
        ('{"cleanupPeriodDays": true}', 30),
        ('{"cleanupPeriodDays": -3}', 30),
        ('{"cleanupPeriodDays": 1e400}', None),
        ('{ // mine\n "cleanupPeriodDays": 12, }', 12),
        ('\ufeff{"cleanupPeriodDays": 9}', 9),
        ("[7]", 30),
        ("{" * 1000, 30),
        ("no json", 30),
    ],
)
def test_claude_code_keeps_them_as_its_settings_say(
    tmp_path: Path, settings: str | None, kept: float | None
) -> None:
    """Thirty days where nothing, or nothing that can be understood, is set."""
    assert days("claude-code", tmp_path / ".claude", settings) == kept


def test_claude_codes_folder_may_be_elsewhere(tmp_path: Path) -> None:
    """`CLAUDE_CONFIG_DIR` moves the settings with it."""
    elsewhere = tmp_path / "elsewhere"

    assert (
        days("claude-code", elsewhere, '{"cleanupPeriodDays": 3}', CLAUDE_CONFIG_DIR=str(elsewhere))
        == 3
    )


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (None, 30),
        ('{"general": {}}', 30),
        ('{"general": {"sessionRetention": {"enabled": false}}}', None),
        ('{"general": {"sessionRetention": {"maxAge": "2w"}}}', 14),
        ('{"general": {"sessionRetention": {"maxAge": "12h"}}}', 0.5),
        ('{"general": {"sessionRetention": {"maxAge": "1m"}}}', 30),
        ('{"general": {"sessionRetention": {"maxAge": "soon"}}}', 30),
        ('{"general": {"sessionRetention": {"maxAge": 7}}}', 30),
        ('{"general": ["sessionRetention"]}', 30),
        ('{"general": {"sessionRetention": {"maxAge": "999999w"}}}', None),
    ],
)
def test_gemini_cli_keeps_them_as_its_settings_say(
    tmp_path: Path, settings: str | None, kept: float | None
) -> None:
    """The age is a number with a letter for hours, days, weeks or months."""
    assert days("gemini-cli", tmp_path / ".gemini", settings) == kept


def test_the_others_keep_them_for_ever(tmp_path: Path) -> None:
    """No other agent deletes a session by itself."""
    assert days("codex", tmp_path / ".codex") is None


def test_it_is_deleted_so_long_after_its_last_use(tmp_path: Path) -> None:
    """Not after it began."""
    kept = retention_of("claude-code", {"HOME": str(tmp_path)})

    assert kept is not None
    assert kept.deletes_at(5 * DAY_MS) == 35 * DAY_MS
    assert "cleanupPeriodDays" in kept.setting
