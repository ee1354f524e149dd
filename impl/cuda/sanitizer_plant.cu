/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer_plant.cu - TEST ONLY: faults that compute-sanitizer has to find, so
 * that "clean" means something: a write beyond an allocation, a race of two
 * warps in shared memory, or a barrier of threads that are not among those that
 * it names. As under `fsdp-cts run --world threads`, they happen in a thread of
 * a program that the first program has started; a tool that looks into one
 * process alone does not see them.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N = 64 /* two warps */
};

__global__ void write_beyond(float *p, unsigned int n)
{
    p[n + threadIdx.x] = 1.0f;
}

/* A barrier is missing between the two lines. */
__global__ void race(float *p)
{
    __shared__ float shared[N];

    shared[threadIdx.x] = (float)threadIdx.x;
    p[threadIdx.x] = shared[N - 1 - threadIdx.x];
}

/* Half of a warp waits for the other half, and is none of those that may. */
__global__ void stray(float *p)
{
    if (threadIdx.x % 32 < 16) {
        __syncwarp(0xffff0000u);
    }
    p[threadIdx.x] = 1.0f;
}

static void *do_it(void *what)
{
    const char *name = (const char *)what;
    float *p = NULL;

    if (cudaMalloc((void **)&p, N * sizeof(*p)) != cudaSuccess) {
        fprintf(stderr, "no GPU, or no memory of one\n");
        return NULL;
    }
    if (strcmp(name, "memory") == 0) {
        write_beyond<<<1, N>>>(p, N);
    } else if (strcmp(name, "race") == 0) {
        race<<<1, N>>>(p);
    } else {
        stray<<<1, N>>>(p);
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    (void)cudaFree(p);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pid_t child;

    if (argc < 2) {
        fprintf(stderr, "usage: sanitizer_plant memory|race|barrier\n");
        return 64;
    }
    if (argc == 2) {
        char there[] = "there";
        char *const words[] = {argv[0], argv[1], there, NULL};
        child = fork();
        if (child == 0) {
            (void)execv("/proc/self/exe", words);
            _exit(1);
        }
        return child < 0 || waitpid(child, NULL, 0) < 0;
    }
    if (pthread_create(&thread, NULL, do_it, argv[1]) != 0) {
        return 1;
    }
    return pthread_join(thread, NULL) != 0;
}
