"""Processes that a test starts, talks to and kills.

A server process is started once and forks a child for each job, so that a child costs milliseconds and still
begins clean: nothing of the server has ever opened a store. A job is a function of an importable module; its
first argument is its channel to the test, an object with send(), recv() and poll().

    server = Server(["harness.jobs"])
    child = server.start("harness.jobs", "writer", path=...)
    child.recv(); child.kill(); child.wait()

SPDX-License-Identifier: MIT
"""
import importlib
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import time
import traceback
from multiprocessing.connection import Connection

TESTS = pathlib.Path(__file__).resolve().parent.parent
GONE = (EOFError, ConnectionError, OSError)  # what a channel raises when the other side has died
WAIT_SECONDS = 120


class Failed(Exception):
    """A job ended with an exception, whose text this carries."""


class Child:
    def __init__(self, server, pid, channel):
        self.server, self.pid, self.channel = server, pid, channel
        self.status = None

    def send(self, message):
        self.channel.send(message)

    def recv(self, timeout=WAIT_SECONDS):
        """The next message; Failed when the job failed, EOFError when it has ended, TimeoutError."""
        if not self.channel.poll(timeout):
            raise TimeoutError(f"process {self.pid} said nothing for {timeout} s")
        try:
            message = self.channel.recv()
        except GONE:
            raise EOFError from None
        if isinstance(message, tuple) and message[:1] == ("failed",):
            raise Failed(message[1])
        return message

    def ask(self, message, timeout=WAIT_SECONDS):
        try:
            self.send(message)
        except ConnectionError:
            pass  # it has ended; what it said last tells why
        return self.recv(timeout)

    def rest(self):
        """All messages up to the end of the job."""
        while True:
            try:
                yield self.recv()
            except EOFError:
                return

    def kill(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout=WAIT_SECONDS):
        """The exit code, negative for a signal."""
        until = time.monotonic() + timeout
        while self.status is None:
            self.status = self.server.ask(("wait", self.pid))
            if self.status is None:
                if time.monotonic() > until:
                    raise TimeoutError(f"process {self.pid} does not end")
                time.sleep(0.001)
        if not self.channel.closed:
            self.channel.close()
        return self.status


class Server:
    """modules: imported, and their warm() called, before the first fork. environment: over that of this process."""

    def __init__(self, modules=("harness.jobs",), **environment):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = dict(os.environ, **environment)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), env.get("PYTHONPATH")]))
        self.socket, self.children = ours, []
        with theirs:
            self.process = subprocess.Popen([sys.executable, "-m", "harness.forks", str(theirs.fileno()), *modules],
                                            pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL)

    def ask(self, request, fds=()):
        socket.send_fds(self.socket, [pickle.dumps(request)], fds)
        answer = self.socket.recv(1 << 16)
        assert answer, "the server that starts processes has died"
        return pickle.loads(answer)

    def start(self, module, function, **arguments):
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self.ask(("start", module, function, arguments), [theirs.fileno()])
        child = Child(self, pid, Connection(ours.detach()))
        self.children = [c for c in self.children if c.status is None] + [child]
        return child

    def run(self, module, function, **arguments):
        """What a job sends first; it must then end well."""
        child = self.start(module, function, **arguments)
        answer = child.recv()
        assert child.wait() == 0
        return answer

    def close(self):
        for child in self.children:
            child.kill()
        self.socket.close()
        self.process.wait(WAIT_SECONDS)


# ---- the server's side

def run_job(channel, module, function, arguments):
    try:
        getattr(importlib.import_module(module), function)(channel, **arguments)
    except ConnectionError:
        return 1  # the test has gone
    except BaseException:
        try:
            channel.send(("failed", traceback.format_exc()))
        except OSError:
            pass
        return 1
    return 0


def serve(control, modules):
    for module in modules:
        getattr(importlib.import_module(module), "warm", lambda: None)()
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not data:
            return
        request = pickle.loads(data)
        if request[0] == "start":
            pid = os.fork()
            if pid == 0:
                control.close()
                os._exit(run_job(Connection(fds[0]), *request[1:]))
            os.close(fds[0])
            answer = pid
        else:
            pid, status = os.waitpid(request[1], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        control.send(pickle.dumps(answer))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
