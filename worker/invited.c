/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/invited.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/private.h"

enum { LINE_BYTES = CV_DOOR_TOKEN_MOST + 64 };

void cv_invited_fini(struct cv_invited *invited) {
  free(invited->person);
  *invited = (struct cv_invited){0};
}

/* Adds the person of one line; comments and empty lines have none. */
static enum cv_err take_line(char *line, const char *path, unsigned number, struct cv_invited *to, struct cv_why *why) {
  line[strcspn(line, "\r\n")] = '\0';
  line += strspn(line, " \t");
  if (*line == '\0' || *line == '#') {
    return CV_OK;
  }
  size_t digits = strspn(line, "0123456789"), blanks = strspn(line + digits, " \t");
  const char *token = line + digits + blanks;
  struct cv_invitation *person = &to->person[to->people];
  if (digits < 1 || digits > 9 || line[0] == '0' || blanks == 0 || !cv_door_is_token(token)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "form_people: %s:%u: expected a person's number from 1, a blank, and a token of %d to %d letters, "
                   "digits, - or _",
                   path, number, CV_DOOR_TOKEN_LEAST, CV_DOOR_TOKEN_MOST);
  }
  person->number = strtoull(line, NULL, 10);
  (void)snprintf(person->token, sizeof(person->token), "%s", token);
  if (to->people > 0 && person->number <= to->person[to->people - 1].number) {
    return cv_fail(why, CV_ERR_INVALID,
                   "form_people: %s:%u: person %" PRIu64 " after person %" PRIu64 "; expected ascending numbers", path,
                   number, person->number, to->person[to->people - 1].number);
  }
  for (size_t i = 0; i < to->people; i++) {
    if (strcmp(to->person[i].token, person->token) == 0) {
      return cv_fail(why, CV_ERR_INVALID,
                     "form_people: %s:%u: the token of person %" PRIu64 " again; expected another one for each", path,
                     number, to->person[i].number);
    }
  }
  to->people++;
  return CV_OK;
}

static enum cv_err read_lines(FILE *file, const char *path, struct cv_invited *to, struct cv_why *why) {
  char line[LINE_BYTES];
  for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
    if (to->people == CV_INVITED_MAX) {
      return cv_fail(why, CV_ERR_LIMIT, "form_people: %s has more than %d people", path, CV_INVITED_MAX);
    }
    CV_TRY(take_line(line, path, number, to, why));
  }
  return ferror(file) ? cv_fail(why, CV_ERR_IO, "form_people: %s: %s", path, strerror(errno)) : CV_OK;
}

/* A missing file has nobody, if it may be missing. */
static enum cv_err read_file(const char *path, bool may_miss, struct cv_invited *ret, struct cv_why *why) {
  struct cv_invited invited = {.person = calloc(CV_INVITED_MAX + 1, sizeof(*invited.person))};
  if (invited.person == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  FILE *file = fopen(path, "re");
  enum cv_err err = CV_OK;
  if (file == NULL) {
    err = errno == ENOENT && may_miss ? CV_OK : cv_fail(why, CV_ERR_IO, "form_people: %s: %s", path, strerror(errno));
  } else if ((err = cv_private_check(fileno(file), path, why)) != CV_OK) {
    cv_why_prefix(why, "form_people");
  } else {
    err = read_lines(file, path, &invited, why);
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  if (err != CV_OK) {
    cv_invited_fini(&invited);
    return err;
  }
  *ret = invited;
  return CV_OK;
}

enum cv_err cv_invited_read(const char *path, struct cv_invited *ret, struct cv_why *why) {
  CV_TRY(read_file(path, false, ret, why));
  if (ret->people == 0) {
    cv_invited_fini(ret);
    return cv_fail(why, CV_ERR_INVALID, "form_people: %s has nobody; expected people, as --form-invite adds them",
                   path);
  }
  return CV_OK;
}

static enum cv_err append(const char *path, const struct cv_invitation *from, size_t n, struct cv_why *why) {
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "a");
  bool good = file != NULL;
  for (size_t i = 0; good && i < n; i++) {
    good = fprintf(file, "%" PRIu64 " %s\n", from[i].number, from[i].token) > 0;
  }
  good = good && fflush(file) == 0 && fsync(fd) == 0;
  int error = errno;
  if (file != NULL) {
    (void)fclose(file);
  } else if (fd >= 0) {
    (void)close(fd);
  }
  return good ? CV_OK : cv_fail(why, CV_ERR_IO, "form_people: %s: %s", path, strerror(error));
}

enum cv_err cv_invited_add(const char *path, uint64_t more, struct cv_rng *rng, struct cv_invited *ret,
                           struct cv_why *why) {
  struct cv_invited invited;
  CV_TRY(read_file(path, true, &invited, why));
  size_t before = invited.people;
  if (more > CV_INVITED_MAX - before) {
    cv_invited_fini(&invited);
    return cv_fail(why, CV_ERR_LIMIT, "form_people: %s would have more than %d people", path, CV_INVITED_MAX);
  }
  for (uint64_t i = 0; i < more; i++) {
    struct cv_invitation *person = &invited.person[invited.people];
    person->number = invited.people == 0 ? 1 : invited.person[invited.people - 1].number + 1;
    (void)snprintf(person->token, sizeof(person->token), "%016" PRIx64 "%016" PRIx64, cv_rng_u64(rng), cv_rng_u64(rng));
    invited.people++;
  }
  enum cv_err err = append(path, &invited.person[before], (size_t)more, why);
  if (err != CV_OK) {
    cv_invited_fini(&invited);
    return err;
  }
  *ret = invited;
  return CV_OK;
}
