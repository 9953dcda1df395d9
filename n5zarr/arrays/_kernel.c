/* Boxes of a local dataset, block by block, without the interpreter's lock.
 *
 * Only the ordinary case is done here: a file that can be opened, a header of mode 0 with the size
 * that the place of the block has, a payload that decodes to exactly what the header says. Whatever
 * else is found is left to Python, which reads the block again and does what is right or says what
 * is wrong: its place in the grid is returned.
 *
 * There is no decompressor here. Those of the libraries that Python uses, too, are called through
 * the addresses that codecs/native.py finds (see `use`); without one, the Python function is called.
 *
 * Everything is in N5 order: the first axis varies fastest.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NDIM = 64, MAX_NAME = 24 * MAX_NDIM + 64, MAX_HEADER = 4 + 4 * MAX_NDIM };
enum { GROUP = 1 << 18, NEAR = 1 << 12 }; /* bytes read at once of a raw block, or in vain */
enum { TILE = 16, PATIENCE = 50 };        /* elements; milliseconds between looks for signals */
enum { RAW, GZIP, ZLIB, ZSTD, BLOSC, OTHER };
enum { SNAPPY = 2, ZSTANDARD = 4 }; /* formats of blosc */
enum { RECENT = 20000000 }; /* nanoseconds: what is written twice in a tick has one time */
#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

/* ------------------------------------------------------------------ libraries */

static struct {
    void *(*inflate_new)(void);
    void (*inflate_free)(void *);
    int (*gunzip)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
    int (*inflate)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
    void *(*zstd_new)(void);
    size_t (*zstd_free)(void *);
    size_t (*zstd_decompress)(void *, void *, size_t, const void *, size_t);
    void *(*zstd_writer_new)(void);
    size_t (*zstd_writer_free)(void *);
    size_t (*zstd_compress)(void *, void *, size_t, const void *, size_t, int);
    int (*blosc_decompress)(const void *, void *, size_t, int);
    int (*blosc_getitem)(const void *, int, int, void *);
    int (*blosc_compress)(int, int, size_t, size_t, const void *, void *, size_t, const char *,
                          size_t, int);
} library;

static PyObject *use(PyObject *self, PyObject *args)
{
    void **slots = (void **)&library;
    Py_ssize_t n = PyTuple_Size(args);
    if (n != (Py_ssize_t)(sizeof library / sizeof *slots)) {
        PyErr_SetString(PyExc_TypeError, "one address for each function, 0 where there is none");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        slots[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args, i));
        if (slots[i] == NULL && PyErr_Occurred())
            return NULL;
    }
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ copying */

typedef struct {
    int64_t n, from, to; /* elements; bytes from one to the next */
} Axis;

/* A call of memcpy costs as much as the short rows of small blocks. */
static inline void copy_bytes(char *to, const char *from, int64_t n)
{
    if (n > 256) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (; n >= 32; n -= 32, to += 32, from += 32)
        memcpy(to, from, 32);
    for (; n >= 8; n -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    for (; n > 0; n--)
        *to++ = *from++;
}

static void copy_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                     int item, int swap)
{
    if (to_step == item && from_step == item && (!swap || item == 1)) {
        copy_bytes(to, from, n * item);
        return;
    }
#define ROW(type, convert)                                                                         \
    if (to_step == sizeof(type) && from_step == sizeof(type))                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v;                                                                                \
            memcpy(&v, from + i * (int64_t)sizeof v, sizeof v);                                    \
            v = convert(v);                                                                        \
            memcpy(to + i * (int64_t)sizeof v, &v, sizeof v);                                      \
        }                                                                                          \
    else                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v;                                                                                \
            memcpy(&v, from + i * from_step, sizeof v);                                            \
            v = convert(v);                                                                        \
            memcpy(to + i * to_step, &v, sizeof v);                                                \
        }
#define SAME(v) (v)
    switch (item) {
    case 1: ROW(uint8_t, SAME) break;
    case 2: if (swap) ROW(uint16_t, __builtin_bswap16) else ROW(uint16_t, SAME) break;
    case 4: if (swap) ROW(uint32_t, __builtin_bswap32) else ROW(uint32_t, SAME) break;
    default: if (swap) ROW(uint64_t, __builtin_bswap64) else ROW(uint64_t, SAME) break;
    }
#undef ROW
#undef SAME
}

static void copy_axes(char *to, const char *from, const Axis *axis, int ndim, int item, int swap)
{
    if (ndim == 0) {
        copy_row(to, item, from, item, 1, item, swap);
    } else if (ndim == 1) {
        copy_row(to, axis->to, from, axis->from, axis->n, item, swap);
    } else if (ndim == 2 && (axis[1].to != item || axis[1].from != item)) {
        /* a transposition, in tiles: lines of the cache are used while they are there */
        for (int64_t i = 0; i < axis[0].n; i += TILE)
            for (int64_t j = 0; j < axis[1].n; j += TILE) {
                int64_t m = axis[0].n - i < TILE ? axis[0].n - i : TILE;
                int64_t n = axis[1].n - j < TILE ? axis[1].n - j : TILE;
                for (int64_t k = i; k < i + m; k++)
                    copy_row(to + k * axis[0].to + j * axis[1].to, axis[1].to,
                             from + k * axis[0].from + j * axis[1].from, axis[1].from, n, item,
                             swap);
            }
    } else if (ndim == 2 && (item == 1 || !swap) && axis[1].to == item && axis[1].from == item) {
        for (int64_t i = 0; i < axis[0].n; i++)
            copy_bytes(to + i * axis[0].to, from + i * axis[0].from, axis[1].n * item);
    } else {
        for (int64_t i = 0; i < axis[0].n; i++)
            copy_axes(to + i * axis[0].to, from + i * axis[0].from, axis + 1, ndim - 1, item,
                      swap);
    }
}

/* Copy a box; axes first to last vary ever slower where they lie in a block. */
static void copy_box(char *to, const int64_t *to_stride, const char *from,
                     const int64_t *from_stride, const int64_t *n, int ndim, int item, int swap)
{
    Axis axis[MAX_NDIM]; /* slowest first, axes that continue one another made one */
    int used = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        Axis now = {n[d], from_stride[d], to_stride[d]};
        Axis *last = used ? &axis[used - 1] : NULL;
        if (now.n == 0)
            return;
        if (now.n == 1)
            continue;
        if (last && last->from == now.n * now.from && last->to == now.n * now.to)
            *last = (Axis){last->n * now.n, now.from, now.to};
        else
            axis[used++] = now;
    }
    /* where the array's fastest axis is not the block's, it goes next to it, for the tiles */
    for (int k = 0; k + 2 < used; k++) {
        Axis last = axis[used - 1], moved = axis[k];
        if ((last.to != item && last.from == item && moved.to == item)
            || (last.from != item && last.to == item && moved.from == item)) {
            memmove(&axis[k], &axis[k + 1], sizeof(Axis) * (size_t)(used - 2 - k));
            axis[used - 2] = moved;
            break;
        }
    }
    copy_axes(to, from, axis, used, item, swap);
}

/* ------------------------------------------------------------------ the box */

typedef struct {
    int ndim, item, swap, kind, directory;
    int64_t block[MAX_NDIM], dimensions[MAX_NDIM], start[MAX_NDIM], stop[MAX_NDIM];
    int64_t first[MAX_NDIM], count[MAX_NDIM], n_blocks; /* of the grid */
    char *array;
    int64_t stride[MAX_NDIM];
    char fill[8]; /* one element, as it is stored */
    char *stored, *elements;
    int64_t n_stored, n_elements; /* bytes that these hold */
    void *inflater, *unzstd, *zstd;
    PyObject *decompress, *compress; /* called where there is no library */
    PyThreadState *thread;
    int has_raised;
    /* writing */
    int keep_empty, level, shuffle;
    long long blosc_block;
    const char *cname, *unique;
} Box;

typedef struct {
    int64_t position[MAX_NDIM];                   /* in the grid */
    int64_t extent[MAX_NDIM];                     /* what of the block lies in the dataset */
    int64_t offset[MAX_NDIM], n[MAX_NDIM];        /* what of it is wanted */
    int64_t shape[MAX_NDIM], stride[MAX_NDIM];    /* of the stored block; strides in bytes */
    int64_t n_bytes;                              /* of its elements */
    int is_inside, is_whole;
    char *target; /* where the wanted part begins in the array */
    char name[MAX_NAME];
} Block;

static int64_t low(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t high(int64_t a, int64_t b) { return a > b ? a : b; }

static char *put_number(char *to, uint64_t number)
{
    char digits[24];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n)
        *to++ = digits[--n];
    return to;
}

static void find_block(const Box *box, int64_t index, Block *block)
{
    char *name = block->name;
    block->is_inside = block->is_whole = 1;
    block->target = box->array;
    for (int d = 0; d < box->ndim; d++) {
        int64_t size = box->block[d];
        int64_t place = box->first[d] + index % box->count[d];
        int64_t begin = high(box->start[d], place * size);
        index /= box->count[d];
        block->position[d] = place;
        block->extent[d] = low(size, box->dimensions[d] - place * size);
        block->offset[d] = begin - place * size;
        block->n[d] = low(size, box->stop[d] - place * size) - block->offset[d];
        block->is_inside &= block->offset[d] + block->n[d] <= block->extent[d];
        block->is_whole &= block->n[d] == block->extent[d];
        block->target += (begin - box->start[d]) * box->stride[d];
        name = put_number(name, (uint64_t)place);
        *name++ = '/';
    }
    name[-1] = 0;
}

static void set_shape(const Box *box, Block *block, const int64_t *shape)
{
    block->n_bytes = box->item;
    for (int d = 0; d < box->ndim; d++) {
        block->shape[d] = shape[d];
        block->stride[d] = block->n_bytes;
        block->n_bytes *= shape[d];
    }
}

static int64_t n_header(const Box *box) { return 4 + 4 * (int64_t)box->ndim; }

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Compare a header with what it should be; N5 4.0.0, item 9. */
static int parse_header(const Box *box, Block *block, const char *header)
{
    int64_t shape[MAX_NDIM];
    int is_full = 1, is_extent = 1;
    if (big_endian(header) != (uint32_t)box->ndim) /* mode 0, number of dimensions */
        return 0;
    for (int d = 0; d < box->ndim; d++) {
        shape[d] = big_endian(header + 4 + 4 * d);
        is_full &= shape[d] == box->block[d];
        is_extent &= shape[d] == block->extent[d];
    }
    if (!is_full && !is_extent)
        return 0;
    set_shape(box, block, shape);
    return block->is_inside;
}

static void put_header(const Box *box, const Block *block, char *header)
{
    uint32_t words[1 + MAX_NDIM] = {(uint32_t)box->ndim};
    for (int d = 0; d < box->ndim; d++)
        words[1 + d] = (uint32_t)block->extent[d];
    for (int k = 0; k <= box->ndim; k++)
        for (int b = 0; b < 4; b++)
            header[4 * k + b] = (char)(words[k] >> (24 - 8 * b));
}

/* ------------------------------------------------------------------ reading */

enum { DONE, LEFT, MISSING };

static int is_missing(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EISDIR;
}

static void fill_part(const Box *box, const Block *block)
{
    const int64_t none[MAX_NDIM] = {0};
    copy_box(block->target, box->stride, box->fill, none, block->n, box->ndim, box->item,
             box->swap);
}

/* Offset in bytes of the first and after the last element that is wanted of some slowest rows. */
static void wanted_range(const Box *box, const Block *block, int64_t row, int64_t n_rows,
                         int64_t *begin, int64_t *end)
{
    int slowest = box->ndim - 1;
    *begin = row * block->stride[slowest];
    *end = (row + n_rows - 1) * block->stride[slowest] + box->item;
    for (int d = 0; d < slowest; d++) {
        *begin += block->offset[d] * block->stride[d];
        *end += (block->offset[d] + block->n[d] - 1) * block->stride[d];
    }
}

static void scatter(const Box *box, const Block *block, const char *elements)
{
    const char *from = elements;
    for (int d = 0; d < box->ndim; d++)
        from += block->offset[d] * block->stride[d];
    copy_box(block->target, box->stride, from, block->stride, block->n, box->ndim, box->item,
             box->swap);
}

/* Read what is wanted of an uncompressed block, some rows of its slowest axis at a time. */
static int read_raw(const Box *box, Block *block, int file, int64_t size)
{
    int64_t header = n_header(box), begin, end;
    int slowest = box->ndim - 1;
    int64_t after = block->offset[slowest] + block->n[slowest];
    int is_known = 0;
    for (int64_t row = block->offset[slowest]; row < after;) {
        int64_t stride = is_known ? block->stride[slowest] : 0;
        int64_t n_rows = !is_known ? after - row : high(1, low(after - row, GROUP / stride));
        Block part = *block;
        if (!is_known) { /* the header, and as much after it as is likely to be wanted */
            int64_t n = low(size, box->n_stored);
            set_shape(box, block, block->extent);
            wanted_range(box, block, row, n_rows, &begin, &end);
            n = low(n, begin < NEAR ? header + low(end, GROUP) : header);
            if (pread(file, box->stored, (size_t)n, 0) != n || n < header
                || !parse_header(box, block, box->stored) || size != header + block->n_bytes)
                return LEFT;
            wanted_range(box, block, row, n_rows, &begin, &end);
            is_known = 1;
            if (header + end <= n) { /* and that was all */
                scatter(box, block, box->stored + header);
                return DONE;
            }
            continue;
        }
        wanted_range(box, block, row, n_rows, &begin, &end);
        if (end - begin > box->n_stored
            || pread(file, box->stored, (size_t)(end - begin), header + begin) != end - begin)
            return LEFT;
        part.target += (row - block->offset[slowest]) * box->stride[slowest];
        part.offset[slowest] = row;
        part.n[slowest] = n_rows;
        scatter(box, &part, box->stored - begin);
        row += n_rows;
    }
    return DONE;
}

/* As blosc has its numbers, and as is every machine that blosc 1 runs on. */
static int64_t little_endian(const char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, 4);
    return number;
}

/* Whether a blosc buffer is one piece: where only some of its blocks are decoded, nothing else
 * finds out that the header is damaged. Its blocks, in any order, fill it to the last byte. */
static int is_consistent(const char *from, int64_t n, int64_t n_packed)
{
    int flags = (unsigned char)from[2];
    int64_t item = (unsigned char)from[3], size = little_endian(from + 8);
    if (flags & 8 || item == 0 || size < 1 || size > n)
        return 0;
    if (flags & 2) /* not compressed; its length has been compared */
        return 1;
    int64_t n_blocks = (n + size - 1) / size, table = 16 + 4 * n_blocks, used = table;
    int is_split = !(flags & 16) && item <= 16 && size / item >= 128;
    if (table > n_packed || (is_split && size % item != 0))
        return 0;
    for (int64_t k = 0; k < n_blocks; k++) {
        int64_t n_streams = is_split && (k + 1) * size <= n ? item : 1;
        int64_t at = little_endian(from + 16 + 4 * k), begin = at;
        for (; n_streams > 0; n_streams--) {
            if (at < table || at > n_packed - 4)
                return 0;
            at += 4 + little_endian(from + at);
        }
        if (at > n_packed)
            return 0;
        used += at - begin;
    }
    return used == n_packed;
}

/* Decode as blosc.py does: numcodecs' blosc trusts its header. */
static int unblosc(const char *from, int64_t n_from, char *to, int64_t n, int64_t begin,
                   int64_t end)
{
    unsigned char version = (unsigned char)from[0], flags = (unsigned char)from[2];
    int64_t item = (unsigned char)from[3], n_packed = little_endian(from + 12);
    int is_copied = flags & 2, format = flags >> 5;
    if (version < 1 || version > 2 || little_endian(from + 4) != n || n_packed < 16
        || n_packed > n_from || (is_copied && n_packed != n + 16))
        return 0;
    if (!is_copied && (format == SNAPPY || format > ZSTANDARD)) /* c-blosc prints what it lacks */
        return 0;
    if (library.blosc_getitem && 2 * (end - begin) < n && is_consistent(from, n, n_packed)
        && n % item == 0) {
        int64_t first = begin / item, after = (end + item - 1) / item;
        int64_t n_wanted = (after - first) * item;
        return library.blosc_getitem(from, (int)first, (int)(after - first), to + first * item)
               == n_wanted;
    }
    return library.blosc_decompress(from, to, (size_t)n, 1) == n;
}

/* Decode a payload, at least the elements from `begin` to `end`, in bytes, into their places. */
static int decode(Box *box, const Block *block, const char *from, int64_t n_from, char *to,
                  int64_t begin, int64_t end)
{
    size_t used, made, n = (size_t)block->n_bytes, n_in = (size_t)n_from;
    switch (box->kind) {
    case GZIP: /* what follows the first member is looked at by Python */
        return library.gunzip(box->inflater, from, n_in, to, n, &used, &made) == 0 && made == n
               && used == n_in;
    case ZLIB:
        return library.inflate(box->inflater, from, n_in, to, n, &used, &made) == 0 && made == n;
    case ZSTD:
        return library.zstd_decompress(box->unzstd, to, n, from, n_in) == n;
    default:
        return n_from >= 16 && unblosc(from, n_from, to, (int64_t)n, begin, end);
    }
}

/* Decode by the Python function, and do with the elements what has to be done. */
static int decode_python(Box *box, Block *block, const char *from, int64_t n_from, char *to)
{
    int result = LEFT;
    Py_buffer view;
    PyEval_RestoreThread(box->thread);
    PyObject *payload = PyMemoryView_FromMemory((char *)from, n_from, PyBUF_READ);
    PyObject *n = PyLong_FromLongLong(block->n_bytes);
    PyObject *found = payload && n
                          ? PyObject_CallFunctionObjArgs(box->decompress, payload, n, NULL)
                          : NULL;
    /* None: damaged, or there is no library; anything raised ends it all, be it a signal's */
    if (found && found != Py_None && PyObject_GetBuffer(found, &view, PyBUF_SIMPLE) == 0) {
        if (view.len == block->n_bytes) {
            if (to)
                memcpy(to, view.buf, (size_t)view.len);
            else
                scatter(box, block, view.buf);
            result = DONE;
        }
        PyBuffer_Release(&view);
    }
    box->has_raised = PyErr_Occurred() != NULL;
    Py_XDECREF(found);
    Py_XDECREF(n);
    Py_XDECREF(payload);
    box->thread = PyEval_SaveThread();
    return result;
}

/* Wait for a program that writes a file in place under a lock, as Java does, if one may be at it. */
static int settle(int file, struct stat *status, int *is_locked)
{
    struct timespec now;
    *is_locked = 0;
    if (fstat(file, status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    int64_t age = (int64_t)(now.tv_sec - status->st_mtim.tv_sec) * 1000000000
                  + (now.tv_nsec - status->st_mtim.tv_nsec);
    if (age >= RECENT || age <= -RECENT)
        return 1;
#ifdef F_OFD_SETLKW
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    *is_locked = fcntl(file, F_OFD_SETLKW, &whole) == 0;
    if (!*is_locked && errno == EINTR)
        return 0;
#endif
    return fstat(file, status) == 0;
}

/* Close a file; a process that was forked meanwhile must not keep its lock. */
static void close_file(int file, int is_locked)
{
#ifdef F_OFD_SETLKW
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (is_locked)
        fcntl(file, F_OFD_SETLK, &whole);
#endif
    close(file);
}

/* Whether nobody has written a file meanwhile; see files.py, which reads it again. */
static int is_unchanged(int file, const struct stat *before)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_size == before->st_size
           && now.st_mtim.tv_sec == before->st_mtim.tv_sec
           && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

/* Read a file, and its elements to `to` or, without it, what is wanted to the array. */
static int read_block(Box *box, Block *block, char *to)
{
    struct stat status;
    int64_t header = n_header(box), n_payload;
    int result = LEFT, is_locked;
    int file = openat(box->directory, block->name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return is_missing(errno) ? MISSING : LEFT;
    if (!settle(file, &status, &is_locked)) {
        close_file(file, is_locked);
        return LEFT;
    }
    if (S_ISDIR(status.st_mode)) {
        close_file(file, is_locked);
        return MISSING;
    }
    if (box->kind == RAW && to == NULL) {
        result = read_raw(box, block, file, status.st_size);
        if (!is_unchanged(file, &status))
            result = LEFT;
        close_file(file, is_locked);
        return result;
    }
    n_payload = status.st_size - header;
    if (n_payload >= 0 && status.st_size <= box->n_stored
        && read(file, box->stored, (size_t)status.st_size) == status.st_size
        && is_unchanged(file, &status) && parse_header(box, block, box->stored)) {
        const char *payload = box->stored + header;
        char *elements = to ? to : box->elements;
        int64_t begin = 0, end = block->n_bytes;
        if (!to)
            wanted_range(box, block, block->offset[box->ndim - 1], block->n[box->ndim - 1],
                         &begin, &end);
        if (box->kind == RAW) {
            if (n_payload == block->n_bytes && n_payload <= box->n_elements) {
                memcpy(to, payload, (size_t)block->n_bytes);
                result = DONE;
            }
        } else if (box->kind == OTHER) { /* the elements are those of Python, unless `to` is given */
            result = decode_python(box, block, payload, n_payload, to);
        } else if (block->n_bytes <= box->n_elements
                   && decode(box, block, payload, n_payload, elements, begin, end)) {
            if (!to)
                scatter(box, block, elements);
            result = DONE;
        }
    }
    close_file(file, is_locked);
    return result;
}

static int read_one(Box *box, Block *block)
{
    int result = read_block(box, block, NULL);
    if (result == MISSING) {
        fill_part(box, block);
        return DONE;
    }
    return result;
}

/* ------------------------------------------------------------------ writing */

static int is_all_fill(const Box *box, const char *elements, int64_t n_bytes)
{
    return memcmp(elements, box->fill, (size_t)box->item) == 0
           && memcmp(elements, elements + box->item, (size_t)(n_bytes - box->item)) == 0;
}

static int make_directories(const Box *box, Block *block)
{
    for (char *slash = strchr(block->name, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdirat(box->directory, block->name, 0777) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return 0;
    }
    return 1;
}

/* Write under another name, and rename: nobody ever reads half of a block. */
static int write_file(Box *box, Block *block, int64_t index, const char *payload, int64_t n_payload)
{
    char header[MAX_HEADER], other[MAX_NAME];
    static const char digits[] = "0123456789abcdef";
    char *end = other + strlen(block->name);
    memcpy(other, block->name, strlen(block->name));
    *end++ = '.';
    memcpy(end, box->unique, 16); /* and the index: 32 digits, as files.py has them */
    end += 16;
    for (int k = 60; k >= 0; k -= 4)
        *end++ = digits[(uint64_t)index >> k & 15];
    memcpy(end, ".partial", 9);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int file = openat(box->directory, other, flags, 0666);
    if (file < 0 && errno == ENOENT && make_directories(box, block))
        file = openat(box->directory, other, flags, 0666);
    if (file < 0)
        return LEFT;
    put_header(box, block, header);
    struct iovec parts[2] = {{header, (size_t)n_header(box)}, {(char *)payload, (size_t)n_payload}};
    int is_written = writev(file, parts, 2) == n_header(box) + n_payload;
    is_written &= close(file) == 0;
    if (is_written && renameat(box->directory, other, box->directory, block->name) == 0)
        return DONE;
    unlinkat(box->directory, other, 0);
    return LEFT;
}

static int write_python(Box *box, Block *block, int64_t index)
{
    int result = LEFT;
    Py_buffer view;
    PyEval_RestoreThread(box->thread);
    PyObject *data = PyMemoryView_FromMemory(box->elements, block->n_bytes, PyBUF_READ);
    PyObject *packed = data ? PyObject_CallFunctionObjArgs(box->compress, data, NULL) : NULL;
    if (packed && packed != Py_None && PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE) == 0) {
        box->thread = PyEval_SaveThread();
        result = write_file(box, block, index, view.buf, view.len);
        PyEval_RestoreThread(box->thread);
        PyBuffer_Release(&view);
    }
    box->has_raised = PyErr_Occurred() != NULL;
    Py_XDECREF(packed);
    Py_XDECREF(data);
    box->thread = PyEval_SaveThread();
    return result;
}

static int write_one(Box *box, Block *block, int64_t index)
{
    static const int64_t none[MAX_NDIM] = {0};
    int64_t size = box->item;
    for (int d = 0; d < box->ndim; d++)
        size *= block->extent[d];
    if (size > box->n_elements)
        return LEFT;
    if (!block->is_whole) { /* the rest of the block stays as it is */
        int result = read_block(box, block, box->elements);
        if (result == LEFT)
            return LEFT;
        if (result == DONE)
            for (int d = 0; d < box->ndim; d++)
                if (block->shape[d] != block->extent[d])
                    return LEFT;
        set_shape(box, block, block->extent);
        if (result == MISSING)
            copy_box(box->elements, block->stride, box->fill, none, block->extent, box->ndim,
                     box->item, 0);
    }
    set_shape(box, block, block->extent);
    char *to = box->elements;
    for (int d = 0; d < box->ndim; d++)
        to += block->offset[d] * block->stride[d];
    copy_box(to, block->stride, block->target, box->stride, block->n, box->ndim, box->item,
             box->swap);
    if (!box->keep_empty && is_all_fill(box, box->elements, block->n_bytes))
        return unlinkat(box->directory, block->name, 0) == 0 || is_missing(errno) ? DONE : LEFT;
    int64_t n = (int64_t)block->n_bytes;
    switch (box->kind) {
    case RAW:
        return write_file(box, block, index, box->elements, n);
    case ZSTD:
        n = (int64_t)library.zstd_compress(box->zstd, box->stored, (size_t)box->n_stored,
                                           box->elements, (size_t)n, box->level);
        /* errors are the largest numbers, or negative ones */
        return n > 0 ? write_file(box, block, index, box->stored, n) : LEFT;
    case BLOSC:
        n = library.blosc_compress(box->level, box->shuffle, (size_t)box->item, (size_t)n,
                                   box->elements, box->stored, (size_t)n + 16, box->cname,
                                   (size_t)box->blosc_block, 1);
        return n > 0 ? write_file(box, block, index, box->stored, n) : LEFT;
    default:
        return write_python(box, block, index);
    }
}

/* ------------------------------------------------------------------ Python */

static int parse_geometry(Box *box, const Py_buffer *numbers, Py_buffer *array)
{
    const int64_t *number = numbers->buf;
    int64_t n = numbers->len / 8;
    box->ndim = array->ndim;
    if (box->ndim < 1 || box->ndim > MAX_NDIM || n != 4 * box->ndim)
        return 0;
    const uint16_t one = 1;
    const char foreign = *(const char *)&one ? '>' : '<';
    if (array->format && array->format[0] == foreign)
        return 0;
    box->item = (int)array->itemsize;
    if (box->item != 1 && box->item != 2 && box->item != 4 && box->item != 8)
        return 0;
    box->array = array->buf;
    box->n_blocks = 1;
    for (int d = 0; d < box->ndim; d++) {
        box->block[d] = number[d];
        box->dimensions[d] = number[box->ndim + d];
        box->start[d] = number[2 * box->ndim + d];
        box->stop[d] = number[3 * box->ndim + d];
        box->stride[d] = array->strides[d];
        if (box->block[d] < 1 || box->start[d] < 0 || box->stop[d] <= box->start[d]
            || box->stop[d] - box->start[d] != array->shape[d])
            return 0;
        box->first[d] = box->start[d] / box->block[d];
        box->count[d] = (box->stop[d] - 1) / box->block[d] + 1 - box->first[d];
        if (__builtin_mul_overflow(box->n_blocks, box->count[d], &box->n_blocks))
            return 0;
    }
    return 1;
}

static int add_position(PyObject *left, const Box *box, const Block *block)
{
    PyObject *position = PyTuple_New(box->ndim);
    for (int d = 0; position && d < box->ndim; d++) {
        PyObject *number = PyLong_FromLongLong(block->position[d]);
        if (number == NULL || PyTuple_SetItem(position, d, number) != 0)
            Py_CLEAR(position);
    }
    int failed = position == NULL || PyList_Append(left, position) != 0;
    Py_XDECREF(position);
    return !failed;
}

static int open_libraries(Box *box, int to_write)
{
    int reads = box->kind == GZIP || box->kind == ZLIB;
    box->inflater = reads && library.inflate_new ? library.inflate_new() : NULL;
    box->unzstd = box->kind == ZSTD && library.zstd_new ? library.zstd_new() : NULL;
    if (box->kind == ZSTD && to_write && library.zstd_writer_new)
        box->zstd = library.zstd_writer_new();
    int has_all = (!reads || (box->inflater && library.gunzip && library.inflate))
                  && (box->kind != ZSTD || (box->unzstd && library.zstd_decompress))
                  && (box->kind != ZSTD || !to_write || (box->zstd && library.zstd_compress))
                  && (box->kind != BLOSC || library.blosc_decompress)
                  && (box->kind != BLOSC || !to_write || library.blosc_compress);
    return has_all;
}

static void close_libraries(Box *box)
{
    if (box->inflater)
        library.inflate_free(box->inflater);
    if (box->unzstd)
        library.zstd_free(box->unzstd);
    if (box->zstd)
        library.zstd_writer_free(box->zstd);
}

/* Let handlers of signals run, now and then. */
static int is_interrupted(Box *box, struct timespec *last)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (box->has_raised)
        return 1;
    if ((now.tv_sec - last->tv_sec) * 1000 + (now.tv_nsec - last->tv_nsec) / 1000000 < PATIENCE)
        return 0;
    *last = now;
    PyEval_RestoreThread(box->thread);
    int failed = PyErr_CheckSignals() != 0;
    box->thread = PyEval_SaveThread();
    return failed;
}

/* Do blocks, the next that nobody has taken, until none is left. */
static PyObject *run(PyObject *args, int to_write)
{
    const char *directory, *fill;
    Py_ssize_t n_fill;
    Py_buffer numbers = {0}, array = {0}, taken = {0}, stored = {0}, elements = {0};
    PyObject *object, *left = NULL;
    struct timespec last;
    Box box = {.cname = "", .unique = ""};
    const char *format = to_write ? "yy*Oiy#iw*w*w*O(OiiiLss)" : "yy*Oiy#iw*w*w*O";
    if (!PyArg_ParseTuple(args, format, &directory, &numbers, &object, &box.kind, &fill, &n_fill,
                          &box.swap, &taken, &stored, &elements, &box.decompress,
                          &box.compress, &box.keep_empty, &box.level, &box.shuffle,
                          &box.blosc_block, &box.cname, &box.unique))
        return NULL;
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (to_write ? 0 : PyBUF_WRITABLE);
    if (PyObject_GetBuffer(object, &array, flags) != 0)
        goto end;
    if (!parse_geometry(&box, &numbers, &array) || n_fill != box.item || taken.len != 8
        || (to_write && strlen(box.unique) != 16)) {
        PyErr_SetString(PyExc_ValueError, "not a box of blocks");
        goto end;
    }
    memcpy(box.fill, fill, (size_t)n_fill);
    box.stored = stored.buf;
    box.n_stored = stored.len;
    box.elements = elements.buf;
    box.n_elements = elements.len;
    left = PyList_New(0);
    if (left == NULL)
        goto end;
    _Atomic int64_t *counter = taken.buf;
    box.thread = PyEval_SaveThread();
    int is_able = open_libraries(&box, to_write);
    box.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int is_gone = box.directory < 0 && (to_write || !is_missing(errno));
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &last);
    while (!failed) {
        int64_t index = atomic_fetch_add(counter, 1);
        Block block;
        int result = LEFT;
        if (index >= box.n_blocks)
            break;
        find_block(&box, index, &block);
        if (is_able && !is_gone && block.is_inside) {
            if (box.directory < 0) {
                fill_part(&box, &block);
                result = DONE;
            } else {
                result = to_write ? write_one(&box, &block, index) : read_one(&box, &block);
            }
        }
        failed = is_interrupted(&box, &last);
        if (result != DONE && !failed) {
            PyEval_RestoreThread(box.thread);
            failed = !add_position(left, &box, &block);
            box.thread = PyEval_SaveThread();
        }
    }
    if (box.directory >= 0)
        close(box.directory);
    close_libraries(&box);
    PyEval_RestoreThread(box.thread);
    if (failed)
        Py_CLEAR(left);
end:
    for (int k = 0; k < 5; k++) {
        Py_buffer *views[] = {&numbers, &array, &taken, &stored, &elements};
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
    }
    return left;
}

static PyObject *read_box(PyObject *self, PyObject *args) { return run(args, 0); }
static PyObject *write_box(PyObject *self, PyObject *args) { return run(args, 1); }

static PyMethodDef methods[] = {
    {"use", use, METH_VARARGS, "Take the addresses of the libraries' functions."},
    {"read_box", read_box, METH_VARARGS, "Read blocks into an array."},
    {"write_box", write_box, METH_VARARGS, "Write blocks from an array."},
    {NULL, NULL, 0, NULL},
};

static int add_constants(PyObject *self)
{
    return PyModule_AddIntConstant(self, "GROUP", GROUP);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_constants},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "n5zarr.arrays._kernel",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
