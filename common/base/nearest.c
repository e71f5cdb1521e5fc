/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/nearest.h"

#include <stdint.h>
#include <string.h>

#include "common/base/text.h"

/* Levenshtein distance of two short words: insertions, deletions and replacements. */
static size_t distance(const char *a, const char *b) {
  enum { MOST = 40 };
  /* One row of the table is enough; `diagonal` keeps the value that it overwrites. */
  size_t row[MOST + 1];
  size_t n = strlen(b);
  /* No key is longer than this, but the typed text may be. */
  if (n > MOST || strlen(a) > MOST) {
    return SIZE_MAX;
  }
  for (size_t j = 0; j <= n; j++) {
    row[j] = j;
  }
  for (size_t i = 0; a[i] != '\0'; i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < n; j++) {
      size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      size_t skip = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
      diagonal = row[j + 1];
      row[j + 1] = change < skip ? change : skip;
    }
  }
  return row[n];
}

const char *cv_nearest(const char *text, const char *const *words, size_t n) {
  const char *best = NULL;
  size_t best_distance = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(text, words[i]);
    /* Similar: one typing error, plus one for every four characters. */
    if (d < best_distance && d <= 1 + strlen(words[i]) / 4) {
      best = words[i];
      best_distance = d;
    }
  }
  return best;
}

enum cv_err cv_nearest_fail(struct cv_why *why, const char *kind, const char *text, const char *const *words,
                            size_t n) {
  const char *nearest = cv_nearest(text, words, n);
  const struct cv_text_piece quote = cv_text_quote(text);
  if (nearest != NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "unknown %s %s; did you mean \"%s\"?", kind, quote.text, nearest);
  }
  char list[320];
  cv_text_either(words, n, list, sizeof(list));
  return cv_fail(why, CV_ERR_NOT_FOUND, "unknown %s %s; expected one of %s", kind, quote.text, list);
}
