/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which questions of a campaign each worker has answered: one question about one opinion. A question is an item, or an
 * unordered pair of items, by its number.
 *
 * The record of a worker is the shorter of two: a bit for each question, or a list of `each` numbers, packed into as
 * few bits as the numbers need. So 20 answers of each of five million workers about 1,000 items take 125 MB, not 625.
 * Records are stored in chunks of which none is split, so that a token changes one chunk.
 */
#ifndef CV_BASE_ANSWERED_H
#define CV_BASE_ANSWERED_H

#include "common/base/chunks.h"

struct cv_answered {
  struct cv_chunks chunks;
  uint64_t questions; /* in all; 0: nothing is recorded */
  uint32_t each;      /* answers of a worker */
  uint32_t width;     /* bits of a number in a list; 0: a bit for each question */
};

/* The question about an item and its opponent, 1 + its number; 0: none. */
uint64_t cv_answered_question(uint32_t item, uint32_t opponent);

/* At most `most` chunks. */
void cv_answered_init(struct cv_answered *asked, uint64_t questions, uint32_t each, uint32_t most);
void cv_answered_fini(struct cv_answered *asked);

/* Whether the worker has answered the question; false if nothing is recorded. */
bool cv_answered_has(struct cv_answered *asked, uint64_t worker, uint64_t question);
/* The chunk that the answer changes which is the worker's `nth`, from 0; NULL if nothing is recorded. CV_ERR_LIMIT,
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_answered_touch(struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question,
                                          struct cv_chunk **ret);
/* Records it as the worker's `nth` answer, in that chunk. */
void cv_answered_set(const struct cv_answered *asked, struct cv_chunk *chunk, uint64_t worker, uint32_t nth,
                     uint64_t question);
/* Forgets it, where all of the worker's `n` answers are known; the last one takes the place of it. */
void cv_answered_clear(struct cv_answered *asked, uint64_t worker, uint32_t n, uint64_t question);
/* The number of answers that are recorded, of all workers: to compare with other counts of them. */
uint64_t cv_answered_count(const struct cv_answered *asked);
/* As cv_chunks_has_room(), for an answer of a worker of the range. */
bool cv_answered_has_room(struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question, uint64_t first,
                          uint64_t last);

#endif
