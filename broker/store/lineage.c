/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/lineage.h"

#include <stdlib.h>
#include <string.h>

void cv_lineage_fini(struct cv_lineage *lineage) {
  free(lineage->item);
  *lineage = (struct cv_lineage){.n = 0};
}

enum cv_err cv_lineage_add(struct cv_lineage *lineage, const struct cv_lineage_term *item) {
  if (item->number == 0 || (lineage->n > 0 && item->number <= lineage->item[lineage->n - 1].number)) {
    return CV_ERR_DAMAGED;
  }
  if (lineage->n == lineage->cap) {
    size_t cap = lineage->cap == 0 ? 16 : 2 * lineage->cap;
    struct cv_lineage_term *more = reallocarray(lineage->item, cap, sizeof(*more));
    if (more == NULL) {
      return CV_ERR_NOMEM;
    }
    lineage->item = more;
    lineage->cap = cap;
  }
  lineage->item[lineage->n++] = *item;
  return CV_OK;
}

static int compare(const void *key, const void *item) {
  uint64_t a = *(const uint64_t *)key, b = ((const struct cv_lineage_term *)item)->number;
  return a < b ? -1 : a > b;
}

const struct cv_lineage_term *cv_lineage_find(const struct cv_lineage *lineage, uint64_t number) {
  return lineage->n == 0 ? NULL : bsearch(&number, lineage->item, lineage->n, sizeof(*lineage->item), compare);
}

enum cv_lineage_verdict cv_lineage_judge(const struct cv_lineage *lineage, const struct cv_anchor_mark *mark,
                                         const struct cv_anchor_mark *anchor) {
  if (memcmp(mark->database, anchor->database, sizeof(mark->database)) != 0) {
    return CV_LINEAGE_FOREIGN;
  }
  const struct cv_lineage_term *term = cv_lineage_find(lineage, anchor->term);
  if (term == NULL || memcmp(term->id, anchor->term_id, sizeof(term->id)) != 0 ||
      anchor->commit < term->commit_before) {
    return CV_LINEAGE_FORKED;
  }
  if (anchor->commit == term->commit_before) { /* written when the term began */
    return cv_digest_is_same(&term->hash_before, &anchor->hash) ? CV_LINEAGE_HOLDS : CV_LINEAGE_FORKED;
  }
  /* The last commit of a term is the one before the next term; of the last term it is the database's own. */
  bool is_last = term + 1 == lineage->item + lineage->n;
  uint64_t last = is_last ? mark->commit : term[1].commit_before;
  const struct cv_digest *hash = is_last ? &mark->hash : &term[1].hash_before;
  if (anchor->commit > last) {
    return CV_LINEAGE_BEHIND;
  }
  return anchor->commit == last && !cv_digest_is_same(hash, &anchor->hash) ? CV_LINEAGE_FORKED : CV_LINEAGE_HOLDS;
}

const char *cv_lineage_text(enum cv_lineage_verdict verdict) {
  switch (verdict) {
    case CV_LINEAGE_FOREIGN:
      return "the anchor is of another database";
    case CV_LINEAGE_FORKED:
      return "the anchor is of another history than the database";
    case CV_LINEAGE_BEHIND:
      return "the database is older than the anchor";
    case CV_LINEAGE_HOLDS:
    default:
      return "";
  }
}
