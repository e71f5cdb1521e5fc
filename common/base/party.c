/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/party.h"

#include <string.h>

#include "common/base/spec.h"
#include "common/base/text.h"

static bool is_valid(const char *name, size_t n) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  for (size_t i = 0; i < n; i++) {
    if (memchr(plain, name[i], sizeof(plain) - 1) == NULL) {
      return false;
    }
  }
  /* No party may have the name that stands for all parties in a list. */
  bool is_any = n == strlen(CV_PARTY_ANY) && memcmp(name, CV_PARTY_ANY, n) == 0;
  return n > 0 && n < CV_NAME_BYTES && !is_any;
}

bool cv_party_is_valid(const char *name) {
  return is_valid(name, strlen(name));
}

bool cv_party_list_is_valid(const char *names) {
  size_t n, count = 0;
  for (const char *at = names, *word; (word = cv_text_word(&at, &n)) != NULL; count++) {
    if (!is_valid(word, n)) {
      return strcmp(names, CV_PARTY_ANY) == 0;
    }
  }
  return count > 0;
}

bool cv_party_list_has(const char *names, const char *name) {
  return strcmp(names, CV_PARTY_ANY) == 0 || cv_text_lists(names, name);
}
