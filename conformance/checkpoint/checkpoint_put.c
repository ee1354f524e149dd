/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_put.c - the full form: a rank writes its slice of a tensor to its
 * place in a file that all ranks share.
 */
#include "checkpoint_saving.h"

#include <fcntl.h>
#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDED = 1 << 12 /* elements that are rounded at a time */
};

/* Writes n floats, rounded, at a place of a file. */
static int put_rounded(int fd, const char *name, uint64_t at, uint32_t dtype,
                       uint64_t n, const float *data, char *why)
{
    uint16_t rounded[ROUNDED];

    for (uint64_t done = 0; done < n;) {
        const uint64_t m = n - done < ROUNDED ? n - done : ROUNDED;

        for (uint64_t i = 0; i < m; i++) {
            fsdp_store(dtype, rounded, i, data[done + i]);
        }
        FSDP_TRY(checkpoint_pwrite(fd, name, at + done * sizeof(*rounded),
                                   rounded, m * sizeof(*rounded), why));
        done += m;
    }
    return FSDP_OK;
}

int checkpoint_put(struct checkpoint_saving *s, uint32_t entry, uint64_t first,
                   uint64_t n, const void *data)
{
    const struct checkpoint_entry *e = &s->table->entry[entry];
    const uint64_t bytes = checkpoint_element_bytes(e);
    const struct checkpoint_full_file *f;
    uint64_t at;
    int fd;

    if (s->status != FSDP_OK || n == 0 || !checkpoint_saves(s, entry)) {
        return s->status;
    }
    f = &s->full.file[s->full.file_of[entry]];
    fd = openat(s->place.directory, f->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    at = s->full.at[entry] + first * bytes;
    if (fd < 0) {
        s->status = checkpoint_refuse_system(s->why, f->name, "cannot open");
    } else if (e->is_rounded) {
        s->status = put_rounded(fd, f->name, at, e->dtype, n, data, s->why);
    } else {
        s->status = checkpoint_pwrite(fd, f->name, at, data, n * bytes, s->why);
    }
    if (fd >= 0 && close(fd) != 0 && s->status == FSDP_OK) {
        s->status = checkpoint_refuse_system(s->why, f->name, "cannot close");
    }
    return s->status;
}

void checkpoint_put_slices(struct checkpoint_saving *s)
{
    float *buffer = malloc(CHECKPOINT_BUFFER * sizeof(*buffer));

    if (!buffer) {
        s->status = checkpoint_no_memory(s->why);
    }
    for (uint32_t i = 0; s->status == FSDP_OK && i < s->source.n; i++) {
        const struct checkpoint_slice *x = &s->source.slice[i];
        uint64_t n;
        if (!s->table->entry[x->entry].name) {
            continue;
        }
        for (uint64_t at = 0; s->status == FSDP_OK && at < x->n; at += n) {
            n = x->n - at < CHECKPOINT_BUFFER ? x->n - at : CHECKPOINT_BUFFER;
            s->status = s->source.read(s->source.context, i, at, n, buffer);
            if (s->status != FSDP_OK) {
                (void)checkpoint_refuse(s->why, s->status,
                                        "the device does not give a shard");
            } else {
                (void)checkpoint_put(s, x->entry, x->first + at, n, buffer);
            }
        }
    }
    free(buffer);
}

void checkpoint_put_wholes(struct checkpoint_saving *s)
{
    for (uint32_t i = 0; i < s->source.n_whole; i++) {
        const struct checkpoint_whole *x = &s->source.whole[i];
        (void)checkpoint_put(s, x->entry, 0, s->table->entry[x->entry].numel,
                             x->data);
    }
}

/* Every rank wrote to these files, and flushing a file on one rank only flushes
 * that rank's writes. */
void checkpoint_flush_full(struct checkpoint_saving *s)
{
    for (uint32_t i = 0; s->status == FSDP_OK && i < s->full.n; i++) {
        const char *name = s->full.file[i].name;
        int fd =
            openat(s->place.directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fsync(fd) != 0) {
            s->status = checkpoint_refuse_system(s->why, name, "cannot flush");
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
}

int checkpoint_hash_full(struct checkpoint_saving *s)
{
    uint32_t of = s->alone ? 1 : s->world;

    for (uint32_t i = 0; i < s->full.n && (!s->alone || s->rank == 0); i++) {
        if (i % of == s->rank) {
            FSDP_TRY(checkpoint_hash_file(s->place.directory,
                                          s->full.file[i].name,
                                          &s->file[s->n_files], s->why));
            s->n_files++;
        }
    }
    for (uint32_t which = 0; which < 2 && s->rank == 0; which++) {
        bool wrote;
        struct checkpoint_file index;
        FSDP_TRY(checkpoint_full_index(&s->full, s->table, s->place.directory,
                                       which, &wrote, &index, s->why));
        if (wrote) {
            struct checkpoint_file *more =
                realloc(s->file, (s->n_files + (size_t)2) * sizeof(*more));
            if (!more) {
                return checkpoint_no_memory(s->why);
            }
            s->file = more;
            s->file[s->n_files++] = index;
        }
    }
    return FSDP_OK;
}
