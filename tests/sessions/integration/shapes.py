"""Settings as people have them, written by hand: what an edit must leave as it was."""

from __future__ import annotations

OTHERS = """{
  // what I like
  "model": "big", /* for now */
  "hooks": {
    "Stop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "say done"}]} // mine
    ],
    "Notification": [
      {
        "hooks": [
          { "type": "command", "command": "/usr/bin/bell  ring" },
        ],
      },
    ],
  },
  "env": {"A": "\\u00e9\\"}", "B": "// no comment"},
  // "hooks": {}
}
"""

SHAPES: dict[str, bytes] = {
    "nothing": b"",
    "only a line end": b"\n",
    "empty object": b"{}",
    "empty object and line end": b"{}\n",
    "empty object over lines": b"{\n}\n",
    "empty object with space": b"{ }\n",
    "a comment and no more": b"{\n  // later\n}\n",
    "a comment in a line": b"{ /* later */ }",
    "one setting": b'{"model": "x"}',
    "no line end": b'{\n  "model": "x"\n}',
    "four spaces": b'{\n    "a": 1,\n    "b": [1, 2]\n}\n',
    "tabs": b'{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n',
    "windows": b'{\r\n  "a": 1,\r\n  "hooks": {\r\n    "Stop": []\r\n  }\r\n}\r\n',
    "byte order mark": b'\xef\xbb\xbf{\n  "a": 1\n}\n',
    "byte order mark alone": b"\xef\xbb\xbf",
    "empty hooks": b'{\n  "hooks": {}\n}\n',
    "empty list": b'{\n  "hooks": {\n    "Stop": [],\n    "SessionEnd": [ ]\n  }\n}\n',
    "others, comments, commas at the end": OTHERS.encode(),
    "minified": b'{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]},"b":2}',
    "a comment last": b'{\n  "a": 1 // one\n}\n',
    "a comment in its line and last": b'{"a": 1 // one\n}\n',
    "a key twice": b'{"hooks": {"Stop": []}, "hooks": {"Stop": []}}\n',
    "words of many scripts": '{\n  "a": "\u0645\u0631\u062d\u0628\u0627 \U0001f600"\n}\n'.encode(),
    "no group": b'{"hooks": {"Stop": [1, null, "x", {"hooks": 3}, {"matcher": "a"}]}}\n',
}

UNFIT: dict[str, bytes] = {
    "not closed": b'{"a": 1',
    "a key without quotes": b"{a: 1}",
    "a comma too many": b'{"a": 1,, "b": 2}',
    "a comma missing": b'{"a": 1 "b": 2}',
    "two values": b"{} {}",
    "a list": b"[]\n",
    "a word": b'"x"',
    "hooks are a list": b'{"hooks": []}',
    "hooks are null": b'{"hooks": null}',
    "an event is an object": b'{"hooks": {"Stop": {}}}',
    "a comment without end": b'{"a": 1 /* }',
    "no text": b"\xff\xfe{\x00}\x00",
    "very deep": b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a string over lines": b'{"a": "x\ny"}',
}
