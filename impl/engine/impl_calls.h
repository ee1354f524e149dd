/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_calls.h - what the files of the optimized engine do for each other, one
 * file after the other. The data are in impl_state.h, and so is in which order
 * to read.
 */
#ifndef FSDP_CTS_IMPL_CALLS_H
#define FSDP_CTS_IMPL_CALLS_H

#include "impl_state.h"

/* ---- impl_device.c: lines around device and communicator ---- */

__attribute__((format(printf, 4, 5))) int impl_fail(const struct fsdp_env *env,
                                                    int32_t status,
                                                    const char *where,
                                                    const char *format, ...);
int impl_out_of_memory(const struct fsdp_env *env);
/* The device, or the host; which takes no stream. */
const struct fsdp_device *impl_place_of(const struct fsdp_sharded *s,
                                        bool on_host);
/* What is to be live: n elements of a dtype, of a kind and a unit. */
struct impl_value {
    uint32_t kind, unit, dtype;
    uint64_t n;
    bool on_host;
};
/* It is, at p. */
void impl_live(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               const struct impl_value *what, void *p);
/* Place for it, live from here on: that in a slot, or what the arena has if
 * the slot is NULL. On the host there is a slot. */
int impl_take(struct fsdp_sharded *s, struct fsdp_stream *stream,
              struct impl_value what, void *slot, void **out);
/* n elements were live at p, and their place is free. p may be NULL. */
void impl_over(struct fsdp_sharded *s, struct fsdp_stream *stream, void *p,
               uint64_t n);
/* The same, and *p = NULL. */
void impl_dead(struct fsdp_sharded *s, struct fsdp_stream *stream, void **p,
               uint64_t n);
/* The same as impl_over, of what may be on the host. */
void impl_over_at(struct fsdp_sharded *s, bool on_host,
                  struct fsdp_stream *stream, void *p, uint64_t n);
int impl_wait(const struct fsdp_sharded *s, struct fsdp_stream *later,
              struct fsdp_stream *earlier, uint64_t ticket, const char *edge);
int impl_mark(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              uint64_t *ticket);
/* `op` with its size filled in; on the host without a stream. */
int impl_run(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             struct fsdp_op op);
int impl_run_at(const struct fsdp_sharded *s, bool on_host,
                struct fsdp_stream *stream, struct fsdp_op op);
int impl_fill_zero(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                   uint32_t unit, uint32_t dtype, void *p, uint64_t n);
int impl_fill_zero_at(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                      const struct impl_value *what, void *p);
/* From anywhere to anywhere. */
int impl_copy(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              void *to, const void *from, uint64_t bytes);
/* n elements of a unit at `from` become those at `to`. */
struct impl_cast {
    uint32_t unit;
    uint32_t from_dtype, to_dtype;
    const void *from;
    void *to;
    uint64_t n;
    bool on_host;
};
int impl_cast(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              const struct impl_cast *cast);
/* to = to + what, n elements of a unit. */
struct impl_sum {
    uint32_t unit;
    uint32_t to_dtype, dtype;
    void *to;
    const void *what;
    uint64_t n;
    bool on_host;
};
int impl_add(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             const struct impl_sum *sum);
/* p = p * factor, nothing if that is 1. */
int impl_scale(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               const struct impl_value *what, void *p, float factor);
/* One over a chunk of the unit. */
struct impl_call {
    uint32_t kind, dim, unit, dtype;
    const void *in;
    void *out;
};
int impl_collective(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                    const struct impl_call *call);

/* ---- impl_options.c ---- */
int impl_check(const struct fsdp_env *env, const struct fsdp_model *model,
               const struct fsdp_units *units,
               const struct fsdp_options *options);
/* ---- impl_dtypes.c: a unit's own before the options' ---- */
struct impl_dtypes impl_dtypes_of(const struct fsdp_units *units,
                                  const struct fsdp_options *options,
                                  uint32_t unit);
/* n elements in words, which storage is counted in: 4 bytes each. */
uint64_t impl_words(uint32_t dtype, uint64_t n);
/* Element i of an array; NULL has none. */
void *impl_element(const void *array, uint32_t dtype, uint64_t i);

/* ---- impl_agree.c: every rank shards the same. Collective. ---- */
int impl_agree(struct fsdp_sharded *s);

/* ---- impl_layout.c: sizes, offsets, own parts, spans ---- */
int impl_lay_out(struct fsdp_sharded *s);
/* Parameters are trained that were not, or the other way round: gradients,
 * states, spans. */
int impl_lay_out_again(struct fsdp_sharded *s);
void impl_layout_release(struct fsdp_sharded *s);
/* No unit has it. */
bool impl_is_ignored(const struct fsdp_sharded *s, uint32_t p);
/* INVALID: it is so. */
int impl_check_owned(const struct fsdp_sharded *s, uint32_t p,
                     const char *where);
/* Spans alone: parameters' steps are other ones. NOMEM. */
int impl_find_spans(struct fsdp_sharded *s);
/* Elements [*first, *first + *n) of x that shard k owns; *n may be 0. */
void impl_part(const struct fsdp_sharded *s, const struct impl_parameter *x,
               uint32_t k, uint64_t *first, uint64_t *n);
/* Per parameter: elements of x that shard k owns, rows of it. */
uint64_t impl_rows(const struct impl_parameter *x, uint32_t k);

/* ---- impl_slots.c ---- */
/* Places what plans let live. NOMEM. */
int impl_place_plans(struct fsdp_sharded *s, struct impl_plan *plan);
/* Gradients have other sizes from now on; there is none at this moment. */
void impl_slots_resize(struct fsdp_sharded *s);
/* Places all units at once; no storage yet but for what rests. */
int impl_slots_make(struct fsdp_sharded *s);
/* Where it is in a block that was made; or NULL. */
void *impl_slot(const struct impl_block *block, uint64_t at);
/* A pass begins: storage for what it needs beyond what was made before. */
int impl_slots_begin(struct fsdp_sharded *s, uint32_t sequence);
/* All units unsharded at once; and back. */
int impl_slots_unshard_all(struct fsdp_sharded *s);
int impl_slots_reshard_all(struct fsdp_sharded *s);
void impl_slots_release(struct fsdp_sharded *s); /* any state */

/* ---- impl_unshard.c ---- */
/* To where it is whole or, if units are packed, to where it arrives. What lay
 * there must be dead by `free_at`, a ticket of compute; 0: all that compute
 * was given. With one shard it is a copy, of a unit that is computed with in 16
 * bits, or rests on the host. */
int impl_gather(struct fsdp_sharded *s, uint32_t u, uint32_t dtype, void *slot,
                uint64_t free_at);
int impl_open(struct fsdp_sharded *s, uint32_t u);
/* *died: ticket of compute, if it was unsharded. */
int impl_reshard(struct fsdp_sharded *s, uint32_t u, uint64_t *died);
/* Whatever is on its way: compute waits, then it is dead. */
int impl_reshard_each(struct fsdp_sharded *s);

/* ---- impl_gradient.c ---- */
int impl_open_gradient(struct fsdp_sharded *s, uint32_t u,
                       const struct impl_life *life);
int impl_lend_gradient(struct fsdp_sharded *s, uint32_t p, void **out);
int impl_take_gradients(struct fsdp_sharded *s, uint32_t module);
/* Nothing is added any more: parameters of the unit that got no gradient
 * contribute +0, and all of it is scaled by what comes before a reduction. */
int impl_complete(struct fsdp_sharded *s, uint32_t u);
/* Reduced and pending ones; nothing is in flight. */
int impl_drop_gradients(struct fsdp_sharded *s);

/* ---- impl_pack.c ---- */
/* If units are packed. */
int impl_unpack(struct fsdp_sharded *s, uint32_t u, void *slot);
/* What is sent is a copy of the gradient, whose place is free then. */
int impl_pack(struct fsdp_sharded *s, uint32_t u, struct impl_life *life);

/* ---- impl_controls.c ---- */
void impl_set_knobs(struct fsdp_sharded *s); /* as after shard */
/* Whether what gradients are multiplied by is finite. */
bool impl_has_factors(const struct impl_knobs *knob);
void impl_take_factors(struct impl_unit *x); /* those of its knobs hold */
/* A pass begins: what was set holds. NOMEM: plans are made anew. */
int impl_turn_knobs(struct fsdp_sharded *s);
int impl_unshard_unit(struct fsdp_sharded *s, uint32_t unit);
int impl_reshard_unit(struct fsdp_sharded *s, uint32_t unit);
/* What is unsharded outside a window is so no longer. */
int impl_reshard_kept(struct fsdp_sharded *s);
int impl_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value);
/* INVALID: a unit has a gradient that is not complete. */
int impl_check_reduced(const struct fsdp_sharded *s, const char *where);

/* ---- impl_buffers.c ---- */
int impl_make_buffers(struct fsdp_sharded *s); /* with initial values */
/* As it is lent, and rests. */
uint32_t impl_buffer_dtype(const struct fsdp_sharded *s, uint32_t b);
void impl_release_buffers(struct fsdp_sharded *s);
int impl_buffer(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *out);
/* A checkpoint has it. Host memory for it there, the caller's to free, and what
 * rests, to that memory. */
bool impl_persists(const struct fsdp_sharded *s, uint32_t b);
void *impl_stored_buffer(struct fsdp_sharded *s, uint32_t b);
int impl_read_buffer(struct fsdp_sharded *s, uint32_t b, void *stored);
/* Such memory becomes that of what rests; NULL: there is none. And from it. */
void *impl_rest_buffer(struct fsdp_sharded *s, uint32_t b, void *stored);
int impl_write_buffer(struct fsdp_sharded *s, uint32_t b, void *resting);

/* ---- impl_thaw.c ---- */
int impl_set_requires_grad(struct fsdp_sharded *s, uint32_t p, uint32_t on);

/* ---- impl_reduce.c ---- */
int impl_reduce(struct fsdp_sharded *s, uint32_t u,
                const struct impl_life *sum);
int impl_retire(struct fsdp_sharded *s, uint32_t u);
int impl_retire_all(struct fsdp_sharded *s);

/* ---- impl_offload.c ---- */
/* Bits of enum fsdp_offload without the first. */
uint32_t impl_offload_of(const struct fsdp_units *units,
                         const struct fsdp_options *o, uint32_t u);
int impl_offload_check(const struct fsdp_env *env,
                       const struct fsdp_units *units,
                       const struct fsdp_options *o);
/* The shard of a unit that rests on the host, as it is computed with, to `to`,
 * on `stream`, or complete before what that is given next. */
int impl_bring(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u,
               uint32_t dtype, void *to);
/* The result of a reduction, complete on the last stream, to the host: it is
 * dead then. */
int impl_land(struct fsdp_sharded *s, uint32_t u, void **sum);
/* It is there, and added up; and stepped, if that is due. */
int impl_landed(struct fsdp_sharded *s, uint32_t u);
int impl_landed_all(struct fsdp_sharded *s);
/* The shard is where it is stepped, before and after; on a stream if that is
 * the device. */
int impl_borrow(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u);
int impl_return(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u);

/* ---- impl_optimizer.c ---- */
uint32_t impl_n_states(uint32_t optimizer);
int impl_optimize(struct fsdp_sharded *s, const struct fsdp_step *how);
/* One unit, on a stream; `first`: no other one before, in this step. */
int impl_optimize_unit(struct fsdp_sharded *s, struct fsdp_stream *stream,
                       uint32_t u, const struct fsdp_step *how, bool first);
/* After so many steps of every unit: none, or those of a checkpoint. */
void impl_set_steps(struct fsdp_sharded *s, uint64_t steps,
                    const float power[2]);
/* Spans' powers, by the steps that each of them took. */
void impl_settle_powers(struct fsdp_sharded *s);

/* ---- impl_early.c ---- */
int impl_set_step(struct fsdp_sharded *s, const struct fsdp_step *step);
/* INVALID, from `where`: other groups than the options have, or no rates. */
int impl_check_groups(const struct fsdp_sharded *s, const struct fsdp_step *how,
                      const char *where);
/* INVALID, from `where`: a step is set for the next pass. */
int impl_check_unset(const struct fsdp_sharded *s, const char *where);
/* A pass begins; and ends, or is cancelled: what is set for it is over. */
void impl_early_begin(struct fsdp_sharded *s);
int impl_early_end(struct fsdp_sharded *s);
/* In this pass the unit is stepped where it is reduced. */
bool impl_steps_early(const struct fsdp_sharded *s, uint32_t u);
/* It has been, on the last stream: the step, there. */
int impl_step_early(struct fsdp_sharded *s, uint32_t u);
/* What was stepped in this pass is about to be used in it. */
int impl_early_settle(struct fsdp_sharded *s);

/* ---- impl_deferred.c ---- */
/* Without initial values all is lacking; until values are given. */
int impl_defer(struct fsdp_sharded *s);
void impl_has_values(struct fsdp_sharded *s, uint32_t u, uint64_t first,
                     uint64_t n);
/* INVALID, from `where`: a parameter lacks values, here or, which is
 * collective, on any rank. */
int impl_check_filled(struct fsdp_sharded *s, const char *where, bool any_rank);

/* ---- impl_assign.c ---- */
int impl_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
                const void *host);

/* ---- impl_summon.c ---- */
int impl_summon(struct fsdp_sharded *s, const struct fsdp_summon *how);

/* ---- impl_save.c, impl_load.c ---- */
/* One that is being reduced is none any more: it is kept until then only. */
bool impl_has_gradients(const struct fsdp_sharded *s, uint32_t *unit);
bool impl_is_saving(const struct fsdp_sharded *s);
/* What this rank holds is in other places, or has other states. */
void impl_checkpoints_changed(struct fsdp_sharded *s);
int impl_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save);
int impl_save_wait(struct fsdp_sharded *s);
int impl_load(struct fsdp_sharded *s, const char *directory);
int impl_load_from(struct fsdp_sharded *s, const struct fsdp_load *how);
int impl_loaded_extra(struct fsdp_sharded *s, const char *name,
                      const void **data, uint64_t *bytes);
void impl_checkpoints_release(struct fsdp_sharded *s);
int impl_at_rest(const struct fsdp_sharded *s, const char *where);

/* ---- impl_points.c, impl_between.c, impl_shard.c: the contract ---- */
int impl_at(struct fsdp_sharded *s, uint32_t point, uint32_t index);
int impl_param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out);
int impl_grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out);
int impl_set_gradient_sync(struct fsdp_sharded *s, uint32_t on);
int impl_step(struct fsdp_sharded *s, struct fsdp_step *how);
int impl_zero_grad(struct fsdp_sharded *s);
int impl_pieces(struct fsdp_sharded *s,
                void (*visit)(void *, const struct fsdp_piece *),
                void *context);
int impl_unshard_all(struct fsdp_sharded *s);
int impl_reshard_all(struct fsdp_sharded *s);
int impl_shard(const struct fsdp_env *env, const struct fsdp_model *model,
               const struct fsdp_units *units,
               const struct fsdp_options *options, struct fsdp_sharded **out);
void impl_destroy(struct fsdp_sharded *s);
/* impl_finite.c: 1 if a reduced gradient of any rank is not finite. */
int impl_find_inf(struct fsdp_sharded *s, uint32_t *found);
/* INVALID, from `where`, for what is neither 0 nor positive and finite. */
int impl_check_scale(const struct fsdp_sharded *s, const char *where,
                     float inverse_scale);
/* Reduced gradients are multiplied by it. */
int impl_unscale(struct fsdp_sharded *s, float inverse_scale);
/* impl_clip.c */
int impl_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                        float *out_norm);
/* impl_shard.c: plans of what happens when, as the layout is now, placed; and
 * these in place of those that are there. Nothing is in flight. NOMEM: those
 * stay as they are. */
int impl_make_plans(struct fsdp_sharded *s, struct impl_plan **out);
void impl_take_plans(struct fsdp_sharded *s, struct impl_plan *plan);
void impl_release_plans(const struct fsdp_sharded *s, struct impl_plan *plan);
/* impl_shard.c: initial values, in what is there. */
int impl_initialise(const struct fsdp_sharded *s);
/* Elements [first, first + n) of parameter p, to the device. */
int impl_read_initial(const struct fsdp_sharded *s, uint32_t p, uint64_t first,
                      uint64_t n, float *to);

/* ---- impl_rank0.c ---- */
/* Rank 0's initial values, to all ranks. Collective. */
int impl_send_initial(struct fsdp_sharded *s);
/* n elements of a unit, staged, from rank 0 to all. */
int impl_broadcast(const struct fsdp_sharded *s, uint32_t u, float *all,
                   uint64_t n);

/* ---- impl_values.c: those of a state dict ---- */
int impl_send_values(struct fsdp_sharded *s, const struct fsdp_values *from);

#endif
