/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/turn.h"

/* Only the first failure is told: what fails after it mostly follows from it. */
void cv_turn_fail(struct cv_turn *turn, const char *what, const struct cv_why *why) {
  if (!turn->failed) {
    turn->failed = true;
    turn->ops->fail(turn->data, what, why);
  }
}

/* Returns true if the batch was stored; false if it was handed over, or failed. */
static bool store(struct cv_turn *turn, bool crowded) {
  const struct cv_turn_ops *ops = turn->ops;
  /* A thread switch costs more than a fast commit, and with a small batch peers wait for exactly that commit. */
  if (ops->hand_over != NULL && (crowded || !ops->is_quick(turn->data))) {
    /* Before the call: from here on no second batch is closed until cv_turn_committed(). */
    turn->busy = true;
    ops->hand_over(turn->data);
    return false;
  }
  struct cv_why why;
  if (ops->commit(turn->data, &why) != CV_OK) {
    cv_turn_fail(turn, "cannot store", &why);
    return false;
  }
  return true;
}

/* Returns true if there is a batch to close now. */
static bool goes_on(struct cv_turn *turn) {
  if (!turn->failed && !turn->busy && turn->ops->between != NULL) {
    turn->ops->between(turn->data);
  }
  return !turn->failed && !turn->busy && turn->ops->is_pending(turn->data);
}

void cv_turn_over(struct cv_turn *turn) {
  const struct cv_turn_ops *ops = turn->ops;
  while (goes_on(turn)) {
    size_t gathered = ops->gathered == NULL ? 0 : ops->gathered(turn->data);
    /* While paced, only a full batch is closed. */
    if (turn->paced && gathered < turn->full) {
      return;
    }
    bool has_content, crowded = ops->gathered != NULL && gathered >= turn->crowd;
    /* The batch ends here: events that come while it is stored belong to the next one. */
    if (ops->flush(turn->data, &has_content) != CV_OK) {
      const struct cv_why why = {.text = "out of memory"};
      cv_turn_fail(turn, "cannot continue", &why);
      return;
    }
    turn->paced = ops->pace != NULL && (crowded || (ops->has_rest != NULL && ops->has_rest(turn->data)));
    if (turn->paced) {
      ops->pace(turn->data);
    }
    /* Send only after the batch is stored; cv_turn_committed() continues a handed-over batch. */
    if (has_content && !store(turn, crowded)) {
      return;
    }
    ops->say(turn->data);
  }
}

void cv_turn_committed(struct cv_turn *turn, enum cv_err err, const struct cv_why *why) {
  CV_REQUIRE(turn->busy);
  turn->busy = false;
  /* The batch may be stored. Its frames stay unsent: nothing leaves after a failure. */
  if (turn->failed) {
    return;
  }
  if (err != CV_OK) {
    cv_turn_fail(turn, "cannot store", why);
    return;
  }
  turn->ops->say(turn->data);
  cv_turn_over(turn);
}

bool cv_turn_take(struct cv_turn *turn) {
  bool is_free = !turn->failed && !turn->busy;
  turn->busy = turn->busy || is_free;
  return is_free;
}

void cv_turn_give_back(struct cv_turn *turn) {
  CV_REQUIRE(turn->busy);
  turn->busy = false;
  cv_turn_over(turn);
}

void cv_turn_paced(struct cv_turn *turn) {
  turn->paced = false;
  cv_turn_over(turn);
}
