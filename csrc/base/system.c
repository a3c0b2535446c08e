/* system.c: CPUs and memory granted to this process, and properties of the processor, each found
 * out once.
 *
 * Containers limit CPUs and memory through Linux control groups, which the usual calls ignore. A
 * group's limit holds for everything below it. The limit is therefore the least from the process's
 * own group up to the root. (Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/.)
 */
#include "system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static int64_t system_group_cpus(void);
static int64_t system_group_memory(void);

int mg_system_cpus(void) {
    int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef SYS_sched_getaffinity
    /* The raw system call, for more processors than a cpu_set_t holds. */
    unsigned long mask[1024 / sizeof(long)];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    if (bytes > 0) {
        cpus = 0;
        for (size_t i = 0; i < (size_t)bytes / sizeof(long); i++)
            cpus += __builtin_popcountl(mask[i]);
    }
#endif
    return (int)mg_max(1, mg_min(cpus, system_group_cpus()));
}

int64_t mg_system_memory(void) {
    int64_t bytes = (int64_t)1 << 32; /* a modest guess if the system does not say */
#ifdef _SC_PHYS_PAGES
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0 && pages <= INT64_MAX / page)
        bytes = pages * page;
#endif
    return mg_min(bytes, system_group_memory());
}

int64_t mg_system_cache(void) {
    int64_t bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? mg_min(mg_max(bytes, 256 << 10), 2 << 20) : 512 << 10;
}

/* AMD's family of this processor, 25 for Zen 3 and 4 and 26 for Zen 5; 0 for other makers. (AMD64
 * Architecture Programmer's Manual vol. 3, appendix E: functions 0, 1 and, below, 8000_001D.) */
static int system_amd_family(void) {
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx) return 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) return (int)((a >> 8 & 15) + (a >> 20 & 255));
#endif
    return 0;
}

static bool system_has_avx512(void) {
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX512F);
#else
    return false;
#endif
}

/* Bytes of the L3 cache that this core shares, on an AMD processor; 0 if there is none. */
static int64_t system_third_cache(void) {
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    if (!__get_cpuid_count(0x8000001d, 3, &a, &b, &c, &d) || (a >> 5 & 7) != 3) return 0;
    return ((int64_t)(b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1);
#else
    return 0;
#endif
}

/* 0 until found out; two threads may find it out at once, with the same result */
static _Atomic int64_t system_streams;
_Atomic int mg_system_known_zen = -1;

static MG_NOINLINE void system_ask(void) {
    int family = system_amd_family();
    int64_t half = family == 25 || family == 26 ? system_third_cache() / 2 : 0;
    int zen = half == 0 ? 0 : family == 26 ? 5 : system_has_avx512() ? 4 : 3;
    int64_t said = mg_system_env("MINIGRAD_STREAM_BYTES"), bytes = said < 0 ? half : said;
    atomic_store_explicit(&mg_system_known_zen, zen, memory_order_relaxed);
    atomic_store_explicit(&system_streams, bytes > 0 ? bytes : INT64_MAX, memory_order_release);
}

MG_NOINLINE int64_t mg_system_streams(void) {
    while (atomic_load_explicit(&system_streams, memory_order_acquire) == 0) system_ask();
    return system_streams;
}

MG_NOINLINE int mg_system_ask_zen(void) {
    mg_system_streams();
    return mg_system_known_zen;
}

int64_t mg_system_reach = 4096 + 512;

/* Zen 4 is the processor of family 25 that has AVX-512. It prefetches streams itself. Software
 * prefetch far ahead makes it take up to twice as long. With a distance of 0 the prefetch names
 * memory that is read anyway. */
__attribute__((constructor)) static void system_reach(void) {
    if (system_amd_family() == 25 && system_has_avx512()) mg_system_reach = 0;
}

int64_t mg_system_env(const char *name) {
    const char *text = getenv(name);
    if (!text)
        return -1;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool whole = end != text && (*end == '\0' || *end == ',');
    return whole && errno == 0 && value >= 0 ? (int64_t)value : -1;
}

#ifdef __linux__

/* Reads `dir/name` and leaves its first two numbers in out; returns how many there were. */
static int system_read(const char *dir, const char *name, long long out[2]) {
    char path[4352];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int found = fscanf(file, "%lld %lld", &out[0], &out[1]); /* "max" is not a number: 0 found */
    fclose(file);
    return found;
}

static int64_t system_cpus_v2(const char *dir) {
    long long n[2];
    bool set = system_read(dir, "cpu.max", n) == 2 && n[0] > 0 && n[1] > 0;
    return set ? mg_ceil_div(n[0], n[1]) : INT64_MAX;
}
static int64_t system_cpus_v1(const char *dir) {
    long long quota[2], period[2];
    bool set = system_read(dir, "cpu.cfs_quota_us", quota) == 1 && quota[0] > 0 &&
               system_read(dir, "cpu.cfs_period_us", period) == 1 && period[0] > 0;
    return set ? mg_ceil_div(quota[0], period[0]) : INT64_MAX; /* no quota is -1 */
}
static int64_t system_memory_v2(const char *dir) {
    long long n[2];
    return system_read(dir, "memory.max", n) >= 1 && n[0] > 0 ? n[0] : INT64_MAX;
}
static int64_t system_memory_v1(const char *dir) {
    long long n[2];
    return system_read(dir, "memory.limit_in_bytes", n) >= 1 && n[0] > 0 ? n[0] : INT64_MAX;
}

/* True if `controllers`, a list with commas, names `controller`. */
static bool system_names(const char *controllers, const char *controller) {
    size_t length = strlen(controller);
    for (const char *at = controllers; (at = strstr(at, controller)); at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* The least limit from the process's group up to the root of the hierarchy. The hierarchy is the
 * one that has `controller` (v1), or the unified one (v2), whose list is empty. A container may see
 * its path on the host, which does not exist inside. The walk then still ends at the root. */
static int64_t system_group_limit(const char *controller, int64_t (*v1)(const char *dir),
                                  int64_t (*v2)(const char *dir)) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return INT64_MAX;
    int64_t limit = INT64_MAX;
    char line[4096], dir[4224];
    while (fgets(line, sizeof line, file)) { /* hierarchy:controller,controller:/path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *controllers++ = *path++ = '\0';
        bool unified = *controllers == '\0';
        if (!unified && !system_names(controllers, controller))
            continue;
        const char *below = unified ? "" : "/", *mount = unified ? "" : controller;
        int root = snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%s", below, mount);
        snprintf(dir + root, sizeof dir - (size_t)root, "%s", path);
        for (;;) {
            limit = mg_min(limit, unified ? v2(dir) : v1(dir));
            char *last = strrchr(dir + root, '/');
            if (!last)
                break;
            *last = '\0';
        }
    }
    fclose(file);
    return limit;
}

static int64_t system_group_cpus(void) {
    return system_group_limit("cpu", system_cpus_v1, system_cpus_v2);
}
static int64_t system_group_memory(void) {
    return system_group_limit("memory", system_memory_v1, system_memory_v2);
}

#else /* no control groups */

static int64_t system_group_cpus(void) { return INT64_MAX; }
static int64_t system_group_memory(void) { return INT64_MAX; }

#endif
