"""A network between nca and PostgreSQL that a test can stop: a TCP port, before the server's socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from urllib.parse import urlsplit

from tests.postgres import Cluster


class Link:
    """One connection. What comes while `to_server` or `to_client` is not set waits, and nobody is told."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.to_server, self.to_client = Event(), Event()
        self.cuts_next_answer = False
        self.go_on()

    def stop(self) -> None:
        self.to_server.clear()
        self.stop_answers()

    def stop_answers(self) -> None:
        self.to_client.clear()

    def go_on(self) -> None:
        self.to_server.set()
        self.to_client.set()

    def cut_next_answer(self) -> None:
        self.cuts_next_answer = True

    def cut(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Relay:
    """Passes on what comes.

    accepts  new connections; else they wait, and nobody is told
    refuses  new connections
    """

    def __init__(self, cluster: Cluster) -> None:
        self._server = str(cluster.folder / ".s.PGSQL.5432")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._at_commit: Callable[[Link], None] | None = None
        self.refuses = False
        self.links: list[Link] = []
        self.accepts = Event()
        self.accepts.set()
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def through(self, url: str) -> str:
        """The address of a database of the cluster, by this way."""
        parts = urlsplit(url)
        port = self._listening.getsockname()[1]
        return f"postgresql://owner@127.0.0.1:{port}{parts.path}?sslmode=disable&gssencmode=disable"

    def at_next_commit(self, work: Callable[[Link], None] | None) -> None:
        """Call `work` with the next connection that sends a COMMIT, before that is passed on."""
        self._at_commit = work

    @property
    def is_armed(self) -> bool:
        """No COMMIT came."""
        return self._at_commit is not None

    def stop(self, *, accepts: bool = False) -> None:
        """Pass nothing on, and close nothing. accepts: but new connections."""
        if not accepts:
            self.accepts.clear()
        for link in self.links:
            link.stop()

    def go_on(self) -> None:
        for link in self.links:
            link.go_on()
        self.accepts.set()

    def close(self) -> None:
        self._is_closed = True
        self.go_on()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for link in self.links:
            link.cut()
        for thread in self._threads:
            thread.join()
        for one in (self._listening, *(end for link in self.links for end in (link.client, link.server))):
            one.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.accepts.wait()
                if self.refuses or self._is_closed:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self.links.append(link := Link(client, server))
                self._start(self._pass, link, client, server, link.to_server)
                self._start(self._pass, link, server, client, link.to_client)

    def _pass(self, link: Link, source: socket.socket, target: socket.socket, may_pass: Event) -> None:
        with suppress(OSError):
            while content := source.recv(65_536):
                if source is link.client and self._at_commit is not None and b"COMMIT" in content:
                    called, self._at_commit = self._at_commit, None
                    called(link)
                may_pass.wait()
                if source is link.server and link.cuts_next_answer:
                    link.cut()
                target.sendall(content)
        may_pass.wait()
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
