/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_box.c - TEST ONLY: the emulation of NCCL, where it sums, as a black
 * box of conformance/tools/order/order.py, whose lines it reads. This thread
 * plays all ranks: each does its part when its turn comes. It sums only in a
 * reduce-scatter of floats.
 */
#include "cuda/emulated/emulated.h"
#include "cuda/emulated/nccl.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = 8, /* ranks, each with a GPU */
    LINE = 4096,
};

/* A line that order.py writes. */
struct box {
    uint32_t ranks, elements;
    char in[1024], out[1024];
};

static const char *read_line(const char *line, struct box *b)
{
    char op[32];
    char format[32];

    if (sscanf(line, "%u %31s %31s %u %1023s %1023s", &b->ranks, op, format,
               &b->elements, b->in, b->out) != 6 ||
        b->ranks < 1 || b->ranks > MOST || b->elements % b->ranks != 0) {
        return "no line that it can do";
    }
    return strcmp(op, "reduce-scatter") != 0 || strcmp(format, "float32") != 0
               ? "it sums in reduce-scatters of float32 alone"
               : NULL;
}

struct member {
    ncclComm_t comm;
    cudaStream_t stream;
    float *whole, *part; /* pinned: both sides may use it */
};

static bool settled(ncclComm_t comm)
{
    ncclResult_t result = ncclInProgress;

    while (result == ncclInProgress) {
        if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) {
            return false;
        }
    }
    return result == ncclSuccess;
}

static bool enter(const struct box *b, struct member *m, int r,
                  const ncclUniqueId *id)
{
    const size_t bytes = b->elements * sizeof(float);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    void *whole = NULL;
    void *part = NULL;
    bool good;

    config.blocking = 0;
    emulated_set_rank((uint32_t)r);
    good = cudaSetDevice(r) == cudaSuccess &&
           cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking) ==
               cudaSuccess &&
           cudaHostAlloc(&whole, bytes, cudaHostAllocPortable) == cudaSuccess &&
           cudaHostAlloc(&part, bytes, cudaHostAllocPortable) == cudaSuccess;
    m->whole = whole;
    m->part = part;
    return good && ncclCommInitRankConfig(&m->comm, (int)b->ranks, *id, r,
                                          &config) == ncclInProgress;
}

static void leave(struct member *m, int r)
{
    emulated_set_rank((uint32_t)r);
    (void)cudaSetDevice(r);
    if (m->comm) {
        (void)ncclCommAbort(m->comm);
    }
    if (m->stream) {
        (void)cudaStreamDestroy(m->stream);
    }
    (void)cudaFreeHost(m->whole);
    (void)cudaFreeHost(m->part);
}

static bool sent(const struct member *m, size_t part)
{
    return ncclReduceScatter(m->whole, m->part, part, ncclFloat32, ncclSum,
                             m->comm, m->stream) == ncclInProgress &&
           settled(m->comm);
}

/* One probe. */
static bool reduce(const struct box *b, struct member *m, const float *values,
                   FILE *out)
{
    const size_t part = b->elements / b->ranks;
    bool good = true;

    for (uint32_t r = 0; r < b->ranks && good; r++) {
        for (uint32_t i = 0; i < b->elements; i++) {
            m[r].whole[i] = values[r];
        }
        emulated_set_rank(r);
        good = sent(&m[r], part);
    }
    while (good && !emulated_flush()) {
    }
    for (uint32_t r = 0; r < b->ranks && good; r++) {
        good = fwrite(m[r].part, sizeof(float), part, out) == part;
    }
    return good;
}

static const char *play(const struct box *b, struct member *m)
{
    FILE *in = fopen(b->in, "rbe");
    FILE *out = fopen(b->out, "wbe");
    float probe[MOST];
    ncclUniqueId id;
    bool good = in && out && ncclGetUniqueId(&id) == ncclSuccess;

    for (uint32_t r = 0; r < b->ranks && good; r++) {
        good = enter(b, &m[r], (int)r, &id);
    }
    for (uint32_t r = 0; r < b->ranks && good; r++) {
        emulated_set_rank(r);
        good = settled(m[r].comm);
    }
    while (good && fread(probe, sizeof(*probe), b->ranks, in) == b->ranks) {
        good = reduce(b, m, probe, out);
    }
    for (uint32_t r = 0; r < b->ranks; r++) {
        leave(&m[r], (int)r);
    }
    good = (!out || fclose(out) == 0) && good;
    if (in) {
        (void)fclose(in);
    }
    return good ? NULL : "no file, or a call that fails";
}

int main(void)
{
    char line[LINE];

    while (fgets(line, sizeof(line), stdin)) {
        struct member m[MOST] = {{.comm = NULL}};
        struct box b = {0};
        const char *why = read_line(line, &b);

        why = why ? why : play(&b, m);
        puts(why ? why : "done");
        (void)fflush(stdout);
    }
    return 0;
}
