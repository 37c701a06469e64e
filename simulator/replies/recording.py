"""Record what an SDK says to a provider, or to the emulator, as a vcrpy cassette without secrets.

vcrpy does the recording, by patching ``httpx2`` for as long as the block lasts, so nothing else in the process may talk HTTP then.
Everything is scrubbed before vcrpy keeps it; no unscrubbed byte reaches the disk.

What is kept of headers and query is a short list, not what is left after removing known secrets: a header nobody thought of is
dropped.  Bodies, paths and status messages keep their text, except for what ``scrub`` takes for a secret or what is one of the
``secrets`` that the caller knows.  The address that served is replaced by the provider's own, so that a recording from the emulator replays
like one from the provider; the file's ``metadata`` says which it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import vcr  # type: ignore[import-untyped]
import yaml
from vcr.request import Request as VcrRequest  # type: ignore[import-untyped]

from simulator.replies.cassettes import load_cassette
from simulator.replies.scrub import REDACTED, TextScrubber

REQUEST_HEADERS = frozenset({"content-type", "anthropic-version", "anthropic-beta", "openai-beta"})
RESPONSE_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry"})
QUERY_MEMBERS = frozenset({"beta", "api-version"})
PUBLIC_ADDRESSES: dict[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
}
"""What stands in a cassette for the address that served."""
_KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


@contextmanager
def recording(
    out: str | Path,
    *,
    served_at: str,
    dialect: str,
    provenance: Mapping[str, str],
    secrets: Sequence[str] = (),
) -> Iterator[None]:
    """Record every ``httpx2`` request of the block into ``out``, a new file.

    ``served_at`` is the base URL the SDK was given, ``provenance`` is written into the file as ``metadata``, ``secrets`` are known
    ones (the keys in the environment are added).  Nothing is left at ``out`` when the block raises or makes no request.
    """
    target = Path(out)
    aside = target.with_name(f".{target.name}.part")
    aside.unlink(missing_ok=True)
    scrub = Scrubber(served_at, PUBLIC_ADDRESSES[dialect], (*secrets, *_environment_keys()))
    recorder = vcr.VCR(
        record_mode="all",
        match_on=("method", "uri", "body"),
        before_record_request=scrub.request,
        before_record_response=scrub.response,
        decode_compressed_response=True,
    )
    try:
        with recorder.use_cassette(str(aside)) as cassette:
            for key, value in sorted(provenance.items()):
                cassette.get_metadata(key, scrub.text(value))
            yield
        _in_reading_order(aside)
        load_cassette(aside)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


class Scrubber:
    """What may be kept of a request and a response."""

    def __init__(self, served_at: str, public: str, secrets: Sequence[str]) -> None:
        self._served_at = served_at.rstrip("/")
        self._public = public
        self._texts = TextScrubber(secrets)

    def request(self, request: Any) -> Any:
        """A clean copy, as vcrpy wants it."""
        kept = {
            name.lower(): self.text(value) for name, value in request.headers.items() if name.lower() in REQUEST_HEADERS
        }
        body = request.body if request.body is None else self.body(request.body)
        return VcrRequest(request.method, self.address(request.uri), body, kept)

    def response(self, response: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            name.lower(): [self.text(value) for value in values]
            for name, values in response["headers"].items()
            if name.lower() in RESPONSE_HEADERS
        }
        body = {"string": self.body(response["body"]["string"])}
        status = {"code": response["status"]["code"], "message": self.text(response["status"]["message"] or "")}
        return {"status": status, "headers": headers, "body": body}

    def address(self, uri: str) -> str:
        """The provider's own address with the same path; of the query only what is no secret."""
        if uri.startswith(self._served_at):
            uri = self._public + uri[len(self._served_at) :]
        parts = urlsplit(uri)
        query = [(name, self.text(value)) for name, value in parse_qsl(parts.query) if name in QUERY_MEMBERS]
        host = self.text(parts.netloc.rpartition("@")[2])
        return urlunsplit((parts.scheme, host, self._path(parts.path), urlencode(query), ""))

    def _path(self, path: str) -> str:
        """As it is sent, unless its decoded form holds a secret."""
        decoded = path
        while (once_more := unquote(decoded)) != decoded:
            decoded = once_more
        kept = self.text(decoded)
        return path if kept == decoded else quote(kept)

    def body(self, body: bytes | str) -> bytes:
        data = body if isinstance(body, bytes) else body.encode("utf-8")
        try:
            return self._texts.body(data.decode("utf-8")).encode("utf-8")
        except UnicodeDecodeError:
            return REDACTED.encode()  # no API answers with anything else; what cannot be read cannot be scrubbed

    def text(self, text: str) -> str:
        return self._texts.text(text)


def _environment_keys() -> list[str]:
    return [os.environ[name] for name in _KEY_VARIABLES if os.environ.get(name)]


def _in_reading_order(file: Path) -> None:
    """vcrpy's file with the provenance first, and long texts not folded, so that a diff shows what changed."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    ordered = {key: document[key] for key in ("version", "metadata", "interactions") if key in document}
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=1_000_000)
    file.write_text(text, encoding="utf-8")
