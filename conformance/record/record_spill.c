/* SPDX-License-Identifier: Apache-2.0 */
/* record_spill.c - values of large records in a file without a name. */
#include "record/record_spill.h"

#include "record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct record_spill {
    int fd;
    char *at;       /* addresses, without memory until they are mapped */
    uint64_t bytes; /* whole pages */
    uint64_t used;
    bool *seen; /* blocks that were read since pages were last given back; how
                   many: */
    uint64_t n_seen;
    bool written; /* pages may differ from the file, and are kept */
};

enum {
    BLOCK_BYTES = 1 << 16 /* the system reads so much along with a page */
};

static float *at(const struct record_spill *spill, uint64_t place)
{
    return (float *)(void *)(spill->at + place);
}

static uint64_t place_of(const struct record_spill *spill, const float *data)
{
    return (uint64_t)((const char *)data - spill->at);
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)(*(struct record_tensor *const *)a)->data;
    const uintptr_t y = (uintptr_t)(*(struct record_tensor *const *)b)->data;

    return (x > y) - (x < y);
}

/* The caller frees it; NULL: no memory. */
static struct record_tensor **list_spilled(const struct record_spill *spill,
                                           const struct record *of, uint64_t *n)
{
    struct record_tensor **all;
    uint64_t room = 1;

    for (uint32_t r = 0; r < of->n_ranks; r++) {
        room += of->rank[r].n_tensors;
    }
    all = calloc(room, sizeof(struct record_tensor *));
    *n = 0;
    for (uint32_t r = 0; r < of->n_ranks && all; r++) {
        for (uint32_t i = 0; i < of->rank[r].n_tensors; i++) {
            struct record_tensor *const t = &of->rank[r].tensor[i];

            if (record_spill_has(spill, t->data)) {
                all[(*n)++] = t;
            }
        }
    }
    return all;
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes / page_bytes() + 1) * page_bytes();
}

static int open_nameless(void)
{
    const char *const tmp = getenv("TMPDIR");
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%.4000s/fsdp-cts-values.XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

/* Takes over the descriptor, even if it fails. */
static struct record_spill *spill_of(int fd, uint64_t bytes)
{
    struct record_spill *const spill = calloc(1, sizeof(*spill));

    if (!spill || fd < 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        free(spill);
        return NULL;
    }
    spill->fd = fd;
    spill->bytes = whole_pages(bytes);
    spill->seen = calloc((size_t)(spill->bytes / BLOCK_BYTES) + 1, 1);
    spill->at = mmap(NULL, spill->bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!spill->seen || spill->at == MAP_FAILED) {
        if (spill->at != MAP_FAILED) {
            (void)munmap(spill->at, spill->bytes);
        }
        (void)close(fd);
        free(spill->seen);
        free(spill);
        return NULL;
    }
    return spill;
}

struct record_spill *record_spill_open(uint64_t bytes)
{
    return spill_of(open_nameless(), bytes);
}

void record_spill_close(struct record_spill *spill)
{
    if (spill) {
        (void)munmap(spill->at, spill->bytes);
        (void)close(spill->fd);
        free(spill->seen);
        free(spill);
    }
}

static bool write_at(int fd, const void *from, size_t bytes, uint64_t to)
{
    size_t done = 0;

    while (done < bytes) {
        const ssize_t got = pwrite(fd, (const char *)from + done, bytes - done,
                                   (off_t)(to + done));

        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

void record_spill_put(struct record_spill *spill, struct record_tensor *t)
{
    const uint64_t bytes = t->n * sizeof(*t->data);

    if (!spill || bytes == 0 || bytes > spill->bytes - spill->used ||
        !write_at(spill->fd, t->data, bytes, spill->used)) {
        return;
    }
    free(t->data);
    t->data = at(spill, spill->used);
    spill->used += bytes;
}

/* The order in which values are compared: one parameter of all ranks, then the
 * next one. */
static int by_place(const void *a, const void *b)
{
    const struct record_tensor *const x = *(struct record_tensor *const *)a;
    const struct record_tensor *const y = *(struct record_tensor *const *)b;
    struct record_tensor from = *x;
    struct record_tensor to = *y;
    int order;

    from.first = to.first = 0;
    order = record_tensor_order(&from, &to);
    return order != 0 ? order : by_address(a, b);
}

/* Copies a tensor's values into the file fd, to the place `to`. */
static bool move_values(const struct record_spill *from, int fd, uint64_t to,
                        const struct record_tensor *t)
{
    char piece[1 << 16];
    const uint64_t begin = place_of(from, t->data);
    const uint64_t bytes = t->n * sizeof(*t->data);

    for (uint64_t done = 0; done < bytes;) {
        const uint64_t left = bytes - done;
        const ssize_t got =
            pread(from->fd, piece, left < sizeof(piece) ? left : sizeof(piece),
                  (off_t)(begin + done));

        if (got <= 0 || !write_at(fd, piece, (size_t)got, to + done)) {
            return false;
        }
        done += (uint64_t)got;
    }
    return true;
}

/* Sorts the file, which was written rank by rank: the judge looks at one
 * parameter of all ranks, then at the next one. */
static int arrange(struct record_spill *spill, const struct record *of)
{
    uint64_t n = 0;
    uint64_t used = 0;
    struct record_tensor **const all = list_spilled(spill, of, &n);
    const int fd = open_nameless();
    bool well = all && fd >= 0;

    if (well) {
        qsort(all, n, sizeof(*all), by_place);
    }
    for (uint64_t i = 0; i < n && well; i++) {
        well = move_values(spill, fd, used, all[i]);
        used += all[i]->n * sizeof(float);
    }
    if (!well) {
        free(all);
        if (fd >= 0) {
            (void)close(fd);
        }
        return FSDP_ERR_IO;
    }
    used = 0;
    for (uint64_t i = 0; i < n; i++) {
        all[i]->data = at(spill, used);
        used += all[i]->n * sizeof(float);
    }
    free(all);
    (void)close(spill->fd);
    spill->fd = fd;
    return FSDP_OK;
}

static int map_file(struct record_spill *spill)
{
    /* Behind the values, the last page is filled with zeros. */
    return mmap(spill->at, whole_pages(spill->used), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, spill->fd,
                0) != MAP_FAILED
               ? FSDP_OK
               : FSDP_ERR_IO;
}

int record_spill_map(const struct record *of)
{
    struct record_spill *const spill = of->spill;

    if (!spill) {
        return FSDP_OK;
    }
    FSDP_TRY(arrange(spill, of));
    return map_file(spill);
}

struct record_spill *record_spill_again(const struct record_spill *spill)
{
    struct record_spill *const again =
        spill_of(fcntl(spill->fd, F_DUPFD_CLOEXEC, 3), spill->used);

    if (again) {
        again->used = spill->used;
        again->written = true;
    }
    if (!again || map_file(again) != FSDP_OK) {
        record_spill_close(again);
        return NULL;
    }
    return again;
}

bool record_spill_has(const struct record_spill *spill, const float *data)
{
    const char *const p = (const char *)data;

    return spill && p >= spill->at && p < spill->at + spill->bytes;
}

float *record_spill_same(const struct record_spill *from,
                         const struct record_spill *to, float *data)
{
    return at(to, place_of(from, data));
}

/* Whole pages of [from, to). */
static void give_back(const struct record_spill *spill, uint64_t from,
                      uint64_t to)
{
    const uint64_t page = page_bytes();

    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (from < to) {
        (void)madvise(spill->at + from, to - from, MADV_DONTNEED);
    }
}

void record_spill_drop(struct record_spill *spill)
{
    if (spill && !spill->written) {
        give_back(spill, 0, whole_pages(spill->used));
        memset(spill->seen, 0, (size_t)(spill->bytes / BLOCK_BYTES) + 1);
        spill->n_seen = 0;
    }
}

void record_spill_look(struct record_spill *spill,
                       const struct record_tensor *t)
{
    uint64_t first;
    uint64_t last;

    if (!record_spill_has(spill, t->data)) {
        return;
    }
    first = place_of(spill, t->data) / BLOCK_BYTES;
    last = (place_of(spill, t->data + t->n) - 1) / BLOCK_BYTES;
    if ((spill->n_seen + (last - first)) * BLOCK_BYTES > RECORD_SPILL_WINDOW) {
        record_spill_drop(spill);
    }
    for (uint64_t b = first; b <= last; b++) {
        spill->n_seen += !spill->seen[b];
        spill->seen[b] = true;
    }
}

/* Gives a tensor of the copy memory of its own, if it differs from the
 * original's. */
static int own_values(const struct record_spill *from,
                      const struct record_spill *to, struct record_tensor *t)
{
    const uint64_t bytes = t->n * sizeof(*t->data);
    float *own;

    if (memcmp(t->data, record_spill_same(to, from, t->data), bytes) == 0) {
        return FSDP_OK;
    }
    own = malloc(bytes);
    if (!own) {
        return FSDP_ERR_NOMEM;
    }
    memcpy(own, t->data, bytes);
    t->data = own;
    return FSDP_OK;
}

int record_spill_settle(const struct record *original, struct record *copy)
{
    struct record_spill *const from = original->spill;
    struct record_spill *const to = copy->spill;
    struct record_tensor **all;
    uint64_t begin = 0;
    uint64_t n = 0;
    int status = FSDP_OK;

    if (!from || !to) {
        return FSDP_OK;
    }
    all = list_spilled(to, copy, &n);
    if (!all) {
        return FSDP_ERR_NOMEM;
    }
    /* What lies before the one that is compared was compared. */
    qsort(all, n, sizeof(*all), by_address);
    for (uint64_t i = 0; i < n && status == FSDP_OK; i++) {
        const uint64_t here = place_of(to, all[i]->data);

        if (here > begin + RECORD_SPILL_WINDOW) {
            give_back(from, begin, here);
            give_back(to, begin, here);
            begin = here;
        }
        status = own_values(from, to, all[i]);
    }
    free(all);
    to->written = false;
    record_spill_drop(from);
    record_spill_drop(to);
    return status;
}
