/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_consolidate.c - makes a full checkpoint of a sharded one, without a
 * world: slice by slice, so that no more than a buffer is in memory.
 */
#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "judge/report/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 1 << 16
}; /* elements at a time */

static const char usage[] =
    "usage: fsdp-cts consolidate DIR OUT\n\n"
    "Writes the newest complete checkpoint of DIR, in the full or the sharded "
    "form,\nas a full one into the directory OUT: model.safetensors, "
    "optimizer.safetensors,\nstate-00001.safetensors and manifest.json. Says "
    "which one it was, and where it\nwrote.\n\n"
    "example:\n"
    "  fsdp-cts consolidate checkpoints/ whole/\n";

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

static int copy_tensor(struct checkpoint *c, struct checkpoint_saving *s,
                       uint32_t i, void *buffer, char *why)
{
    const struct checkpoint_entry *e =
        &checkpoint_manifest_of(c)->table.entry[i];
    uint64_t n;

    for (uint64_t at = 0; at < e->numel; at += n) {
        n = e->numel - at < SLICE ? e->numel - at : SLICE;
        FSDP_TRY(checkpoint_read(c, e->name, at, n, buffer, why));
        FSDP_TRY(checkpoint_put(s, i, at, n, buffer));
    }
    return FSDP_OK;
}

static int copy_extras(struct checkpoint *c, struct checkpoint_saving *s,
                       char *why)
{
    struct checkpoint_extra x;

    for (uint32_t i = 0; checkpoint_extra_at(c, i, &x); i++) {
        void *data = malloc(x.bytes + 1);
        int status =
            data ? checkpoint_extra_read(c, i, data, why)
                 : checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        if (status == FSDP_OK) {
            status = checkpoint_add_extra(s, x.rank, x.name, data, x.bytes);
        }
        free(data);
        FSDP_TRY(status);
    }
    return FSDP_OK;
}

/* After a failure the folder is removed with what was saved. */
static int copy_all(struct checkpoint *c, const struct fsdp_env *env,
                    const struct fsdp_save *save, char *why)
{
    const struct checkpoint_manifest *m = checkpoint_manifest_of(c);
    struct checkpoint_request request = {.env = env,
                                         .save = save,
                                         .world = m->world,
                                         .shards = m->shards,
                                         .replicas = m->replicas,
                                         .layout = m->layout,
                                         .optimizer = m->optimizer,
                                         .table = &m->table,
                                         .state = checkpoint_state_of(c)};
    struct checkpoint_saving *s;
    void *buffer = malloc(SLICE * sizeof(uint64_t)); /* of any dtype */
    struct progress progress;
    int copied = FSDP_OK;
    int status;

    request.own = checkpoint_own_steps(c, &request.n_own);
    status = buffer ? checkpoint_begin(&request, &s) : FSDP_ERR_NOMEM;

    if (status != FSDP_OK) {
        free(buffer);
        return status;
    }
    progress_begin(&progress, "consolidate", "tensors", m->table.n, false);
    progress_tick(&progress);
    for (uint32_t i = 0; copied == FSDP_OK && i < m->table.n; i++) {
        copied = copy_tensor(c, s, i, buffer, why);
        progress_add(&progress, 1, 0);
    }
    progress_clear(&progress);
    if (copied == FSDP_OK) {
        copied = copy_extras(c, s, why);
    }
    free(buffer);
    if (copied != FSDP_OK) {
        checkpoint_cancel(s);
        return copied;
    }
    checkpoint_write(s);
    return checkpoint_finish(env, s);
}

static int consolidate(const char *from, const char *to, char *why)
{
    struct fsdp_error error = {0};
    struct fsdp_env env = {
        .size = sizeof(env), .world = 1, .error = &error, .exchange = exchange};
    struct fsdp_save save = {.size = sizeof(save),
                             .form = FSDP_SAVE_FULL,
                             .directory = to,
                             .rank0_only = 1};
    struct checkpoint *c;
    int status;

    FSDP_TRY(checkpoint_open(from, &c, why));
    if (checkpoint_is_local(c)) {
        status = checkpoint_refuse(
            why, FSDP_ERR_UNSUPPORTED,
            "%.120s is local: flat shards without names; full or sharded was "
            "expected",
            checkpoint_path(c));
    } else {
        status = checkpoint_verify(c, 0, 1, why);
    }
    if (status == FSDP_OK) {
        printf("%s (%s)\n", checkpoint_path(c), checkpoint_reason(c));
        status = copy_all(c, &env, &save, why);
    }
    if (status != FSDP_OK && error.status != FSDP_OK) {
        (void)checkpoint_refuse(why, status, "%.180s", error.message);
    }
    checkpoint_close(c);
    return status;
}

int command_consolidate(int argc, char **argv)
{
    char why[CHECKPOINT_WHY_BYTES] = "";

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc != 3 || argv[1][0] == '-' || argv[2][0] == '-') {
        fputs("fsdp-cts: consolidate takes two directories: DIR OUT\n", stderr);
        return EXIT_USAGE;
    }
    if (consolidate(argv[1], argv[2], why) != FSDP_OK) {
        fflush(stdout);
        fprintf(stderr, "fsdp-cts: %s: %s\n", argv[1], why);
        return EXIT_BAD_DATA;
    }
    printf("%s\n", argv[2]);
    return 0;
}
