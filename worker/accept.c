/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/accept.h"

#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"

/* The next word of a list from `*at` on, which then stands behind it; NULL at the end. */
static const char *next_word(const char **at, size_t *ret_n) {
  const char *const separators = ", \t";
  const char *word = *at + strspn(*at, separators);
  *ret_n = strcspn(word, separators);
  *at = word + *ret_n;
  return *ret_n == 0 ? NULL : word;
}

static bool lists(const char *words, const char *name) {
  size_t n;
  for (const char *word; (word = next_word(&words, &n)) != NULL;) {
    if (n == strlen(name) && memcmp(word, name, n) == 0) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_accept_check(const struct cv_accept *accept, struct cv_why *why) {
  char known[160] = "";
  for (size_t i = 0, used = 0; cv_privatizer_at(i) != NULL && used < sizeof(known); i++) {
    used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ",
                             cv_local_name(cv_privatizer_at(i)->kind));
  }
  size_t n;
  const char *at = accept->privatizers;
  for (const char *word; (word = next_word(&at, &n)) != NULL;) {
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)), word);
    if (cv_privatizer_find(name) == NULL) {
      return cv_fail(why, CV_ERR_INVALID, "accept.privatizers names \"%s\"; expected some of %s", name, known);
    }
  }
  return CV_OK;
}

static enum cv_err check_epsilon(const struct cv_accept *accept, uint64_t epsilon_micro, const char *what,
                                 struct cv_why *why) {
  if (epsilon_micro <= accept->epsilon_micro) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED, "%s %.6f is not accepted here; expected at most %.6f", what,
                 (double)epsilon_micro / (double)CV_MICRO, (double)accept->epsilon_micro / (double)CV_MICRO);
}

enum cv_err cv_accept_terms(const struct cv_accept *accept, const struct cv_terms *terms, struct cv_privatizer **ret,
                            struct cv_why *why) {
  if (!lists(accept->privatizers, terms->privatizer.name)) {
    return cv_fail(why, CV_ERR_DENIED, "privatizer %s is not accepted here; expected one of %s", terms->privatizer.name,
                   accept->privatizers);
  }
  if (!lists(accept->mechanisms, terms->mechanism.name)) {
    return cv_fail(why, CV_ERR_DENIED, "mechanism %s is not accepted here; expected one of %s", terms->mechanism.name,
                   accept->mechanisms);
  }
  CV_TRY(check_epsilon(accept, terms->epsilon_micro, "epsilon", why));
  struct cv_privatizer *privatizer;
  CV_TRY(cv_privatizer_new(&terms->privatizer, terms->arms, &privatizer, why));
  if (privatizer->law.epsilon_micro != CV_EPSILON_NONE) {
    enum cv_err err = check_epsilon(accept, privatizer->law.epsilon_micro, "the privatizer's epsilon", why);
    if (err != CV_OK) {
      cv_privatizer_free(privatizer);
      return err;
    }
  }
  *ret = privatizer;
  return CV_OK;
}
