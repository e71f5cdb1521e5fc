/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/compared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "deploy/launcher/json_read.h"

static int by_name(const void *a, const void *b) {
  return strverscmp(((const struct cv_compared_item *)a)->name, ((const struct cv_compared_item *)b)->name);
}

static enum cv_err take_label(const struct cv_json_at *at, const json_t *all, const char *key, const char **ret) {
  const char *text = json_string_value(json_object_get(all, key));
  if (text == NULL || !cv_name_is_valid(text)) {
    return cv_json_fail(at, key, text == NULL ? "a short text" : "a name");
  }
  *ret = text;
  return CV_OK;
}

static struct cv_compared_item *find(const struct cv_compared *compared, const char *name) {
  const struct cv_compared_item key = {.name = name};
  return bsearch(&key, compared->item, compared->items, sizeof(key), by_name);
}

/* Appends the names of one class. */
static enum cv_err take_names(const struct cv_json_at *at, const char *key, const json_t *names, uint32_t rank_class,
                              struct cv_compared *compared) {
  for (size_t i = 0; i < json_array_size(names); i++) {
    const char *name = json_string_value(json_array_get(names, i));
    if (name == NULL || !cv_name_is_item(name) || compared->items == CV_ARMS_MAX) {
      return cv_json_fail(at, key, "names of items");
    }
    compared->item[compared->items++] = (struct cv_compared_item){.name = name, .rank_class = rank_class};
  }
  return CV_OK;
}

static enum cv_err take_classes(const struct cv_json_at *at, const json_t *all, struct cv_compared *compared) {
  const json_t *classes = NULL, *undecided = NULL;
  CV_TRY(cv_json_take_array(at, all, "classes", CV_ARMS_MAX, &classes));
  CV_TRY(cv_json_take_array(at, all, "undecided", CV_ARMS_MAX, &undecided));
  for (uint32_t i = 0; i < json_array_size(classes); i++) {
    const json_t *names = json_array_get(classes, i);
    if (!json_is_array(names)) {
      return cv_json_fail(at, "classes", "a list of names for each class");
    }
    CV_TRY(take_names(at, "classes", names, i + 1, compared));
  }
  CV_TRY(take_names(at, "undecided", undecided, 0, compared));
  qsort(compared->item, compared->items, sizeof(*compared->item), by_name);
  for (uint32_t i = 1; i < compared->items; i++) {
    if (by_name(&compared->item[i - 1], &compared->item[i]) == 0) {
      return cv_json_fail(at, "classes", "each item once");
    }
  }
  return compared->items > 0 ? CV_OK : cv_json_fail(at, "classes", "at least one item");
}

/* Each item once, or null. */
static enum cv_err take_truth(const struct cv_json_at *at, const json_t *all, struct cv_compared *compared) {
  const json_t *classes = json_object_get(all, "truth");
  uint32_t known = 0;
  compared->has_truth = !json_is_null(classes);
  compared->accuracy = (double)NAN;
  if (!compared->has_truth) {
    return CV_OK;
  }
  for (uint32_t i = 0; i < json_array_size(classes); i++) {
    const json_t *names = json_array_get(classes, i);
    for (size_t j = 0; j < json_array_size(names); j++) {
      const char *name = json_string_value(json_array_get(names, j));
      struct cv_compared_item *item = name == NULL ? NULL : find(compared, name);
      if (item == NULL || item->truth != 0) {
        return cv_json_fail(at, "truth", "the items of classes and undecided, each once");
      }
      item->truth = i + 1;
      known++;
    }
  }
  if (known != compared->items) {
    return cv_json_fail(at, "truth", "the items of classes and undecided, each once");
  }
  if (json_is_null(json_object_get(all, "accuracy")) && cv_compared_undecided(compared) == compared->items) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_real(at, all, "accuracy", &compared->accuracy));
  return compared->accuracy >= 0 && compared->accuracy <= 1 ? CV_OK
                                                            : cv_json_fail(at, "accuracy", "a number from 0 to 1");
}

/* Each item with a class is right, unless it is among those that are wrong. */
static enum cv_err take_wrong(const struct cv_json_at *at, const json_t *all, struct cv_compared *compared) {
  const json_t *wrong = NULL;
  if (!compared->has_truth) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_array(at, all, "wrong", CV_ARMS_MAX, &wrong));
  for (uint32_t i = 0; i < compared->items; i++) {
    compared->item[i].is_right = compared->item[i].rank_class > 0;
  }
  for (size_t i = 0; i < json_array_size(wrong); i++) {
    const char *name = json_string_value(json_array_get(wrong, i));
    struct cv_compared_item *item = name == NULL ? NULL : find(compared, name);
    if (item == NULL || !item->is_right) {
      return cv_json_fail(at, "wrong", "items of classes, each once");
    }
    item->is_right = false;
  }
  return CV_OK;
}

static enum cv_err take_tokens(const struct cv_json_at *root, const json_t *all, struct cv_compared *compared) {
  const json_t *tokens = json_object_get(all, "item_tokens");
  struct cv_json_at at = {.why = root->why, .path = root->path, .place = "item_tokens"};
  if (json_object_size(tokens) != compared->items) {
    return cv_json_fail(root, "item_tokens", "a number of tokens for each item");
  }
  for (uint32_t i = 0; i < compared->items; i++) {
    struct cv_compared_item *item = &compared->item[i];
    CV_TRY(cv_json_take_whole(&at, tokens, item->name, INT64_MAX, &item->tokens));
  }
  return CV_OK;
}

/* An object of numbers or nulls. Null: not known. */
static enum cv_err take_lies(const struct cv_json_at *root, const json_t *all, struct cv_compared *compared) {
  const json_t *lies = json_object_get(all, "lies");
  struct cv_json_at at = {.why = root->why, .path = root->path, .place = "lies"};
  if (json_is_null(lies)) {
    return CV_OK;
  }
  if (!json_is_null(json_object_get(lies, "safe"))) {
    CV_TRY(cv_json_take_whole(&at, lies, "safe", INT64_MAX, &compared->lies_safe));
  }
  return json_is_null(json_object_get(lies, "turn"))
             ? CV_OK
             : cv_json_take_whole(&at, lies, "turn", INT64_MAX, &compared->lies_turn);
}

static enum cv_err take_all(const struct cv_json_at *at, const json_t *all, struct cv_compared *compared) {
  CV_TRY(take_label(at, all, "campaign", &compared->campaign));
  CV_TRY(take_label(at, all, "policy", &compared->policy));
  if (json_object_get(all, "classes") == NULL && json_object_get(all, "arms") != NULL) {
    return cv_fail(at->why, CV_ERR_FORMAT, "%s: policy %s does not rank; expected the result of a ranking", at->path,
                   compared->policy);
  }
  CV_TRY(take_classes(at, all, compared));
  CV_TRY(take_truth(at, all, compared));
  CV_TRY(take_wrong(at, all, compared));
  CV_TRY(take_tokens(at, all, compared));
  CV_TRY(cv_json_take_whole(at, all, "tokens", INT64_MAX, &compared->tokens));
  CV_TRY(cv_json_take_whole(at, all, "rounds", INT64_MAX, &compared->rounds));
  CV_TRY(cv_json_take_whole(at, all, "epsilon_spent_micro", INT64_MAX, &compared->epsilon_spent_micro));
  CV_TRY(cv_json_take_real(at, all, "seconds", &compared->seconds));
  CV_TRY(take_lies(at, all, compared));
  return compared->seconds >= 0 ? CV_OK : cv_json_fail(at, "seconds", "a number from 0");
}

enum cv_err cv_compared_read(const char *path, struct cv_compared *ret, struct cv_why *why) {
  struct cv_compared compared = {.item = calloc(CV_ARMS_MAX, sizeof(*compared.item))};
  const struct cv_json_at at = {.why = why, .path = path};
  json_t *all = NULL;
  if (compared.item == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  enum cv_err err = cv_json_load(path, &all, why);
  if (err == CV_OK) {
    compared.json = all;
    err = take_all(&at, all, &compared);
  }
  if (err == CV_OK) {
    *ret = compared;
  } else {
    cv_compared_fini(&compared);
  }
  return err;
}

void cv_compared_fini(struct cv_compared *compared) {
  free(compared->item);
  json_decref(compared->json);
  *compared = (struct cv_compared){0};
}

uint32_t cv_compared_undecided(const struct cv_compared *compared) {
  uint32_t undecided = 0;
  for (uint32_t i = 0; i < compared->items; i++) {
    undecided += compared->item[i].rank_class == 0;
  }
  return undecided;
}

uint32_t cv_compared_right(const struct cv_compared *compared) {
  uint32_t right = 0;
  for (uint32_t i = 0; i < compared->items && compared->has_truth; i++) {
    right += compared->item[i].is_right;
  }
  return right;
}
