/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_undo.c - keeps values that are about to be replaced, and brings
 * them back.
 */
#include "checkpoint_undo.h"
#include "checkpoint_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char undo_name[] = "(what was in memory before)";

bool checkpoint_undo_open(struct checkpoint_undo *u, int directory)
{
    const char *elsewhere = getenv("TMPDIR");

    *u = (struct checkpoint_undo){.fd = -1};
    u->fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (u->fd < 0) {
        u->fd = open(elsewhere ? elsewhere : "/tmp",
                     O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    return u->fd >= 0;
}

void checkpoint_undo_close(struct checkpoint_undo *u)
{
    if (u->fd >= 0) {
        (void)close(u->fd);
    }
    u->fd = -1;
}

/* Whether a load writes to this slice: an entry without a name is in no
 * checkpoint. */
static bool is_loaded(const struct checkpoint_target *target, uint32_t i)
{
    return target->table->entry[target->source.slice[i].entry].name != NULL;
}

int checkpoint_undo_keep(struct checkpoint_undo *u,
                         const struct checkpoint_target *target, float *buffer,
                         char *why)
{
    const struct checkpoint_source *source = &target->source;

    for (uint32_t i = 0; i < source->n; i++) {
        uint64_t n;

        for (uint64_t at = 0; is_loaded(target, i) && at < source->slice[i].n;
             at += n) {
            n = source->slice[i].n - at;
            n = n < CHECKPOINT_BUFFER ? n : CHECKPOINT_BUFFER;
            if (source->read(source->context, i, at, n, buffer) != FSDP_OK) {
                return checkpoint_refuse(why, FSDP_ERR_DEVICE,
                                         "the device does not give a shard");
            }
            FSDP_TRY(checkpoint_pwrite(u->fd, undo_name, u->bytes, buffer,
                                       n * sizeof(*buffer), why));
            u->bytes += n * sizeof(*buffer);
        }
    }
    return FSDP_OK;
}

int checkpoint_undo_restore(const struct checkpoint_undo *u,
                            const struct checkpoint_target *target,
                            float *buffer, char *why)
{
    const struct checkpoint_source *source = &target->source;
    uint64_t from = 0;

    for (uint32_t i = 0; i < source->n; i++) {
        uint64_t n;

        for (uint64_t at = 0; is_loaded(target, i) && at < source->slice[i].n;
             at += n) {
            n = source->slice[i].n - at;
            n = n < CHECKPOINT_BUFFER ? n : CHECKPOINT_BUFFER;
            FSDP_TRY(checkpoint_pread(u->fd, undo_name, from, buffer,
                                      n * sizeof(*buffer), why));
            FSDP_TRY(target->write(source->context, i, at, n, buffer));
            from += n * sizeof(*buffer);
        }
    }
    return FSDP_OK;
}
