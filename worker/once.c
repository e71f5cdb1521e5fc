/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/once.h"

#include <stdlib.h>
#include <string.h>

struct cv_once_rule cv_once_rule(uint32_t arms, bool pairs, uint64_t most) {
  uint64_t questions = cv_spec_all_questions(arms, pairs);
  most = most < questions ? most : questions;
  return (struct cv_once_rule){.questions = questions, .most = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX};
}

enum cv_err cv_once_init(struct cv_once *once, const struct cv_once_rule *rule, const char *name, uint64_t workers) {
  *once = (struct cv_once){.rule = *rule};
  memcpy(once->name, name, strlen(name) + 1);
  if (rule->questions == 0 || rule->by_name) {
    return CV_OK;
  }
  once->answers = calloc(workers, sizeof(*once->answers));
  if (once->answers == NULL) {
    *once = (struct cv_once){0};
    return CV_ERR_NOMEM;
  }
  cv_answered_init(&once->asked, rule->questions, rule->most, UINT32_MAX);
  return CV_OK;
}

void cv_once_fini(struct cv_once *once) {
  cv_answered_fini(&once->asked);
  free(once->answers);
  *once = (struct cv_once){0};
}

bool cv_once_fits(const struct cv_once *once, const struct cv_once_rule *rule, const char *name) {
  return once->rule.questions == rule->questions && once->rule.by_name == rule->by_name &&
         (rule->questions == 0 || (once->rule.most == rule->most && strcmp(once->name, name) == 0));
}

bool cv_once_is_full(const struct cv_once *once, uint64_t worker) {
  return once->answers != NULL && once->answers[worker] >= once->rule.most;
}

static bool is_among(uint64_t question, const uint64_t *others, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (others[i] == question) {
      return true;
    }
  }
  return false;
}

bool cv_once_may_ask(struct cv_once *once, uint64_t worker, const uint64_t *question, uint32_t questions) {
  if (once->answers == NULL) {
    return true;
  }
  if (once->answers[worker] >= once->rule.most || questions > once->rule.most - once->answers[worker]) {
    return false;
  }
  for (uint32_t i = 0; i < questions; i++) {
    if (is_among(question[i], question, i) || cv_answered_has(&once->asked, worker, question[i])) {
      return false;
    }
  }
  return true;
}

enum cv_err cv_once_note(struct cv_once *once, uint64_t worker, uint64_t question) {
  /* Under other terms there may have been more questions, or more answers: then the worker is full. */
  if (once->answers == NULL || question >= once->rule.questions || once->answers[worker] >= once->asked.each ||
      cv_answered_has(&once->asked, worker, question)) {
    return CV_OK;
  }
  struct cv_chunk *chunk;
  uint32_t nth = once->answers[worker];
  CV_TRY(cv_answered_touch(&once->asked, worker, nth, question, &chunk));
  cv_answered_set(&once->asked, chunk, worker, nth, question);
  once->answers[worker]++;
  once->total++;
  return CV_OK;
}

void cv_once_forget(struct cv_once *once, uint64_t worker, uint64_t question) {
  if (once->answers != NULL && question < once->rule.questions && cv_answered_has(&once->asked, worker, question)) {
    cv_answered_clear(&once->asked, worker, once->answers[worker], question);
    once->answers[worker]--;
    once->total--;
  }
}
