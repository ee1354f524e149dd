/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_calls.h - the functions that the files of the optimized engine offer
 * each other, one file after the other. The data, and the order in which to
 * read, are in impl_state.h.
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
/* The device, or the host, which takes no stream. */
const struct fsdp_device *impl_place_of(const struct fsdp_sharded *s,
                                        bool on_host);
/* A value that is to be live: n elements of a dtype, of a kind and a unit. */
struct impl_value {
    uint32_t kind, unit, dtype;
    uint64_t n;
    bool on_host;
};
/* Marks such a value at p as live. */
void impl_live(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               const struct impl_value *what, void *p);
/* Finds a place for a value, which is live from here on: the slot, or one of
 * the arena's if the slot is NULL. On the host there always is a slot. */
int impl_take(struct fsdp_sharded *s, struct fsdp_stream *stream,
              struct impl_value what, void *slot, void **out);
/* Ends n live elements at p, and frees their place. p may be NULL. */
void impl_over(struct fsdp_sharded *s, struct fsdp_stream *stream, void *p,
               uint64_t n);
/* The same, and sets *p to NULL. */
void impl_dead(struct fsdp_sharded *s, struct fsdp_stream *stream, void **p,
               uint64_t n);
/* The same as impl_over, for a value that may be on the host. */
void impl_over_at(struct fsdp_sharded *s, bool on_host,
                  struct fsdp_stream *stream, void *p, uint64_t n);
int impl_wait(const struct fsdp_sharded *s, struct fsdp_stream *later,
              struct fsdp_stream *earlier, uint64_t ticket, const char *edge);
int impl_mark(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              uint64_t *ticket);
/* Runs `op` with its size filled in; on the host without a stream. */
int impl_run(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             struct fsdp_op op);
int impl_run_at(const struct fsdp_sharded *s, bool on_host,
                struct fsdp_stream *stream, struct fsdp_op op);
int impl_fill_zero(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                   uint32_t unit, uint32_t dtype, void *p, uint64_t n);
int impl_fill_zero_at(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                      const struct impl_value *what, void *p);
/* Copies between any two of the device's memory and the host's. */
int impl_copy(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              void *to, const void *from, uint64_t bytes);
/* Casts n elements of a unit, from `from` to `to`. */
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
/* A collective over a chunk of the unit. */
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
/* How many words of 4 bytes, in which storage is counted, n elements take. */
uint64_t impl_words(uint32_t dtype, uint64_t n);
/* The address of element i in an array; NULL if the array is. */
void *impl_element(const void *array, uint32_t dtype, uint64_t i);

/* ---- impl_agree.c: every rank shards the same. Collective. ---- */
int impl_agree(struct fsdp_sharded *s);

/* ---- impl_layout.c: sizes, offsets, own parts, spans ---- */
int impl_lay_out(struct fsdp_sharded *s);
/* Other parameters are trained from now on: finds the places of gradients and
 * states, and spans, again. */
int impl_lay_out_again(struct fsdp_sharded *s);
void impl_layout_release(struct fsdp_sharded *s);
/* Whether the parameter is in no unit. */
bool impl_is_ignored(const struct fsdp_sharded *s, uint32_t p);
/* INVALID if the parameter is ignored. */
int impl_check_owned(const struct fsdp_sharded *s, uint32_t p,
                     const char *where);
/* Finds spans alone, if parameters' counts of steps have changed. NOMEM. */
int impl_find_spans(struct fsdp_sharded *s);
/* Elements [*first, *first + *n) of x that shard k owns; *n may be 0. */
void impl_part(const struct fsdp_sharded *s, const struct impl_parameter *x,
               uint32_t k, uint64_t *first, uint64_t *n);
/* Per parameter: how many elements of x, whole rows, shard k owns. */
uint64_t impl_rows(const struct impl_parameter *x, uint32_t k);

/* ---- impl_slots.c ---- */
/* Gives places to the values that plans let live. NOMEM. */
int impl_place_plans(struct fsdp_sharded *s, struct impl_plan *plan);
/* Gradients have other sizes from now on; at this moment there are none. */
void impl_slots_resize(struct fsdp_sharded *s);
/* Gives places to all units at once; storage is made only for what rests. */
int impl_slots_make(struct fsdp_sharded *s);
/* The address of a place in a block; NULL if the block was not made yet. */
void *impl_slot(const struct impl_block *block, uint64_t at);
/* A pass begins: makes the storage that it needs and earlier ones did not. */
int impl_slots_begin(struct fsdp_sharded *s, uint32_t sequence);
/* Makes storage for all units unsharded at once; and gives it back. */
int impl_slots_unshard_all(struct fsdp_sharded *s);
int impl_slots_reshard_all(struct fsdp_sharded *s);
void impl_slots_release(struct fsdp_sharded *s); /* any state */

/* ---- impl_unshard.c ---- */
/* Gathers a unit to where it is whole or, if units are packed, to where it
 * arrives. The value that lay there must be dead by `free_at`, a ticket of
 * compute; 0: all that compute was given. With one shard this is a copy, of a
 * unit that is computed with in 16 bits, or whose shard rests on the host. */
int impl_gather(struct fsdp_sharded *s, uint32_t u, uint32_t dtype, void *slot,
                uint64_t free_at);
int impl_open(struct fsdp_sharded *s, uint32_t u);
/* Sets *died to the ticket of compute at which it died, if it was unsharded. */
int impl_reshard(struct fsdp_sharded *s, uint32_t u, uint64_t *died);
/* Reshards every unit; compute waits for one that is still on its way. */
int impl_reshard_each(struct fsdp_sharded *s);

/* ---- impl_gradient.c ---- */
int impl_open_gradient(struct fsdp_sharded *s, uint32_t u,
                       const struct impl_life *life);
int impl_lend_gradient(struct fsdp_sharded *s, uint32_t p, void **out);
int impl_take_gradients(struct fsdp_sharded *s, uint32_t module);
/* No gradient of the unit is added any more: parameters that got none
 * contribute +0, and all of it is scaled by the factor before the reduction. */
int impl_complete(struct fsdp_sharded *s, uint32_t u);
/* Drops reduced and pending gradients; none is in flight. */
int impl_drop_gradients(struct fsdp_sharded *s);

/* ---- impl_pack.c ---- */
/* Used only if units are packed. */
int impl_unpack(struct fsdp_sharded *s, uint32_t u, void *slot);
/* Makes the copy of the gradient that is sent, and frees the gradient's
 * place. */
int impl_pack(struct fsdp_sharded *s, uint32_t u, struct impl_life *life);

/* ---- impl_controls.c ---- */
void impl_set_knobs(struct fsdp_sharded *s); /* as after shard */
/* Whether the factors that gradients are multiplied by are finite. */
bool impl_has_factors(const struct impl_knobs *knob);
void impl_take_factors(struct impl_unit *x); /* of its knobs */
/* At the beginning of a pass: the knobs that were set hold from here on. NOMEM:
 * plans are made again. */
int impl_turn_knobs(struct fsdp_sharded *s);
int impl_unshard_unit(struct fsdp_sharded *s, uint32_t unit);
int impl_reshard_unit(struct fsdp_sharded *s, uint32_t unit);
/* Reshards the units that are unsharded outside a window. */
int impl_reshard_kept(struct fsdp_sharded *s);
int impl_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value);
/* INVALID if a unit has a gradient that is not complete. */
int impl_check_reduced(const struct fsdp_sharded *s, const char *where);

/* ---- impl_buffers.c ---- */
int impl_make_buffers(struct fsdp_sharded *s); /* with initial values */
/* The dtype in which a buffer is lent, and rests. */
uint32_t impl_buffer_dtype(const struct fsdp_sharded *s, uint32_t b);
void impl_release_buffers(struct fsdp_sharded *s);
int impl_buffer(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *out);
/* Whether a checkpoint has the buffer; host memory for its stored form, which
 * the caller frees; and a copy of the buffer at rest to that memory. */
bool impl_persists(const struct fsdp_sharded *s, uint32_t b);
void *impl_stored_buffer(struct fsdp_sharded *s, uint32_t b);
int impl_read_buffer(struct fsdp_sharded *s, uint32_t b, void *stored);
/* Turns such memory into the form in which the buffer rests; NULL: no memory.
 * And copies that to the buffer. */
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
/* Bits of enum fsdp_offload other than FSDP_OFFLOAD_ALL. */
uint32_t impl_offload_of(const struct fsdp_units *units,
                         const struct fsdp_options *o, uint32_t u);
int impl_offload_check(const struct fsdp_env *env,
                       const struct fsdp_units *units,
                       const struct fsdp_options *o);
/* Copies a shard that rests on the host to `to`, in the dtype that it is
 * computed with: on `stream`, or so that it is complete before any work that
 * the stream is given next. */
int impl_bring(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u,
               uint32_t dtype, void *to);
/* Copies the result of a reduction, complete on the last stream, to the host;
 * on the device it is dead then. */
int impl_land(struct fsdp_sharded *s, uint32_t u, void **sum);
/* Waits for that copy, adds it up, and steps the unit if that is due. */
int impl_landed(struct fsdp_sharded *s, uint32_t u);
int impl_landed_all(struct fsdp_sharded *s);
/* Copies the shard to where it is stepped; and back. On the stream if it is
 * stepped on the device. */
int impl_borrow(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u);
int impl_return(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u);

/* ---- impl_optimizer.c ---- */
uint32_t impl_n_states(uint32_t optimizer);
int impl_optimize(struct fsdp_sharded *s, const struct fsdp_step *how);
/* Steps one unit, on a stream; `first`: it is the first one of this step. */
int impl_optimize_unit(struct fsdp_sharded *s, struct fsdp_stream *stream,
                       uint32_t u, const struct fsdp_step *how, bool first);
/* Sets the steps of every unit: none, or those of a checkpoint. */
void impl_set_steps(struct fsdp_sharded *s, uint64_t steps,
                    const float power[2]);
/* Computes the powers of spans from the steps that each of them took. */
void impl_settle_powers(struct fsdp_sharded *s);

/* ---- impl_early.c ---- */
int impl_set_step(struct fsdp_sharded *s, const struct fsdp_step *step);
/* INVALID, from `where`, unless the step has as many groups as the options, and
 * rates for them. */
int impl_check_groups(const struct fsdp_sharded *s, const struct fsdp_step *how,
                      const char *where);
/* INVALID, from `where`, if a step is set for the next pass. */
int impl_check_unset(const struct fsdp_sharded *s, const char *where);
/* A pass begins; and ends or is cancelled, and with it the step set for it. */
void impl_early_begin(struct fsdp_sharded *s);
int impl_early_end(struct fsdp_sharded *s);
/* Whether this pass steps the unit where it is reduced. */
bool impl_steps_early(const struct fsdp_sharded *s, uint32_t u);
/* Steps a unit that was reduced on the last stream, on that stream. */
int impl_step_early(struct fsdp_sharded *s, uint32_t u);
/* Called when a unit that was stepped in this pass is about to be used in
 * it. */
int impl_early_settle(struct fsdp_sharded *s);

/* ---- impl_deferred.c ---- */
/* Without initial values all elements lack one, until values are given. */
int impl_defer(struct fsdp_sharded *s);
void impl_has_values(struct fsdp_sharded *s, uint32_t u, uint64_t first,
                     uint64_t n);
/* INVALID, from `where`, if a parameter lacks values on this rank or, which is
 * collective, on any rank. */
int impl_check_filled(struct fsdp_sharded *s, const char *where, bool any_rank);

/* ---- impl_assign.c ---- */
int impl_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
                const void *host);

/* ---- impl_summon.c ---- */
int impl_summon(struct fsdp_sharded *s, const struct fsdp_summon *how);

/* ---- impl_save.c, impl_load.c ---- */
/* Whether a unit has a gradient. One that is being reduced does not count: it
 * is kept only until it has been sent. */
bool impl_has_gradients(const struct fsdp_sharded *s, uint32_t *unit);
bool impl_is_saving(const struct fsdp_sharded *s);
/* The slices that this rank holds lie elsewhere now, or have other states. */
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
/* impl_finite.c: sets *found to 1 if a reduced gradient of any rank is not
 * finite, else to 0. */
int impl_find_inf(struct fsdp_sharded *s, uint32_t *found);
/* INVALID, from `where`, unless it is 0, or positive and finite. */
int impl_check_scale(const struct fsdp_sharded *s, const char *where,
                     float inverse_scale);
/* Multiplies reduced gradients by inverse_scale. */
int impl_unscale(struct fsdp_sharded *s, float inverse_scale);
/* impl_clip.c */
int impl_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                        float *out_norm);
/* impl_shard.c: makes and places plans for the layout as it is now; and puts
 * them in place of those that are there. Nothing is in flight. NOMEM: the old
 * plans stay. */
int impl_make_plans(struct fsdp_sharded *s, struct impl_plan **out);
void impl_take_plans(struct fsdp_sharded *s, struct impl_plan *plan);
void impl_release_plans(const struct fsdp_sharded *s, struct impl_plan *plan);
/* impl_shard.c: writes initial values into the storage that is there. */
int impl_initialise(const struct fsdp_sharded *s);
/* Copies elements [first, first + n) of parameter p to the device. */
int impl_read_initial(const struct fsdp_sharded *s, uint32_t p, uint64_t first,
                      uint64_t n, float *to);

/* ---- impl_rank0.c ---- */
/* Sends rank 0's initial values to all ranks. Collective. */
int impl_send_initial(struct fsdp_sharded *s);
/* Sends n staged elements of a unit from rank 0 to all ranks. */
int impl_broadcast(const struct fsdp_sharded *s, uint32_t u, float *all,
                   uint64_t n);

/* ---- impl_values.c: those of a state dict ---- */
int impl_send_values(struct fsdp_sharded *s, const struct fsdp_values *from);

#endif
