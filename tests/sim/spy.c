/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the disks: for tickets, keys and partial sums in plain text, and for nonces that are used twice. */
#include <string.h>

#include "tests/sim/server.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"
#include "tests/sim/two.h"

void truth_sealed(struct truth *truth, const uint8_t *nonce) {
  uint64_t first;
  tally(TALLY_SEALED);
  memcpy(&first, nonce, sizeof(first));
  if (first != 0 && !seen_add(&truth->nonces, first)) {
    world_fail(truth->world, "5: two values are sealed with the same nonce");
  }
}

void truth_drew(struct truth *truth, uint64_t bits) {
  if (!seen_add(&truth->nonces, bits)) {
    world_fail(truth->world, "2: two terms draw the same noise");
  }
}

void truth_wrapped(struct truth *truth, const uint8_t *key) {
  memcpy(truth->key[truth->keys++ % SPIED], key, CV_KEY_BYTES);
}

/* As the journal stores them, little-endian, tokens before sum: long enough not to occur by chance. */
void truth_spy(struct truth *truth, uint32_t tokens, int64_t sum) {
  enum { BYTES = 3, TOKENS = 2 };
  for (int i = 0; i < BYTES; i++) {
    if ((sum >> (8 * i) & 0xff) == 0) {
      return;
    }
  }
  if (tokens >= TOKENS) {
    truth->partial[truth->partials++ % SPIED] = (struct partial){.tokens = tokens, .sum = sum};
  }
}

enum { PARTIAL_BYTES = 12 };

/* The byte strings to search for, by their first eight bytes. */
struct word {
  uint64_t bits;
  const char *what;
  const uint8_t *bytes;
  size_t n;
};

struct words {
  uint8_t partial[SPIED][PARTIAL_BYTES];
  struct word word[3 * SPIED + CV_RING_KEYS + TWO_WORDS];
  size_t n;
  uint64_t hint[256]; /* a bit for each hash that some of them have */
};

static uint32_t hash_of(uint64_t bits) {
  return (uint32_t)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 50);
}

static void add_word(struct words *words, const char *what, const uint8_t *bytes, size_t n) {
  uint64_t bits;
  memcpy(&bits, bytes, sizeof(bits));
  words->word[words->n++] = (struct word){.bits = bits, .what = what, .bytes = bytes, .n = n};
  words->hint[hash_of(bits) / 64] |= UINT64_C(1) << hash_of(bits) % 64;
}

/* Of campaigns with two brokers. */
static void add_shares(const struct truth *truth, struct words *words) {
  const uint8_t *bytes;
  size_t n;
  for (size_t i = 0; truth->world->two != NULL && two_secret(truth->world->two, i, &bytes, &n); i++) {
    add_word(words, n == sizeof(uint64_t) ? "a share, or a sum of shares" : "a helper's seed", bytes, n);
  }
}

static void collect_words(const struct truth *truth, struct words *ret) {
  *ret = (struct words){.n = 0};
  for (size_t i = 0; i < SPIED && i < truth->partials; i++) {
    const struct partial *partial = &truth->partial[i];
    memcpy(ret->partial[i], &partial->tokens, sizeof(partial->tokens));
    memcpy(ret->partial[i] + sizeof(partial->tokens), &partial->sum, sizeof(partial->sum));
    add_word(ret, "an open epoch's sum", ret->partial[i], PARTIAL_BYTES);
  }
  for (size_t i = 0; i < SPIED && i < truth->tickets; i++) {
    add_word(ret, "a ticket", truth->ticket[i], CV_TICKET_BYTES);
  }
  for (size_t i = 0; i < SPIED && i < truth->keys; i++) {
    add_word(ret, "a stored key", truth->key[i], CV_KEY_BYTES);
  }
  for (size_t i = 0; i < truth->world->ring.n; i++) {
    add_word(ret, "a master key", truth->world->ring.item[i].key->bytes, CV_KEY_BYTES);
  }
  add_shares(truth, ret);
  const uint8_t *key = NULL;
  for (size_t i = 0; truth->world->two != NULL && (key = two_key(truth->world->two, i)) != NULL; i++) {
    add_word(ret, "a verify key", key, CV_SPLIT_SEED_BYTES);
  }
}

static void compare_words(struct truth *truth, const struct words *words, const char *file, uint64_t bits,
                          const uint8_t *at, size_t left) {
  for (size_t i = 0; i < words->n; i++) {
    const struct word *word = &words->word[i];
    if (word->bits == bits && left >= word->n && memcmp(at, word->bytes, word->n) == 0) {
      world_fail(truth->world, "5: %s holds %s in plain text", file, word->what);
    }
  }
}

static void search_bytes(struct truth *truth, const struct words *words, const char *file, const uint8_t *bytes,
                         size_t n) {
  for (size_t i = 0; i + sizeof(uint64_t) <= n; i++) {
    uint64_t bits;
    memcpy(&bits, bytes + i, sizeof(bits));
    if ((words->hint[hash_of(bits) / 64] >> hash_of(bits) % 64 & 1) != 0) {
      compare_words(truth, words, file, bits, bytes + i, n - i);
    }
  }
}

struct search {
  struct truth *truth;
  const struct words *words;
};

static void search_row(void *data, const uint8_t *bytes, size_t n) {
  const struct search *search = data;
  search_bytes(search->truth, search->words, "the server", bytes, n);
}

void truth_search(struct truth *truth) {
  struct world *world = truth->world;
  const struct disk *disks[] = {&world->disk_broker, &world->disk_thirdparty, &world->disk_cobroker,
                                &world->disk_second};
  struct words words;
  tally(TALLY_SEARCHED);
  collect_words(truth, &words);
  for (size_t i = 0; i < CV_COUNT(disks); i++) {
    for (size_t j = 0; j < DISK_FILES; j++) {
      const struct disk_file *file = &disks[i]->file[j];
      search_bytes(truth, &words, file->name, file->now, file->now_n);
      search_bytes(truth, &words, file->name, file->durable, file->durable_n);
    }
  }
  if (world->server != NULL) {
    server_bytes(world->server, search_row, &(struct search){.truth = truth, .words = &words});
  }
}

void truth_overhear(struct truth *truth, const char *whose, const uint8_t *bytes, size_t n) {
  struct words words = {.n = 0};
  add_shares(truth, &words);
  tally(TALLY_OVERHEARD);
  search_bytes(truth, &words, whose, bytes, n);
}
