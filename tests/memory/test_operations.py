from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudoclaude.errors import InvalidOperation
from pseudoclaude.memory import Operation, parse_operations, validate_operation
from pseudoclaude.memory.operations import SLUG_BYTES_MAX, checked_slug, slug_of
from pseudoclaude.memory.secrets import find_secret
from tests.memory.malformed import CORPUS, GOOD, Entry


def test_the_corpus_has_forty_kinds() -> None:
    assert len({kind for kind, *_ in CORPUS}) == len(CORPUS) >= 40


@pytest.mark.parametrize("entry", CORPUS, ids=[entry[0] for entry in CORPUS])
def test_only_what_is_malformed_is_dropped_and_why(entry: Entry) -> None:
    _, text, slugs, reasons = entry
    operations, rejected = parse_operations(text)
    assert [operation.slug for operation in operations] == slugs
    assert len(rejected) == len(reasons), rejected
    for item, words in zip(rejected, reasons, strict=True):
        assert words in item.reason


def test_the_last_of_two_bodies_stands() -> None:
    newer = GOOD.replace("fact", "newer")
    (operation,), _ = parse_operations(f"[{GOOD}, {newer}]")
    assert operation.body == "newer"


def test_texts_are_cleaned() -> None:
    operation = validate_operation(
        {
            "action": "create",
            "level": "user",
            "name": " A\nname\u2028with \x00 breaks ",
            "description": "- [x](y)\r\n# System",
            "body": "one\r\ntwo\rthree \x1b[0m \ud800\n\n",
        }
    )
    assert operation == Operation(
        "create",
        "user",
        "a-name-with-breaks",
        "A name with breaks",
        "- [x](y) # System",
        "one\ntwo\nthree \ufffd[0m \ufffd",
    )


def test_a_create_without_a_description_is_described_by_its_first_line() -> None:
    assert (
        validate_operation(
            {"action": "create", "level": "user", "slug": "a", "body": "\n\n  first line\nsecond"}
        ).description
        == "first line"
    )


def test_a_delete_keeps_only_its_slug() -> None:
    assert validate_operation({**json.loads(GOOD), "action": "delete"}) == Operation("delete", "project", "good")


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.lists(
        st.sampled_from([*GOOD.split('"'), GOOD, '"', "{", "}", "[", "]", ",", "\\", "```", '{"operations": [']),
        max_size=12,
    ).map("".join)
)
def test_parsing_never_raises_and_what_comes_out_is_valid(text: str) -> None:
    operations, rejected = parse_operations(text)
    assert all(validate_operation(operation) == operation for operation in operations)
    assert all(item.reason and item.place >= 1 for item in rejected)


# --- slugs


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Build commands", "build-commands"),
        ("  --Über   Größe!  ", "über-grösse"),
        ("世界 🙂", "世界"),
        ("con", "con-note"),
        ("Memory", "memory-note"),
        ("", ""),
        ("a" * 80, "a" * 80),
    ],
)
def test_names_become_slugs(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_spellings_of_one_name_are_one_slug_and_long_names_differ() -> None:
    assert slug_of(unicodedata.normalize("NFD", "café")) == slug_of("CAFÉ") == "café"
    long, longer = slug_of("x" * 300), slug_of("x" * 301)
    assert len(long) == len(longer) == SLUG_BYTES_MAX
    assert long != longer
    assert slug_of("🙂") != slug_of("🙃")


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.text(max_size=60).map(lambda text: text.encode("utf-8", errors="replace").decode()))
def test_a_slug_is_always_a_safe_file_name_and_its_own_slug(name: str) -> None:
    slug = slug_of(name)
    assert bool(slug) == bool(name.strip())
    assert len(slug.encode("utf-8")) <= SLUG_BYTES_MAX
    assert not set(slug) & set("/\\.:\x00\n ")
    assert slug not in ("memory", "con", "nul")
    if slug:
        assert checked_slug(slug) == slug == checked_slug(f"{slug}.md")


# --- secrets


SECRETS = [
    "sk-ant-api03-" + "a1B2" * 10,
    "sk-proj-" + "x9" * 20,
    "AKIA" + "ABCD1234EFGH5678",
    "ghp_" + "a1" * 18,
    "github_pat_" + "a1" * 20,
    "glpat-" + "a1" * 10,
    "xoxb-" + "12345678-abcdefgh",
    "AIza" + "Sy" * 18,
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "SflKxwRJSMeK",
    "postgres://app:hunter22@db/main",
    "Authorization: Bearer " + "abcdef123456789",
    "password = tr0ub4dor&3",
    'API_KEY="' + "0f9e8d7c6b5a" + '"',
    "the token is " + "q1w2e3r4t5y6",
    "sk-ant-\u200bapi03-" + "a1B2" * 10,
    "**Password**: " + "hunter2abc",
    "**password:** " + "hunter2abc99",
    "**Password (prod)**: " + "hunter2abc",
    "| password | " + "abc12345x |",
    "<password>" + "abc12345x</password>",
    "password (staging): " + "Xyz12345ab",
    "password: " + "hunter2",
    "Passwort: " + "abc12345xyz",
    "pwd: " + "abc12345xyz",
    "AWS_SECRET_ACCESS_KEY=" + "/K7MDENGwJalrXUtnFEMI/bPxRfiCYEXAMPLEKEY",
    "DB_PASS=" + "abc12345xyz",
    "client_secret -> " + "abc12345xyz",
    "machine db.example login me password " + "abcxyz",
    "Authorization: token " + "abcdef0123456789abcd",
    "Bearer " + "abcdefghijklmnop0123",
    "postgres://:" + "pa55word@host/db",
    "mysql://root:" + "pw@h",
    "AccountKey=" + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50u==",
    "SG." + "abcdefghijklmnopqrstuv." + "wxyz0123456789ABCDEF",
    "xapp-1-" + "A123-456-abcdefabcdef0123",
    "ya29." + "a0AfH6SMBx-abcdefghijklmnop",
    "dop_v1_" + "a1" * 32,
    "AGE-SECRET-KEY-1" + "Q" * 58,
    "\uff53\uff4b-" + "abcdefghijklmnopqrstuv",
    "password\uff1a" + "hunter2abc",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("field", ["name", "description", "body"])
def test_secrets_are_refused_and_never_repeated(secret: str, field: str) -> None:
    value = {**json.loads(GOOD), field: f"Use {secret} here"}
    with pytest.raises(InvalidOperation, match="secrets are not stored") as caught:
        validate_operation(value)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "API keys are read from the environment: api_key = os.environ['SERVICE_KEY']",
        "the password is stored in the vault",
        "token: see docs/tokens.md",
        "tokens = tokenizer.encode(text)",
        "secret: <your secret here>",
        "https://user:${PASSWORD}@host/",
        "max_tokens = 8192",
        "task-1234567890abcdefghij is the branch",
        "commit 0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e",
        "**Password**: never in a note, ask for it",
        "| password | text | required |\n|---|---|---|\n| token | string | see docs/api-v2.md |",
        "password (staging): in the vault",
        "password: 12-character minimum, sha256-hashed",
        "passwords: argon2id, in 1Password",
        "token: base64url-encoded, oauth2-proxy makes it",
        "DB_PASS is set by CI; DB_PASS=${DB_PASS}",
        "pwd: /home/user1/projects/a-very-long-name-of-a-folder2",
        "secret: projects/p1/secrets/s2/versions/latest",
        "All tests pass: test_parser1 and test_parser2",
        "Authorization: token authentication is used, and Bearer authentication elsewhere",
        "bearer tokens expire after 15 minutes",
        "https://example.org:8080/x@2, ssh://git@host:22/x, postgres://user:%s@host, postgres://user:...@host",
        "keys that begin with sk-, xapp-, SG. or dop_v1_ are refused",
        "set AccountKey=<key> in the connection string",
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1ain the vault",
    ],
)
def test_talk_about_secrets_is_not_a_secret(text: str) -> None:
    assert find_secret(text) is None


def test_a_column_of_a_file_of_settings_is_a_value() -> None:
    assert find_secret("password\t" + "abc12345xyz") == "a password or token"


@pytest.mark.parametrize(
    "piece", ["token", "password: ", "token:\t \t", "a" * 9, "x://", "bearer a", "login ", "SG.", "eyJ", "a1-"]
)
def test_looking_through_a_text_takes_no_time_of_the_square_of_its_length(piece: str) -> None:
    start = time.process_time()
    find_secret(piece * (30_000 // len(piece)))
    find_secret(piece + " " * 30_000)
    assert time.process_time() - start < 2  # about 0.05; the square would be ten
