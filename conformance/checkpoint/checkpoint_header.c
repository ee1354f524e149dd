/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_header.c - from the headers of a checkpoint's files to the runs of
 * its tensors: which elements lie where. All runs together must give each
 * element exactly once. Works on a header's text, wherever that is from.
 */
#include "checkpoint_opened.h"

#include <stdlib.h>
#include <string.h>

static int compare_entry(const void *a, const void *b)
{
    const struct checkpoint_entry *x = a;
    const struct checkpoint_entry *y = b;

    return strcmp(x->name, y->name);
}

void checkpoint_sort_entries(struct checkpoint_table *table)
{
    if (table->n > 0) {
        qsort(table->entry, table->n, sizeof(*table->entry), compare_entry);
    }
}

int checkpoint_entry_of(const struct checkpoint_table *table, const char *name)
{
    uint32_t low = 0;
    uint32_t high = table->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, table->entry[middle].name);
        if (order == 0) {
            return (int)middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}

static int add_run(struct checkpoint *c, const struct checkpoint_run *x,
                   char *why)
{
    if ((c->n_runs & (c->n_runs - 1)) == 0) {
        size_t room = c->n_runs == 0 ? 1 : 2 * (size_t)c->n_runs;
        struct checkpoint_run *more = realloc(c->run, room * sizeof(*more));
        if (!more) {
            return checkpoint_no_memory(why);
        }
        c->run = more;
    }
    c->run[c->n_runs++] = *x;
    return FSDP_OK;
}

/* The offsets of a chunk, from DCP's metadata; zeros where there is none. */
static bool read_offsets(const json_t *info, const char *name, uint32_t n_dims,
                         uint64_t offset[FSDP_MAX_DIMS])
{
    const json_t *all =
        json_object_get(json_object_get(info, name), "saved_offsets");

    memset(offset, 0, FSDP_MAX_DIMS * sizeof(*offset));
    if (!info) {
        return true;
    }
    if (!json_is_array(all) || json_array_size(all) != n_dims) {
        return false;
    }
    for (uint32_t d = 0; d < n_dims; d++) {
        const json_t *v = json_array_get(all, d);
        if (!json_is_integer(v) || json_integer_value(v) < 0) {
            return false;
        }
        offset[d] = (uint64_t)json_integer_value(v);
    }
    return true;
}

/* The run of elements that a box of a tensor is; false: the box is outside of
 * the tensor, or is no run. */
static bool run_of(const struct checkpoint_entry *e, const uint64_t *offset,
                   const uint64_t *shape, uint64_t *first, uint64_t *n)
{
    bool full = true;

    *first = 0;
    *n = 1;
    for (uint32_t d = 0; d < e->n_dims; d++) {
        if (shape[d] > e->shape[d] || offset[d] > e->shape[d] - shape[d]) {
            return false;
        }
        *first = *first * e->shape[d] + offset[d];
        *n *= shape[d];
    }
    /* From the innermost dimension: full extents, then one that need not be
     * full, then extents of 1. */
    for (uint32_t d = e->n_dims; d-- > 0;) {
        if (!full && shape[d] != 1) {
            return false;
        }
        full = full && shape[d] == e->shape[d];
    }
    return true;
}

static int add_tensor(struct checkpoint *c, uint32_t file, const json_t *info,
                      const struct safetensors_tensor *t, uint64_t at,
                      char *why)
{
    const char *name = c->manifest.file[file].name;
    int i = checkpoint_entry_of(&c->manifest.table, t->name);
    const struct checkpoint_entry *e;
    struct checkpoint_run x = {.file = file, .at = at};
    uint64_t offset[FSDP_MAX_DIMS];

    if (i < 0) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: tensor %.80s, which the manifest has not",
                                 name, t->name);
    }
    e = &c->manifest.table.entry[i];
    if (strcmp(t->dtype, checkpoint_dtype_name(e->dtype)) != 0) {
        return checkpoint_refuse(
            why, FSDP_ERR_FORMAT, "%s: tensor %.80s is %s, %s was expected",
            name, t->name, t->dtype, checkpoint_dtype_name(e->dtype));
    }
    if (t->n_dims != e->n_dims ||
        !read_offsets(info, t->name, t->n_dims, offset) ||
        !run_of(e, offset, t->shape, &x.first, &x.n)) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: shape or offsets of %.80s are no run of "
                                 "the tensor that the manifest has",
                                 name, t->name);
    }
    x.entry = (uint32_t)i;
    return x.n ? add_run(c, &x, why) : FSDP_OK;
}

static int read_sharding_info(const struct safetensors_file *head,
                              const char *name, json_t **out, char *why)
{
    const char *text = safetensors_meta(head, CHECKPOINT_DCP_INFO);

    *out = NULL;
    if (!text) {
        return FSDP_OK;
    }
    *out = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    return json_is_object(*out)
               ? FSDP_OK
               : checkpoint_refuse(
                     why, FSDP_ERR_FORMAT,
                     "%s: its " CHECKPOINT_DCP_INFO " is no JSON object", name);
}

/* "extra.RRRRR.NAME" */
static int add_own(struct checkpoint *c, uint32_t file,
                   const struct safetensors_tensor *t, uint64_t at, char *why)
{
    struct checkpoint_own *x =
        realloc(c->own, (c->n_owns + (size_t)1) * sizeof(*x));
    char *end = NULL;
    unsigned long rank = strtoul(t->name + strlen("extra."), &end, 10);

    if (!x) {
        return checkpoint_no_memory(why);
    }
    c->own = x;
    if (*end != '.' || rank >= CHECKPOINT_MAX_WORLD || t->n_dims != 1 ||
        strcmp(t->dtype, "U8") != 0) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: %.80s is no list of U8 of a rank",
                                 c->manifest.file[file].name, t->name);
    }
    x += c->n_owns;
    *x = (struct checkpoint_own){strdup(end + 1), (uint32_t)rank, file, at,
                                 t->bytes};
    if (!x->name) {
        return checkpoint_no_memory(why);
    }
    c->n_owns++;
    return FSDP_OK;
}

/* Whether a tensor is whole: other tensors than the model's are not cut, so
 * that their offsets, if any, are 0. */
static bool is_whole(const json_t *info, const struct safetensors_tensor *t)
{
    uint64_t offset[FSDP_MAX_DIMS];

    if (t->n_dims > FSDP_MAX_DIMS ||
        !read_offsets(info, t->name, t->n_dims, offset)) {
        return false;
    }
    for (uint32_t d = 0; d < t->n_dims; d++) {
        if (offset[d] != 0) {
            return false;
        }
    }
    return true;
}

/* "optim.step.PARAMETER"; must be there once, as two counts could differ. */
static int add_own_steps(struct checkpoint *c, int fd, uint32_t file,
                         const struct safetensors_tensor *t, uint64_t at,
                         char *why)
{
    const char *name = c->manifest.file[file].name;
    const char *parameter = t->name + strlen(CHECKPOINT_OWN_STEP);
    struct checkpoint_own_steps *x;
    uint64_t step;

    if (t->n_dims != 0 || strcmp(t->dtype, "I64") != 0 ||
        checkpoint_steps_of(c, parameter, &step)) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: %.80s is no I64, or is there twice", name,
                                 t->name);
    }
    FSDP_TRY(checkpoint_pread(fd, name, at, &step, sizeof(step), why));
    x = realloc(c->steps, (c->n_steps + (size_t)1) * sizeof(*x));
    if (!x) {
        return checkpoint_no_memory(why);
    }
    c->steps = x;
    x += c->n_steps;
    *x = (struct checkpoint_own_steps){strdup(parameter), step};
    c->n_steps += x->parameter != NULL;
    return x->parameter ? FSDP_OK : checkpoint_no_memory(why);
}

static int add_state(struct checkpoint *c, int fd, uint32_t file,
                     const json_t *info, const struct safetensors_tensor *t,
                     uint64_t at, char *why)
{
    static const char *const names[] = {"optim.step", "optim.beta1_power",
                                        "optim.beta2_power"};
    void *const to[] = {&c->state.step, &c->state.power[0], &c->state.power[1]};
    const char *name = c->manifest.file[file].name;

    if (!is_whole(info, t)) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: %.80s is a part of something, which no "
                                 "state is",
                                 name, t->name);
    }
    if (strncmp(t->name, "extra.", strlen("extra.")) == 0) {
        return add_own(c, file, t, at, why);
    }
    if (strncmp(t->name, CHECKPOINT_OWN_STEP, strlen(CHECKPOINT_OWN_STEP)) ==
        0) {
        return add_own_steps(c, fd, file, t, at, why);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(t->name, names[i]) == 0) {
            if (t->n_dims != 0 || c->has_state[i] ||
                strcmp(t->dtype, i == 0 ? "I64" : "F32") != 0) {
                break;
            }
            c->has_state[i] = true;
            return checkpoint_pread(fd, name, at, to[i], t->bytes, why);
        }
    }
    return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                             "%s: %.80s is nothing that a state has, or is "
                             "there twice, or has another type",
                             name, t->name);
}

static int take_tensors(struct checkpoint *c, uint32_t file, int fd,
                        const struct safetensors_file *head, uint64_t at,
                        char *why)
{
    const char *name = c->manifest.file[file].name;
    bool is_state = strncmp(name, "state-", strlen("state-")) == 0;
    json_t *info = NULL;
    int status = read_sharding_info(head, name, &info, why);

    for (size_t k = 0; status == FSDP_OK && k < head->n; k++) {
        const struct safetensors_tensor *t = &head->tensors[k];
        status = is_state ? add_state(c, fd, file, info, t, at, why)
                          : add_tensor(c, file, info, t, at, why);
        at += t->bytes;
    }
    json_decref(info);
    return status;
}

int checkpoint_take_header(struct checkpoint *c, uint32_t file, int fd,
                           const char *text, uint64_t bytes, uint64_t data,
                           char *why)
{
    const struct checkpoint_file *f = &c->manifest.file[file];
    const struct safetensors_report report = {f->name, why,
                                              CHECKPOINT_WHY_BYTES};
    struct safetensors_file *head = calloc(1, sizeof(*head));
    int status = head ? safetensors_read_header(&report, text, bytes,
                                                f->bytes - data, head)
                      : checkpoint_no_memory(why);

    if (status == FSDP_OK && head) {
        status = take_tensors(c, file, fd, head, data, why);
    }
    safetensors_close(head);
    return status;
}

/* ---- All of them -------------------------------------------------------- */

static int compare_run(const void *a, const void *b)
{
    const struct checkpoint_run *x = a;
    const struct checkpoint_run *y = b;

    if (x->entry != y->entry) {
        return x->entry < y->entry ? -1 : 1;
    }
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Checks that the runs give each tensor from its first element to its last,
 * once. */
static int check_cover(const struct checkpoint *c, char *why)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < c->manifest.table.n; i++) {
        const struct checkpoint_entry *e = &c->manifest.table.entry[i];
        uint64_t end = 0;
        for (; k < c->n_runs && c->run[k].entry == i; k++) {
            if (c->run[k].first != end) {
                return checkpoint_refuse(
                    why, FSDP_ERR_FORMAT,
                    "%s: %.60s begins at element %llu, %llu was expected: %s",
                    c->manifest.file[c->run[k].file].name, e->name,
                    (unsigned long long)c->run[k].first,
                    (unsigned long long)end,
                    c->run[k].first < end ? "an overlap" : "a hole");
            }
            end += c->run[k].n;
        }
        if (end != e->numel) {
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                CHECKPOINT_MANIFEST
                ": %.70s has %llu elements in all files, %llu were "
                "expected",
                e->name, (unsigned long long)end, (unsigned long long)e->numel);
        }
    }
    return FSDP_OK;
}

static int compare_own(const void *a, const void *b)
{
    const struct checkpoint_own *x = a;
    const struct checkpoint_own *y = b;

    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

/* A rank's own state has each name once, in whatever files it is. */
static int check_own(struct checkpoint *c, char *why)
{
    if (c->n_owns > 0) {
        qsort(c->own, c->n_owns, sizeof(*c->own), compare_own);
    }
    for (uint32_t i = 1; i < c->n_owns; i++) {
        if (compare_own(&c->own[i - 1], &c->own[i]) == 0) {
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                "%s: extra.%05u.%.60s is in %s as well; once was expected",
                c->manifest.file[c->own[i].file].name, c->own[i].rank,
                c->own[i].name, c->manifest.file[c->own[i - 1].file].name);
        }
    }
    return FSDP_OK;
}

int checkpoint_take_all(struct checkpoint *c, char *why)
{
    if (!c->has_state[0] || !c->has_state[1] || !c->has_state[2]) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "state-00001.safetensors: step or running "
                                 "products are missing");
    }
    if (c->n_runs > 0) {
        qsort(c->run, c->n_runs, sizeof(*c->run), compare_run);
    }
    FSDP_TRY(check_cover(c, why));
    return check_own(c, why);
}

void checkpoint_forget(struct checkpoint *c)
{
    for (uint32_t i = 0; i < c->n_owns; i++) {
        free(c->own[i].name);
    }
    free(c->own);
    for (uint32_t i = 0; i < c->n_steps; i++) {
        free((char *)c->steps[i].parameter);
    }
    free(c->steps);
    free(c->missing);
    free(c->unexpected);
    free(c->run);
    checkpoint_manifest_release(&c->manifest);
}
