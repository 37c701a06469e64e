"""``pseudoclaude chat``: a conversation in a terminal.

Ctrl-C stops what runs and leaves a saved, valid history; at the prompt it asks for a second one, which leaves.  Ctrl-D leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing

from pseudoclaude.commands.agent import Agent, Place
from pseudoclaude.commands.interrupts import Terminated
from pseudoclaude.commands.run import tell_reports, tell_resumed
from pseudoclaude.commands.screen import Screen
from pseudoclaude.commands.words import count
from pseudoclaude.errors import PseudoClaudeError
from pseudoclaude.ports import FileSystem
from pseudoclaude.runner import Event
from pseudoclaude.session.catalog import list_sessions

PROMPT = "> "
MORE = "… "
HELP = """\
/compact [instructions]   summarize the old part of the conversation now
/memory                   what is remembered for new sessions
/sessions                 the sessions of this project
/help                     this list
/quit                     leave (also Ctrl-D, or Ctrl-C twice)
Anything else goes to the model. A line that ends in \\ goes on in the next one."""


def session_lines(fs: FileSystem, place: Place) -> Iterator[str]:
    """The sessions of a project, oldest first, each with its length and how it begins."""
    infos = list_sessions(place.home, fs, project=place.project)
    for info in reversed(infos):
        yield f"{info.id}  {count(info.messages, 'message')}  {info.title}"
    if not infos:
        yield "No session of this project yet."


class Chat:
    """One terminal conversation.  ``sessions`` gives the lines that /sessions prints."""

    def __init__(
        self, agent: Agent, screen: Screen, read: Callable[[str], str], sessions: Callable[[], Iterator[str]]
    ) -> None:
        self._agent = agent
        self._screen = screen
        self._read = read
        self._sessions = sessions
        self._leaving = False
        self._warned = False

    def run(self) -> int:
        """Talk until the user leaves.  Returns 0, or 1 when something could not be saved, or 143 when terminated."""
        status = 0
        try:
            tell_resumed(self._agent, self._screen)
            self._screen.line(f"Session {self._agent.session_id}. /help lists the commands.", "dim")
            self._talk()
        except Terminated:
            status = 143
        try:
            self._agent.close(
                lambda: self._screen.line("Taking the last turn into memory… (Ctrl-C leaves it for later)", "dim"),
                in_a_hurry=status != 0,
            )
        except PseudoClaudeError as error:
            self._screen.error(error)
            status = status or 1
        except KeyboardInterrupt:
            self._screen.line("The rest is finished at the next start.", "dim")
        tell_reports(self._agent, self._screen)
        if len(self._agent.runner.conversation):
            self._screen.line(f"Go on with: pseudoclaude chat --resume {self._agent.session_id}", "dim")
        return status

    def _talk(self) -> None:
        while not self._leaving:
            try:
                line = self._line()
                self._warned = False
                self._do(line)
            except EOFError:
                return
            except UnicodeDecodeError:
                self._screen.line("That was not UTF-8; nothing was sent.", "yellow")
            except PseudoClaudeError as error:
                self._screen.error(error)
            except Terminated:
                raise
            except KeyboardInterrupt:
                self._interrupted()

    def _interrupted(self) -> None:
        """Ctrl-C: the first one stops, the one after it leaves."""
        self._leaving = self._warned
        self._warned = True
        if not self._leaving:
            self._screen.line("\nStopped. Press Ctrl-C again to leave.", "yellow")
        else:
            self._screen.line("")

    def _line(self) -> str:
        line = self._read(PROMPT)
        while line.endswith("\\"):
            line = line[:-1] + "\n" + self._read(MORE)
        return line

    def _do(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        match word:
            case "":
                return
            case "/quit" | "/exit":
                self._leaving = True
            case "/help":
                self._screen.line(HELP)
            case "/memory":
                self._screen.line(self._agent.memory_text() or "Nothing is remembered yet.")
            case "/sessions":
                for text in self._sessions():
                    self._screen.line(text)
            case "/compact":
                self._show(self._agent.compact(rest))
            case _ if word.startswith("/") and "/" not in word[1:]:
                self._screen.line(f"There is no command {word}. /help lists the commands.", "yellow")
            case _:
                self._show(self._agent.turn(line))
                tell_reports(self._agent, self._screen)

    def _show(self, events: Generator[Event, None, None]) -> None:
        with closing(events):
            for event in events:
                self._screen.show(event)
