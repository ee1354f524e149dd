/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box_mpi.c - sums of MPI as a black box of order.py. MPI has no sums of 16
 * bits: a program that wants them brings an addition of its own, so that the
 * order is MPI's, and the rounding is ours.
 */
#include <fsdp/arith/cast.h>
#include <fsdp/op.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 4096,
    MOST = 16, /* ranks */
};

/* What a line asks; the file `in` has a float for each rank of each probe. */
struct box {
    uint32_t ranks, elements;
    bool scatters; /* reduce-scatter; else all-reduce */
    uint32_t dtype;
    char in[1024], out[1024];
};

static int rank, world;
static uint32_t dtype; /* of add */

static bool dtype_of(const char *name, uint32_t *out)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } row[] = {{"float32", FSDP_DTYPE_F32},
               {"bfloat16", FSDP_DTYPE_BF16},
               {"float16", FSDP_DTYPE_F16}};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        if (strcmp(row[i].name, name) == 0) {
            *out = row[i].dtype;
            return true;
        }
    }
    return false;
}

static const char *read_line(const char *line, struct box *out)
{
    char op[32];
    char format[32];

    if (sscanf(line, "%u %31s %31s %u %1023s %1023s", &out->ranks, op, format,
               &out->elements, out->in, out->out) != 6) {
        return "no line of RANKS OP FORMAT ELEMENTS IN OUT";
    }
    out->scatters = strcmp(op, "reduce-scatter") == 0;
    if (!out->scatters && strcmp(op, "all-reduce") != 0) {
        return "no such op";
    }
    if (!dtype_of(format, &out->dtype)) {
        return "no such format";
    }
    if (out->ranks < 1 || out->ranks > MOST || out->elements < 1 ||
        out->elements % out->ranks != 0) {
        return "no such ranks, or elements that are no multiple of them";
    }
    return NULL;
}

/* The floats of all probes, to be freed; *n: probes. NULL: no such file. */
static float *read_probes(const struct box *b, size_t *n)
{
    const size_t each = b->ranks * sizeof(float);
    FILE *f = fopen(b->in, "rbe");
    float *x = NULL;
    long bytes = 0;

    if (f && fseek(f, 0, SEEK_END) == 0) {
        bytes = ftell(f);
        rewind(f);
        x = bytes > 0 ? malloc((size_t)bytes) : NULL;
    }
    if (x && fread(x, (size_t)bytes, 1, f) != 1) {
        free(x);
        x = NULL;
    }
    if (f) {
        (void)fclose(f);
    }
    *n = (size_t)bytes / each;
    return x;
}

/* ---- Sums ---- */

static void add(void *in, void *io, int *n, MPI_Datatype *type)
{
    (void)type;
    for (uint64_t i = 0; i < (uint64_t)*n; i++) {
        fsdp_store(dtype, io, i,
                   fsdp_load(dtype, in, i) + fsdp_load(dtype, io, i));
    }
}

struct sum {
    const struct box *b;
    MPI_Datatype type;
    MPI_Op op;
    void *mine, *got;
};

static void reduce(const struct sum *s, float value)
{
    const struct box *b = s->b;
    const int part = (int)(b->elements / b->ranks);

    for (uint32_t i = 0; i < b->elements; i++) {
        fsdp_store(b->dtype, s->mine, i, value);
    }
    if (b->scatters) {
        /* The input of the sum has been sent before the buffer receives the
         * gathered values. */
        MPI_Reduce_scatter_block(s->mine, s->got, part, s->type, s->op,
                                 MPI_COMM_WORLD);
        MPI_Gather(s->got, part, s->type, s->mine, part, s->type, 0,
                   MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(s->mine, s->got, (int)b->elements, s->type, s->op,
                      MPI_COMM_WORLD);
    }
}

static bool write_all(const struct sum *s, FILE *out)
{
    const void *whole = s->b->scatters ? s->mine : s->got;
    bool good = true;

    for (uint32_t i = 0; i < s->b->elements && good; i++) {
        const float x = fsdp_load(s->b->dtype, whole, i);

        good = fwrite(&x, sizeof(x), 1, out) == 1;
    }
    return good;
}

/* All ranks are here. NULL, or what went wrong, on rank 0. */
static const char *play(const struct box *b, struct sum *s)
{
    size_t n = 0;
    float *probes = read_probes(b, &n);
    FILE *out = rank == 0 ? fopen(b->out, "wbe") : NULL;
    int fine = probes && s->mine && s->got && (rank != 0 || out);
    bool good = true;

    MPI_Allreduce(MPI_IN_PLACE, &fine, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    for (size_t i = 0; i < n && fine; i++) {
        reduce(s, probes[i * b->ranks + (size_t)rank]);
        good = good && (rank != 0 || write_all(s, out));
    }
    good = (!out || fclose(out) == 0) && good;
    free(probes);
    return fine && good ? NULL : "no file, or no memory";
}

static const char *answer(const char *line)
{
    struct box b = {0};
    struct sum s = {.b = &b, .type = MPI_FLOAT, .op = MPI_SUM};
    const char *why = read_line(line, &b);

    if (why || (int)b.ranks != world) {
        return why ? why : "another number of ranks";
    }
    dtype = b.dtype;
    if (dtype != FSDP_DTYPE_F32) {
        MPI_Type_contiguous(2, MPI_BYTE, &s.type);
        MPI_Type_commit(&s.type);
        MPI_Op_create(add, 1, &s.op);
    }
    s.mine = malloc(b.elements * sizeof(float));
    s.got = malloc(b.elements * sizeof(float));
    why = play(&b, &s);
    free(s.mine);
    free(s.got);
    if (dtype != FSDP_DTYPE_F32) {
        MPI_Op_free(&s.op);
        MPI_Type_free(&s.type);
    }
    return why;
}

int main(int argc, char **argv)
{
    char line[LINE];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (;;) {
        const char *why;

        if (rank == 0 && !fgets(line, sizeof(line), stdin)) {
            line[0] = '\0';
        }
        MPI_Bcast(line, sizeof(line), MPI_CHAR, 0, MPI_COMM_WORLD);
        if (line[0] == '\0') {
            break;
        }
        why = answer(line);
        if (rank == 0) {
            puts(why ? why : "done");
            (void)fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
