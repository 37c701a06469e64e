"""Take what looks like a secret out of a text, a JSON text or an event stream, so that what is left still replays.

A text is read the way its reader will read it: JSON string by string, each decoded, and a string that holds JSON itself once more;
of an event stream the pieces of one streamed text are joined first, because a secret may be cut anywhere between them.  Nothing
else is touched: without a secret the bytes stay as they are.  The same text gives the same result wherever it stands, so that a later
request, which quotes an earlier reply, still equals its recording.

What counts as a secret: a known one (in whichever encoding), a value under a name like ``password``, the shapes below, and whatever
``pseudoclaude.memory.secrets`` refuses to store: that list of shapes exists once.  It does not prove that nothing is left.
"""

from __future__ import annotations

import json
import string
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

import regex

from pseudoclaude.memory.secrets import find_secret

REDACTED = "REDACTED"
SECRET_LENGTH_MIN = 8
"""A shorter known secret would be found everywhere; it is not looked for."""
NAMED_LOOK_CHARACTERS = 200
"""How much of a member's value is looked at together with its name."""
_NUMBER_DIGITS_MIN = 4

_SHAPES = regex.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[\w+/=\\:,.\s-]*)"
    r"|(?i:\bauthorization[\"']?\s*[:=]\s*[\"']?(?:token|bearer|basic|digest|apikey)\s+[\w.~+/=-]{8,})"
    r"|(?i:\b(?:x-)?api-key[\"']?\s*[:=]\s*[\"']?[\w.~+/=-]{8,})"
    r"|(?i:bearer|basic)\s+[\w.~+/=-]{8,}"
    r"|\bsk-[\w-]{8,}"
    r"|\borg-[\w-]{8,}"
    r"|\bgh[pousr]_\w{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
)
"""What an HTTP exchange may hold beyond what a memory note is refused for, or in a shorter form."""
_NAMES = (
    r"(?:x-)?api[_-]?key|(?:proxy-)?authorization|(?:access|auth|refresh|session|bearer)[_-]?token|(?:client[_-]?)?secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|private[_-]?key|passw(?:or)?d|passphrase|credentials?|(?:set-)?cookie|organization(?:_id)?|organisation|workspace_id"
)
_NAME = regex.compile(_NAMES, regex.IGNORECASE)
_MEMBER = regex.compile(
    rf'((?<!\\)(\\{{0,31}})"(?:{_NAMES})\2"\s*:\s*\2")(?:[^"\\]|\\.)+?(\2")',
    regex.IGNORECASE,
)
"""A member of JSON inside other text, where every quote may stand behind the same number of backslashes."""
_TOKEN = regex.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\]]|-?\d[\d.eE+-]*', regex.DOTALL)
_COLON = regex.compile(r"\s*:")
_KEY_REST = regex.compile(r"[\w.~+/=!@#%^&*-]*")
_KEY_BEGIN = string.ascii_letters + string.digits + "_.+-"
_LINE = regex.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_STREAM = regex.compile(r"\s*(?:data|event|id|retry)?:")

Path = tuple[str | int, ...]


class TextScrubber:
    """Scrubs texts; ``secrets`` are the known ones."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        spelled = {form for secret in secrets for known in (secret, secret.strip()) for form in _spellings(known)}
        self._known = sorted(spelled, key=lambda secret: (-len(secret), secret))

    def body(self, text: str) -> str:
        """A whole request or response body: an event stream, JSON or any other text."""
        return self._stream(text) if _STREAM.match(text) else self.text(text)

    def text(self, text: str) -> str:
        """``text`` without secrets; if it is JSON, then string by string, and it stays JSON."""
        if text.lstrip()[:1] in ("{", "[", '"'):
            scanned = self._json(text)
            if _is_json(text):
                return self._without_known(scanned)
            text = scanned
        return self._plain(text)

    # --- one text ---

    def _plain(self, text: str) -> str:
        text = _MEMBER.sub(rf"\g<1>{REDACTED}\g<3>", self._without_known(text))
        return _without_refused(_SHAPES.sub(REDACTED, text))

    def _without_known(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, REDACTED)
        return text

    # --- JSON, also when it was cut off ---

    def _json(self, raw: str) -> str:
        """Token by token, and not by building it anew: spaces, numbers and repeated members stay."""
        out: list[str] = []
        end, name = 0, ""
        for match in _TOKEN.finditer(raw):
            token = match[0]
            out.append(raw[end : match.start()])
            end = match.end()
            if token[0] == '"':
                is_name = bool(_COLON.match(raw, end))
                out.append(self._string(token, "" if is_name else name))
                name = token[1:-1] if is_name else name
            elif token in "{}]":
                name = ""
                out.append(token)
            else:
                out.append("0" if len(token) >= _NUMBER_DIGITS_MIN and _NAME.fullmatch(name) else token)
        return "".join([*out, raw[end:]])

    def _string(self, token: str, name: str) -> str:
        closing = "" if len(token) > 1 and _is_json(token) else '"'
        try:
            value = json.loads(token + closing, strict=False)
        except ValueError:
            return self._plain(token)
        kept = self._member(name, value)
        written = token if kept == value else _dump(kept)
        return written if kept == value or not closing else written[:-1]

    def _member(self, name: str, value: str) -> str:
        if value and _NAME.fullmatch(name):
            return REDACTED
        kept = self.text(value)
        if name and kept and find_secret(f"{name}: {kept[:NAMED_LOOK_CHARACTERS]}"):
            return REDACTED
        return kept

    # --- event streams ---

    def _stream(self, text: str) -> str:
        blocks = list(_blocks(text))
        data = [_parsed("\n".join(_data(line) for line in block if _is_data(line))) for block in blocks]
        pieces = self._pieces(data)
        return "".join(self._event(*one) for one in zip(blocks, data, pieces, strict=True))

    def _pieces(self, data: Sequence[Any]) -> list[dict[Path, tuple[str, str]]]:
        """Of each event its streamed pieces by path, as they were and as they are to be."""
        channels: dict[tuple[Any, ...], list[tuple[int, Path, str]]] = {}
        for position, event in enumerate(data):
            for channel, path, piece in _streamed(event):
                channels.setdefault(channel, []).append((position, path, piece))
        out: list[dict[Path, tuple[str, str]]] = [{} for _ in data]
        for parts in channels.values():
            whole = "".join(piece for _, _, piece in parts)
            left = self.text(whole)
            changed = left != whole
            for number, (position, path, piece) in enumerate(parts):
                kept = left if number == len(parts) - 1 else left[: len(piece)]
                left = left[len(kept) :]
                out[position][path] = (piece, kept if changed else piece)
        return out

    def _event(self, block: list[str], event: Any, pieces: dict[Path, tuple[str, str]]) -> str:
        if event is None:
            return "".join(self.text(line) for line in block)
        for path in pieces:
            _put(event, path, "")
        around = _dump(event)
        clean = self.text(around)
        changed = clean != around or any(was != now for was, now in pieces.values())
        if not changed:
            return "".join(line if _is_data(line) else self.text(line) for line in block)
        event = json.loads(clean)
        for path, (_, now) in pieces.items():
            _put(event, path, now)
        first = next(number for number, line in enumerate(block) if _is_data(line))
        ending = block[first][len(block[first].rstrip("\r\n")) :]
        lines = [self.text(line) for line in block if not _is_data(line)]
        return "".join([*lines[:first], f"data: {_dump(event)}{ending}", *lines[first:]])


def _without_refused(text: str) -> str:
    """Replace what a memory note would be refused for, together with the rest of the word that it stands in."""
    clean = ""
    while find_secret(text) is not None:
        begin, end = _refused_span(text)
        clean, text = clean + text[:begin] + REDACTED, text[end:]
    return clean + text if find_secret(clean + text) is None else REDACTED  # what only the seams make one


def _refused_span(text: str) -> tuple[int, int]:
    """The narrowest part that is refused, and the rest of its word; ``find_secret`` says that there is one, not where."""
    end = _first(1, len(text), lambda place: find_secret(text[:place]) is not None)
    begin = end - _first(1, end, lambda length: find_secret(text[end - length : end]) is not None)
    rest = _KEY_REST.match(text, end)
    return len(text[:begin].rstrip(_KEY_BEGIN)), rest.end() if rest else end


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """A number in ``low..high`` that ``holds`` while the one before does not; ``high`` must hold."""
    step = low
    while step < high and not holds(step):  # what is looked for is near, and every look costs as much as it is far
        low, step = step + 1, step * 2
    high = min(step, high)
    return low + bisect_left(range(low, high), True, key=holds)


def _spellings(secret: str) -> Iterator[str]:
    """A known secret as it may stand in a text that was not decoded."""
    if len(secret) < SECRET_LENGTH_MIN:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):  # the second: nested too deeply to be one of ours
        return False
    return True


def _dump(value: Any) -> str:
    """Compact JSON; half a character, which a stream may cut, stays an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if regex.search(r"[\ud800-\udfff]", text) else text


# --- events of a stream --------------------------------------------------------------------------------------------


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each event, with their endings and the blank line behind it."""
    block: list[str] = []
    for line in _LINE.findall(text):
        block.append(line)
        if not line.strip("\r\n"):
            yield block
            block = []
    if block:
        yield block


def _is_data(line: str) -> bool:
    return line.startswith("data:")


def _data(line: str) -> str:
    return line.removeprefix("data:").removeprefix(" ").rstrip("\r\n")


def _parsed(data: str) -> Any:
    """The JSON object of an event, or None."""
    try:
        value = json.loads(data, strict=False)
    except (ValueError, RecursionError):  # the word [DONE], or what a test broke: scrubbed as text
        return None
    return value if isinstance(value, dict) else None


_OPENED = {"content_block_start": "content_block_delta"}
"""A block's first event may carry the beginning of its text."""
_PLACES = ("index", "item_id", "output_index", "content_index", "summary_index")
_WHOLE = frozenset({"type", "id", "role", "name"})
"""Members of a delta that are no piece of a longer text."""


def _streamed(event: Any) -> Iterator[tuple[tuple[Any, ...], Path, str]]:
    """Every piece of streamed text: the text it belongs to, its path in the event, the piece."""
    if event is None:
        return
    kind = event.get("type")
    about = (_OPENED.get(str(kind), kind), *(event.get(place) for place in _PLACES))
    for path, names, value in _strings(event, (), ()):
        inside = "delta" in path or path[0] == "content_block"
        if inside and path[-1] not in _WHOLE:
            yield (*map(str, about), *("delta" if name == "content_block" else name for name in names)), path, value


def _strings(value: Any, path: Path, names: Path) -> Iterator[tuple[Path, Path, str]]:
    """Every string with its path; ``names`` is the path with the ``index`` that an item gives itself."""
    if isinstance(value, str):
        yield path, names, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, (*path, name), (*names, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            own = item.get("index", position) if isinstance(item, dict) else position
            yield from _strings(item, (*path, position), (*names, own))


def _put(event: Any, path: Path, text: str) -> None:
    for step in path[:-1]:
        event = event[step]
    event[path[-1]] = text
