/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pending.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"

enum cv_err cv_pendings_init(struct cv_pendings *pendings, size_t entries, uint64_t key) {
  size_t buckets = 64;
  /* A power of two, so that a mask finds the bucket, and no fewer than entries. */
  while (buckets < entries) {
    buckets *= 2;
  }
  struct cv_pendings made = {.entries = entries, .mask = buckets - 1, .key = key};
  made.entry = calloc(entries, sizeof(*made.entry));
  made.bucket = calloc(buckets, sizeof(struct cv_pending *));
  if (made.entry == NULL || made.bucket == NULL) {
    cv_pendings_fini(&made);
    return CV_ERR_NOMEM;
  }
  /* Backwards, so that entries are taken in the order of their addresses. */
  for (size_t i = entries; i-- > 0;) {
    made.entry[i].next = made.free;
    made.free = &made.entry[i];
  }
  *pendings = made;
  return CV_OK;
}

void cv_pendings_fini(struct cv_pendings *pendings) {
  free(pendings->entry);
  free(pendings->split);
  free(pendings->bucket);
  *pendings = (struct cv_pendings){0};
}

static struct cv_pending **bucket_of(const struct cv_pendings *pendings, const uint8_t *ticket) {
  uint64_t word[CV_TICKET_BYTES / 8];
  /* Keyed: the broker chooses tickets, and must not be able to put all of them into one bucket. */
  uint64_t hash = pendings->key;
  memcpy(word, ticket, sizeof(word));
  for (size_t i = 0; i < CV_COUNT(word); i++) {
    hash = (hash ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  return &pendings->bucket[cv_mix64(hash) & pendings->mask];
}

struct cv_pending *cv_pendings_add(struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]) {
  struct cv_pending *pending = pendings->free;
  if (pending == NULL) {
    return NULL;
  }
  struct cv_pending **bucket = bucket_of(pendings, ticket);
  pendings->free = pending->next;
  memcpy(pending->ticket, ticket, CV_TICKET_BYTES);
  pending->question = 0;
  pending->open = 0;
  pending->waits = CV_WAITS_NOT;
  pending->split = NULL;
  pending->next = *bucket;
  *bucket = pending;
  pendings->count++;
  return pending;
}

struct cv_pending *cv_pendings_find(const struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]) {
  struct cv_pending *pending = *bucket_of(pendings, ticket);
  while (pending != NULL && memcmp(pending->ticket, ticket, CV_TICKET_BYTES) != 0) {
    pending = pending->next;
  }
  return pending;
}

void cv_pendings_remove(struct cv_pendings *pendings, struct cv_pending *pending) {
  struct cv_pending **at = bucket_of(pendings, pending->ticket);
  while (*at != pending) {
    at = &(*at)->next;
  }
  *at = pending->next;
  /* 0 marks the entry as free for loops over all entries. */
  pending->values = 0;
  pending->next = pendings->free;
  pendings->free = pending;
  pendings->count--;
}

enum cv_err cv_pendings_split(struct cv_pendings *pendings) {
  if (pendings->split == NULL) {
    pendings->split = calloc(pendings->entries, sizeof(*pendings->split));
  }
  return pendings->split == NULL ? CV_ERR_NOMEM : CV_OK;
}

bool cv_pending_has_token(const struct cv_pending *pending) {
  return pending->values > 0 && pending->open == 0 && pending->waits == CV_WAITS_NOT;
}
