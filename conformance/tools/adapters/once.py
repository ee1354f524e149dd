#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""once.py - Python that has imported torch already, for tests that start it
seventy times, each of which would spend most of its time on that import.

    PYTHON once.py --serve SOCKET [MODULE...]   imports torch, and waits
    FSDP_ONCE=SOCKET once.py SCRIPT ARGUMENT...

The second stands for Python, as in `check --python`. It hands the script on to
the first, with its arguments, environment, folder and output; there a process
is forked that plays it, and ends as the script does. The one that waits ends
with whoever started it."""

import array
import contextlib
import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import traceback

PR_SET_PDEATHSIG = 1
LENGTH = 8  # bytes of the number that says how many follow


def receive(connection, n):
    data = b""
    while len(data) < n:
        more = connection.recv(n - len(data))
        if not more:
            raise EOFError("the other side has gone")
        data += more
    return data


def play(asked, output):
    """As if Python had been started with these words."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    for fd, its in zip((1, 2), output):
        os.dup2(its, fd)
    sys.argv = asked["words"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    code = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def answer(connection):
    fds = array.array("i")
    head, rights, _, _ = connection.recvmsg(
        LENGTH, socket.CMSG_LEN(2 * fds.itemsize))
    fds.frombytes(rights[0][2])
    asked = json.loads(receive(connection, int.from_bytes(head, "big")))
    connection.sendall(bytes([play(asked, fds) & 255]))


def serve(path, modules):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    for name in ("torch", "torch.distributed.fsdp",
                 "torch.distributed.checkpoint.state_dict", "torch._dynamo",
                 *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path + ".new")
        listener.listen()
        os.rename(path + ".new", path)  # from here on it is there
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                try:
                    answer(connection)
                finally:
                    os._exit(0)
            connection.close()


def ask(path, words):
    asked = json.dumps({"words": [os.path.abspath(words[0]), *words[1:]],
                        "environment": dict(os.environ),
                        "folder": os.getcwd()}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendmsg(
            [len(asked).to_bytes(LENGTH, "big")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))])
        connection.sendall(asked)
        return receive(connection, 1)[0]


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(ask(os.environ["FSDP_ONCE"], sys.argv[1:]))
