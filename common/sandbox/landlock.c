/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, see landlock(7): a ruleset first denies all rights that the kernel supports, then rules grant what is
 * needed. ABI 1 came with Linux 5.13, TCP ports with 6.7 (ABI 4), signals and abstract sockets with 6.12 (ABI 6).
 * Debian 12's headers end at ABI 2, so newer constants are defined here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/sandbox/parts.h"

#define FS_UP_TO(right) (((right) << 1) - 1)
#define FS_TRUNCATE     (UINT64_C(1) << 14) /* ABI 3 */
#define FS_IOCTL_DEV    (UINT64_C(1) << 15) /* ABI 5 */
#define NET_BIND_TCP    (UINT64_C(1) << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (UINT64_C(1) << 1)
#define SCOPE_ALL       UINT64_C(3) /* ABI 6: abstract Unix sockets, signals */
#define RULE_NET_PORT   2

#define READ   ((uint64_t)LANDLOCK_ACCESS_FS_READ_FILE)
#define REMOVE ((uint64_t)LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define KEEP                                                                                                   \
  (READ | REMOVE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
   FS_TRUNCATE)
/* The folder is read only to sync it. Landlock has no right that permits appending alone. */
#define APPEND  (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)
#define OF_FILE (READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE | FS_TRUNCATE | FS_IOCTL_DEV)

enum { DNS_PORT = 53 };

struct port_rule {
  uint64_t allowed, port;
};

/* A ruleset under construction, and its description. */
struct rules {
  int fd;
  struct cv_landlock_rights rights;
  struct cv_sandbox_part *part;
};

static void say(struct cv_sandbox_part *part, const char *what, const char *of) {
  size_t used = strlen(part->text);
  (void)snprintf(part->text + used, sizeof(part->text) - used, "%s%s", what, of);
}

struct cv_landlock_rights cv_landlock_rights(unsigned abi) {
  struct cv_landlock_rights rights = {0};
  if (abi >= 1) {
    rights.fs = FS_UP_TO((uint64_t)LANDLOCK_ACCESS_FS_MAKE_SYM);
  }
  if (abi >= 2) {
    rights.fs |= (uint64_t)LANDLOCK_ACCESS_FS_REFER;
  }
  if (abi >= 3) {
    rights.fs |= FS_TRUNCATE;
  }
  if (abi >= 4) {
    rights.net = NET_BIND_TCP | NET_CONNECT_TCP;
  }
  if (abi >= 5) {
    rights.fs |= FS_IOCTL_DEV;
  }
  if (abi >= 6) {
    rights.scope = SCOPE_ALL;
  }
  return rights;
}

/* ---- rules ---- */

/* Grants rights on a path. CV_ERR_NOT_FOUND if the path does not exist, CV_ERR_DENIED if the user may not access it
 * anyway. */
static enum cv_err permit(struct rules *rules, const char *path, uint64_t rights) {
  struct stat info;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? CV_ERR_NOT_FOUND : errno == EACCES ? CV_ERR_DENIED : CV_ERR_IO;
  }
  bool is_file = fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode);
  const struct landlock_path_beneath_attr rule = {
      .allowed_access = rights & rules->rights.fs & (is_file ? OF_FILE : UINT64_MAX), .parent_fd = fd};
  long status = syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  int error = errno;
  (void)close(fd);
  errno = error;
  return status == 0 ? CV_OK : CV_ERR_IO;
}

static enum cv_err permit_folder_of(struct rules *rules, const char *path, uint64_t rights, const char *word) {
  char copy[PATH_MAX];
  if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy)) {
    errno = ENAMETOOLONG;
    return CV_ERR_IO;
  }
  const char *folder = dirname(copy);
  if (word != NULL) {
    say(rules->part, word, folder);
  }
  return permit(rules, folder, rights);
}

static enum cv_err optional(enum cv_err err) {
  return err == CV_ERR_NOT_FOUND || err == CV_ERR_DENIED ? CV_OK : err;
}

/* Grants reading the file's folder and, for a symbolic link, the folder of its target. The file may be missing or
 * readable by root only. */
static enum cv_err permit_read(struct rules *rules, const char *path, const char *word) {
  char real[PATH_MAX];
  CV_TRY(optional(permit_folder_of(rules, path, READ, word)));
  return realpath(path, real) != NULL ? optional(permit_folder_of(rules, real, READ, NULL)) : CV_OK;
}

/* Names each folder once, if files in the same folder follow each other. */
static enum cv_err permit_reads(struct rules *rules, const struct cv_sandbox_needs *needs) {
  char told[PATH_MAX] = "";
  for (size_t i = 0; i < CV_SANDBOX_READS; i++) {
    const char *path = needs->reads[i];
    if (path == NULL) {
      continue;
    }
    const char *slash = strrchr(path, '/');
    size_t n = slash != NULL ? (size_t)(slash - path) : 0;
    bool again = slash != NULL && strncmp(told, path, n) == 0 && told[n] == '\0';
    CV_TRY(permit_read(rules, path, again ? NULL : ", reads "));
    (void)snprintf(told, sizeof(told), "%.*s", (int)n, path);
  }
  return CV_OK;
}

/*
 * Name resolution: glibc reads resolv.conf, hosts, nsswitch.conf, host.conf and gai.conf, each of which may be replaced
 * by rename or link into /run, and loads the modules that nsswitch.conf names.
 */
static enum cv_err permit_lookup(struct rules *rules) {
  static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"};
  static const char *const modules[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"};
  for (size_t i = 0; i < CV_COUNT(files); i++) {
    CV_TRY(permit_read(rules, files[i], NULL));
  }
  for (size_t i = 0; i < CV_COUNT(modules); i++) {
    CV_TRY(optional(permit(rules, modules[i], READ)));
  }
  say(rules->part, ", looks up names", "");
  return CV_OK;
}

static enum cv_err permit_files(struct rules *rules, const struct cv_sandbox_needs *needs) {
  CV_TRY(permit_reads(rules, needs));
  if (needs->state != NULL) {
    say(rules->part, ", writes ", needs->state);
    CV_TRY(permit(rules, needs->state, KEEP));
  }
  if (needs->socket != NULL) {
    CV_TRY(permit_folder_of(rules, needs->socket, REMOVE, ", removes from "));
  }
  if (needs->appends != NULL) {
    CV_TRY(permit_folder_of(rules, needs->appends, APPEND, ", appends in "));
  }
  if (cv_sandbox_looks_up(needs)) {
    CV_TRY(permit_lookup(rules));
  }
  /* libuv opens /dev/null when descriptors run out; SQLite seeds from /dev/urandom. */
  CV_TRY(optional(permit(rules, "/dev/null", READ)));
  return optional(permit(rules, "/dev/urandom", READ));
}

static enum cv_err permit_port(struct rules *rules, uint64_t port) {
  const struct port_rule rule = {.allowed = NET_CONNECT_TCP, .port = port};
  return syscall(SYS_landlock_add_rule, rules->fd, RULE_NET_PORT, &rule, 0) == 0 ? CV_OK : CV_ERR_IO;
}

/* Each port once: mostly all are the same. */
static enum cv_err permit_ports_of(struct rules *rules, const struct cv_addresses *addresses, bool are_more) {
  for (size_t i = 0; i < addresses->count; i++) {
    const char *port = addresses->address[i].port;
    size_t before = 0;
    while (strcmp(addresses->address[before].port, port) != 0) {
      before++;
    }
    if (before == i) {
      CV_TRY(permit_port(rules, strtoul(port, NULL, 10)));
      say(rules->part, are_more || i > 0 ? " and " : ", connects to TCP port ", port);
    }
  }
  return CV_OK;
}

/* Listening sockets are already bound, so no rule permits binding. DNS falls back to TCP for long answers. */
static enum cv_err permit_ports(struct rules *rules, const struct cv_sandbox_needs *needs) {
  bool any = false;
  if (rules->rights.net == 0) {
    say(rules->part, ", connects to any TCP port, which this ABI cannot limit", "");
    return CV_OK;
  }
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    struct cv_addresses addresses;
    if (needs->dials[i] != NULL && cv_addresses_parse(needs->dials[i], &addresses, NULL) == CV_OK) {
      CV_TRY(permit_ports_of(rules, &addresses, any));
      any = true;
    }
  }
  if (!any) {
    say(rules->part, ", connects to no TCP port", "");
  }
  if (cv_sandbox_looks_up(needs)) {
    CV_TRY(permit_port(rules, DNS_PORT));
    say(rules->part, " and 53", "");
  }
  return CV_OK;
}

/* ---- all together ---- */

/* The number of threads; 0 without /proc. */
static unsigned count_threads(void) {
  unsigned n = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) {
    return 0;
  }
  for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    n += entry->d_name[0] != '.';
  }
  (void)closedir(tasks);
  return n;
}

/* True if the kernel supports Landlock and it would apply to the whole process. */
static bool is_possible(unsigned abi_most, struct cv_sandbox_part *part, unsigned *ret_abi) {
  if (CV_SANITIZED) { /* not #if, which would leave functions unused */
    say(part, "this is a sanitizer build", "");
    return false;
  }
  unsigned threads = count_threads();
  if (threads > 1) {
    (void)snprintf(part->text, sizeof(part->text), "%u threads are running; expected one", threads);
    return false;
  }
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1 || abi_most < 1) {
    say(part, errno == EOPNOTSUPP ? "not enabled when the kernel was booted" : "not supported by this kernel", "");
    return false;
  }
  *ret_abi = abi < (long)abi_most ? (unsigned)abi : abi_most;
  return true;
}

static bool restrict_to(struct rules *rules, const struct cv_sandbox_needs *needs) {
  /* Rights that an older kernel does not know are zero, which it accepts. */
  rules->fd = (int)syscall(SYS_landlock_create_ruleset, &rules->rights, sizeof(rules->rights), 0);
  if (rules->fd < 0) {
    return false;
  }
  bool done = permit_files(rules, needs) == CV_OK && permit_ports(rules, needs) == CV_OK &&
              syscall(SYS_landlock_restrict_self, rules->fd, 0) == 0;
  int error = errno;
  (void)close(rules->fd);
  errno = error;
  return done;
}

void cv_sandbox_landlock(const struct cv_sandbox_needs *needs, unsigned abi_most, struct cv_sandbox_part *ret) {
  unsigned abi = 0;
  *ret = (struct cv_sandbox_part){0};
  if (!is_possible(abi_most, ret, &abi)) {
    return;
  }
  struct rules rules = {.rights = cv_landlock_rights(abi), .part = ret};
  (void)snprintf(ret->text, sizeof(ret->text), "ABI %u", abi);
  ret->on = restrict_to(&rules, needs);
  if (!ret->on) {
    (void)snprintf(ret->text, sizeof(ret->text), "the rules were refused: %s", strerror(errno));
  }
}
