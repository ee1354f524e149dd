/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_read.c - an opened checkpoint: which run of which tensor lies
 * where in which file. All headers are read when it is opened, and must give
 * each element exactly once; data are read where they are asked for.
 */
#include "checkpoint_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Elements [first, first + n) of an entry lie in a file from byte `at` on. */
struct run {
    uint32_t entry, file;
    uint64_t first, n, at;
};

struct own {
    char *name;
    uint32_t rank, file;
    uint64_t at, bytes;
};

struct checkpoint {
    int directory;
    char path[CHECKPOINT_PATH_BYTES], reason[CHECKPOINT_PATH_BYTES];
    struct checkpoint_manifest manifest;
    struct run *run; /* by entry, then first */
    uint32_t n_runs;
    struct own *own;
    uint32_t n_owns;
    struct checkpoint_state state;
    bool has_state[3];
    int fd; /* of `file`, or -1 */
    uint32_t file;
};

static int entry_of(const struct checkpoint_table *table, const char *name)
{
    /* The manifest's table is in the order of names. */
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

/* ---- Headers ------------------------------------------------------------ */

static int add_run(struct checkpoint *c, const struct run *x, char *why)
{
    if ((c->n_runs & (c->n_runs - 1)) == 0) {
        size_t room = c->n_runs == 0 ? 1 : 2 * (size_t)c->n_runs;
        struct run *more = realloc(c->run, room * sizeof *more);
        if (!more) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
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

    memset(offset, 0, FSDP_MAX_DIMS * sizeof *offset);
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

/* The run that a box of a tensor is; false: it is outside, or no run. */
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
    /* From the innermost: full extents, one that need not be, then ones. */
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
    int i = entry_of(&c->manifest.table, t->name);
    const struct checkpoint_entry *e;
    struct run x = {.file = file, .at = at};
    uint64_t offset[FSDP_MAX_DIMS];

    if (i < 0) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: tensor %.80s, which the manifest has not",
                                 name, t->name);
    }
    e = &c->manifest.table.entry[i];
    if (strcmp(t->dtype, "F32") != 0) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: tensor %.80s is %s, F32 was expected",
                                 name, t->name, t->dtype);
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
    struct own *x = realloc(c->own, (c->n_owns + (size_t)1) * sizeof *x);
    char *end = NULL;
    unsigned long rank = strtoul(t->name + strlen("extra."), &end, 10);

    if (!x) {
        return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    c->own = x;
    if (*end != '.' || rank >= CHECKPOINT_MAX_WORLD || t->n_dims != 1 ||
        strcmp(t->dtype, "U8") != 0) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: %.80s is no list of U8 of a rank",
                                 c->manifest.file[file].name, t->name);
    }
    x += c->n_owns;
    *x = (struct own){strdup(end + 1), (uint32_t)rank, file, at, t->bytes};
    if (!x->name) {
        return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    c->n_owns++;
    return FSDP_OK;
}

static int add_state(struct checkpoint *c, int fd, uint32_t file,
                     const struct safetensors_tensor *t, uint64_t at, char *why)
{
    static const char *const names[] = {"optim.step", "optim.beta1_power",
                                        "optim.beta2_power"};
    void *const to[] = {&c->state.step, &c->state.power[0], &c->state.power[1]};
    const char *name = c->manifest.file[file].name;

    if (strncmp(t->name, "extra.", strlen("extra.")) == 0) {
        return add_own(c, file, t, at, why);
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

/* The header of file i; on success *head is to be closed. */
static int read_head(const struct checkpoint *c, int fd, uint32_t i,
                     struct safetensors_file **head, uint64_t *data, char *why)
{
    const struct checkpoint_file *f = &c->manifest.file[i];
    const struct safetensors_report report = {f->name, why,
                                              CHECKPOINT_WHY_BYTES};
    unsigned char bytes[SAFETENSORS_LENGTH_BYTES];
    uint64_t length = 0;
    char *text = NULL;
    int status;

    *head = NULL;
    if (f->bytes < SAFETENSORS_LENGTH_BYTES) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: too short for a header", f->name);
    }
    FSDP_TRY(checkpoint_pread(fd, f->name, 0, bytes, sizeof bytes, why));
    for (uint32_t k = SAFETENSORS_LENGTH_BYTES; k-- > 0;) {
        length = length << 8 | bytes[k];
    }
    if (length < SAFETENSORS_HEADER_MIN || length > SAFETENSORS_HEADER_MAX ||
        length > f->bytes - SAFETENSORS_LENGTH_BYTES) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: a header of %llu bytes does not fit",
                                 f->name, (unsigned long long)length);
    }
    text = malloc(length);
    *head = calloc(1, sizeof **head);
    status = text && *head
                 ? checkpoint_pread(fd, f->name, SAFETENSORS_LENGTH_BYTES, text,
                                    length, why)
                 : checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    *data = SAFETENSORS_LENGTH_BYTES + length;
    if (status == FSDP_OK) {
        status = safetensors_read_header(&report, text, length,
                                         f->bytes - *data, *head);
    }
    free(text);
    if (status != FSDP_OK && *head) {
        safetensors_close(*head);
        *head = NULL;
    }
    return status;
}

static int read_tensors(struct checkpoint *c, int fd, uint32_t i,
                        const struct safetensors_file *head, uint64_t at,
                        char *why)
{
    const char *name = c->manifest.file[i].name;
    bool is_state = strncmp(name, "state-", strlen("state-")) == 0;
    json_t *info = NULL;
    int status = read_sharding_info(head, name, &info, why);

    for (size_t k = 0; status == FSDP_OK && k < head->n; k++) {
        const struct safetensors_tensor *t = &head->tensors[k];
        status = is_state ? add_state(c, fd, i, t, at, why)
                          : add_tensor(c, i, info, t, at, why);
        at += t->bytes;
    }
    json_decref(info);
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);

    return n >= strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

static int read_file(struct checkpoint *c, uint32_t i, char *why)
{
    struct safetensors_file *head = NULL;
    struct stat about;
    uint64_t data = 0;
    int status = FSDP_OK;
    int fd;

    if (!ends_with(c->manifest.file[i].name, ".safetensors")) {
        return FSDP_OK; /* an index, for other readers */
    }
    fd = checkpoint_open_file(c->directory, c->manifest.file[i].name, &about,
                              &status, why);
    if (fd < 0) {
        return status;
    }
    status = read_head(c, fd, i, &head, &data, why);
    if (status == FSDP_OK && head) {
        status = read_tensors(c, fd, i, head, data, why);
    }
    safetensors_close(head);
    (void)close(fd);
    return status;
}

/* ---- The whole ---------------------------------------------------------- */

static int compare_entry(const void *a, const void *b)
{
    const struct checkpoint_entry *x = a;
    const struct checkpoint_entry *y = b;

    return strcmp(x->name, y->name);
}

static int compare_run(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;

    if (x->entry != y->entry) {
        return x->entry < y->entry ? -1 : 1;
    }
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Each tensor from its first element to its last, once. */
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
                "%.80s: %llu elements in all files, %llu were expected",
                e->name, (unsigned long long)end, (unsigned long long)e->numel);
        }
    }
    return FSDP_OK;
}

static int read_all(struct checkpoint *c, char *why)
{
    qsort(c->manifest.table.entry, c->manifest.table.n,
          sizeof *c->manifest.table.entry, compare_entry);
    for (uint32_t i = 0; i < c->manifest.n_files; i++) {
        FSDP_TRY(read_file(c, i, why));
    }
    if (!c->has_state[0] || !c->has_state[1] || !c->has_state[2]) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "state-00001.safetensors: step or running "
                                 "products are missing");
    }
    if (c->n_runs > 0) {
        qsort(c->run, c->n_runs, sizeof *c->run, compare_run);
    }
    return check_cover(c, why);
}

int checkpoint_open(const char *directory, struct checkpoint **out, char *why)
{
    struct checkpoint *c = calloc(1, sizeof *c);
    int status;

    *out = NULL;
    if (!c) {
        return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    c->fd = -1;
    status = checkpoint_choose(directory, &c->directory, &c->manifest, c->path,
                               c->reason, why);
    if (status == FSDP_OK) {
        status = read_all(c, why);
    }
    if (status != FSDP_OK) {
        checkpoint_close(c);
        return status;
    }
    *out = c;
    return FSDP_OK;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c) {
        return;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    if (c->directory >= 0) {
        (void)close(c->directory);
    }
    for (uint32_t i = 0; i < c->n_owns; i++) {
        free(c->own[i].name);
    }
    free(c->own);
    free(c->run);
    checkpoint_manifest_release(&c->manifest);
    free(c);
}

const char *checkpoint_path(const struct checkpoint *c)
{
    return c->path;
}

const char *checkpoint_reason(const struct checkpoint *c)
{
    return c->reason;
}

const struct checkpoint_manifest *
checkpoint_manifest_of(const struct checkpoint *c)
{
    return &c->manifest;
}

bool checkpoint_is_local(const struct checkpoint *c)
{
    return strcmp(c->manifest.form, "local") == 0;
}

struct checkpoint_state checkpoint_state_of(const struct checkpoint *c)
{
    return c->state;
}

int checkpoint_expect(const struct checkpoint *c,
                      const struct checkpoint_table *table, char *why)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < table->n; i++) {
        const struct checkpoint_entry *e = &table->entry[i];
        int k = e->name ? entry_of(&c->manifest.table, e->name) : -1;
        if (!e->name) {
            continue;
        }
        n++;
        if (k < 0) {
            return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                     CHECKPOINT_MANIFEST
                                     ": no tensor %.90s, which the model has",
                                     e->name);
        }
        if (c->manifest.table.entry[k].n_dims != e->n_dims ||
            memcmp(c->manifest.table.entry[k].shape, e->shape,
                   sizeof e->shape) != 0) {
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                CHECKPOINT_MANIFEST ": %.70s has %u dimensions, %llu elements; "
                                    "%u, %llu in another shape were expected",
                e->name, c->manifest.table.entry[k].n_dims,
                (unsigned long long)c->manifest.table.entry[k].numel, e->n_dims,
                (unsigned long long)e->numel);
        }
    }
    if (n != c->manifest.table.n) {
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
            memcmp(is.sha256, f->sha256, sizeof f->sha256) != 0) {
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

/* One descriptor is kept: files are read one after the other. */
static int open_run_file(struct checkpoint *c, uint32_t file, char *why)
{
    struct stat about;
    int status = FSDP_OK;

    if (c->fd >= 0 && c->file == file) {
        return FSDP_OK;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->file = file;
    c->fd = checkpoint_open_file(c->directory, c->manifest.file[file].name,
                                 &about, &status, why);
    return status;
}

int checkpoint_read(struct checkpoint *c, const char *name, uint64_t first,
                    uint64_t n, float *to, char *why)
{
    int i = entry_of(&c->manifest.table, name);
    uint64_t end = first + n;
    uint32_t low = 0;
    uint32_t high = c->n_runs;

    if (i < 0 || end < first || end > c->manifest.table.entry[i].numel) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "%.80s has no elements up to %llu", name,
                                 (unsigned long long)end);
    }
    while (low < high) { /* the first run that ends behind `first` */
        uint32_t k = low + (high - low) / 2;
        if (c->run[k].entry < (uint32_t)i ||
            (c->run[k].entry == (uint32_t)i &&
             c->run[k].first + c->run[k].n <= first)) {
            low = k + 1;
        } else {
            high = k;
        }
    }
    for (uint32_t k = low; first < end; k++) {
        const struct run *x = &c->run[k];
        uint64_t from = first - x->first;
        uint64_t m = x->n - from < end - first ? x->n - from : end - first;
        FSDP_TRY(open_run_file(c, x->file, why));
        FSDP_TRY(checkpoint_pread(c->fd, c->manifest.file[x->file].name,
                                  x->at + from * sizeof *to, to, m * sizeof *to,
                                  why));
        to += m;
        first += m;
    }
    return FSDP_OK;
}

bool checkpoint_extra_at(const struct checkpoint *c, uint32_t i,
                         struct checkpoint_extra *out)
{
    if (i >= c->n_owns) {
        return false;
    }
    *out = (struct checkpoint_extra){c->own[i].rank, c->own[i].name,
                                     c->own[i].bytes};
    return true;
}

int checkpoint_extra_read(struct checkpoint *c, uint32_t i, void *to, char *why)
{
    const struct own *x = &c->own[i];

    FSDP_TRY(open_run_file(c, x->file, why));
    return checkpoint_pread(c->fd, c->manifest.file[x->file].name, x->at, to,
                            x->bytes, why);
}

int checkpoint_load_open(const struct fsdp_env *env, const char *directory,
                         const struct checkpoint_table *table,
                         const struct checkpoint_table *local,
                         struct checkpoint **out)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    int status = directory ? checkpoint_open(directory, out, why)
                           : checkpoint_refuse(why, FSDP_ERR_INVALID,
                                               "a directory was expected");

    if (!directory) {
        *out = NULL;
    }
    if (status == FSDP_OK && *out) {
        status = checkpoint_expect(
            *out, checkpoint_is_local(*out) ? local : table, why);
    }
    if (status == FSDP_OK && *out) {
        status = checkpoint_verify(*out, env->rank, env->world, why);
    }
    status = checkpoint_agree(env, "checkpoint.load", status, why);
    if (status != FSDP_OK) {
        checkpoint_close(*out);
        *out = NULL;
    }
    return status;
}
