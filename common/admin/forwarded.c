/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/forwarded.h"

#include <string.h>
#include <strings.h>

static const char BLANKS[] = " \t";

/* The last element of a list, without blanks around it. */
static const char *last_of(const char *list, size_t *ret_n) {
  const char *comma = strrchr(list, ',');
  const char *word = comma == NULL ? list : comma + 1;
  word += strspn(word, BLANKS);
  size_t n = strlen(word);
  while (n > 0 && strchr(BLANKS, word[n - 1]) != NULL) {
    n--;
  }
  *ret_n = n;
  return word;
}

/* The value of for=, with or without quotes, among the pairs of an element. */
static bool read_pairs(const char *pairs, size_t n, struct cv_ip *ret) {
  for (size_t at = 0, pair_n; at < n; at += pair_n + 1) {
    at += strspn(pairs + at, BLANKS);
    pair_n = at < n ? strcspn(pairs + at, ";") : 0;
    pair_n = pair_n < n - at ? pair_n : n - at;
    if (pair_n > 4 && strncasecmp(pairs + at, "for=", 4) == 0) {
      const char *value = pairs + at + 4;
      size_t value_n = pair_n - 4;
      bool quoted = value_n >= 2 && value[0] == '"' && value[value_n - 1] == '"';
      return cv_ip_read(value + quoted, value_n - 2 * (size_t)quoted, ret);
    }
  }
  return false;
}

bool cv_forwarded_read(const char *x_forwarded_for, const char *forwarded, struct cv_ip *ret) {
  struct cv_ip told[2];
  size_t n, count = 0;
  if (x_forwarded_for != NULL) {
    const char *word = last_of(x_forwarded_for, &n);
    if (!cv_ip_read(word, n, &told[count++])) {
      return false;
    }
  }
  if (forwarded != NULL) {
    const char *word = last_of(forwarded, &n);
    if (!read_pairs(word, n, &told[count++])) {
      return false;
    }
  }
  if (count == 0 || (count == 2 && memcmp(&told[0], &told[1], sizeof(told[0])) != 0)) {
    return false;
  }
  *ret = told[0];
  return true;
}
