# SPDX-License-Identifier: Apache-2.0
"""PyTorch that shards nothing, in a world of one rank: so it is the models of
adapter_graph.py that are judged, and nothing that anybody does with them."""

import contextlib

from adapter_graph import GraphModel
from adapter_models import weights_of
from adapter_ranks import main
from adapter_torch import Engine, Piece


class Plain(Engine):
    """PyTorch without sharding."""

    name = "pytorch-plain"
    claims = [
        "flat", "per-parameter", "full-shard", "shard-grad-op", "no-shard",
        "keep-root", "reshard-root", "eval", "again",
        "unshard-all", "sgd", "momentum", "adamw", "fold-any", "frozen",
        "shared", "recompute", "late-states", "prefetch", "workload-graph",
        "wrap-drawn", "graph-crossing", "graph-one-way", "graph-scalar",
        "graph-empty", "graph-bare-unit", "graph-own-reshard",
    ]

    def open(self, life):
        if life.case.ranks != 1:
            raise ValueError("cases of one rank alone are played: --ranks 1")

    def model(self, life):
        return GraphModel(life.built_as, life.look, life.renamed, wraps=False)

    def shard(self, life, plain):
        return plain

    @contextlib.contextmanager
    def sync(self, life, on):
        yield

    @contextlib.contextmanager
    def summon(self, life):
        yield

    def pieces(self, life):
        return [Piece(p, 0, w, lambda t: t.reshape(-1))
                for p, w in sorted(weights_of(life.model).items())
                if life.case.original(p) == p]


if __name__ == "__main__":
    main(Plain())
