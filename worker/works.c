/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/works.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/crypto/crypto.h"
#include "worker/coin.h"
#include "worker/source.h"

enum { WORKS_MAX = 64 };

struct cv_served {
  struct cv_campaign_file campaign;
  struct cv_score_source source;
  char *real_file; /* NULL: no data file; owned */
  bool is_seeded;  /* by its campaign file or the worker's settings, not at random */
};

static enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct cv_served *served = data;
  return cv_quality_score_at(served->source.quality, arm, at, ret_score);
}

/* The number of a row is that in the whole file, whatever part this is. */
static uint64_t row_of(void *data, uint32_t arm, uint64_t place) {
  const struct cv_served *served = data;
  const struct cv_items_csv *file = &served->campaign.items.csv;
  uint64_t row;
  CV_REQUIRE(cv_quality_row(served->source.quality, arm, place, &row) == CV_OK);
  return file->parts == 0 ? row : row * file->parts + file->part - 1;
}

/* The declared scale of a data file's scores. */
static struct cv_scale scale_of(const struct cv_items *items) {
  return items->source == CV_SOURCE_CSV ? items->csv.scale : (struct cv_scale){0};
}

static const struct cv_items_csv *file_of(const struct cv_served *served) {
  const struct cv_items *items = &served->campaign.items;
  return items->source == CV_SOURCE_CSV && !cv_items_are_pairs(items) ? &items->csv : NULL;
}

/* Each row of a part is used once; persons are parted by the certificates of their gateways. */
static enum cv_err take_part(struct cv_served *served, const struct cv_works_ask *ask, struct cv_why *why) {
  const struct cv_items_csv *file = file_of(served);
  if (ask->parts == 0) {
    return CV_OK;
  }
  if (file == NULL || file->replacement || file->worker_column[0] != '\0') {
    return cv_fail(why, CV_ERR_INVALID, "part with %s, where %s; expected no part", served->campaign.path,
                   file == NULL        ? "scores are no rows of a data file"
                   : file->replacement ? "a row is drawn again and again (replacement: true)"
                                       : "each gateway has the persons of its certificate (items.worker)");
  }
  served->campaign.items.csv.part = ask->part;
  served->campaign.items.csv.parts = ask->parts;
  return CV_OK;
}

static bool is_drawn(const struct cv_items *items) {
  return items->source == CV_SOURCE_CSV && items->csv.replacement;
}

static enum cv_err find_file(struct cv_served *served, struct cv_why *why) {
  const char *file = cv_items_file(&served->campaign.items);
  served->real_file = file == NULL ? NULL : realpath(file, NULL);
  return file == NULL || served->real_file != NULL ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: %s", file, strerror(errno));
}

static struct cv_digest digest_of(const struct cv_score_source *source, bool pairs) {
  struct cv_digest digest = {{pairs}};
  for (uint32_t i = 0; i < source->items; i++) {
    cv_digest_extend(&digest, source->name[i], strlen(source->name[i]), cv_sha256);
  }
  return digest;
}

/* Loads one campaign file and appends its work. */
static enum cv_err add(struct cv_works *works, const char *path, const struct cv_works_ask *ask, struct cv_rng *rng,
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
  own = ask->seed == CV_WORKS_SEED_NONE ? own : ask->seed;
  served->is_seeded = served->campaign.items.has_seed || ask->seed != CV_WORKS_SEED_NONE;
  if (!ask->are_asked) {
    CV_TRY(cv_score_source_needs_means(&served->campaign, why));
  }
  CV_TRY(take_part(served, ask, why));
  CV_TRY(cv_score_source_init(&served->source, &served->campaign, own, why));
  CV_TRY(find_file(served, why));
  if (served->source.persons.persons > 0) {
    works->persons = &served->source.persons;
    works->file = served->campaign.items.csv.file;
    works->first_worker = served->campaign.items.csv.first_worker;
    works->seed = own;
  }
  /* The stock has the rows of one campaign. */
  if (works->persons != NULL && works->works > 1) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: another campaign next to one with items.worker; expected only the one with items.worker", path);
  }
  works->work[works->works - 1] = (struct cv_work){.campaign = served->campaign.spec.name,
                                                   .arms = served->source.items,
                                                   .pairs = served->campaign.spec.pairs,
                                                   .print = ask->are_asked ? 0 : served->source.print,
                                                   .file = cv_items_file(&served->campaign.items),
                                                   .real_file = served->real_file,
                                                   .is_drawn = !ask->are_asked && is_drawn(&served->campaign.items),
                                                   .is_part = ask->parts > 1,
                                                   .scale = scale_of(&served->campaign.items),
                                                   .name = (const char *const *)served->source.name,
                                                   .items = digest_of(&served->source, served->campaign.spec.pairs),
                                                   .hires = served->source.worker != NULL,
                                                   .score = score,
                                                   .row = file_of(served) == NULL || ask->are_asked ? NULL : row_of,
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

static enum cv_err add_all(struct cv_works *works, const char *folder, const struct cv_works_ask *ask,
                           struct cv_rng *rng, struct cv_why *why) {
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
    err = err == CV_OK ? add(works, path, ask, rng, why) : err;
    free(entry[i]);
  }
  free(entry);
  return err;
}

bool cv_works_read_part(const char *text, struct cv_works_ask *ask) {
  static const char between[] = " of ";
  char *end, *last;
  unsigned long part = strtoul(text, &end, 10), parts = 0;
  if (isdigit((unsigned char)text[0]) && strncmp(end, between, sizeof(between) - 1) == 0 &&
      isdigit((unsigned char)end[sizeof(between) - 1])) {
    parts = strtoul(end + sizeof(between) - 1, &last, 10);
    parts = *last == '\0' ? parts : 0;
  }
  ask->part = (uint32_t)part;
  ask->parts = (uint32_t)parts;
  return part >= 1 && part <= parts && parts <= CV_WORKS_PARTS_MAX;
}

enum cv_err cv_works_load(const char *path, const struct cv_works_ask *ask, struct cv_rng *rng, struct cv_works *ret,
                          struct cv_why *why) {
  struct cv_works works = {.served = calloc(WORKS_MAX, sizeof(*works.served)),
                           .work = calloc(WORKS_MAX, sizeof(*works.work))};
  struct stat info;
  enum cv_err err = CV_OK;
  if (works.served == NULL || works.work == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  } else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    err = add_all(&works, path, ask, rng, why);
  } else {
    err = add(&works, path, ask, rng, why);
  }
  if (err != CV_OK) {
    cv_works_fini(&works);
    return err;
  }
  *ret = works;
  return CV_OK;
}

void cv_works_order(struct cv_works *works, const uint8_t key[CV_COIN_KEY_BYTES]) {
  for (size_t i = 0; i < works->works; i++) {
    struct cv_served *served = &works->served[i];
    if (works->work[i].print != 0 && !served->is_seeded) {
      /* No arm has this number: these bits are no opinion's. */
      const struct cv_opinion whole = {.source = served->source.print, .arm = UINT32_MAX};
      struct cv_coin coin;
      cv_coin_init(&coin, key, NULL, &whole);
      cv_quality_reorder(served->source.quality, cv_rng_u64(&coin.bits.rng));
      cv_coin_wipe(&coin);
    }
  }
}

const char *cv_works_remembers(const struct cv_works *works, bool are_local) {
  for (size_t i = 0; i < works->works; i++) {
    const struct cv_items_csv *file = file_of(&works->served[i]);
    if (works->work[i].print != 0 &&
        (are_local || (!file->replacement && (!works->served[i].is_seeded || file->parts > 1)))) {
      return file->file;
    }
  }
  return NULL;
}

void cv_works_fini(struct cv_works *works) {
  for (size_t i = 0; i < works->works; i++) {
    cv_score_source_fini(&works->served[i].source);
    cv_campaign_fini(&works->served[i].campaign);
    free(works->served[i].real_file);
  }
  free(works->served);
  free(works->work);
  *works = (struct cv_works){0};
}
