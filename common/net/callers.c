/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/callers.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/base/ip.h"
#include "common/base/table.h"

enum {
  /* An address is known for ten minutes after a complete handshake; all others share STRANGERS times one's rate. */
  KNOWN_MS = 600000,
  STRANGERS = 4,
  FREE = 4,    /* unfinished handshakes of a known address that claim no place */
  WHOLE = 1000 /* one hello, in units of a bucket */
};

/* A token bucket: holds the hellos of one second and refills continuously. */
struct bucket {
  uint64_t parts, at_ms;
};

struct cv_caller {
  uint64_t address;
  unsigned handshakes;
  bool is_known; /* its list in `idle` while it has no handshakes */
  uint64_t known_until_ms;
  struct bucket bucket;
  struct cv_caller *prev, *next; /* list of addresses without handshakes, oldest first */
  UT_hash_handle hh;
};

struct cv_callers {
  uint64_t hellos;
  struct bucket strangers;
  struct cv_caller *all;
  struct cv_caller *idle[2]; /* unknown, known addresses */
  unsigned idle_count[2];
};

static bool is_known(const struct cv_caller *caller, uint64_t now_ms) {
  return caller->known_until_ms > now_ms;
}

/* Refills the bucket for the time since the last call; `rate` is per second. */
static void fill(struct bucket *bucket, uint64_t rate, uint64_t now_ms) {
  uint64_t passed_ms = now_ms > bucket->at_ms ? now_ms - bucket->at_ms : 0;
  /* A bucket holds one second of its rate: bursts are answered, longer floods are not. */
  uint64_t room = rate * WHOLE - bucket->parts;
  bucket->parts += passed_ms >= 1000 || passed_ms * rate > room ? room : passed_ms * rate;
  bucket->at_ms = now_ms;
}

static void forget(struct cv_callers *callers, struct cv_caller *caller) {
  HASH_DEL(callers->all, caller);
  free(caller);
}

static void idle_ends(struct cv_callers *callers, struct cv_caller *caller) {
  DL_DELETE(callers->idle[caller->is_known], caller);
  callers->idle_count[caller->is_known]--;
}

static void idle_begins(struct cv_callers *callers, struct cv_caller *caller, uint64_t now_ms) {
  caller->is_known = is_known(caller, now_ms);
  DL_APPEND(callers->idle[caller->is_known], caller);
  /* Unknown addresses cannot push out known ones: each kind has its own bound. */
  if (++callers->idle_count[caller->is_known] > CV_CALLERS_KEPT) {
    struct cv_caller *oldest = callers->idle[caller->is_known];
    idle_ends(callers, oldest);
    forget(callers, oldest);
  }
}

enum cv_err cv_callers_new(unsigned hellos, struct cv_callers **ret) {
  struct cv_callers *callers = calloc(1, sizeof(*callers));
  if (callers == NULL) {
    return CV_ERR_NOMEM;
  }
  callers->hellos = hellos;
  callers->strangers.parts = STRANGERS * callers->hellos * WHOLE;
  *ret = callers;
  return CV_OK;
}

void cv_callers_free(struct cv_callers *callers) {
  if (callers != NULL) {
    CV_TABLE_DRAIN(callers->all, free);
    free(callers);
  }
}

enum cv_err cv_callers_enter(struct cv_callers *callers, const struct sockaddr *address, uint64_t now_ms,
                             struct cv_caller **ret) {
  struct cv_caller *caller;
  struct cv_ip ip;
  (void)cv_ip_of(address, &ip);
  uint64_t number = cv_ip_network(&ip);
  HASH_FIND(hh, callers->all, &number, sizeof(number), caller);
  if (caller == NULL) {
    caller = calloc(1, sizeof(*caller));
    if (caller == NULL) {
      return CV_ERR_NOMEM;
    }
    caller->address = number;
    caller->bucket = (struct bucket){.parts = callers->hellos * WHOLE, .at_ms = now_ms};
    if (CV_TABLE_ADD(callers->all, address, caller) != CV_OK) {
      free(caller);
      return CV_ERR_NOMEM;
    }
  } else if (caller->handshakes == 0) {
    idle_ends(callers, caller);
  }
  caller->handshakes++;
  *ret = caller;
  return CV_OK;
}

void cv_callers_leave(struct cv_callers *callers, struct cv_caller *caller, bool let_in, uint64_t now_ms) {
  if (let_in) {
    caller->known_until_ms = now_ms + KNOWN_MS;
  }
  if (--caller->handshakes == 0) {
    idle_begins(callers, caller, now_ms);
  }
}

bool cv_callers_answer(struct cv_callers *callers, struct cv_caller *caller, uint64_t now_ms) {
  struct bucket *of_all = is_known(caller, now_ms) ? NULL : &callers->strangers;
  fill(&caller->bucket, callers->hellos, now_ms);
  fill(&callers->strangers, STRANGERS * callers->hellos, now_ms);
  /* Both are tested before either is taken: a hello that is refused costs nothing. */
  if (caller->bucket.parts < WHOLE || (of_all != NULL && of_all->parts < WHOLE)) {
    return false;
  }
  caller->bucket.parts -= WHOLE;
  if (of_all != NULL) {
    of_all->parts -= WHOLE;
  }
  return true;
}

unsigned cv_caller_claim(const struct cv_caller *caller, uint64_t now_ms) {
  return is_known(caller, now_ms) && caller->handshakes <= FREE ? 0 : caller->handshakes;
}

unsigned cv_callers_count(const struct cv_callers *callers) {
  return HASH_COUNT(callers->all);
}
