# SPDX-License-Identifier: Apache-2.0
"""check_model.py - plays a model of your own, sharded and unsharded, and
writes what was seen. It judges nothing: `fsdp-cts check` does.

    check_model.py FILE.py --ranks K --out FOLDER [--timeout SECONDS]

Exit codes: 0, there are records; 64, something is missing here; 65, FILE.py
cannot be played as it is, and a line says why.
"""

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "adapters")]
USAGE, BAD_DATA = 64, 65
FUNCTIONS = {
    "model": "model(): a new model, not sharded",
    "batch": "batch(step, microbatch, rank): whatever loss takes",
    "loss": "loss(model, batch): a scalar",
    "shard": "shard(model): shards it, or returns what does",
    "optimizer": "optimizer(model): one for its parameters",
}
GRACE = 5  # seconds that ranks have when another one has failed


class Refused(Exception):
    """A line for whoever wrote the file."""


# ---- The file ---------------------------------------------------------------


class Task:
    """The user's file, and how it is played."""

    def __init__(self, a, scratch):
        self.file, self.ranks, self.timeout = a.file, a.ranks, a.timeout
        self.scratch = scratch
        self.module = self.load()
        for name, what in FUNCTIONS.items():
            if not callable(getattr(self.module, name, None)):
                raise Refused(f"{a.file} has no function {what}")
        self.steps = self.number("STEPS", 3)
        self.microbatches = self.number("MICROBATCHES", 1)
        self.seed = self.number("SEED", 1)
        self.compute = getattr(self.module, "COMPUTE", "f32")
        self.reduce = getattr(self.module, "REDUCE", "f32")
        for name in (self.compute, self.reduce):
            if name not in ("f32", "bf16"):
                raise Refused(f"{a.file}: COMPUTE and REDUCE are \"f32\" or "
                              f"\"bf16\", not {name!r}")
        if self.reduce == "bf16" and self.ranks > 2:
            raise Refused(f"{a.file}: REDUCE = \"bf16\" can be judged with two "
                          "ranks: a sum of more is rounded on its way")
        # The mean of more than two depends on an order that nobody declares.
        self.takes_over = self.ranks > 2

    def load(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(self.file)))
        spec = importlib.util.spec_from_file_location("checked", self.file)
        if spec is None:
            raise Refused(f"{self.file} is no Python file: its name has to "
                          "end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["checked"] = module
        signal.signal(signal.SIGALRM, self.is_late)
        signal.alarm(self.timeout)
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as e:
            raise Refused(self.line_of(e, "while it was imported"))
        finally:
            signal.alarm(0)
        return module

    def is_late(self, *_):
        raise TimeoutError(f"no end after {self.timeout} seconds; --timeout "
                           "gives more")

    def number(self, name, otherwise):
        n = getattr(self.module, name, otherwise)
        if not isinstance(n, int) or not 1 <= n <= 1000:
            raise Refused(f"{self.file}: {name} is {n!r}, not a number from 1 "
                          "to 1000")
        return n

    def call(self, name, *arguments):
        function = getattr(self.module, name, None)
        if function is None:
            import check_saved
            function = getattr(check_saved, name)
        return function(*arguments)

    def reduced_path(self, step, rank):
        return os.path.join(self.scratch, f"reduced-{step}-{rank}")

    def casts_path(self):
        return os.path.join(self.scratch, "casts")

    def line_of(self, e, when):
        """An exception in one line, with the last line of the file in it."""
        at = ""
        for frame in traceback.extract_tb(e.__traceback__):
            if os.path.abspath(frame.filename) == os.path.abspath(self.file):
                at = f":{frame.lineno}"
        if isinstance(e, SyntaxError) and e.lineno:
            at = f":{e.lineno}"
        return f"{self.file}{at}: {when}: {what_of(e)}"


def what_of(e):
    from check_names import BadModel
    if isinstance(e, BadModel):
        return str(e)
    failures = getattr(e, "failures", None)
    if isinstance(failures, dict) and failures:  # of a checkpoint, by rank
        rank, (cause, _) = sorted(failures.items())[0]
        return f"{type(e).__name__}: on rank {rank}: {what_of(cause)}"
    text = " ".join(str(e).split())
    return f"{type(e).__name__}: {text}" if text else type(e).__name__


def look_at(task, child):
    """Whether the file can be played at all: before anything is sharded."""
    import torch
    from check_play import check_loss
    from check_ranks import check_optimizer, prepare
    from check_record import digest_of, digest_of_any
    from check_names import BadModel

    def state():
        torch.manual_seed(task.seed)
        model = task.call("model")
        if not isinstance(model, torch.nn.Module):
            raise BadModel(f"model() returned {type(model).__name__}, not a "
                           "torch.nn.Module")
        return model, {name: digest_of(t)
                       for name, t in model.state_dict().items()}

    try:
        prepare(task)
        child.note("in model()")
        (model, one), (_, two) = state(), state()
        if list(one) != list(two):
            raise BadModel("model() makes other parameters each time")
        for name in one:
            if one[name] != two[name]:
                raise BadModel(f"model() makes another {name} each time, with "
                               "the same torch.manual_seed")
        child.note("in batch(0, 0, 0)")
        batches = [task.call("batch", 0, 0, 0) for _ in range(2)]
        if digest_of_any(batches[0]) != digest_of_any(batches[1]):
            raise BadModel("batch(0, 0, 0) is another one each time: it has "
                           "to depend on its arguments alone")
        child.note("in loss()")
        for name, module in model.named_modules():
            module.register_forward_pre_hook(
                lambda *_, name=name: child.note(
                    f"in loss(), in {name or 'the whole model'}"))
        loss = task.call("loss", model, batches[0])
        check_loss(loss)
        if any(p.grad is not None for p in model.parameters()):
            raise BadModel("loss() has called backward(): it has to return "
                           "the loss, and leave that to whoever plays it")
        child.note("in the loss's backward")
        loss.backward()
        child.note("in optimizer()")
        check_optimizer(task.call("optimizer", model))
    except BadModel as e:
        child.say(f"{task.file}: {e}")
    except (Exception, SystemExit) as e:
        traceback.print_exc()
        child.say(task.line_of(e, child.stood()))


# ---- Processes --------------------------------------------------------------


class Child:
    """A process of ours: what it says last, and where it is."""

    def __init__(self, context, output, body, *arguments):
        self.place = context.Array("c", 512, lock=False)
        self.line = context.Array("c", 1024, lock=False)
        self.process = context.Process(target=self.run,
                                       args=(output, body, arguments))
        self.process.start()

    def run(self, output, body, arguments):
        with open(output, "ab") as f:
            for fd in (1, 2):
                os.dup2(f.fileno(), fd)
        code = 1
        try:
            body(*arguments, self)
            code = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # gloo's threads would be waited for

    def note(self, place):
        self.place.value = place.encode("utf-8", "replace")[:511]

    def say(self, line):
        self.line.value = line.encode("utf-8", "replace")[:1023]

    def told(self):
        return self.line.value.decode("utf-8", "replace")

    def stood(self):
        return self.place.value.decode("utf-8", "replace")


def wait_for(children, seconds):
    """Ends those that are late: after the deadline, or once another one has
    ended badly. Returns the late ones, and whether it was the deadline."""
    until = time.monotonic() + seconds
    hung = True
    while any(c.process.is_alive() for c in children):
        if hung and any(c.process.exitcode not in (None, 0) for c in children):
            until, hung = min(until, time.monotonic() + GRACE), False
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    late = [c for c in children if c.process.is_alive()]
    for c in late:
        c.process.kill()
    for c in children:
        c.process.join()
    return late, hung


def is_of_another(e):
    """gloo's errors: another rank has gone."""
    import torch.distributed as dist
    return isinstance(e, dist.DistError) or (
        isinstance(e, RuntimeError) and "gloo" in str(e))


def play(life, path):
    """A life, and its record, however it ends. What is known before the
    checkpoint is written before it, as that may not come to an end."""
    from check_record import an_end
    record, player = life.record, life.player

    def tried(step):
        try:
            step()
            return an_end("returned")
        except BaseException as e:
            traceback.print_exc()
            return an_end("stopped" if is_of_another(e) else "raised",
                          player.place, what_of(e))

    end = tried(life.live)
    if end["how"] == "returned" and hasattr(life, "checkpoint"):
        record.write(path, end, an_end("hung", "in save() or load()"))
        record.write(path, end, tried(life.checkpoint))
    else:
        record.write(path, end)
    if end["how"] != "returned":
        sys.exit(1)


def body_of_rank(task, rank, out, child):
    from check_ranks import Sharded
    play(Sharded(task, rank, child.note),
         os.path.join(out, f"rank-{rank}.json"))


def body_of_unsharded(task, out, child):
    from check_ranks import Unsharded
    play(Unsharded(task, child.note, Seen(task, out)),
         os.path.join(out, "unsharded.json"))


class Seen:
    """What the unsharded run has to know of the ranks' records."""

    def __init__(self, task, out):
        self.task, self.ranks = task, []
        for rank in range(task.ranks):
            with open(os.path.join(out, f"rank-{rank}.json"),
                      encoding="ascii") as f:
                self.ranks.append(json.load(f))

    def wrapper(self):
        return self.ranks[0]["wrapper"]

    def casts(self):
        """Names of modules whose arguments were cast, if rank 0 said so."""
        import torch
        path = self.task.casts_path()
        return torch.load(path) if os.path.exists(path) else []

    def units(self):
        return max((r["units"] for r in self.ranks), key=len)

    def pieces(self):
        return sorted({tuple(x) for r in self.ranks for x in r["pieces"]})


def end_of(code):
    """(how, message) of a process that was not ended by us."""
    if code >= 0:
        return "exited", f"exit code {code}"
    message = f"signal {-code} ({signal.Signals(-code).name})"
    if code == -signal.SIGKILL:
        message += ", perhaps for want of memory"
    return "signalled", message


def write_for(task, child, path, role, rank, late, hung):
    """Writes the record of a process that could not write its own."""
    from check_play import IN_A_COLLECTIVE
    from check_record import Record, an_end
    if child in late:
        # Who waits in a collective waits for one who does not come to it.
        waits = child.stood().endswith(IN_A_COLLECTIVE) and not all(
            c.stood().endswith(IN_A_COLLECTIVE) for c in late)
        how = "hung" if hung and not waits else "stopped"
        message = ("it waited for another rank" if hung and waits
                   else f"no end after {task.timeout} seconds" if hung
                   else "ended with the run: another rank had failed")
    else:
        how, message = end_of(child.process.exitcode)
    Record(role, rank, task).write(path, an_end(how, child.stood(), message))


def explain(task, paths):
    """Where ranks did not all return: how the collectives that they came to
    differ. gloo says of that what it can: that a message has another size."""
    from check_apart import apart
    from check_record import plain
    records = []
    for path in paths:
        with open(path, encoding="ascii") as f:
            records.append(json.load(f))
    ends = [r["end"] for r in records if r["end"]["how"] not in
            ("returned", "raised")]
    why = apart(task, records) if ends else None
    for path, record in zip(paths, records) if why else ():
        if record["end"] in ends:
            record["end"]["message"] = plain(
                f"{record['end']['message'].partition(':')[0]}: {why}", 240)
            with open(path, "w", encoding="ascii") as f:
                json.dump(record, f)


def run(task, out):
    context = multiprocessing.get_context("fork")
    output = os.path.join(out, "output.txt")

    def finish(children, paths, role):
        late, hung = wait_for(children, task.timeout)
        for rank, (child, path) in enumerate(zip(children, paths)):
            if not os.path.exists(path):
                write_for(task, child, path, role, rank, late, hung)
        if role == "rank":
            explain(task, paths)

    first = Child(context, output, look_at, task)
    late, _ = wait_for([first], task.timeout)
    if late:
        raise Refused(f"{task.file}: {first.stood()}: no end after "
                      f"{task.timeout} seconds, before anything was sharded; "
                      "--timeout gives more")
    if first.told():
        raise Refused(first.told())
    if first.process.exitcode != 0:
        raise Refused(f"{task.file}: {first.stood()}: it ended the process: "
                      + end_of(first.process.exitcode)[1])
    paths = [os.path.join(out, f"rank-{r}.json") for r in range(task.ranks)]
    finish([Child(context, output, body_of_rank, task, r, out)
            for r in range(task.ranks)], paths, "rank")
    alone = os.path.join(out, "unsharded.json")
    finish([Child(context, output, body_of_unsharded, task, out)], [alone],
           "unsharded")


def import_once():
    """What each process would import otherwise, for itself."""
    for name in ("fsdp", "checkpoint.state_dict"):
        with contextlib.suppress(ImportError):
            importlib.import_module(f"torch.distributed.{name}")
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")  # for optimizers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--timeout", type=int, default=600)
    a = parser.parse_args()
    try:
        import torch
        import torch.distributed
        if not torch.distributed.is_available():
            raise ImportError("torch is built without torch.distributed")
    except ImportError as e:
        print(f"fsdp-cts check: {sys.executable}: {e}; --python names one "
              "that has torch", file=sys.stderr)
        return USAGE
    import_once()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            run(Task(a, scratch), a.out)
    except Refused as e:
        print(f"fsdp-cts check: {e}", file=sys.stderr)
        return BAD_DATA
    return 0


if __name__ == "__main__":
    sys.exit(main())
