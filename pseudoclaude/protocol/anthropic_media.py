"""Anthropic Messages, rules A60 to A67: images, size, cache marks.

Sizes are lower bounds that can be known from a history: a request over them is refused for certain, one below may still be refused
for what is not in it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import Any

from pseudoclaude.protocol.anthropic_request import THINKING, Request
from pseudoclaude.protocol.strings import exceeds
from pseudoclaude.protocol.values import Check, Found

MANY_IMAGES = 20
SIDE_MAX, SIDE_MAX_OF_MANY = 8000, 2000
IMAGES_MAX, IMAGE_BYTES_MAX = 100, 10_000_000
BODY_BYTES_MAX = 32_000_000
CACHE_MARKS_MAX = 4
_HEADER_CHARACTERS = 262_144


def _images(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Image sources, nested ones included."""
    for block in request.blocks("image", "tool_result"):
        content = block.data.get("content")
        nested = content if block.kind == "tool_result" and isinstance(content, list) else ()
        for image in [block.data] if block.kind == "image" else nested:
            if isinstance(image, dict) and image.get("type") == "image" and isinstance(image.get("source"), dict):
                yield block.path, image["source"]


def a60(request: Request) -> Iterator[Found]:
    images = list(_images(request))
    side_max = SIDE_MAX_OF_MANY if len(images) > MANY_IMAGES else SIDE_MAX
    for path, source in images:
        width, height = pixels(source.get("data"))
        if max(width, height) > side_max:
            yield (
                path,
                f"an image of {width} x {height} pixels; with {len(images)} images a side has at most {side_max}",
            )


def a61(request: Request) -> Iterator[Found]:
    images = list(_images(request))
    if len(images) > IMAGES_MAX:
        yield images[IMAGES_MAX][0], f"{len(images)} images; at most {IMAGES_MAX} were accepted"
    for path, source in images:
        data = source.get("data")
        if isinstance(data, str) and len(data) * 3 // 4 > IMAGE_BYTES_MAX:
            yield path, f"an image of more than {IMAGE_BYTES_MAX:,} bytes"


def a63(request: Request) -> Iterator[Found]:
    if exceeds(request.messages, BODY_BYTES_MAX):
        yield "messages", f"the texts alone have more than {BODY_BYTES_MAX:,} bytes"


def a66(request: Request) -> Iterator[Found]:
    marked = [block for block in request.blocks() if block.data.get("cache_control") is not None]
    for block in marked[CACHE_MARKS_MAX:]:
        yield block.path, f"more than {CACHE_MARKS_MAX} cache marks"


def a67(request: Request) -> Iterator[Found]:
    for block in request.blocks("text", *THINKING):
        if block.data.get("cache_control") is not None and (block.kind in THINKING or block.data.get("text") == ""):
            yield block.path, f"a cache mark on {'thinking' if block.kind in THINKING else 'an empty text block'}"


def pixels(data: Any) -> tuple[int, int]:
    """Width and height of a Base64 PNG, GIF or JPEG, from its header; (0, 0) when they cannot be read."""
    if not isinstance(data, str):
        return 0, 0
    head = data[:_HEADER_CHARACTERS]
    try:
        raw = base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return 0, 0
    if raw.startswith(b"\x89PNG\r\n\x1a\n") and len(raw) >= 24:
        width, height = struct.unpack(">II", raw[16:24])
        return width, height
    if raw[:6] in (b"GIF87a", b"GIF89a") and len(raw) >= 10:
        width, height = struct.unpack("<HH", raw[6:10])
        return width, height
    return _jpeg_pixels(raw) if raw.startswith(b"\xff\xd8") else (0, 0)


def _jpeg_pixels(raw: bytes) -> tuple[int, int]:
    """From the first start-of-frame segment (markers C0 to CF except C4, C8 and CC)."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return 0, 0


CHECKS = (
    Check("A60", a60),
    Check("A61", a61, firm=False),
    Check("A63", a63),
    Check("A66", a66),
    Check("A67", a67),
)
