/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/forwarded.h"

#include <string.h>
#include <strings.h>

#include "common/base/text.h"

enum cv_err cv_proxies_read(const char *list, struct cv_proxies *ret, struct cv_why *why) {
  const char *word;
  size_t n;
  *ret = (struct cv_proxies){.count = 0};
  while ((word = cv_text_word(&list, &n)) != NULL) {
    if (ret->count == CV_PROXIES_MAX) {
      return cv_fail(why, CV_ERR_FORMAT, "more than %d addresses", CV_PROXIES_MAX);
    }
    if (!cv_ip_read(word, n, &ret->ip[ret->count++])) {
      return cv_fail(why, CV_ERR_FORMAT, "'%.*s' is no IP address", n < 64 ? (int)n : 64, word);
    }
  }
  return ret->count > 0 ? CV_OK : cv_fail(why, CV_ERR_FORMAT, "empty; expected IP addresses");
}

bool cv_proxies_have(const struct cv_proxies *proxies, const struct cv_ip *ip) {
  bool found = proxies->has_loopback && cv_ip_is_loopback(ip);
  for (size_t i = 0; i < proxies->count; i++) {
    found = found || memcmp(ip, &proxies->ip[i], sizeof(*ip)) == 0;
  }
  return found;
}

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
