/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_pieces.c - what a rank owns, as pieces show it, goes into the record.
 */
#include "run/drive.h"

struct pieces_visit {
    struct driver *x;
    uint32_t stage, step;
    int status;
};

/* Beyond any model here; a piece within it is for requirements to judge. */
#define PIECE_MOST ((uint64_t)1 << 52)

static void visit_piece(void *context, const struct fsdp_piece *piece)
{
    struct pieces_visit *v = context;
    const void *data = piece->value;

    if (v->stage == RECORD_REDUCED || v->stage == RECORD_CLIPPED) {
        data = piece->grad;
    } else if (v->stage == RECORD_STATE0 || v->stage == RECORD_LOADED0) {
        data = piece->state[0];
    } else if (v->stage == RECORD_STATE1 || v->stage == RECORD_LOADED1) {
        data = piece->state[1];
    }
    if (piece->parameter >= 1u << 20 || piece->first > PIECE_MOST ||
        piece->n > PIECE_MOST) {
        v->status = FSDP_ERR_INVALID; /* no record could hold it */
    }
    if (v->status == FSDP_OK && data && piece->n) {
        v->status =
            recorder_tensor(v->x->recorder, v->x->out, v->stage, v->step, 0,
                            piece->parameter, piece->first, piece->n, data);
    }
}

int drive_record_pieces(struct driver *x, uint32_t stage, uint32_t step)
{
    struct pieces_visit v = {x, stage, step, FSDP_OK};

    x->point = RACE_AT_PIECES;
    x->index = 0;
    recorder_place(x->recorder, x->step, x->point, x->index);
    FSDP_TRY(x->engine.pieces(x->sharded, visit_piece, &v));
    return v.status;
}
