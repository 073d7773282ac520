"""Which directories are excluded, asked by whoever shows words."""

from __future__ import annotations

from pathlib import Path

from memoryd.memory.config import Config, PrivacySettings
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver


def test_words_of_no_known_directory_are_told_only_while_nothing_is_excluded(home: Home) -> None:
    """They may be from what is excluded."""
    some = Config(privacy=PrivacySettings(exclude=("/srv/secret",)))

    assert ExcludedPlaces(Resolver(home), some)("")
    assert not ExcludedPlaces(Resolver(home), Config())("")


def test_a_directory_is_excluded_by_the_configuration_its_project_and_a_file_nobody_can_read(
    home: Home, tmp_path: Path
) -> None:
    """And our own folder always."""
    for name in ("open", "named", "own", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / ".memoryd.toml").write_text('[privacy]\nexclude = ["."]\n')
    (tmp_path / "broken" / ".memoryd.toml").write_text("[privacy\n")
    asked = ExcludedPlaces(
        Resolver(home), Config(privacy=PrivacySettings(exclude=(str(tmp_path / "named"),)))
    )

    found = [name for name in ("open", "named", "own", "broken") if asked(str(tmp_path / name))]

    assert found == ["named", "own", "broken"]
    assert asked(str(home.root / "run" / "memoryd-own-calls"))
