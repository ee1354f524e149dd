/* SPDX-License-Identifier: Apache-2.0 */
/*
 * miniature.c - Fully Sharded Data Parallel on one page, without a framework.
 *
 * Four linear layers (16-32-32-16-8, 2176 weights) learn for 40 steps on K
 * workers, each with samples of its own. At rest a worker keeps one shard of
 * each unit, 1/K of its weights; a unit is one or more layers. A unit becomes
 * whole (gather) just before it computes and is given up (release) right after.
 * So no worker ever holds more weights than M/K + the largest unit, where M is
 * the whole model. The same training without sharding (S = 1: every worker
 * keeps all weights) has the same loss curve, in every bit. The workers are a
 * loop here; in ref/engine/ they are processes that send each other messages.
 * train_step() has it all in order; what it calls stands above it.
 *
 *     cc -O2 -ffp-contract=off -I conformance/include ref/miniature.c -lm
 *     ./a.out 4
 */
#include <fsdp/arith/philox.h> /* the same random numbers on every machine */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAYERS = 4,
    MODEL = 2176,
    BATCH = 256,
    STEPS = 40
};
static const int inputs[LAYERS] = {16, 32, 32, 16};
static const int outputs[LAYERS] = {32, 32, 16, 8};
static const int begin[LAYERS + 1] = {0, 512, 1536, 2048, MODEL};
static const float learning_rate = 0.05f;

static struct worker {
    float x[LAYERS + 1][BATCH][32]; /* input of each layer; the output */
    float dy[BATCH][32];            /* gradient of a layer's output */
    float target[BATCH][8];         /* what the output should be */
    float shard[LAYERS][MODEL];     /* [chunk], of each unit */
    float reduced[LAYERS][MODEL];   /* [chunk], its mean gradient */
    float full[MODEL + 64];         /* [S chunk], while it is gathered */
    float gradient[MODEL + 64];     /* [S chunk], of that unit */
    int resting, gathered, peak;    /* weights: shards; full; at most */
    int gathers;                    /* all-gathers so far */
} worker[64];
static int K, S, L; /* workers; shards of a unit, K or 1; layers of a unit */
static int samples; /* of each worker: BATCH / K */

/* ---- The model: relu(x W) in each layer, mean squared error ------------- */

/* x [samples][inputs], W [inputs][outputs] -> next x [samples][outputs] */
static void forward(struct worker *w, int l, const float *W)
{
    for (int s = 0; s < samples; s++) {
        for (int j = 0; j < outputs[l]; j++) {
            float sum = 0.0f;
            for (int i = 0; i < inputs[l]; i++) {
                sum = fmaf(w->x[l][s][i], W[i * outputs[l] + j], sum);
            }
            w->x[l + 1][s][j] = sum > 0.0f ? sum : 0.0f;
        }
    }
}

/* dy [samples][outputs], W [inputs][outputs] -> adds to dW [inputs][outputs];
 * dy [samples][inputs] of the layer before */
static void backward(struct worker *w, int l, const float *W, float *dW)
{
    for (int s = 0; s < samples; s++) {
        float dx[32] = {0.0f};
        for (int j = 0; j < outputs[l]; j++) {
            float d = w->x[l + 1][s][j] > 0.0f ? w->dy[s][j] : 0.0f;
            for (int i = 0; i < inputs[l]; i++) {
                int ij = i * outputs[l] + j;
                dW[ij] = fmaf(w->x[l][s][i], d, dW[ij]);
                dx[i] = fmaf(d, W[ij], dx[i]);
            }
        }
        memcpy(w->dy[s], dx, sizeof(dx));
    }
}

/* The mean error of the output, x [samples][8]; its gradient -> dy
 * [samples][8]. The order of the sums is the one in the suite's op.h. */
static float mean_error(struct worker *w)
{
    const float n = (float)(samples * 8);
    float total = 0.0f;
    float block = 0.0f; /* of 64 samples */

    for (int s = 0; s < samples; s++) {
        float e[8];
        for (int j = 0; j < 8; j++) {
            float d = w->x[LAYERS][s][j] - w->target[s][j];
            w->dy[s][j] = 2.0f / n * d;
            e[j] = d * d;
        }
        block += (((e[0] + e[4]) + (e[2] + e[6])) +
                  ((e[1] + e[5]) + (e[3] + e[7]))) *
                 (1.0f / n);
        if (s % 64 == 63 || s + 1 == samples) {
            total += block;
            block = 0.0f;
        }
    }
    return total;
}

/* ---- Sharding: gather, release, reduce-scatter, step -------------------- */

/* Weights in a shard of unit u; the last shard may end in padding. */
static int chunk(int u)
{
    const int l = u * L;

    return (begin[l + L] - begin[l] + S - 1) / S;
}

/* All-gather: the shards [chunk] of all workers -> full [S chunk]. */
static void gather(struct worker *w, int u)
{
    for (int i = 0; i < S * chunk(u); i++) {
        w->full[i] = worker[i / chunk(u)].shard[u][i % chunk(u)];
    }
    if (S > 1) { /* else the shard is the unit: nothing was gathered */
        w->gathers++;
        w->gathered += S * chunk(u);
        w->peak = w->gathered > w->peak ? w->gathered : w->peak;
    }
}

/* full [S chunk] is gone: code that reads it now gets NaN for a loss. */
static void release(struct worker *w, int u)
{
    memset(w->full, 0xff, sizeof(w->full)); /* NaN */
    w->gathered -= S > 1 ? S * chunk(u) : 0;
}

/* The gradients [S chunk] of all workers -> their mean, reduced [chunk] of
 * worker k for shard k (S = 1: of each worker, as an all-reduce does). It is
 * summed in the order of the workers: another order has other bits. */
static void reduce_scatter(int u)
{
    for (int i = 0; i < S * chunk(u); i++) {
        float sum = worker[0].gradient[i];
        for (int k = 1; k < K; k++) {
            sum += worker[k].gradient[i];
        }
        for (int k = i / chunk(u); k < K; k += S) {
            worker[k].reduced[u][i % chunk(u)] = sum * (1.0f / (float)K);
        }
    }
}

/* Gradient descent on shards [chunk]: nothing needs to be whole. */
static void step(struct worker *w)
{
    for (int u = 0; u < LAYERS / L; u++) {
        for (int i = 0; i < chunk(u); i++) {
            float d = w->reduced[u][i];
            w->shard[u][i] = fmaf(-learning_rate, d, w->shard[u][i]);
        }
    }
}

/* One step of all workers. Returns the mean of their losses. */
static float train_step(void)
{
    float loss = 0.0f;

    for (int u = 0; u < LAYERS / L; u++) {
        for (struct worker *w = worker; w < worker + K; w++) {
            gather(w, u);
            for (int l = u * L; l < (u + 1) * L; l++) {
                forward(w, l, w->full + begin[l] - begin[l - l % L]);
            }
            release(w, u);
        }
    }
    for (int k = 0; k < K; k++) {
        loss += mean_error(&worker[k]);
    }
    for (int u = LAYERS / L - 1; u >= 0; u--) {
        for (struct worker *w = worker; w < worker + K; w++) {
            gather(w, u);
            memset(w->gradient, 0, sizeof(w->gradient));
            for (int l = (u + 1) * L - 1; l >= u * L; l--) {
                int at = begin[l] - begin[l - l % L];
                backward(w, l, w->full + at, w->gradient + at);
            }
            release(w, u);
        }
        reduce_scatter(u);
    }
    for (int k = 0; k < K; k++) {
        step(&worker[k]);
    }
    return loss * (1.0f / (float)K);
}

/* ---- The first weights and the samples ---------------------------------- */

/* Weight i of layer l: random number i of stream l. */
static float first_weight(int l, int i)
{
    float x = fsdp_random_uniform(1, (uint32_t)l, (uint64_t)i);
    return l + 1 == LAYERS ? fabsf(x) * (1.0f / (float)inputs[l])
                           : x * sqrtf(3.0f / (float)inputs[l]);
}

/* Sample s: x [16]; target [8] is what a random layer makes of it. */
static void draw(unsigned s, float x[16], float target[8])
{
    for (unsigned i = 0; i < 16; i++) {
        x[i] = 2.0f * fsdp_random_uniform(1, 0x40000000, s * 16 + i);
    }
    for (unsigned j = 0; j < 8; j++) {
        double y = 0.0;
        for (unsigned i = 0; i < 16; i++) {
            float weight = fsdp_random_uniform(1, 0x20000000, i * 8 + j);
            y += (double)x[i] * (double)weight;
        }
        target[j] = (float)fmax(1.0 + 0.5 * y / 4.0, 0.0);
    }
}

/* The samples of worker k, and chunk k of each unit (S = 1: all of it). */
static void start(struct worker *w, int k)
{
    memset(w, 0, sizeof(*w));
    for (int s = 0; s < samples; s++) {
        draw((unsigned)(k * samples + s), w->x[0][s], w->target[s]);
    }
    for (int l = 0; l < LAYERS; l++) {
        int u = l / L;
        int at = begin[l] - begin[l - l % L] - k % S * chunk(u);
        for (int i = 0; i < inputs[l] * outputs[l]; i++) {
            if (at + i >= 0 && at + i < chunk(u)) {
                w->shard[u][at + i] = first_weight(l, i);
            }
        }
        w->resting += l % L == 0 ? chunk(u) : 0;
    }
}

/* ---- Output 16.5.1 and exercise 16.5.2 ---------------------------------- */

static float baseline[STEPS], fsdp[STEPS]; /* losses without, with shards */

/* Returns the largest gap between the curve and the baseline. */
static float train(int shards, int layers, float curve[STEPS])
{
    float gap = 0.0f;

    S = shards;
    L = layers;
    for (int k = 0; k < K; k++) {
        start(&worker[k], k);
    }
    for (int t = 0; t < STEPS; t++) {
        curve[t] = train_step();
        float d = fabsf(curve[t] - baseline[t]);
        gap = d <= gap ? gap : d; /* so that NaN shows */
    }
    return gap;
}

static void print_output(const struct worker *w, float gap)
{
    printf("workers K                       : %d\n", K);
    printf("whole-model parameters          : %d\n", MODEL);
    printf("largest single FSDP unit        : %d\n", inputs[1] * outputs[1]);
    printf("peak resident full params (FSDP): %d\n", w->peak);
    printf("peak / whole-model ratio        : %.3f\n", (double)w->peak / MODEL);
    printf("peak of shards and unit, total  : %d\n", w->resting + w->peak);
    printf("first loss                      : %.6e\n", (double)fsdp[0]);
    printf("baseline final loss             : %.6e\n", (double)baseline[39]);
    printf("FSDP     final loss             : %.6e\n", (double)fsdp[39]);
    printf("max loss-curve gap (all steps)  : %.2e\n", (double)gap);
    puts("\nunits  all-gathers/step  peak full  peak total  final loss    gap");
}

int main(int argc, char **argv)
{
    K = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 4;
    if (K < 1 || K > 64) {
        fprintf(stderr, "usage: miniature [WORKERS], 1 to 64\n");
        return 64;
    }
    samples = BATCH / K;
    train(1, 1, baseline);
    print_output(worker, train(K, 1, fsdp));
    for (int layers = LAYERS; layers > 0; layers /= 2) {
        double gap = (double)train(K, layers, fsdp);
        printf("%5d  %16d  %9d  %10d  %.6e  %.2e\n", LAYERS / layers,
               worker->gathers / STEPS, worker->peak,
               worker->resting + worker->peak, (double)fsdp[39], gap);
    }
    return 0;
}
