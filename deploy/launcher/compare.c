/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/outcome.h"
#include "deploy/launcher/progress.h"

/* Columns of the table: of a name at most, of the true class, and of what a policy found out. */
enum { NAME_COLUMNS = 21, TRUTH_COLUMNS = 7, POLICY_COLUMNS = 26 };

/* ---- the same items ---- */

enum cv_err cv_compare_check(const struct cv_compared of[2], const char *const path[2], struct cv_why *why) {
  if (of[0].items != of[1].items) {
    return cv_fail(why, CV_ERR_INVALID, "%s has %u items and %s has %u; expected results of the same items", path[0],
                   of[0].items, path[1], of[1].items);
  }
  for (uint32_t i = 0; i < of[0].items; i++) {
    if (strcmp(of[0].item[i].name, of[1].item[i].name) != 0) {
      return cv_fail(why, CV_ERR_INVALID, "%s has item %s where %s has %s; expected results of the same items", path[0],
                     cv_text_quote(of[0].item[i].name).text, path[1], cv_text_quote(of[1].item[i].name).text);
    }
  }
  if (of[0].has_truth != of[1].has_truth) {
    return cv_fail(why, CV_ERR_INVALID, "%s has no truth and %s has one; expected it in both or neither",
                   path[of[0].has_truth], path[of[1].has_truth]);
  }
  for (uint32_t i = 0; i < of[0].items; i++) {
    if (of[0].item[i].truth != of[1].item[i].truth) {
      return cv_fail(why, CV_ERR_INVALID,
                     "true class of item %s: %u in %s, %u in %s; expected results of the same means and alpha",
                     cv_text_quote(of[0].item[i].name).text, of[0].item[i].truth, path[0], of[1].item[i].truth,
                     path[1]);
    }
  }
  return CV_OK;
}

/* By the true class or the first result's, 0 last; then as the results have them. */
static int by_class(const void *a, const void *b, void *data) {
  const struct cv_compared *first = data;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  uint32_t p = first->has_truth ? first->item[x].truth : first->item[x].rank_class;
  uint32_t q = first->has_truth ? first->item[y].truth : first->item[y].rank_class;
  if (p != q) {
    return p - 1 < q - 1 ? -1 : 1;
  }
  return x < y ? -1 : 1;
}

/* The caller frees it; NULL when out of memory. */
static uint32_t *order_of(const struct cv_compared *first) {
  uint32_t *order = calloc(first->items, sizeof(*order));
  for (uint32_t i = 0; order != NULL && i < first->items; i++) {
    order[i] = i;
  }
  if (order != NULL) {
    qsort_r(order, first->items, sizeof(*order), by_class, (void *)(uintptr_t)first);
  }
  return order;
}

/* ---- as a table ---- */

static size_t name_columns(const struct cv_compared *first) {
  size_t columns = strlen("undecided");
  for (uint32_t i = 0; i < first->items; i++) {
    size_t own = cv_width_of(first->item[i].name);
    columns = own > columns ? own : columns;
  }
  return columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
}

static void print_heading(const struct cv_compared of[2], size_t columns, FILE *to) {
  cv_outcome_print_cut("item", columns, to);
  (void)fprintf(to, "%s", of[0].has_truth ? "  truth" : "");
  for (int i = 0; i < 2; i++) {
    (void)fprintf(to, "  ");
    cv_outcome_print_cut(of[i].policy, 12, to);
    (void)fprintf(to, "%12s", "tokens");
  }
  (void)fputc('\n', to);
}

static void print_item(const struct cv_compared of[2], uint32_t at, size_t columns, FILE *to) {
  const struct cv_compared_item *item = &of[0].item[at];
  cv_outcome_print_cut(item->name, columns, to);
  if (of[0].has_truth) {
    (void)fprintf(to, "%*u", TRUTH_COLUMNS, item->truth);
  }
  for (int i = 0; i < 2; i++) {
    item = &of[i].item[at];
    char class[16] = "-";
    const char *mark = item->is_right ? "right" : "wrong";
    if (item->rank_class > 0) {
      (void)snprintf(class, sizeof(class), "%u", item->rank_class);
    }
    (void)fprintf(to, "%5s  %-5s%14s", class, of[0].has_truth && item->rank_class > 0 ? mark : "",
                  cv_count_text(item->tokens).text);
  }
  (void)fputc('\n', to);
}

/* Lines below the items: what each has of it, below its tokens. */
enum total { RIGHT, ACCURACY, UNDECIDED, TOKENS, ROUNDS, TIME, EPSILON, LIES_SAFE, LIES_TURN, TOTALS };

static void total_of(const struct cv_compared *compared, enum total total, char *to, size_t size) {
  switch (total) {
    case RIGHT:
      (void)snprintf(to, size, "%u of %u", cv_compared_right(compared), compared->items);
      break;
    case ACCURACY:
      (void)snprintf(to, size, isnan(compared->accuracy) ? "-" : "%.4f", compared->accuracy);
      break;
    case UNDECIDED:
      (void)snprintf(to, size, "%u", cv_compared_undecided(compared));
      break;
    case TOKENS:
      (void)snprintf(to, size, "%s", cv_count_text(compared->tokens).text);
      break;
    case ROUNDS:
      (void)snprintf(to, size, "%s", cv_count_text(compared->rounds).text);
      break;
    case TIME:
      (void)snprintf(to, size, "%.1f s", compared->seconds);
      break;
    case EPSILON:
      (void)snprintf(to, size, "%g", (double)compared->epsilon_spent_micro / (double)CV_MICRO);
      break;
    default: {
      uint64_t lies = total == LIES_SAFE ? compared->lies_safe : compared->lies_turn;
      (void)snprintf(to, size, "%s", lies == 0 ? "-" : cv_count_text(lies).text);
    }
  }
}

static void print_totals(const struct cv_compared of[2], int columns, FILE *to) {
  static const char *const label[TOTALS] = {"right", "accuracy", "undecided", "tokens",   "rounds",
                                            "time",  "epsilon",  "lies safe", "lies turn"};
  for (int total = of[0].has_truth ? RIGHT : UNDECIDED; total < TOTALS; total++) {
    char text[2][48];
    total_of(&of[0], (enum total)total, text[0], sizeof(text[0]));
    total_of(&of[1], (enum total)total, text[1], sizeof(text[1]));
    (void)fprintf(to, "%-*s%*s%*s\n", columns, label[total], POLICY_COLUMNS, text[0], POLICY_COLUMNS, text[1]);
  }
}

/* The tokens of the first over those of the second; NAN if the second took none. */
static double ratio_of(const struct cv_compared of[2]) {
  return of[1].tokens == 0 ? (double)NAN : (double)of[0].tokens / (double)of[1].tokens;
}

enum cv_err cv_compare_print(const struct cv_compared of[2], FILE *to) {
  uint32_t *order = order_of(&of[0]);
  if (order == NULL) {
    return CV_ERR_NOMEM;
  }
  size_t columns = name_columns(&of[0]);
  print_heading(of, columns, to);
  for (uint32_t i = 0; i < of[0].items; i++) {
    print_item(of, order[i], columns, to);
  }
  free(order);
  (void)fputc('\n', to);
  print_totals(of, (int)columns + (of[0].has_truth ? TRUTH_COLUMNS : 0), to);
  if (of[1].tokens > 0) {
    (void)fprintf(to, "\n%s took %.2f times the tokens of %s\n", cv_text_shown(of[0].policy).text, ratio_of(of),
                  cv_text_shown(of[1].policy).text);
  }
  return CV_OK;
}

/* ---- as JSON ---- */

static json_t *class_json(uint32_t rank_class) {
  return rank_class == 0 ? json_null() : json_integer(rank_class);
}

static json_t *mark_json(const struct cv_compared_item *item, bool is_known) {
  return is_known && item->rank_class > 0 ? json_boolean(item->is_right) : json_null();
}

static json_t *item_json(const struct cv_compared of[2], uint32_t at) {
  const struct cv_compared_item *a = &of[0].item[at], *b = &of[1].item[at];
  bool is_known = of[0].has_truth;
  return json_pack("{s:s, s:o, s:[o, o], s:[o, o], s:[I, I]}", "name", a->name, "truth", class_json(a->truth),
                   "classes", class_json(a->rank_class), class_json(b->rank_class), "right", mark_json(a, is_known),
                   mark_json(b, is_known), "tokens", (json_int_t)a->tokens, (json_int_t)b->tokens);
}

static json_t *accuracy_json(const struct cv_compared *compared) {
  return isnan(compared->accuracy) ? json_null() : json_real(compared->accuracy);
}

static json_t *lies_json(uint64_t lies) {
  return lies == 0 ? json_null() : json_integer((json_int_t)lies);
}

static json_t *right_json(const struct cv_compared *compared) {
  return compared->has_truth ? json_integer(cv_compared_right(compared)) : json_null();
}

json_t *cv_compare_json(const struct cv_compared of[2]) {
  const struct cv_compared *a = &of[0], *b = &of[1];
  uint32_t *order = order_of(a);
  json_t *items = order == NULL ? NULL : json_array();
  for (uint32_t i = 0; items != NULL && i < a->items; i++) {
    items = cv_json_append(items, item_json(of, order[i]));
  }
  free(order);
  return json_pack(
      "{s:[s, s], s:[s, s], s:o, s:[o, o], s:[o, o], s:[i, i], s:[I, I], s:[I, I], s:[f, f], s:[I, I], "
      "s:[o, o], s:[o, o], s:o}",
      "campaigns", a->campaign, b->campaign, "policies", a->policy, b->policy, "items", items, "right", right_json(a),
      right_json(b), "accuracy", accuracy_json(a), accuracy_json(b), "undecided", (int)cv_compared_undecided(a),
      (int)cv_compared_undecided(b), "tokens", (json_int_t)a->tokens, (json_int_t)b->tokens, "rounds",
      (json_int_t)a->rounds, (json_int_t)b->rounds, "seconds", a->seconds, b->seconds, "epsilon_spent_micro",
      (json_int_t)a->epsilon_spent_micro, (json_int_t)b->epsilon_spent_micro, "lies_safe", lies_json(a->lies_safe),
      lies_json(b->lies_safe), "lies_turn", lies_json(a->lies_turn), lies_json(b->lies_turn), "tokens_ratio",
      b->tokens == 0 ? json_null() : json_real(ratio_of(of)));
}
