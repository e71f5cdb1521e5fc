/* SPDX-License-Identifier: Apache-2.0 */
/* A child enters the sandbox and then acts as an intruder would; it also tries what must still work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/crypto/secret.h"
#include "common/sandbox/parts.h"
#include "common/sandbox/sandbox.h"
#include "tests/support/folder.h"
#include "tests/support/machine.h"

static const struct cv_sandbox_settings on = {.mode = CV_SANDBOX_ON};
static const struct cv_sandbox_settings require = {.mode = CV_SANDBOX_REQUIRE};
static const struct cv_sandbox_settings off = {.mode = CV_SANDBOX_OFF};

/*
 * The folders of a test: own/ with a certificate, and a link there to one in archive/; state/; run/ for a socket;
 * foreign/ with the files of another party, of the same user.
 */
static struct folder place;
static char cert[320], link_path[320], state_path[320], socket_path[320], foreign[320];

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static int set_up(void **state) {
  static const char *const folders[] = {"own", "archive", "state", "run", "foreign"};
  folder_make(&place);
  for (size_t i = 0; i < CV_COUNT(folders); i++) {
    assert_int_equal(mkdir(folder_file(&place, folders[i]), 0700), 0);
  }
  (void)snprintf(cert, sizeof(cert), "%s/own/cert.pem", place.path);
  (void)snprintf(link_path, sizeof(link_path), "%s/own/link.pem", place.path);
  (void)snprintf(state_path, sizeof(state_path), "%s/state", place.path);
  (void)snprintf(socket_path, sizeof(socket_path), "%s/run/admin.sock", place.path);
  (void)snprintf(foreign, sizeof(foreign), "%s/foreign/broker.db", place.path);
  write_file(cert, "old");
  write_file(folder_file(&place, "archive/cert1.pem"), "linked");
  write_file(socket_path, "");
  write_file(foreign, "secret");
  assert_int_equal(symlink("../archive/cert1.pem", link_path), 0);
  return 0;
}

static int tear_down(void **state) {
  char command[100];
  (void)snprintf(command, sizeof(command), "rm -rf '%s'", place.path);
  return system(command);
}

static struct cv_sandbox_needs needs(const char *dials) {
  return (struct cv_sandbox_needs){
      .reads = {cert, NULL, link_path}, .state = state_path, .socket = socket_path, .dials = {dials}};
}

/* ---- children ---- */

#define EXPECT(condition)                                                                                \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      (void)fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
      _exit(1);                                                                                          \
    }                                                                                                    \
  } while (0)

/* Runs it in a process of its own; returns the wait status. */
static int in_child(void (*run)(const void *), const void *data) {
  (void)fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    run(data);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

#define IN_CHILD(run, data) assert_int_equal(in_child((run), (data)), 0)

/* Memory for keys may be locked within the limit, which root may raise in most places. */
static bool may_lock(void) {
  const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  struct rlimit limit;
  EXPECT(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  return limit.rlim_max >= 2 << 20 || setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0;
}

/* In the child. `second`: another address that it dials; NULL: none. */
static void enter_with(const char *dials, const char *second) {
  struct cv_sandbox_needs wanted = needs(dials);
  wanted.dials[1] = second;
  struct cv_sandbox_report report;
  struct cv_why why;
  EXPECT(cv_sandbox_enter(&on, &wanted, &report, &why) == CV_OK);
  if (!CV_SANITIZED && !report.whole && may_lock()) {
    (void)fprintf(stderr, "%s\n", report.text);
    _exit(1);
  }
}

static void enter(const char *dials) {
  enter_with(dials, NULL);
}

static bool reads(const char *path, const char *expected) {
  char text[64] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool same = fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, expected) == 0;
  if (fd >= 0) {
    (void)close(fd);
  }
  return same;
}

static bool is_denied(int result) {
  return result < 0 && errno == EACCES;
}

/* ---- what is left of the file system ---- */

static void expect_files(void) {
  EXPECT(reads(cert, "old"));
  EXPECT(reads(link_path, "linked"));
  EXPECT(is_denied(open(foreign, O_RDONLY)));
  EXPECT(is_denied(open(foreign, O_WRONLY)));
  EXPECT(is_denied(open(cert, O_WRONLY)));
  EXPECT(is_denied(open("/etc/passwd", O_RDONLY)));
  EXPECT(is_denied(open("/proc/self/maps", O_RDONLY)));
  EXPECT(is_denied(open("/tmp", O_RDONLY | O_DIRECTORY)));
  EXPECT(is_denied(open("/tmp/crowdveil-outside", O_WRONLY | O_CREAT, 0600)));
  EXPECT(is_denied(unlink(foreign)));
  EXPECT(is_denied(open(socket_path, O_RDONLY)));
  EXPECT(unlink(socket_path) == 0);
  char file[400];
  (void)snprintf(file, sizeof(file), "%s/thirdparty.db-wal", state_path);
  int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT(fd >= 0 && write(fd, "abc", 3) == 3 && ftruncate(fd, 1) == 0 && fsync(fd) == 0 && close(fd) == 0);
  EXPECT(open(file, O_RDWR | O_TRUNC) >= 0 && unlink(file) == 0);
  EXPECT(open(state_path, O_RDONLY | O_DIRECTORY) >= 0);
}

static void try_files(const void *data) {
  enter(NULL);
  expect_files();
}

static void only_what_is_needed_can_be_opened(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  IN_CHILD(try_files, NULL);
}

/* An older kernel: the rules that it knows hold, and the others do no harm. */
static void try_abi(const void *data) {
  const unsigned *abi = data;
  struct cv_sandbox_needs wanted = needs("127.0.0.1:1");
  struct cv_sandbox_part part;
  char start[16];
  cv_sandbox_no_new_privileges(&part);
  EXPECT(part.on);
  cv_sandbox_landlock(&wanted, *abi, &part);
  (void)snprintf(start, sizeof(start), "ABI %u, ", *abi);
  EXPECT(part.on && strncmp(part.text, start, strlen(start)) == 0);
  EXPECT((strstr(part.text, "any TCP port") != NULL) == (*abi < 4));
  expect_files();
}

static void every_abi_of_landlock_will_do(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  long newest = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
  assert_true(newest >= 1);
  for (unsigned abi = 1; abi <= (unsigned)newest && abi <= 7; abi++) {
    write_file(socket_path, "");
    IN_CHILD(try_abi, &abi);
  }
  struct cv_sandbox_needs wanted = needs(NULL);
  struct cv_sandbox_part part;
  cv_sandbox_landlock(&wanted, 0, &part);
  assert_false(part.on);
  assert_string_equal(part.text, "not supported by this kernel");
}

static void rights_grow_with_the_abi(void **state) {
  static const struct cv_landlock_rights expected[] = {{0, 0, 0},      {0x1fff, 0, 0}, {0x3fff, 0, 0}, {0x7fff, 0, 0},
                                                       {0x7fff, 3, 0}, {0xffff, 3, 0}, {0xffff, 3, 3}, {0xffff, 3, 3}};
  for (unsigned abi = 0; abi < CV_COUNT(expected); abi++) {
    struct cv_landlock_rights rights = cv_landlock_rights(abi);
    assert_memory_equal(&rights, &expected[abi], sizeof(rights));
  }
}

struct handshake {
  int ready[2], go[2];
};

static void tell(const int *pipe) {
  EXPECT(write(pipe[1], "x", 1) == 1);
}

static void await(const int *pipe) {
  char byte;
  EXPECT(read(pipe[0], &byte, 1) == 1);
}

static void try_renewed(const void *data) {
  const struct handshake *shake = data;
  enter(NULL);
  tell(shake->ready);
  await(shake->go);
  EXPECT(reads(cert, "new"));
}

static pid_t start_child(void (*run)(const void *), const struct handshake *shake) {
  (void)fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* does not block if the test fails */
    run(shake);
    _exit(0);
  }
  char byte;
  (void)close(shake->ready[1]); /* a failing child ends the pipe */
  assert_int_equal(read(shake->ready[0], &byte, 1), 1);
  return child;
}

static void end_child(pid_t child, const struct handshake *shake) {
  int status;
  assert_int_equal(write(shake->go[1], "x", 1), 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void a_certificate_may_be_replaced_by_rename(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  struct handshake shake;
  assert_true(pipe2(shake.ready, O_CLOEXEC) == 0 && pipe2(shake.go, O_CLOEXEC) == 0);
  pid_t child = start_child(try_renewed, &shake);
  write_file(folder_file(&place, "renewed"), "new");
  assert_int_equal(rename(folder_file(&place, "renewed"), cert), 0);
  end_child(child, &shake);
}

/* ---- system calls ---- */

static void try_exec(const void *data) {
  enter("localhost:1");
  (void)execl("/bin/true", "true", (char *)NULL);
}

static void try_fork(const void *data) {
  enter("localhost:1");
  (void)syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL);
}

static void try_trace(const void *data) {
  enter("localhost:1");
  (void)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static void try_unshare(const void *data) {
  enter("localhost:1");
  (void)syscall(SYS_unshare, 0);
}

static void what_only_an_intruder_calls_ends_the_daemon(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  void (*const tries[])(const void *) = {try_exec, try_fork, try_trace, try_unshare};
  for (size_t i = 0; i < CV_COUNT(tries); i++) {
    int status = in_child(tries[i], NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
  }
}

static void try_unlisted(const void *data) {
  enter(NULL);
  EXPECT(syscall(SYS_memfd_create, "x", 0) < 0 && errno == ENOSYS);
  EXPECT(kill(getppid(), 0) < 0 && errno == ENOSYS);
  EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
  EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0);
  EXPECT(ioctl(0, TIOCSTI, "x") < 0 && errno == ENOSYS);
}

static void what_is_not_listed_is_not_there(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  IN_CHILD(try_unlisted, NULL);
}

static void try_abort(const void *data) {
  enter(NULL);
  abort();
}

static void our_own_bugs_still_end_in_abort(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  int status = in_child(try_abort, NULL);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
  assert_false(WCOREDUMP(status));
}

/* ---- the network ---- */

static int listen_on(unsigned *ret_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t n = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, n) == 0 && listen(fd, 5) == 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
  *ret_port = ntohs(address.sin_port);
  return fd;
}

static int connect_to(unsigned port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT(fd >= 0);
  return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

struct ports {
  const char *host;
  unsigned allowed, standby, second, other;
};

static void try_ports(const void *data) {
  const struct ports *ports = data;
  char dials[64], second[64];
  (void)snprintf(dials, sizeof(dials), "%s:%u, 127.0.0.1:%u", ports->host, ports->allowed, ports->standby);
  (void)snprintf(second, sizeof(second), "127.0.0.1:%u", ports->second);
  bool limited = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;
  enter_with(dials, second);
  EXPECT(connect_to(ports->allowed) == 0);
  EXPECT(connect_to(ports->standby) == 0);
  EXPECT(connect_to(ports->second) == 0);
  EXPECT(!limited || is_denied(connect_to(ports->other)));
  EXPECT(limited || connect_to(ports->other) == 0);
  struct sockaddr_in any = {.sin_family = AF_INET};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || !limited);
}

static void only_the_dialled_ports_can_be_reached(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  struct ports ports = {.host = "127.0.0.1"};
  int standby = listen_on(&ports.standby);
  int allowed = listen_on(&ports.allowed), second = listen_on(&ports.second), other = listen_on(&ports.other);
  IN_CHILD(try_ports, &ports);
  ports.host = "localhost";
  IN_CHILD(try_ports, &ports);
  (void)close(allowed);
  (void)close(standby);
  (void)close(second);
  (void)close(other);
}

static void *look_up(void *data) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  int *ret = data;
  *ret = getaddrinfo("localhost", "1", &hints, &found);
  return NULL;
}

static void try_lookup(const void *data) {
  enter("127.0.0.1:1,localhost:1"); /* one of them is a name */
  pthread_t thread;
  int result = -1;
  EXPECT(pthread_create(&thread, NULL, look_up, &result) == 0 && pthread_join(thread, NULL) == 0);
  EXPECT(result == 0);
  EXPECT(reads("/etc/no-such-file", "") == false && errno == ENOENT);
  EXPECT(is_denied(open(foreign, O_RDONLY)));
}

static void names_are_looked_up_on_another_thread(void **state) {
  if (lacks_sandbox() || lacks_localhost()) {
    return;
  }
  IN_CHILD(try_lookup, NULL);
}

/* ---- threads and privileges ---- */

/* A line of /proc/PID/task/TID/status. */
static void read_status(const char *task, const char *key, char *value, size_t size) {
  char path[300], line[256];
  (void)snprintf(path, sizeof(path), "%s/status", task);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  value[0] = '\0';
  while (fgets(line, sizeof(line), file) != NULL) {
    size_t n = strlen(key);
    if (strncmp(line, key, n) == 0 && line[n] == ':') {
      (void)snprintf(value, size, "%.*s", (int)strcspn(line + n + 2, "\n"), line + n + 2);
    }
  }
  (void)fclose(file);
}

static void assert_status(const char *task, const char *key, const char *expected) {
  char value[128];
  read_status(task, key, value, sizeof(value));
  assert_string_equal(value, expected);
}

static void *sit(void *data) {
  const struct handshake *shake = data;
  EXPECT(is_denied(open(foreign, O_RDONLY)));
  tell(shake->ready);
  await(shake->go);
  return NULL;
}

static void try_thread(const void *data) {
  pthread_t thread;
  struct handshake shake = *(const struct handshake *)data;
  enter(NULL);
  EXPECT(pthread_create(&thread, NULL, sit, &shake) == 0 && pthread_join(thread, NULL) == 0);
  struct rlimit limit;
  EXPECT(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0);
}

static void every_thread_is_shut_in(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  struct handshake shake;
  unsigned threads = 0;
  char folder_path[64], task[330], dumpable[330];
  struct stat info;
  assert_true(pipe2(shake.ready, O_CLOEXEC) == 0 && pipe2(shake.go, O_CLOEXEC) == 0);
  pid_t child = start_child(try_thread, &shake);
  (void)snprintf(folder_path, sizeof(folder_path), "/proc/%d/task", child);
  DIR *tasks = opendir(folder_path);
  assert_non_null(tasks);
  for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') {
      continue;
    }
    threads++;
    (void)snprintf(task, sizeof(task), "%s/%s", folder_path, entry->d_name);
    assert_status(task, "Seccomp", "2");
    assert_status(task, "NoNewPrivs", "1");
    assert_status(task, "CapEff", "0000000000000000");
    assert_status(task, "CapPrm", "0000000000000000");
    assert_status(task, "CapInh", "0000000000000000");
    assert_status(task, "CapAmb", "0000000000000000");
    if (geteuid() == 0) {
      assert_status(task, "CapBnd", "0000000000000000");
    }
  }
  (void)closedir(tasks);
  assert_int_equal(threads, 2);
  (void)snprintf(dumpable, sizeof(dumpable), "/proc/%d/environ", child); /* root's if it cannot be dumped */
  assert_int_equal(stat(dumpable, &info), 0);
  assert_int_equal(info.st_uid, 0);
  end_child(child, &shake);
}

static void *wait_for_go(void *data) {
  await(((const struct handshake *)data)->go);
  return NULL;
}

static void try_late(const void *data) {
  pthread_t thread;
  struct handshake shake = *(const struct handshake *)data;
  struct cv_sandbox_needs wanted = needs(NULL);
  struct cv_sandbox_part part;
  struct cv_sandbox_report report = {.text = "untouched"};
  struct cv_why why;
  EXPECT(pthread_create(&thread, NULL, wait_for_go, &shake) == 0);
  cv_sandbox_landlock(&wanted, UINT_MAX, &part);
  EXPECT(!part.on && strcmp(part.text, "2 threads are running; expected one") == 0);
  EXPECT(cv_sandbox_enter(&require, &wanted, &report, &why) == CV_ERR_STATE);
  EXPECT(strstr(why.text, "landlock is not available: 2 threads are running") != NULL);
  EXPECT(strcmp(report.text, "untouched") == 0);
  tell(shake.go);
  EXPECT(pthread_join(thread, NULL) == 0);
}

static void a_thread_that_runs_already_is_reported(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  struct handshake shake;
  assert_true(pipe2(shake.ready, O_CLOEXEC) == 0 && pipe2(shake.go, O_CLOEXEC) == 0);
  IN_CHILD(try_late, &shake);
}

static void try_whole(const void *data) {
  struct cv_sandbox_needs wanted = needs("localhost:4711");
  struct cv_sandbox_report report;
  struct cv_why why;
  bool locks = may_lock();
  const struct cv_sandbox_settings *mode = locks ? &require : &on;
  cv_sandbox_begin(mode);
  EXPECT(cv_sandbox_enter(mode, &wanted, &report, &why) == CV_OK);
  EXPECT(report.whole == locks);
  static const char *const parts[] = {"user: ",
                                      "; new privileges: none;",
                                      "; capabilities: none",
                                      "; core dumps: none;",
                                      "; swap: ",
                                      "; seccomp: ",
                                      "; landlock: "};
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    EXPECT(strstr(report.text, parts[i]) != NULL);
  }
  EXPECT(strstr(report.text, state_path) != NULL);
  /* Entering twice is no error, but nothing is left that could change the filter. */
  EXPECT(cv_sandbox_enter(&on, &wanted, &report, &why) == CV_OK && !report.whole);
}

static void the_report_names_every_part(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  IN_CHILD(try_whole, NULL);
}

/* ---- memory ---- */

/* KiB of this process's memory that are never written to a swap device. */
static unsigned long locked_kib(void) {
  char line[128];
  unsigned long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  EXPECT(status != NULL);
  while (fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "VmLck:", 6) == 0) {
      kib = strtoul(line + 6, NULL, 10);
    }
  }
  (void)fclose(status);
  return kib;
}

static void try_unlimited(const void *data) {
  enum { BYTES = 8 << 20 };
  const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  struct cv_sandbox_part part;
  if (setrlimit(RLIMIT_MEMLOCK, &unlimited) != 0) {
    return; /* not even root may here */
  }
  cv_sandbox_begin(&on);
  unsigned long before = locked_kib();
  EXPECT(before > 0);
  EXPECT(setresuid(65534, 65534, 65534) == 0 || geteuid() != 0);
  cv_sandbox_swap(&part); /* what the user was allowed before still holds */
  EXPECT(part.on && strcmp(part.text, "nothing") == 0);
  void *later = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(later != MAP_FAILED && locked_kib() >= before + BYTES / 1024);
}

/* As nobody, with a limit that not even root can raise then. */
static void limit_to(size_t bytes, struct cv_sandbox_part *ret) {
  const struct rlimit limit = {bytes, bytes};
  EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  EXPECT(setresuid(65534, 65534, 65534) == 0 || geteuid() != 0);
  cv_sandbox_swap(ret);
}

static bool is_locked_at(const void *at) {
  bool inside = false, found = false;
  char line[512], *to;
  FILE *maps = fopen("/proc/self/smaps", "r");
  EXPECT(maps != NULL);
  while (!found && fgets(line, sizeof(line), maps) != NULL) {
    unsigned long from = strtoul(line, &to, 16);
    if (*to == '-') {
      inside = (unsigned long)at >= from && (unsigned long)at < strtoul(to + 1, NULL, 16);
    }
    found = inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " lo") != NULL;
  }
  (void)fclose(maps);
  return found;
}

static void try_keys(const void *data) {
  const struct cv_key key = {{1, 2, 3}};
  struct cv_sandbox_part part;
  limit_to(8 << 20, &part);
  EXPECT(part.on);
  EXPECT(strcmp(part.text, "no keys, but other memory: locked memory is limited to 8192 KiB") == 0);
  struct cv_key *kept = cv_secret_key(&key);
  EXPECT(kept != NULL && memcmp(kept, &key, sizeof(key)) == 0 && is_locked_at(kept));
  cv_secret_free(kept);
  cv_sandbox_swap(&part);
  EXPECT(part.on); /* as a daemon enters */
}

static void try_too_little(const void *data) {
  struct cv_sandbox_part part;
  limit_to(64 << 10, &part);
  EXPECT(!part.on && locked_kib() == 0);
  EXPECT(strcmp(part.text, "locked memory is limited to 64 KiB; expected 2048 for the keys, or unlimited") == 0);
  struct cv_key key = {{1}}, *kept = cv_secret_key(&key);
  EXPECT(kept != NULL); /* it goes on without */
  cv_secret_free(kept);
}

static void memory_stays_out_of_swap(void **state) {
  if (lacks_sandbox()) {
    return;
  }
  IN_CHILD(try_unlimited, NULL);
  IN_CHILD(try_keys, NULL);
  IN_CHILD(try_too_little, NULL);
}

/* ---- as configured ---- */

static void try_off(const void *data) {
  struct cv_sandbox_needs wanted = needs(NULL);
  struct cv_sandbox_report report;
  struct cv_why why;
  struct rlimit before, after;
  int privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); /* a container may lack them */
  EXPECT(getrlimit(RLIMIT_CORE, &before) == 0);
  cv_sandbox_begin(&off);
  EXPECT(cv_sandbox_enter(&off, &wanted, &report, &why) == CV_OK);
  EXPECT(strcmp(report.text, "off, as configured") == 0 && !report.whole);
  EXPECT(getrlimit(RLIMIT_CORE, &after) == 0 && before.rlim_cur == after.rlim_cur);
  EXPECT(reads(foreign, "secret"));
  EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == privileges);
  (void)execl("/bin/true", "true", (char *)NULL);
  _exit(1);
}

static void off_is_off(void **state) {
  IN_CHILD(try_off, NULL);
}

static void try_nobody(const void *data) {
  char nobody[] = "nobody", root[] = "root", bin[] = "bin";
  const struct cv_sandbox_settings as_root = {.user = root}, as_nobody = {.user = nobody}, as_bin = {.user = bin};
  struct cv_why why = {.text = ""};
  gid_t groups[8];
  EXPECT(cv_sandbox_become(&as_root, &why) == CV_OK && geteuid() == 0); /* that is the current user */
  EXPECT(cv_sandbox_become(&as_nobody, &why) == CV_OK);
  EXPECT(getuid() == 65534 && geteuid() == 65534 && getgid() == 65534 && getegid() == 65534);
  EXPECT(getgroups(CV_COUNT(groups), groups) == 1 && groups[0] == 65534);
  EXPECT(setuid(0) < 0);
  EXPECT(cv_sandbox_become(&as_nobody, &why) == CV_OK);
  EXPECT(cv_sandbox_become(&as_bin, &why) == CV_ERR_DENIED);
  EXPECT(strcmp(why.text, "user: cannot become bin; expected to be started as root or as bin") == 0);
}

static void another_user_is_become_for_good(void **state) {
  if (geteuid() == 0) {
    IN_CHILD(try_nobody, NULL);
  }
}

static void a_user_that_is_not_there_is_named(void **state) {
  char name[] = "crowdveil-no-such-user";
  const struct cv_sandbox_settings settings = {.user = name};
  struct cv_why why;
  assert_int_equal(cv_sandbox_become(&settings, &why), CV_ERR_NOT_FOUND);
  assert_string_equal(why.text, "user: unknown user crowdveil-no-such-user; expected a user of this machine");
}

static void try_sanitized(const void *data) {
  struct cv_sandbox_needs wanted = needs(NULL);
  struct cv_sandbox_report report;
  struct cv_why why;
  EXPECT(cv_sandbox_enter(&on, &wanted, &report, &why) == CV_OK && !report.whole);
  EXPECT(strstr(report.text, "seccomp: OFF, this is a sanitizer build") != NULL);
  EXPECT(strstr(report.text, "landlock: OFF, this is a sanitizer build") != NULL);
  EXPECT(cv_sandbox_enter(&require, &wanted, &report, &why) == CV_ERR_STATE);
}

static void a_sanitizer_build_says_what_it_leaves_off(void **state) {
  IN_CHILD(try_sanitized, NULL);
}

int main(void) {
  static const struct CMUnitTest everywhere[] = {
      cmocka_unit_test(rights_grow_with_the_abi),
      cmocka_unit_test(off_is_off),
      cmocka_unit_test(another_user_is_become_for_good),
      cmocka_unit_test(a_user_that_is_not_there_is_named),
  };
  static const struct CMUnitTest shut_in[] = {
      cmocka_unit_test(only_what_is_needed_can_be_opened),
      cmocka_unit_test(every_abi_of_landlock_will_do),
      cmocka_unit_test(a_certificate_may_be_replaced_by_rename),
      cmocka_unit_test(what_only_an_intruder_calls_ends_the_daemon),
      cmocka_unit_test(what_is_not_listed_is_not_there),
      cmocka_unit_test(our_own_bugs_still_end_in_abort),
      cmocka_unit_test(only_the_dialled_ports_can_be_reached),
      cmocka_unit_test(names_are_looked_up_on_another_thread),
      cmocka_unit_test(every_thread_is_shut_in),
      cmocka_unit_test(a_thread_that_runs_already_is_reported),
      cmocka_unit_test(the_report_names_every_part),
      cmocka_unit_test(memory_stays_out_of_swap),
  };
  static const struct CMUnitTest sanitized[] = {cmocka_unit_test(a_sanitizer_build_says_what_it_leaves_off)};
  const struct CMUnitTest *more = CV_SANITIZED ? sanitized : shut_in;
  size_t few = CV_COUNT(everywhere), n = CV_SANITIZED ? CV_COUNT(sanitized) : CV_COUNT(shut_in);
  struct CMUnitTest tests[CV_COUNT(everywhere) + CV_COUNT(shut_in)];
  memcpy(tests, everywhere, sizeof(everywhere));
  memcpy(tests + few, more, n * sizeof(*more));
  return _cmocka_run_group_tests("sandbox", tests, few + n, set_up, tear_down);
}
