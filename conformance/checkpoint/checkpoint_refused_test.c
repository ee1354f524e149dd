/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_refused_test.c - a checkpoint that is damaged, incomplete or of
 * another model is refused by both engines: the reason names the file and what
 * was expected, and the model in memory is as it was.
 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "testing/unit_testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES = 512
};

struct scene {
    char directory[64], inner[96];
    struct shown saved, initial;
};

static const struct arrangement two = {.ranks = 2, .wrap = CASE_WRAP_LAYER};

static int load(const struct scene *s, const char *directory, uint32_t i,
                const char *size, uint32_t optimizer, struct fsdp_error *why,
                bool *untouched)
{
    struct arrangement a = two;
    struct shown shown;
    int status;

    (void)s;
    a.engine = i == 0 ? fsdp_ref_engine() : fsdp_impl_engine();
    status = testing_read(&a, size, optimizer, directory, &shown, why);
    *untouched = strcmp(size, "odd") != 0 ||
                 optimizer != FSDP_OPTIMIZER_ADAMW ||
                 shown_equal(&shown, &s->initial);
    shown_release(&shown);
    return status;
}

/* Both engines refuse it, say `text`, and hold what they held. */
static void refused_as(const struct scene *s, const char *directory,
                       const char *size, uint32_t optimizer, const char *text)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct fsdp_error why;
        bool untouched;
        int status = load(s, directory, i, size, optimizer, &why, &untouched);

        if (status != FSDP_ERR_FORMAT && status != FSDP_ERR_IO) {
            fail_msg("%s: status %d: %s", text, status, why.message);
        }
        if (!strstr(why.message, text)) {
            fail_msg("'%s' was expected in: %s", text, why.message);
        }
        assert_true(untouched);
    }
}

static void refused(const struct scene *s, const char *text)
{
    refused_as(s, s->directory, "odd", FSDP_OPTIMIZER_ADAMW, text);
}

static void accepted(const struct scene *s)
{
    struct fsdp_error why;
    bool untouched;

    assert_int_equal(
        load(s, s->directory, 0, "odd", FSDP_OPTIMIZER_ADAMW, &why, &untouched),
        FSDP_OK);
    assert_false(untouched);
}

static void path_of(const struct scene *s, const char *prefix,
                    char path[PATH_BYTES])
{
    DIR *d = opendir(s->inner);
    const struct dirent *e;

    path[0] = '\0';
    assert_non_null(d);
    while ((e = readdir(d))) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            snprintf(path, PATH_BYTES, "%s/%s", s->inner, e->d_name);
        }
    }
    closedir(d);
    assert_true(path[0] != '\0');
}

static int set_up(void **state)
{
    static struct scene scene;
    struct scene *s = &scene;
    struct arrangement three = {
        .engine = fsdp_ref_engine(), .ranks = 3, .wrap = CASE_WRAP_LAYER};
    struct arrangement fresh = two;
    struct fsdp_error why;

    *state = s;
    (void)strcpy(s->directory, "/tmp/checkpoint_refused_test.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    snprintf(s->inner, sizeof(s->inner), "%s/checkpoint-000001", s->directory);
    testing.form = FSDP_SAVE_SHARDED;
    testing_write(&three, "odd", s->directory, &s->saved);
    fresh.engine = fsdp_ref_engine();
    assert_int_equal(testing_read(&fresh, "odd", FSDP_OPTIMIZER_ADAMW,
                                  "/nowhere/at/all", &s->initial, &why),
                     FSDP_ERR_IO);
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    shown_release(&s->saved);
    shown_release(&s->initial);
    folder_erase(s->directory);
    return 0;
}

static void turn_bit(const char *path, off_t at)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

static void missing_rank_file(void **state)
{
    const struct scene *s = *state;
    char path[PATH_BYTES];
    char away[PATH_BYTES];

    path_of(s, "shard-00002-model-00001", path);
    snprintf(away, sizeof(away), "%s/away", s->directory);
    assert_int_equal(rename(path, away), 0);
    refused(s, "shard-00002-model-00001");
    /* A directory instead of a file, and a link that leads out of the
     * folder. */
    assert_int_equal(mkdir(path, 0777), 0);
    refused(s, "not a regular file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(away, path), 0);
    refused(s, "shard-00002-model-00001");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    refused(s, "not a regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(away, path), 0);
    accepted(s);
}

static void other_length(void **state)
{
    const struct scene *s = *state;
    char path[PATH_BYTES];
    struct stat about;

    path_of(s, "shard-00003-model-00001", path);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(truncate(path, about.st_size + 1), 0);
    refused(s, "the manifest says");
    assert_int_equal(truncate(path, about.st_size), 0);
    accepted(s);
    assert_int_equal(truncate(path, about.st_size - 4), 0);
    refused(s, "shard-00003-model-00001");
    /* Truncated and extended again, the file has other bytes. */
    assert_int_equal(truncate(path, about.st_size), 0);
    refused(s, "SHA-256");
}

static void every_file_with_a_turned_bit(void **state)
{
    const struct scene *s = *state;
    DIR *d = opendir(s->inner);
    const struct dirent *e;
    uint32_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[PATH_BYTES];
        struct stat about;

        snprintf(path, sizeof(path), "%s/%s", s->inner, e->d_name);
        if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) {
            continue;
        }
        for (off_t i = 0; i < 4; i++) {
            off_t at = i * (about.st_size - 1) / 3;
            turn_bit(path, at);
            refused(s, e->d_name);
            turn_bit(path, at);
            n++;
        }
    }
    closedir(d);
    assert_true(n >= 16);
    accepted(s);
}

/* Changes the manifest by `change`, and writes it again with the right hash. */
static void forge(const struct scene *s,
                  void (*change)(struct checkpoint_manifest *m),
                  const char *text)
{
    char path[PATH_BYTES];
    char why[CHECKPOINT_WHY_BYTES] = "";
    static char old[1 << 20];
    struct checkpoint_manifest m;
    size_t n;
    size_t bytes = 0;
    char *forged;
    FILE *f;

    path_of(s, "manifest.json", path);
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(old, 1, sizeof(old), f);
    (void)fclose(f);
    assert_int_equal(checkpoint_manifest_parse(old, n, &m, why), FSDP_OK);
    change(&m);
    forged = checkpoint_manifest_text(&m, &bytes);
    assert_non_null(forged);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(forged, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    refused(s, text);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(old, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(forged);
    checkpoint_manifest_release(&m);
    accepted(s);
}

static void escape(struct checkpoint_manifest *m)
{
    (void)strcpy(m->file[0].name, "../shard");
}

static void hidden(struct checkpoint_manifest *m)
{
    (void)strcpy(m->file[0].name, ".shard");
}

/* 9 and 7 of 16 rows are not 8 and 8. */
static void other_shape(struct checkpoint_manifest *m)
{
    for (uint32_t i = 0; i < m->table.n; i++) {
        if (m->table.entry[i].n_dims == 2) {
            m->table.entry[i].shape[0]--;
            return;
        }
    }
}

static void file_forgotten(struct checkpoint_manifest *m)
{
    m->n_files -= 3; /* states come last by name; the step is in the first */
}

static void shard_forgotten(struct checkpoint_manifest *m)
{
    memmove(m->file, m->file + 1, (m->n_files - 1) * sizeof(*m->file));
    m->n_files--;
}

static void tensor_added(struct checkpoint_manifest *m)
{
    const uint64_t shape[] = {3};

    assert_int_equal(
        checkpoint_table_add(&m->table, "ghost", 1, shape, false, NULL),
        FSDP_OK);
}

static void tensor_renamed(struct checkpoint_manifest *m)
{
    m->table.entry[0].name[0] = '~';
}

static void other_form(struct checkpoint_manifest *m)
{
    (void)strcpy(m->form, "half");
}

static void no_world(struct checkpoint_manifest *m)
{
    m->world = 0;
}

static void forged_manifests(void **state)
{
    const struct scene *s = *state;

    forge(s, escape, "not plain");
    forge(s, hidden, "not plain");
    forge(s, other_shape, "shape or offsets");
    forge(s, file_forgotten, "state-00001");
    forge(s, shard_forgotten, "expected");
    forge(s, tensor_added, "ghost");
    forge(s, tensor_renamed, "which the manifest has not");
    forge(s, other_form, "form");
    forge(s, no_world, "world");
}

static void other_models(void **state)
{
    const struct scene *s = *state;

    refused_as(s, s->directory, "seed", FSDP_OPTIMIZER_ADAMW, "another shape");
    refused_as(s, s->directory, "odd", FSDP_OPTIMIZER_SGD, "the model has");
    refused_as(s, s->directory, "odd", FSDP_OPTIMIZER_MOMENTUM,
               "momentum_buffer");
}

static void no_directory(void **state)
{
    const struct scene *s = *state;
    char path[PATH_BYTES];
    char empty[] = "/tmp/checkpoint_refused_test.XXXXXX";

    path_of(s, "manifest.json", path);
    refused_as(s, path, "odd", FSDP_OPTIMIZER_ADAMW, "a directory was");
    refused_as(s, "/nowhere/at/all", "odd", FSDP_OPTIMIZER_ADAMW,
               "/nowhere/at/all");
    refused_as(s, "", "odd", FSDP_OPTIMIZER_ADAMW, "a directory was");
    assert_non_null(mkdtemp(empty));
    refused_as(s, empty, "odd", FSDP_OPTIMIZER_ADAMW, "there is no checkpoint");
    snprintf(path, sizeof(path), "%s/checkpoint-000007", empty);
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    refused_as(s, empty, "odd", FSDP_OPTIMIZER_ADAMW, "checkpoint-000007");
    folder_erase(empty);
}

static void no_permission(void **state)
{
    const struct scene *s = *state;
    char path[PATH_BYTES];

    bool root = geteuid() == 0; /* root may read everything: becomes another
                                 * user */

    assert_int_equal(chmod(s->directory, 0755), 0);
    path_of(s, "shard-00001-model-00001", path);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    refused(s, "Permission denied");
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(path, 0666), 0);
    accepted(s);
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(missing_rank_file),
        TEST(other_length),
        TEST(every_file_with_a_turned_bit),
        TEST(forged_manifests),
        TEST(other_models),
        TEST(no_directory),
        TEST(no_permission),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
