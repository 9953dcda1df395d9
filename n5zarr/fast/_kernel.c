/* Read and write boxes of a dataset, block by block, without the interpreter's lock: all blocks of a
 * box from local files, or one block whose bytes come from anywhere else.
 *
 * This file handles the ordinary block only: a file that opens, a header of mode 0 with the shape
 * of a full-size block or of one truncated to the extent of the dataset (to an earlier one along the
 * slowest axis, if a part of the block is written), a payload that decodes to exactly the size that
 * the header gives. Any other block is left to Python: `read_box` and its like return its grid
 * position, `put_block` returns False, and fast/batches.py handles the block again, or raises an
 * error that says what is wrong.
 *
 * This file has no decompressor. It calls those of the libraries that the Python codecs use,
 * through the addresses that fast/native.py gives to `use`. Without the addresses of its library,
 * a dataset is left to Python. Compressions that have no library here call the Python codec.
 *
 * A box may be of cells of elements, each of which becomes one element, as methods.py says: blocks
 * are combined while their elements are in the cache.
 *
 * Sizes: `check_arguments` checks every buffer and number that Python passes, once for a box, and
 * raises ValueError. Sizes that come from a file are checked where they are read. Below these
 * checks, a block has at most MAX_BYTES bytes, `stored` and `elements` are large enough for it, and
 * what is wanted of it lies inside of the array.
 *
 * Everything is in N5 order, the first axis varies fastest, except in `box_of_batch`, which looks at
 * what zarr passes to a pipeline.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

enum { MAX_NDIM = 64, MAX_NAME = 24 * MAX_NDIM + 64, MAX_HEADER = 4 + 4 * MAX_NDIM };
/* Bytes of a block: sums and products of sizes never overflow, not even in the ints of blosc. */
enum { MAX_BYTES = 1 << 30 };
/* GROUP: bytes of a raw block that one call reads. NEAR: a wanted part that begins this many bytes
 * after the header, or fewer, is read together with it. */
enum { GROUP = 1 << 18, NEAR = 1 << 12 };
/* ONE_MORE: bytes of a raw block that are read in the time that another read takes. */
enum { ONE_MORE = 1 << 16 };
enum { TILE = 16, PATIENCE = 50 }; /* elements; milliseconds between checks for signals */
enum { RAW, GZIP, ZLIB, ZSTD, BLOSC, OTHER, N_KINDS };
enum { BLOSC_HEADER = 16, MAX_SPLITS = 16, MIN_STREAM = 128 };
enum { COPIED = 2, RESERVED = 8, NOT_SPLIT = 16 }; /* flags of blosc */
enum { SNAPPY = 2, ZSTANDARD = 4 };                /* formats of blosc */
/* Of zstd. MAX_WINDOW is an exponent, 10 less; REPEATED a kind of block. */
enum { MAX_WINDOW = 17 << 3, ZSTD_BLOCK = 1 << 17, REPEATED = 1 };
static const int64_t FRAME = 0xFD2FB528; /* what it begins with */
enum { RECENT = 20000000 }; /* nanoseconds: two writes in one tick of the clock have one time */
enum { UNIQUE = 16 };       /* characters of the name of a file that is not yet renamed */
enum { ATOMIC, DURABLE, OVERWRITE, N_DURABILITIES };
enum { NO_HEADER = 4, PAGE = 1 << 12 }; /* bytes */
enum { LAST = 20, ENTRY = 16 };         /* bytes, of an index of shards */
#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

/* ------------------------------------------------------------------ libraries */

typedef struct {
    void *(*inflate_new)(void);
    void (*inflate_free)(void *);
    int (*gunzip)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
    int (*inflate)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
    void *(*deflate_new)(int);
    void (*deflate_free)(void *);
    size_t (*gzip)(void *, const void *, size_t, void *, size_t);
    size_t (*deflate)(void *, const void *, size_t, void *, size_t);
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
} Library;

enum { N_FUNCTIONS = sizeof(Library) / sizeof(void *) };

enum { KEPT = 16 };

/* What all threads and interpreters of the process share. The functions are never changed nor freed:
 * another thread may be using them. */
typedef struct {
    Library library;
    _Atomic(void *) kept[KEPT]; /* decoders of zstd that nobody uses */
} Shared;

static _Atomic(Shared *) current;

static const Library *library_now(void)
{
    static Shared none;
    const Shared *known = atomic_load(&current);
    return known ? &known->library : &none.library;
}

static PyObject *use(PyObject *Py_UNUSED(self), PyObject *args)
{
    void *address[N_FUNCTIONS];
    const Shared *known = atomic_load(&current);
    Py_ssize_t n = PyTuple_Size(args);
    if (n != N_FUNCTIONS) {
        PyErr_Format(PyExc_TypeError, "use: expected %d addresses, 0 for a function that is not"
                     " available, got %zd", (int)N_FUNCTIONS, n);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        address[i] = PyLong_AsVoidPtr(PyTuple_GetItem(args, i));
        if (address[i] == NULL && PyErr_Occurred())
            return NULL;
    }
    if (known == NULL || memcmp(known, address, sizeof address) != 0) {
        Shared *made = calloc(1, sizeof *made);
        if (made == NULL)
            return PyErr_NoMemory();
        memcpy(&made->library, address, sizeof made->library);
        atomic_store(&current, made);
    }
    Py_RETURN_NONE;
}

/* A decoder of zstd takes as long to make as a small block to read: some are kept. Each is taken out
 * while it is used, so that other threads, and a signal handler that reads meanwhile, have others. */
static void *take_unzstd(const Library *library)
{
    _Atomic(void *) *kept = ((Shared *)library)->kept;
    for (int k = 0; k < KEPT; k++) {
        void *unzstd = atomic_load(&kept[k]) ? atomic_exchange(&kept[k], NULL) : NULL;
        if (unzstd != NULL)
            return unzstd;
    }
    return library->zstd_new();
}

static void keep_unzstd(const Library *library, void *unzstd)
{
    _Atomic(void *) *kept = ((Shared *)library)->kept;
    for (int k = 0; k < KEPT && unzstd != NULL; k++)
        unzstd = atomic_load(&kept[k]) ? unzstd : atomic_exchange(&kept[k], unzstd);
    if (unzstd != NULL)
        library->zstd_free(unzstd);
}

static int64_t low(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t high(int64_t a, int64_t b) { return a > b ? a : b; }

/* ------------------------------------------------------------------ copying */

typedef struct {
    int64_t n, from, to; /* elements; bytes from one to the next */
} Axis;

/* Copy bytes. Rows of small blocks are short: a call of memcpy would double their cost. */
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

/* Copy elements in the other byte order: 32 bytes at a time as a vector, and what is left one by one. */
#define SWAPPED(name, type, swap_all, swap_one)                                                    \
    static inline void name(char *to, const char *from, int64_t n)                                 \
    {                                                                                              \
        typedef type Vector __attribute__((vector_size(32)));                                      \
        const int64_t n_at_once = 32 / (int64_t)sizeof(type);                                      \
        for (; n >= n_at_once; n -= n_at_once, to += 32, from += 32) {                             \
            Vector v;                                                                              \
            memcpy(&v, from, sizeof v);                                                            \
            swap_all;                                                                              \
            memcpy(to, &v, sizeof v);                                                              \
        }                                                                                          \
        for (; n > 0; n--, to += sizeof(type), from += sizeof(type)) {                             \
            type v;                                                                                \
            memcpy(&v, from, sizeof v);                                                            \
            v = swap_one(v);                                                                       \
            memcpy(to, &v, sizeof v);                                                              \
        }                                                                                          \
    }
#define BYTES(v, pairs) v = (v & pairs) << 8 | (v >> 8 & pairs)
SWAPPED(swap_two, uint16_t, v = v << 8 | v >> 8, __builtin_bswap16)
SWAPPED(swap_four, uint32_t, BYTES(v, 0xFF00FF); v = v << 16 | v >> 16, __builtin_bswap32)
SWAPPED(swap_eight, uint64_t, BYTES(v, 0xFF00FF00FF00FF);
        v = (v & 0xFFFF0000FFFF) << 16 | (v >> 16 & 0xFFFF0000FFFF); v = v << 32 | v >> 32,
        __builtin_bswap64)
#undef BYTES
#undef SWAPPED

/* Copy elements that are beside each other on both sides. */
static inline void copy_contiguous(char *to, const char *from, int64_t n, int item, int swap)
{
    if (!swap || item == 1)
        copy_bytes(to, from, n * item);
    else if (item == 2)
        swap_two(to, from, n);
    else if (item == 4)
        swap_four(to, from, n);
    else
        swap_eight(to, from, n);
}

static void copy_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                     int item, int swap)
{
    if (to_step == item && from_step == item) {
        copy_contiguous(to, from, n, item, swap);
        return;
    }
#define ROW(type, convert)                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type v;                                                                                    \
        memcpy(&v, from + i * from_step, sizeof v);                                                \
        v = convert(v);                                                                            \
        memcpy(to + i * to_step, &v, sizeof v);                                                    \
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

/* Processors with wide vectors swap bytes twice as fast: glibc chooses the function when it loads. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
static void copy_axes(char *to, const char *from, const Axis *axis, int ndim, int item, int swap)
{
    if (ndim == 0) {
        copy_row(to, item, from, item, 1, item, swap);
    } else if (ndim == 1) {
        copy_row(to, axis->to, from, axis->from, axis->n, item, swap);
    } else if (ndim == 2 && (axis[1].to != item || axis[1].from != item)) {
        /* a transposition: in tiles, so that each cache line is used while it is in the cache */
        for (int64_t i = 0; i < axis[0].n; i += TILE)
            for (int64_t j = 0; j < axis[1].n; j += TILE) {
                int64_t m = axis[0].n - i < TILE ? axis[0].n - i : TILE;
                int64_t n = axis[1].n - j < TILE ? axis[1].n - j : TILE;
                for (int64_t k = i; k < i + m; k++)
                    copy_row(to + k * axis[0].to + j * axis[1].to, axis[1].to,
                             from + k * axis[0].from + j * axis[1].from, axis[1].from, n, item,
                             swap);
            }
    } else if (ndim == 2) {
        for (int64_t i = 0; i < axis[0].n; i++)
            copy_contiguous(to + i * axis[0].to, from + i * axis[0].from, axis[1].n, item, swap);
    } else {
        for (int64_t i = 0; i < axis[0].n; i++)
            copy_axes(to + i * axis[0].to, from + i * axis[0].from, axis + 1, ndim - 1, item,
                      swap);
    }
}

/* Copy a box of elements; `n` and the strides have the first axis fastest. */
static void copy_box(char *to, const int64_t *to_stride, const char *from,
                     const int64_t *from_stride, const int64_t *n, int ndim, int item, int swap)
{
    Axis axis[MAX_NDIM]; /* slowest first; neighbours that are contiguous are merged */
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
    /* the array's fastest axis goes next to the block's, so that both are copied in tiles */
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

/* ------------------------------------------------------------------ cells */

enum { MEAN, MODE, N_METHODS };
/* MAX_CELL: elements of a cell; a sum of so many fits in the next larger integer. MAX_SORTED: of a
 * cell for MODE; more are sorted faster by numpy, the cells together. PIECE: elements of a row at a
 * time. */
enum { MAX_CELL = 64, MAX_SORTED = 8, PIECE = 1024 };

/* How the elements of each cell become one. A cell at the end of an axis has fewer elements. */
typedef struct {
    int ndim, item, is_signed, swap, method; /* `swap`: the source has the other byte order */
    int64_t factor[MAX_NDIM];
} Cells;

/* The rows of elements of which one row of cells consists, along the axis that is contiguous. */
typedef struct {
    const char *from[MAX_CELL];
    int64_t n_rows, n, from_step, factor, to_step;
    char *to;
} Rows;

/* Divide, and round halves to the even number: as _divided in methods.py. */
static inline int64_t divided(int64_t total, int64_t n)
{
    int64_t quotient = total / n - (total % n < 0); /* rounded down */
    int64_t rest = total - quotient * n;
    return quotient + (2 * rest > n || (2 * rest == n && (quotient & 1)));
}

/* Divide by 1 << shift in the same way, in few instructions. */
#define ROUNDED(wide, total, shift)                                                                \
    ((wide)((total) + ((wide)1 << ((shift) - 1)) - 1 + (((total) >> (shift)) & 1)) >> (shift))

/* `use` each element of a piece of a row, as `v` in native byte order; most often they are
 * contiguous. */
#define EACH_OF_ROW(type, bits, convert, rows, k, begin, n, use)                                   \
    do {                                                                                           \
        const char *row_ = (rows)->from[k] + (begin) * (rows)->from_step;                          \
        if ((rows)->from_step == sizeof(type))                                                     \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                bits b;                                                                            \
                memcpy(&b, row_ + i * (int64_t)sizeof b, sizeof b);                                \
                type v = (type)convert(b);                                                         \
                use;                                                                               \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < (n); i++) {                                                    \
                bits b;                                                                            \
                memcpy(&b, row_ + i * (rows)->from_step, sizeof b);                                \
                type v = (type)convert(b);                                                         \
                use;                                                                               \
            }                                                                                      \
    } while (0)

/* Two functions for each type of elements: the mean and the most frequent element, of equally
 * frequent ones the smallest, of each cell of a row. */
#define MEAN_OF(name, type, bits, wide, convert)                                                   \
    static void mean_##name(const Rows *rows)                                                      \
    {                                                                                              \
        wide sum[PIECE];                                                                           \
        type made[PIECE];                                                                          \
        const int64_t f = rows->factor, n_cell = rows->n_rows * f, most = PIECE / f * f;           \
        const int shift = (n_cell & (n_cell - 1)) == 0 ? __builtin_ctzll((uint64_t)n_cell) : 0;    \
        for (int64_t begin = 0; begin < rows->n; begin += most) {                                  \
            int64_t n = low(most, rows->n - begin), n_whole = n / f, n_made = (n + f - 1) / f;     \
            EACH_OF_ROW(type, bits, convert, rows, 0, begin, n, sum[i] = (wide)v);                 \
            for (int64_t k = 1; k < rows->n_rows; k++)                                             \
                EACH_OF_ROW(type, bits, convert, rows, k, begin, n,                                \
                            sum[i] = (wide)(sum[i] + (wide)v));                                    \
            if (shift > 0 && f == 2)                                                               \
                for (int64_t j = 0; j < n_whole; j++)                                              \
                    made[j] = (type)ROUNDED(wide, (wide)(sum[2 * j] + sum[2 * j + 1]), shift);     \
            else if (shift > 0 && f == 1)                                                          \
                for (int64_t j = 0; j < n_whole; j++)                                              \
                    made[j] = (type)ROUNDED(wide, sum[j], shift);                                  \
            else                                                                                   \
                for (int64_t j = 0; j < n_whole; j++) {                                            \
                    int64_t total = 0;                                                             \
                    for (int64_t i = 0; i < f; i++)                                                \
                        total += (int64_t)sum[j * f + i];                                          \
                    made[j] = (type)divided(total, n_cell);                                        \
                }                                                                                  \
            if (n_made > n_whole) { /* the last cell */                                            \
                int64_t total = 0;                                                                 \
                for (int64_t i = n_whole * f; i < n; i++)                                          \
                    total += (int64_t)sum[i];                                                      \
                made[n_whole] = (type)divided(total, rows->n_rows * (n - n_whole * f));            \
            }                                                                                      \
            copy_row(rows->to + begin / f * rows->to_step, rows->to_step, (const char *)made,      \
                     sizeof(type), n_made, sizeof(type), 0);                                       \
        }                                                                                          \
    }

/* Sort two elements without a branch, which could not be predicted. */
#define ORDER(type, i, j)                                                                          \
    do {                                                                                           \
        const type one = cell[i], other = cell[j];                                                 \
        cell[i] = one < other ? one : other;                                                       \
        cell[j] = one < other ? other : one;                                                       \
    } while (0)

#define MODE_OF(name, type, bits, convert)                                                         \
    static inline type longest_run_##name(const type *cell, int n)                                 \
    {                                                                                              \
        type best = cell[0];                                                                       \
        int run = 1, most = 1;                                                                     \
        for (int i = 1; i < n; i++) {                                                              \
            run = cell[i] == cell[i - 1] ? run + 1 : 1;                                            \
            best = run > most ? cell[i] : best;                                                    \
            most = run > most ? run : most;                                                        \
        }                                                                                          \
        return best;                                                                               \
    }                                                                                              \
                                                                                                   \
    static type most_frequent_##name(type *cell, int n)                                            \
    {                                                                                              \
        if (n == 8) {                                                                              \
            ORDER(type, 0, 4); ORDER(type, 1, 5); ORDER(type, 2, 6); ORDER(type, 3, 7);            \
            ORDER(type, 0, 2); ORDER(type, 1, 3); ORDER(type, 4, 6); ORDER(type, 5, 7);            \
            ORDER(type, 2, 4); ORDER(type, 3, 5);                                                  \
            ORDER(type, 0, 1); ORDER(type, 2, 3); ORDER(type, 4, 5); ORDER(type, 6, 7);            \
            ORDER(type, 1, 4); ORDER(type, 3, 6);                                                  \
            ORDER(type, 1, 2); ORDER(type, 3, 4); ORDER(type, 5, 6);                               \
            return longest_run_##name(cell, 8);                                                    \
        }                                                                                          \
        if (n == 4) {                                                                              \
            ORDER(type, 0, 2); ORDER(type, 1, 3); ORDER(type, 0, 1); ORDER(type, 2, 3);            \
            ORDER(type, 1, 2);                                                                     \
            return longest_run_##name(cell, 4);                                                    \
        }                                                                                          \
        for (int i = 1; i < n; i++)                                                                \
            for (int j = i; j > 0; j--)                                                            \
                ORDER(type, j - 1, j);                                                             \
        return longest_run_##name(cell, n);                                                        \
    }                                                                                              \
                                                                                                   \
    static void mode_##name(const Rows *rows)                                                      \
    {                                                                                              \
        type first[PIECE], differ[PIECE], made[PIECE], cell[MAX_SORTED];                           \
        const int64_t f = rows->factor, most = PIECE / f * f;                                      \
        for (int64_t begin = 0; begin < rows->n; begin += most) {                                  \
            int64_t n = low(most, rows->n - begin), n_made = (n + f - 1) / f;                      \
            EACH_OF_ROW(type, bits, convert, rows, 0, begin, n, (first[i] = v, differ[i] = 0));    \
            for (int64_t k = 1; k < rows->n_rows; k++)                                             \
                EACH_OF_ROW(type, bits, convert, rows, k, begin, n,                                \
                            differ[i] = (type)(differ[i] | (v ^ first[i])));                       \
            for (int64_t j = 0; j < n_made; j++) { /* of labels, most cells have only one */       \
                int64_t at = j * f, end = low(at + f, n);                                          \
                type is_mixed = differ[at];                                                        \
                for (int64_t i = at + 1; i < end; i++)                                             \
                    is_mixed = (type)(is_mixed | differ[i] | (first[i] ^ first[at]));              \
                made[j] = first[at];                                                               \
                if (!is_mixed)                                                                     \
                    continue;                                                                      \
                int n_cell = 0;                                                                    \
                for (int64_t k = 0; k < rows->n_rows; k++)                                         \
                    for (int64_t i = at; i < end; i++) {                                           \
                        bits b;                                                                    \
                        memcpy(&b, rows->from[k] + (begin + i) * rows->from_step, sizeof b);       \
                        cell[n_cell++] = (type)convert(b);                                         \
                    }                                                                              \
                made[j] = most_frequent_##name(cell, n_cell);                                      \
            }                                                                                      \
            copy_row(rows->to + begin / f * rows->to_step, rows->to_step, (const char *)made,      \
                     sizeof(type), n_made, sizeof(type), 0);                                       \
        }                                                                                          \
    }

#define SAME(v) (v)
#define OF_TYPE(name, type, bits, wide, swapped)                                                   \
    MEAN_OF(name, type, bits, wide, SAME)                                                          \
    MEAN_OF(name##_swapped, type, bits, wide, swapped)                                             \
    MODE_OF(name, type, bits, SAME)                                                                \
    MODE_OF(name##_swapped, type, bits, swapped)
OF_TYPE(u1, uint8_t, uint8_t, uint16_t, SAME)
OF_TYPE(i1, int8_t, uint8_t, int16_t, SAME)
OF_TYPE(u2, uint16_t, uint16_t, uint32_t, __builtin_bswap16)
OF_TYPE(i2, int16_t, uint16_t, int32_t, __builtin_bswap16)
OF_TYPE(u4, uint32_t, uint32_t, int64_t, __builtin_bswap32)
OF_TYPE(i4, int32_t, uint32_t, int64_t, __builtin_bswap32)
MODE_OF(u8, uint64_t, uint64_t, SAME)
MODE_OF(u8_swapped, uint64_t, uint64_t, __builtin_bswap64)
MODE_OF(i8, int64_t, uint64_t, SAME)
MODE_OF(i8_swapped, int64_t, uint64_t, __builtin_bswap64)
#undef SAME
#undef ORDER
#undef ROUNDED
#undef EACH_OF_ROW

typedef void Combine(const Rows *);

/* Count the cells along an axis of n elements, one or more. */
static int64_t n_cells(const Cells *cells, int d, int64_t n)
{
    return (n - 1) / cells->factor[d] + 1;
}

/* Give the function for some cells; NULL: there is none. */
static Combine *combine_of(const Cells *cells)
{
#define BOTH(name) {name, name##_swapped}
    static Combine *const known[N_METHODS][2][4][2] = {
        {{BOTH(mean_u1), BOTH(mean_u2), BOTH(mean_u4)},
         {BOTH(mean_i1), BOTH(mean_i2), BOTH(mean_i4)}},
        {{BOTH(mode_u1), BOTH(mode_u2), BOTH(mode_u4), BOTH(mode_u8)},
         {BOTH(mode_i1), BOTH(mode_i2), BOTH(mode_i4), BOTH(mode_i8)}},
    };
#undef BOTH
    return known[cells->method][cells->is_signed][__builtin_ctz((unsigned)cells->item)]
                [cells->swap];
}

/* Combine each cell of a box of n elements, at least one along each axis; strides in bytes. */
static void combine_cells(const Cells *cells, char *to, const int64_t *to_stride, const char *from,
                          const int64_t *from_stride, const int64_t *n)
{
    Combine *combine = combine_of(cells);
    int64_t place[MAX_NDIM] = {0}, begin[MAX_CELL];
    int row = 0, d; /* the axis of the rows */
    for (d = 0; d < cells->ndim; d++)
        if (from_stride[d] == cells->item && n[d] > 1) {
            row = d;
            break;
        }
    Rows rows = {.n = n[row], .from_step = from_stride[row], .factor = cells->factor[row],
                 .to_step = to_stride[row]};
    do {
        rows.to = to;
        rows.n_rows = 1;
        begin[0] = 0;
        for (d = 0; d < cells->ndim; d++) { /* the rows of the cells at this place */
            if (d == row)
                continue;
            int64_t first = place[d] * cells->factor[d], old = rows.n_rows;
            int64_t n_here = low(cells->factor[d], n[d] - first);
            rows.to += place[d] * to_stride[d];
            rows.n_rows = old * n_here;
            for (int64_t k = rows.n_rows - 1; k >= 0; k--)
                begin[k] = begin[k % old] + (first + k / old) * from_stride[d];
        }
        for (int64_t k = 0; k < rows.n_rows; k++)
            rows.from[k] = from + begin[k];
        combine(&rows);
        for (d = 0; d < cells->ndim; d++) { /* the next place */
            if (d == row)
                continue;
            if (++place[d] * cells->factor[d] < n[d])
                break;
            place[d] = 0;
        }
    } while (d < cells->ndim);
}

/* ------------------------------------------------------------------ the box */

typedef struct {
    const Library *library;
    int ndim, item, swap, kind, directory;
    int64_t block[MAX_NDIM], dimensions[MAX_NDIM];
    int64_t start[MAX_NDIM], step[MAX_NDIM], shape[MAX_NDIM]; /* of the wanted elements */
    int64_t first[MAX_NDIM], count[MAX_NDIM], n_blocks; /* grid positions */
    int64_t n_full;                                     /* bytes of a block that is not cut off */
    char *array;
    int64_t stride[MAX_NDIM];
    char fill[8]; /* one element, as it is stored */
    char *stored, *elements; /* memory for a file and for the elements of a block */
    int64_t n_stored, n_elements; /* bytes of these */
    PyObject *stored_owner, *elements_owner;
    void *inflater, *deflater, *unzstd, *zstd;
    PyObject *decompress, *compress; /* the Python codec, for kind OTHER, and where it chooses */
    PyThreadState *thread;
    int has_raised;
    /* writing */
    int to_write, keep_empty, durability, level, shuffle;
    long long blosc_block;
    const char *cname, *unique;
    const Cells *cells; /* the array has one element for each cell of what is wanted; NULL: for each
                         * element */
} Box;

typedef struct {
    int64_t position[MAX_NDIM];                /* in the grid */
    int64_t extent[MAX_NDIM];                  /* the part of the block inside of the dataset */
    int64_t offset[MAX_NDIM], n[MAX_NDIM];     /* the elements of the block that are wanted */
    int64_t shape[MAX_NDIM], stride[MAX_NDIM]; /* of the stored block; strides in bytes */
    int64_t n_bytes;                           /* of its elements */
    int is_empty;                              /* whether nothing of it is wanted */
    int is_inside;                             /* whether the dataset has all that is wanted */
    int is_whole;                              /* whether all that the dataset has is wanted */
    char *target;                              /* where the wanted part begins in the array */
    char name[MAX_NAME];
    /* writing */
    int file;                /* the block as it was, open for writing; -1: there is none */
    int is_locked;           /* exclusively */
    int was_recent;          /* when it was read, see `settle` */
    struct stat status_read; /* as it was when it was read */
} Block;

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

/* Find what is wanted of the block at block->position, and its place in the array. */
static void find_part(const Box *box, Block *block)
{
    block->is_inside = block->is_whole = 1;
    block->is_empty = 0;
    block->target = box->array;
    for (int d = 0; d < box->ndim; d++) {
        int64_t size = box->block[d], step = box->step[d], place = block->position[d];
        int64_t begin = place > INT64_MAX / size ? INT64_MAX : place * size;
        int64_t before = begin - box->start[d]; /* from the first wanted element */
        int64_t end = before > INT64_MAX - size ? INT64_MAX : before + size;
        int64_t first = high(before, 0), last = high(end, 0);
        if (step > 1) {
            first = first ? (first - 1) / step + 1 : 0;
            last = last ? (last - 1) / step + 1 : 0;
        }
        last = low(box->shape[d], last);
        block->extent[d] = low(size, box->dimensions[d] - begin);
        block->offset[d] = 0;
        block->n[d] = last - first;
        block->is_whole &= block->n[d] == block->extent[d];
        if (last > first) { /* else the product may be too large */
            block->offset[d] = first * step - before;
            block->is_inside &= block->offset[d] + (last - first - 1) * step < block->extent[d];
            block->target += first / (box->cells ? box->cells->factor[d] : 1) * box->stride[d];
        } else
            block->is_empty = 1;
    }
}

/* Name the file of the block at block->position. */
static void name_block(const Box *box, Block *block)
{
    char *name = block->name;
    block->is_locked = block->was_recent = 0;
    block->file = -1;
    for (int d = 0; d < box->ndim; d++) {
        name = put_number(name, (uint64_t)block->position[d]);
        *name++ = '/';
    }
    name[-1] = 0;
}

/* Blocks beside each other along the first axis share cache lines of the array, for which threads that
 * write to them at one time wait. So a thread claims many blocks of a row, about LOT bytes; of few
 * rows, which it could not share evenly, numbers go along another axis first. */
enum { MANY_ROWS = 64, LOT = 1 << 20 };

static int has_many_rows(const Box *box) { return box->n_blocks / box->count[0] >= MANY_ROWS; }

static int64_t n_claimed(const Box *box)
{
    return has_many_rows(box) ? low(box->count[0], high(1, LOT / box->n_full)) : 1;
}

static void find_block(const Box *box, int64_t index, Block *block)
{
    int second = 0;
    if (!has_many_rows(box))
        for (int d = box->ndim - 1; d > 0; d--)
            second = box->count[d] > 1 ? d : second;
    for (int k = 0; k < box->ndim; k++) {
        int d = k == 0 ? second : k == second ? 0 : k;
        int64_t at = index % box->count[d];
        int64_t skips = box->step[d] >= box->block[d]; /* over whole blocks */
        block->position[d] = skips ? (box->start[d] + at * box->step[d]) / box->block[d]
                                   : box->first[d] + at;
        index /= box->count[d];
    }
    find_part(box, block);
    name_block(box, block);
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

/* Parse a header, N5 4.0.0, item 9; 0 if it is not of mode 0 with the full shape or the extent. */
static int parse_header(const Box *box, Block *block, const char *header)
{
    int64_t shape[MAX_NDIM];
    int is_full = 1, is_extent = 1;
    if (big_endian(header) != (uint32_t)box->ndim) /* mode 0, number of dimensions */
        return 0;
    for (int d = 0; d < box->ndim; d++) {
        int may_grow = box->to_write && d == box->ndim - 1;
        shape[d] = big_endian(header + 4 + 4 * d);
        is_full &= shape[d] == box->block[d];
        is_extent &= shape[d] == block->extent[d]
                     || (may_grow && shape[d] > 0 && shape[d] < block->extent[d]);
    }
    if (!is_full && !is_extent)
        return 0;
    set_shape(box, block, shape);
    return 1;
}

static void put_header(const Box *box, const Block *block, char *header)
{
    uint32_t words[1 + MAX_NDIM] = {(uint32_t)box->ndim};
    for (int d = 0; d < box->ndim; d++)
        words[1 + d] = (uint32_t)block->shape[d];
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

/* Whether a block that cannot be opened is missing. Where a link on its path leads nowhere, as those
 * of git-annex do, it is not: Python makes the error. */
static int is_absent(const Box *box, const char *name)
{
    char path[MAX_NAME];
    struct stat status;
    if (!is_missing(errno))
        return 0;
    memcpy(path, name, strlen(name) + 1);
    while (fstatat(box->directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return 1;
        *slash = 0;
    }
    return !S_ISLNK(status.st_mode) || fstatat(box->directory, path, &status, 0) == 0;
}

static void fill_part(const Box *box, const Block *block)
{
    const int64_t none[MAX_NDIM] = {0};
    int64_t n[MAX_NDIM];
    for (int d = 0; d < box->ndim; d++)
        n[d] = box->cells ? n_cells(box->cells, d, block->n[d]) : block->n[d];
    copy_box(block->target, box->stride, box->fill, none, n, box->ndim, box->item, box->swap);
}

/* Give the bytes from the first to after the last wanted element of some rows (slowest axis). */
static void wanted_range(const Box *box, const Block *block, int64_t row, int64_t n_rows,
                         int64_t *begin, int64_t *end)
{
    int slowest = box->ndim - 1;
    *begin = row * block->stride[slowest];
    *end = *begin + (n_rows - 1) * box->step[slowest] * block->stride[slowest] + box->item;
    for (int d = 0; d < slowest; d++) {
        *begin += block->offset[d] * block->stride[d];
        *end += (block->offset[d] + (block->n[d] - 1) * box->step[d]) * block->stride[d];
    }
}

static void strides_of_wanted(const Box *box, const Block *block, int64_t *stride)
{
    for (int d = 0; d < box->ndim; d++) /* one element needs none, and its step may be huge */
        stride[d] = block->n[d] == 1 ? 0 : block->stride[d] * box->step[d];
}

/* Copy what is wanted to the array; `from` is the first wanted element. */
static void scatter_from(const Box *box, const Block *block, const char *from)
{
    int64_t stride[MAX_NDIM];
    strides_of_wanted(box, block, stride);
    copy_box(block->target, box->stride, from, stride, block->n, box->ndim, box->item, box->swap);
}

static int64_t wanted_offset(const Box *box, const Block *block)
{
    int64_t offset = 0;
    for (int d = 0; d < box->ndim; d++)
        offset += block->offset[d] * block->stride[d];
    return offset;
}

/* Copy what is wanted to the array, from all elements of the block. */
static void scatter(const Box *box, const Block *block, const char *elements)
{
    scatter_from(box, block, elements + wanted_offset(box, block));
}

/* Read what is wanted of an uncompressed block, some rows of its slowest axis at a time. */
static int read_raw(const Box *box, Block *block, int file, int64_t size)
{
    const int slowest = box->ndim - 1;
    const int64_t header = n_header(box), row = block->offset[slowest], step = box->step[slowest];
    const int64_t n_rows = block->n[slowest];
    int64_t begin, end;
    /* read the header and, if the wanted part begins near it, that too */
    set_shape(box, block, block->extent);
    wanted_range(box, block, row, n_rows, &begin, &end);
    int64_t n = low(low(size, box->n_stored), header + (begin < NEAR ? low(end, GROUP) : 0));
    if (pread(file, box->stored, (size_t)n, 0) != n || n < header
        || !parse_header(box, block, box->stored) || size != header + block->n_bytes)
        return LEFT;
    const int64_t stride = block->stride[slowest], most = high(1, GROUP / stride / step);
    int64_t m; /* rows at a time: those that have been read, then as many as one call reads */
    for (int64_t k = 0; k < n_rows; k += m) {
        const char *from = box->stored;
        Block part = *block;
        part.target += k * box->stride[slowest];
        part.offset[slowest] = row + k * step;
        wanted_range(box, block, part.offset[slowest], 1, &begin, &end);
        if (k == 0 && header + end <= n) {
            m = low(n_rows, 1 + (n - header - end) / stride / step);
            from += header + begin;
        } else {
            m = low(n_rows - k, most);
            wanted_range(box, block, part.offset[slowest], m, &begin, &end);
            if (end - begin > box->n_stored
                || pread(file, box->stored, (size_t)(end - begin), header + begin) != end - begin)
                return LEFT;
        }
        part.n[slowest] = m;
        scatter_from(box, &part, from); /* which starts at the first wanted element */
    }
    return DONE;
}

static int64_t little_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (int64_t)b[0] | (int64_t)b[1] << 8 | (int64_t)b[2] << 16 | (int64_t)b[3] << 24;
}

/* Whether blosc splits its full blocks into one stream for each byte of an item. */
static int is_split(const char *from)
{
    int64_t item = (unsigned char)from[3], size = little_endian(from + 8);
    return !(from[2] & NOT_SPLIT) && item > 0 && item <= MAX_SPLITS && size / item >= MIN_STREAM;
}

/* Whether the blocks of a blosc buffer, in any order, fill it to its last byte. Where only some
 * blocks are decoded, no other check notices that the header is damaged. */
static int is_consistent(const char *from, int64_t n, int64_t n_packed)
{
    int flags = (unsigned char)from[2];
    int64_t item = (unsigned char)from[3], size = little_endian(from + 8);
    if (flags & RESERVED || item == 0 || size < 1 || size > n)
        return 0;
    if (flags & COPIED) /* not compressed; the caller has compared its length */
        return 1;
    int64_t n_blocks = (n + size - 1) / size, table = BLOSC_HEADER + 4 * n_blocks, used = table;
    if (table > n_packed)
        return 0;
    for (int64_t k = 0; k < n_blocks; k++) {
        int64_t n_streams = is_split(from) && (k + 1) * size <= n ? item : 1;
        int64_t at = little_endian(from + BLOSC_HEADER + 4 * k), begin = at;
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

/* Whether a payload begins with a blosc buffer of n bytes that c-blosc decodes. It trusts the header,
 * and prints a message for formats that it does not know. As blosc.py does. */
static int fits_blosc(const char *from, int64_t n_from, int64_t n)
{
    if (n_from < BLOSC_HEADER)
        return 0;
    unsigned char version = (unsigned char)from[0], flags = (unsigned char)from[2];
    int64_t item = (unsigned char)from[3], n_packed = little_endian(from + 12);
    int format = flags >> 5;
    if (version < 1 || version > 2 || little_endian(from + 4) != n || n_packed < BLOSC_HEADER
        || n_packed > n_from)
        return 0;
    if (flags & COPIED)
        return n_packed == n + BLOSC_HEADER;
    if (is_split(from) && little_endian(from + 8) % item != 0) /* the streams leave a gap */
        return 0;
    return format != SNAPPY && format <= ZSTANDARD;
}

/* Decode a blosc buffer, at least from `begin` to `end`. */
static int unblosc(const Library *library, const char *from, int64_t n_from, char *to, int64_t n,
                   int64_t begin, int64_t end)
{
    if (!fits_blosc(from, n_from, n))
        return 0;
    int64_t item = (unsigned char)from[3], n_packed = little_endian(from + 12);
    if (library->blosc_getitem && 2 * (end - begin) < n && is_consistent(from, n, n_packed)
        && n % item == 0) {
        int64_t first = begin / item, after = (end + item - 1) / item;
        int64_t n_wanted = (after - first) * item;
        return library->blosc_getitem(from, (int)first, (int)(after - first), to + first * item)
               == n_wanted;
    }
    return library->blosc_decompress(from, to, (size_t)n, 1) == n;
}

/* Whether a payload is one zstd frame that streaming decoders take, as Python's and Java's: decoding
 * at once does not look at its window, nor at the size of its blocks. RFC 8878, 3.1.1. As zstd.py. */
static int is_one_frame(const char *from, int64_t n)
{
    static const int n_id[] = {0, 1, 2, 4}, n_size[] = {0, 2, 4, 8};
    const unsigned char *frame = (const unsigned char *)from;
    if (n < 6 || little_endian(from) != FRAME)
        return 0;
    int descriptor = frame[4], window = frame[5], is_single = descriptor >> 5 & 1, last = 0;
    int n_announced = descriptor >> 6 ? n_size[descriptor >> 6] : is_single;
    int64_t at = 6 - is_single + n_id[descriptor & 3];
    uint64_t announced = 0, most = 0; /* bytes of the frame, and of all its blocks */
    if (at + n_announced > n || (n_announced == 0 && window > MAX_WINDOW))
        return 0;
    for (int k = n_announced - 1; k >= 0; k--)
        announced = announced << 8 | frame[at + k];
    announced += n_announced == 2 ? 256 : 0;
    uint64_t largest = is_single ? announced : (8ULL + (window & 7)) << (7 + (window >> 3));
    for (at += n_announced; !last; most += ZSTD_BLOCK) {
        if (at > n - 3)
            return 0;
        int header = frame[at] | frame[at + 1] << 8 | frame[at + 2] << 16, size = header >> 3;
        if (size > ZSTD_BLOCK || (uint64_t)size > largest)
            return 0;
        last = header & 1;
        at += 3 + ((header >> 1 & 3) == REPEATED ? 1 : size);
    }
    return announced <= most && at + 4 * (descriptor >> 2 & 1) == n;
}

/* Decode a payload to its places in `to`, at least the bytes from `begin` to `end`. */
static int decode(Box *box, const Block *block, const char *from, int64_t n_from, char *to,
                  int64_t begin, int64_t end)
{
    const Library *library = box->library;
    size_t used, made, n = (size_t)block->n_bytes, n_in = (size_t)n_from;
    switch (box->kind) {
    case GZIP: /* Python decodes payloads of more than one member */
        return library->gunzip(box->inflater, from, n_in, to, n, &used, &made) == 0 && made == n
               && used == n_in;
    case ZLIB:
        return library->inflate(box->inflater, from, n_in, to, n, &used, &made) == 0 && made == n;
    case ZSTD: /* Python decodes payloads of more than one frame */
        return is_one_frame(from, n_from)
               && library->zstd_decompress(box->unzstd, to, n, from, n_in) == n;
    default:
        return unblosc(library, from, n_from, to, (int64_t)n, begin, end);
    }
}

/* Give a memoryview of some bytes. It refers to their owner: Python may keep it, in a traceback. */
static PyObject *view_of(PyObject *owner, int64_t begin, int64_t n)
{
    PyObject *whole = PyMemoryView_FromObject(owner);
    PyObject *part = whole ? PySequence_GetSlice(whole, begin, begin + n) : NULL;
    Py_XDECREF(whole);
    return part;
}

/* Decode by the Python codec, to `to` or, without it, what is wanted to the array. */
static int decode_python(Box *box, const Block *block, const char *from, int64_t n_from, char *to)
{
    int result = LEFT;
    Py_buffer view;
    PyEval_RestoreThread(box->thread);
    PyObject *payload = view_of(box->stored_owner, from - box->stored, n_from);
    PyObject *n = PyLong_FromLongLong(block->n_bytes);
    PyObject *decoded = payload && n
                            ? PyObject_CallFunctionObjArgs(box->decompress, payload, n, NULL)
                            : NULL;
    /* None: the payload is damaged, or its library is missing. An exception ends the whole box: a
     * signal handler may have raised it. */
    if (decoded && decoded != Py_None && PyObject_GetBuffer(decoded, &view, PyBUF_SIMPLE) == 0) {
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
    Py_XDECREF(decoded);
    Py_XDECREF(n);
    Py_XDECREF(payload);
    box->thread = PyEval_SaveThread();
    return result;
}

enum { LOCKED, BUSY, NO_LOCKS };

/* Lock a file as locks.py does, without waiting. */
static int try_lock(int file, int to_write)
{
#ifdef F_OFD_SETLK
    struct flock whole = {.l_type = to_write ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_OFD_SETLK, &whole) == 0)
        return LOCKED;
#else
    if (flock(file, (to_write ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
        return LOCKED;
#endif
    return errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL ? NO_LOCKS
                                                                                        : BUSY;
}

/* Unlock a file before it is closed: a process that was forked meanwhile shares the lock. */
static void unlock(int file)
{
#ifdef F_OFD_SETLK
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(file, F_OFD_SETLK, &whole);
#else
    flock(file, LOCK_UN);
#endif
}

/* Keep out programs that write the file in place under a lock, as Java does. The lock is taken only
 * where the time of the file says that a program may be writing it now; one that holds it is left
 * to Python, which waits: the code that this call interrupts may be that program. */
static int settle(int file, struct stat *status, int *is_locked, int *is_recent)
{
    struct timespec now;
    *is_locked = *is_recent = 0;
    if (fstat(file, status) != 0 || !S_ISREG(status->st_mode)
        || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    int64_t written = status->st_mtim.tv_sec; /* any number: a difference could overflow */
    if (written < now.tv_sec - 1 || written > now.tv_sec + 1)
        return 1;
    int64_t age = (now.tv_sec - written) * 1000000000 + (now.tv_nsec - status->st_mtim.tv_nsec);
    if (age >= RECENT || age <= -RECENT)
        return 1;
    *is_recent = 1;
    int lock = try_lock(file, 0);
    *is_locked = lock == LOCKED;
    return lock != BUSY && fstat(file, status) == 0;
}

/* Whether no program has written the file since; files.py reads it again if one has. */
static int is_unchanged(int file, const struct stat *before)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_size == before->st_size
           && now.st_mtim.tv_sec == before->st_mtim.tv_sec
           && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static uint64_t eight_bytes(const char *bytes, int is_big)
{
    uint64_t number = 0;
    for (int k = 0; k < 8; k++)
        number = number << 8 | (unsigned char)bytes[is_big ? k : 7 - k];
    return number;
}

/* Whether a file may be a shard of Java N5 4, by its last bytes; Python tells. codecs/shard.py. */
static int may_be_shard(const char *last, int64_t size)
{
    static const char missing[ENTRY] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                        -1, -1, -1, -1, -1, -1, -1, -1};
    for (int n_checksum = LAST - ENTRY; n_checksum >= 0; n_checksum -= LAST - ENTRY) {
        const char *entry = last + LAST - ENTRY - n_checksum;
        uint64_t room = (uint64_t)(size - ENTRY - n_checksum);
        if (memcmp(entry, missing, ENTRY) == 0)
            return 1;
        for (int is_big = 0; is_big < 2; is_big++) {
            uint64_t offset = eight_bytes(entry, is_big), length = eight_bytes(entry + 8, is_big);
            if (offset <= room && length > 0 && length <= room - offset)
                return 1;
        }
    }
    return 0;
}

/* Decode a stored block, header first: all its elements to `to` or, without it, what is wanted to the
 * array. With `to`, the elements of an uncompressed block are there already. */
static int decode_stored(Box *box, Block *block, int64_t size, char *to)
{
    int64_t header = n_header(box), n_payload = size - header, begin = 0, end;
    const char *payload = box->stored + header;
    char *elements = to ? to : box->elements;
    if (n_payload < 0 || !parse_header(box, block, box->stored))
        return LEFT;
    end = block->n_bytes;
    if (box->kind == RAW) {
        if (n_payload != block->n_bytes)
            return LEFT;
        if (!to)
            scatter(box, block, payload);
        return DONE;
    }
    if ((size >= LAST && may_be_shard(box->stored + size - LAST, size))
        || block->n_bytes > box->n_elements)
        return LEFT;
    if (box->kind == OTHER)
        return decode_python(box, block, payload, n_payload, to);
    if (!to)
        wanted_range(box, block, block->offset[box->ndim - 1], block->n[box->ndim - 1], &begin,
                     &end);
    if (!decode(box, block, payload, n_payload, elements, begin, end))
        return LEFT;
    if (!to)
        scatter(box, block, elements);
    return DONE;
}

/* Read a file that no program is writing: all elements of the block to `to` or, without it, what is
 * wanted to the array. A shared lock ends with reading: no lock is held while Python code runs. */
static int read_settled(Box *box, Block *block, int file, const struct stat *status,
                        int *is_shared, char *to)
{
    int64_t header = n_header(box), n_payload = status->st_size - header;
    if (S_ISDIR(status->st_mode))
        return MISSING;
    if (box->kind == RAW && to == NULL) {
        int result = read_raw(box, block, file, status->st_size);
        return is_unchanged(file, status) ? result : LEFT;
    }
    int is_read = 0;
    if (box->kind == RAW && to != NULL) /* the elements go to their place at once */
        is_read = n_payload >= 0 && n_payload <= box->n_full
                  && pread(file, box->stored, (size_t)header, 0) == header
                  && pread(file, to, (size_t)n_payload, header) == n_payload;
    else
        is_read = n_payload >= 0 && status->st_size <= box->n_stored
                  && pread(file, box->stored, (size_t)status->st_size, 0) == status->st_size;
    is_read = is_read && is_unchanged(file, status);
    if (*is_shared)
        unlock(file);
    *is_shared = 0;
    return is_read ? decode_stored(box, block, status->st_size, to) : LEFT;
}

/* Read a block: all its elements to `to` or, without it, what is wanted to the array. */
static int read_one(Box *box, Block *block, char *to)
{
    struct stat status;
    int result = LEFT, is_locked = 0, is_recent;
    int file = openat(box->directory, block->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        if (settle(file, &status, &is_locked, &is_recent))
            result = read_settled(box, block, file, &status, &is_locked, to);
        if (is_locked)
            unlock(file);
        close(file);
    } else if (is_absent(box, block->name)) {
        result = MISSING;
    }
    return result;
}

/* Read what is wanted of a block to the array. */
static int read_part(Box *box, Block *block)
{
    if (block->is_empty)
        return DONE;
    if (!block->is_inside)
        return LEFT;
    char *to = box->cells ? box->elements : NULL;
    int result = box->directory < 0 ? MISSING : read_one(box, block, to);
    if (result == LEFT)
        return LEFT;
    if (result == MISSING)
        fill_part(box, block);
    else if (box->cells) /* while the elements are in the cache */
        combine_cells(box->cells, block->target, box->stride, to + wanted_offset(box, block),
                      block->stride, block->n);
    return DONE;
}

/* ------------------------------------------------------------------ many boxes */

/* Boxes of one shape, and the blocks that hold their elements; numbers in N5 order. Each number is
 * checked where it is used: Python may change it meanwhile. */
typedef struct {
    Py_buffer starts, places, members, ends; /* of each box, of each block; see `read_group` */
    int64_t n_boxes, stride;
    char *array, *whole; /* `whole` has room for the elements of a block */
} Boxes;

static int64_t number_at(const Py_buffer *view, Py_ssize_t i)
{
    int64_t number; /* the memory may not be aligned */
    memcpy(&number, (const char *)view->buf + i * (Py_ssize_t)sizeof number, sizeof number);
    return number;
}

/* Make a box of the group current, and find what it wants of the block. */
static int find_member(Box *box, const Boxes *boxes, int64_t k, Block *block)
{
    int64_t member = number_at(&boxes->members, (Py_ssize_t)k);
    if (member < 0 || member >= boxes->n_boxes)
        return 0;
    box->array = boxes->array + member * boxes->stride;
    for (int d = 0; d < box->ndim; d++) {
        box->start[d] = number_at(&boxes->starts, (Py_ssize_t)member * box->ndim + d);
        if (box->start[d] < 0 || box->start[d] > INT64_MAX - box->shape[d])
            return 0;
    }
    find_part(box, block);
    return 1;
}

/* Read the group of boxes that want elements of a block: members[ends[index - 1]:ends[index]]. */
static int read_group(Box *box, const Boxes *boxes, int64_t index, Block *block)
{
    int64_t begin = index ? number_at(&boxes->ends, (Py_ssize_t)index - 1) : 0;
    int64_t end = number_at(&boxes->ends, (Py_ssize_t)index);
    int result = MISSING, is_read_once;
    if (begin < 0 || end < begin || end > boxes->members.len / 8)
        return LEFT;
    for (int d = 0; d < box->ndim; d++) {
        block->position[d] = number_at(&boxes->places, (Py_ssize_t)index * box->ndim + d);
        if (block->position[d] < 0 || block->position[d] > INT64_MAX / box->block[d])
            return LEFT;
    }
    name_block(box, block);
    /* a few parts of a block that is not compressed are read one by one */
    is_read_once = end - begin > (box->kind == RAW ? high(1, box->n_full / ONE_MORE) : 1);
    if (is_read_once && box->directory >= 0) {
        Block whole = *block;
        if (!find_member(box, boxes, begin, &whole))
            return LEFT;
        result = read_one(box, &whole, boxes->whole);
        if (result == LEFT)
            return LEFT;
        memcpy(block->shape, whole.shape, sizeof whole.shape);
        memcpy(block->stride, whole.stride, sizeof whole.stride);
    }
    for (int64_t k = begin; k < end; k++) {
        if (!find_member(box, boxes, k, block))
            return LEFT;
        if (!is_read_once) {
            if (read_part(box, block) != DONE)
                return LEFT;
        } else if (!block->is_empty) {
            if (!block->is_inside)
                return LEFT;
            if (result == MISSING)
                fill_part(box, block);
            else
                scatter(box, block, boxes->whole);
        }
    }
    return DONE;
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

/* Lock the block as it was, and check that no writer has replaced or removed it meanwhile. Where
 * the file system has no locks, a part is left to Python, which warns. */
static int hold(const Box *box, Block *block)
{
    struct stat mine, named;
    int lock = try_lock(block->file, 1);
    block->is_locked = lock == LOCKED;
    return lock != BUSY && (block->is_locked || block->is_whole)
           && fstat(block->file, &mine) == 0
           && fstatat(box->directory, block->name, &named, 0) == 0
           && mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* Whether Python code runs before a block is written. No lock is held then: that code may be a
 * signal handler that writes the same block. */
static int calls_python(const Box *box)
{
    return box->kind == OTHER || ((box->kind == GZIP || box->kind == ZLIB) && box->level < 0);
}

/* Open the file of a block to change it; a link is left to Python, which keeps it, and so is what is
 * no file. */
static int open_to_write(const Box *box, const Block *block)
{
    struct stat status;
    int flags = O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    int file = openat(box->directory, block->name, flags);
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(file);
        errno = EINVAL;
        return -1;
    }
    return file;
}

/* Read the block that a part is written to, under the lock where no Python code runs. */
static int read_old(Box *box, Block *block)
{
    int is_shared = 0, result = LEFT;
    block->file = open_to_write(box, block);
    if (block->file < 0)
        return is_absent(box, block->name) ? MISSING : LEFT;
    if (calls_python(box) ? settle(block->file, &block->status_read, &is_shared, &block->was_recent)
                          : hold(box, block) && fstat(block->file, &block->status_read) == 0)
        result = read_settled(box, block, block->file, &block->status_read, &is_shared,
                              box->elements);
    if (is_shared)
        unlock(block->file);
    return result;
}

/* Whether the file holds what was read from it; the time of a recent file does not tell. */
static int is_as_read(const Box *box, const Block *block)
{
    char now[PAGE];
    int64_t n = block->status_read.st_size;
    if (!is_unchanged(block->file, &block->status_read))
        return 0;
    for (int64_t at = 0; block->was_recent && at < n; at += PAGE) {
        size_t part = (size_t)low(PAGE, n - at);
        if (pread(block->file, now, part, at) != (ssize_t)part
            || memcmp(now, box->stored + at, part) != 0)
            return 0;
    }
    return 1;
}

/* Whether a whole block may be replaced. If it is larger than the array was when this call began,
 * others may have resized the array, and written what a smaller block would lose. If it has no
 * header, or seems to be a shard, it may hold other blocks. In both cases Python looks again. */
static int may_replace(const Box *box, const Block *block)
{
    char header[MAX_HEADER], last[LAST];
    struct stat status;
    int64_t n = n_header(box), n_bytes = box->item;
    if (fstat(block->file, &status) != 0)
        return 0;
    if (status.st_size < n)
        return status.st_size < LAST;
    if (pread(block->file, header, (size_t)n, 0) != n || big_endian(header) != (uint32_t)box->ndim)
        return 0;
    for (int d = 0; d < box->ndim; d++) {
        int64_t size = big_endian(header + 4 + 4 * d);
        if (size > block->extent[d] && block->extent[d] < box->block[d])
            return 0;
        n_bytes = low(n_bytes * size, (int64_t)1 << 31); /* no block has more */
    }
    if (status.st_size < LAST || (box->kind == RAW && status.st_size - n == n_bytes))
        return 1;
    int may_begin_shard = box->ndim > 1 && big_endian(header + 4) == 2; /* see codecs/shard.py */
    return !may_begin_shard && pread(block->file, last, LAST, status.st_size - LAST) == LAST
           && !may_be_shard(last, status.st_size);
}

/* Hold the lock of the block as it was, and check that what is to be replaced may be. */
static int hold_as_read(const Box *box, Block *block)
{
    return block->is_locked
           || (hold(box, block)
               && (block->is_whole ? may_replace(box, block) : is_as_read(box, block)));
}

/* Rename a file unless the new name exists, where the system can tell. */
static int rename_unless(const Box *box, const char *from, const char *to)
{
#if defined(__linux__) && defined(SYS_renameat2)
    const unsigned int no_replace = 1;
    return syscall(SYS_renameat2, box->directory, from, box->directory, to, no_replace) == 0;
#else
    (void)box, (void)from, (void)to;
    errno = ENOSYS;
    return 0;
#endif
}

/* The same everywhere; without hard links, the file of another is replaced. */
static int rename_new(const Box *box, const char *from, const char *to)
{
    int d = box->directory;
    if (rename_unless(box, from, to))
        return 1;
    if (errno != EINVAL && errno != ENOSYS)
        return 0;
    if (linkat(d, from, d, to, 0) == 0) {
        unlinkat(d, from, 0);
        return 1;
    }
    return errno != EEXIST && errno != ENOENT && renameat(d, from, d, to) == 0;
}

/* Give the new file the mode of the one that it replaces; other owners are left to Python. */
static int keep_mode(const Box *box, const Block *block, const char *other)
{
    struct stat old, new;
    if (fstat(block->file, &old) != 0 || fstatat(box->directory, other, &new, 0) != 0
        || old.st_uid != new.st_uid || old.st_gid != new.st_gid)
        return 0;
    return old.st_mode == new.st_mode
           || fchmodat(box->directory, other, old.st_mode & 07777, 0) == 0;
}

/* Give the new file the name of the block. */
static int give_name(const Box *box, Block *block, const char *other)
{
    if (block->is_whole) {
        if (rename_unless(box, other, block->name)) /* most often; looking first costs more */
            return DONE;
        block->file = open_to_write(box, block);
        if (block->file < 0 && !is_absent(box, block->name))
            return LEFT;
    }
    if (block->file < 0)
        return rename_new(box, other, block->name) ? DONE : LEFT;
    return hold_as_read(box, block) && keep_mode(box, block, other)
                   && renameat(box->directory, other, box->directory, block->name) == 0
               ? DONE
               : LEFT;
}

/* Open a new file; make its directory where there is none. */
static int create(const Box *box, Block *block, const char *name, int flags)
{
    flags |= O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = openat(box->directory, name, flags, 0666);
    if (file < 0 && errno == ENOENT && make_directories(box, block))
        file = openat(box->directory, name, flags, 0666);
    return file;
}

/* Write a file under another name and rename it: no program ever reads half of a block. */
static int replace_file(const Box *box, Block *block, int64_t index, const struct iovec *parts)
{
    char other[MAX_NAME];
    static const char digits[] = "0123456789abcdef";
    char *end = other + strlen(block->name);
    memcpy(other, block->name, strlen(block->name));
    *end++ = '.';
    memcpy(end, box->unique, UNIQUE); /* 32 digits with those of the index, as files.py expects */
    end += UNIQUE;
    for (int k = 60; k >= 0; k -= 4)
        *end++ = digits[(uint64_t)index >> k & 15];
    memcpy(end, ".partial", 9);
    int file = create(box, block, other, O_WRONLY | O_EXCL);
    if (file < 0)
        return LEFT;
    int is_written = writev(file, parts, 2) == (ssize_t)(parts[0].iov_len + parts[1].iov_len);
    if (box->durability == DURABLE)
        is_written = is_written && fsync(file) == 0; /* the directories: kernel.py */
    is_written &= close(file) == 0;
    if (is_written && give_name(box, block, other) == DONE)
        return DONE;
    unlinkat(box->directory, other, 0);
    return LEFT;
}

static int write_at(int file, const struct iovec *part, int64_t at)
{
    return pwrite(file, part->iov_base, part->iov_len, at) == (ssize_t)part->iov_len;
}

/* Write into the file of the block, under the lock. While a block is changed, it has no header: a
 * reader that takes no lock sees an error, no numbers of two writers. */
static int overwrite_file(const Box *box, Block *block, const struct iovec *parts)
{
    struct stat status;
    char none[NO_HEADER];
    const struct iovec no_header = {memset(none, 0xFF, NO_HEADER), NO_HEADER};
    int64_t header = (int64_t)parts[0].iov_len, n = header + (int64_t)parts[1].iov_len;
    int is_new = block->file < 0;
    if (is_new)
        block->file = create(box, block, block->name, O_RDWR | (block->is_whole ? 0 : O_EXCL));
    int holds_new = is_new && !block->is_whole;
    if (block->file < 0 || !(holds_new ? hold(box, block) : hold_as_read(box, block))
        || fstat(block->file, &status) != 0 || !S_ISREG(status.st_mode)
        || (holds_new && status.st_size != 0))
        return LEFT;
    if (status.st_size == 0) {
        if (writev(block->file, parts, 2) == n)
            return DONE;
        unlinkat(box->directory, block->name, 0);
        return LEFT;
    }
    return write_at(block->file, &no_header, 0) && write_at(block->file, &parts[1], header)
                   && (status.st_size <= n || ftruncate(block->file, n) == 0)
                   && write_at(block->file, &parts[0], 0)
               ? DONE
               : LEFT;
}

static int write_file(const Box *box, Block *block, int64_t index, const char *payload,
                      int64_t n_payload)
{
    char header[MAX_HEADER];
    const struct iovec parts[2] = {{header, (size_t)n_header(box)},
                                   {(char *)payload, (size_t)n_payload}};
    put_header(box, block, header);
    return box->durability == OVERWRITE ? overwrite_file(box, block, parts)
                                        : replace_file(box, block, index, parts);
}

/* Remove a block that holds only the fill value. */
static int remove_file(const Box *box, Block *block)
{
    if (block->is_whole) {
        block->file = open_to_write(box, block);
        if (block->file < 0 && !is_absent(box, block->name))
            return LEFT;
    }
    if (block->file < 0)
        return DONE;
    return hold_as_read(box, block) && unlinkat(box->directory, block->name, 0) == 0 ? DONE : LEFT;
}

/* Encode by the Python codec, and write. */
static int write_python(Box *box, Block *block, int64_t index)
{
    int result = LEFT;
    Py_buffer view;
    PyEval_RestoreThread(box->thread);
    PyObject *data = view_of(box->elements_owner, 0, block->n_bytes);
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

static int write_block(Box *box, Block *block, int64_t index)
{
    const Library *library = box->library;
    static const int64_t none[MAX_NDIM] = {0};
    const int last = box->ndim - 1;
    const int64_t *shape = block->extent; /* of what is written */
    int64_t size = box->item;
    for (int d = 0; d < box->ndim; d++)
        size *= block->extent[d];
    if (size > box->n_elements)
        return LEFT;
    if (!block->is_whole) { /* the elements beside the wanted part are kept */
        int64_t missing[MAX_NDIM], n_old = 0;
        int result = read_old(box, block);
        if (result == LEFT)
            return LEFT;
        memcpy(missing, shape, sizeof missing);
        if (result == DONE) { /* its shape is the extent or full-size, see `parse_header` */
            n_old = block->n_bytes;
            missing[last] -= block->shape[last]; /* the array has grown along its slowest axis */
            for (int d = 0; d < box->ndim; d++)
                if (block->shape[d] > block->extent[d])
                    shape = box->block; /* it stays full-size */
        }
        set_shape(box, block, shape);
        if (missing[last] > 0 && shape == block->extent)
            copy_box(box->elements + n_old, block->stride, box->fill, none, missing, box->ndim,
                     box->item, 0);
    }
    set_shape(box, block, shape);
    char *to = box->elements + wanted_offset(box, block);
    int64_t stride[MAX_NDIM];
    strides_of_wanted(box, block, stride);
    copy_box(to, stride, block->target, box->stride, block->n, box->ndim, box->item, box->swap);
    if (!box->keep_empty && is_all_fill(box, box->elements, block->n_bytes))
        return remove_file(box, block);
    int64_t n = block->n_bytes;
    switch (box->kind) {
    case RAW:
        return write_file(box, block, index, box->elements, n);
    case GZIP:
    case ZLIB:
        if (box->level < 0) /* the Python codec chooses how, from the elements */
            return write_python(box, block, index);
        if (!box->deflater)
            box->deflater = library->deflate_new(box->level);
        n = !box->deflater ? 0
            : (int64_t)(box->kind == GZIP ? library->gzip : library->deflate)(
                  box->deflater, box->elements, (size_t)n, box->stored, (size_t)box->n_stored);
        return n > 0 ? write_file(box, block, index, box->stored, n) : LEFT;
    case ZSTD:
        n = (int64_t)library->zstd_compress(box->zstd, box->stored, (size_t)box->n_stored,
                                           box->elements, (size_t)n, box->level);
        /* errors are the largest unsigned numbers, here negative ones */
        return n > 0 ? write_file(box, block, index, box->stored, n) : LEFT;
    case BLOSC:
        if (n + BLOSC_HEADER > box->n_stored)
            return LEFT;
        n = library->blosc_compress(box->level, box->shuffle, (size_t)box->item, (size_t)n,
                                   box->elements, box->stored, (size_t)n + BLOSC_HEADER,
                                   box->cname, (size_t)box->blosc_block, 1);
        return n > 0 ? write_file(box, block, index, box->stored, n) : LEFT;
    default:
        return write_python(box, block, index);
    }
}

static int write_one(Box *box, Block *block, int64_t index)
{
    int result = write_block(box, block, index);
    if (block->is_locked)
        unlock(block->file);
    if (block->file >= 0)
        close(block->file);
    return result;
}

/* ------------------------------------------------------------------ arguments */

/* Raise ValueError. */
static int refuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyErr_FormatV(PyExc_ValueError, format, values);
    va_end(values);
    return 0;
}

/* Give the letter of a format of one number in native byte order, else 0. */
static char native_letter(const Py_buffer *view)
{
    const uint16_t one = 1;
    const char native = *(const char *)&one ? '<' : '>';
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '^' || *format == native)
        format++;
    return format[0] != 0 && format[1] == 0 ? format[0] : 0;
}

/* Get the memory of contiguous numbers in one dimension; formats as in the struct module. */
static int get_numbers(PyObject *object, Py_buffer *view, const char *name, const char *formats,
                       Py_ssize_t item, int flags)
{
    if (PyObject_GetBuffer(object, view, flags | PyBUF_ND | PyBUF_FORMAT) != 0)
        return 0;
    char letter = native_letter(view);
    if (view->ndim != 1 || view->itemsize != item || letter == 0 || !strchr(formats, letter))
        return refuse("%s: expected one dimension of items of %zd bytes, formats '%s', got %d"
                      " dimensions of items of %zd bytes, format '%s'", name, item, formats,
                      view->ndim, view->itemsize, view->format ? view->format : "B");
    return 1;
}

/* The array of many boxes has one axis more, the last one: the boxes. */
static int check_array(Box *box, const Py_buffer *array, int n_more)
{
    if (array->ndim < 1 + n_more || array->ndim > MAX_NDIM + n_more || !array->shape
        || !array->strides || array->suboffsets)
        return refuse("array: expected %d to %d dimensions with strides, got %d dimensions",
                      1 + n_more, MAX_NDIM + n_more, array->ndim);
    Py_ssize_t item = array->itemsize;
    if ((item != 1 && item != 2 && item != 4 && item != 8) || native_letter(array) == 0)
        return refuse("array: expected numbers of 1, 2, 4 or 8 bytes in native byte order, got"
                      " items of %zd bytes, format '%s'", item,
                      array->format ? array->format : "B");
    box->ndim = array->ndim - n_more;
    box->item = (int)item;
    box->array = array->buf;
    return 1;
}

/* Give the number of elements that are wanted along an axis: those of whole cells, up to the end of
 * the dataset; 0 where no cells of the array are those of a dataset of n elements. Elements that
 * become one are beside each other, so that cells exclude steps along any axis. */
static int64_t n_wanted(const Box *box, int d, int64_t shape, int64_t size, int64_t n,
                        int64_t start, int64_t step)
{
    int64_t factor = box->cells ? box->cells->factor[d] : 1, wanted;
    if (box->cells && step != 1)
        return 0;
    if (factor == 1)
        return shape;
    if (size % factor != 0 || start % factor != 0 || start >= n
        || __builtin_mul_overflow(shape, factor, &wanted))
        return 0;
    wanted = low(wanted, n - start);
    return n_cells(box->cells, d, wanted) == shape ? wanted : 0;
}

/* Check the numbers that describe the box: block size, dimensions, first element, step. */
static int check_geometry(Box *box, const Py_buffer *numbers, const Py_buffer *array)
{
    if (numbers->len != 4 * 8 * (Py_ssize_t)box->ndim)
        return refuse("geometry: expected %d numbers for %d dimensions, got %zd", 4 * box->ndim,
                      box->ndim, numbers->len / 8);
    box->n_full = box->item;
    box->n_blocks = 1;
    for (int d = 0; d < box->ndim; d++) {
        int64_t size = number_at(numbers, d), n = number_at(numbers, box->ndim + d);
        int64_t start = number_at(numbers, 2 * box->ndim + d), shape = array->shape[d];
        int64_t step = number_at(numbers, 3 * box->ndim + d), last;
        if (size < 1 || size > MAX_BYTES / box->n_full)
            return refuse("geometry: expected a block of 1 to %d bytes, got block size %lld in"
                          " dimension %d", (int)MAX_BYTES, (long long)size, d);
        if (n >= 0 && start >= 0 && step >= 1 && shape >= 1
            && (shape = n_wanted(box, d, shape, size, n, start, step)) == 0)
            return refuse("geometry: expected whole cells, without steps, in dimension %d", d);
        if (n < 0 || start < 0 || step < 1 || shape < 1
            || __builtin_mul_overflow(shape - 1, step, &last)
            || __builtin_add_overflow(last, start, &last))
            return refuse("geometry: expected a box of 1 element or more in dimension %d, got %lld"
                          " from %lld in steps of %lld, of %lld", d, (long long)shape,
                          (long long)start, (long long)step, (long long)n);
        box->block[d] = size;
        box->dimensions[d] = n;
        box->start[d] = start;
        box->step[d] = step;
        box->shape[d] = shape;
        box->stride[d] = array->strides[d];
        box->n_full *= size;
        box->first[d] = start / size;
        box->count[d] = step >= size ? shape : last / size + 1 - box->first[d];
        if (__builtin_mul_overflow(box->n_blocks, box->count[d], &box->n_blocks))
            return refuse("geometry: expected fewer than 2**63 blocks");
    }
    return 1;
}

/* Check that `elements` holds the largest block. */
static int check_elements(const Box *box, int64_t n_bytes)
{
    return box->n_elements >= n_bytes
           || refuse("elements: expected at least %lld bytes, got %lld", (long long)n_bytes,
                     (long long)box->n_elements);
}

/* Check that `stored` and `elements` hold the largest block. */
static int check_memory(const Box *box, int reads_whole)
{
    int64_t n_stored = box->n_full, n_elements = box->n_full;
    if (box->to_write) {
        n_stored += BLOSC_HEADER; /* of what blosc does not compress */
    } else if (box->kind == RAW && !reads_whole) {
        n_elements = 0; /* see `read_raw` */
        n_stored = low(n_stored, high(GROUP, n_stored / box->block[box->ndim - 1]));
    }
    n_stored += n_header(box);
    if (box->n_stored < n_stored)
        return refuse("stored: expected at least %lld bytes, got %lld", (long long)n_stored,
                      (long long)box->n_stored);
    return check_elements(box, n_elements);
}

typedef struct {
    uintptr_t begin, end;
} Span;

static Span span_of(const Py_buffer *view)
{
    Span span = {(uintptr_t)view->buf, (uintptr_t)view->buf};
    if (!view->strides || view->len == 0) {
        span.end += (uintptr_t)view->len;
        return span;
    }
    for (int d = 0; d < view->ndim; d++) {
        Py_ssize_t last = (view->shape[d] - 1) * view->strides[d];
        *(last < 0 ? &span.begin : &span.end) += (uintptr_t)last;
    }
    span.end += (uintptr_t)view->itemsize;
    return span;
}

/* Check that no two buffers share memory: they are copied with memcpy. */
static int check_apart(const Py_buffer *array, const Py_buffer *taken, const Py_buffer *stored,
                       const Py_buffer *elements, const Py_buffer *whole)
{
    Span span[] = {span_of(array), span_of(taken), span_of(stored), span_of(elements),
                   span_of(whole)};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            if (span[i].begin < span[j].end && span[j].begin < span[i].end
                && span[i].begin < span[i].end && span[j].begin < span[j].end)
                return refuse("array, taken, stored, elements and whole: expected separate"
                              " memory, got memory that is shared");
    return 1;
}

/* Check what describes a box and its elements. */
static int check_box(Box *box, int has_boxes, const char *fill, Py_ssize_t n_fill,
                     const Py_buffer *geometry, const Py_buffer *array)
{
    if (!check_array(box, array, has_boxes) || !check_geometry(box, geometry, array))
        return 0;
    if (box->kind < 0 || box->kind >= N_KINDS)
        return refuse("kind: expected 0 to %d, got %d", N_KINDS - 1, box->kind);
    if (n_fill != box->item)
        return refuse("fill: expected %d bytes, as in the array, got %zd", box->item, n_fill);
    memcpy(box->fill, fill, (size_t)n_fill);
    return 1;
}

/* Check all that this file relies on, of what Python has passed; see the top. */
static int check_arguments(const Box *box, int has_boxes, const Py_buffer *taken)
{
    if (taken->len != 16 || (uintptr_t)taken->buf % _Alignof(_Atomic int64_t) != 0
        || number_at(taken, 0) < 0)
        return refuse("taken: expected two aligned numbers >= 0, got %zd bytes", taken->len);
    if (box->durability < 0 || box->durability >= N_DURABILITIES)
        return refuse("durability: expected 0 to %d, got %d", N_DURABILITIES - 1, box->durability);
    if (box->to_write
        && (strlen(box->unique) != UNIQUE
            || strspn(box->unique, "0123456789abcdef") != UNIQUE))
        return refuse("unique: expected %d hexadecimal digits, got '%s'", (int)UNIQUE, box->unique);
    return check_memory(box, has_boxes || box->cells);
}

/* Check the cells of an array, which has been checked. */
static int check_cells(Cells *cells, const Py_buffer *factors, const Py_buffer *array)
{
    const char letter = native_letter(array);
    int64_t n_cell = 1;
    cells->ndim = array->ndim;
    cells->item = (int)array->itemsize;
    cells->is_signed = strchr("bhilq", letter) != NULL;
    if (letter == 0 || !strchr("bhilqBHILQ", letter))
        return refuse("array: expected integers, got the format '%c'", letter);
    if (cells->method < 0 || cells->method >= N_METHODS || !combine_of(cells))
        return refuse("method: expected 0 to %d, and 1 for items of 8 bytes, got %d",
                      N_METHODS - 1, cells->method);
    const int64_t most = cells->method == MODE ? MAX_SORTED : MAX_CELL;
    if (factors->len != 8 * (Py_ssize_t)cells->ndim)
        return refuse("factors: expected %d numbers, got %zd", cells->ndim, factors->len / 8);
    for (int d = 0; d < cells->ndim; d++) {
        cells->factor[d] = number_at(factors, d);
        if (cells->factor[d] < 1 || cells->factor[d] > most / n_cell)
            return refuse("factors: expected cells of 1 to %d elements, got %lld in dimension %d",
                          (int)most, (long long)cells->factor[d], d);
        n_cell *= cells->factor[d];
    }
    return 1;
}

/* Check the buffers of many boxes; `box` has been checked. */
static int check_boxes(Box *box, Boxes *boxes, const Py_buffer *array, const Py_buffer *whole)
{
    const Py_ssize_t row = 8 * (Py_ssize_t)box->ndim;
    boxes->n_boxes = array->shape[box->ndim];
    boxes->stride = array->strides[box->ndim];
    boxes->array = array->buf;
    boxes->whole = whole->buf;
    box->n_blocks = boxes->ends.len / 8;
    for (int d = 0; d < box->ndim; d++)
        if (box->step[d] != 1)
            return refuse("geometry: expected many boxes without steps");
    if (boxes->starts.len / row != boxes->n_boxes || boxes->starts.len % row != 0)
        return refuse("starts: expected the first elements of %lld boxes, got %zd bytes",
                      (long long)boxes->n_boxes, boxes->starts.len);
    if (boxes->places.len / row != box->n_blocks || boxes->places.len % row != 0)
        return refuse("places: expected those of %lld blocks, got %zd bytes",
                      (long long)box->n_blocks, boxes->places.len);
    if (whole->len < box->n_full)
        return refuse("whole: expected at least %lld bytes, got %zd", (long long)box->n_full,
                      whole->len);
    return 1;
}

/* ------------------------------------------------------------------ batches of chunks */

/* An item of a batch of zarr's: place of the chunk in the grid, and bounds of the selection in the
 * chunk and of its place in the output. An axis that the output lacks is not `kept`. */
typedef struct {
    int64_t place[MAX_NDIM], start[MAX_NDIM], stop[MAX_NDIM], to[MAX_NDIM];
    int is_kept[MAX_NDIM];
    Py_ssize_t n_prefix; /* characters of the key before the first place */
    Py_UCS4 separator;   /* of the places; 0 if there is only one */
} Chunk;

/* The value of an int that is neither negative nor large, else -1. */
static int64_t small_number(PyObject *object)
{
    int overflow;
    long long value = -1;
    if (PyLong_CheckExact(object))
        value = PyLong_AsLongLongAndOverflow(object, &overflow); /* -1 if it overflows */
    return value < INT64_MAX / 4 ? value : -1;
}

/* The bounds of a slice that has both and no step, and is not empty. */
static int bounds_of(PyObject *object, int64_t *start, int64_t *stop)
{
    if (!PySlice_Check(object))
        return 0;
    PySliceObject *slice = (PySliceObject *)object;
    *start = small_number(slice->start);
    *stop = small_number(slice->stop);
    return *start >= 0 && *start < *stop
           && (slice->step == Py_None || small_number(slice->step) == 1);
}

/* Parse the places at the end of a key, such as a/c/2/1/0 or a/2.1.0, from the last one on. */
static int find_places(PyObject *key, Py_ssize_t ndim, const int64_t *size, Chunk *chunk)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(key);
    chunk->separator = 0;
    for (Py_ssize_t axis = ndim; axis-- > 0;) {
        int64_t value = 0, unit = 1;
        Py_UCS4 digit = 0;
        const Py_ssize_t end = n;
        for (; n > 0 && end - n < 18; n--, unit *= 10) {
            Py_UCS4 letter = PyUnicode_READ_CHAR(key, n - 1);
            if (letter < '0' || letter > '9')
                break;
            digit = letter;
            value += (int64_t)(digit - '0') * unit;
        }
        if (n == end || (digit == '0' && end - n > 1) || value > INT64_MAX / 4 / size[axis])
            return 0;
        chunk->place[axis] = value;
        Py_UCS4 before = n > 0 ? PyUnicode_READ_CHAR(key, n - 1) : '/';
        if (before != '/' && before != '.')
            return 0;
        if (axis == 0)
            break;
        if (n == 0 || (chunk->separator && chunk->separator != before))
            return 0;
        chunk->separator = before;
        n--;
    }
    chunk->n_prefix = n;
    return 1;
}

/* Parse the selections of an item, in the chunk and in the output. */
static int find_selections(PyObject *part, PyObject *output, Py_ssize_t ndim, const int64_t *size,
                           Chunk *chunk)
{
    Py_ssize_t n_kept = 0;
    int64_t end;
    if (!PyTuple_CheckExact(part) || !PyTuple_CheckExact(output) || PyTuple_GET_SIZE(part) != ndim)
        return 0;
    for (Py_ssize_t axis = 0; axis < ndim; axis++) {
        PyObject *each = PyTuple_GET_ITEM(part, axis);
        int64_t *start = &chunk->start[axis], *stop = &chunk->stop[axis];
        chunk->is_kept[axis] = bounds_of(each, start, stop);
        if (chunk->is_kept[axis]) {
            if (n_kept == PyTuple_GET_SIZE(output)
                || !bounds_of(PyTuple_GET_ITEM(output, n_kept++), &chunk->to[axis], &end)
                || end - chunk->to[axis] != *stop - *start)
                return 0;
        } else {
            *start = small_number(each);
            *stop = *start + 1;
            chunk->to[axis] = 0;
        }
        if (*start < 0 || *stop > size[axis])
            return 0;
    }
    return n_kept == PyTuple_GET_SIZE(output);
}

/* Parse an item. Takes the start of the first key if `prefix` is NULL, else compares it. Gives 1,
 * 0 if the item is no part of a box, or -1 for an exception. */
static int find_chunk(PyObject *item, Py_ssize_t ndim, const int64_t *size, PyObject **prefix,
                      Chunk *chunk)
{
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) < 4)
        return 0;
    PyObject *key = PyObject_GetAttrString(PyTuple_GET_ITEM(item, 0), "path");
    if (key == NULL)
        return -1;
    int found = PyUnicode_Check(key) && find_places(key, ndim, size, chunk)
                && find_selections(PyTuple_GET_ITEM(item, 2), PyTuple_GET_ITEM(item, 3), ndim,
                                   size, chunk);
    if (found && *prefix == NULL) {
        *prefix = PyUnicode_Substring(key, 0, chunk->n_prefix);
        found = *prefix == NULL ? -1 : 1;
    } else if (found) {
        Py_ssize_t n = PyUnicode_GET_LENGTH(*prefix);
        found = n == chunk->n_prefix ? (int)PyUnicode_Tailmatch(key, *prefix, 0, n, -1) : 0;
    }
    Py_DECREF(key);
    return found;
}

/* Whether a chunk is that of index k in the box from the first to the last chunk. */
static int is_at(const Chunk *chunk, int64_t k, const Chunk *first, const Chunk *last,
                 Py_ssize_t ndim, const int64_t *size)
{
    for (Py_ssize_t axis = ndim; axis-- > 0;) {
        int64_t count = last->place[axis] - first->place[axis] + 1;
        int64_t place = first->place[axis] + k % count, passed = k % count * size[axis];
        int64_t start = place == first->place[axis] ? first->start[axis] : 0;
        int64_t stop = place == last->place[axis] ? last->stop[axis] : size[axis];
        int64_t to = first->to[axis] + passed + start - first->start[axis];
        if (chunk->place[axis] != place || chunk->start[axis] != start
            || chunk->stop[axis] != stop || chunk->to[axis] != to
            || chunk->is_kept[axis] != first->is_kept[axis])
            return 0;
        k /= count;
    }
    return chunk->separator == first->separator;
}

/* Give a slice, or None for an axis that the output lacks. */
static PyObject *as_slice(int is_kept, int64_t start, int64_t stop)
{
    if (!is_kept)
        return Py_NewRef(Py_None);
    PyObject *begin = PyLong_FromLongLong(start), *end = PyLong_FromLongLong(stop);
    PyObject *slice = begin && end ? PySlice_New(begin, end, NULL) : NULL;
    Py_XDECREF(begin);
    Py_XDECREF(end);
    return slice;
}

/* Give first element, extent and place in the output of the box from the first to the last chunk. */
static PyObject *as_box(const Chunk *first, const Chunk *last, Py_ssize_t ndim,
                        const int64_t *size)
{
    PyObject *starts = PyTuple_New(ndim), *shape = PyTuple_New(ndim), *places = PyTuple_New(ndim);
    PyObject *box = starts && shape && places ? PyTuple_Pack(3, starts, shape, places) : NULL;
    for (Py_ssize_t axis = 0; box && axis < ndim; axis++) {
        int64_t start = first->place[axis] * size[axis] + first->start[axis];
        int64_t n = last->place[axis] * size[axis] + last->stop[axis] - start;
        int64_t to = first->to[axis];
        PyTuple_SET_ITEM(starts, axis, PyLong_FromLongLong(start));
        PyTuple_SET_ITEM(shape, axis, PyLong_FromLongLong(n));
        PyTuple_SET_ITEM(places, axis, as_slice(first->is_kept[axis], to, to + n));
        if (PyErr_Occurred())
            Py_CLEAR(box);
    }
    Py_XDECREF(starts);
    Py_XDECREF(shape);
    Py_XDECREF(places);
    return box;
}

/* The box that the chunks of a batch form together, the last axis fastest; None if they form none.
 * The first and the last chunk define the box, and each chunk is compared with its part of it. */
static PyObject *box_of_batch(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *batch, *sizes, *prefix = NULL;
    int64_t size[MAX_NDIM], n_chunks = 1;
    Chunk first, last, chunk;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &batch, &PyTuple_Type, &sizes))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(batch), ndim = PyTuple_GET_SIZE(sizes);
    int is_valid = n > 0 && ndim > 0 && ndim <= MAX_NDIM;
    for (Py_ssize_t axis = 0; is_valid && axis < ndim; axis++) {
        size[axis] = small_number(PyTuple_GET_ITEM(sizes, axis));
        is_valid = size[axis] > 0;
    }
    if (!is_valid) {
        refuse("expected chunks, and their shape of 1 to %d axes", (int)MAX_NDIM);
        return NULL;
    }
    int found = find_chunk(PyTuple_GET_ITEM(batch, 0), ndim, size, &prefix, &first);
    if (found > 0)
        found = find_chunk(PyTuple_GET_ITEM(batch, n - 1), ndim, size, &prefix, &last);
    for (Py_ssize_t axis = 0; found > 0 && axis < ndim; axis++) {
        int64_t count = last.place[axis] - first.place[axis] + 1;
        found = count > 0 && count <= n / n_chunks && (count == 1 || first.is_kept[axis]);
        n_chunks *= count;
    }
    found = found > 0 ? n_chunks == n : found;
    for (Py_ssize_t k = 0; found > 0 && k < n; k++) {
        found = find_chunk(PyTuple_GET_ITEM(batch, k), ndim, size, &prefix, &chunk);
        if (found > 0)
            found = is_at(&chunk, k, &first, &last, ndim, size);
    }
    Py_XDECREF(prefix);
    return found < 0 ? NULL : found ? as_box(&first, &last, ndim, size) : Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------ Python */

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

/* Make the decoders and encoders of a box; 0 where a library is missing, or memory. */
static int open_libraries(Box *box)
{
    const Library *library = box->library;
    switch (box->kind) {
    case GZIP:
    case ZLIB:
        if (!library->inflate_new || !library->inflate_free || !library->gunzip
            || !library->inflate)
            return 0;
        if (box->to_write
            && (!library->deflate_new || !library->deflate_free || !library->gzip
                || !library->deflate))
            return 0;
        box->inflater = library->inflate_new();
        return box->inflater != NULL;
    case ZSTD:
        if (!library->zstd_new || !library->zstd_free || !library->zstd_decompress)
            return 0;
        box->unzstd = take_unzstd(library);
        if (!box->to_write)
            return box->unzstd != NULL;
        if (!library->zstd_writer_new || !library->zstd_writer_free || !library->zstd_compress)
            return 0;
        box->zstd = library->zstd_writer_new();
        return box->unzstd && box->zstd;
    case BLOSC:
        if (!library->blosc_decompress)
            return 0;
        return !box->to_write
               || (library->blosc_compress && box->blosc_block >= 0
                   && box->blosc_block <= INT32_MAX);
    default:
        return 1;
    }
}

static void close_libraries(const Box *box)
{
    const Library *library = box->library;
    if (box->inflater)
        library->inflate_free(box->inflater);
    if (box->deflater)
        library->deflate_free(box->deflater);
    if (box->unzstd)
        keep_unzstd(library, box->unzstd);
    if (box->zstd)
        library->zstd_writer_free(box->zstd);
}

/* Whether an exception ends the box; now and then, let signal handlers run, which may raise one. */
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

enum { READ, WRITE, READ_BOXES };

/* What a task is given. */
typedef struct {
    int task;
    const char *directory, *fill;
    Py_ssize_t n_fill;
    PyObject *geometry_owner, *array_owner, *taken_owner, *factors_owner, *many[5];
    Py_buffer geometry, array, taken, stored, elements, whole, factors;
    Box box;
    Boxes boxes;
    Cells cells;
} Given;

static int parse_arguments(Given *given, PyObject *args)
{
    Box *box = &given->box;
    PyObject *more = NULL, **many = given->many; /* what only some tasks have */
    if (!PyArg_ParseTuple(args, "yOOiy#iOOOO|O!", &given->directory, &given->geometry_owner,
                          &given->array_owner, &box->kind, &given->fill, &given->n_fill,
                          &box->swap, &given->taken_owner, &box->stored_owner,
                          &box->elements_owner, &box->decompress, &PyTuple_Type, &more))
        return 0;
    if (!more && given->task != READ)
        return refuse("expected 11 arguments, got 10");
    switch (given->task) {
    case WRITE:
        box->to_write = 1;
        return PyArg_ParseTuple(more, "OiiiiLss", &box->compress, &box->keep_empty,
                                &box->durability, &box->level, &box->shuffle, &box->blosc_block,
                                &box->cname, &box->unique);
    case READ_BOXES:
        return PyArg_ParseTuple(more, "OOOOO", &many[0], &many[1], &many[2], &many[3], &many[4]);
    default:
        return !more
               || PyArg_ParseTuple(more, "Oi", &given->factors_owner, &given->cells.method);
    }
}

static int take_views(Given *given)
{
    Box *box = &given->box;
    Boxes *boxes = &given->boxes;
    PyObject **many = given->many;
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (box->to_write ? 0 : PyBUF_WRITABLE);
    if (!get_numbers(given->geometry_owner, &given->geometry, "geometry", "lq", 8, 0)
        || PyObject_GetBuffer(given->array_owner, &given->array, flags) != 0
        || !get_numbers(given->taken_owner, &given->taken, "taken", "lq", 8, PyBUF_WRITABLE)
        || !get_numbers(box->stored_owner, &given->stored, "stored", "Bbc", 1, PyBUF_WRITABLE)
        || !get_numbers(box->elements_owner, &given->elements, "elements", "Bbc", 1,
                        PyBUF_WRITABLE))
        return 0;
    box->stored = given->stored.buf;
    box->n_stored = given->stored.len;
    box->elements = given->elements.buf;
    box->n_elements = given->elements.len;
    if (given->factors_owner)
        return get_numbers(given->factors_owner, &given->factors, "factors", "lq", 8, 0);
    return given->task != READ_BOXES
           || (get_numbers(many[0], &boxes->starts, "starts", "lq", 8, 0)
               && get_numbers(many[1], &boxes->places, "places", "lq", 8, 0)
               && get_numbers(many[2], &boxes->members, "members", "lq", 8, 0)
               && get_numbers(many[3], &boxes->ends, "ends", "lq", 8, 0)
               && get_numbers(many[4], &given->whole, "whole", "Bbc", 1, PyBUF_WRITABLE));
}

static void release_views(Given *given)
{
    Py_buffer *views[] = {&given->geometry, &given->array, &given->taken, &given->stored,
                          &given->elements, &given->whole, &given->factors,
                          &given->boxes.starts, &given->boxes.places, &given->boxes.members,
                          &given->boxes.ends};
    for (size_t k = 0; k < sizeof views / sizeof *views; k++)
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
}

static int check_views(Given *given)
{
    Box *box = &given->box;
    const int has_boxes = given->task == READ_BOXES;
    if (given->factors_owner) {
        if (!check_array(box, &given->array, 0)
            || !check_cells(&given->cells, &given->factors, &given->array))
            return 0;
        given->cells.swap = box->swap != 0;
        box->cells = &given->cells;
    }
    return check_box(box, has_boxes, given->fill, given->n_fill, &given->geometry, &given->array)
           && check_arguments(box, has_boxes, &given->taken)
           && check_apart(&given->array, &given->taken, &given->stored, &given->elements,
                          &given->whole)
           && (!has_boxes || check_boxes(box, &given->boxes, &given->array, &given->whole));
}

/* Read or write the block, or the group of boxes, with a number; return whether that is done. */
static int do_one(Given *given, int64_t index, int is_able, Block *block)
{
    Box *box = &given->box;
    if (given->task == READ_BOXES) {
        memset(block->position, 0, sizeof block->position);
        int result = is_able ? read_group(box, &given->boxes, index, block) : LEFT;
        block->position[0] = index; /* for Python, the number of the group */
        return result;
    }
    find_block(box, index, block);
    if (!is_able)
        return LEFT;
    if (given->task == READ)
        return read_part(box, block);
    if (block->is_empty)
        return DONE;
    return block->is_inside ? write_one(box, block, index) : LEFT;
}

/* ------------------------------------------------------------------ processors */

/* A guest system takes a processor that rests for one that its host has taken away, and lets a thread
 * that wakes wait for milliseconds on the processor of the thread that wakes it. So a thread that
 * helps moves away from processors on which others have begun to work. */
#ifdef __linux__
static _Atomic int n_working[CPU_SETSIZE];

static int begin_work(void)
{
    int processor = sched_getcpu();
    if (processor < 0 || processor >= CPU_SETSIZE)
        return -1;
    atomic_fetch_add(&n_working[processor], 1);
    return processor;
}

static void end_work(int processor)
{
    if (processor >= 0)
        atomic_fetch_sub(&n_working[processor], 1);
}

static void move_away(void)
{
    cpu_set_t allowed, idle;
    int processor = sched_getcpu();
    if (processor < 0 || processor >= CPU_SETSIZE || !atomic_load(&n_working[processor])
        || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    idle = allowed;
    for (size_t k = 0; k < CPU_SETSIZE; k++)
        if (atomic_load(&n_working[k]))
            CPU_CLR(k, &idle);
    if (CPU_COUNT(&idle) > 0 && sched_setaffinity(0, sizeof idle, &idle) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed); /* it may go anywhere again */
}
#else
static int begin_work(void) { return 0; }
static void end_work(int processor) { (void)processor; }
static void move_away(void) {}
#endif

/* Let the threads begin that have been asked for help, as they wake behind the one that asks; the
 * second number tells of them once. */
static void give_way(const Py_buffer *taken)
{
    if (atomic_exchange((_Atomic int64_t *)taken->buf + 1, 0))
        sched_yield();
}

static PyObject *spread(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    move_away();
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ many blocks */

/* Claim blocks and read or write them, until none remain; other threads may claim some, too.
 * Return whether no exception has ended it. */
static int do_all(Given *given, PyObject *left)
{
    Box *box = &given->box;
    _Atomic int64_t *counter = given->taken.buf;
    const int64_t n_claims = given->task == READ ? n_claimed(box) : 1;
    struct timespec last;
    int failed = 0;
    box->thread = PyEval_SaveThread();
    const int processor = begin_work();
    give_way(&given->taken);
    int is_able = open_libraries(box);
    box->directory = open(given->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box->directory < 0 && (box->to_write || !is_missing(errno)))
        is_able = 0;
    clock_gettime(CLOCK_MONOTONIC, &last);
    int64_t index = 0, n_left = 0; /* of the blocks that this thread has claimed */
    for (; !failed; index++, n_left--) {
        if (n_left == 0) {
            index = atomic_fetch_add(counter, n_claims);
            n_left = n_claims;
        }
        Block block;
        if (index < 0 || index >= box->n_blocks) /* Python may have written any number there */
            break;
        int result = do_one(given, index, is_able, &block);
        failed = is_interrupted(box, &last);
        if (result != DONE && !failed) {
            PyEval_RestoreThread(box->thread);
            failed = !add_position(left, box, &block);
            box->thread = PyEval_SaveThread();
        }
    }
    if (box->directory >= 0)
        close(box->directory);
    close_libraries(box);
    end_work(processor);
    PyEval_RestoreThread(box->thread);
    return !failed;
}

/* Do a task; return the positions of the blocks that are left to Python. */
static PyObject *run(PyObject *args, int task)
{
    Given given = {.task = task, .box = {.library = library_now(), .cname = "", .unique = ""}};
    PyObject *left = NULL;
    if (!parse_arguments(&given, args))
        return NULL;
    if (take_views(&given) && check_views(&given))
        left = PyList_New(0);
    if (left && !do_all(&given, left))
        Py_CLEAR(left);
    release_views(&given);
    return left;
}

static PyObject *read_box(PyObject *Py_UNUSED(self), PyObject *args) { return run(args, READ); }
static PyObject *write_box(PyObject *Py_UNUSED(self), PyObject *args) { return run(args, WRITE); }
static PyObject *read_boxes(PyObject *Py_UNUSED(self), PyObject *args)
{
    return run(args, READ_BOXES);
}

/* Find the part of a box that lies in the block at a grid position. */
static int find_wanted(const Box *box, PyObject *position, Block *block)
{
    int is_there = PyTuple_GET_SIZE(position) == box->ndim;
    for (int d = 0; is_there && d < box->ndim; d++) {
        block->position[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(position, d));
        if (PyErr_Occurred())
            return 0;
        is_there = block->position[d] >= 0 && block->position[d] <= INT64_MAX / box->block[d];
    }
    if (is_there)
        find_part(box, block);
    return (is_there && !block->is_empty) || refuse("position: expected that of a block of the box");
}

/* Decode one block of a box, which comes from anywhere, into the array; True, or False where it is
 * left to Python. Without bytes, the block is missing. */
static PyObject *put_block(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *fill;
    Py_ssize_t n_fill;
    Py_buffer geometry = {0}, array = {0}, stored = {0}, elements = {0}, none = {0};
    PyObject *geometry_owner, *array_owner, *position;
    Box box = {.library = library_now()};
    Block block;
    int result = LEFT, failed = 1;
    if (!PyArg_ParseTuple(args, "OOiy#iO!OOO", &geometry_owner, &array_owner, &box.kind, &fill,
                          &n_fill, &box.swap, &PyTuple_Type, &position, &box.stored_owner,
                          &box.elements_owner, &box.decompress))
        return NULL;
    const int is_missing_block = box.stored_owner == Py_None;
    if (!get_numbers(geometry_owner, &geometry, "geometry", "lq", 8, 0)
        || PyObject_GetBuffer(array_owner, &array,
                              PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0
        || !(is_missing_block || get_numbers(box.stored_owner, &stored, "stored", "Bbc", 1, 0))
        || !get_numbers(box.elements_owner, &elements, "elements", "Bbc", 1, PyBUF_WRITABLE))
        goto end;
    /* what is checked of a payload must not change before it is decoded */
    if (!is_missing_block && !stored.readonly) {
        refuse("stored: expected bytes that are read only");
        goto end;
    }
    box.stored = stored.buf;
    box.elements = elements.buf;
    box.n_elements = elements.len;
    if (!check_box(&box, 0, fill, n_fill, &geometry, &array)
        || !check_elements(&box, box.kind == RAW ? 0 : box.n_full)
        || !check_apart(&array, &none, &stored, &elements, &none)
        || !find_wanted(&box, position, &block))
        goto end;
    box.thread = PyEval_SaveThread();
    if (block.is_inside && is_missing_block) {
        fill_part(&box, &block);
        result = DONE;
    } else if (block.is_inside && open_libraries(&box)) {
        result = decode_stored(&box, &block, stored.len, NULL);
    }
    close_libraries(&box);
    PyEval_RestoreThread(box.thread);
    failed = box.has_raised;
end:
    for (int k = 0; k < 4; k++) {
        Py_buffer *views[] = {&geometry, &array, &stored, &elements};
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
    }
    return failed ? NULL : PyBool_FromLong(result == DONE);
}

/* Combine each cell of an array into one element of another one. */
static PyObject *combine(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *array_owner, *out_owner, *factors_owner, *result = NULL;
    Py_buffer array = {0}, out = {0}, factors = {0}, none = {0};
    Cells cells = {.ndim = 0};
    int64_t n[MAX_NDIM], to_stride[MAX_NDIM], from_stride[MAX_NDIM];
    Box box = {.library = NULL};
    if (!PyArg_ParseTuple(args, "OOOi", &array_owner, &out_owner, &factors_owner, &cells.method))
        return NULL;
    if (PyObject_GetBuffer(array_owner, &array, PyBUF_STRIDES | PyBUF_FORMAT) != 0
        || PyObject_GetBuffer(out_owner, &out, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0
        || !get_numbers(factors_owner, &factors, "factors", "lq", 8, 0)
        || !check_array(&box, &array, 0) || !check_cells(&cells, &factors, &array)
        || !check_apart(&array, &out, &none, &none, &none))
        goto end;
    if (out.ndim != array.ndim || !out.strides || native_letter(&out) != native_letter(&array)) {
        refuse("out: expected %d dimensions and the format of the array", array.ndim);
        goto end;
    }
    for (int d = 0; d < cells.ndim; d++) {
        n[d] = array.shape[d];
        from_stride[d] = array.strides[d];
        to_stride[d] = out.strides[d];
        if (n[d] < 1 || out.shape[d] != n_cells(&cells, d, n[d])) {
            refuse("out: expected an element for each cell in dimension %d, got %zd of %lld", d,
                   out.shape[d], (long long)n[d]);
            goto end;
        }
    }
    PyThreadState *thread = PyEval_SaveThread();
    combine_cells(&cells, out.buf, to_stride, array.buf, from_stride, n);
    PyEval_RestoreThread(thread);
    result = Py_NewRef(Py_None);
end:
    for (int k = 0; k < 3; k++) {
        Py_buffer *views[] = {&array, &out, &factors};
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
    }
    return result;
}

/* ------------------------------------------------------------------ ends of files */

/* Read the first and last bytes of a file that no program is writing, all of a short one, as
 * files.py does. Give its length; -1 leaves the file to Python: a missing one, one that was written
 * just now, an empty one that a writer may have created, and one that may be a shard. */
static int64_t read_ends_of(const Box *box, const Block *block, char *to, int64_t first,
                            int64_t last)
{
    struct stat status = {0};
    int is_locked = 0, is_recent, is_read = 0;
    int file = openat(box->directory, block->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return -1;
    int is_settled = settle(file, &status, &is_locked, &is_recent);
    if (is_locked)
        unlock(file);
    int64_t size = status.st_size, n_first = size <= first + last ? size : first;
    int64_t n_last = size - n_first < last ? size - n_first : last;
    if (is_settled && !is_recent)
        is_read = pread(file, to, (size_t)n_first, 0) == n_first
                  && (n_last == 0
                      || pread(file, to + n_first, (size_t)n_last, size - n_last) == n_last)
                  && is_unchanged(file, &status);
    close(file);
    int is_coming = size == 0 && status.st_mtim.tv_sec > time(NULL) - 2;
    if (!is_read || is_coming || (size >= LAST && may_be_shard(to + n_first + n_last - LAST, size)))
        return -1;
    return size;
}

/* Read both ends of the files of some blocks, to rows of `out`, and their lengths to `sizes`. */
static PyObject *read_ends(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *directory;
    PyObject *owner[3], *result = NULL;
    Py_buffer places = {0}, out = {0}, sizes = {0};
    long long first, last;
    struct timespec begin;
    Box box = {.library = NULL};
    Block block;
    if (!PyArg_ParseTuple(args, "yiOLLOO", &directory, &box.ndim, &owner[0], &first, &last,
                          &owner[1], &owner[2]))
        return NULL;
    if (!get_numbers(owner[0], &places, "places", "lq", 8, 0)
        || !get_numbers(owner[1], &out, "out", "Bbc", 1, PyBUF_WRITABLE)
        || !get_numbers(owner[2], &sizes, "sizes", "lq", 8, PyBUF_WRITABLE))
        goto end;
    int64_t n = sizes.len / 8;
    if (box.ndim < 1 || box.ndim > MAX_NDIM || first < LAST || first > MAX_BYTES || last < LAST
        || last > MAX_BYTES || places.len / 8 / box.ndim != n || places.len / 8 % box.ndim != 0
        || out.len / (first + last) < n) {
        refuse("expected 1 to %d dimensions, ends of %d bytes or more, a place and a row for each"
               " of %lld sizes", MAX_NDIM, LAST, (long long)n);
        goto end;
    }
    int failed = 0;
    box.thread = PyEval_SaveThread();
    box.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int64_t k = 0; k < n && !failed; k++) {
        int is_place = box.directory >= 0;
        for (int d = 0; d < box.ndim; d++) {
            block.position[d] = number_at(&places, (Py_ssize_t)(k * box.ndim + d));
            is_place &= block.position[d] >= 0;
        }
        name_block(&box, &block);
        char *row = (char *)out.buf + k * (first + last);
        int64_t size = is_place ? read_ends_of(&box, &block, row, first, last) : -1;
        memcpy((char *)sizes.buf + 8 * k, &size, sizeof size); /* it may not be aligned */
        failed = is_interrupted(&box, &begin);
    }
    if (box.directory >= 0)
        close(box.directory);
    PyEval_RestoreThread(box.thread);
    if (!failed)
        result = Py_NewRef(Py_None);
end:
    for (int k = 0; k < 3; k++) {
        Py_buffer *views[] = {&places, &out, &sizes};
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
    }
    return result;
}

/* Put time and size of files to `out`; a size of -1 where none is. */
static PyObject *stamps(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *paths, *owner;
    Py_buffer out = {0};
    if (!PyArg_ParseTuple(args, "O!O", &PyBytes_Type, &paths, &owner))
        return NULL;
    if (!get_numbers(owner, &out, "out", "lq", 8, PyBUF_WRITABLE)) {
        if (out.obj)
            PyBuffer_Release(&out);
        return NULL;
    }
    /* one after the other, each with a zero at its end, as bytes have one */
    const char *path = PyBytes_AS_STRING(paths), *end = path + PyBytes_GET_SIZE(paths);
    PyThreadState *thread = PyEval_SaveThread();
    for (Py_ssize_t k = 0; k + 16 <= out.len && path < end; k += 16) {
        struct stat status;
        int64_t found[] = {0, -1};
        if (stat(path, &status) == 0) {
            /* unsigned: it wraps after the year 2262 */
            found[0] = (int64_t)((uint64_t)status.st_mtim.tv_sec * 1000000000
                                 + (uint64_t)status.st_mtim.tv_nsec);
            found[1] = status.st_size;
        }
        memcpy((char *)out.buf + k, found, sizeof found);
        path += strlen(path) + 1;
    }
    PyEval_RestoreThread(thread);
    PyBuffer_Release(&out);
    return Py_NewRef(Py_None);
}

/* Tell, for tests, what is seen in some bytes: whether they are one frame of zstd, a blosc buffer of
 * n bytes, one that is split, and the end of a file of n bytes that may be a shard. */
static PyObject *judge(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *from;
    Py_ssize_t n_from;
    long long n;
    if (!PyArg_ParseTuple(args, "y#L", &from, &n_from, &n))
        return NULL;
    return Py_BuildValue("iiii", is_one_frame(from, n_from), fits_blosc(from, n_from, n),
                         n_from >= BLOSC_HEADER && is_split(from),
                         n_from >= LAST && n >= LAST && may_be_shard(from + n_from - LAST, n));
}

static PyMethodDef methods[] = {
    {"use", use, METH_VARARGS, "Take the addresses of the libraries' functions."},
    {"box_of_batch", box_of_batch, METH_VARARGS, "Find the box that chunks form."},
    {"read_box", read_box, METH_VARARGS, "Read blocks into an array."},
    {"read_boxes", read_boxes, METH_VARARGS, "Read blocks into an array of many boxes."},
    {"put_block", put_block, METH_VARARGS, "Decode a block of a box into an array."},
    {"write_box", write_box, METH_VARARGS, "Write blocks from an array."},
    {"spread", spread, METH_NOARGS, "Move this thread to a processor that does no work."},
    {"read_ends", read_ends, METH_VARARGS, "Read both ends of files of blocks."},
    {"stamps", stamps, METH_VARARGS, "Give times and sizes of files."},
    {"combine", combine, METH_VARARGS, "Combine cells of elements into one each."},
    {"judge", judge, METH_VARARGS, "Tell what is seen in some bytes."},
    {NULL, NULL, 0, NULL},
};

/* Numbers that Python takes from here, and others that it states too, as it works without this file:
 * tests/unit/fast/test_twins.py compares them. */
static const struct {
    const char *name;
    int value;
} constants[] = {
#define NAMED(name) {#name, name}
    NAMED(RAW), NAMED(GZIP), NAMED(ZLIB), NAMED(ZSTD), NAMED(BLOSC), NAMED(OTHER),
    NAMED(ATOMIC), NAMED(DURABLE), NAMED(OVERWRITE), NAMED(MEAN), NAMED(MODE),
    NAMED(GROUP), NAMED(MAX_CELL), NAMED(MAX_SORTED), NAMED(UNIQUE),
    NAMED(MAX_NDIM), NAMED(MAX_BYTES), NAMED(RECENT), NAMED(NO_HEADER), NAMED(LAST), NAMED(ENTRY),
    NAMED(MAX_WINDOW), NAMED(ZSTD_BLOCK), NAMED(BLOSC_HEADER), NAMED(MAX_SPLITS), NAMED(MIN_STREAM),
    NAMED(COPIED), NAMED(NOT_SPLIT), NAMED(SNAPPY), NAMED(ZSTANDARD),
#undef NAMED
};

static int add_constants(PyObject *self)
{
    for (size_t k = 0; k < sizeof constants / sizeof *constants; k++)
        if (PyModule_AddIntConstant(self, constants[k].name, constants[k].value) != 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_constants},
#ifdef Py_mod_gil /* what is shared between calls is `current`, and the counter `taken` */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    /* interpreters with a lock of their own are refused, as numpy refuses them */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "n5zarr.fast._kernel",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
