/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/base/party.h"
#include "common/base/text.h"

static enum cv_err check_epsilon(const struct cv_accept *accept, uint64_t epsilon_micro, const char *what,
                                 struct cv_why *why) {
  if (epsilon_micro <= accept->epsilon_micro) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED, "%s %.6f is not accepted here; expected at most %.6f, which is accept.epsilon",
                 what, (double)epsilon_micro / (double)CV_MICRO, (double)accept->epsilon_micro / (double)CV_MICRO);
}

static enum cv_err check_law(const struct cv_accept *accept, const struct cv_local *law, struct cv_why *why) {
  CV_TRY(check_epsilon(accept, law->epsilon_micro, "the privatizer's epsilon", why));
  if (law->delta_pico <= accept->delta_pico) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED,
                 "the privatizer's delta %.12g is not accepted here; expected at most %.12g, which is accept.delta",
                 (double)law->delta_pico / (double)CV_PICO, (double)accept->delta_pico / (double)CV_PICO);
}

bool cv_accept_is_local(const char *privatizers) {
  for (size_t i = 0; cv_local_names[i] != NULL; i++) {
    if (i != CV_LOCAL_NONE && cv_text_lists(privatizers, cv_local_names[i])) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_accept_requester(const struct cv_accept *accept, const char *requester, struct cv_why *why) {
  /* The broker states the requester: the list protects against other requesters, not against the broker. */
  return cv_party_list_has(accept->requesters, requester)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED, "requester %s is not served here; expected one of %s", requester,
                       accept->requesters);
}

static enum cv_err read_pair(const char *word, size_t n, struct cv_duo *ret, struct cv_why *why) {
  char text[2 * CV_FINGERPRINT_DIGITS + 2] = "";
  if (n < sizeof(text)) {
    memcpy(text, word, n);
  }
  /* A word of another length is not read to its end, or has no plus where it is expected. */
  if (n != sizeof(text) - 1 || text[CV_FINGERPRINT_DIGITS] != '+' || !cv_fingerprint_read(text, &ret->broker) ||
      !cv_fingerprint_read(text + CV_FINGERPRINT_DIGITS + 1, &ret->cobroker)) {
    char shown[64];
    (void)snprintf(shown, sizeof(shown), "%.*s", (int)(n < sizeof(shown) ? n : sizeof(shown) - 1), word);
    return cv_fail(why, CV_ERR_INVALID,
                   "accept.pairs has %s; expected BROKER+COBROKER, the fingerprints of two keys of %d hexadecimal "
                   "digits each",
                   cv_text_quote(shown).text, CV_FINGERPRINT_DIGITS);
  }
  if (cv_digest_is_same(&ret->broker, &ret->cobroker)) {
    return cv_fail(why, CV_ERR_INVALID, "accept.pairs has %.*s twice in a pair; expected the keys of two parties",
                   CV_FINGERPRINT_DIGITS, text);
  }
  return CV_OK;
}

enum cv_err cv_accept_read_pairs(const char *text, struct cv_duo **ret, size_t *ret_pairs, struct cv_why *why) {
  struct cv_duo *all = NULL;
  size_t count = 0, cap = 0, n;
  enum cv_err err = CV_OK;
  for (const char *word = NULL; err == CV_OK && text != NULL && (word = cv_text_word(&text, &n)) != NULL;) {
    struct cv_duo *duo = CV_ARRAY_PUSH(all, count, cap);
    err = duo == NULL ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : read_pair(word, n, duo, why);
  }
  if (err != CV_OK) {
    free(all);
    return err;
  }
  *ret = all;
  *ret_pairs = count;
  return CV_OK;
}

/* Whether a pair has both keys; of the co-broker any, while it is not known. */
static bool lists(const struct cv_accept *accept, const struct cv_digest *broker, const struct cv_digest *cobroker) {
  bool any = false;
  for (size_t i = 0; i < accept->pairs; i++) {
    any = any || (cv_digest_is_same(&accept->pair[i].broker, broker) &&
                  (cobroker == NULL || cv_digest_is_same(&accept->pair[i].cobroker, cobroker)));
  }
  return any;
}

enum cv_err cv_accept_brokers(const struct cv_accept *accept, const struct cv_terms *terms,
                              const struct cv_digest *broker, const struct cv_digest *cobroker, struct cv_why *why) {
  bool two = terms->split.score_bits > 0;
  if (!two && accept->pairs > 0) {
    return cv_fail(why, CV_ERR_DENIED, "the campaign has one broker; expected two, a pair of accept.pairs");
  }
  if (two && accept->pairs == 0) {
    return cv_fail(why, CV_ERR_DENIED,
                   "the campaign has two brokers; expected one, since this worker has no accept.pairs and cobroker");
  }
  if (two && !lists(accept, broker, NULL)) {
    return cv_fail(why, CV_ERR_DENIED, "the broker's key is %s; expected that of a pair in accept.pairs",
                   cv_fingerprint_of(broker).text);
  }
  if (two && !lists(accept, broker, cobroker)) {
    return cv_fail(why, CV_ERR_DENIED,
                   "the co-broker's key is %s; expected the one that accept.pairs has for the broker",
                   cv_fingerprint_of(cobroker).text);
  }
  return CV_OK;
}

enum cv_err cv_accept_terms(const struct cv_accept *accept, const struct cv_terms *terms, struct cv_privatizer **ret,
                            struct cv_why *why) {
  /* Names first: an unknown privatizer has no law that could be compared with a limit. */
  if (!cv_text_lists(accept->privatizers, terms->privatizer.name)) {
    return cv_fail(why, CV_ERR_DENIED, "privatizer %s is not accepted here; expected one of %s (accept.privatizers)",
                   terms->privatizer.name, accept->privatizers);
  }
  if (!cv_text_lists(accept->mechanisms, terms->mechanism.name)) {
    return cv_fail(why, CV_ERR_DENIED, "mechanism %s is not accepted here; expected one of %s (accept.mechanisms)",
                   terms->mechanism.name, accept->mechanisms);
  }
  CV_TRY(check_epsilon(accept, terms->epsilon_micro, "epsilon", why));
  struct cv_privatizer *privatizer;
  CV_TRY(cv_privatizer_new(&terms->privatizer, terms->arms, &privatizer, why));
  /* The law as this worker's own code will apply it, not what the terms say about it. */
  if (privatizer->law.epsilon_micro != CV_EPSILON_NONE) {
    enum cv_err err = check_law(accept, &privatizer->law, why);
    if (err != CV_OK) {
      cv_privatizer_free(privatizer);
      return err;
    }
  }
  *ret = privatizer;
  return CV_OK;
}
