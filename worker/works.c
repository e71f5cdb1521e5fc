/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/works.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "worker/source.h"

enum { WORKS_MAX = 64 };

struct cv_served {
  struct cv_campaign_file campaign;
  struct cv_score_source source;
};

static enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct cv_served *served = data;
  return cv_quality_score_at(served->source.quality, arm, at, ret_score);
}

/* The declared scale of a data file's scores. */
static struct cv_scale scale_of(const struct cv_items *items) {
  return items->source == CV_SOURCE_CSV ? items->csv.scale : (struct cv_scale){0};
}

/* Loads one campaign file and appends its work. */
static enum cv_err add(struct cv_works *works, const char *path, uint64_t seed, struct cv_rng *rng,
                       struct cv_why *why) {
  struct cv_served *served = &works->served[works->works];
  CV_TRY(cv_campaign_load(path, &served->campaign, why));
  works->works++; /* count it now, so that cv_works_fini() frees it on any error below */
  for (size_t i = 0; i + 1 < works->works; i++) {
    const struct cv_campaign_file *other = &works->served[i].campaign;
    if (strcmp(other->spec.name, served->campaign.spec.name) == 0) {
      return cv_fail(why, CV_ERR_INVALID, "%s: campaign \"%s\" is also defined in %s; expected each name once", path,
                     other->spec.name, other->path);
    }
  }
  /* A drawn seed is below 2^53, as one that a campaign file can name. */
  uint64_t own = served->campaign.items.has_seed ? served->campaign.items.seed : cv_rng_u64(rng) >> 11;
  own = seed == CV_WORKS_SEED_NONE ? own : seed;
  if (!works->are_asked) {
    CV_TRY(cv_score_source_needs_means(&served->campaign, why));
  }
  CV_TRY(cv_score_source_init(&served->source, &served->campaign, own, why));
  if (served->source.persons.persons > 0) {
    works->persons = &served->source.persons;
    works->file = served->campaign.items.csv.file;
    works->first_worker = served->campaign.items.csv.first_worker;
    works->seed = own;
  }
  /* The store keeps the given rows of one campaign, by their number in its data file. */
  if (works->persons != NULL && works->works > 1) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: another campaign next to one with items.worker; expected only the one with items.worker", path);
  }
  works->work[works->works - 1] = (struct cv_work){.campaign = served->campaign.spec.name,
                                                   .arms = served->source.items,
                                                   .pairs = served->campaign.spec.pairs,
                                                   .is_file = served->campaign.items.source == CV_SOURCE_CSV,
                                                   .scale = scale_of(&served->campaign.items),
                                                   .name = (const char *const *)served->source.name,
                                                   .hires = served->source.worker != NULL,
                                                   .score = score,
                                                   .data = served};
  return CV_OK;
}

static int is_campaign(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static enum cv_err add_all(struct cv_works *works, const char *folder, uint64_t seed, struct cv_rng *rng,
                           struct cv_why *why) {
  struct dirent **entry = NULL;
  /* By name, so that messages about a folder do not depend on the file system. */
  int n = scandir(folder, &entry, is_campaign, by_name);
  enum cv_err err = CV_OK;
  if (n < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", folder, strerror(errno));
  }
  if (n == 0 || n > WORKS_MAX) {
    err = cv_fail(why, CV_ERR_INVALID, "%s: the folder has %d files *.yaml; expected 1 to %d campaign files", folder, n,
                  WORKS_MAX);
  }
  for (int i = 0; i < n; i++) {
    char path[4096];
    if (err == CV_OK && snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name) >= (int)sizeof(path)) {
      err = cv_fail(why, CV_ERR_INVALID, "%s: the path is too long", folder);
    }
    err = err == CV_OK ? add(works, path, seed, rng, why) : err;
    free(entry[i]);
  }
  free(entry);
  return err;
}

enum cv_err cv_works_load(const char *path, uint64_t seed, bool are_asked, struct cv_rng *rng, struct cv_works *ret,
                          struct cv_why *why) {
  struct cv_works works = {.are_asked = are_asked,
                           .served = calloc(WORKS_MAX, sizeof(*works.served)),
                           .work = calloc(WORKS_MAX, sizeof(*works.work))};
  struct stat info;
  enum cv_err err = CV_OK;
  if (works.served == NULL || works.work == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  } else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    err = add_all(&works, path, seed, rng, why);
  } else {
    err = add(&works, path, seed, rng, why);
  }
  if (err != CV_OK) {
    cv_works_fini(&works);
    return err;
  }
  *ret = works;
  return CV_OK;
}

void cv_works_fini(struct cv_works *works) {
  for (size_t i = 0; i < works->works; i++) {
    cv_score_source_fini(&works->served[i].source);
    cv_campaign_fini(&works->served[i].campaign);
  }
  free(works->served);
  free(works->work);
  *works = (struct cv_works){0};
}
