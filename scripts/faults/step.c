// Loaded before the C library (LD_PRELOAD): from a moment on the system's clock is another one, as if somebody had set it.
// The moment is by the clock that never steps, so that it is the same one for every process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*real_clock)(clockid_t, struct timespec *);
static long long moment_ms, step_s;

__attribute__((constructor)) static void begin(void) {
    const char *moment = getenv("FAULTS_STEP_AT_MS"), *step = getenv("FAULTS_STEP_S");
    moment_ms = moment ? atoll(moment) : 0;
    step_s = step ? atoll(step) : 0;
}

static int now(clockid_t clock, struct timespec *time) {
    if (!real_clock) real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real_clock(clock, time);
}

static time_t step(void) {
    struct timespec passed;
    now(CLOCK_MONOTONIC, &passed);
    return passed.tv_sec * 1000LL + passed.tv_nsec / 1000000 < moment_ms ? 0 : step_s;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = now(clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += step();
    return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec seen;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &seen)) return -1;
    time->tv_sec = seen.tv_sec;
    time->tv_usec = seen.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec seen;
    if (clock_gettime(CLOCK_REALTIME, &seen)) return -1;
    if (out) *out = seen.tv_sec;
    return seen.tv_sec;
}
