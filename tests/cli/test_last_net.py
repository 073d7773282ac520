"""What the system refuses where nobody foresaw it is one clear line, and no traceback."""

from __future__ import annotations

import errno
import os

import pytest

from memoryd.cli import main


@pytest.mark.parametrize("name", ["/home/ada/.memoryd/x", None])
def test_what_the_system_refuses_is_one_line_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    """With the file's name where there is one."""

    def refused(**options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), name)

    monkeypatch.setattr(main.cli, "main", refused)

    with pytest.raises(SystemExit) as left:
        main.main()

    said = capsys.readouterr().err
    assert left.value.code == 1
    assert said.startswith("memoryd: the system refused: ") and "Input/output error" in said
    assert (name or "refused") in said and "memoryd doctor" in said and "Traceback" not in said
