/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_record.c - where a case's record is, and how its ranks ended.
 */
#include "run/worker/case_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

void case_folder(const char *records, const struct run_case *c, bool baseline,
                 char path[CASE_FOLDER_BYTES])
{
    char name[CASE_ID_BYTES];

    if (baseline) {
        case_baseline_key(c, name);
    } else {
        case_id(c, name);
    }
    snprintf(path, CASE_FOLDER_BYTES, "%s/%s%s", records,
             baseline ? "baseline/" : "", name);
}

int case_record_write(const char *folder, const struct run_case *c,
                      const struct case_player *player,
                      const struct world_result *ends, struct fsdp_error *error)
{
    struct record r;
    uint32_t n = 0;
    int status = record_init(&r, c, c->ranks);

    while (player->claims[n]) {
        n++;
    }
    r.claim = calloc(n + 1u, sizeof(*r.claim));
    if (status == FSDP_OK && !r.claim) {
        status = FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; status == FSDP_OK && i < n; i++) {
        snprintf(r.claim[i], sizeof(r.claim[i]), "%s", player->claims[i]);
        r.n_claims = i + 1;
    }
    for (uint32_t k = 0; status == FSDP_OK && k < c->ranks; k++) {
        struct record_rank *to = &r.rank[k];
        to->end = ends[k].end;
        to->signal = (uint32_t)ends[k].signal;
        to->exit_status = ends[k].status;
        to->n_collectives = ends[k].n_collectives;
        to->in_collective = ends[k].in_collective;
        to->last_kind = ends[k].last_kind;
        to->last_unit = ends[k].last_unit;
        to->unsampled = !record_is_drawn(c, player->sample, k);
        if (player->weight) {
            to->weight = player->weight[k];
        }
        if (player->account) {
            record_account_copy(&to->account, &player->account[k]);
        }
    }
    if (status == FSDP_OK) {
        snprintf(r.engine, sizeof(r.engine), "%s", player->engine);
        snprintf(r.engine_version, sizeof(r.engine_version), "%s",
                 player->version);
        snprintf(r.world, sizeof(r.world), "%s", player->world);
        snprintf(r.isolation, sizeof(r.isolation), "%s",
                 player->isolation ? player->isolation : "");
        for (uint32_t i = 0; i < player->n_refusals; i++) {
            r.refusal[r.n_refusals++] = player->refusal[i];
        }
        status = record_write_case(folder, &r, error);
    }
    record_release(&r);
    return status;
}

static struct world_result end_of(const struct case_process_end *how)
{
    const int s = how->wait_status;

    return (struct world_result){.end = how->timed_out   ? WORLD_TIMED_OUT
                                        : WIFSIGNALED(s) ? WORLD_SIGNALLED
                                                         : WORLD_EXITED,
                                 .signal = WIFSIGNALED(s) ? WTERMSIG(s) : 0,
                                 .status = WIFEXITED(s) ? WEXITSTATUS(s) : 0};
}

int case_record_account(const char *folder, const struct run_case *c,
                        const struct case_player *player,
                        const struct case_process_end *how,
                        struct fsdp_error *error)
{
    struct world_result ends[WORLD_MAX_RANKS] = {0};
    /* A launcher exits as a shell does whose child a signal has ended. */
    bool named = !how->timed_out && how->signal != 0 && how->rank < c->ranks &&
                 WIFEXITED(how->wait_status) &&
                 WEXITSTATUS(how->wait_status) == 128 + how->signal;

    for (uint32_t r = 0; r < c->ranks && r < WORLD_MAX_RANKS; r++) {
        ends[r] = end_of(how);
        if (named) { /* it has taken the others with it, as a world does */
            ends[r] = (struct world_result){.end = WORLD_RETURNED,
                                            .status = FSDP_ERR_ABORTED};
        }
    }
    if (named) {
        ends[how->rank] = (struct world_result){.end = WORLD_SIGNALLED,
                                                .signal = how->signal};
    }
    return case_record_write(folder, c, player, ends, error);
}
