"""Which opaque values count as the provider's own."""

from __future__ import annotations

import pytest
import yaml

from pseudoclaude.protocol.opaque import is_genuine
from tests.shared import shared_file


@pytest.mark.parametrize(
    "value",
    ["sig:ok:1", "red:ok:x", "cmp:ok:1", "enc:ok:1", "ts:ok", "Eq" + "Ab3/+" * 60 + "==", "gAAAAAB" + "o-x_3" * 40],
)
def test_genuine(value: str) -> None:
    assert is_genuine(value)


@pytest.mark.parametrize(
    "value",
    [None, 7, "", "s", "made-up", "enc:bad:1", "sig:okay", "a" * 400, "skip_thought_signature_validator", "Ab3 " * 100],
)
def test_placeholders(value: object) -> None:
    assert not is_genuine(value)


def test_every_recorded_value_counts_as_genuine() -> None:
    """Found by a plain search in the text of the recordings, not by anything that knows the API."""
    found = 0
    for path in sorted(shared_file("cassettes/real").glob("anthropic__messages__*thinking*.yaml")):
        text = str(yaml.load(path.read_bytes(), yaml.CSafeLoader))
        for piece in text.split('"signature":"')[1:] + text.split('"data":"E')[1:]:
            value = piece.split('"')[0]
            if value and "\\" not in value:
                found += 1
                assert is_genuine(value), path.name
    assert found >= 5
