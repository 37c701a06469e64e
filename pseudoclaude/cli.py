"""The ``pseudoclaude`` command line: wiring only.

Exit status 2 is a usage error; every other status is the command's own and stands in its help.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer
from rich.console import Console

from pseudoclaude.commands import memory as memory_command
from pseudoclaude.commands import sessions as sessions_command
from pseudoclaude.commands.agent import Agent, Callbacks, Machine, Place, open_agent, open_memory
from pseudoclaude.commands.chat import Chat, session_lines
from pseudoclaude.commands.check import check as check_log
from pseudoclaude.commands.interrupts import Interrupts
from pseudoclaude.commands.providers import DEFAULT_PROVIDER, check_key, open_provider
from pseudoclaude.commands.run import Refusal, run_task
from pseudoclaude.commands.screen import Screen, visible
from pseudoclaude.commands.streams import orderly_output
from pseudoclaude.commands.validate import validate as validate_file
from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.realworld import RealClock, RealFileSystem, RealIds, ThreadBackground

app = typer.Typer(
    name="pseudoclaude",
    help="A coding agent whose context survives crashes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


memory_app = typer.Typer(help="What is remembered for new sessions.", no_args_is_help=True)
app.add_typer(memory_app, name="memory")
sessions_app = typer.Typer(help="What was said before.", no_args_is_help=True)
app.add_typer(sessions_app, name="sessions")

ProviderOption = Annotated[
    str,
    typer.Option(
        envvar="PSEUDOCLAUDE_PROVIDER",
        help="anthropic, openai-chat or openai-responses, with :MODEL if not the default; script:FILE; cassette:FILE.",
    ),
]
ModelOption = Annotated[str, typer.Option(envvar="PSEUDOCLAUDE_MODEL", help="Model, where the provider names none.")]
BaseUrlOption = Annotated[str | None, typer.Option(help="Where the provider's API is served.")]
ResumeOption = Annotated[
    str, typer.Option(help="Go on with this session of the project: an id, the beginning of one, or latest.")
]


@app.command()
def chat(
    provider: ProviderOption = DEFAULT_PROVIDER,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    resume: ResumeOption = "",
) -> None:
    """Talk with the agent about the project in this folder.  It asks before it writes or runs something.

    Exit status: 0 left, 1 something could not be saved, 2 could not start.
    """
    screen = Screen(Console())
    with Interrupts() as interrupts:
        callbacks = Callbacks(screen.allow, screen.text, screen.progress, screen.retry, interrupts.held)
        agent = _agent(provider, model, base_url, resume, callbacks)
        raise typer.Exit(Chat(agent, screen, input, lambda: session_lines(RealFileSystem(), _place())).run())


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="What to do.")],
    allow: Annotated[bool, typer.Option("--allow", help="Let it write files and run commands.")] = False,
    provider: ProviderOption = DEFAULT_PROVIDER,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    resume: ResumeOption = "",
) -> None:
    """Do one task in this folder.  The result is printed to standard output, progress to standard error.

    Exit status: 0 ended, 1 stopped by an error or a limit, 2 could not start, 130 stopped by Ctrl-C, 143 terminated.
    """
    if not task.strip():
        raise typer.BadParameter("it is empty; nothing was started", param_hint="TASK")
    screen = Screen(Console(stderr=True))
    with Interrupts() as interrupts:
        callbacks = Callbacks(
            (lambda _tool, _arguments: True) if allow else Refusal(screen),
            None,
            screen.progress,
            screen.retry,
            interrupts.held,
        )
        agent = _agent(provider, model, base_url, resume, callbacks)
        raise typer.Exit(run_task(agent, task, screen, sys.stdout))


@app.command()
def validate(
    file: Annotated[str, typer.Argument(help="A request body or list of messages in JSON; - is standard input.")],
    dialect: Annotated[str, typer.Option(help="anthropic, openai-chat, openai-responses, …")],
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say whether a provider would refuse this request.  Exit status: 0 valid, 1 violations, 2 unreadable."""
    raise typer.Exit(validate_file(file, dialect, as_json=json, out=sys.stdout, err=sys.stderr))


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A session folder or its log.")],
    dangling: Annotated[
        Literal["trim", "answer"], typer.Option(help="Calls without a result: trim them, or answer them as unknown.")
    ] = "trim",
    dialect: Annotated[str, typer.Option(help="Form of the messages in --json.")] = "anthropic",
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say what a session log still holds and what is lost.  It is only read.

    Exit status: 0 nothing unsettled, 1 something is, 2 it cannot be read.
    """
    raise typer.Exit(
        check_log(
            os.path.abspath(file),
            RealFileSystem(),
            dangling=dangling,
            dialect=dialect,
            as_json=json,
            out=sys.stdout,
            err=sys.stderr,
        )
    )


AllOption = Annotated[bool, typer.Option("--all", help="Of all projects, not only of this folder.")]
SessionArgument = Annotated[str, typer.Argument(help="Its id, a beginning of it that no other has, or latest.")]


@sessions_app.command("list")
def sessions_list(
    every: AllOption = False, json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False
) -> None:
    """The sessions of this project, the newest first, damaged ones too."""
    raise typer.Exit(sessions_command.list_all(_shelf(every), as_json=json, out=sys.stdout))


@sessions_app.command("show")
def sessions_show(session: SessionArgument, every: AllOption = False) -> None:
    """What one session holds.  Exit status: 0, or 1 when it is damaged."""
    raise typer.Exit(sessions_command.show(_shelf(every), session, sys.stdout))


@sessions_app.command("fork")
def sessions_fork(session: SessionArgument, every: AllOption = False) -> None:
    """A new session that begins with the history of this one; its id is printed."""
    raise typer.Exit(sessions_command.fork(_shelf(every), session, RealClock(), RealIds(), sys.stdout))


@sessions_app.command("export")
def sessions_export(
    session: SessionArgument,
    form: Annotated[Literal["jsonl", "markdown"], typer.Option("--format", help="How it is printed.")] = "markdown",
    every: AllOption = False,
) -> None:
    """Print the history of a session."""
    raise typer.Exit(sessions_command.export(_shelf(every), session, form, sys.stdout))


@sessions_app.command("delete")
def sessions_delete(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Really remove it.")] = False,
    every: AllOption = False,
) -> None:
    """Remove a session with all its files, and say which.  Without --yes nothing is removed, and the exit status is 1."""
    raise typer.Exit(sessions_command.delete(_shelf(every), session, RealIds(), sure=yes, out=sys.stdout))


@memory_app.command("list")
def memory_list() -> None:
    """All notes of this project and of the user."""
    raise typer.Exit(memory_command.list_notes(open_memory(_machine(), _place()), sys.stdout, sys.stderr))


@memory_app.command("show")
def memory_show(name: str) -> None:
    """One note.  Exit status: 0, or 1 when there is none of that name."""
    raise typer.Exit(memory_command.show_note(open_memory(_machine(), _place()), name, sys.stdout, sys.stderr))


@memory_app.command("rebuild")
def memory_rebuild() -> None:
    """Make the indexes agree with the notes; lines written by hand stay."""
    raise typer.Exit(memory_command.rebuild(open_memory(_machine(), _place()), sys.stdout, sys.stderr))


def _agent(choice: str, model: str, base_url: str | None, resume: str, callbacks: Callbacks) -> Agent:
    check_key(choice, os.environ)
    return open_agent(
        _machine(),
        _place(),
        open_provider(choice, model=model, base_url=base_url),
        resume=resume,
        callbacks=callbacks,
    )


def _shelf(every: bool) -> sessions_command.Shelf:
    place = _place()
    return sessions_command.Shelf(place.home, None if every else place.project, RealFileSystem())


def _machine() -> Machine:
    return Machine(RealFileSystem(), RealClock(), RealIds(), ThreadBackground())


def _place() -> Place:
    """``PSEUDOCLAUDE_HOME`` (default ``~/.pseudoclaude``), and the folder we were started in."""
    home = os.environ.get("PSEUDOCLAUDE_HOME") or os.path.join(os.path.expanduser("~"), ".pseudoclaude")
    return Place(os.path.abspath(home), os.getcwd())


def main() -> None:
    """Entry point.  An error of ours is one line on standard error and status 2, never a traceback; a reader that went away, status 141."""
    with orderly_output():
        try:
            app()
        except PseudoClaudeError as error:
            print(visible(f"pseudoclaude: {error}"), file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)
