/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_peer.c - reads a checkpoint by name, as another program would, and
 * records what it reads beside what the engine shows.
 */
#include "checkpoint/checkpoint.h"
#include "run/play/play.h"

#include <stdio.h>
#include <stdlib.h>

struct peer_visit {
    struct driver *x;
    struct checkpoint *save;
    uint32_t step;
    int status;
};

static int read_peer(struct peer_visit *v, const struct fsdp_piece *piece,
                     uint32_t stage, const char *name)
{
    char why[CHECKPOINT_WHY_BYTES];
    float *values = malloc(piece->n * sizeof(*values) + 1);
    int status = FSDP_ERR_NOMEM;

    if (values && checkpoint_read_f32(v->save, name, piece->first, piece->n,
                                      values, why) == FSDP_OK) {
        status = recorder_tensor(v->x->recorder, v->x->out, stage, v->step, 0,
                                 piece->parameter, piece->first, piece->n,
                                 FSDP_DTYPE_F32, values);
    } else if (values) {
        status = FSDP_OK; /* the tensor is missing, and so it is in the
                             record */
    }
    free(values);
    return status;
}

static void visit_peer(void *context, const struct fsdp_piece *piece)
{
    static const char *const key[] = {"momentum_buffer", "exp_avg",
                                      "exp_avg_sq"};
    struct peer_visit *v = context;
    const struct fsdp_model *m = v->x->model;
    const bool adamw = v->x->d->c->optimizer == FSDP_OPTIMIZER_ADAMW;

    if (v->status != FSDP_OK || piece->n == 0 ||
        piece->parameter >= m->n_parameters) {
        return;
    }
    v->status =
        read_peer(v, piece, RECORD_PEER, m->parameter_name[piece->parameter]);
    for (uint32_t i = 0; i < 2 && piece->state[i] && v->status == FSDP_OK;
         i++) {
        char name[400];

        snprintf(name, sizeof(name), "optim.state.%s.%s",
                 m->parameter_name[piece->parameter], key[adamw ? i + 1 : 0]);
        v->status = read_peer(v, piece, RECORD_PEER0 + i, name);
    }
}

int play_look_into_save(struct driver *x, uint32_t step)
{
    struct peer_visit v = {.x = x, .step = step, .status = FSDP_OK};
    char why[CHECKPOINT_WHY_BYTES];
    int status;

    if (x->d->purpose != DRIVE_TO_RECORD ||
        checkpoint_open(x->d->checkpoints, &v.save, why) != FSDP_OK) {
        return FSDP_OK; /* a format of the engine's own */
    }
    status = checkpoint_is_local(v.save)
                 ? FSDP_OK
                 : x->engine.pieces(x->sharded, visit_peer, &v);
    checkpoint_close(v.save);
    return status == FSDP_OK ? v.status : status;
}
