/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/accept.h"

#include "common/base/grid.h"
#include "common/base/party.h"
#include "common/base/text.h"

static enum cv_err check_epsilon(const struct cv_accept *accept, uint64_t epsilon_micro, const char *what,
                                 struct cv_why *why) {
  if (epsilon_micro <= accept->epsilon_micro) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED, "%s %.6f is not accepted here; expected at most %.6f", what,
                 (double)epsilon_micro / (double)CV_MICRO, (double)accept->epsilon_micro / (double)CV_MICRO);
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

enum cv_err cv_accept_terms(const struct cv_accept *accept, const struct cv_terms *terms, struct cv_privatizer **ret,
                            struct cv_why *why) {
  /* Names first: an unknown privatizer has no law that could be compared with a limit. */
  if (!cv_text_lists(accept->privatizers, terms->privatizer.name)) {
    return cv_fail(why, CV_ERR_DENIED, "privatizer %s is not accepted here; expected one of %s", terms->privatizer.name,
                   accept->privatizers);
  }
  if (!cv_text_lists(accept->mechanisms, terms->mechanism.name)) {
    return cv_fail(why, CV_ERR_DENIED, "mechanism %s is not accepted here; expected one of %s", terms->mechanism.name,
                   accept->mechanisms);
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
