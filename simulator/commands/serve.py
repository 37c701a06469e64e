"""``pseudosim serve FILE``: the three provider APIs on loopback, answering from a script, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path

from simulator.replies.emulator import BASE_PATHS, RunningEmulator, serve
from simulator.replies.entry import read_script
from simulator.scenario import ScenarioError


def serve_file(file: Path, port: int) -> int:
    """Serve the script in ``file`` until interrupted; prints where, and at the end what was asked.

    Exit status 0, whatever was asked; 3 when the server itself failed in a request.  Raises ``ReplyError`` or ``ScenarioError``.
    """
    spec, _ = read_script(file)
    if spec.cassette is not None:
        raise ScenarioError(f"{file}: names a cassette; what is served is a script - at `$.provider.cassette`")
    running: list[RunningEmulator] = []

    def ready(served: RunningEmulator) -> None:
        running.append(served)
        print(f"Serving {file} on {served.base_url}", flush=True)
        for dialect in BASE_PATHS:
            print(f"  {dialect:17} base URL {served.url(dialect)}", flush=True)
        print(f"{served.emulator.remaining} replies. Ctrl-C stops.", flush=True)

    try:
        serve(spec, port, ready)
    except OSError as error:
        raise ScenarioError(f"port {port} cannot be served on: {error.strerror or error}") from error
    emulator = running[0].emulator
    print(
        f"Stopped. {emulator.requests_checked} requests checked, {len(emulator.violations)} violations of the protocol, "
        f"{emulator.remaining} replies left"
    )
    for line in (*emulator.violations, *emulator.exhausted, *emulator.failures):
        print(f"  {line}")
    return 3 if emulator.failures else 0
