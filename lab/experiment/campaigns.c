/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/experiment/campaigns.h"

#include <string.h>

#include "lab/experiment/override.h"

/* The node with the path of the campaign's data file; NULL if it has none. */
static const yaml_node_t *path_of(struct cv_yaml *yaml) {
  static const char *const sections[] = {"items", "workers"};
  for (size_t i = 0; i < CV_COUNT(sections); i++) {
    const yaml_node_t *section = cv_yaml_find(yaml, yaml->root, sections[i]).value;
    const yaml_node_t *path =
        section != NULL && section->type == YAML_MAPPING_NODE ? cv_yaml_find(yaml, section, "path").value : NULL;
    if (path != NULL && path->type == YAML_SCALAR_NODE) {
      return path;
    }
  }
  return NULL;
}

/* Replaces the path of the campaign's data file by --data. */
static enum cv_err set_data(struct cv_yaml *yaml, const char *data, struct cv_why *why) {
  if (data == NULL) {
    return CV_OK;
  }
  if (path_of(yaml) == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "%s reads no data; expected no --data", yaml->path);
  }
  bool is_paid = cv_yaml_find(yaml, yaml->root, "workers").key != NULL;
  return cv_lab_override_text(yaml, is_paid ? "workers.path" : "items.path", data, why);
}

static enum cv_err override_all(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                struct cv_yaml *yaml, struct cv_why *why) {
  const struct cv_lab_series *one = &experiment->one[series];
  /* Scales come last: they multiply what the series, the grid or x has set. */
  CV_TRY(set_data(yaml, experiment->data, why));
  for (size_t i = 0; i < one->sets; i++) {
    CV_TRY(cv_lab_override(yaml, one->set[i].path, one->set[i].node, why));
  }
  for (size_t i = 0; i < experiment->varied; i++) {
    const yaml_node_t *values = cv_lab_node(yaml, experiment->vary[i].node);
    CV_TRY(cv_lab_override(yaml, experiment->vary[i].path, values->data.sequence.items.start[setting], why));
  }
  for (size_t i = 0; i < one->scales; i++) {
    CV_TRY(cv_lab_override_scale(yaml, one->scale[i].path, one->scale[i].node, why));
  }
  return CV_OK;
}

/* A preset cannot know where its data file is on this machine: the user must give --data. */
static enum cv_err check_data(const struct cv_lab_experiment *experiment, struct cv_campaign_file *campaign,
                              struct cv_why *why) {
  bool is_preset = strpbrk(experiment->path, "/.") == NULL;
  if (cv_items_file(&campaign->items) == NULL || experiment->data != NULL || !is_preset) {
    return CV_OK;
  }
  cv_campaign_fini(campaign);
  return cv_fail(why, CV_ERR_INVALID, "%s needs data; expected --data FILE", experiment->path);
}

static enum cv_err parse_campaign(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                  struct cv_campaign_file *ret, struct cv_why *why) {
  struct cv_yaml yaml; /* its own parse: overriding changes the document, and threads share the experiment */
  struct cv_buf buf = {.data = (uint8_t *)experiment->text, .len = experiment->bytes};
  CV_TRY(cv_yaml_parse(experiment->path, &buf, &yaml, why));
  enum cv_err err = override_all(experiment, series, setting, &yaml, why);
  if (err == CV_OK) {
    err = cv_campaign_read(&yaml, ret, why);
  }
  cv_yaml_close(&yaml);
  return err;
}

enum cv_err cv_lab_first_campaign(const struct cv_lab_experiment *experiment, struct cv_campaign_file *ret,
                                  struct cv_why *why) {
  return parse_campaign(experiment, 0, 0, ret, why);
}

static enum cv_err read_campaign(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                 struct cv_campaign_file *ret, struct cv_why *why) {
  CV_TRY(parse_campaign(experiment, series, setting, ret, why));
  /* A file of trips may be large: campaigns with the same workers share one copy, read once. */
  if (cv_taxis_are_same(&experiment->with_taxis.items, &ret->items)) {
    ret->items.taxi.taxis = &experiment->taxis;
  }
  return check_data(experiment, ret, why);
}

enum cv_err cv_lab_taxis_read(struct cv_lab_experiment *experiment, struct cv_why *why) {
  struct cv_campaign_file campaign;
  CV_TRY(read_campaign(experiment, 0, 0, &campaign, why));
  if (campaign.items.source == CV_SOURCE_TAXI && experiment->with_taxis.path == NULL) {
    experiment->with_taxis = campaign;
    return cv_taxis_read(&experiment->with_taxis.items.taxi, &experiment->taxis, why);
  }
  cv_campaign_fini(&campaign);
  return CV_OK;
}

enum cv_err cv_lab_prepare(const struct cv_lab_experiment *experiment, size_t series, size_t setting, uint64_t seed,
                           struct cv_prepared *ret, struct cv_why *why) {
  struct cv_campaign_file campaign;
  CV_TRY(read_campaign(experiment, series, setting, &campaign, why));
  if (campaign.gold.line > 0) {
    enum cv_err err =
        cv_fail(why, CV_ERR_INVALID, "%s:%u:1: the laboratory has no workers to test; expected no section gold",
                campaign.path, campaign.gold.line);
    cv_campaign_fini(&campaign);
    return err;
  }
  enum cv_err err = cv_score_source_needs_means(&campaign, why);
  if (err != CV_OK) {
    cv_campaign_fini(&campaign);
    return err;
  }
  return cv_prepare_campaign(&campaign, seed, ret, why);
}

enum cv_err cv_lab_data_path(const struct cv_lab_experiment *experiment, size_t series, size_t setting, char **ret,
                             struct cv_why *why) {
  struct cv_campaign_file campaign;
  CV_TRY(read_campaign(experiment, series, setting, &campaign, why));
  const char *file = cv_items_file(&campaign.items);
  char *copy = file == NULL ? NULL : strdup(file);
  cv_campaign_fini(&campaign);
  if (file != NULL && copy == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  *ret = copy;
  return CV_OK;
}
