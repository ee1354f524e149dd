/* SPDX-License-Identifier: Apache-2.0 */
/* playing_testing.c - see playing_testing.h. */
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 20000
};

static bool is_serial(const struct fsdp_engine *engine)
{
    bool serial = false;

    for (const char *const *claim = engine->claims; *claim; claim++) {
        serial = serial || strcmp(*claim, "serial") == 0;
    }
    return serial;
}

void playing_open(struct playing *p, const char *id, const char *script,
                  const struct fsdp_engine *engine)
{
    struct fsdp_error error = {0};

    memset(p, 0, sizeof(*p));
    assert_true(case_of_id(id, &p->c));
    p->engine = *engine;
    p->serial = is_serial(engine);
    snprintf(p->folder, sizeof(p->folder), "/tmp/playing_testing.XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->checkpoints, sizeof(p->checkpoints), "%s/checkpoints",
             p->folder);
    assert_int_equal(case_model_make(&p->c, NULL, 0, &p->model, &error),
                     FSDP_OK);
    assert_int_equal(script ? script_parse(script, &p->script, &error)
                            : script_make(&p->c, false, &p->script, &error),
                     FSDP_OK);
    p->drive = (struct drive){.c = &p->c,
                              .model = &p->model,
                              .script = &p->script,
                              .engine = &p->engine,
                              .device_engine = fsdp_ref_engine(),
                              .directory = p->folder,
                              .checkpoints = p->checkpoints};
}

static int play_rank(void *context, struct world_rank *rank)
{
    struct playing *p = context;
    int status;

    if (p->begin) {
        p->begin(rank->rank);
    }
    status =
        p->serial ? drive_serial(&p->drive, rank) : drive_rank(&p->drive, rank);
    if (p->end) {
        p->end();
    }
    return status;
}

void playing_play(struct playing *p)
{
    uint32_t extent[2] = {p->serial ? 1 : p->c.replicas,
                          p->serial ? 1 : case_shard_degree(&p->c)};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct fsdp_error error = {0};

    memset(p->ends, 0, sizeof(p->ends));
    assert_int_equal(record_clear(p->folder, &error), FSDP_OK);
    assert_int_equal(world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, play_rank, p,
                               p->ends, &error),
                     FSDP_OK);
    for (uint32_t k = 1; p->serial && k < p->c.ranks; k++) {
        p->ends[k] = p->ends[0];
    }
}

void playing_read(const struct playing *p, struct record *out)
{
    struct record r;
    struct fsdp_error error = {0};

    assert_int_equal(record_init(&r, &p->c, p->c.ranks), FSDP_OK);
    for (uint32_t k = 0; k < p->c.ranks; k++) {
        r.rank[k].end = p->ends[k].end;
        r.rank[k].exit_status = p->ends[k].status;
        r.rank[k].n_collectives = p->ends[k].n_collectives;
    }
    snprintf(r.engine, sizeof(r.engine), "any");
    snprintf(r.engine_version, sizeof(r.engine_version), "0");
    snprintf(r.world, sizeof(r.world), "threads");
    assert_int_equal(record_write_case(p->folder, &r, &error), FSDP_OK);
    record_release(&r);
    if (record_read(p->folder, out, &error) != FSDP_OK) {
        fail_msg("the record is refused: %s", error.message);
    }
}

void playing_close(struct playing *p)
{
    struct fsdp_error error = {0};

    script_release(&p->script);
    case_model_release(&p->model);
    drive_clear_checkpoints(p->checkpoints);
    assert_int_equal(record_clear(p->folder, &error), FSDP_OK);
    assert_int_equal(rmdir(p->folder), 0);
}
