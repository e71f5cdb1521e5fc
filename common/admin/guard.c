/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/guard.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/base/table.h"

/* What guests and addresses are counted for: unfinished heads, and whatever is owed. */
enum { HEADS, OWING, PILES, QUEUE = PILES, LINKS };

struct cv_guest {
  struct address *address; /* NULL: it was dropped */
  enum cv_guest_state state;
  uint64_t until_ms;
  void *whose;
  struct {
    struct cv_guest *prev, *next;
  } link[LINKS];
};

struct address {
  uint64_t number;
  bool is_crowd;
  unsigned guests;
  struct {
    struct cv_guest *first; /* the oldest */
    unsigned count;
    struct address *prev, *next; /* of those with the same count */
  } pile[PILES];
  UT_hash_handle hh;
};

/* The addresses by their count; of equal ones the first to reach it is first. */
struct ranks {
  struct address **with;
  unsigned top, sum;
};

struct cv_guard {
  struct cv_guard_limits limits;
  void (*drop)(void *whose);
  struct address *all;
  struct ranks rank[PILES];
  struct cv_guest *queue[CV_GUEST_STATES]; /* of each state, in the order of their times */
  unsigned present;
};

/* ---- addresses ---- */

static struct address *find(struct cv_guard *guard, uint64_t number, bool is_crowd) {
  struct address *address;
  HASH_FIND(hh, guard->all, &number, sizeof(number), address);
  if (address == NULL && (address = calloc(1, sizeof(*address))) != NULL) {
    *address = (struct address){.number = number, .is_crowd = is_crowd};
    if (CV_TABLE_ADD(guard->all, number, address) != CV_OK) {
      free(address);
      return NULL;
    }
  }
  return address;
}

static void release(struct cv_guard *guard, struct address *address) {
  if (--address->guests == 0) {
    HASH_DEL(guard->all, address);
    free(address);
  }
}

static void unrank(struct ranks *ranks, struct address *address, int pile) {
  if (address->pile[pile].count > 0) {
    DL_DELETE2(ranks->with[address->pile[pile].count], address, pile[pile].prev, pile[pile].next);
  }
}

static void rank(struct ranks *ranks, struct address *address, int pile) {
  unsigned count = address->pile[pile].count;
  if (count > 0) {
    DL_APPEND2(ranks->with[count], address, pile[pile].prev, pile[pile].next);
  }
  /* A count changes by one, and so does the largest. */
  if (count > ranks->top) {
    ranks->top = count;
  } else if (ranks->top > 0 && ranks->with[ranks->top] == NULL) {
    ranks->top--;
  }
}

static struct cv_guest *oldest_of_fullest(const struct cv_guard *guard, int pile) {
  const struct ranks *ranks = &guard->rank[pile];
  return ranks->sum == 0 ? NULL : ranks->with[ranks->top]->pile[pile].first;
}

/* ---- guests ---- */

static bool is_in(const struct cv_guest *guest, int pile) {
  return pile == HEADS ? guest->state == CV_GUEST_HEAD : guest->state != CV_GUEST_WAITS;
}

static void put(struct cv_guard *guard, struct cv_guest *guest) {
  for (int pile = 0; pile < PILES; pile++) {
    if (is_in(guest, pile)) {
      unrank(&guard->rank[pile], guest->address, pile);
      DL_APPEND2(guest->address->pile[pile].first, guest, link[pile].prev, link[pile].next);
      guest->address->pile[pile].count++;
      guard->rank[pile].sum++;
      rank(&guard->rank[pile], guest->address, pile);
    }
  }
}

static void take(struct cv_guard *guard, struct cv_guest *guest) {
  for (int pile = 0; pile < PILES; pile++) {
    if (is_in(guest, pile)) {
      unrank(&guard->rank[pile], guest->address, pile);
      DL_DELETE2(guest->address->pile[pile].first, guest, link[pile].prev, link[pile].next);
      guest->address->pile[pile].count--;
      guard->rank[pile].sum--;
      rank(&guard->rank[pile], guest->address, pile);
    }
  }
}

static void enqueue(struct cv_guard *guard, struct cv_guest *guest, uint64_t now_ms) {
  uint64_t ms = guard->limits.ms[guest->state];
  guest->until_ms = ms == 0 ? UINT64_MAX : now_ms + ms;
  DL_APPEND2(guard->queue[guest->state], guest, link[QUEUE].prev, link[QUEUE].next);
}

static void dequeue(struct cv_guard *guard, struct cv_guest *guest) {
  DL_DELETE2(guard->queue[guest->state], guest, link[QUEUE].prev, link[QUEUE].next);
}

/* The guest counts no longer, although its connection is still there. */
static void forget(struct cv_guard *guard, struct cv_guest *guest) {
  take(guard, guest);
  dequeue(guard, guest);
  release(guard, guest->address);
  guest->address = NULL;
  guard->present--;
}

static void drop(struct cv_guard *guard, struct cv_guest *guest) {
  forget(guard, guest);
  guard->drop(guest->whose);
}

/* After a change of the guest. */
static void make_room(struct cv_guard *guard, const struct cv_guest *guest) {
  const struct cv_guard_limits *limits = &guard->limits;
  const struct address *address = guest->address;
  if (!address->is_crowd && address->pile[OWING].count > limits->address) {
    drop(guard, address->pile[OWING].first);
  }
  if (guard->rank[HEADS].sum > limits->heads) {
    drop(guard, oldest_of_fullest(guard, HEADS));
  }
  while (guard->present > limits->connections && guard->rank[OWING].sum > 0) {
    drop(guard, oldest_of_fullest(guard, OWING));
  }
}

/* ---- the outside ---- */

enum cv_err cv_guard_new(const struct cv_guard_limits *limits, void (*drop_one)(void *whose), struct cv_guard **ret) {
  struct cv_guard *guard = calloc(1, sizeof(*guard));
  if (guard == NULL) {
    return CV_ERR_NOMEM;
  }
  *guard = (struct cv_guard){.limits = *limits, .drop = drop_one};
  for (int pile = 0; pile < PILES; pile++) {
    guard->rank[pile].with = calloc((size_t)limits->most + 1, sizeof(struct address *));
  }
  if (guard->rank[HEADS].with == NULL || guard->rank[OWING].with == NULL) {
    cv_guard_free(guard);
    return CV_ERR_NOMEM;
  }
  *ret = guard;
  return CV_OK;
}

void cv_guard_free(struct cv_guard *guard) {
  if (guard != NULL) {
    CV_REQUIRE(guard->all == NULL);
    free(guard->rank[HEADS].with);
    free(guard->rank[OWING].with);
    free(guard);
  }
}

enum cv_err cv_guard_enter(struct cv_guard *guard, uint64_t number, bool is_crowd, void *whose, uint64_t now_ms,
                           struct cv_guest **ret) {
  struct cv_guest *guest = calloc(1, sizeof(*guest));
  struct address *address = guest == NULL ? NULL : find(guard, number, is_crowd);
  if (address == NULL) {
    free(guest);
    return CV_ERR_NOMEM;
  }
  CV_REQUIRE(guard->present < guard->limits.most);
  *guest = (struct cv_guest){.address = address, .state = CV_GUEST_HEAD, .whose = whose};
  address->guests++;
  guard->present++;
  put(guard, guest);
  enqueue(guard, guest, now_ms);
  *ret = guest;
  make_room(guard, guest);
  return CV_OK;
}

void cv_guard_move(struct cv_guard *guard, struct cv_guest *guest, enum cv_guest_state to, uint64_t now_ms) {
  if (guest->address != NULL) {
    take(guard, guest);
    dequeue(guard, guest);
    guest->state = to;
    put(guard, guest);
    enqueue(guard, guest, now_ms);
    make_room(guard, guest);
  }
}

void cv_guard_rename(struct cv_guard *guard, struct cv_guest *guest, uint64_t number, bool is_crowd) {
  struct address *to = guest->address == NULL ? NULL : find(guard, number, is_crowd);
  if (to != NULL && to != guest->address) {
    take(guard, guest);
    release(guard, guest->address);
    guest->address = to;
    to->guests++;
    put(guard, guest);
    make_room(guard, guest);
  }
}

enum cv_guest_state cv_guest_state(const struct cv_guest *guest) {
  return guest->state;
}

void cv_guard_leave(struct cv_guard *guard, struct cv_guest *guest) {
  if (guest->address != NULL) {
    forget(guard, guest);
  }
  free(guest);
}

void cv_guard_expire(struct cv_guard *guard, uint64_t now_ms) {
  for (int state = 0; state < CV_GUEST_STATES; state++) {
    while (guard->queue[state] != NULL && guard->queue[state]->until_ms <= now_ms) {
      drop(guard, guard->queue[state]);
    }
  }
}

uint64_t cv_guard_due_ms(const struct cv_guard *guard) {
  uint64_t due_ms = UINT64_MAX;
  for (int state = 0; state < CV_GUEST_STATES; state++) {
    if (guard->queue[state] != NULL && guard->queue[state]->until_ms < due_ms) {
      due_ms = guard->queue[state]->until_ms;
    }
  }
  return due_ms;
}
