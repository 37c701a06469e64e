"""Catalog: where sessions lie, and what is there.  Read-only except ``fork_session`` and ``delete_session``.

``<home>/projects/<slug>-<hash of path>/sessions/<id>/``.  The slug is for people, the hash keeps two projects apart whatever their paths
look like (``/x/a-b`` and ``/x/a/b``, two names in other scripts, names longer than a file name may be).
"""

from __future__ import annotations

import hashlib
import posixpath
import re

from pseudoclaude.text import clean

SLUG_CHARS_MAX = 40
_NOT_SLUG = re.compile(r"[^A-Za-z0-9]+")


def project_folder(home: str, project: str) -> str:
    """The folder of the project at the absolute path ``project``: stable, and different for different paths."""
    path = clean(posixpath.normpath(project))
    slug = _NOT_SLUG.sub("-", posixpath.basename(path)).strip("-")[:SLUG_CHARS_MAX].strip("-")
    digest = hashlib.sha256(path.encode("utf-8")).hexdigest()[:16]
    return posixpath.join(home, "projects", f"{slug or 'project'}-{digest}")


def session_folder(home: str, project: str, session_id: str) -> str:
    """The folder of one session of a project."""
    return posixpath.join(project_folder(home, project), "sessions", session_id)
