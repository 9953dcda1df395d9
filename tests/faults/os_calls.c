/* What stands between a program and the files below one directory, loaded by LD_PRELOAD.
 *
 * It counts the calls that touch them, writes each into a log, and lets one of them fail: with an
 * error, by doing half of it, by doing it and reporting an error, or by killing the process. So it
 * sees what the compiled kernel does, too. tests/faults/boundary.py drives it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
enum { PASS, FAIL, HALF, DO_AND_FAIL, KILL };
enum { N_FILES = 4096, LENGTH = 4096 };

static char root[LENGTH];
static char *names[N_FILES]; /* of open files below the root */
static long n_calls, first, last;
static int kind, number_of_error, log_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Watch a directory: fail from the first call to the last one; keep a log unless its name is "". */
void boundary_arm(const char *directory, long from, long to, int how, int error, const char *log)
{
    snprintf(root, sizeof root, "%s", directory);
    n_calls = 0, first = from, last = to, kind = how, number_of_error = error;
    if (log_file >= 0)
        REAL(int, "close", int)(log_file);
    log_file = *log ? REAL(int, "open", const char *, int, ...)(log, O_CREAT | O_TRUNC | O_WRONLY, 0600) : -1;
}

long boundary_calls(void) { return n_calls; }

static int is_below(const char *path)
{
    size_t n = strlen(root);
    return n && strncmp(path, root, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* Give the full name of a path; NULL if it is not below the root. */
static const char *full(int directory, const char *path, char *to)
{
    if (!*root || !path)
        return NULL;
    if (*path != '/') {
        if (directory < 0 || directory >= N_FILES || !names[directory])
            return NULL;
        snprintf(to, LENGTH, "%s/%s", names[directory], path);
        path = to;
    }
    return is_below(path) ? path : NULL;
}

static const char *name_of(int file)
{
    return file >= 0 && file < N_FILES ? names[file] : NULL;
}

/* The call that failed first: others may run at the same time, and their order varies. */
static char failed[32];
const char *boundary_failed(void) { return failed; }

/* Count a call, and tell what to do at it. */
static int begin(const char *call)
{
    long n = __sync_add_and_fetch(&n_calls, 1);
    if (n < first || n > last)
        return PASS;
    if (n == first)
        snprintf(failed, sizeof failed, "%s", call);
    if (kind == KILL)
        kill(getpid(), SIGKILL);
    if (kind == FAIL)
        errno = number_of_error;
    return kind;
}

static void say(const char *call, const char *path, const char *other, long inode, long at,
                const struct iovec *parts, int n_parts, ssize_t n)
{
    if (log_file < 0)
        return;
    int error = errno;
    pthread_mutex_lock(&lock);
    char *line;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    fprintf(out, "%s\t%s\t%s\t%ld\t%ld\t", call, path, other, inode, at);
    for (int k = 0; k < n_parts; k++)
        for (size_t i = 0; i < parts[k].iov_len && n > 0; i++, n--)
            fprintf(out, "%02x", ((unsigned char *)parts[k].iov_base)[i]);
    fprintf(out, "\n");
    fclose(out);
    if (REAL(ssize_t, "write", int, const void *, size_t)(log_file, line, size) < 0)
        abort();
    free(line);
    pthread_mutex_unlock(&lock);
    errno = error;
}

static long inode_of(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 ? (long)status.st_ino : 0;
}

/* End a call that changes names: log it, or report an error that is none. */
static int end(int how, int result, const char *call, const char *path, const char *other)
{
    if (result == 0)
        say(call, path, other, 0, 0, NULL, 0, 0);
    if (how == DO_AND_FAIL) {
        errno = number_of_error;
        return -1;
    }
    return result;
}

static int opened(int directory, const char *path, int flags, mode_t mode)
{
    char other[LENGTH];
    struct stat status;
    const char *name = full(directory, path, other);
    int (*real)(int, const char *, int, ...) = REAL(int, "openat", int, const char *, int, ...);
    if (!name)
        return real(directory, path, flags, mode);
    int how = begin("open");
    if (how == FAIL)
        return -1;
    int is_new = flags & O_CREAT && fstatat(directory, path, &status, 0) != 0;
    int file = real(directory, path, flags, mode);
    if (file >= 0 && file < N_FILES)
        names[file] = strdup(name);
    if (file >= 0)
        say(is_new ? "create" : flags & (O_WRONLY | O_RDWR) ? "open to write" : "open", name, "", inode_of(file), 0, NULL, 0, 0);
    if (file >= 0 && how == DO_AND_FAIL) {
        close(file);
        errno = number_of_error;
        return -1;
    }
    return file;
}

static mode_t mode_of(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, mode_t) : 0; }
#define OPENED(directory)                                                                          \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = mode_of(flags, rest);                                                            \
    va_end(rest);                                                                                  \
    return opened(directory, path, flags, mode);
int open(const char *path, int flags, ...) { OPENED(AT_FDCWD) }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD) }
int openat(int directory, const char *path, int flags, ...) { OPENED(directory) }
int openat64(int directory, const char *path, int flags, ...) { OPENED(directory) }

int close(int file)
{
    if (file >= 0 && file < N_FILES && names[file]) {
        free(names[file]);
        names[file] = NULL;
    }
    return REAL(int, "close", int)(file);
}

DIR *opendir(const char *path)
{
    char other[LENGTH];
    const char *name = full(AT_FDCWD, path, other);
    if (name && begin("list") == FAIL)
        return NULL;
    if (name)
        say("list", name, "", 0, 0, NULL, 0, 0);
    return REAL(DIR *, "opendir", const char *)(path);
}

/* Read or write; half of it where it is told to. */
static ssize_t moved(int file, const struct iovec *parts, int n_parts, off_t at, int to_write)
{
    const char *name = name_of(file);
    int how = name ? begin(to_write ? "write" : "read") : PASS;
    struct iovec half = parts[0];
    if (how == FAIL)
        return -1;
    if (how == HALF) {
        half.iov_len = n_parts > 1 ? half.iov_len : half.iov_len / 2;
        parts = &half, n_parts = 1;
    }
    off_t begun = at >= 0 ? at : name && to_write ? lseek(file, 0, SEEK_CUR) : 0;
    const char *call = to_write ? (at < 0 ? "writev" : "pwritev") : (at < 0 ? "readv" : "preadv");
    ssize_t n = at < 0 ? REAL(ssize_t, call, int, const struct iovec *, int)(file, parts, n_parts)
                       : REAL(ssize_t, call, int, const struct iovec *, int, off_t)(file, parts, n_parts, at);
    if (name && n >= 0)
        say(to_write ? "write" : "read", name, "", inode_of(file), begun, parts, to_write ? n_parts : 0, n);
    if (how == DO_AND_FAIL) {
        errno = number_of_error;
        return -1;
    }
    return n;
}

#define PART const struct iovec part = {(void *)data, n}
ssize_t write(int file, const void *data, size_t n) { PART; return moved(file, &part, 1, -1, 1); }
ssize_t read(int file, void *data, size_t n) { PART; return moved(file, &part, 1, -1, 0); }
ssize_t pwrite(int file, const void *data, size_t n, off_t at) { PART; return moved(file, &part, 1, at, 1); }
ssize_t pwrite64(int file, const void *data, size_t n, off_t at) { PART; return moved(file, &part, 1, at, 1); }
ssize_t pread(int file, void *data, size_t n, off_t at) { PART; return moved(file, &part, 1, at, 0); }
ssize_t pread64(int file, void *data, size_t n, off_t at) { PART; return moved(file, &part, 1, at, 0); }
ssize_t writev(int file, const struct iovec *parts, int n) { return moved(file, parts, n, -1, 1); }
ssize_t readv(int file, const struct iovec *parts, int n) { return moved(file, parts, n, -1, 0); }

static int truncated(int file, off_t n)
{
    const char *name = name_of(file);
    int how = name ? begin("truncate") : PASS;
    if (how == FAIL)
        return -1;
    int result = REAL(int, "ftruncate", int, off_t)(file, n);
    if (name && result == 0)
        say("truncate", name, "", inode_of(file), n, NULL, 0, 0);
    return result;
}
int ftruncate(int file, off_t n) { return truncated(file, n); }
int ftruncate64(int file, off_t n) { return truncated(file, n); }

int fsync(int file)
{
    const char *name = name_of(file);
    int how = name ? begin("sync") : PASS;
    if (how == FAIL)
        return -1;
    int result = REAL(int, "fsync", int)(file);
    if (name && result == 0)
        say("sync", name, "", inode_of(file), 0, NULL, 0, 0);
    if (how == DO_AND_FAIL) {
        errno = number_of_error;
        return -1;
    }
    return result;
}

/* Calls that change names: of one path, and of two. */
#define ONE(call, d, path, real)                                                                   \
    char other[LENGTH];                                                                            \
    const char *name = full(d, path, other);                                                       \
    int how = name ? begin(call) : PASS;                                                               \
    if (how == FAIL)                                                                               \
        return -1;                                                                                 \
    int result = real;                                                                             \
    return name ? end(how, result, call, name, "") : result;
#define TWO(call, d, path, d2, path2, real)                                                        \
    char other[LENGTH], other2[LENGTH];                                                            \
    const char *name = full(d, path, other), *name2 = full(d2, path2, other2);                     \
    int how = name2 ? begin(call) : PASS;                                                              \
    if (how == FAIL)                                                                               \
        return -1;                                                                                 \
    int result = real;                                                                             \
    return name2 ? end(how, result, call, name ? name : "", name2) : result;
#define AT int, const char *
int mkdirat(int d, const char *p, mode_t m) { ONE("mkdir", d, p, REAL(int, "mkdirat", AT, mode_t)(d, p, m)) }
int mkdir(const char *p, mode_t m) { return mkdirat(AT_FDCWD, p, m); }
int unlinkat(int d, const char *p, int f) { ONE(f & AT_REMOVEDIR ? "rmdir" : "unlink", d, p, REAL(int, "unlinkat", AT, int)(d, p, f)) }
int unlink(const char *p) { return unlinkat(AT_FDCWD, p, 0); }
int rmdir(const char *p) { return unlinkat(AT_FDCWD, p, AT_REMOVEDIR); }
int linkat(int d, const char *p, int d2, const char *p2, int f) { TWO("link", d, p, d2, p2, REAL(int, "linkat", AT, AT, int)(d, p, d2, p2, f)) }
int link(const char *p, const char *p2) { return linkat(AT_FDCWD, p, AT_FDCWD, p2, 0); }
int renameat(int d, const char *p, int d2, const char *p2) { TWO("rename", d, p, d2, p2, REAL(int, "renameat", AT, AT)(d, p, d2, p2)) }
int rename(const char *p, const char *p2) { return renameat(AT_FDCWD, p, AT_FDCWD, p2); }

typedef long (*system_call)(long, long, long, long, long, long, long);
static int renamed(long d, long p, long d2, long p2, long flags)
{
    system_call real = (system_call)dlsym(RTLD_NEXT, "syscall");
    TWO("rename", (int)d, (const char *)p, (int)d2, (const char *)p2, (int)real(SYS_renameat2, d, p, d2, p2, flags, 0))
}
long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int k = 0; k < 6; k++)
        a[k] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2)
        return renamed(a[0], a[1], a[2], a[3], a[4]);
    return ((system_call)dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
