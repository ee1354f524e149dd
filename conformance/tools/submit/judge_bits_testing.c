/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_bits_testing.c - flips every single bit of a golden record, or of the
 * unsharded run beside it, one at a time, and sees what notices: the reader
 * refuses the file, a requirement finds another outcome, or nothing does. A bit
 * that nothing notices must lie in a field of the list below, which says why
 * that is harmless.
 */
#include "checkpoint/safetensors.h"
#include "record/record_internal.h"
#include "tools/submit/judge_scene_testing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN(scenario) (1u << (scenario))

enum {
    MISTAKES = IN(CASE_MISUSE) | IN(CASE_CANCEL),
    LOADS = IN(CASE_GROW) | IN(CASE_SHRINK) | IN(CASE_RESUME) |
            IN(CASE_RESUME_FULL) | IN(CASE_RESUME_LOCAL),
    NO_PASS = IN(CASE_OPTIONS) | IN(CASE_DISAGREE),
    AHEAD = 1 << 30,     /* whatever the scenario, if gathers run ahead */
    UNSHARDED = 1 << 29, /* whatever the scenario, of the unsharded run */
    ANYWHERE = 0
};

/* Which bits need not be noticed, and in which scenarios. */
static const struct {
    const char *file, *field;
    uint32_t in;
    const char *why;
} harmless[] = {
    {"case.json", "engine", ANYWHERE,
     "a name; the same in all records of a run"},
    {"case.json", "engine_version", ANYWHERE, "as the engine's name"},
    {"case.json", "claims", ANYWHERE,
     "a promise less: what it asks for is not judged, which the report says; "
     "the same in all records of a run"},
    {"case.json", "ranks.last_unit", ANYWHERE,
     "of a rank that communicates nothing"},
    {"case.json", "ranks.collectives",
     IN(CASE_AGAIN) | IN(CASE_CANCEL) | IN(CASE_EVAL) | LOADS,
     "with those of cancelled passes, evaluations, saves and of a life that is "
     "over, of which there is no other record"},
    {"rank-R.json", "losses", ANYWHERE, "another decimal of the same bits"},
    {"rank-R.json", "other_losses", ANYWHERE,
     "another decimal of the same bits"},
    {"rank-R.json", "answers", MISTAKES,
     "one of several calls of a name: the driver's own word, not an engine's"},
    {"rank-R.json", "answers", LOADS,
     "mistakes are asked of resume alone; figures below their bound"},
    {"rank-R.json", "memory.peak", ANYWHERE,
     "between what rests of the kind and the peak of all kinds"},
    {"rank-R.json", "memory.peak_parameters", AHEAD, "up to its bound"},
    {"rank-R.json", "memory.peak_engine", AHEAD, "up to its bound"},
    {"rank-R.json", "memory.peak_storage", ANYWHERE,
     "between what lives and the bound"},
    {"rank-R.json", "memory.dirty_padding", ANYWHERE,
     "on the wire of one shard"},
    {"rank-R.json", "memory.misplaced", ANYWHERE, "on the wire of one shard"},
    {"rank-R.json", "memory.process_growth", ANYWHERE,
     "asked of a large model alone"},
    {"rank-R.json", "memory.allocations", ANYWHERE,
     "no more than in the second step"},
    {"rank-R.json", "memory.launches", ANYWHERE,
     "a figure: an engine's own affair"},
    {"rank-R.json", "memory.timeline", ANYWHERE,
     "drawn; live bytes within the peaks"},
    {"rank-R.json", "flights", ANYWHERE,
     "behind: nobody reads it without prefetch"},
    {"rank-R.json", "edges", ANYWHERE, "adapters alone have any"},
    {"rank-R.json", "seconds", ANYWHERE, "for people"},
    {"case.json", "ranks.collectives", NO_PASS | UNSHARDED,
     "of what trains nothing, or alone: asked of ranks that train together"},
    {"rank-R.json", "answers", IN(CASE_OPTIONS),
     "of what the engine claims, so that it need not be refused"},
    {"rank-R.json", "memory.peak_live_over_storage", NO_PASS | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.json", "memory.bad_ranges", NO_PASS | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.json", "memory.new_channels", NO_PASS | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.json", "memory.after_shard", IN(CASE_OPTIONS) | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.json", "memory.after_step", UNSHARDED,
     "the suite's own memory, which is not judged"},
    {"rank-R.json", "memory.peak_engine", UNSHARDED,
     "the suite's own memory, which is not judged"},
    {"rank-R.json", "memory.left_live", UNSHARDED,
     "the suite's own memory, which is not judged"},
    {"rank-R.json", "memory.left_storage", UNSHARDED,
     "the suite's own memory, which is not judged"},
    {"rank-R.json", "races.count", NO_PASS | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.json", "races.unfollowed", NO_PASS | UNSHARDED,
     "asked of an engine that trains"},
    {"rank-R.safetensors", "initial", UNSHARDED,
     "an engine's are compared with what the seed draws"},
    {"rank-R.safetensors", "before", UNSHARDED,
     "an engine's are compared with its own after the step before"},
    {"rank-R.safetensors", "unsharded", UNSHARDED,
     "an engine's are compared with its own shards"},
    {"rank-R.safetensors", "names", UNSHARDED,
     "of those three, which nobody looks for"},
    {"rank-R.safetensors", NULL, MISTAKES,
     "with mistakes the curve is asked for, and what was answered"},
};

enum {
    MOST_FIELDS = 256,
    MOST_DEPTH = 16,
    FIELD_BYTES = 64,
    MOST_FOUND = 4,
    N_BITS = 8,
    REFUSED = 0,
    FOUND,
    LESS, /* a promise is gone, and what it asks for is not judged */
    SAME,
    N_ENDS
};

static const char *const end_names[N_ENDS] = {"refused", "found", "judged less",
                                              "same"};

struct field {
    const char *file;
    char name[FIELD_BYTES];
    uint64_t n[N_ENDS];
    /* The first requirements that noticed. */
    uint32_t n_found;
    char found[MOST_FOUND][REQUIREMENT_ID_BYTES];
    char example[128]; /* a bit that nothing noticed */
};
static struct field fields[MOST_FIELDS];
static uint32_t n_fields;

static bool unsharded;  /* it is that record which is changed */
static uint32_t *whole; /* outcomes of the record as it is */

/* Ends the test where a record that is in order cannot come. */
static void need(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

/* The field that a byte belongs to. */
static uint32_t field_of(const char *file, const char *name)
{
    uint32_t i = 0;

    while (i < n_fields && (strcmp(fields[i].file, file) != 0 ||
                            strcmp(fields[i].name, name) != 0)) {
        i++;
    }
    if (i == n_fields) {
        need(++n_fields <= MOST_FIELDS);
        fields[i].file = file;
        snprintf(fields[i].name, FIELD_BYTES, "%s", name);
    }
    return i;
}

/* "memory.peak" within "memory"; of a file of tensors all names are one. */
static uint32_t below(const char *file, uint32_t parent, const char *key,
                      size_t bytes, bool tensors)
{
    const char *up = fields[parent].name;
    char name[FIELD_BYTES];

    if (tensors && up[0] == '(' && key[0] != '_') {
        return field_of(file, "names");
    }
    if (tensors && strcmp(up, "names") == 0) {
        up = "(";
    }
    snprintf(name, sizeof(name), "%s%s%.*s", up[0] == '(' ? "" : up,
             up[0] == '(' ? "" : ".", (int)bytes, key);
    return field_of(file, name);
}

/* The field of each byte of a text that is JSON. */
static void name_json(const char *file, const char *p, size_t n, bool tensors,
                      uint32_t *to)
{
    uint32_t up[MOST_DEPTH] = {field_of(file, "(braces)")};
    bool object[MOST_DEPTH] = {false};
    uint32_t depth = 0;
    uint32_t at = up[0];
    bool key = false;

    for (size_t i = 0; i < n; i++) {
        if (strchr(" \n", p[i])) {
            to[i] = field_of(file, "(blanks)");
            continue;
        }
        if (p[i] == '}' || p[i] == ']') {
            at = up[depth--];
        } else if (p[i] == ',' && object[depth]) {
            at = up[depth];
            key = true;
        } else if (p[i] == '"') {
            size_t last = i + 1;

            while (p[last] != '"') {
                last += p[last] == '\\' ? 2 : 1;
            }
            if (key) {
                at = below(file, up[depth], p + i + 1, last - i - 1, tensors);
                key = false;
            }
            for (; i < last; i++) {
                to[i] = at;
            }
        }
        to[i] = at;
        if (p[i] == '{' || p[i] == '[') {
            up[++depth] = at;
            object[depth] = key = p[i] == '{';
        }
    }
}

/* Names the bytes of tensors: the header, and for each value its stage. */
static void name_tensors(const char *p, size_t n, uint32_t *to)
{
    static const char file[] = "rank-R.safetensors";
    struct safetensors_file *f;
    uint64_t header = 0;
    char why[200];

    need(safetensors_open_memory(p, n, &f, why, sizeof(why)) == FSDP_OK);
    memcpy(&header, p, sizeof(header));
    for (size_t i = 0; i < sizeof(header); i++) {
        to[i] = field_of(file, "(length)");
    }
    name_json(file, p + sizeof(header), header, true, to + sizeof(header));
    for (size_t i = 0; i < safetensors_count(f); i++) {
        const struct safetensors_tensor *t = safetensors_at(f, i);
        struct record_tensor named;
        const size_t first = n - (size_t)(p + n - (const char *)t->data);

        need(record_tensor_parse(t->name, &named));
        for (size_t b = 0; b < t->bytes; b++) {
            to[first + b] = field_of(file, record_stage_name(named.stage));
        }
    }
    safetensors_close(f);
}

static bool is_bad(uint32_t outcome)
{
    return outcome == JUDGE_FAIL || outcome == JUDGE_ERROR ||
           outcome == JUDGE_TIMEOUT;
}

/* The requirement that noticed: the first of those of the lowest level. */
static const char *who(const struct judge_result *r)
{
    const struct requirement *first = NULL;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (is_bad(judge_item_at(r, 0, q)->outcome) &&
            (!first || r->requirement[q]->level < first->level)) {
            first = r->requirement[q];
        }
    }
    return first ? first->id : "INCOMPLETE";
}

static uint32_t judge_record(const struct judge_scene *s,
                             const struct record *r,
                             char by[REQUIREMENT_ID_BYTES])
{
    struct judge_scene with = *s;
    struct judge_result result;
    uint32_t end = SAME;

    if (unsharded) {
        with.baseline = *r;
        r = &s->record;
    }
    need(judge_scene_judge(&with, r, 1, &result) == FSDP_OK);
    if (!whole) {
        whole = calloc(result.n_requirements, sizeof(*whole));
        for (uint32_t q = 0; whole && q < result.n_requirements; q++) {
            whole[q] = judge_item_at(&result, 0, q)->outcome;
        }
    }
    for (uint32_t q = 0; q < result.n_requirements && whole; q++) {
        const uint32_t outcome = judge_item_at(&result, 0, q)->outcome;

        end = outcome != whole[q] && end == SAME ? (uint32_t)LESS : end;
        end = is_bad(outcome) ? (uint32_t)FOUND : end;
    }
    end = result.verdict != JUDGE_CONFORMANT ? (uint32_t)FOUND : end;
    snprintf(by, REQUIREMENT_ID_BYTES, "%s", who(&result));
    judge_release(&result);
    return end;
}

static void keep(struct field *f, uint32_t end, const char *by)
{
    uint32_t i = 0;

    f->n[end]++;
    while (i < f->n_found && strcmp(f->found[i], by) != 0) {
        i++;
    }
    if (end == FOUND && i == f->n_found && i < MOST_FOUND) {
        snprintf(f->found[f->n_found++], REQUIREMENT_ID_BYTES, "%s", by);
    }
}

/* Where it is, and what stands there now. */
static void keep_example(struct field *f, const char *name, const char *p,
                         size_t n, size_t byte, char bad)
{
    enum {
        BEFORE = 24,
        AFTER = 12
    };
    const size_t first = byte > BEFORE ? byte - BEFORE : 0;
    char around[BEFORE + AFTER + 1];
    size_t k = 0;

    for (size_t i = first; i < n && k < sizeof(around) - 1; i++) {
        const char c = i == byte ? bad : p[i];

        around[k++] = (char)(c < 0x20 || c > 0x7e ? '?' : c);
    }
    around[k] = '\0';
    snprintf(f->example, sizeof(f->example), "%s byte %zu, was %02x: %s", name,
             byte, (unsigned)(unsigned char)p[byte], around);
}

/* Flips the bits of one file; *turn counts those of all files. */
static void flip(const struct judge_scene *s, const char *folder,
                 const char *name, const char *file, uint64_t every,
                 uint64_t *turn)
{
    const struct record_source from = {.where = "bits", .most = SIZE_MAX / 2};
    char path[512];
    size_t n = 0;
    char *p = NULL;
    uint32_t *of;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (record_read_file(path, &from, &p, &n, NULL) != FSDP_OK ||
        !(of = calloc(n, sizeof(*of))) ||
        (fd = open(path, O_WRONLY | O_CLOEXEC)) < 0) {
        abort();
    }
    if (strstr(name, ".json")) {
        name_json(file, p, n, false, of);
    } else {
        name_tensors(p, n, of);
    }
    for (size_t i = 0; i < n * N_BITS; i++) {
        const char bad = (char)(p[i / N_BITS] ^ 1 << i % N_BITS);
        struct fsdp_error error = {0};
        char by[REQUIREMENT_ID_BYTES] = "";
        struct record r;
        uint32_t end = REFUSED;

        if ((*turn)++ % every != 0) {
            continue;
        }
        need(pwrite(fd, &bad, 1, (off_t)(i / N_BITS)) == 1);
        if (record_read(folder, &r, &error) == FSDP_OK) {
            end = judge_record(s, &r, by);
        }
        record_release(&r);
        keep(&fields[of[i / N_BITS]], end, by);
        if (end >= LESS && fields[of[i / N_BITS]].example[0] == '\0') {
            keep_example(&fields[of[i / N_BITS]], name, p, n, i / N_BITS, bad);
        }
        need(pwrite(fd, p + i / N_BITS, 1, (off_t)(i / N_BITS)) == 1);
    }
    (void)close(fd);
    free(of);
    free(p);
}

/* Which bits of `in` above apply to a case. */
static uint32_t kinds_of(const struct run_case *c)
{
    return unsharded ? (uint32_t)UNSHARDED
                     : IN(c->scenario) |
                           (c->prefetch_forward > 0 ? (uint32_t)AHEAD : 0u);
}

static const char *why_harmless(const struct field *f, uint32_t kinds)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (strcmp(harmless[i].file, f->file) == 0 &&
            (!harmless[i].field || strcmp(harmless[i].field, f->name) == 0) &&
            (harmless[i].in == ANYWHERE || (harmless[i].in & kinds) != 0)) {
            return harmless[i].why;
        }
    }
    return NULL;
}

/* A row for each field; false: a bit went unnoticed where that does harm. */
static bool print(uint32_t kinds)
{
    uint64_t n[N_ENDS] = {0};
    bool well = true;

    puts("| file | field | refused | found | judged less | same | by, or "
         "why not |\n|---|---|---|---|---|---|---|");
    for (uint32_t i = 0; i < n_fields; i++) {
        const struct field *f = &fields[i];
        const char *why = why_harmless(f, kinds);

        printf("| %s | %s |", f->file, f->name);
        for (uint32_t e = 0; e < N_ENDS; e++) {
            printf(" %" PRIu64 " |", f->n[e]);
            n[e] += f->n[e];
        }
        for (uint32_t k = 0; k < f->n_found; k++) {
            printf(" %s", f->found[k]);
        }
        if (f->n[LESS] + f->n[SAME] > 0) {
            printf(" (%s%s)",
                   why ? "" : "NOBODY SAYS WHY: ", why ? why : f->example);
            well = well && why;
        }
        puts(" |");
    }
    for (uint32_t e = 0; e < N_ENDS; e++) {
        printf("%s%" PRIu64 " %s", e > 0 ? ", " : "", n[e], end_names[e]);
    }
    puts("");
    return well;
}

/* Puts the record into a folder of its own. */
static void write_all(const char *folder, const struct record *r)
{
    need(record_write_case(folder, r, NULL) == FSDP_OK);
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        need(record_write_rank(folder, k, &r->rank[k], NULL) == FSDP_OK);
    }
}

int main(int argc, char **argv)
{
    const uint64_t every = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    char folder[] = "/tmp/judge_bits.XXXXXX";
    char by[REQUIREMENT_ID_BYTES];
    struct fsdp_error error = {0};
    struct judge_scene s;
    const struct record *r = &s.record;
    uint64_t turn = 0;
    char name[48];
    bool well;

    unsharded = argc > 4 && strcmp(argv[4], "unsharded") == 0;
    if (argc < 3 || argc > 4 + unsharded || every == 0 ||
        judge_scene_load(argv[1], argv[2], &s, &error) != FSDP_OK ||
        (unsharded && !case_trains(&s.c))) {
        fprintf(stderr,
                "usage: judge_bits RECORDS CASE [EVERY [unsharded]] %s\n",
                error.message);
        return 64;
    }
    r = unsharded ? &s.baseline : r;
    if (!mkdtemp(folder) || judge_record(&s, r, by) != SAME) {
        fprintf(stderr, "judge_bits: the record itself is not well\n");
        return 65;
    }
    write_all(folder, r);
    flip(&s, folder, "case.json", "case.json", every, &turn);
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        snprintf(name, sizeof(name), "rank-%u.json", k);
        flip(&s, folder, name, "rank-R.json", every, &turn);
        snprintf(name, sizeof(name), "rank-%u.safetensors", k);
        flip(&s, folder, name, "rank-R.safetensors", every, &turn);
    }
    well = print(kinds_of(&s.record.c));
    (void)record_clear(folder, NULL);
    (void)rmdir(folder);
    free(whole);
    judge_scene_release(&s);
    return well ? 0 : 1;
}
