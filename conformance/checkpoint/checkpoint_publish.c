/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_publish.c - the end of a save: rank 0 learns of all files, writes
 * the manifest, and gives the checkpoint the name by which it is found.
 */
#include "checkpoint_saving.h"

#include <stdlib.h>
#include <string.h>

/* How many of its files a rank reports at a time, within 4096 bytes. */
enum {
    TOLD_FILES = 32
};

struct told {
    uint32_t left; /* files not yet reported, these included */
    struct checkpoint_file file[TOLD_FILES];
};

/* Rank 0 learns of all files. Collective. */
static int tell_files(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    struct told mine;
    struct told *all = calloc(s->world, sizeof(*all));
    uint32_t told = 0;
    bool more = true;
    int status = all ? FSDP_OK : checkpoint_no_memory(s->why);

    status = checkpoint_agree(env, "checkpoint.save_wait", status, s->why);
    while (all && more && status == FSDP_OK) {
        memset(&mine, 0, sizeof(mine));
        mine.left = s->n_files - told;
        for (uint32_t i = 0; i < TOLD_FILES && told < s->n_files; i++) {
            mine.file[i] = s->file[told++];
        }
        status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
        more = false;
        for (uint32_t r = 0; status == FSDP_OK && r < s->world; r++) {
            struct checkpoint_manifest *m = &s->manifest;
            uint32_t n = all[r].left < TOLD_FILES ? all[r].left : TOLD_FILES;
            struct checkpoint_file *to =
                realloc(m->file, (m->n_files + n + (size_t)1) * sizeof(*to));
            more = more || all[r].left > TOLD_FILES;
            if (!to) {
                s->status =
                    checkpoint_no_memory(s->why); /* reported after the loop */
                continue;
            }
            m->file = to;
            memcpy(m->file + m->n_files, all[r].file, n * sizeof(*to));
            m->n_files += n;
        }
    }
    free(all);
    return status;
}

static int publish(struct checkpoint_saving *s)
{
    struct checkpoint_manifest m = s->manifest;
    struct checkpoint_stream stream;
    struct checkpoint_file ignored;
    size_t bytes = 0;
    char *text;
    int status;

    m.table = *s->table;
    text = checkpoint_manifest_text(&m, &bytes);
    if (!text) {
        return checkpoint_no_memory(s->why);
    }
    status = checkpoint_stream_open(&stream, s->place.directory,
                                    CHECKPOINT_MANIFEST, s->why);
    if (status == FSDP_OK) {
        status = checkpoint_stream_add(&stream, text, bytes, s->why);
    }
    status = checkpoint_stream_close(&stream, status, &ignored, s->why);
    free(text);
    return status == FSDP_OK ? checkpoint_place_publish(&s->place, s->why)
                             : status;
}

static int finish(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    static const char where[] = "checkpoint.save_wait";

    FSDP_TRY(checkpoint_agree(env, where, s->status, s->why));
    if (s->form == FSDP_SAVE_FULL) {
        s->status = checkpoint_hash_full(s);
        FSDP_TRY(checkpoint_agree(env, where, s->status, s->why));
    }
    FSDP_TRY(tell_files(env, s));
    if (s->rank == 0 && s->status == FSDP_OK) {
        s->status = publish(s);
    }
    return checkpoint_agree(env, where, s->status, s->why);
}

int checkpoint_finish(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    int status = finish(env, s);

    if (status != FSDP_OK) {
        checkpoint_cancel(s);
    } else {
        checkpoint_drop(s);
    }
    return status;
}
