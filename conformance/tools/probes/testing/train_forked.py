# SPDX-License-Identifier: Apache-2.0
"""train_forked.py - runs scripts of this folder, each as two ranks that are
forked from this process, which has PyTorch already: the time of its imports is
spent once.

usage: train_forked.py SCRIPT:WORD...: runs SCRIPT WORD; its log goes into the
folder WORD of $FSDP_PROBE_LOG.
"""

import os
import runpy
import socket
import sys
import traceback

import torch.distributed.fsdp  # noqa: F401  so that it is there


def rank(number, port, script, word):
    os.environ |= {"RANK": str(number), "WORLD_SIZE": "2",
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if "FSDP_PROBE_LOG" in os.environ:
        os.environ["FSDP_PROBE_LOG"] += f"/{word}"
    sys.argv = [script, word]
    code = 1
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(*runs):
    bad = 0
    for run in runs:
        name, _, word = run.partition(":")
        script = os.path.join(os.path.dirname(__file__), name)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        print(word, flush=True)
        ranks = []
        for number in range(2):
            ranks.append(os.fork())
            if ranks[-1] == 0:
                rank(number, port, script, word)
        bad += sum(os.waitpid(pid, 0)[1] != 0 for pid in ranks)
    sys.exit(bad != 0)


main(*sys.argv[1:])
