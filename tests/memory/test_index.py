from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.memory import trim_index
from pseudoclaude.memory.index import drop_lines, join_sections, linked_slug, linked_slugs, note_line, put_line


def test_a_text_that_fits_is_returned_as_it_is() -> None:
    for text in ("", "a", "a\nb", "a\nb\n", "\n\n", "a\r\nb", "\ufeffa"):
        assert trim_index(text) == text


@pytest.mark.parametrize(
    ("text", "max_lines", "max_bytes", "expected"),
    [
        ("a\nb\nc", 2, 100, "a\n[2 lines left out]"),
        ("a\nb\nc\nd", 3, 100, "a\nb\n[2 lines left out]"),
        ("a\nb", 1, 100, "[2 lines left out]"),
        ("a\n" * 3, 3, 100, "a\na\na"),
        ("a\u2028b\nc\nd", 2, 100, "a\u2028b\n[2 lines left out]"),
        ("x" * 30 + "\nb", 9, 31, "[2 lines left out]"),
        ("é" * 60, 9, 100, "é" * 26 + "\n[0 lines left out, the line above is cut short]"),
        ("abc\ndef", 9, 5, "abc"),
        ("世界世界", 9, 7, "世界"),
        ("👩‍👩‍👧", 9, 6, "👩"),
        ("abc", 0, 10, ""),
        ("abc", 5, 0, ""),
        ("\ud83dabc", 5, 100, "\ufffdabc"),
    ],
)
def test_cuts(text: str, max_lines: int, max_bytes: int, expected: str) -> None:
    assert trim_index(text, max_lines=max_lines, max_bytes=max_bytes) == expected


def test_the_default_limits_are_200_lines_and_25_000_bytes() -> None:
    kept = trim_index("\n".join(f"- line {i}" for i in range(250))).split("\n")
    assert (len(kept), kept[198], kept[199]) == (200, "- line 198", "[51 lines left out]")
    kept = trim_index("\n".join(str(i) + "x" * 5_000 for i in range(10))).split("\n")
    assert (len(kept), kept[-1]) == (5, "[6 lines left out]")


@pytest.mark.parametrize(
    ("name", "slug", "line"),
    [
        ("Build", "build", "- [Build](build.md): how"),
        ("two\nlines", "a", "- [two lines](a.md): how"),
        ("- [x](y.md)", "a", r"- [- \[x\](y.md)](a.md): how"),
        ("back\\slash]", "a", r"- [back\\slash\]](a.md): how"),
        ("Spaces", "My Note (1) 100%", "- [Spaces](My%20Note%20%281%29%20100%25.md): how"),
        ("世界", "世界", "- [世界](世界.md): how"),
        ("macOS", "at 9\u202fAM", "- [macOS](at%209%E2%80%AFAM.md): how"),
    ],
)
def test_a_note_line_names_its_note_whatever_the_title(name: str, slug: str, line: str) -> None:
    assert note_line(slug, name, "how") == line
    assert linked_slug(line) == slug


ODD = [
    *"\u00a0\u202f\u3000\u2028\u2029\u0085\u1680 %()<>[]\\.:#?&'\"`*_-+~é",
    "%20",
    "%2F",
    "%e2%80%af",
    "%FF",
    "%00",
    ".md",
    "a",
]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="/\x7f", min_codepoint=32)
FILE_NAMES = st.lists(st.sampled_from(ODD) | CHARACTERS, min_size=1, max_size=12).map("".join)


@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(slug=FILE_NAMES, name=st.text(max_size=12), description=st.text(max_size=12))
def test_a_line_is_read_as_the_note_it_was_written_for_whatever_its_file_is_called(
    slug: str, name: str, description: str
) -> None:
    line = note_line(slug, name, description)
    assert linked_slug(line) == slug
    assert linked_slugs(put_line("# Mine\n", slug, line)) == (slug,)
    assert put_line(put_line("", slug, line), slug, line, line) == f"{line}\n"


@pytest.mark.parametrize(
    ("target", "slug"),
    [
        ("a\u00a0b", "a\u00a0b"),
        ("a%20b", "a b"),
        ("caf%c3%a9", "café"),
        ("100%25", "100%"),
        ("100%", "100%"),
        ("a%2Fb", "a%2Fb"),
        ("a%00", "a%00"),
        ("a%FF", "a%FF"),
    ],
)
def test_other_spellings_of_a_target_are_read(target: str, slug: str) -> None:
    assert linked_slug(f"- [A]({target}.md): how") == slug


def test_lines_that_spell_one_link_differently_become_one() -> None:
    line = note_line("a\u202fb", "A", "how")
    text = f"x\n- [A](a\u202fb.md): how\n- [A](a%e2%80%afb.md): how\r\n{line}\n"
    assert put_line(text, "a\u202fb", line, line) == f"x\n{line}\n"


@pytest.mark.parametrize(
    "line", ["", "# Heading", "see [x](y.md)", "- [x](a/b.md)", "- [x](http://a.md.org)", "- [x] todo", "- plain"]
)
def test_other_lines_stand_for_no_note(line: str) -> None:
    assert linked_slug(line) is None


def test_a_changed_line_moves_to_the_end_and_lines_by_hand_stay() -> None:
    text = "# Mine\n- [A](a.md): old\n- [B](b.md): b\nby hand\n"
    changed = put_line(text, "a", "- [A](a.md): new", "- [A](a.md): old")
    assert changed == "# Mine\n- [B](b.md): b\nby hand\n- [A](a.md): new\n"
    assert put_line(changed, "a", "- [A](a.md): new", "- [A](a.md): old") == changed


def test_a_line_edited_by_hand_is_kept_and_none_is_added() -> None:
    text = "- [A, mind the gap](a.md) ask Bob\n"
    assert put_line(text, "a", "- [A](a.md): new", "- [A](a.md): old") == text


def test_a_line_that_stands_twice_becomes_one() -> None:
    line = "- [A](a.md): a"
    assert put_line(f"{line}\nx\n{line}\n", "a", line, line) == f"x\n{line}\n"


def test_line_ends_and_bytes_that_are_not_text_are_kept() -> None:
    assert put_line("one\r\ntwo\r\n", "a", "- [A](a.md)") == "one\r\ntwo\r\n- [A](a.md)\r\n"
    raw = b"caf\xe9\n".decode("utf-8", errors="surrogateescape")
    assert put_line(raw, "a", "- [A](a.md)").encode("utf-8", errors="surrogateescape") == b"caf\xe9\n- [A](a.md)\n"
    assert put_line("no end", "a", "- [A](a.md)") == "no end\n- [A](a.md)\n"


def test_dropping_a_note_drops_all_its_lines_and_nothing_else() -> None:
    text = "- [A](a.md)\n- [B](b.md)\n* [A again](a.md) x\nsee [A](a.md)\n"
    dropped = drop_lines(text, lambda slug: slug == "a")
    assert dropped == "- [B](b.md)\nsee [A](a.md)\n"
    assert linked_slugs(dropped) == ("b",)


# --- the two sections ------------------------------------------------------------------------------------------


def numbered(name: str, count: int) -> str:
    return "\n".join(f"- [{name} {i}]({name}-{i}.md): fact {i}" for i in range(1, count + 1))


def test_sections_stand_in_order_and_empty_ones_not_at_all() -> None:
    assert join_sections("p", "u").text == "## Project Memory\np\n\n## User Memory\nu"
    assert join_sections("", "\ufeff u \n\n").text == "## User Memory\nu"
    assert join_sections(" \n", "").text == ""


def test_the_newest_notes_are_in_and_those_left_out_are_named() -> None:
    joined = join_sections(numbered("note", 250), "")
    lines = joined.text.split("\n")
    assert len(lines) <= 200
    assert lines[-2] == "- [note 250](note-250.md): fact 250"
    assert "[52 of 250 lines left out, oldest first: note-1, note-2, " in lines[-1]
    assert "note-52]" in lines[-1]
    assert joined.left_out == tuple(f"note-{i}" for i in range(1, 53))


def test_long_lines_are_left_out_whole_and_named() -> None:
    index = "\n".join(f"- [n{i}](n{i}.md): " + "x" * 5_000 for i in range(10))
    joined = join_sections(index, "")
    assert len(joined.text.encode()) <= 25_000
    kept = [line for line in joined.text.split("\n") if line.startswith("- [")]
    assert kept == index.split("\n")[6:]
    assert "[6 of 10 lines left out, oldest first: n0, n1, n2, n3, n4, n5]" in joined.text


def test_an_overlong_newest_line_is_cut_and_still_in() -> None:
    joined = join_sections("- [old](old.md)\n- [new](new.md): " + "世" * 20_000, "")
    assert len(joined.text.encode("utf-8")) <= 25_000
    assert "- [new](new.md): 世世" in joined.text
    assert joined.left_out == ("old",)


@pytest.mark.parametrize(("project", "user"), [(500, 500), (500, 20), (20, 500), (199, 199), (150, 60)])
def test_the_user_section_keeps_a_fair_part(project: int, user: int) -> None:
    text = join_sections(numbered("p", project), numbered("u", user)).text
    assert text.count("\n") + 1 <= 200
    assert len(text.encode()) <= 25_000
    shown = {name: sum(line.startswith(f"- [{name} ") for line in text.split("\n")) for name in "pu"}
    assert shown["p"] >= min(project, 95)
    assert shown["u"] >= min(user, 95)
    assert f"(p-{project}.md)" in text
    assert f"(u-{user}.md)" in text


def test_small_limits_hold() -> None:
    for max_lines in (0, 1, 2, 3, 5, 8):
        for max_bytes in range(0, 400, 7):
            text = join_sections(numbered("pé", 9), "世界" * 90, max_lines=max_lines, max_bytes=max_bytes).text
            assert len(text.encode("utf-8")) <= max_bytes
            assert text.count("\n") + 1 <= max(1, max_lines)
