"""Planted bugs: deliberately broken variants of the product, and for each the oracles that must catch it.

They prove the oracles: an oracle that no variant ever fires may be blind.  ``pseudosim run --planted NAME`` runs the scenarios on one.
"""

from __future__ import annotations

import msgspec

from simulator.planted.older_log import OlderLogProtocol
from simulator.product import Product, RealProduct
from simulator.values import OracleName


class Planted(msgspec.Struct, frozen=True):
    """One variant.  ``caught_by``: the oracles of which at least one must break."""

    name: str
    why: str
    product: Product
    caught_by: tuple[OracleName, ...]


PLANTED: dict[str, Planted] = {
    variant.name: variant
    for variant in (
        Planted(
            "older_log_protocol",
            "a replace is a marker, then the new messages one by one, one sync each; the loader clears at the marker",
            OlderLogProtocol(),
            ("O3", "O5", "O6"),
        ),
    )
}


def product_of(variant: str) -> Product:
    """The session code of a variant; ``product`` is the real one."""
    return RealProduct() if variant == "product" else PLANTED[variant].product
