/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/alloc_fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The underlying heap: the C library's, or a sanitizer's. */
static void *(*real_malloc)(size_t n);
static void *(*real_calloc)(size_t count, size_t size);
static void *(*real_realloc)(void *at, size_t n);
static void (*real_free)(void *at);

static atomic_bool armed, rest, hit;
static atomic_uint_fast64_t seen, nth;
static atomic_int_fast64_t live;

/* Memory for looking up the functions above; never freed. */
static char early[4096];
static size_t early_used;
static bool finding;

static bool is_early(const void *at) {
  return (const char *)at >= early && (const char *)at < early + sizeof(early);
}

static void *early_alloc(size_t n) {
  size_t rounded = (n + 15) & ~(size_t)15;
  if (sizeof(early) - early_used < rounded) {
    abort();
  }
  void *at = early + early_used;
  early_used += rounded;
  return at;
}

static uint64_t from_environment(const char *name, uint64_t fallback) {
  const char *text = getenv(name);
  return text == NULL ? fallback : strtoull(text, NULL, 10);
}

static void *find(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    abort();
  }
  return found;
}

/* Runs before there is a second thread: the loader allocates before main. False while the lookup is in progress. */
static bool ready(void) {
  if (real_free == NULL && !finding) {
    finding = true;
    *(void **)&real_malloc = find("malloc");
    *(void **)&real_calloc = find("calloc");
    *(void **)&real_realloc = find("realloc");
    *(void **)&real_free = find("free");
    finding = false;
  }
  return real_free != NULL;
}

/* A place for a breakpoint: the call stack is that of the failing allocation. */
__attribute__((noinline)) static bool refuse(void) {
  atomic_store(&hit, true);
  errno = ENOMEM;
  return true;
}

static bool fails(void) {
  if (!atomic_load(&armed)) {
    return false;
  }
  uint64_t number = atomic_fetch_add(&seen, 1) + 1;
  uint64_t wanted = atomic_load(&nth);
  return (number == wanted || (number > wanted && atomic_load(&rest))) && refuse();
}

static void *counted(void *at) {
  if (at != NULL) {
    atomic_fetch_add(&live, 1);
  }
  return at;
}

void *malloc(size_t n) {
  if (!ready()) {
    return early_alloc(n);
  }
  return fails() ? NULL : counted(real_malloc(n));
}

void *calloc(size_t count, size_t size) {
  size_t n;
  if (!ready()) {
    return __builtin_mul_overflow(count, size, &n) ? NULL : early_alloc(n);
  }
  return fails() ? NULL : counted(real_calloc(count, size));
}

void free(void *at) {
  if (at == NULL || is_early(at)) {
    return;
  }
  atomic_fetch_sub(&live, 1);
  real_free(at);
}

void *realloc(void *at, size_t n) {
  if (at == NULL) {
    return malloc(n);
  }
  if (is_early(at)) {
    void *moved = malloc(n);
    if (moved != NULL) {
      size_t left = (size_t)(early + sizeof(early) - (char *)at);
      memcpy(moved, at, n < left ? n : left);
    }
    return moved;
  }
  if (n == 0) {
    free(at);
    return NULL;
  }
  return fails() ? NULL : real_realloc(at, n);
}

void *reallocarray(void *at, size_t count, size_t size) {
  size_t n;
  if (__builtin_mul_overflow(count, size, &n)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(at, n);
}

bool alloc_fault_next(struct alloc_fault *fault) {
  alloc_fault_pause();
  bool more = fault->rounds == 0 || atomic_load(&hit);
  if (!more && atomic_load(&seen) == 0) {
    (void)fprintf(stderr, "alloc_fault: no allocation was seen; is this malloc in use?\n");
    abort();
  }
  uint64_t step = from_environment("ALLOC_FAULT_STEP", fault->step > 0 ? fault->step : 1) *
                  from_environment("ALLOC_FAULT_TIMES", 1);
  fault->nth += fault->rounds == 0 ? from_environment("ALLOC_FAULT_FROM", 1) : step;
  fault->rounds++;
  atomic_store(&seen, 0);
  atomic_store(&hit, false);
  atomic_store(&rest, fault->rest);
  atomic_store(&nth, fault->nth);
  if (getenv("ALLOC_FAULT_SHOW") != NULL) {
    (void)fprintf(stderr, "alloc_fault: %s %llu\n", more ? "allocation" : "none failed at",
                  (unsigned long long)fault->nth);
  }
  return more;
}

void alloc_fault_arm(void) {
  atomic_store(&armed, true);
}

void alloc_fault_pause(void) {
  atomic_store(&armed, false);
}

bool alloc_fault_aside(void) {
  return atomic_exchange(&armed, false);
}

bool alloc_fault_hit(void) {
  return atomic_load(&hit);
}

/* A sanitizer's strdup and similar functions allocate without calling these; it looks for leaks itself. */
int64_t alloc_fault_live(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  return atomic_load(&live);
#endif
}
