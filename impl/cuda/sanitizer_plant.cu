/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer_plant.cu - TEST ONLY: what compute-sanitizer has to find, so that
 * "clean" means something: a write beyond an allocation, or a race of two warps
 * in shared memory. As `fsdp-cts run --world threads` does, a program that the
 * first one has started does it in a thread, which a tool that looks into one
 * process alone does not see.
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

static void *do_it(void *what)
{
    float *p = NULL;

    if (cudaMalloc((void **)&p, N * sizeof(*p)) != cudaSuccess) {
        fprintf(stderr, "no GPU, or no memory of one\n");
        return NULL;
    }
    if (strcmp((const char *)what, "memory") == 0) {
        write_beyond<<<1, N>>>(p, N);
    } else {
        race<<<1, N>>>(p);
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
        fprintf(stderr, "usage: sanitizer_plant memory|race\n");
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
