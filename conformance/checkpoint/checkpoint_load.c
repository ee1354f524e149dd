/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_load.c - checks a checkpoint before it is loaded: it has the
 * model's tensors and no others, its files have the bytes that were saved, and
 * all ranks have opened the same one.
 */
#include "checkpoint_opened.h"

#include <string.h>

#define STATE "optim.state."

/* Whether a state is missing because its parameter was frozen: the optimizer
 * that saved keeps such states, or has some of other parameters. */
static bool was_frozen(const struct checkpoint *c,
                       const struct checkpoint_entry *e)
{
    const char *kind = strrchr(e->name, '.');
    const bool adamw = kind && strncmp(kind, ".exp_avg", 8) == 0;

    if (kind && e->is_state &&
        strcmp(c->manifest.optimizer, adamw ? "adamw" : "momentum") == 0) {
        return true;
    }
    for (uint32_t i = 0; kind && e->is_state && i < c->manifest.table.n; i++) {
        const char *name = c->manifest.table.entry[i].name;
        const char *end = strrchr(name, '.');

        if (strncmp(name, STATE, sizeof(STATE) - 1) == 0 && end &&
            strcmp(end, kind) == 0) {
            return true;
        }
    }
    return false;
}

static int refuse_missing(const struct checkpoint *c,
                          const struct checkpoint_entry *e, char *why)
{
    return was_frozen(c, e)
               ? checkpoint_refuse(why, FSDP_ERR_INVALID,
                                   "no %.80s: it was frozen when this was "
                                   "saved, or states were left out, and is "
                                   "trained now",
                                   e->name)
               : checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                   CHECKPOINT_MANIFEST
                                   ": no tensor %.90s, which the model has",
                                   e->name);
}

/* Whether a save has rounded this parameter. */
static bool was_rounded(const struct checkpoint_entry *saved,
                        const struct checkpoint_entry *e)
{
    return !e->is_state && !e->is_buffer &&
           (saved->dtype == FSDP_DTYPE_BF16 || saved->dtype == FSDP_DTYPE_F16);
}

static int check_dtype(const struct checkpoint_entry *saved,
                       const struct checkpoint_entry *e, bool lenient,
                       char *why)
{
    const char *is = checkpoint_dtype_name(saved->dtype);

    if (saved->dtype == e->dtype || (lenient && was_rounded(saved, e))) {
        return FSDP_OK;
    }
    return was_rounded(saved, e)
               ? checkpoint_refuse(why, FSDP_ERR_INVALID,
                                   CHECKPOINT_MANIFEST
                                   ": %.70s was rounded to %s when it was "
                                   "saved; a lenient load widens it",
                                   e->name, is)
               : checkpoint_refuse(
                     why, FSDP_ERR_FORMAT,
                     CHECKPOINT_MANIFEST ": %.70s is %s, %s was expected",
                     e->name, is, checkpoint_dtype_name(e->dtype));
}

int checkpoint_expect(const struct checkpoint *c,
                      const struct checkpoint_table *table, bool lenient,
                      char *why)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < table->n; i++) {
        const struct checkpoint_entry *e = &table->entry[i];
        int k = e->name ? checkpoint_entry_of(&c->manifest.table, e->name) : -1;
        if (!e->name) {
            n += e->spare &&
                 checkpoint_entry_of(&c->manifest.table, e->spare) >= 0;
            continue;
        }
        n++;
        if (k < 0 && lenient) {
            continue;
        }
        if (k < 0) {
            return refuse_missing(c, e, why);
        }
        FSDP_TRY(check_dtype(&c->manifest.table.entry[k], e, lenient, why));
        if (c->manifest.table.entry[k].n_dims != e->n_dims ||
            memcmp(c->manifest.table.entry[k].shape, e->shape,
                   sizeof(e->shape)) != 0) {
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                CHECKPOINT_MANIFEST ": %.70s has %u dimensions, %llu elements; "
                                    "%u, %llu in another shape were expected",
                e->name, c->manifest.table.entry[k].n_dims,
                (unsigned long long)c->manifest.table.entry[k].numel, e->n_dims,
                (unsigned long long)e->numel);
        }
    }
    if (!lenient && n != c->manifest.table.n) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 CHECKPOINT_MANIFEST
                                 ": %u tensors, the model has %u of them only",
                                 c->manifest.table.n, n);
    }
    return FSDP_OK;
}

int checkpoint_verify(struct checkpoint *c, uint32_t part, uint32_t of,
                      char *why)
{
    for (uint32_t i = part; i < c->manifest.n_files; i += of) {
        const struct checkpoint_file *f = &c->manifest.file[i];
        struct checkpoint_file is;
        FSDP_TRY(checkpoint_hash_file(c->directory, f->name, &is, why));
        if (is.bytes != f->bytes ||
            memcmp(is.sha256, f->sha256, sizeof(f->sha256)) != 0) {
            char hex[2 * CHECKPOINT_SHA_BYTES + 1];
            checkpoint_hex(f->sha256, hex);
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                "%s: its bytes are not those that were saved, SHA-256 %.16s... "
                "was expected",
                f->name, hex);
        }
    }
    return FSDP_OK;
}

/* Checks that all ranks have opened the same checkpoint: another may have been
 * finished between their looks at the folder. */
static int check_same(const struct fsdp_env *env, const struct checkpoint *c,
                      char *why)
{
    unsigned char all[CHECKPOINT_MAX_WORLD][CHECKPOINT_SHA_BYTES];

    FSDP_TRY(env->exchange(env->exchange_self, c->manifest.sha256,
                           sizeof(c->manifest.sha256), all));
    return memcmp(all[0], c->manifest.sha256, sizeof(all[0])) == 0
               ? FSDP_OK
               : checkpoint_refuse(why, FSDP_ERR_IO,
                                   "%.100s: rank 0 found another one newest: a "
                                   "save was finished meanwhile; load again",
                                   checkpoint_path(c));
}

int checkpoint_load_open(const struct fsdp_env *env, const char *directory,
                         const struct checkpoint_table *table,
                         const struct checkpoint_table *local, bool lenient,
                         struct checkpoint **out)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c = NULL;
    int status = directory ? checkpoint_open(directory, &c, why)
                           : checkpoint_refuse(why, FSDP_ERR_INVALID,
                                               "a directory was expected");

    if (status == FSDP_OK && c) {
        const bool strict = !lenient || checkpoint_is_local(c);

        status = checkpoint_expect(c, checkpoint_is_local(c) ? local : table,
                                   !strict, why);
        if (status == FSDP_OK && !strict) {
            status = checkpoint_find_names(c, table, why);
        }
    }
    /* Only when all have opened it are bytes verified: a file that changes
     * later is not the one that was opened (checkpoint_unchanged). */
    status = checkpoint_agree(env, "checkpoint.load", status, why);
    if (status == FSDP_OK && c) {
        status = check_same(env, c, why);
        status = checkpoint_agree(env, "checkpoint.load", status, why);
    }
    if (status != FSDP_OK) {
        checkpoint_close(c);
        c = NULL;
    }
    *out = c;
    return status;
}
