/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/ring.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/before.h"
#include "common/crypto/ring_file.h"
#include "common/crypto/secret.h"

static const char head[] = "crowdveil seal keys 1\n";
static const char hex_digits[] = "0123456789abcdef";

enum { HEAD = sizeof(head) - 1, HEX = 2 * CV_KEY_BYTES, NUMBER_MOST = 999999999 };

/* ---- ids ---- */

struct cv_key_id cv_key_id(const struct cv_key *key) {
  static const char label[] = "crowdveil key id";
  struct cv_digest digest;
  struct cv_key_id id;
  cv_sha256(label, sizeof(label), key->bytes, sizeof(key->bytes), &digest);
  memcpy(id.bytes, digest.bytes, sizeof(id.bytes));
  return id;
}

struct cv_key_name cv_key_name(const struct cv_key_id *id) {
  struct cv_key_name name = {.text = ""};
  for (size_t i = 0; i < CV_KEY_NAME_DIGITS; i++) {
    name.text[i] = hex_digits[id->bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
  }
  return name;
}

/* ---- the ring ---- */

void cv_ring_cut(struct cv_ring *ring, size_t n) {
  while (ring->n > n) {
    ring->n--;
    cv_secret_free(ring->item[ring->n].key);
    ring->item[ring->n] = (struct cv_ring_key){.key = NULL};
  }
}

void cv_ring_fini(struct cv_ring *ring) {
  if (ring != NULL) {
    cv_ring_cut(ring, 0);
  }
}

static enum cv_err append(struct cv_ring *ring, const struct cv_ring_key *item) {
  if (ring->n == CV_RING_KEYS) {
    return CV_ERR_LIMIT;
  }
  struct cv_key *copy = cv_secret_key(item->key);
  if (copy == NULL) {
    return CV_ERR_NOMEM;
  }
  ring->item[ring->n++] = (struct cv_ring_key){.number = item->number, .made_s = item->made_s, .key = copy};
  return CV_OK;
}

enum cv_err cv_ring_add(struct cv_ring *ring, const struct cv_key *key, uint64_t made_s) {
  struct cv_ring_key item = {.number = ring->n == 0 ? 1 : ring->item[0].number + 1, .made_s = made_s};
  if (ring->n == CV_RING_KEYS || item.number > NUMBER_MOST) {
    return CV_ERR_LIMIT;
  }
  item.key = cv_secret_key(key);
  if (item.key == NULL) {
    return CV_ERR_NOMEM;
  }
  memmove(ring->item + 1, ring->item, ring->n * sizeof(item));
  ring->item[0] = item;
  ring->n++;
  return CV_OK;
}

enum cv_err cv_ring_renew(struct cv_ring *ring, uint64_t made_s) {
  struct cv_key key;
  CV_TRY(cv_key_random(&key));
  enum cv_err err = cv_ring_add(ring, &key, made_s);
  cv_key_wipe(&key);
  return err;
}

enum cv_err cv_ring_copy(const struct cv_ring *ring, size_t n, struct cv_ring *ret) {
  struct cv_ring copy = {.n = 0};
  for (size_t i = 0; i < ring->n && i < n; i++) {
    enum cv_err err = append(&copy, &ring->item[i]);
    if (err != CV_OK) {
      cv_ring_fini(&copy);
      return err;
    }
  }
  *ret = copy;
  return CV_OK;
}

const struct cv_key *cv_ring_find(const struct cv_ring *ring, const struct cv_key_id *id) {
  for (size_t i = 0; i < ring->n; i++) {
    struct cv_key_id own = cv_key_id(ring->item[i].key);
    if (memcmp(own.bytes, id->bytes, sizeof(own.bytes)) == 0) {
      return ring->item[i].key;
    }
  }
  return NULL;
}

struct cv_ring_names cv_ring_names(const struct cv_ring *ring) {
  struct cv_ring_names names = {.text = ""};
  for (size_t i = 0, used = 0; i < ring->n; i++) {
    struct cv_key_id id = cv_key_id(ring->item[i].key);
    used += (size_t)snprintf(names.text + used, sizeof(names.text) - used, "%s%s", i == 0 ? "" : ", ",
                             cv_key_name(&id).text);
  }
  return names;
}

/* ---- reading ---- */

/* A decimal number without a sign, leading zeros or overflow, up to `end`. */
static bool take_number(const char **at, const char *last, char end, uint64_t most, uint64_t *ret) {
  uint64_t number = 0;
  const char *from = *at;
  for (; *at < last && **at >= '0' && **at <= '9'; (*at)++) {
    uint64_t digit = (uint64_t)(**at - '0');
    if (number > (most - digit) / 10) {
      return false;
    }
    number = 10 * number + digit;
  }
  if (*at == from || (*from == '0' && *at > from + 1) || *at == last || **at != end) {
    return false;
  }
  (*at)++;
  *ret = number;
  return true;
}

static bool take_key(const char **at, const char *last, struct cv_key *ret) {
  for (size_t i = 0; i < HEX; i++, (*at)++) {
    const char *digit = *at < last && **at != '\0' ? strchr(hex_digits, **at) : NULL;
    if (digit == NULL) {
      return false;
    }
    uint8_t value = (uint8_t)(digit - hex_digits);
    ret->bytes[i / 2] = (uint8_t)(i % 2 == 0 ? value << 4 : ret->bytes[i / 2] | value);
  }
  return *at < last && *(*at)++ == '\n';
}

static enum cv_err fail_line(const char *path, size_t line, const char *what, struct cv_why *why) {
  return cv_fail(why, CV_ERR_FORMAT, "%s: line %zu: %s", path, line, what);
}

static enum cv_err take_line(const char *path, const char **at, const char *last, struct cv_ring *ring,
                             struct cv_why *why) {
  struct cv_key key = {{0}};
  struct cv_ring_key item = {.key = &key};
  size_t line = ring->n + 2;
  uint64_t number = 0;
  enum cv_err err = CV_OK;
  if (!take_number(at, last, ' ', NUMBER_MOST, &number) ||
      !take_number(at, last, ' ', (uint64_t)INT64_MAX, &item.made_s) || !take_key(at, last, &key)) {
    err = fail_line(path, line, "not a key, or cut off; expected NUMBER SECONDS KEY with 64 digits 0-9 and a-f", why);
  } else if (number == 0 || (ring->n > 0 && number >= ring->item[ring->n - 1].number)) {
    err = fail_line(path, line, "wrong number of a key; expected numbers above 0, the newest key first", why);
  } else {
    struct cv_key_id id = cv_key_id(&key);
    item.number = (uint32_t)number;
    err = cv_ring_find(ring, &id) != NULL ? fail_line(path, line, "a key a second time; expected different keys", why)
                                          : append(ring, &item);
  }
  cv_key_wipe(&key);
  if (err == CV_ERR_LIMIT) {
    return cv_fail(why, CV_ERR_FORMAT, "%s: line %zu: too many keys; expected at most %d", path, line, CV_RING_KEYS);
  }
  return err == CV_ERR_NOMEM ? cv_fail(why, err, "%s: out of memory", path) : err;
}

static enum cv_err parse_text(const char *path, const char *bytes, size_t n, struct cv_ring *ring, struct cv_why *why) {
  const char *at = bytes + HEAD, *last = bytes + n;
  while (at < last) {
    CV_TRY(take_line(path, &at, last, ring, why));
  }
  return ring->n > 0 ? CV_OK : fail_line(path, 2, "missing; expected a key", why);
}

enum cv_err cv_ring_parse(const char *path, const char *bytes, size_t n, struct cv_ring *ret, struct cv_why *why) {
  struct cv_ring ring = {.n = 0};
  enum cv_err err =
      n >= HEAD && memcmp(bytes, head, HEAD) == 0 ? parse_text(path, bytes, n, &ring, why)
      : n == CV_KEY_BYTES
          ? cv_fail(why, CV_ERR_VERSION, "%s: a key of 32 bytes, " CV_BEFORE "; " CV_BEFORE_BROKER, path)
          : cv_fail(why, CV_ERR_FORMAT, "%s: not a key file (%zu bytes); expected the first line \"%.*s\"", path, n,
                    HEAD - 1, head);
  if (err != CV_OK) {
    cv_ring_fini(&ring);
    return err;
  }
  *ret = ring;
  return CV_OK;
}

enum cv_err cv_ring_read(const char *path, struct cv_ring *ret, struct cv_why *why) {
  char bytes[CV_RING_FILE_BYTES + 1];
  size_t n = 0;
  enum cv_err err = cv_ring_file_read(path, bytes, sizeof(bytes), &n, why);
  if (err == CV_OK) {
    err = cv_ring_parse(path, bytes, n, ret, why);
  }
  OPENSSL_cleanse(bytes, sizeof(bytes));
  return err;
}

/* ---- writing ---- */

/* `to` has room for CV_RING_FILE_BYTES; returns the length. */
static size_t print(const struct cv_ring *ring, char *to) {
  size_t n = HEAD;
  memcpy(to, head, HEAD);
  for (size_t i = 0; i < ring->n; i++) {
    const struct cv_ring_key *item = &ring->item[i];
    n += (size_t)snprintf(to + n, CV_RING_FILE_BYTES - n, "%" PRIu32 " %" PRIu64 " ", item->number, item->made_s);
    for (size_t j = 0; j < HEX; j++) {
      to[n++] = hex_digits[item->key->bytes[j / 2] >> (j % 2 == 0 ? 4 : 0) & 15];
    }
    to[n++] = '\n';
  }
  return n;
}

enum cv_err cv_ring_create(const char *path, uint64_t made_s, struct cv_ring *ret, struct cv_why *why) {
  char bytes[CV_RING_FILE_BYTES + 1];
  struct cv_ring ring = {.n = 0};
  enum cv_err err = cv_ring_renew(&ring, made_s);
  if (err != CV_OK) {
    return cv_fail(why, err, "%s: cannot make a new key: %s", path, cv_err_text(err));
  }
  err = cv_ring_file_create(path, bytes, print(&ring, bytes), why);
  OPENSSL_cleanse(bytes, sizeof(bytes));
  if (err != CV_OK) {
    cv_ring_fini(&ring);
    return err;
  }
  *ret = ring;
  return CV_OK;
}

enum cv_err cv_ring_replace(const char *path, const struct cv_ring *ring, struct cv_why *why) {
  char bytes[CV_RING_FILE_BYTES + 1];
  enum cv_err err = cv_ring_file_replace(path, bytes, print(ring, bytes), why);
  OPENSSL_cleanse(bytes, sizeof(bytes));
  return err;
}
